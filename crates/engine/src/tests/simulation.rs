//! Random floods against random peers in made-up time: peers drain, refuse, stand still, close, reset, lower their limits; bytes are cut
//! anywhere; brunt stands still. Whatever happens, what is owed to every call holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan, Stop};
use brunt_plan::random::mix;
use brunt_record::catalogue::{Counter, Timing};

use super::multiplexed::registry;
use super::virtual_net::{Act, Peer, Reaction, VirtualNet};
use super::{MS, SECOND_NS, Seconds, judged, plan};
use crate::StopHandle;
use crate::run::{self, Given};

/// Choices that a seed makes.
struct Choices(u64);

impl Choices {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0.wrapping_mul(0x9e37_79b9)) % most
    }

    /// Once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// A connection as the peer sees it.
#[derive(Default)]
struct Conversation {
    partial: String,
    /// The last request that it takes, once it is leaving.
    last: Option<u32>,
    /// When its last answer is sent.
    busy_until: u64,
}

struct RandomPeer {
    choices: Choices,
    /// Whether it ends connections without losing a call, and does nothing else to them.
    is_graceful: bool,
    conversations: BTreeMap<u64, Conversation>,
    /// When it takes no connections, and when it answers nothing.
    away: std::ops::Range<u64>,
    still: std::ops::Range<u64>,
    processed: Arc<AtomicU64>,
}

impl RandomPeer {
    fn say(after: u64, text: String) -> (u64, Act) {
        (after, Act::Send(text.into_bytes()))
    }

    /// What a request with this id gets, on a connection that is to stay or to go.
    fn process(&mut self, connection: u64, id: u32, now: u64) -> Reaction {
        let takes = 100_000 + self.choices.below(20) * MS;
        let wait = if self.still.contains(&now) { self.still.end - now } else { 0 };
        let conversation = self.conversations.entry(connection).or_default();
        conversation.busy_until = conversation.busy_until.max(now + wait + takes);
        let busy = conversation.busy_until - now;
        let mut acts = vec![Self::say(wait + takes, format!("A{id}."))];
        if self.choices.once_in(25) {
            conversation.last = Some(id);
            let at = self.choices.below(3) * MS;
            if self.choices.once_in(2) {
                acts.push(Self::say(at, "G1000000.".to_owned()));
            }
            acts.push(Self::say(at + 2 * MS, format!("G{id}.")));
            acts.push((busy.max(at + 2 * MS) + 50 * MS, Act::Close));
        } else if self.choices.once_in(20) {
            let limit = self.choices.below(6);
            acts.push(Self::say(MS, format!("L{limit}.")));
            acts.push(Self::say((5 + self.choices.below(40)) * MS, format!("L{}.", limit + 1)));
        } else if !self.is_graceful && self.choices.once_in(30) {
            let end = if self.choices.once_in(2) { Act::Reset } else { Act::Close };
            acts.push((self.choices.below(30) * MS, end));
        } else if !self.is_graceful && self.choices.once_in(40) {
            // Half of an answer, and the end.
            acts = vec![Self::say(MS, "A".to_owned()), (MS, Act::Close)];
        }
        acts
    }
}

impl Peer for RandomPeer {
    fn connecting(&mut self, now: u64) -> Reaction {
        match self.away.contains(&now) {
            true if self.choices.once_in(4) => vec![],
            true => vec![(self.choices.below(3) * MS, Act::Refuse)],
            false => vec![(50_000 + self.choices.below(2) * MS, Act::Accept)],
        }
    }

    fn received(&mut self, connection: u64, bytes: &[u8], now: u64) -> Reaction {
        let mut reaction = Vec::new();
        let conversation = self.conversations.entry(connection).or_default();
        conversation.partial.push_str(std::str::from_utf8(bytes).unwrap());
        let whole = conversation.partial.rfind('.').map_or(0, |end| end + 1);
        let frames: String = conversation.partial.drain(..whole).collect();
        for frame in frames.split_terminator('.') {
            let Some(id) = frame.strip_prefix('Q').map(|id| id.parse().unwrap()) else { continue };
            let last = self.conversations.get(&connection).and_then(|conversation| conversation.last);
            if last.is_none_or(|last| id <= last) {
                self.processed.fetch_add(1, Ordering::Relaxed);
                reaction.extend(self.process(connection, id, now));
            }
        }
        reaction
    }
}

/// A random plan: what is asked of whom, how, and for how long.
fn random_plan(choices: &mut Choices) -> Plan {
    let most = 1 + choices.below(6) as u32;
    let load = match choices.below(3) {
        0 => Load::Closed {},
        _ => Load::Open { profile: format!("{}", 50 + choices.below(600)).parse().unwrap(), arrivals: Spread::Poisson },
    };
    let grows = choices.once_in(2) && matches!(load, Load::Open { .. });
    let stop = match choices.below(3) {
        0 => Stop { duration_ns: None, requests: Some(50 + choices.below(300)) },
        _ => Stop { duration_ns: Some((300 + choices.below(900)) * MS), requests: None },
    };
    let reconnect = choices.once_in(8);
    Plan {
        load,
        stop,
        connections: if grows { Connections::UpTo(most.max(2)) } else { Connections::Fixed(most.max(2)) },
        workers: 1 + choices.below(2) as u32,
        pipeline: if reconnect { 1 } else { 1 + choices.below(10) as u32 },
        reconnect,
        timeout_ns: 150 * MS,
        connect_timeout_ns: 100 * MS,
        drain_ns: 400 * MS,
        seed: choices.below(1000),
        ..plan("mux://127.0.0.1/")
    }
}

fn simulate(seed: u64, is_graceful: bool) {
    let mut choices = Choices(seed << 20);
    let plan = random_plan(&mut choices);
    let window = |choices: &mut Choices| {
        let from = SECOND_NS + choices.below(900) * MS;
        if is_graceful || choices.once_in(3) { 0..0 } else { from..from + choices.below(400) * MS }
    };
    let (away, still) = (window(&mut choices), window(&mut choices));
    let processed = Arc::default();
    let stalls = (!is_graceful && choices.once_in(2)).then(|| SECOND_NS + choices.below(800) * MS);
    let piece = [1, 3, 8, usize::MAX][choices.below(4) as usize];
    let peer = RandomPeer {
        choices,
        is_graceful,
        conversations: BTreeMap::new(),
        away,
        still,
        processed: Arc::clone(&processed),
    };
    let mut net = VirtualNet::new(peer).in_pieces_of(piece);
    if let Some(at) = stalls {
        net = if seed.is_multiple_of(2) { net.standing_still(at, 250 * MS) } else { net.interrupted_at(at, 250 * MS) };
    }
    let stop = StopHandle::default();
    let (registry, part) = (registry(), crate::Part::whole(plan.workers));
    let given =
        Given { machine: &net, part, registry: &registry, scripts: &brunt_lua::LuaJit, stop: &stop, trace: None };
    let summary = judged(run::run(&plan, given, &mut Seconds::default()).unwrap());
    check(&plan, &summary, &net, seed);
    let Summary { total, .. } = &summary;
    if is_graceful && !plan.reconnect {
        let lost = total.failures.total() + total.numbers.get(Counter::Unfinished);
        let ended = total.statuses.total() + lost;
        let processed = processed.load(Ordering::Relaxed);
        assert!(processed <= ended, "seed {seed}: {processed} processed, {ended} ended: {total:#?}");
    }
}

/// What holds after any run.
fn check(plan: &Plan, summary: &Summary, net: &VirtualNet<RandomPeer>, seed: u64) {
    let Summary { total, .. } = summary;
    let due = total.numbers.get(Counter::Due);
    assert_eq!(due, total.ended(), "seed {seed}: due is the sum of outcomes: {total:#?}");
    assert_eq!(total.times.get(Timing::Response).count(), due, "seed {seed}: each call has one outcome");
    let asked = plan.connections.most().max(plan.workers) as usize;
    assert!(net.most_sockets() <= 2 * asked, "seed {seed}: {} sockets for {asked}", net.most_sockets());
    if let Some(requests) = plan.stop.requests {
        assert!(due <= requests, "seed {seed}");
    }
    assert!(summary.run.measured_ns < 60 * SECOND_NS, "seed {seed}: every wait has an end");
}

#[test]
fn whatever_peers_do_every_call_has_one_outcome() {
    (0..400).for_each(|seed| simulate(seed, false));
}

#[test]
fn a_graceful_peer_processes_each_call_once() {
    (0..200).for_each(|seed| simulate(1_000_000 + seed, true));
}
