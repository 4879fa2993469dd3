//! Random floods and users against random peers in made-up time: peers drain, refuse, stand still, read nothing, close, reset, lower their
//! limits; bytes are cut anywhere; brunt stands still at any step and hears of sockets to which nothing has happened. After each step the
//! worker holds itself against the rules (`network/audit.rs`, `flood/audit.rs`); after each run what is owed to every call holds.
//!
//! `BRUNT_SEEDS=1000` runs more seeds than the few that each `cargo test` has; `make test` does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_plan::random::mix;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use brunt_record::recording::Ending;

use super::multiplexed::{registry, scenario};
use super::replay::Log;
use super::{MS, SECOND_NS, Seconds, judged, mutations, plan, run_part_on};
use brunt_engine::Finished;
use brunt_engine::simulated::{self, Act, Peer, Reaction, VirtualNet};
use brunt_lua::LuaJit;
use brunt_protocol::replay::WorkerReplay;
use brunt_record::time::Tick;

/// How many seeds a plain `cargo test` tries of each kind.
const FEW_SEEDS: u64 = 100;

/// Choices that a seed makes.
#[derive(Clone, Copy)]
struct Choices(u64);

impl Choices {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0.wrapping_mul(0x9e37_79b9)) % most
    }

    /// True once in this many times, at random.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A random time of up to this many milliseconds, which no other event has.
    fn ms(&mut self, most: u64) -> u64 {
        self.below(most * MS) + 1_000
    }
}

/// A peer's capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manners {
    /// The peer ends connections without losing a call, and makes no other trouble.
    Graceful,
    /// The peer ends connections in any way, garbles answers and stops reading; it neither turns calls away nor limits
    /// them.
    Rude,
    /// Anything.
    Any,
}

/// A connection as the peer sees it.
#[derive(Default)]
struct Conversation {
    partial: String,
    /// The last request that the peer accepts, once it is leaving.
    last: Option<u32>,
    /// Whether the peer sends no more.
    is_over: bool,
    /// When the peer's last answer is sent.
    busy_until: u64,
}

struct RandomPeer {
    seed: u64,
    manners: Manners,
    conversations: BTreeMap<u64, Conversation>,
    attempts: u64,
    /// When the peer accepts no connections, and when it does not answer.
    away: std::ops::Range<u64>,
    still: std::ops::Range<u64>,
    processed: Arc<AtomicU64>,
}

impl RandomPeer {
    fn say(after: u64, text: String) -> (u64, Act) {
        (after, Act::Send(text.into_bytes()))
    }

    /// The peer's random choices. They depend on the request and its connection alone, and not on how bytes were split.
    fn choices(&self, connection: u64, id: u32) -> Choices {
        Choices(mix(self.seed ^ connection << 24 ^ u64::from(id)))
    }

    /// The reaction to a request with this id, on a connection that is to stay or to go.
    fn process(&mut self, connection: u64, id: u32, now: u64) -> Reaction {
        let mut choices = self.choices(connection, id);
        let takes = 100_000 + choices.ms(20);
        let wait = if self.still.contains(&now) { self.still.end - now } else { 0 };
        let Some(conversation) = self.conversations.get_mut(&connection) else { return vec![] };
        conversation.busy_until = conversation.busy_until.max(now + wait + takes);
        let busy = conversation.busy_until - now;
        let answer = Self::say(wait + takes, format!("A{id}."));
        if choices.once_in(25) && self.manners != Manners::Rude {
            conversation.last = Some(id);
            return Self::leave(&mut choices, answer, id, busy);
        }
        match choices.below(if self.manners == Manners::Graceful { 80 } else { 160 }) {
            0..4 if self.manners != Manners::Rude => {
                let limit = choices.below(6);
                let later = 5 * MS + choices.ms(40);
                vec![
                    answer,
                    Self::say(choices.ms(2), format!("L{limit}.")),
                    Self::say(later, format!("L{}.", limit + 1)),
                ]
            }
            // The last answer; requests behind it are not processed.
            4..6 => {
                conversation.last = Some(id);
                let last = busy + MS;
                vec![Self::say(last, format!("C{id}.")), (last, Act::Close)]
            }
            80..85 => {
                let end = if choices.once_in(2) { Act::Reset } else { Act::Close };
                vec![answer, (choices.ms(30), end)]
            }
            // Half of an answer, and the end.
            85..88 => {
                let at = choices.ms(3);
                vec![Self::say(at, "A".to_owned()), (at + MS, Act::Close)]
            }
            // The peer reads nothing for a while, or forever.
            88..94 => {
                let again = if choices.once_in(4) { None } else { Some((choices.ms(300), Act::Reading(true))) };
                [answer, (choices.ms(1), Act::Reading(false))].into_iter().chain(again).collect()
            }
            94..96 => vec![],
            96..98 => {
                conversation.is_over = true;
                vec![Self::say(choices.ms(2), "?0.".to_owned())]
            }
            _ => vec![answer],
        }
    }

    /// The limit on calls in flight that the peer names before any call.
    fn greeted_limit(&self, choices: &mut Choices) -> u64 {
        if self.manners == Manners::Rude { 1_000 } else { 1 + choices.below(6) }
    }

    /// The ways in which a peer takes no more on a connection.
    fn leave(choices: &mut Choices, answer: (u64, Act), id: u32, busy: u64) -> Reaction {
        let at = choices.ms(3);
        let done = busy.max(at + 2 * MS);
        match choices.below(4) {
            // At once, or in two steps (RFC 9113 §6.8).
            0 => vec![answer, Self::say(at, format!("G{id}.")), (done + 50 * MS, Act::Close)],
            1 => {
                let first = Self::say(at, "G1000000.".to_owned());
                vec![answer, first, Self::say(at + 2 * MS, format!("G{id}.")), (done + 50 * MS, Act::Close)]
            }
            // An error after the last answer, and the end with it or soon after.
            2 => vec![answer, Self::say(done, format!("E{id}.")), (done, Act::Close)],
            _ => vec![answer, Self::say(done, format!("E{id}.")), (done + MS, Act::Close)],
        }
    }
}

impl Peer for RandomPeer {
    fn connecting(&mut self, now: Tick) -> Reaction {
        self.attempts += 1;
        let mut choices = Choices(mix(self.seed.wrapping_add(self.attempts)));
        match self.away.contains(&now.ns()) {
            true if choices.once_in(4) => vec![],
            true => vec![(choices.ms(3), Act::Refuse)],
            false => {
                let at = choices.ms(2);
                let first = match choices.below(24) {
                    // The peer speaks first, together with the connection or a little later.
                    0..6 => Some(Self::say(at, format!("L{}.", self.greeted_limit(&mut choices)))),
                    6..8 => Some(Self::say(at + choices.ms(1), format!("L{}.", self.greeted_limit(&mut choices)))),
                    // The peer closes or resets it at once.
                    8 if self.manners == Manners::Any => Some((at, Act::Close)),
                    9 if self.manners == Manners::Any => Some((at, Act::Reset)),
                    _ => None,
                };
                [(at, Act::Accept)].into_iter().chain(first).collect()
            }
        }
    }

    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let mut reaction = Vec::new();
        let conversation = self.conversations.entry(connection).or_default();
        conversation.partial.push_str(std::str::from_utf8(bytes).unwrap());
        let whole = conversation.partial.rfind('.').map_or(0, |end| end + 1);
        let frames: String = conversation.partial.drain(..whole).collect();
        for frame in frames.split_terminator('.') {
            if frame == "S0" {
                let mut choices = self.choices(connection, 0);
                let limit = if self.manners == Manners::Rude { 1_000 } else { choices.below(4) };
                reaction.push(Self::say(choices.ms(2), format!("L{limit}.H0.")));
                reaction.push(Self::say(3 * MS + choices.ms(60), format!("L{}.", limit + 2)));
                continue;
            }
            let Some(id) = frame.strip_prefix('Q').map(|id| id.parse().unwrap()) else { continue };
            let conversation = self.conversations.get(&connection).unwrap();
            if conversation.is_over || conversation.last.is_some_and(|last| id > last) {
                continue;
            }
            let mut choices = self.choices(connection, id);
            if choices.once_in(30) && self.manners != Manners::Rude {
                reaction.push(Self::say(choices.ms(4), format!("X{id}.")));
                continue;
            }
            self.processed.fetch_add(1, Ordering::Relaxed);
            reaction.extend(self.process(connection, id, now.ns()));
        }
        reaction
    }
}

/// A random plan of a flood: load, connections, limits and length; and the number of connections.
fn random_flood(choices: &mut Choices) -> (Plan, usize) {
    let most = 1 + choices.below(6) as u32;
    let load = match choices.below(3) {
        0 => Load::Closed {},
        _ => Load::Open { profile: format!("{}", 50 + choices.below(600)).parse().unwrap(), arrivals: Spread::Poisson },
    };
    let grows = choices.once_in(2) && matches!(load, Load::Open { .. });
    let stop = match choices.below(3) {
        0 => StopRule { duration_ns: None, requests: Some(50 + choices.below(300)) },
        _ => StopRule { duration_ns: Some((300 + choices.below(900)) * MS), requests: None },
    };
    let reconnect = choices.once_in(8);
    let most = most.max(2);
    let plan = Plan {
        load,
        stop,
        connections: if grows { Connections::UpTo(most) } else { Connections::Fixed(most) },
        workers: if choices.once_in(4) { 2 } else { 1 },
        pipeline: if reconnect { 1 } else { 1 + choices.below(10) as u32 },
        reconnect,
        timeout_ns: 150 * MS,
        connect_timeout_ns: 100 * MS,
        drain_ns: 400 * MS,
        seed: choices.below(1000),
        ..plan(["mux://127.0.0.1/", "mux://127.0.0.1/safe", "mux://127.0.0.1/safe-open"][choices.below(3) as usize])
    };
    (plan, most as usize)
}

/// The same on one worker, with all its connections from the beginning: otherwise the number of new ones would depend
/// on how events coincide.
fn random_fixed_flood(choices: &mut Choices) -> (Plan, usize) {
    let (plan, asked) = random_flood(choices);
    let stop = StopRule { duration_ns: None, requests: Some(50 + choices.below(300)) };
    (Plan { workers: 1, connections: Connections::Fixed(asked as u32), stop, ..plan }, asked)
}

/// As many calls as the connections carry at once: all are sent before the first answer comes.
fn random_volley(choices: &mut Choices) -> (Plan, usize) {
    let (plan, asked) = random_flood(choices);
    let requests = Some(u64::from(plan.pipeline) * asked as u64);
    let (load, stop) = (Load::Closed {}, StopRule { duration_ns: None, requests });
    let connections = Connections::Fixed(asked as u32);
    // Calls that may be made twice are, on a connection of their own.
    let url = "mux://127.0.0.1/";
    (Plan { load, stop, connections, workers: 1, reconnect: false, target: self::plan(url).target, ..plan }, asked)
}

/// The same for users, who share connections or have their own.
fn random_users(choices: &mut Choices) -> (Plan, usize) {
    let (users, iterations) = (1 + choices.below(12), 5 + choices.below(30));
    let keep_alive = ["true", "false", "'iteration'"][choices.below(3) as usize];
    let (pool, asked) = match (choices.once_in(3), 1 + choices.below(4)) {
        (true, most) => (format!("connections = {most}, keep_alive = {keep_alive}"), users * most),
        (false, most) => {
            let keep_alive = keep_alive != "false";
            (format!("pool = {most}, pipeline = {}, keep_alive = {keep_alive}", 1 + choices.below(8)), most)
        }
    };
    // Several at once, so that some wait for a connection.
    let calls = match choices.below(6) {
        tasks @ 2.. => format!("for _ = 1, {tasks} do brunt.spawn(function() mux:call {{}} end) end brunt.wait()"),
        _ => "mux:call {}".to_owned(),
    };
    let injected = match choices.below(6) {
        0 => format!("brunt.rate({iterations}, '1s'), most_alive = {users}, reuse_users = true, grace = '100ms'"),
        1 => format!("brunt.ramp_users({users}, 0, '1s'), grace = '100ms', ramp_down_grace = '50ms'"),
        2 => format!(
            "brunt.iterations_shared({users}, {}), start = '50ms', longest = '300ms', grace = 0",
            iterations.max(users)
        ),
        _ => format!("brunt.iterations_each({users}, {iterations})"),
    };
    let script = format!(
        "local brunt = require 'brunt'
         local mux = brunt.mux {{ base = 'mux://127.0.0.1', {pool} }}
         brunt.scenario('s', function() {calls} end):inject {{ {injected} }}"
    );
    let plan = scenario(&script);
    let plan = Plan { timeout_ns: 150 * MS, connect_timeout_ns: 100 * MS, drain_ns: 400 * MS, ..plan };
    (plan, asked as usize)
}

/// A random log of sessions and of calls without one, over few connections; and their number.
fn random_log(choices: &mut Choices) -> (Plan, Vec<Box<dyn WorkerReplay>>, usize) {
    let (most, sessions) = (1 + choices.below(5) as u32, 1 + choices.below(8));
    let calls: Vec<_> = (0..20 + choices.below(150))
        .scan(0, |due, _| {
            *due += choices.below(12) * MS;
            Some((*due, (!choices.once_in(5)).then(|| choices.below(sessions))))
        })
        .collect();
    let mut replay = brunt_plan::replay::LogReplay::new("a.log", "combined");
    replay.think = choices.once_in(3);
    let plan = Plan {
        load: Load::Replay(Box::new(replay)),
        stop: StopRule::default(),
        connections: Connections::UpTo(most),
        timeout_ns: 150 * MS,
        connect_timeout_ns: 100 * MS,
        drain_ns: 400 * MS,
        ..plan(["mux://127.0.0.1/", "mux://127.0.0.1/open"][choices.below(2) as usize])
    };
    (plan, Log::of(calls), most as usize)
}

/// The differences between runs of one seed.
#[derive(Debug, Clone, Copy)]
struct Setting {
    manners: Manners,
    /// Whether the peer accepts no connections for a while, and does not answer for another.
    has_outages: bool,
    /// Whether brunt stands still at times, and sockets wake it for nothing.
    has_whims: bool,
    /// The most bytes that one write takes or one read gives; and that one read gives.
    piece: usize,
    read_piece: usize,
}

/// A run's outcome.
struct Simulated {
    plan: Plan,
    summary: Summary,
    processed: u64,
    steps: u64,
}

fn simulate(seed: u64, random_plan: fn(&mut Choices) -> (Plan, usize), setting: Setting) -> Simulated {
    let mut choices = Choices(seed << 20);
    let (plan, asked) = random_plan(&mut choices);
    let part = brunt_engine::RunShare::whole(plan.workers);
    carry_out(seed, choices, setting, plan, asked, |net, plan| {
        run_part_on(net, plan, part, &registry(), &mut Seconds::default())
    })
}

fn simulate_log(seed: u64, setting: Setting) -> Simulated {
    let mut choices = Choices(seed << 20);
    let (plan, logs, asked) = random_log(&mut choices);
    let part = brunt_engine::RunShare::whole(plan.workers);
    carry_out(seed, choices, setting, plan, asked, |net, plan| {
        mutations::break_what_is_asked();
        simulated::run_replay_part(net, plan, part, logs, &registry(), &LuaJit, &mut Seconds::default()).unwrap()
    })
}

/// Carries a plan out, which asks for so many connections, against a random peer.
fn carry_out(
    seed: u64,
    mut choices: Choices,
    setting: Setting,
    plan: Plan,
    asked: usize,
    run: impl FnOnce(&VirtualNet, &Plan) -> Finished,
) -> Simulated {
    let window = |choices: &mut Choices| {
        let from = SECOND_NS + choices.below(900) * MS;
        if !setting.has_outages || choices.once_in(3) {
            return 0..0;
        }
        from..from + choices.below(400) * MS
    };
    let (away, still) = (window(&mut choices), window(&mut choices));
    let processed = Arc::default();
    let peer = RandomPeer {
        seed: mix(seed),
        manners: setting.manners,
        conversations: BTreeMap::new(),
        attempts: 0,
        away,
        still,
        processed: Arc::clone(&processed),
    };
    let mut net = VirtualNet::new(peer).in_pieces_of(setting.piece).read_in_pieces_of(setting.read_piece);
    if setting.has_whims {
        let at = SECOND_NS + choices.below(800) * MS;
        net = if seed.is_multiple_of(2) {
            net.standing_still(Tick::from_ns(at), 250 * MS)
        } else {
            net.interrupted_at(Tick::from_ns(at), 250 * MS)
        };
        net = net.with_whims(mix(!seed));
    }
    let summary = judged(run(&net, &plan));
    let simulated = Simulated { summary, processed: processed.load(Ordering::Relaxed), steps: net.steps(), plan };
    let sockets = net.most_sockets();
    assert!(sockets <= 2 * asked, "{sockets} sockets for {asked}");
    check(&simulated);
    simulated
}

/// Checks what holds after any run.
fn check(simulated: &Simulated) {
    let Simulated { plan, summary, .. } = simulated;
    let Summary { total, .. } = summary;
    assert_eq!(summary.run.ending, Ending::Completed, "no worker has failed, and none waits for ever");
    let due = total.numbers.get(Counter::Due);
    assert_eq!(due, total.ended(), "due is the sum of outcomes: {total:#?}");
    assert_eq!(total.times.get(Timing::Response).count(), due, "each call has one outcome");
    if let Some(requests) = plan.stop.requests {
        assert!(due <= requests);
    }
    assert!(summary.run.measured_ns < 60 * SECOND_NS, "every wait has an end");
}

/// Runs `test` for each seed, and names a seed that fails. Returns the number of steps.
fn for_seeds(test: impl Fn(u64) -> u64) -> u64 {
    struct Named(u64);
    impl Drop for Named {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("seed {}", self.0);
            }
        }
    }
    let asked = std::env::var("BRUNT_SEEDS").ok();
    let seeds = asked.map_or(FEW_SEEDS, |seeds| seeds.parse().expect("BRUNT_SEEDS is a number of seeds"));
    let first = std::env::var("BRUNT_SEED").ok().map_or(0, |seed| seed.parse().expect("BRUNT_SEED is a seed"));
    let mut steps = 0;
    for seed in first..first + seeds {
        let _named = Named(seed);
        steps += test(seed);
    }
    eprintln!("{steps} steps over {seeds} seeds");
    steps
}

/// How bytes are cut in the runs of a seed.
fn piece(seed: u64) -> usize {
    [1, 3, 8, usize::MAX][(seed % 4) as usize]
}

const WHOLE: Setting =
    Setting { manners: Manners::Any, has_outages: true, has_whims: false, piece: usize::MAX, read_piece: usize::MAX };
const GRACEFUL: Setting = Setting { manners: Manners::Graceful, has_outages: false, ..WHOLE };
const RUDE: Setting = Setting { manners: Manners::Rude, ..GRACEFUL };

#[test]
fn whatever_peers_do_every_call_has_one_outcome() {
    for_seeds(|seed| {
        let setting = Setting { has_whims: !seed.is_multiple_of(3), piece: piece(seed), ..WHOLE };
        simulate(seed, random_flood, setting).steps
    });
}

#[test]
fn whatever_peers_do_to_users_every_call_has_one_outcome() {
    for_seeds(|seed| {
        let setting = Setting { has_whims: !seed.is_multiple_of(3), piece: piece(seed), ..WHOLE };
        simulate(1_000_000 + seed, random_users, setting).steps
    });
}

#[test]
fn whatever_peers_do_to_sessions_every_call_has_one_outcome() {
    for_seeds(|seed| {
        let setting = Setting { has_whims: !seed.is_multiple_of(3), piece: piece(seed), ..WHOLE };
        simulate_log(7_000_000 + seed, setting).steps
    });
}

#[test]
fn a_graceful_peer_processes_each_call_once() {
    for_seeds(|seed| {
        let setting = Setting { piece: piece(seed), ..GRACEFUL };
        let simulated = simulate(2_000_000 + seed, random_flood, setting);
        let total = &simulated.summary.total;
        if !simulated.plan.reconnect {
            let lost = total.failures.total() + total.numbers.get(Counter::Unfinished);
            let ended = total.statuses.total() + lost;
            assert!(simulated.processed <= ended, "{} processed, {ended} ended: {total:#?}", simulated.processed);
            let closed = total.failures.reasons(Failure::Closed);
            let is_safe = simulated.plan.target.path.contains("safe");
            let is_refused = |reason: &str| reason.contains("refused") || reason.contains("turned the call away");
            let is_clean = closed.iter().all(|(reason, _)| is_refused(reason));
            assert!(is_clean || !is_safe, "nothing is lost: {closed:?}");
        }
        simulated.steps
    });
}

/// The same setting with the bytes of each read cut.
fn cut(setting: Setting, read_piece: usize) -> Setting {
    Setting { read_piece, ..setting }
}

/// The same setting with the bytes of each read and write cut, as if the rest had come later.
fn cut_in_time(setting: Setting, piece: usize) -> Setting {
    Setting { piece, ..setting }
}

#[test]
fn how_bytes_of_a_graceful_peer_are_cut_changes_no_outcome() {
    assert_cuts_change_nothing(3_000_000, random_fixed_flood, GRACEFUL, cut);
}

/// The same of a peer that also resets and garbles.
#[test]
fn how_bytes_of_a_rude_peer_are_cut_changes_no_outcome() {
    assert_cuts_change_nothing(4_000_000, random_fixed_flood, RUDE, cut);
}

/// Bytes that are cut in time change no outcome of calls that were sent before. Whether another call is sent depends on whether an end was
/// read together with the answer before it.
#[test]
fn how_bytes_are_cut_in_time_changes_no_outcome_of_calls_under_way() {
    assert_cuts_change_nothing(5_000_000, random_volley, GRACEFUL, cut_in_time);
    assert_cuts_change_nothing(6_000_000, random_volley, RUDE, cut_in_time);
}

fn assert_cuts_change_nothing(
    first: u64,
    random_plan: fn(&mut Choices) -> (Plan, usize),
    setting: Setting,
    cut: fn(Setting, usize) -> Setting,
) {
    for_seeds(|seed| {
        let outcomes = |piece| {
            let simulated = simulate(first + seed, random_plan, cut(setting, piece));
            let total = &simulated.summary.total;
            let unended = [Counter::Due, Counter::Unfinished, Counter::Unsent];
            let failures = |kind: &Failure| (*kind, format!("{:?}", total.failures.reasons(*kind)));
            let failures: Vec<_> = Failure::ALL.iter().map(failures).filter(|(_, reasons)| reasons != "[]").collect();
            let all = (total.statuses.total(), failures, unended.map(|counter| total.numbers.get(counter)));
            (all, simulated.steps)
        };
        let (whole, steps) = outcomes(usize::MAX);
        for piece in [1, 2, 5] {
            assert_eq!(outcomes(piece).0, whole, "in pieces of {piece}");
        }
        steps
    });
}
