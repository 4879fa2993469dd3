//! A log that a thread reads ahead for the workers of a replay.

use std::io::{self, BufReader, Cursor, Read as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use brunt_protocol::plan::share::Portion;

use crate::config::ReplayConfig;
use crate::format::{Format, Parser, SAMPLE_BYTES, TemplateError};
use crate::input::{self, Bytes};
use crate::listing::Listing;
use crate::progress::{self, Course};
use crate::reader::{Part, Reader};
use crate::watch::{Tally, Watch};
use crate::worker::WorkerLog;

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log cannot be opened.
    #[error("cannot read the log {path}")]
    Open {
        /// The path of the log.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The format was not recognised.
    #[error("{path}: the format is not one of those that are known by their lines")]
    Unknown {
        /// The path of the log.
        path: String,
    },
    /// The log is empty.
    #[error("{path}: the log is empty")]
    Empty {
        /// The path of the log.
        path: String,
    },
    /// Archives are read one at a time.
    #[error("an HTTP archive is replayed by itself: give one file")]
    OneArchive,
    /// The template cannot be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// An open log of a known format.
pub struct Log {
    config: ReplayConfig,
    format: Format,
    bytes: Bytes,
    watch: Watch,
}

impl Log {
    /// Opens a log and recognises its format.
    ///
    /// # Errors
    /// When it cannot be read, or its format is not recognised.
    pub fn open(config: ReplayConfig) -> Result<Self, LogError> {
        let path = || config.path.display().to_string();
        let failed = |source| LogError::Open { path: path(), source };
        let (bytes, position) = input::open(&config.path, config.bytes).map_err(failed)?;
        let (sample, bytes) = sample(bytes).map_err(failed)?;
        if sample.iter().all(u8::is_ascii_whitespace) {
            return Err(LogError::Empty { path: path() });
        }
        let given = config.format.or(config.options.template.as_ref().map(|_| Format::Template));
        // Names of fields say nothing about the other properties of a format.
        let by_fields = || {
            config
                .options
                .fields
                .as_ref()
                .map(|_| if sample.trim_ascii_start().starts_with(b"{") { Format::Ndjson } else { Format::Csv })
        };
        let format = given.or_else(by_fields).or_else(|| Format::recognise(&sample));
        let format = format.ok_or_else(|| LogError::Unknown { path: path() })?;
        Parser::new(format, config.options.clone())?;
        if format == Format::Har && !config.more.is_empty() {
            return Err(LogError::OneArchive);
        }
        let (bytes, position) =
            if config.more.is_empty() { (bytes, position) } else { config.open(format).map_err(failed)? };
        let all = std::iter::once(&config.path).chain(&config.more);
        let last = all.map(|path| progress::last_time(path, format, &config.options)).max().flatten();
        let tally = Tally { course: Course { last, ..Course::default() }, ..Tally::default() };
        let (speed, repeats) = (config.scaling.speed, config.repeats);
        let (tally, sessions, against) = (Arc::new(Mutex::new(tally)), Arc::default(), Arc::default());
        let watch = Watch { tally, sessions, against, position, speed, repeats };
        Ok(Self { config, format, bytes, watch })
    }

    /// The format, given or recognised.
    pub fn format(&self) -> Format {
        self.format
    }

    /// A watch over the reading of the log.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Starts a thread that reads the log ahead for the workers of a portion. One worker has all calls of a session:
    /// each session has a number that depends on its name alone, and worker `i` of `n` has those whose number modulo
    /// `n` is `i`. Calls without a session are dealt out one by one, in the log's order.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin(self, portion: Portion) -> io::Result<Vec<WorkerLog>> {
        let (parts, received): (Vec<_>, Vec<_>) = (0..portion.workers()).map(|_| Part::new()).unzip();
        let (against, trace) = (Arc::clone(&self.watch.against), self.config.trace);
        let logged_is_ok = self.config.logged_is_ok;
        self.read(portion, parts)?;
        let logs = received.into_iter().map(|received| {
            WorkerLog::new(received, Arc::clone(&against)).tracing(trace).accepting_logged(logged_is_ok)
        });
        Ok(logs.collect())
    }

    /// Starts a thread that reads the log ahead, for an account of all calls.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn list(self) -> io::Result<Listing> {
        let (part, received) = Part::new();
        self.read(Portion::whole(1), vec![part])?;
        Ok(Listing::new(received))
    }

    fn read(self, portion: Portion, parts: Vec<Part>) -> io::Result<()> {
        let Self { config, format, bytes, watch } = self;
        let tally = watch.tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reader = Reader::new(config, format, portion, parts, watch, tally);
        thread::Builder::new().name("log-reader".to_owned()).spawn(move || reader.run(bytes)).map(drop)
    }
}

/// A reader that returns the error by which the beginning of a log ended.
struct Broken {
    kind: io::ErrorKind,
    reason: String,
}

impl io::Read for Broken {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::new(self.kind, self.reason.clone()))
    }
}

/// The beginning of a log. The returned bytes begin with it again.
fn sample(mut bytes: Bytes) -> io::Result<(Vec<u8>, Bytes)> {
    let mut sample = Vec::new();
    while sample.len() < SAMPLE_BYTES {
        let mut part = vec![0; SAMPLE_BYTES];
        let read = match bytes.read(&mut part) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The bytes before the error may tell the format. The error comes up again for whoever reads on: an
            // unpacker that is asked again may report the end instead.
            Err(error) if !sample.is_empty() => {
                let broken = Broken { kind: error.kind(), reason: error.to_string() };
                let whole = BufReader::new(Cursor::new(sample.clone()).chain(broken));
                return Ok((sample, Box::new(whole)));
            }
            Err(error) => return Err(error),
        };
        sample.extend_from_slice(part.get(..read).unwrap_or_default());
        if read == 0 {
            break;
        }
    }
    let whole = BufReader::new(Cursor::new(sample.clone()).chain(bytes));
    Ok((sample, Box::new(whole)))
}

/// The names of the formats that can be chosen.
pub fn format_names() -> Vec<&'static str> {
    Format::ALL.into_iter().map(Format::name).collect()
}
