//! What the users of one worker share.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Instant;

use brunt_protocol::scenario::Value;
use brunt_protocol::source::Heartbeat;
use brunt_record::figures::{MOST_NAMES, OwnFigures, OwnKind};
use brunt_script::Operation;

use crate::outcome::Answer;
use crate::shared::{Schema, Shared};

/// The most names of calls and checks that are remembered.
const MOST_LABELS: usize = 2000;
/// The most calls that are prepared.
const MOST_PREPARED: usize = 1000;

/// Figures with their names, and their numbers by name.
type Own = (Vec<(String, OwnFigures)>, HashMap<String, usize>);

/// The state of a worker.
pub(crate) struct Worker {
    pub(crate) program: std::sync::Arc<Shared>,
    pub(crate) number: u32,
    /// The engine's clock at the last resumption, in nanoseconds.
    pub(crate) now: Cell<u64>,
    /// When that was.
    pub(crate) resumed: Cell<Instant>,
    /// Numbers of calls' names, by what they were asked with.
    labels: RefCell<HashMap<Vec<u8>, u32>>,
    /// Numbers of checks, by the label of their calls and their name.
    checks: RefCell<HashMap<(u32, String), u32>>,
    /// Numbers of prepared calls, by what they send.
    prepared: RefCell<HashMap<Vec<u8>, u32>>,
    /// How often checks have held, by number.
    passes: RefCell<Vec<u64>>,
    /// Whether each check that holds is told.
    pub(crate) traces: Cell<bool>,
    /// The script's figures, by number; and their numbers by name.
    own: RefCell<Own>,
    /// The time of the last value of a figure, which no other one has.
    recorded: Cell<u64>,
    /// The value of setup, as JSON.
    pub(crate) given: RefCell<Option<String>>,
    /// Shows that a script goes on.
    pub(crate) heart: RefCell<Option<Heartbeat>>,
    /// The state of `Math.random`.
    pub(crate) random: Cell<u64>,
    /// Calls that run beside the script, by the slots of their tasks.
    pub(crate) tasks: RefCell<HashMap<u32, Task>>,
    /// Schemas of gRPC that the script's top has loaded, each once.
    pub(crate) schemas: RefCell<Vec<Schema>>,
    /// The number of the last such call.
    pub(crate) last_event: Cell<f64>,
}

/// The first client that has a schema.
pub(crate) const FIRST_SCHEMA: usize = 2;

/// A call that runs beside its user's script.
pub(crate) struct Task {
    pub(crate) owner: Rc<Mailbox>,
    /// The number by which the script knows it.
    pub(crate) id: f64,
    /// The label of a call of HTTP, and whether nobody reads its answer's body.
    pub(crate) http: Option<(u32, bool)>,
    pub(crate) parts: Parts,
    pub(crate) state: TaskState,
}

/// What a task waits for.
pub(crate) enum TaskState {
    /// To begin.
    Begins(Operation),
    /// The end of its call.
    Calls,
    /// The parts of its answer, in their order.
    Reads { answer: Answer, read: Vec<Option<Value<'static>>> },
}

/// Where a user finds what has come for what runs beside its script.
#[derive(Default)]
pub(crate) struct Mailbox {
    pub(crate) events: RefCell<VecDeque<Event>>,
    /// How many calls have not come to their end.
    pub(crate) under_way: Cell<u32>,
}

/// What has come for what ran beside the script: the end of a call, with parts of its answer, or a message of a stream.
pub(crate) struct Event {
    pub(crate) id: f64,
    /// As the task has it.
    pub(crate) http: Option<(u32, bool)>,
    /// `None` for a message, which is the only part.
    pub(crate) answer: Option<Answer>,
    pub(crate) parts: Parts,
    pub(crate) read: Vec<Option<Value<'static>>>,
}

/// The parts of an answer that a call beside the script keeps, in the order in which they are read.
pub(crate) type Parts = Vec<Cow<'static, str>>;

/// What tells calls apart that send the same.
fn key(values: &[Value<'static>]) -> Vec<u8> {
    format!("{values:?}").into_bytes()
}

impl Worker {
    pub(crate) fn new(program: std::sync::Arc<Shared>, number: u32) -> Rc<Self> {
        let seed = program.seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Rc::new(Self {
            program,
            number,
            now: Cell::new(0),
            resumed: Cell::new(Instant::now()),
            labels: RefCell::default(),
            checks: RefCell::default(),
            prepared: RefCell::default(),
            passes: RefCell::default(),
            traces: Cell::new(false),
            own: RefCell::default(),
            recorded: Cell::new(0),
            given: RefCell::default(),
            heart: RefCell::default(),
            random: Cell::new(seed),
            tasks: RefCell::default(),
            schemas: RefCell::default(),
            last_event: Cell::new(0.0),
        })
    }

    /// Takes the engine's clock as somebody is resumed.
    pub(crate) fn resume(&self, now: u64) {
        self.now.set(now);
        self.resumed.set(Instant::now());
    }

    /// The engine's clock, in milliseconds: what a script does takes time, too.
    pub(crate) fn now_ms(&self) -> f64 {
        self.now.get() as f64 / 1e6 + self.resumed.get().elapsed().as_secs_f64() * 1e3
    }

    /// A number between 0 and 1, by `SplitMix64`.
    pub(crate) fn random(&self) -> f64 {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The number of the client that has this schema. One that no client has yet is remembered.
    pub(crate) fn schema(&self, schema: Schema) -> usize {
        let known = &self.program.schemas;
        let mut own = self.schemas.borrow_mut();
        let place = known.iter().chain(own.iter()).position(|one| *one == schema);
        FIRST_SCHEMA
            + place.unwrap_or_else(|| {
                own.push(schema);
                known.len() + own.len() - 1
            })
    }

    /// The number remembered for a name of calls.
    pub(crate) fn label(&self, key: &[u8]) -> Option<u32> {
        self.labels.borrow().get(key).copied()
    }

    /// Remembers the number of a name of calls.
    pub(crate) fn keep_label(&self, key: Vec<u8>, label: u32) {
        let mut labels = self.labels.borrow_mut();
        if labels.len() < MOST_LABELS {
            labels.insert(key, label);
        }
    }

    /// The number remembered for a check.
    pub(crate) fn check(&self, label: u32, name: &str) -> Option<u32> {
        self.checks.borrow().get(&(label, name.to_owned())).copied()
    }

    /// Remembers the number of a check.
    pub(crate) fn keep_check(&self, label: u32, name: &str, id: u32) {
        let mut checks = self.checks.borrow_mut();
        if checks.len() < MOST_LABELS {
            checks.insert((label, name.to_owned()), id);
        }
    }

    /// The number of a prepared call that sends this.
    pub(crate) fn prepared(&self, values: &[Value<'static>]) -> Option<u32> {
        let prepared = self.prepared.borrow();
        // Those that come too late are never prepared.
        prepared.get(&key(values)).copied().or((prepared.len() >= MOST_PREPARED).then_some(0))
    }

    /// Remembers the number of a prepared call.
    pub(crate) fn keep_prepared(&self, values: &[Value<'static>], number: u32) {
        self.prepared.borrow_mut().insert(key(values), number);
    }

    /// Counts a check that held.
    pub(crate) fn passed(&self, check: u32) {
        let mut passes = self.passes.borrow_mut();
        let check = check as usize;
        if passes.len() <= check {
            passes.resize(check + 1, 0);
        }
        if let Some(count) = passes.get_mut(check) {
            *count += 1;
        }
    }

    /// Takes how often checks have held since the last time, by number.
    pub(crate) fn take_passes(&self) -> Vec<(u32, u64)> {
        let counts = std::mem::take(&mut *self.passes.borrow_mut());
        (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    /// The number of a figure of the script's own, which is new or known. The last one that there can be stands for all further ones.
    pub(crate) fn figure(&self, kind: OwnKind, name: &str, unit: &str) -> usize {
        let mut own = self.own.borrow_mut();
        let (figures, numbers) = &mut *own;
        if let Some(number) = numbers.get(name) {
            return *number;
        }
        if figures.len() >= MOST_NAMES {
            return figures.len().saturating_sub(1);
        }
        figures.push((name.to_owned(), OwnFigures::new(kind, unit)));
        numbers.insert(name.to_owned(), figures.len() - 1);
        figures.len() - 1
    }

    /// Records a value of a figure, later than all before it: a script may set a gauge twice before it waits.
    pub(crate) fn record(&self, number: usize, value: f64) {
        let at = self.now.get().max(self.recorded.get().saturating_add(1));
        if let Some((_, own)) = self.own.borrow_mut().0.get_mut(number) {
            own.record(value, at);
            self.recorded.set(at);
        }
    }

    /// The script's figures, by name, with their kinds.
    pub(crate) fn declared(&self) -> Vec<(String, OwnKind)> {
        self.own.borrow().0.iter().map(|(name, own)| (name.clone(), own.kind)).collect()
    }

    /// Takes what the script's figures have recorded since the last time.
    pub(crate) fn take_own(&self) -> Vec<(String, OwnFigures)> {
        let mut own = self.own.borrow_mut();
        let recorded = own.0.iter_mut().filter(|(_, own)| own.count > 0);
        recorded
            .map(|(name, own)| {
                let empty = OwnFigures::new(own.kind, &own.unit);
                (name.clone(), std::mem::replace(own, empty))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use std::sync::Arc;

    use brunt_record::redaction::Secrets;
    use brunt_script::Files;

    use super::*;
    use crate::modules::Modules;
    use crate::program::Source;

    #[test]
    fn the_last_value_of_a_gauge_is_the_one_that_was_set_last() {
        let text = b"export default function () {}".to_vec();
        let modules = Arc::new(Modules::new("s.js".to_owned(), text, Files::Plan(Vec::new())));
        let source = Source { modules, env: Vec::new(), seed: 1, secrets: Secrets::default() };
        let worker = Worker::new(Arc::new(source.program(&source.probe(false).unwrap(), Vec::new())), 0);
        let gauge = worker.figure(OwnKind::Gauge, "queue", "");
        worker.resume(1_000);
        for value in [9.0, 3.0, 5.0] {
            worker.record(gauge, value);
        }
        let (_, own) = worker.take_own().pop().unwrap();
        assert_eq!((own.last(), own.max().map(|most| most.value)), (Some(5.0), Some(9.0)));
        worker.resume(2_000);
        worker.record(gauge, 1.0);
        assert_eq!(worker.take_own().pop().unwrap().1.last(), Some(1.0));
    }
}
