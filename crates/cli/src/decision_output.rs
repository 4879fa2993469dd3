//! The output of decisions over several runs: standard output in one format, and files, each in the format of its
//! extension.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use brunt_report::decision::{Decision, DecisionFormat, Runs, conclusion, failures, render, write_page};
use brunt_report::{Characters, Detail, Style};

use crate::args::runs::Shown;
use crate::exit::Exit;
use crate::results::all_of;
use crate::{console, files};

/// Where a decision goes.
#[derive(Debug)]
pub struct DecisionOutput {
    stdout: Option<DecisionFormat>,
    files: Vec<(PathBuf, DecisionFormat)>,
    /// The style of printing.
    style: Style,
    /// The characters of files of text.
    in_files: Characters,
}

impl DecisionOutput {
    /// The output by these flags.
    ///
    /// # Errors
    /// For a file that cannot be written, before there is anything to lose.
    pub fn writable(shown: &Shown) -> Result<Self> {
        let (outputs, page) = (&shown.outputs, shown.html.as_ref());
        let decided = Self::new(outputs, page, shown.format, shown.quiet, shown.no_color, shown.ascii)?;
        decided.files.iter().try_for_each(|(path, _)| files::check_writable(path))?;
        Ok(decided)
    }

    /// The output by `outputs`, `html` and `format`; files are not tested.
    ///
    /// # Errors
    /// For a file whose extension belongs to no format.
    pub fn new(
        outputs: &[PathBuf],
        html: Option<&PathBuf>,
        format: Option<DecisionFormat>,
        quiet: bool,
        no_color: bool,
        ascii: bool,
    ) -> Result<Self> {
        let mut all = Vec::new();
        for path in outputs {
            all.push((path.clone(), DecisionFormat::of_path(path).map_err(|e| anyhow!("-o: {e}"))?));
        }
        all.extend(html.map(|path| (path.clone(), DecisionFormat::Html)));
        let stdout = if quiet { format } else { Some(format.unwrap_or(DecisionFormat::Text)) };
        let style = console::stdout_style(no_color, ascii);
        Ok(Self { stdout, files: all, style, in_files: Characters::ascii(ascii) })
    }

    /// Adds the date of the first run, which was earlier.
    #[must_use]
    pub fn dated(self) -> Self {
        Self { style: Style { detail: self.style.detail.max(Detail::Dated), ..self.style }, ..self }
    }

    /// Whether the printed format is for people.
    pub fn is_for_people(&self) -> bool {
        self.stdout == Some(DecisionFormat::Text)
    }

    /// The exit status of `decision`. Explains it where the output is not for people, and repeats the conclusion below a text that is longer than
    /// its terminal.
    pub fn explained(&self, decision: Decision<'_>) -> Exit {
        for failure in failures(decision).iter().filter(|_| !self.is_for_people()) {
            console::note(&format!("error: {failure}"));
        }
        if self.is_for_people()
            && let Ok(text) = render(DecisionFormat::Text, decision, self.style)
        {
            // The decision is printed already; that a repetition is not has no further effect.
            drop(console::repeat_headline(&conclusion(decision), &text));
        }
        Exit::of_decision(decision)
    }

    /// Writes the decision everywhere, with links to its runs by `runs`. A failing destination does not stop the
    /// others.
    ///
    /// # Errors
    /// The failed destinations, each in a line.
    pub fn write(&self, decision: Decision<'_>, runs: Runs<'_>) -> Result<()> {
        let written = |format, style| -> Result<Vec<u8>> {
            let mut bytes = Vec::new();
            match format {
                DecisionFormat::Html => write_page(&mut bytes, decision, runs)?,
                _ => bytes = render(format, decision, style)?,
            }
            Ok(bytes)
        };
        let printed = self.stdout.map_or(Ok(()), |format| console::print(&written(format, self.style)?));
        let plain = Style { detail: Detail::Dated, characters: self.in_files, ..Style::default() };
        let files = self.files.iter().map(|(path, format)| files::write(path, &written(*format, plain)?));
        all_of(std::iter::once(printed).chain(files))
    }
}
