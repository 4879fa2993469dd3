//! Views of decisions over several runs. As for a single run, each view is a pure function that computes no figure, and
//! all of them show the same figures; each has the verdict of every run.

use std::io::{self, Write};

use brunt_decide::capacity::{Capacity, LEVELS, key_of_level};
use brunt_decide::compare::ComparedRuns;
use brunt_decide::knee::Knee;
use brunt_decide::sweep::Sweep;
use brunt_plan::plan::Plan;
use serde::Serialize;

use crate::format::{self, Asked};
use crate::numbers::clean;
use crate::style::{Detail, Paint, Style};
use crate::text::{self, machine_lines, origin_lines};

mod capacity;
mod cases;
mod comparison;
mod leading;
mod not_made;
mod page;
mod plot;
mod read;
mod runs;
mod sweep;
pub(crate) mod table;
mod watched;

pub use brunt_decide::decision::Decision;
pub use cases::failures;
pub(crate) use page::page;
pub use page::{Runs, conclusion};
pub use read::read;

/// A format of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecisionFormat {
    /// For people.
    Text,
    /// Everything, for programs.
    Json,
    /// A row for each run, for spreadsheets and plots.
    Csv,
    /// Test cases, for CI.
    Junit,
    /// For people, where Markdown is read: in a pull request.
    Markdown,
    /// A page with charts, for a browser; with links to its runs by [`write_page`].
    Html,
}

impl DecisionFormat {
    /// Every format.
    pub const ALL: [Self; 6] = [Self::Text, Self::Json, Self::Csv, Self::Junit, Self::Markdown, Self::Html];

    const fn asked(self) -> Asked {
        let (name, extension) = match self {
            Self::Text => ("text", "txt"),
            Self::Json => ("json", "json"),
            Self::Csv => ("csv", "csv"),
            Self::Junit => ("junit", "xml"),
            Self::Markdown => ("markdown", "md"),
            Self::Html => ("html", "html"),
        };
        Asked { name, extension: Some(extension) }
    }
}

format::named_formats!(DecisionFormat);

/// Writes `decision` in `format`.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, format: DecisionFormat, decision: Decision<'_>, style: Style) -> io::Result<()> {
    let paint = Paint(style.colour);
    let is_dated = style.detail >= Detail::Dated;
    let origin = origin_lines(decision.origin(), decision.started_unix_ms(), is_dated, paint);
    let machine = machine_lines(decision.machine(), env!("CARGO_PKG_VERSION"), is_dated, paint);
    let label = [origin, machine, loss_lines(decision, paint)].concat();
    let text = match (decision, format) {
        (_, DecisionFormat::Json) => return json(out, &Document::from_decision(decision)),
        (_, DecisionFormat::Junit) => return cases::write(out, decision),
        (_, DecisionFormat::Html) => return write_page(out, decision, Runs::default()),
        (Decision::Capacity(plan, capacity), DecisionFormat::Text) => capacity::text(plan, capacity, label, paint),
        (Decision::Capacity(plan, capacity), DecisionFormat::Markdown) => {
            capacity::markdown(plan, capacity) + &markdown_label(decision)
        }
        (Decision::Capacity(plan, capacity), DecisionFormat::Csv) => capacity::csv(plan, capacity),
        (Decision::Sweep(plan, sweep), DecisionFormat::Text) => sweep::text(plan, sweep, label, paint),
        (Decision::Sweep(plan, sweep), DecisionFormat::Markdown) => {
            sweep::markdown(plan, sweep) + &markdown_label(decision)
        }
        (Decision::Sweep(plan, sweep), DecisionFormat::Csv) => sweep::csv(plan, sweep),
        (Decision::Comparison(compared), DecisionFormat::Text) => comparison::text(compared, label, paint),
        (Decision::Comparison(compared), DecisionFormat::Markdown) => {
            comparison::markdown(compared, &markdown_label(decision))
        }
        (Decision::Comparison(compared), DecisionFormat::Csv) => comparison::csv(compared),
    };
    out.write_all(text.as_bytes())
}

/// Remarks on runs that lost an agent, for a terminal.
fn loss_lines(decision: Decision<'_>, paint: Paint) -> Vec<String> {
    let lines = decision.lacking().losses.iter().flat_map(|loss| text::wrapped("! ", "  ", &clean(loss), text::WIDTH));
    lines.map(|line| paint.warning(line)).collect()
}

/// The end of Markdown: runs that lost an agent, the decision's name, its tags, when its first run began, and the
/// command that repeats it.
fn markdown_label(decision: Decision<'_>) -> String {
    let origin = decision.origin();
    let tags = origin.tags.iter().map(|(key, value)| format!("{key}={value}"));
    let names = origin.name.iter().cloned().chain(tags).map(|text| format!("`{}`", comparison::code(&text)));
    let began = decision.started_unix_ms().map(text::moment);
    let machine = decision.machine().map(|machine| format!("on {}", clean(&machine.to_string())));
    let label = names.chain(began).chain(machine).collect::<Vec<_>>().join(", ");
    let command =
        (!origin.command.is_empty()).then(|| format!("Run it again: `{}`", comparison::code(&origin.command)));
    let losses =
        decision.lacking().losses.iter().map(|loss| format!("- {}", clean(loss))).collect::<Vec<_>>().join("\n");
    let lines = [losses, label, command.unwrap_or_default()].into_iter().filter(|line| !line.is_empty());
    lines.flat_map(|line| ["\n".to_owned(), line, "\n".to_owned()]).collect()
}

/// `decision` in `format`, in memory.
///
/// # Errors
/// Never for lack of room; the formats' writers are fallible in type.
pub fn render(format: DecisionFormat, decision: Decision<'_>, style: Style) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut bytes, format, decision, style)?;
    Ok(if format == DecisionFormat::Text { style.characters.written(bytes) } else { bytes })
}

/// Writes the page of `decision`, with links to its runs by `runs`.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_page(out: &mut impl Write, decision: Decision<'_>, runs: Runs<'_>) -> io::Result<()> {
    page(decision, runs, None).write(out)
}

/// The content of `decision` for a page that follows it, in a line; `live` is the progress of one that goes on.
///
/// # Errors
/// None: writing JSON is fallible in type.
pub fn page_data(decision: Decision<'_>, runs: Runs<'_>, live: Option<&str>) -> io::Result<String> {
    page(decision, runs, live).event()
}

/// The value of `format` in each of these documents.
const SWEEP: &str = "brunt-sweep";
const CAPACITY: &str = "brunt-capacity";
const COMPARISON: &str = "brunt-comparison";

/// The version of these documents.
pub const VERSION: u32 = 2;

/// A decision as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "format")]
pub(crate) enum Document<'a> {
    /// The result of `brunt sweep`.
    #[serde(rename = "brunt-sweep")]
    Sweep {
        #[serde(flatten)]
        content: Envelope<WithPlan<'a, Sweep>>,
    },
    /// The result of `brunt find`.
    #[serde(rename = "brunt-capacity")]
    Capacity {
        #[serde(flatten)]
        content: Envelope<WithPlan<'a, Capacity>>,
    },
    /// The result of `brunt compare`.
    #[serde(rename = "brunt-comparison")]
    Comparison {
        #[serde(flatten)]
        content: Envelope<&'a ComparedRuns>,
    },
}

/// The beginning of every document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Envelope<T> {
    /// The version of the format.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERSION)))]
    version: u32,
    /// The version of the brunt that wrote it.
    brunt_version: &'static str,
    #[serde(flatten)]
    content: T,
}

/// The result, beside the plan of its runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WithPlan<'a, T> {
    /// The plan of the runs, without secrets; of a sweep, of the first one.
    plan: &'a Plan,
    /// Where figures of the protocol stop growing with the load; left out without such figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    knees: Vec<Knee>,
    #[serde(flatten)]
    found: &'a T,
}

impl<'a> Document<'a> {
    fn from_decision(decision: Decision<'a>) -> Self {
        fn envelope<T>(content: T) -> Envelope<T> {
            Envelope { version: VERSION, brunt_version: env!("CARGO_PKG_VERSION"), content }
        }
        let knees = decision.knees();
        match decision {
            Decision::Sweep(plan, found) => Self::Sweep { content: envelope(WithPlan { plan, knees, found }) },
            Decision::Capacity(plan, found) => Self::Capacity { content: envelope(WithPlan { plan, knees, found }) },
            Decision::Comparison(compared) => Self::Comparison { content: envelope(compared) },
        }
    }
}

fn json(out: &mut impl Write, document: &Document<'_>) -> io::Result<()> {
    let mut written = Vec::new();
    document.serialize(&mut serde_json::Serializer::with_formatter(&mut written, crate::json::Layout::default()))?;
    let unit = match document {
        Document::Capacity { content } => content.content.found.settings.searched.counted(),
        _ => None,
    };
    match unit {
        Some(unit) => out.write_all(of_counted(&String::from_utf8_lossy(&written), unit).as_bytes())?,
        None => out.write_all(&written)?,
    }
    writeln!(out)
}

/// The document of a search for a number of connections or users, whose levels stand under keys of their own and are whole. A key cannot be mistaken for a
/// part of a text: quotes in texts are escaped.
fn of_counted(document: &str, unit: &str) -> String {
    let mut text = document.to_owned();
    for key in LEVELS {
        let renamed = format!("\"{}\": ", key_of_level(key, unit));
        let known = format!("\"{key}\": ");
        let mut parts = text.split(&known);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            let (number, rest) = part.split_at(digits);
            whole.push_str(&renamed);
            whole.push_str(number);
            whole.push_str(rest.strip_prefix(".0").unwrap_or(rest));
        }
        text = whole;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_format_is_found_by_its_name_and_by_its_files() {
        for (format, file) in
            DecisionFormat::ALL.into_iter().zip(["a.txt", "a.JSON", "b/a.csv", "a.xml", "a.md", "a.HTML"])
        {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(DecisionFormat::of_path(Path::new(file)), Ok(format));
        }
        let error = "wrk".parse::<DecisionFormat>().unwrap_err().to_string();
        assert_eq!(error, "expected one of the formats text, json, csv, junit, markdown and html, got 'wrk'");
        let error = DecisionFormat::of_path(Path::new("a.pdf")).unwrap_err().to_string();
        assert!(error.contains(".txt, .json, .csv, .xml (junit), .md or .html"), "{error}");
    }
}
