//! Watching figures beside a run (`--watch`). A thread of its own asks for them once a second; the run takes the values
//! available by the end of each second, and never waits. A source that is gone, slow or answers garbage costs values,
//! which count as missed, and the run nothing.

mod endpoint;
mod page;
mod process;
mod query;
mod source;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_engine::{Observer, RunningTotal};
use brunt_plan::plan::Plan;
use brunt_plan::watch::{Watch, WatchedName};
use brunt_record::live::{InLog, Live};
use brunt_record::samples::SampleSink;
use brunt_record::snapshot::Phase;
use brunt_record::watched::{Watched, WatchedFigure};
use tokio::sync::oneshot;
use tokio::time::sleep_until;

use self::source::Asked;
use crate::console;

/// The interval of values.
const PERIOD: Duration = Duration::from_secs(1);
/// The shortest interval of two values, when they are shifted towards the end of the run's seconds.
const SHORTEST_GAP: Duration = Duration::from_millis(300);
/// How much earlier than its second a value may have come: values are shifted once, when the run's first second is
/// over.
const SLACK: Duration = Duration::from_millis(350);
/// The shortest second in which a missing value counts as missed.
const SHORTEST_MISSED: Duration = Duration::from_millis(500);
/// How long to wait for first values before the load.
const FIRST: Duration = Duration::from_secs(3);
/// The most values of a figure that wait for their second.
const MOST_WAITING: usize = 64;

/// A value, or why the source gave no value.
type Value = Result<f64, String>;

/// Watches beside a run, and shows its seconds to another observer.
pub struct Watching<'a> {
    watcher: Option<Watcher>,
    timetable: Timetable,
    next: &'a mut dyn Observer,
}

impl<'a> Watching<'a> {
    /// Begins to watch the figures of `plan`, and waits for first values; `next` sees the run's seconds. A figure that
    /// is unavailable is an error where `is_first`, and missed in later runs.
    ///
    /// # Errors
    /// When a process does not exist, or a URL does not answer.
    pub fn begin(plan: &Plan, is_first: bool, tells: bool, next: &'a mut dyn Observer) -> Result<Self> {
        let watcher = (!plan.watches.is_empty()).then(|| Watcher::start(&plan.watches, is_first, tells)).transpose()?;
        Ok(Self { watcher, timetable: Timetable::new(plan.warmup_ns), next })
    }
}

impl Observer for Watching<'_> {
    fn watched(&mut self, phase: Phase, elapsed_ns: u64, length_ns: u64) -> Watched {
        let Some(watcher) = &self.watcher else { return Watched::default() };
        let now = Instant::now();
        let ended = self.timetable.ended(phase, elapsed_ns, now);
        if let Some(origin) = self.timetable.origin {
            watcher.board.align(origin);
        }
        watcher.board.take(ended, Duration::from_nanos(length_ns))
    }

    fn in_log(&mut self, elapsed_ns: u64) -> Option<InLog> {
        self.next.in_log(elapsed_ns)
    }

    fn samples(&self) -> Option<Arc<dyn SampleSink>> {
        self.next.samples()
    }

    fn second(&mut self, second: &Live, so_far: &RunningTotal<'_>) -> ControlFlow<brunt_engine::AbortCause> {
        self.next.second(second, so_far)
    }
}

/// The ends of a run's seconds, on this machine's clock. A second is shown some time after its end; the one shown with
/// the least delay tells when the run began.
#[derive(Debug)]
struct Timetable {
    warmup_ns: u64,
    measured_ns: u64,
    origin: Option<Instant>,
}

impl Timetable {
    const fn new(warmup_ns: u64) -> Self {
        Self { warmup_ns, measured_ns: 0, origin: None }
    }

    /// The end of a second that is shown at `now`.
    fn ended(&mut self, phase: Phase, elapsed_ns: u64, now: Instant) -> Instant {
        let offset_ns = match phase {
            Phase::Warmup => elapsed_ns,
            Phase::Measured => {
                self.measured_ns = elapsed_ns;
                self.warmup_ns + elapsed_ns
            }
            Phase::Drain => self.warmup_ns + self.measured_ns + elapsed_ns,
        };
        let offset = Duration::from_nanos(offset_ns);
        let latest = now.checked_sub(offset).unwrap_or(now);
        let origin = self.origin.map_or(latest, |origin| origin.min(latest));
        self.origin = Some(origin);
        (origin + offset).min(now)
    }
}

/// The thread that asks.
struct Watcher {
    board: Arc<Board>,
    close: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    fn start(watches: &[Watch], is_first: bool, tells: bool) -> Result<Self> {
        let board = Arc::new(Board::new(watches));
        let sources = source::all(watches)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("--watch")?;
        let (close, closed) = oneshot::channel::<()>();
        let (told, first) = mpsc::channel();
        let theirs = Arc::clone(&board);
        let count = sources.len();
        let watch = move || {
            runtime.block_on(async {
                for source in sources {
                    tokio::spawn(ask(source, Arc::clone(&theirs), told.clone()));
                }
                drop(told);
                let _ = closed.await;
            });
            // A name look-up under way is not waited for.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("watch".to_owned()).spawn(watch);
        let thread = Some(thread.context("--watch: cannot start a thread")?);
        let watcher = Self { board, close: Some(close), thread };
        let until = Instant::now() + FIRST;
        for _ in 0..count {
            let asked = match first.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(asked) => asked,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            };
            match asked {
                Asked::Without(note) if tells && is_first => console::note(&format!("watch: {note}")),
                Asked::Failed(problem) if is_first => bail!("--watch {problem}"),
                Asked::There | Asked::Without(_) | Asked::Failed(_) => {}
            }
        }
        Ok(watcher)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.close.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks a source once a second, and reports the result of the first time.
async fn ask(mut source: source::Source, board: Arc<Board>, told: mpsc::Sender<Asked>) {
    let first = source.sample(&board).await;
    // The caller has gone on without it.
    let _ = told.send(first);
    drop(told);
    loop {
        sleep_until(board.next(Instant::now(), source.lead()).into()).await;
        source.sample(&board).await;
    }
}

/// The place where values wait for their second.
struct Board {
    /// The phase of the run's seconds, modulo whole seconds.
    origin: Mutex<Instant>,
    figures: Vec<(WatchedName, Mutex<Waiting>)>,
}

/// The waiting values of one figure.
#[derive(Default)]
struct Waiting {
    values: VecDeque<(Instant, Value)>,
    /// The reason if there was no value the last time.
    problem: Option<String>,
}

impl Board {
    fn new(watches: &[Watch]) -> Self {
        let figures = watches.iter().flat_map(Watch::figures);
        Self { origin: Mutex::new(Instant::now()), figures: figures.map(|figure| (figure, Mutex::default())).collect() }
    }

    /// Adds a value of the figure with this number, which came at `now`.
    fn put(&self, figure: usize, now: Instant, value: Value) {
        let Some((_, waiting)) = self.figures.get(figure) else { return };
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.problem = value.as_ref().err().cloned();
        if waiting.values.len() == MOST_WAITING {
            waiting.values.pop_front();
        }
        // -0 is shown as 0.
        waiting.values.push_back((now, value.map(|value| value + 0.0)));
    }

    fn align(&self, origin: Instant) {
        *self.origin.lock().unwrap_or_else(PoisonError::into_inner) = origin;
    }

    /// The time of the next request: `lead` before a second of the run ends.
    fn next(&self, now: Instant, lead: Duration) -> Instant {
        let origin = *self.origin.lock().unwrap_or_else(PoisonError::into_inner);
        let soonest = now + SHORTEST_GAP + lead;
        let passed = soonest.saturating_duration_since(origin);
        let seconds = passed.as_millis().div_ceil(PERIOD.as_millis());
        let end = origin + PERIOD * u32::try_from(seconds).unwrap_or(u32::MAX);
        end.checked_sub(lead).unwrap_or(soonest)
    }

    /// The values of a second that ended at `to` and was so long.
    fn take(&self, to: Instant, length: Duration) -> Watched {
        let from = to.checked_sub(length + SLACK).unwrap_or(to);
        let mut watched = Watched::default();
        for (figure, waiting) in &self.figures {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let mut last: Option<Value> = None;
            while waiting.values.front().is_some_and(|(at, _)| *at <= to) {
                let Some((at, value)) = waiting.values.pop_front() else { break };
                if at > from && (value.is_ok() || !matches!(last, Some(Ok(_)))) {
                    last = Some(value);
                }
            }
            let value = match last {
                Some(Ok(value)) => WatchedFigure::value(figure.unit, value),
                Some(Err(problem)) => WatchedFigure::missed(figure.unit, &problem),
                None if length < SHORTEST_MISSED => continue,
                None => {
                    let problem = waiting.problem.as_deref().unwrap_or("no value came in time");
                    WatchedFigure::missed(figure.unit, problem)
                }
            };
            *watched.named(&figure.name) = value;
        }
        watched
    }
}

/// An error of a watch, by its name and without secrets.
fn of_watch(watch: &Watch, problem: &str) -> anyhow::Error {
    anyhow!("{watch}: {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);
    const MS: Duration = Duration::from_millis(1);

    fn at(begin: Instant, ms: u64) -> Instant {
        begin + Duration::from_millis(ms)
    }

    fn board() -> Board {
        Board::new(&["queue=http://h/#queue".parse().unwrap()])
    }

    fn taken(board: &Board, to: Instant, length: Duration) -> (Option<f64>, u64, String) {
        let watched = board.take(to, length);
        let figure = watched.get("queue").cloned().unwrap_or_default();
        (figure.last(), figure.missed, figure.problem)
    }

    #[test]
    fn a_value_belongs_to_the_second_in_which_it_came_and_to_no_other() {
        let (board, begin) = (board(), Instant::now());
        for (second, value) in (1_u64..).zip([5.0, 7.0]) {
            board.put(0, at(begin, second * 1000 - 20), Ok(value));
        }
        assert_eq!(taken(&board, begin + S, S), (Some(5.0), 0, String::new()));
        assert_eq!(taken(&board, begin + 2 * S, S), (Some(7.0), 0, String::new()));
        let late = "no value came in time".to_owned();
        assert_eq!(taken(&board, begin + 3 * S, S), (None, 1, late));
        // What is left of the last second has none of its own.
        assert_eq!(taken(&board, begin + 3 * S + 40 * MS, 40 * MS), (None, 0, String::new()));
    }

    #[test]
    fn a_value_goes_before_a_failure_and_what_is_old_is_no_value_of_now() {
        let (board, begin) = (board(), Instant::now());
        board.put(0, begin + 100 * MS, Ok(1.0));
        board.put(0, at(begin, 1400), Ok(2.0));
        board.put(0, at(begin, 1990), Err("refused".to_owned()));
        board.put(0, at(begin, 2990), Err("refused".to_owned()));
        board.put(0, begin + 4 * S + 10 * MS, Ok(9.0));
        assert_eq!(taken(&board, begin + 2 * S, S).0, Some(2.0));
        assert_eq!(taken(&board, begin + 3 * S, S), (None, 1, "refused".to_owned()));
        // Where it takes longer than a second to fail, each second has the reason.
        assert_eq!(taken(&board, at(begin, 3999), 999 * MS).0, None);
        assert_eq!(taken(&board, begin + 5 * S, S).0, Some(9.0));
    }

    #[test]
    fn what_waits_is_bounded() {
        let (board, begin) = (board(), Instant::now());
        for number in 0..10_000_u32 {
            board.put(0, begin + number * MS, Ok(f64::from(number)));
        }
        assert_eq!(board.figures[0].1.lock().unwrap().values.len(), MOST_WAITING);
        assert_eq!(taken(&board, begin + 10 * S, S).0, Some(9999.0));
    }

    #[test]
    fn it_asks_a_little_before_the_end_of_each_second() {
        let (board, origin) = (board(), Instant::now());
        board.align(origin);
        let lead = 150 * MS;
        assert_eq!(board.next(origin, lead), at(origin, 850));
        assert_eq!(board.next(at(origin, 850), lead), at(origin, 1850));
        assert_eq!(board.next(at(origin, 853), lead), at(origin, 1850));
        // Answers took longer than a second.
        assert_eq!(board.next(origin + 3 * S, lead), at(origin, 3850));
    }

    #[test]
    fn the_second_that_was_shown_soonest_tells_when_the_run_began() {
        let begin = Instant::now();
        let mut timetable = Timetable::new(2_000_000_000);
        assert_eq!(timetable.ended(Phase::Warmup, 1_000_000_000, begin + S + 80 * MS), begin + S + 80 * MS);
        assert_eq!(timetable.ended(Phase::Warmup, 2_000_000_000, begin + 2 * S + 5 * MS), begin + 2 * S + 5 * MS);
        // One that was held up, and those after it.
        assert_eq!(timetable.ended(Phase::Measured, 1_000_000_000, begin + 9 * S), begin + 3 * S + 5 * MS);
        assert_eq!(timetable.ended(Phase::Measured, 2_000_000_000, begin + 9 * S), begin + 4 * S + 5 * MS);
        assert_eq!(timetable.ended(Phase::Drain, 500_000_000, begin + 9 * S), begin + 4 * S + 505 * MS);
    }
}
