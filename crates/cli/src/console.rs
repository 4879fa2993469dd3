//! Standard output and standard error: written whole, without a panic, whoever has stopped reading.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};

use anyhow::{Context as _, Result};
use brunt_report::{Characters, Style};

use crate::exit::Exit;
use crate::wording::{self, Settings};

/// Standard output, once it is set apart for results.
static APART: OnceLock<File> = OnceLock::new();

/// Sets standard output apart for a result that a program reads: what scripts print from now on, by whatever function, goes to
/// standard error. Best effort: without it, that stands before the result.
pub fn set_output_apart() {
    if let Ok(before) = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)
        && rustix::stdio::dup2_stdout(io::stderr()).is_ok()
    {
        let _ = APART.set(before.into());
    }
}

/// Writes to standard output. A reader that stops early is not an error.
///
/// # Errors
/// When it cannot be written for another reason, such as a full disk.
pub fn print(bytes: &[u8]) -> Result<()> {
    let written = if let Some(mut apart) = APART.get() {
        apart.write_all(bytes)
    } else {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    };
    match written {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(e).context("cannot write to standard output"),
        _ => Ok(()),
    }
}

/// The most notes held back.
const MOST_NOTES: usize = 100;

/// Notes held back while a live view has the terminal; `None` otherwise.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Writes to standard error, if that is possible; later, while notes are held back.
pub fn note(text: &str) {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    match held.as_mut() {
        Some(notes) if notes.len() < MOST_NOTES => notes.push(text.to_owned()),
        Some(_) => {}
        None => drop(writeln!(io::stderr().lock(), "{}", printable(text))),
    }
}

/// Lines that move no cursor: names and texts of scripts, agents and targets may have any character.
pub fn printable(text: &str) -> Cow<'_, str> {
    let moves = |c: char| !matches!(c, '\n' | '\t');
    if !text.contains(|c: char| c.is_control() && moves(c)) {
        return Cow::Borrowed(text);
    }
    // Cleaned piece by piece, with what separates them.
    let pieces = text.split_inclusive(['\n', '\t']).map(|piece| match piece.strip_suffix(['\n', '\t']) {
        Some(inner) => format!("{}{}", brunt_report::clean(inner), piece.get(inner.len()..).unwrap_or_default()),
        None => brunt_report::clean(piece).into_owned(),
    });
    Cow::Owned(pieces.collect())
}

/// Holds notes back until they are [released](release_notes).
pub fn hold_notes() {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Writes the notes that were held. Best effort in a panic of whoever holds the lock.
pub fn release_notes() {
    let notes = match HELD.try_lock() {
        Ok(mut held) => held.take(),
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
        Err(TryLockError::WouldBlock) => None,
    };
    for note in notes.into_iter().flatten() {
        let _ = writeln!(io::stderr().lock(), "{}", printable(&note));
    }
}

/// The style of a report on standard output.
pub fn stdout_style(no_color: bool, ascii: bool) -> Style {
    let characters = characters(ascii, stdout_is_terminal());
    Style { colour: stdout_colour(no_color), characters, ..Style::default() }
}

/// The style of output about a run on standard error.
pub fn stderr_style(no_color: bool, ascii: bool) -> Style {
    let colour = colour_wanted(no_color) && stderr_redraws();
    Style { colour, characters: characters(ascii, io::stderr().is_terminal()), ..Style::default() }
}

/// ASCII if the flag asks for it, or on a terminal whose locale has no UTF-8.
fn characters(ascii: bool, is_terminal: bool) -> Characters {
    Characters::ascii(ascii || is_terminal && !is_utf_8(|name| std::env::var(name).ok()))
}

/// Whether a locale has UTF-8, by the first variable that is set (POSIX.1-2017 §8.2). Without any, UTF-8 is assumed.
fn is_utf_8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Reports an error. `settings` is where the run's settings are written.
pub fn complain(error: &anyhow::Error, settings: Settings) {
    note(&format!("error: {}", wording::render_error(error, settings)));
}

/// Prints clap's message: help and version on standard output, errors on standard error.
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
    colour_wanted(no_color) && stdout_is_terminal() && !is_dumb()
}

/// Whether results are printed on a terminal.
pub fn stdout_is_terminal() -> bool {
    APART.get().map_or_else(|| io::stdout().is_terminal(), File::is_terminal)
}

/// Whether standard error is a terminal on which something can be redrawn.
pub fn stderr_redraws() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// Columns and lines of the terminal on standard error; of a classic terminal where they are unknown.
pub fn stderr_size() -> (u16, u16) {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}

/// Columns of the terminal on standard output; of a classic terminal where they are unknown.
pub fn stdout_width() -> usize {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => 80,
    }
}

/// Repeats `headline` where `text` has just scrolled its own off a terminal as standard output.
///
/// # Errors
/// As [`print`].
pub fn repeat_headline(headline: &str, text: &[u8]) -> Result<()> {
    if !stdout_is_terminal() {
        return Ok(());
    }
    let Ok(size) = rustix::termios::tcgetwinsize(io::stdout()) else { return Ok(()) };
    let lines = text.split(|byte| *byte == b'\n').count() - 1;
    // The prompt takes one more.
    if size.ws_row == 0 || lines < size.ws_row.into() {
        return Ok(());
    }
    print(format!("\n{headline}\n").as_bytes())
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scripts_and_targets_say_moves_no_cursor() {
        assert_eq!(printable("plain\n\ttext"), "plain\n\ttext");
        assert_eq!(printable("a\u{1b}[2Jb\tc\u{7}\nd"), "a\\u{1b}[2Jb\tc\\u{7}\nd");
    }

    #[test]
    fn the_first_variable_that_is_set_names_the_locale() {
        for (set, expected) in [
            (&[][..], true),
            (&[("LANG", "C")], false),
            (&[("LANG", "")], true),
            (&[("LANG", "en_GB.UTF-8")], true),
            (&[("LANG", "C.utf8")], true),
            (&[("LANG", "de_DE.ISO-8859-1")], false),
            (&[("LC_ALL", "POSIX"), ("LANG", "en_GB.UTF-8")], false),
            (&[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")], true),
        ] {
            let variable = |name: &str| set.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(is_utf_8(variable), expected, "{set:?}");
        }
    }
}
