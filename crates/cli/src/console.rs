//! Standard output and standard error: written whole, without a panic, whoever has stopped reading.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::exit::Exit;
use crate::wording::{self, Settings};

/// Writes to standard output. A reader that has seen enough is no error.
///
/// # Errors
/// When it cannot be written for another reason, such as a full disk.
pub fn print(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(e).context("cannot write to standard output"),
        _ => Ok(()),
    }
}

/// Writes to standard error, if that is possible.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says what went wrong, where the settings of the run are written in `settings`.
pub fn complain(error: &anyhow::Error, settings: Settings) {
    note(&format!("error: {}", wording::told(error, settings)));
}

/// What clap has to say: help and version on standard output, errors on standard error.
pub fn usage(error: &clap::Error) -> ExitCode {
    match error.print() {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Exit::Wrong,
        _ if error.use_stderr() => Exit::Wrong,
        _ => Exit::Done,
    }
    .into()
}

/// Whether the user wants colours at all (<https://no-color.org>).
fn colour_wanted(no_color: bool) -> bool {
    !no_color && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether a report on standard output is coloured.
pub fn stdout_colour(no_color: bool) -> bool {
    colour_wanted(no_color) && io::stdout().is_terminal() && !is_dumb()
}

/// Whether what is shown of a run on standard error is coloured.
pub fn stderr_colour(no_color: bool) -> bool {
    colour_wanted(no_color) && stderr_redraws()
}

/// Whether standard error is a terminal on which something can be redrawn.
pub fn stderr_redraws() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// Columns and lines of the terminal on standard error; those of a classic one where they cannot be had.
pub fn stderr_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

/// Columns of the terminal on standard output, or as many as a classic one has.
pub fn stdout_width() -> usize {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => 80,
    }
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}
