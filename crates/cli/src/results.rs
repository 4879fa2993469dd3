//! The output of a run's result: standard output in one format, and files, each in the format of its extension.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use brunt_judge::summary::Summary;
use brunt_report::{Characters, Detail, Format, Style};

use crate::args::Output;
use crate::{console, files};

/// Where a result goes.
#[derive(Debug)]
pub struct Results {
    /// The printed format, if it is printed.
    stdout: Option<Format>,
    files: Vec<(PathBuf, Format)>,
    /// The style of printing.
    style: Style,
    /// The characters of files of text.
    in_files: Characters,
}

impl Results {
    /// The output of a run that is about to begin.
    ///
    /// # Errors
    /// As [`Results::from_flags`]; and for a file that cannot be written, before there is anything to lose.
    pub fn writable(args: &Output) -> Result<Self> {
        let results = Self::from_flags(args)?;
        results.files.iter().try_for_each(|(path, _)| files::check_writable(path))?;
        Ok(results)
    }

    /// The output of a finished run. Files are not tested: one that cannot be written does not stop the others.
    ///
    /// # Errors
    /// For a file whose extension belongs to no format.
    pub fn from_flags(args: &Output) -> Result<Self> {
        let mut all = Vec::new();
        for path in &args.outputs {
            let format = Format::of_path(path).map_err(|e| anyhow!("-o: {e}"))?;
            all.push((path.clone(), format));
        }
        all.extend(args.html.iter().map(|path| (path.clone(), Format::Html)));
        let stdout = if args.quiet { args.format } else { Some(args.format.unwrap_or(Format::Text)) };
        let style = Style {
            detail: if args.verbose { Detail::Verbose } else { Detail::Brief },
            wrk_latency: args.latency,
            ..console::stdout_style(args.no_color, args.ascii)
        };
        Ok(Self { stdout, files: all, style, in_files: Characters::ascii(args.ascii) })
    }

    /// Adds the date of the run, which was earlier.
    #[must_use]
    pub fn dated(self) -> Self {
        Self { style: Style { detail: self.style.detail.max(Detail::Dated), ..self.style }, ..self }
    }

    /// Whether the printed format is for people, so that other lines for people may precede it.
    pub fn is_for_people(&self) -> bool {
        self.stdout == Some(Format::Text)
    }

    /// Repeats the headline below a report that is longer than its terminal.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn repeat_headline(&self, summary: &Summary) -> Result<()> {
        if !self.is_for_people() {
            return Ok(());
        }
        let text = brunt_report::render(Format::Text, summary, self.style)?;
        console::repeat_headline(&brunt_report::headline(summary).line, &text)
    }

    /// Writes the result everywhere. A failing destination does not stop the others.
    ///
    /// # Errors
    /// The failed destinations, each in a line.
    pub fn write(&self, summary: &Summary) -> Result<()> {
        let printed =
            self.stdout.map_or(Ok(()), |format| console::print(&brunt_report::render(format, summary, self.style)?));
        let plain = Style { colour: false, detail: Detail::Verbose, characters: self.in_files, ..self.style };
        let written =
            self.files.iter().map(|(path, format)| files::write(path, &brunt_report::render(*format, summary, plain)?));
        all_of(std::iter::once(printed).chain(written))
    }
}

/// All errors of `attempts` in one, after all of them were made.
///
/// # Errors
/// The failed attempts.
pub fn all_of(attempts: impl Iterator<Item = Result<()>>) -> Result<()> {
    let mut problems: Vec<_> = attempts.filter_map(Result::err).collect();
    match problems.len() {
        0 => Ok(()),
        1 => Err(problems.remove(0)),
        _ => {
            let problems: Vec<_> = problems.iter().map(|problem| format!("{problem:#}")).collect();
            Err(anyhow!("{}", problems.join("\nerror: ")))
        }
    }
}
