//! The thread that reads a log ahead: it turns lines into calls, and hands these to the workers.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::io::{self, Read as _};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError};

use brunt_protocol::plan::random::NumberHasher;
use brunt_protocol::plan::share::Portion;
use brunt_protocol::replay::LoggedCall;

use crate::config::ReplayConfig;
use crate::entry::{Entry, Skip, Skips, Stamp};
use crate::format::{Format, Parser, har};
use crate::input::{Bytes, LogLines};
use crate::neighbours::Neighbours;
use crate::order::Sorter;
use crate::position::Position;
use crate::request::{Composer, Request};
use crate::schedule::{Due, Schedule, hash};
use crate::select::is_safe;
use crate::watch::{Tally, Watch};
use crate::worker::{Item, Read};

/// The most requests, and bytes of requests, that go to a worker at once.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 256 << 10;
/// The most batches by which the reader may be ahead of a worker.
const BATCHES_AHEAD: usize = 64;
/// The reason for not reading on when the copies take too much memory.
const TOO_MANY_WAIT: &str =
    "too many copies of requests wait for their time (4 million, or 256 MiB): take a smaller --shift or --scale";
/// The most passes without a call, in a row, of a log that begins anew at its end: a scale below 1 may leave out all
/// sessions of a pass.
const MOST_EMPTY_PASSES: u32 = 1000;
/// The reason for not reading on when the scale leaves out everything.
const NOTHING_SAMPLED: &str = "--scale left out every session in 1,000 passes of the log: take a larger one";
/// The most sessions that are counted one by one.
const MOST_SESSIONS: usize = 1 << 20;

/// The reader's end of a worker's part.
pub(crate) struct Part {
    sender: SyncSender<Read>,
    items: Vec<Item>,
    bytes: usize,
}

/// The receiving worker is gone: the run is over.
struct NobodyListens;

/// Why reading ended.
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
pub(crate) struct Reader {
    config: ReplayConfig,
    format: Format,
    neighbours: Neighbours,
    sorter: Sorter,
    schedule: Schedule<Arc<Request>>,
    composer: Composer,
    skips: Skips,
    tally: Tally,
    sessions: HashSet<u64, BuildHasherDefault<NumberHasher>>,
    number: u64,
    /// The number of targets without a time read so far.
    targets: u64,
    /// The portion of the calls that is handed out, and the workers who get them.
    portion: Portion,
    parts: Vec<Part>,
    watch: Watch,
    /// Whether a digest is made of the log, and the digest of the last line.
    is_marked: bool,
    digest: u64,
    /// The position of this pass in the file.
    position: Position,
}

impl Reader {
    /// The reader of a log, which hands the calls of a portion to its workers.
    pub(crate) fn new(
        config: ReplayConfig,
        format: Format,
        portion: Portion,
        parts: Vec<Part>,
        watch: Watch,
        tally: Tally,
    ) -> Self {
        Self {
            neighbours: Neighbours::default(),
            sorter: Sorter::new(config.sort_ns),
            schedule: Schedule::new(config.scaling),
            skips: Skips::default(),
            tally,
            sessions: HashSet::default(),
            number: 0,
            targets: 0,
            composer: Composer::new(&config.selection.target, config.headers.clone()),
            // Other machines read the log, too.
            is_marked: config.bytes.is_some(),
            digest: 0,
            position: watch.position.clone(),
            config,
            format,
            portion,
            parts,
            watch,
        }
    }

    pub(crate) fn run(mut self, bytes: Bytes) {
        let end = self.read_all(bytes);
        self.tell();
        // No worker waits for its last calls because another is behind.
        for part in &mut self.parts {
            let _ = part.offer();
        }
        for part in &mut self.parts {
            let _ = part.flush();
            let _ = part.sender.send(match &end {
                Err(End::Failed(reason)) => Read::Failed(reason.clone()),
                Ok(()) | Err(End::Nobody) => Read::Over,
            });
        }
    }

    fn read_all(&mut self, first: Bytes) -> Result<(), End> {
        let (mut bytes, mut empty_passes) = (first, 0);
        loop {
            let before = self.number;
            self.pass(bytes)?;
            self.neighbours.finish(&mut self.skips);
            self.select()?;
            self.sorter.finish();
            self.schedule_sorted()?;
            // A log whose lines are all skipped would be read over and over, without a call and without an end.
            let repeats = self.config.repeats && self.schedule.zero().is_some();
            let is_empty = self.number == before && !self.schedule.has_waiting();
            empty_passes = if is_empty { empty_passes + 1 } else { 0 };
            if repeats && empty_passes >= MOST_EMPTY_PASSES {
                return Err(End::Failed(NOTHING_SAMPLED.to_owned()));
            }
            if repeats && self.targets > 0 {
                // Targets have the times that their rate gives them, across all passes.
                self.schedule.go_on();
            } else {
                self.schedule.end_pass(repeats);
            }
            let course = &mut self.tally.course;
            if repeats {
                course.pass_ns.get_or_insert(self.schedule.before_ns());
            } else {
                course.end_ns = Some(self.schedule.last_ns());
                self.tally.marks.end();
                // Requests that were read wait for the workers.
                self.tell();
            }
            self.hand_out()?;
            if !repeats {
                return Ok(());
            }
            (self.neighbours, self.sorter) = (Neighbours::default(), Sorter::new(self.config.sort_ns));
            (bytes, self.position) = self.config.open(self.format).map_err(|error| self.broken(&error))?;
        }
    }

    fn broken(&self, error: &io::Error) -> End {
        End::Failed(format!("cannot read all of the log {}: {error}", self.config.path.display()))
    }

    /// Reads the log once, from its beginning to its end.
    fn pass(&mut self, bytes: Bytes) -> Result<(), End> {
        if self.format == Format::Har {
            return self.archive(bytes);
        }
        let mut parser =
            Parser::new(self.format, self.config.options.clone()).map_err(|error| End::Failed(error.to_string()))?;
        let mut lines = LogLines::new(bytes);
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return self.check_whole(),
                Err(error) => return Err(self.broken(&error)),
            };
            let read = match parser.line(line) {
                Ok(None) => continue,
                Ok(Some(entry)) => Ok(entry),
                Err(skip) => Err(skip),
            };
            if self.is_marked {
                self.digest = hash(line);
            }
            if !self.take(read)? {
                return Ok(());
            }
        }
    }

    /// Checks that the log still has the size that it had when it was opened: a file that was cut off meanwhile is not
    /// replayed as if it ended there.
    fn check_whole(&self) -> Result<(), End> {
        let Some((read, of)) = self.position.missing() else { return Ok(()) };
        let path = self.config.path.display();
        Err(End::Failed(format!(
            "the log {path} was cut off while it was read: it had {of} bytes, and ended after {read}"
        )))
    }

    /// Reads an archive, which is a single value.
    fn archive(&mut self, bytes: Bytes) -> Result<(), End> {
        let mut whole = Vec::new();
        bytes.take(har::MOST_BYTES + 1).read_to_end(&mut whole).map_err(|error| self.broken(&error))?;
        if whole.len() as u64 > har::MOST_BYTES {
            return Err(End::Failed("an HTTP archive is read whole, and this one is larger than 256 MiB".to_owned()));
        }
        self.digest = hash(&whole);
        let entries = har::entries(&whole, &self.config.options)
            .map_err(|error| End::Failed(format!("{}: {error}", self.config.path.display())))?;
        for entry in entries {
            self.take(entry)?;
        }
        Ok(())
    }

    /// Takes the entry of a line; `false` once the log is beyond the selected part.
    fn take(&mut self, read: Result<Entry, Skip>) -> Result<bool, End> {
        self.tally.lines += 1;
        if self.is_marked {
            self.tally.marks.line(self.digest);
        }
        if self.tally.lines.is_multiple_of(1024) {
            self.tell();
        }
        match read.and_then(|entry| self.with_time(entry)) {
            Ok(entry) => self.neighbours.push(entry, &mut self.skips),
            Err(skip) => self.skips.add(skip),
        }
        self.select()
    }

    /// Selects among the lines that are not stray; `false` once the log is beyond the selected part.
    fn select(&mut self) -> Result<bool, End> {
        while let Some(entry) = self.neighbours.pop() {
            let at = entry.at;
            match self.config.selection.take(entry) {
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
        }
        Ok(true)
    }

    /// The entry with a time; a target gets its time by the rate.
    fn with_time(&mut self, mut entry: Entry) -> Result<Entry, Skip> {
        if entry.at.is_none() {
            let rate = self.config.rate.ok_or(Skip::NoTime)?;
            let ns = ((self.targets as f64 / rate * 1e9) as i64).min(Stamp::MOST_NS);
            self.targets += 1;
            entry.at = Some(Stamp { ns, is_whole: false, offset_s: 0 });
        }
        Ok(entry)
    }

    /// Gives sorted entries their due times, and hands out the requests that no later one can precede.
    fn schedule_sorted(&mut self) -> Result<(), End> {
        while let Some(mut timed) = self.sorter.pop() {
            let before = timed.entry.headers.len();
            timed.entry.headers.retain(|(_, value)| !value.eq_ignore_ascii_case("REDACTED"));
            self.tally.redacted += (before - timed.entry.headers.len()) as u64;
            self.tally.unread_durations += u64::from(timed.entry.has_unread_duration);
            let request = Arc::new(self.composer.request(&timed.entry));
            if !is_safe(&timed.entry.method) && request.body.is_empty() && timed.entry.method != "DELETE" {
                self.tally.without_body += 1;
            }
            self.tally.last_ns = Some(timed.ns);
            if self.schedule.push(&timed, &request, request.weight()) == 0 {
                self.skips.add(Skip::Sampled);
            }
            if self.schedule.is_full() {
                return Err(End::Failed(TOO_MANY_WAIT.to_owned()));
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
                && self.sessions.insert(session)
            {
                self.watch.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(ns);
            }
            let logged_ns = (request.duration_ns.unwrap_or(0) as f64 / self.config.scaling.speed) as u64;
            let Some(place) = place(self.portion, session.unwrap_or(number)) else { continue };
            let Some(part) = self.parts.get_mut(place) else { return Err(NobodyListens) };
            part.bytes += request.weight();
            part.items.push(Item { call: LoggedCall { number, due_ns: ns, session, logged_ns }, request });
            if part.items.len() >= BATCH || part.bytes >= BATCH_BYTES {
                self.flush(place)?;
            }
        }
        Ok(())
    }

    /// Hands a worker its gathered requests. Before it waits for room at that worker, the others get theirs: no worker
    /// waits for a call because another is far behind.
    fn flush(&mut self, place: usize) -> Result<(), NobodyListens> {
        if self.parts.get_mut(place).is_none_or(|part| part.offer().is_ok_and(|is_taken| is_taken)) {
            return Ok(());
        }
        for (other, part) in self.parts.iter_mut().enumerate() {
            if other != place {
                part.offer()?;
            }
        }
        self.parts.get_mut(place).map_or(Ok(()), Part::flush)
    }

    /// Publishes the progress of reading.
    fn tell(&mut self) {
        let mut tally = self.watch.tally.lock().unwrap_or_else(PoisonError::into_inner);
        *tally = Tally { skips: self.skips.clone(), ..self.tally.clone() };
    }
}

impl Part {
    /// A worker's part, and the receiver of its requests.
    pub(crate) fn new() -> (Self, Receiver<Read>) {
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        (Self { sender, items: Vec::with_capacity(BATCH), bytes: 0 }, receiver)
    }

    fn take(&mut self) -> Vec<Item> {
        self.bytes = 0;
        std::mem::replace(&mut self.items, Vec::with_capacity(BATCH))
    }

    /// Hands over the gathered requests, if there is room. Returns whether there was.
    fn offer(&mut self) -> Result<bool, NobodyListens> {
        if self.items.is_empty() {
            return Ok(true);
        }
        let bytes = self.bytes;
        let items = self.take();
        match self.sender.try_send(Read::Items(items)) {
            Ok(()) => Ok(true),
            Err(TrySendError::Full(Read::Items(items))) => {
                (self.items, self.bytes) = (items, bytes);
                Ok(false)
            }
            Err(_) => Err(NobodyListens),
        }
    }

    fn flush(&mut self) -> Result<(), NobodyListens> {
        if self.items.is_empty() {
            return Ok(());
        }
        let items = self.take();
        self.sender.send(Read::Items(items)).map_err(|_| NobodyListens)
    }
}

/// The place among a portion's workers of the one that has the calls of this number; `None` if it is not in the
/// portion.
fn place(portion: Portion, number: u64) -> Option<usize> {
    let of = number % u64::from(portion.all_workers().max(1));
    let place = of.checked_sub(u64::from(portion.first()))?;
    (place < u64::from(portion.workers())).then_some(place as usize)
}
