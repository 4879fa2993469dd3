//! The whole result for programs: a document that can be read back, merged and compared. Its JSON Schema is
//! [`crate::schema::RESULT`].
//!
//! Within one [`VERSION`] fields are only ever added; reading ignores fields it does not know. A figure's unit is the
//! end of its name: `_ns`, `_bytes`, `_per_s`, `_ratio`; a name without one is a count.

use std::io::{self, Write};

use brunt_judge::summary::Summary;
use serde::{Deserialize, Serialize};

mod agents;
mod document;
mod drilldown;
mod histograms;
mod layout;
mod names;
mod restored;
mod runs;
mod status;

pub use agents::*;
pub use document::*;
pub use drilldown::*;
pub use histograms::*;
pub(crate) use layout::Layout;
pub use names::*;
pub use status::Status;

/// The value of `format` in every document.
pub const FORMAT: &str = "brunt-result";
/// The value of `format` where several documents are in one file.
pub const SEVERAL: &str = "brunt-results";
/// The version of the format that this brunt writes and reads; 1 was that of drafts before the first release.
pub const VERSION: u32 = 2;

/// A document that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Not JSON at all.
    #[error("line {line}, column {column}: not JSON: {problem}")]
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The JSON reader's error.
        problem: String,
    },
    /// JSON, and not a result.
    #[error("expected a result that brunt wrote as JSON, got JSON without \"format\": \"{FORMAT}\"")]
    Format,
    /// Several results in one file, where one is needed.
    #[error("expected one result, got {}", listed(.numbers))]
    Several {
        /// Their numbers.
        numbers: Vec<i64>,
    },
    /// Several results in one file, and none has this number.
    #[error("no result has number {number}, only {}", listed(.numbers))]
    Number {
        /// As given.
        number: i64,
        /// The numbers that exist.
        numbers: Vec<i64>,
    },
    /// A result of another version.
    #[error(
        "the result has format version {got}, this brunt reads version {VERSION}: read it with the brunt that wrote it"
    )]
    Version {
        /// The version found.
        got: u64,
    },
    /// A result of a brunt before the first release.
    #[error(
        "the result has format version {got}, which drafts of brunt wrote before its first release; this brunt reads version {VERSION}"
    )]
    Draft {
        /// The version found.
        got: u64,
    },
    /// A result without histograms, where they are needed.
    #[error(
        "the result was written with --no-histograms: its figures can be read, but reports, pages and comparisons need a whole one"
    )]
    NoHistograms,
    /// A result with something missing or wrong in it.
    #[error("line {line}, column {column}: not a whole result: {problem}")]
    Content {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The problem.
        problem: String,
    },
}

impl ReadError {
    /// The error for a document of version `got`, where `known` is read.
    pub(crate) fn of_version(got: u64, known: u32) -> Self {
        if got < u64::from(known) { Self::Draft { got } } else { Self::Version { got } }
    }
}

/// The numbers of runs, as a list for people.
fn listed(numbers: &[i64]) -> String {
    match numbers {
        [] => "none".to_owned(),
        [one] => format!("run {one}"),
        [others @ .., last] => {
            let others: Vec<_> = others.iter().map(i64::to_string).collect();
            format!("runs {} and {last}", others.join(", "))
        }
    }
}

/// Writes the document of `summary`.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    write_document(out, &Document::from_summary(summary))
}

/// Writes the document of `summary` without its histograms, which are most of it.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_without_histograms(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    write_document(out, &Document::without_histograms(summary))
}

/// Writes a document.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_document(out: &mut impl Write, document: &Document) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Layout::default());
    document.serialize(&mut serializer)?;
    writeln!(out)
}

/// Writes the documents of several runs, each beside the number that it is kept under, with their histograms or without.
///
/// # Errors
/// When `out` cannot be written to, or a run cannot be read.
pub fn write_several(
    out: &mut impl Write,
    runs: impl IntoIterator<Item = io::Result<(i64, Summary)>>,
    with_histograms: bool,
) -> io::Result<()> {
    write!(out, "{{\n\"format\": \"{SEVERAL}\",\n\"version\": {VERSION},\n\"runs\": [")?;
    for (nth, run) in runs.into_iter().enumerate() {
        let (number, summary) = run?;
        write!(out, "{}\n{{\"number\": {number}, \"result\": ", if nth > 0 { "," } else { "" })?;
        if with_histograms {
            write(out, &summary)?;
        } else {
            write_without_histograms(out, &summary)?;
        }
        write!(out, "}}")?;
    }
    writeln!(out, "\n]\n}}")
}

/// Reads a document that has its histograms, from which every other view can be made.
///
/// # Errors
/// As [`read`]; and when its histograms were left out.
pub fn read_whole(bytes: &[u8]) -> Result<Document, ReadError> {
    whole(read(bytes)?)
}

fn whole(document: Document) -> Result<Document, ReadError> {
    if document.histograms_left_out { Err(ReadError::NoHistograms) } else { Ok(document) }
}

/// Reads a document, with or without histograms.
///
/// # Errors
/// When it is not a result, not one of this version, or broken; when it holds several results.
pub fn read(bytes: &[u8]) -> Result<Document, ReadError> {
    match read_any(bytes)? {
        Read::One(document) => Ok(*document),
        Read::Several(runs) => Err(ReadError::Several { numbers: runs.iter().map(|run| run.number).collect() }),
    }
}

/// Reads the document with this number, of several in one file; with its histograms.
///
/// # Errors
/// As [`read_whole`]; and when no document has that number.
pub fn read_number(bytes: &[u8], number: i64) -> Result<Document, ReadError> {
    let Read::Several(mut runs) = read_any(bytes)? else {
        return Err(ReadError::Number { number, numbers: Vec::new() });
    };
    match runs.iter().position(|run| run.number == number) {
        Some(place) => whole(runs.swap_remove(place).result),
        None => Err(ReadError::Number { number, numbers: runs.iter().map(|run| run.number).collect() }),
    }
}

/// Reads every document of a file, which holds one or several; with their histograms.
///
/// # Errors
/// As [`read_whole`].
pub fn read_each(bytes: &[u8]) -> Result<Vec<Document>, ReadError> {
    match read_any(bytes)? {
        Read::One(document) => Ok(vec![whole(*document)?]),
        Read::Several(runs) => runs.into_iter().map(|run| whole(run.result)).collect(),
    }
}

/// The content of a file.
enum Read {
    One(Box<Document>),
    Several(Vec<Numbered>),
}

/// A document in a file of several.
#[derive(Deserialize)]
struct Numbered {
    number: i64,
    result: Document,
}

fn read_any(bytes: &[u8]) -> Result<Read, ReadError> {
    /// The fields that decide whether the rest can be read.
    #[derive(Deserialize)]
    struct Head {
        format: Option<serde_json::Value>,
        version: Option<serde_json::Value>,
    }
    #[derive(Deserialize)]
    struct Several {
        runs: Vec<Numbered>,
    }
    let head: Head = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => ReadError::Format,
        _ => ReadError::Json { line: error.line(), column: error.column(), problem: error.to_string() },
    })?;
    let format = head.format.as_ref().and_then(serde_json::Value::as_str);
    if !matches!(format, Some(FORMAT | SEVERAL)) {
        return Err(ReadError::Format);
    }
    match head.version.as_ref().and_then(serde_json::Value::as_u64) {
        Some(version) if version == u64::from(VERSION) => {}
        Some(got) => return Err(ReadError::of_version(got, VERSION)),
        None => return Err(ReadError::Format),
    }
    let read = if format == Some(SEVERAL) {
        serde_json::from_slice(bytes).map(|Several { runs }| Read::Several(runs))
    } else {
        serde_json::from_slice(bytes).map(Read::One)
    };
    read.map_err(|error| ReadError::Content { line: error.line(), column: error.column(), problem: error.to_string() })
}
