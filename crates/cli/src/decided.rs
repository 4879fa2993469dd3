//! Where what was decided over several runs goes: standard output in one format, and files, each in that of its
//! extension.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use brunt_report::Style;
use brunt_report::decision::{Decision, Format, render};

use crate::args::words::Shown;
use crate::{console, files};

/// Where a decision goes.
#[derive(Debug)]
pub struct Decided {
    stdout: Option<Format>,
    files: Vec<(PathBuf, Format)>,
    style: Style,
}

impl Decided {
    /// What the flags ask for.
    ///
    /// # Errors
    /// A file that cannot be written, before there is anything to lose.
    pub fn of(shown: &Shown) -> Result<Self> {
        let mut all = Vec::new();
        for path in &shown.outputs {
            let format = Format::of_path(path).map_err(|e| anyhow!("-o: {e}"))?;
            files::check_writable(path)?;
            all.push((path.clone(), format));
        }
        let stdout = if shown.quiet { shown.format } else { Some(shown.format.unwrap_or(Format::Text)) };
        let style = Style { colour: console::stdout_colour(shown.no_color), ..Style::default() };
        Ok(Self { stdout, files: all, style })
    }

    /// Whether what is printed is for people.
    pub fn is_for_people(&self) -> bool {
        self.stdout == Some(Format::Text)
    }

    /// Writes the decision everywhere; where one place fails, into the others all the same.
    ///
    /// # Errors
    /// The first place that failed.
    pub fn write(&self, decision: Decision<'_>) -> Result<()> {
        let printed = self.stdout.map_or(Ok(()), |format| console::print(&render(format, decision, self.style)?));
        let plain = Style::default();
        let written: Vec<_> =
            self.files.iter().map(|(path, format)| files::write(path, &render(*format, decision, plain)?)).collect();
        std::iter::once(printed).chain(written).collect()
    }
}
