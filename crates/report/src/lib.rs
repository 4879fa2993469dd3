//! brunt's views: a [`Summary`] in, bytes out.
//!
//! Each view is a file of its own and a pure function of the summary; none computes a figure that the summary does
//! not hold, so that all of them show the same numbers. The verdict stands in every one of them:
//!
//! | view | for | the verdict |
//! | --- | --- | --- |
//! | [`text`] | people | above all where it is bad, below the figures else, and again beside what it spoils |
//! | [`vllm`] | dashboards that read vLLM's results | a field of brunt's own |
//! | [`wrk`] | scripts that parse wrk's output | after wrk's last line, unless the figures can be trusted |
//! | [`json`] | programs; its recording is read back | `verdict`, and `spoiled` in each point of `series` |
//! | [`csv`] | data frames, spreadsheets and plots: a row a second, and more by `kind` | a column |
//! | [`junit`] | CI: test cases for thresholds and checks | a property |
//! | [`html`] | people, with charts | above all, and where it spoils charts |
//! | [`markdown`] | pull requests, and summaries of jobs in CI | as in text |
//! | [`live`] | who watches a run go on | in the result |
//!
//! What was decided over several runs ([`decision`]) has views of its own, as text, JSON, CSV, `JUnit` and Markdown.
//!
//! Texts that come from elsewhere (a server's words in a failure's reason, a plan's URL) are shown without control
//! characters, so that none of them can move a terminal's cursor.
//!
//! ```
//! use std::io;
//!
//! use brunt_judge::summary::Summary;
//! use brunt_report::{Format, Style, render};
//!
//! fn page(summary: &Summary) -> io::Result<Vec<u8>> {
//!     render(Format::Html, summary, Style::default())
//! }
//! ```

use std::io::{self, Write};

use brunt_judge::summary::Summary;

pub mod advice;
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
pub mod markdown;
mod markup;
mod numbers;
mod own;
mod page;
pub mod schema;
mod skipped;
mod style;
mod sure;
pub mod text;
pub mod vllm;
pub mod wrk;

pub use format::FormatError;
pub use headline::{Toned, headline, never, no_call, paused_to_end, remarks};
pub use numbers::clean;
pub use style::{Characters, Detail, Style};

use format::Asked;

/// A format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// For people.
    Text,
    /// As wrk prints it, for scripts that parse that.
    Wrk,
    /// As vLLM's `bench serve` writes it, for dashboards that read that: of runs against language models.
    Vllm,
    /// Everything, for programs.
    Json,
    /// The run second by second, for spreadsheets and plots.
    Csv,
    /// Test cases, for CI.
    Junit,
    /// A page with charts, for a browser.
    Html,
    /// Ten lines where Markdown is read, and the report folded below: a job's summary in CI, a pull request.
    Markdown,
}

/// Writes a view.
type WriteView = fn(&mut dyn Write, &Summary, Style) -> io::Result<()>;

/// A format's names, and its writer.
struct View {
    asked: Asked,
    write: WriteView,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 8] =
        [Self::Text, Self::Wrk, Self::Vllm, Self::Json, Self::Csv, Self::Junit, Self::Html, Self::Markdown];

    const fn view(self) -> View {
        let (name, extension, write): (_, _, WriteView) = match self {
            Self::Text => ("text", Some("txt"), |mut out, summary, style| text::write(&mut out, summary, style)),
            Self::Wrk => ("wrk", None, |mut out, summary, style| wrk::write(&mut out, summary, style)),
            Self::Vllm => ("vllm", None, |mut out, summary, style| vllm::write(&mut out, summary, style)),
            Self::Json => ("json", Some("json"), |mut out, summary, _| json::write(&mut out, summary)),
            Self::Csv => ("csv", Some("csv"), |mut out, summary, _| csv::write(&mut out, summary)),
            Self::Junit => ("junit", Some("xml"), |mut out, summary, _| junit::write(&mut out, summary)),
            Self::Html => ("html", Some("html"), |mut out, summary, _| html::write(&mut out, summary)),
            Self::Markdown => ("markdown", Some("md"), |mut out, summary, _| markdown::write(&mut out, summary)),
        };
        View { asked: Asked { name, extension }, write }
    }

    const fn asked(self) -> Asked {
        self.view().asked
    }
}

format::named_formats!(Format);

/// Writes `summary` in `format`.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, format: Format, summary: &Summary, style: Style) -> io::Result<()> {
    (format.view().write)(out, summary, style)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert_eq!(
            "pdf".parse::<Format>().unwrap_err().to_string(),
            "expected one of the formats text, wrk, vllm, json, csv, junit, html and markdown, got 'pdf'"
        );
    }

    #[test]
    fn a_file_name_tells_the_format() {
        for (name, format) in [
            ("a.txt", Format::Text),
            ("b/c.JSON", Format::Json),
            ("a.b.csv", Format::Csv),
            ("r.xml", Format::Junit),
            ("p.html", Format::Html),
            ("c.md", Format::Markdown),
        ] {
            assert_eq!(Format::of_path(Path::new(name)), Ok(format));
        }
        for name in ["out", "out.pdf", ".json", ""] {
            let error = Format::of_path(Path::new(name)).unwrap_err().to_string();
            let known = ".txt, .json, .csv, .xml (junit), .html or .md";
            assert!(error.contains(known) && error.ends_with(&format!("got '{name}'")), "{error}");
        }
    }
}
