//! Where a run's result goes: standard output in one format, and files, each in that of its extension.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use brunt_model::summary::Summary;
use brunt_report::{Format, Style};

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
}

impl Results {
    /// What the flags ask for.
    ///
    /// # Errors
    /// A file that cannot be written, or a page that this brunt has not got, before there is anything to lose.
    pub fn of(args: &Output) -> Result<Self> {
        if args.latency && args.format != Some(Format::Wrk) {
            bail!("--latency belongs to --format wrk; the other formats have the latency distribution anyway");
        }
        let mut all = Vec::new();
        for path in &args.outputs {
            let format = Format::of_path(path).map_err(|e| anyhow!("-o: {e}"))?;
            all.push((path.clone(), format));
        }
        all.extend(args.html.iter().map(|path| (path.clone(), Format::Html)));
        if args.format == Some(Format::Html) || all.iter().any(|(_, format)| *format == Format::Html) {
            brunt_report::html::check()?;
        }
        for (path, _) in &all {
            files::check_writable(path)?;
        }
        let stdout = if args.quiet { args.format } else { Some(args.format.unwrap_or(Format::Text)) };
        let style =
            Style { colour: console::stdout_colour(args.no_color), verbose: args.verbose, wrk_latency: args.latency };
        Ok(Self { stdout, files: all, style })
    }

    /// Whether what is printed is for people, so that lines for people may go before it.
    pub fn is_for_people(&self) -> bool {
        self.stdout == Some(Format::Text)
    }

    /// Writes the result everywhere; where one place fails, into the others all the same.
    ///
    /// # Errors
    /// The first place that failed.
    pub fn write(&self, summary: &Summary) -> Result<()> {
        let printed =
            self.stdout.map_or(Ok(()), |format| console::print(&brunt_report::render(format, summary, self.style)?));
        let plain = Style { colour: false, verbose: true, ..self.style };
        let written =
            self.files.iter().map(|(path, format)| files::write(path, &brunt_report::render(*format, summary, plain)?));
        let written: Vec<_> = written.collect();
        std::iter::once(printed).chain(written).collect()
    }
}
