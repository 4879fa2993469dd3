//! What the server did, counted, and written down request by request.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of requests for tokens and of tokens, which others may read meanwhile.
#[derive(Debug, Default)]
pub struct Totals {
    taken_on: AtomicU64,
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    output_tokens: AtomicU64,
    refused: AtomicU64,
    wrong: AtomicU64,
    errors: AtomicU64,
    cut: AtomicU64,
    left: AtomicU64,
}

/// How a request for tokens ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// All was told, with this finish reason.
    Finished(&'static str),
    Error,
    Cut,
    /// The client went away.
    Left,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Finished(reason) => reason,
            Self::Error => "error",
            Self::Cut => "cut",
            Self::Left => "left",
        }
    }
}

impl Totals {
    pub(super) fn take_on(&self, prompt: u64, cached: u64) {
        add(&self.taken_on, 1);
        add(&self.prompt_tokens, prompt);
        add(&self.cached_tokens, cached);
    }

    pub(super) fn refuse(&self, status: u16) {
        add(if matches!(status, 429 | 503 | 529) { &self.refused } else { &self.wrong }, 1);
    }

    pub(super) fn tell(&self, tokens: u64) {
        add(&self.output_tokens, tokens);
    }

    pub(super) fn end(&self, end: End) {
        match end {
            End::Finished(_) => {}
            End::Error => add(&self.errors, 1),
            End::Cut => add(&self.cut, 1),
            End::Left => add(&self.left, 1),
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl fmt::Display for Totals {
    /// A sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (taken_on, prompt, output) = (get(&self.taken_on), get(&self.prompt_tokens), get(&self.output_tokens));
        write!(f, "{taken_on} requests for tokens: {prompt} prompt tokens ({} cached), ", get(&self.cached_tokens))?;
        write!(f, "{output} output tokens")?;
        let rest = [
            (&self.refused, "refused"),
            (&self.wrong, "wrong"),
            (&self.errors, "ended by an error"),
            (&self.cut, "cut"),
            (&self.left, "left by their clients"),
        ];
        for (counter, name) in rest {
            match get(counter) {
                0 => {}
                count => write!(f, "; {count} {name}")?,
            }
        }
        Ok(())
    }
}

/// A file with a line of JSON for each request for tokens that has ended.
#[derive(Debug)]
pub(super) struct Log(File);

/// A file with a line for each event with tokens: `REQUEST,NANOSECONDS,TOKENS`, by the monotonic clock.
#[derive(Debug)]
pub(super) struct MessageLog(BufWriter<File>);

impl MessageLog {
    /// Creates the log in this file, and overwrites it.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(|file| Self(BufWriter::new(file)))
    }

    /// Writes down an event of this request, which has so many tokens.
    pub(super) fn write(&mut self, id: u64, sent: u64, tokens: u64) {
        // As for the other log.
        let _ = writeln!(self.0, "{id},{sent},{tokens}");
    }

    /// Everything up to now is to be in the file.
    pub(super) fn flush(&mut self) {
        let _ = self.0.flush();
    }
}

/// A line of the log. Times are nanoseconds of the monotonic clock.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) id: u64,
    pub(super) path: &'a str,
    pub(super) end: End,
    pub(super) prompt: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
    pub(super) received: u64,
    pub(super) started: Option<u64>,
    /// When the first and the last of the sent tokens were.
    pub(super) sent: Option<(u64, u64)>,
}

impl Log {
    /// Creates the log in this file, and overwrites it.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    pub(super) fn write(&mut self, line: &Line<'_>) {
        let number = |time: Option<u64>| time.map_or("null".to_owned(), |time| time.to_string());
        let Line { id, path, prompt, cached, output, received, .. } = *line;
        let (end, started) = (line.end.name(), number(line.started));
        let [first, last] = [line.sent.map(|(first, _)| first), line.sent.map(|(_, last)| last)].map(number);
        let text = format!(
            "{{\"id\":{id},\"path\":\"{path}\",\"end\":\"{end}\",\"prompt_tokens\":{prompt},\"cached_tokens\":{cached},\
             \"output_tokens\":{output},\"received_ns\":{received},\"started_ns\":{started},\"first_sent_ns\":{first},\
             \"last_sent_ns\":{last}}}\n"
        );
        // A log that cannot be written is incomplete, which its reader notices.
        let _ = self.0.write_all(text.as_bytes());
    }
}
