//! Where a run's result goes: standard output in one format, and files, each in that of its extension.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use brunt_judge::summary::Summary;
use brunt_report::{Characters, Detail, Format, Style};

use crate::args::Output;
use crate::{console, files};

/// Where a result goes.
#[derive(Debug)]
pub struct Results {
    /// In which format it is printed, if it is.
    stdout: Option<Format>,
    files: Vec<(PathBuf, Format)>,
    /// How it is printed.
    style: Style,
    /// The characters of files of text.
    in_files: Characters,
}

impl Results {
    /// Where the result of a run that is about to begin goes.
    ///
    /// # Errors
    /// As [`Results::from_flags`]; and a file that cannot be written, before there is anything to lose.
    pub fn writable(args: &Output) -> Result<Self> {
        let results = Self::from_flags(args)?;
        results.files.iter().try_for_each(|(path, _)| files::check_writable(path))?;
        Ok(results)
    }

    /// Where the result of a run that is over goes. Files are not tried out: one that cannot be written does not cost
    /// the others.
    ///
    /// # Errors
    /// A file whose extension no format has.
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
            no_histograms: args.no_histograms,
            ..console::stdout_style(args.no_color, args.ascii)
        };
        Ok(Self { stdout, files: all, style, in_files: Characters::ascii(args.ascii) })
    }

    /// The same with when the run began: it was before now.
    #[must_use]
    pub fn dated(self) -> Self {
        Self { style: Style { detail: self.style.detail.max(Detail::Dated), ..self.style }, ..self }
    }

    /// Whether what is printed is for people, so that lines for people may go before it.
    pub fn is_for_people(&self) -> bool {
        self.stdout == Some(Format::Text)
    }

    /// Writes the result everywhere; where one place fails, into the others all the same.
    ///
    /// # Errors
    /// The places that failed, each in a line.
    pub fn write(&self, summary: &Summary) -> Result<()> {
        let printed =
            self.stdout.map_or(Ok(()), |format| console::print(&brunt_report::render(format, summary, self.style)?));
        let plain = Style { colour: false, detail: Detail::Verbose, characters: self.in_files, ..self.style };
        let written =
            self.files.iter().map(|(path, format)| files::write(path, &brunt_report::render(*format, summary, plain)?));
        all_of(std::iter::once(printed).chain(written))
    }
}

/// Every error of `attempts` in one, after all of them were made.
///
/// # Errors
/// What failed.
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
