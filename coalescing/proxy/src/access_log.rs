//! The access log: one line of JSON for each request, written by a separate thread.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::config::{AccessLog, LogOutput};
use crate::error::StartError;
use crate::metrics::Metrics;
use crate::notice::{Notice, Notices};

/// Lines that may wait to be written; more are lost, and counted.
const ROOM: usize = 16 * 1024;

/// The record of one request.
pub(crate) struct Line {
    pub(crate) client: String,
    pub(crate) method: String,
    /// The request's target, as [`AccessLog::shown`] shows it.
    pub(crate) target: String,
    pub(crate) version: &'static str,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) took: Duration,
    /// `leader` or `follower`, if it was coalesced.
    pub(crate) coalesced: Option<&'static str>,
    /// Whether the whole answer was sent.
    pub(crate) whole: bool,
    /// Why the upstream gave no answer, or why the answer was not sent whole. Among requests that shared a failure of the
    /// upstream, only the leader's line has it.
    pub(crate) error: Option<String>,
}

impl Line {
    fn to_json(&self, at: SystemTime, shown: fn(&str) -> Cow<'_, str>) -> String {
        let unix_ms = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        json!({
            "unix_ms": u64::try_from(unix_ms).unwrap_or(u64::MAX),
            "client": self.client,
            "method": self.method,
            "target": shown(&self.target),
            "version": self.version,
            "status": self.status,
            "body_bytes": self.body_bytes,
            "took_us": u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX),
            "coalesced": self.coalesced,
            "whole": self.whole,
            "error": self.error,
        })
        .to_string()
    }
}

/// Where lines are handed over.
#[derive(Clone)]
pub(crate) struct Log {
    lines: SyncSender<Line>,
    metrics: Arc<Metrics>,
    /// Set to open the file again before the next line.
    reopen: Arc<AtomicBool>,
}

impl Log {
    /// Opens the log, and starts its writing thread, which ends once every clone of this is dropped.
    pub(crate) fn open(
        log: &AccessLog,
        metrics: Arc<Metrics>,
        notices: Arc<Notices>,
    ) -> Result<(Self, JoinHandle<()>), StartError> {
        let file = |path: &PathBuf| {
            open(path).map_err(|source| StartError::File {
                path: path.clone(),
                expected: "a file that can be written to",
                source,
            })
        };
        let output: Box<dyn Write + Send> = match &log.output {
            LogOutput::Stdout => Box::new(io::stdout()),
            LogOutput::File(path) => Box::new(file(path)?),
        };
        let (lines, receiver) = sync_channel(ROOM);
        let reopen = Arc::new(AtomicBool::new(false));
        let mut writer = Writer {
            output,
            to: log.output.clone(),
            shown: log.shown,
            metrics: Arc::clone(&metrics),
            notices,
            reopen: Arc::clone(&reopen),
            fails: false,
        };
        let thread = std::thread::Builder::new().name("access-log".to_owned());
        let thread = thread.spawn(move || writer.write_all(&receiver)).map_err(StartError::Threads)?;
        Ok((Self { lines, metrics, reopen }, thread))
    }

    /// Is set to have the file opened again.
    pub(crate) fn reopen(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.reopen)
    }

    /// A log whose lines go to this channel.
    #[cfg(test)]
    pub(crate) fn to(lines: SyncSender<Line>, metrics: Arc<Metrics>) -> Self {
        Self { lines, metrics, reopen: Arc::default() }
    }

    pub(crate) fn write(&self, line: Line) {
        if self.lines.try_send(line).is_err() {
            self.metrics.lines_lost(1);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Writes the log.
struct Writer {
    output: Box<dyn Write + Send>,
    to: LogOutput,
    shown: fn(&str) -> Cow<'_, str>,
    metrics: Arc<Metrics>,
    notices: Arc<Notices>,
    reopen: Arc<AtomicBool>,
    /// Whether the last lines could not be written.
    fails: bool,
}

impl Writer {
    /// Writes lines as they come, those together that wait together.
    fn write_all(&mut self, lines: &Receiver<Line>) {
        while let Ok(first) = lines.recv() {
            let (mut text, mut count) = (String::new(), 0);
            for line in std::iter::once(first).chain(lines.try_iter().take(ROOM)) {
                text.push_str(&line.to_json(SystemTime::now(), self.shown));
                text.push('\n');
                count += 1;
            }
            if self.reopen.swap(false, Ordering::AcqRel) {
                self.open_again();
            }
            // A log that cannot be written (a full disk) must not stop the proxy.
            match self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush()) {
                Ok(()) => self.fails = false,
                Err(error) => {
                    self.metrics.lines_lost(count);
                    if !std::mem::replace(&mut self.fails, true) {
                        self.notices.tell(&Notice::LogFailed { error: error.to_string() });
                    }
                }
            }
        }
    }

    fn open_again(&mut self) {
        let LogOutput::File(path) = &self.to else { return };
        match open(path) {
            Ok(file) => self.output = Box::new(file),
            Err(error) => self.notices.tell(&Notice::LogNotReopened { error: error.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_query(target: &str) -> Cow<'_, str> {
        target.split('?').next().unwrap_or_default().into()
    }

    #[test]
    fn a_line_is_one_line_whatever_is_asked_for_and_shows_what_may_be_shown() {
        let line = Line {
            client: "127.0.0.1:1".to_owned(),
            method: "GET".to_owned(),
            target: "/\"\n?secret".to_owned(),
            version: "HTTP/1.1",
            status: 200,
            body_bytes: 5,
            took: Duration::from_micros(7),
            coalesced: Some("leader"),
            whole: true,
            error: None,
        };
        let text = line.to_json(UNIX_EPOCH + Duration::from_millis(3), without_query);
        assert!(!text.contains('\n'));
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&read["unix_ms"], &read["target"], &read["took_us"]), (&json!(3), &json!("/\"\n"), &json!(7)));
    }
}
