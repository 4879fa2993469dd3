//! Why lines of a log are not replayed, in words.

use brunt_record::replayed::Skip;

/// What is said of lines that are skipped for the reason of this name: "3 lines …". The name itself where it is not known, as it may be a newer brunt's.
pub(crate) fn words(name: &str) -> &str {
    let Some(skip) = Skip::named(name) else { return name };
    match skip {
        Skip::TooLong => "longer than 1 MiB",
        Skip::Binary => "not text",
        Skip::Incomplete => "cut off before the end",
        Skip::Malformed => "not in the log's format",
        Skip::NoTime => "without a time",
        Skip::BadTime => "with a time that cannot be read",
        Skip::NoRequest => "without a method and a path",
        Skip::Jump => "with a time far from its neighbours'",
        Skip::TooLate => "out of order by more than --sort-window",
        Skip::Outside => "outside of --window",
        Skip::Filtered => "left out by --filter",
        Skip::Writes => "with a method that writes (--unsafe sends them)",
        Skip::OtherHost => "for another host (--from-host says which stand for the target)",
        Skip::Sampled => "of sessions that --scale leaves out",
    }
}

/// Whether something is wrong with such lines, and they are not only unwanted.
pub(crate) fn is_defect(name: &str) -> bool {
    Skip::named(name).is_none_or(Skip::is_defect)
}
