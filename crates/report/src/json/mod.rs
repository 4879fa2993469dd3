//! The whole result for programs: figures, and the recording from which they were made. Its JSON Schema is
//! [`crate::schema::RESULT`].
//!
//! A result is read back from its plan and its recording alone, and judged anew: figures are for people and other programs.
//! Within one [`VERSION`] fields are only ever added; reading ignores fields it does not know. A figure's unit is the
//! end of its name: `_ns`, `_bytes`, `_per_s`, `_ratio`; a name without one is a count.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_decide::packing;
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use serde::{Deserialize, Serialize};

mod agents;
mod by_name;
mod document;
mod findings;
mod histograms;
mod layout;

pub use agents::*;
pub use by_name::*;
pub use document::*;
pub use findings::*;
pub use histograms::*;
pub(crate) use layout::Layout;

/// The value of `format` in every document.
pub const FORMAT: &str = "brunt-result";
/// The value of `format` where several documents are in one file.
pub const SEVERAL: &str = "brunt-results";
/// The version of the format that this brunt writes and reads; 1 and 2 were those of drafts before the first release.
pub const VERSION: u32 = 3;

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
    /// A result whose recording was left out.
    #[error(
        "the result has no recording: its figures are for people and programs, and no other view can be made of them"
    )]
    NoRecording,
    /// A recording that cannot be read.
    #[error("the result's recording cannot be read: {problem}")]
    Recording {
        /// The problem.
        problem: String,
    },
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

/// Writes the result of `summary`.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let document = Document::new(summary, STANDARD.encode(packing::pack(&summary.run)?));
    document.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, Layout::default()))?;
    writeln!(out)
}

/// Writes the results of several runs, each beside the number that it is kept under.
///
/// # Errors
/// When `out` cannot be written to, or a run cannot be read.
pub fn write_several(
    out: &mut impl Write,
    runs: impl IntoIterator<Item = io::Result<(i64, Summary)>>,
) -> io::Result<()> {
    write!(out, "{{\n\"format\": \"{SEVERAL}\",\n\"version\": {VERSION},\n\"runs\": [")?;
    for (nth, run) in runs.into_iter().enumerate() {
        let (number, summary) = run?;
        write!(out, "{}\n{{\"number\": {number}, \"result\": ", if nth > 0 { "," } else { "" })?;
        write(out, &summary)?;
        write!(out, "}}")?;
    }
    writeln!(out, "\n]\n}}")
}

/// Reads a result.
///
/// # Errors
/// When it is not a result, not one of this version, or broken; when it has no recording; when it holds several results.
pub fn read(bytes: &[u8]) -> Result<Summary, ReadError> {
    match read_any(bytes)? {
        Read::One(written) => written.summary(),
        Read::Several(runs) => Err(ReadError::Several { numbers: runs.iter().map(|run| run.number).collect() }),
    }
}

/// Reads the result with this number, of several in one file.
///
/// # Errors
/// As [`read`]; and when no result has that number.
pub fn read_number(bytes: &[u8], number: i64) -> Result<Summary, ReadError> {
    let Read::Several(mut runs) = read_any(bytes)? else {
        return Err(ReadError::Number { number, numbers: Vec::new() });
    };
    match runs.iter().position(|run| run.number == number) {
        Some(place) => runs.swap_remove(place).result.summary(),
        None => Err(ReadError::Number { number, numbers: runs.iter().map(|run| run.number).collect() }),
    }
}

/// Reads every result of a file, which holds one or several.
///
/// # Errors
/// As [`read`].
pub fn read_each(bytes: &[u8]) -> Result<Vec<Summary>, ReadError> {
    match read_any(bytes)? {
        Read::One(written) => Ok(vec![written.summary()?]),
        Read::Several(runs) => runs.into_iter().map(|run| run.result.summary()).collect(),
    }
}

/// The part of a result that is read back.
#[derive(Deserialize)]
struct Written {
    plan: Plan,
    #[serde(default)]
    recording: Option<String>,
}

impl Written {
    /// The run, judged anew.
    fn summary(self) -> Result<Summary, ReadError> {
        let problem = |problem: String| ReadError::Recording { problem };
        let recording = STANDARD
            .decode(self.recording.ok_or(ReadError::NoRecording)?)
            .map_err(|error| problem(format!("expected base64: {error}")))?;
        let run = packing::unpack_recording(&recording).map_err(|error| problem(error.to_string()))?;
        Ok(Summary::new(self.plan, run))
    }
}

/// The content of a file.
enum Read {
    One(Box<Written>),
    Several(Vec<Numbered>),
}

/// A result in a file of several.
#[derive(Deserialize)]
struct Numbered {
    number: i64,
    result: Written,
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
