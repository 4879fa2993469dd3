//! A log that is read ahead by a thread of its own, for the workers of a replay.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::io::{self, BufReader, Cursor, Read as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use brunt_protocol::plan::random::NumberHasher;
use brunt_protocol::record::live::InLog;
use brunt_protocol::record::replayed::Replayed;
use brunt_protocol::replay::LoggedCall;

use crate::against::Against;
use crate::entry::{Entry, Skip, Skips, Stamp};
use crate::format::{Format, Options, Parser, SAMPLE_BYTES, TemplateError, har};
use crate::input::{self, Bytes, Lines};
use crate::order::Sorter;
use crate::position::Position;
use crate::progress::{self, Course};
use crate::request::{Composer, Request};
use crate::schedule::{Due, Scaling, Schedule};
use crate::select::{Selection, is_safe};
use crate::worker::{Item, Read, WorkerLog};

/// How many requests go to a worker at once, and how many bytes of them.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 256 << 10;
/// How many times that the reader may be ahead of a worker.
const BATCHES_AHEAD: usize = 64;
/// The most sessions that are counted one by one.
const MOST_SESSIONS: usize = 1 << 20;

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be opened.
    #[error("cannot read the log {path}")]
    Open {
        /// Its file.
        path: String,
        /// The system's words.
        source: io::Error,
    },
    /// Nobody knows its format.
    #[error("{path}: the format is not one of those that are known by their lines")]
    Unknown {
        /// Its file.
        path: String,
    },
    /// It holds nothing.
    #[error("{path}: the log is empty")]
    Empty {
        /// Its file.
        path: String,
    },
    /// The template cannot be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// What is replayed, and how.
pub struct Config {
    /// The log's file; `-` is standard input.
    pub path: PathBuf,
    /// Its format, if it was given.
    pub format: Option<Format>,
    /// What reading takes besides.
    pub options: Options,
    /// What of it is replayed.
    pub selection: Selection,
    /// How it is scaled.
    pub scaling: Scaling,
    /// Within how many nanoseconds lines are sorted.
    pub sort_ns: u64,
    /// Whether it begins anew at its end.
    pub repeats: bool,
    /// Requests a second of a list of targets, which has no times.
    pub rate: Option<f64>,
    /// Fields that all requests have, in place of the log's.
    pub headers: Vec<(String, String)>,
}

/// What was read so far.
#[derive(Debug, Default, Clone)]
struct Tally {
    lines: u64,
    skips: Skips,
    without_body: u64,
    sessions: u64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    course: Course,
}

/// A log that was opened, and whose format is known.
pub struct Log {
    config: Config,
    format: Format,
    bytes: Bytes,
    watch: Watch,
}

/// Sees what came of a log.
#[derive(Clone)]
pub struct Watch {
    tally: Arc<Mutex<Tally>>,
    against: Arc<Mutex<Against>>,
    position: Position,
    speed: f64,
    repeats: bool,
}

impl Watch {
    /// How far a replay is that has gone on for so many nanoseconds.
    pub fn in_log(&self, elapsed_ns: u64) -> InLog {
        let course = self.tally.lock().unwrap_or_else(PoisonError::into_inner).course;
        course.at(elapsed_ns, self.speed, self.repeats, &self.position)
    }

    /// What was replayed, beside what the log had. Called when the workers are done.
    pub fn replayed(&self) -> Replayed {
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, templates) = self.against.lock().unwrap_or_else(PoisonError::into_inner).told();
        Replayed {
            lines: tally.lines,
            requests: all.calls,
            skipped: tally.skips.found().map(|(skip, count)| (skip.name().to_owned(), count)).collect(),
            without_body: tally.without_body,
            sessions: tally.sessions,
            first_unix_ms: tally.first_ns.map(|ns| ns.div_euclid(1_000_000)),
            last_unix_ms: tally.last_ns.map(|ns| ns.div_euclid(1_000_000)),
            all,
            templates,
            conditions: Vec::new(),
        }
    }
}

impl Log {
    /// Opens a log and recognises its format.
    ///
    /// # Errors
    /// When it cannot be read, or its format is not known.
    pub fn open(config: Config) -> Result<Self, LogError> {
        let path = || config.path.display().to_string();
        let failed = |source| LogError::Open { path: path(), source };
        let (bytes, position) = input::open(&config.path).map_err(failed)?;
        let (sample, bytes) = sample(bytes).map_err(failed)?;
        if sample.iter().all(u8::is_ascii_whitespace) {
            return Err(LogError::Empty { path: path() });
        }
        let given = config.format.or(config.options.template.as_ref().map(|_| Format::Template));
        // What fields are called says nothing of the rest.
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
        let last = progress::last_time(&config.path, format, &config.options);
        let tally = Tally { course: Course { last, ..Course::default() }, ..Tally::default() };
        let (speed, repeats) = (config.scaling.speed, config.repeats);
        let watch = Watch { tally: Arc::new(Mutex::new(tally)), against: Arc::default(), position, speed, repeats };
        Ok(Self { config, format, bytes, watch })
    }

    /// The format, as it was given or recognised.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Sees how far it is read.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Reads it ahead in a thread of its own, for so many workers.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin(self, workers: usize) -> io::Result<Vec<WorkerLog>> {
        let mut parts = Vec::new();
        let mut logs = Vec::new();
        for _ in 0..workers {
            let (sender, receiver): (SyncSender<Read>, Receiver<Read>) = sync_channel(BATCHES_AHEAD);
            parts.push(Part { sender, items: Vec::with_capacity(BATCH), bytes: 0 });
            logs.push(WorkerLog::new(receiver, Arc::clone(&self.watch.against)));
        }
        let Self { config, format, bytes, watch } = self;
        let composer = Composer::new(&config.selection.target, config.headers.clone());
        let tally = watch.tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reader = Reader {
            sorter: Sorter::new(config.sort_ns),
            schedule: Schedule::new(config.scaling),
            skips: Skips::default(),
            tally,
            sessions: HashSet::default(),
            number: 0,
            targets: 0,
            composer,
            config,
            format,
            parts,
            watch,
        };
        thread::Builder::new().name("log-reader".to_owned()).spawn(move || reader.run(bytes))?;
        Ok(logs)
    }
}

/// The beginning of a log, which is read again from what comes back.
fn sample(mut bytes: Bytes) -> io::Result<(Vec<u8>, Bytes)> {
    let mut sample = Vec::new();
    while sample.len() < SAMPLE_BYTES {
        let mut part = vec![0; SAMPLE_BYTES];
        let read = match bytes.read(&mut part) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // What was read before it may be enough; reading on says it again.
            Err(_) if !sample.is_empty() => break,
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

/// A worker, as the reader sees it.
struct Part {
    sender: SyncSender<Read>,
    items: Vec<Item>,
    bytes: usize,
}

/// Nobody listens any more: the run is over.
struct NobodyListens;

/// Why reading ends.
enum End {
    Nobody,
    Failed(String),
}

impl From<NobodyListens> for End {
    fn from(_: NobodyListens) -> Self {
        Self::Nobody
    }
}

/// Reads a log.
struct Reader {
    config: Config,
    format: Format,
    sorter: Sorter,
    schedule: Schedule<Arc<Request>>,
    composer: Composer,
    skips: Skips,
    tally: Tally,
    sessions: HashSet<u64, BuildHasherDefault<NumberHasher>>,
    number: u64,
    /// How many targets without a time were read.
    targets: u64,
    parts: Vec<Part>,
    watch: Watch,
}

impl Reader {
    fn run(mut self, bytes: Bytes) {
        let end = self.read_all(bytes);
        self.tell();
        for part in &mut self.parts {
            let _ = part.flush();
            let _ = part.sender.send(match &end {
                Err(End::Failed(reason)) => Read::Failed(reason.clone()),
                Ok(()) | Err(End::Nobody) => Read::Over,
            });
        }
    }

    fn read_all(&mut self, first: Bytes) -> Result<(), End> {
        let mut bytes = first;
        loop {
            let before = self.number;
            self.pass(bytes)?;
            self.sorter.finish(&mut self.skips);
            self.schedule_sorted()?;
            // A log of which nothing is replayed would begin anew for ever.
            let repeats = self.config.repeats
                && self.config.path.as_os_str() != "-"
                && (self.number > before || self.schedule.has_waiting());
            self.schedule.end_pass(repeats);
            let course = &mut self.tally.course;
            if repeats {
                course.pass_ns.get_or_insert(self.schedule.before_ns());
            } else {
                course.end_ns = Some(self.schedule.last_ns());
                // What is handed out waits for the workers.
                self.tell();
            }
            self.hand_out()?;
            if !repeats {
                return Ok(());
            }
            self.sorter = Sorter::new(self.config.sort_ns);
            bytes = input::open(&self.config.path).map_err(|error| self.broken(&error))?.0;
        }
    }

    fn broken(&self, error: &io::Error) -> End {
        End::Failed(format!("cannot read the log {} on: {error}", self.config.path.display()))
    }

    /// Reads the log once.
    fn pass(&mut self, bytes: Bytes) -> Result<(), End> {
        if self.format == Format::Har {
            return self.archive(bytes);
        }
        let mut parser =
            Parser::new(self.format, self.config.options.clone()).map_err(|error| End::Failed(error.to_string()))?;
        let mut lines = Lines::new(bytes);
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.broken(&error)),
            };
            let read = match parser.line(line) {
                Ok(None) => continue,
                Ok(Some(entry)) => Ok(entry),
                Err(skip) => Err(skip),
            };
            if !self.take(read)? {
                return Ok(());
            }
        }
    }

    /// Reads an archive, which is one value.
    fn archive(&mut self, bytes: Bytes) -> Result<(), End> {
        let mut whole = Vec::new();
        bytes.take(har::MOST_BYTES + 1).read_to_end(&mut whole).map_err(|error| self.broken(&error))?;
        if whole.len() as u64 > har::MOST_BYTES {
            return Err(End::Failed("an HTTP archive is read whole, and this one is larger than 256 MiB".to_owned()));
        }
        let entries = har::entries(&whole, &self.config.options)
            .map_err(|error| End::Failed(format!("{}: {error}", self.config.path.display())))?;
        for entry in entries {
            self.take(entry)?;
        }
        Ok(())
    }

    /// Takes what a line holds; false once the log is beyond what is wanted of it.
    fn take(&mut self, read: Result<Entry, Skip>) -> Result<bool, End> {
        self.tally.lines += 1;
        if self.tally.lines.is_multiple_of(1024) {
            self.tell();
        }
        let at = read.as_ref().ok().and_then(|entry| entry.at);
        match read.and_then(|entry| self.with_time(entry)).and_then(|entry| self.config.selection.take(entry)) {
            Ok(entry) => {
                self.sorter.push(entry, &mut self.skips);
                self.schedule_sorted()?;
            }
            Err(skip) => {
                self.skips.add(skip);
                let margin = i64::try_from(self.config.sort_ns).unwrap_or(i64::MAX);
                if skip == Skip::Outside && at.is_some_and(|at| self.config.selection.is_beyond(at, margin)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The entry with a time: of a target, by the rate.
    fn with_time(&mut self, mut entry: Entry) -> Result<Entry, Skip> {
        if entry.at.is_none() {
            let rate = self.config.rate.ok_or(Skip::NoTime)?;
            let ns = (self.targets as f64 / rate * 1e9) as i64;
            self.targets += 1;
            entry.at = Some(Stamp { ns, is_whole: false, offset_s: 0 });
        }
        Ok(entry)
    }

    /// Gives what is sorted a due time, and hands out what is certain.
    fn schedule_sorted(&mut self) -> Result<(), NobodyListens> {
        while let Some(timed) = self.sorter.pop() {
            let request = Arc::new(self.composer.request(&timed.entry));
            if !is_safe(&timed.entry.method) && request.body.is_empty() && timed.entry.method != "DELETE" {
                self.tally.without_body += 1;
            }
            self.tally.last_ns = Some(timed.ns);
            if self.schedule.push(&timed, &request) == 0 {
                self.skips.add(Skip::Sampled);
            }
            self.tally.course.read_ns = self.schedule.last_ns();
            if self.tally.first_ns.is_none() {
                self.tally.first_ns = Some(timed.ns);
                let offset_s = timed.entry.at.map_or(0, |at| at.offset_s);
                let is_timed = self.targets == 0;
                self.tally.course.zero = self.schedule.zero().filter(|_| is_timed).map(|zero| (zero, offset_s));
                self.tally.course.window_end = self.config.selection.window_end();
                self.tell();
            }
            self.hand_out()?;
        }
        Ok(())
    }

    fn hand_out(&mut self) -> Result<(), NobodyListens> {
        while let Some(Due { ns, session, what: request }) = self.schedule.pop() {
            let number = self.number;
            self.number += 1;
            if let Some(session) = session
                && self.sessions.len() < MOST_SESSIONS
            {
                self.sessions.insert(session);
            }
            let logged_ns = (request.duration_ns.unwrap_or(0) as f64 / self.config.scaling.speed) as u64;
            let place = (session.unwrap_or(number) % self.parts.len().max(1) as u64) as usize;
            let Some(part) = self.parts.get_mut(place) else { return Err(NobodyListens) };
            part.bytes += request.weight();
            part.items.push(Item { call: LoggedCall { number, due_ns: ns, session, logged_ns }, request });
            if part.items.len() >= BATCH || part.bytes >= BATCH_BYTES {
                part.flush()?;
            }
        }
        Ok(())
    }

    /// Lets others see what was read so far.
    fn tell(&mut self) {
        let mut tally = self.watch.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let (skips, sessions) = (self.skips.clone(), self.sessions.len() as u64);
        *tally = Tally { skips, sessions, ..self.tally.clone() };
    }
}

impl Part {
    fn flush(&mut self) -> Result<(), NobodyListens> {
        if self.items.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let items = std::mem::replace(&mut self.items, Vec::with_capacity(BATCH));
        self.sender.send(Read::Items(items)).map_err(|_| NobodyListens)
    }
}

/// The names of the formats that can be given.
pub fn format_names() -> Vec<&'static str> {
    Format::ALL.into_iter().map(Format::name).collect()
}
