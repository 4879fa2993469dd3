//! Logs that are replayed, in simulated time.

mod day;
mod following;
mod horizon;

use std::sync::{Arc, Mutex};

use brunt_engine::simulated::{self, Act, Peer, Reaction, VirtualNet};
use brunt_engine::{Gate, RunShare};
use brunt_judge::summary::Summary;
use brunt_lua::LuaJit;
use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_protocol::replay::{LoggedCall, ReplayedEnd, Upcoming, WorkerReplay};
use brunt_protocol::source::{Message, SourceEnd};
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::{MS, SECOND_NS, Seconds, built_in, check, judged, plan};

/// A log of calls that are due then, of these sessions.
pub(super) struct Log {
    calls: Vec<(u64, Option<u64>)>,
    next: usize,
    bytes: String,
}

impl Log {
    pub(super) fn of(calls: impl IntoIterator<Item = (u64, Option<u64>)>) -> Vec<Box<dyn WorkerReplay>> {
        vec![Box::new(Self { calls: calls.into_iter().collect(), next: 0, bytes: String::new() })]
    }
}

impl WorkerReplay for Log {
    fn next(&mut self) -> Upcoming {
        let Some((due_ns, session)) = self.calls.get(self.next).copied() else { return Upcoming::Over };
        self.next += 1;
        Upcoming::Call(LoggedCall { number: self.next as u64, due_ns, session, logged_ns: 100 * MS })
    }

    fn call(&mut self, number: u64) -> Result<Message<'_>, SourceEnd> {
        self.bytes = format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n");
        Ok(Message { bytes: self.bytes.as_bytes(), idempotent: true, ..Message::default() })
    }

    fn name(&self, _number: u64) -> (u32, &str) {
        (0, "GET /{n}")
    }

    fn ended(&mut self, _number: u64, _ended: ReplayedEnd<'_>) {}
}

/// A request as it came: when, on which connection, and its number.
type Came = (u64, u64, u64);

/// A server that answers each request after a time of its own, and writes down when it came.
struct Server {
    takes: fn(u64) -> u64,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Peer for Server {
    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let text = std::str::from_utf8(bytes).unwrap();
        let number: u64 = text.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        self.came.lock().unwrap().push((now.ns(), connection, number));
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
        vec![((self.takes)(number), Act::Send(answer))]
    }
}

/// What came of a log, and what its server was asked.
fn replayed(
    change: impl FnOnce(&mut Plan),
    logs: Vec<Box<dyn WorkerReplay>>,
    takes: fn(u64) -> u64,
) -> (Summary, Vec<Came>) {
    let came = Arc::new(Mutex::new(Vec::new()));
    let summary = carried_out(change, logs, Server { takes, came: Arc::clone(&came) });
    let came = came.lock().unwrap().clone();
    (summary, came)
}

/// What came of a log with this server.
fn carried_out(change: impl FnOnce(&mut Plan), logs: Vec<Box<dyn WorkerReplay>>, server: impl Peer) -> Summary {
    let summary = carried_out_on(&VirtualNet::new(server), change, logs, None);
    check(&summary);
    summary
}

/// What came of a log on this machine, with this gate.
fn carried_out_on(
    net: &VirtualNet,
    change: impl FnOnce(&mut Plan),
    logs: Vec<Box<dyn WorkerReplay>>,
    gate: Option<Gate>,
) -> Summary {
    let replay = brunt_plan::replay::LogReplay::new("a.log", "combined");
    let mut plan = Plan {
        load: Load::Replay(Box::new(replay)),
        stop: StopRule::default(),
        connections: Connections::UpTo(100),
        timeout_ns: 5 * SECOND_NS,
        drain_ns: 5 * SECOND_NS,
        ..plan("http://127.0.0.1/")
    };
    change(&mut plan);
    let part = RunShare { gate, ..RunShare::whole(plan.workers) };
    let (registry, seconds) = (built_in(), &mut Seconds::default());
    let finished = simulated::run_replay_part(net, &plan, part, logs, &registry, &LuaJit, seconds);
    judged(finished.unwrap())
}

#[test]
fn an_hour_does_not_drift_and_sessions_keep_their_connections() {
    let calls: Vec<_> = (0..3600).map(|nth| (nth * SECOND_NS + nth % 7 * 13 * MS, Some(nth % 5))).collect();
    let (summary, came) = replayed(|_| (), Log::of(calls.clone()), |_| MS);
    assert_eq!((summary.total.statuses.total(), came.len()), (3600, 3600));
    let began = came[5].0 - calls[5].0;
    for ((at, connection, number), (due, session)) in came.iter().zip(&calls) {
        // The first of a session has its connection made.
        let late = at.abs_diff(began + due);
        assert!(late <= MS / 10, "{number} came {late} ns beside its time");
        let first = came[session.unwrap() as usize].1;
        assert_eq!(*connection, first, "{number}");
    }
}

#[test]
fn due_times_hold_where_an_answer_comes_late() {
    // The first takes three seconds; the others of its session wait for it, and those of another do not.
    let calls = [(0, Some(1)), (SECOND_NS, Some(1)), (SECOND_NS, Some(2)), (2 * SECOND_NS, Some(1))];
    let (summary, came) = replayed(|_| (), Log::of(calls), |number| if number == 1 { 3 * SECOND_NS } else { MS });
    let order: Vec<_> = came.iter().map(|(.., number)| *number).collect();
    assert_eq!(order, [1, 3, 2, 4]);
    let longest = summary.times.response.as_ref().unwrap().max.value;
    assert!(longest >= 3 * SECOND_NS, "{longest}");
    // The second was due after one second and sent after three: its wait counts.
    let all: f64 = summary.times.response.as_ref().unwrap().mean.value * 4.0;
    assert!(all >= 6.0 * SECOND_NS as f64, "{all}");
    assert!(!summary.verdict.is_brunt_the_limit());
}

/// A worker that stands still for seconds counts what the log has due in each of them, and says nothing of the target.
#[test]
fn calls_are_due_in_the_seconds_of_the_log_however_late_their_worker_comes() {
    let calls: Vec<_> = (0..800).map(|nth| (nth * 10 * MS, Some(nth % 50))).collect();
    let came = Arc::new(Mutex::new(Vec::new()));
    let net = VirtualNet::new(Server { takes: |_| MS, came: Arc::clone(&came) })
        .standing_still(Tick::from_ns(3 * SECOND_NS), 7 * SECOND_NS / 2);
    let summary = carried_out_on(&net, |_| (), Log::of(calls), None);
    check(&summary);
    let due: Vec<_> = summary.run.series.points().iter().map(|point| point.numbers.get(Counter::Due)).collect();
    assert_eq!(due.get(..8), Some(&[100; 8][..]), "{due:?}");
    assert_eq!((summary.total.statuses.total(), came.lock().unwrap().len()), (800, 800));
    assert!(!summary.verdict.is_trustworthy(), "{:?}", summary.verdict);
    assert!(summary.remarks.is_empty(), "{:?}", summary.remarks);
}

#[test]
fn calls_whose_turn_does_not_come_fail() {
    let calls: Vec<_> = (0..60).map(|nth| (nth * SECOND_NS / 10, Some(1))).collect();
    let (summary, came) = replayed(|_| (), Log::of(calls), |_| 4 * SECOND_NS);
    assert_eq!(summary.total.numbers.get(Counter::Due), 60);
    assert_eq!(summary.failures(Failure::Timeout) + summary.total.statuses.total(), 60);
    assert!(came.len() < 5, "{} were sent", came.len());
}

#[test]
fn a_user_thinks_after_each_answer_as_long_as_in_the_log() {
    let think = |plan: &mut Plan| {
        if let Load::Replay(replay) = &mut plan.load {
            replay.think = true;
        }
    };
    // In the log each took 0.1 s, and its user thought for 0.9 s. Here the second takes two seconds.
    let calls = [(0, Some(1)), (SECOND_NS, Some(1)), (2 * SECOND_NS, Some(1)), (3 * SECOND_NS, Some(1))];
    let (summary, came) = replayed(think, Log::of(calls), |number| if number == 2 { 2 * SECOND_NS } else { 50 * MS });
    let at: Vec<_> = came.iter().map(|(at, ..)| (at - came[0].0 + MS) / (100 * MS)).collect();
    assert_eq!(at, [0, 10, 39, 48], "tenths of a second");
    assert_eq!(summary.total.statuses.total(), 4);
    assert!(summary.times.response.as_ref().unwrap().max.value < 2100 * MS, "nobody waited for a turn");
}

#[test]
fn too_few_connections_are_no_fault_of_the_generator() {
    let calls: Vec<_> = (0..100).map(|nth| (nth * 10 * MS, Some(nth % 10))).collect();
    let (summary, came) = replayed(|plan| plan.connections = Connections::UpTo(2), Log::of(calls), |_| 50 * MS);
    assert_eq!((summary.total.statuses.total(), came.len()), (100, 100));
    assert!(!summary.verdict.is_brunt_the_limit(), "{:?}", summary.verdict);
    let mut numbers: Vec<_> = came.iter().map(|(.., number)| *number).collect();
    for session in 0..10 {
        let of_session: Vec<_> = numbers.iter().filter(|number| (*number - 1) % 10 == session).collect();
        assert!(of_session.is_sorted(), "the order of a session holds");
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=100), "each once");
}

#[test]
fn calls_without_sessions_take_connections_that_are_free() {
    let calls: Vec<_> = (0..100).map(|nth| (nth * 10 * MS, None)).collect();
    let (_, came) = replayed(|_| (), Log::of(calls), |_| 25 * MS);
    let connections = came.iter().map(|(_, connection, _)| connection).collect::<std::collections::BTreeSet<_>>();
    assert!((2..=4).contains(&connections.len()), "{} connections", connections.len());
}
