//! brunt's views: a [`Summary`] in, bytes out.
//!
//! Each view is a file of its own and a pure function of the summary; none computes a figure that the summary does
//! not hold, so that all of them show the same numbers. The verdict stands in every one of them:
//!
//! | view | for | the verdict |
//! | --- | --- | --- |
//! | [`text`] | people | above all where it is bad, below the figures else, and again beside what it spoils |
//! | [`wrk`] | scripts that parse wrk's output | after wrk's last line, unless the figures can be trusted |
//! | [`json`] | programs; its recording is read back | `verdict`, and `spoiled` in each point of `series` |
//! | [`csv`] | data frames, spreadsheets and plots: a row a second, and more by `kind` | a column |
//! | [`junit`] | CI: test cases for thresholds and checks | a property |
//! | [`html`] | people, with charts | above all, and where it spoils charts |
//! | [`live`] | who watches a run go on | in the result |
//!
//! What was decided over several runs ([`decision`]) has views of its own, as text, JSON, CSV, `JUnit` and Markdown.
//!
//! Texts that come from elsewhere (a server's words in a failure's reason, a plan's URL) are shown without control
//! characters, so that none of them can move a terminal's cursor.

use std::io::{self, Write};

use brunt_judge::summary::Summary;

mod ascii;
pub mod browse;
pub mod changes;
mod chart;
pub mod columns;
pub mod csv;
mod dates;
pub mod decision;
mod failed;
mod format;
mod headline;
pub mod html;
pub mod json;
pub mod junit;
pub mod kept;
pub mod live;
mod made;
mod markup;
mod numbers;
mod page;
pub mod schema;
mod skipped;
mod style;
pub mod text;
pub mod wrk;

pub use format::{Format, FormatError};
pub use headline::{Statement, Tone, headline, no_call, paused_to_end, statements};
pub use numbers::clean;
pub use style::{Characters, Detail, Style};

/// Writes `summary` in `format`.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, format: Format, summary: &Summary, style: Style) -> io::Result<()> {
    match format {
        Format::Text => text::write(out, summary, style),
        Format::Wrk => wrk::write(out, summary, style),
        Format::Json => json::write(out, summary),
        Format::Csv => csv::write(out, summary),
        Format::Junit => junit::write(out, summary),
        Format::Html => html::write(out, summary),
    }
}

/// `summary` in `format`, in memory.
///
/// # Errors
/// Never for lack of room; the formats' writers are fallible in type.
pub fn render(format: Format, summary: &Summary, style: Style) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut bytes, format, summary, style)?;
    let is_for_people = matches!(format, Format::Text | Format::Wrk);
    Ok(if is_for_people { style.characters.written(bytes) } else { bytes })
}
