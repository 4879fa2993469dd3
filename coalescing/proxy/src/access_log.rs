//! The access log: one line of JSON for each request, written by a separate thread.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::config::{AccessLog, LogOutput};
use crate::error::StartError;
use crate::metrics::Metrics;

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
    /// Why the upstream gave no answer. Among requests that shared a failed answer, only the leader's line has it.
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
}

impl Log {
    /// Opens the log, and starts its writing thread, which ends once every clone of this is dropped.
    pub(crate) fn open(log: &AccessLog, metrics: Arc<Metrics>) -> Result<(Self, JoinHandle<()>), StartError> {
        let output: Box<dyn Write + Send> = match &log.output {
            LogOutput::Stdout => Box::new(io::stdout()),
            LogOutput::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                Box::new(file.map_err(|source| StartError::File {
                    path: path.clone(),
                    expected: "a file that can be written to",
                    source,
                })?)
            }
        };
        let (lines, receiver) = sync_channel(ROOM);
        let shown = log.shown;
        let writer = std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write(&receiver, BufWriter::new(output), shown))
            .map_err(StartError::Threads)?;
        Ok((Self { lines, metrics }, writer))
    }

    /// A log whose lines go to this channel.
    #[cfg(test)]
    pub(crate) fn to(lines: SyncSender<Line>, metrics: Arc<Metrics>) -> Self {
        Self { lines, metrics }
    }

    pub(crate) fn write(&self, line: Line) {
        if self.lines.try_send(line).is_err() {
            self.metrics.line_lost();
        }
    }
}

/// Writes lines as they come, and flushes when no more are waiting.
fn write(lines: &Receiver<Line>, mut output: BufWriter<Box<dyn Write + Send>>, shown: fn(&str) -> Cow<'_, str>) {
    while let Ok(first) = lines.recv() {
        let all = std::iter::once(first).chain(lines.try_iter().take(ROOM));
        for line in all {
            // A log that cannot be written (a full disk) must not stop the proxy.
            let _ = writeln!(output, "{}", line.to_json(SystemTime::now(), shown));
        }
        let _ = output.flush();
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
