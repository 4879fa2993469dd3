use std::ops::ControlFlow;
use std::sync::mpsc::channel;

use brunt_engine::{Observer, RunningTotal};
use brunt_plan::arrivals::{Arrivals, Spread};
use brunt_plan::plan::{Load, ProtocolOptions, Stop};
use brunt_plan::target::Url;
use brunt_protocol::scenario::Value;
use brunt_record::live::Live;
use brunt_record::recording::Recording;
use proptest::prelude::*;

use super::super::{AHEAD_BRIEFLY_NS, AHEAD_NS};
use brunt_plan::share::Portion;
use brunt_record::agents::AgentPart;
use brunt_record::catalogue::Timing;
use brunt_record::figures::Figures;
use brunt_record::snapshot::Snapshot;

use super::*;
use crate::ledger::Ledger;

const MS: u64 = 1_000_000;
/// How long words take, and how long an agent is silent when it is found lost.
const UNDERWAY_NS: u64 = 60 * MS;
const SILENT_NS: u64 = 3_000 * MS;

struct Nobody;

impl Observer for Nobody {
    fn second(&mut self, _second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<String> {
        ControlFlow::Continue(())
    }
}

/// One part of a simulated agent: the calls that are its own, and the second that it reports next.
struct Part {
    number: u32,
    arrivals: Vec<Arrivals>,
    next: u64,
}

/// An agent that answers every call that is due, and reports each second.
struct Agent {
    parts: Vec<Part>,
    ledger: Ledger,
    dies_at: u64,
    taken: u32,
    has_ended: bool,
    /// What it sends, as the target counts it.
    sends: Vec<Arrivals>,
}

fn plan(profile: &str, spread: Spread, duration_ns: u64) -> Plan {
    let target = Url::parse("http://127.0.0.1/").unwrap().target;
    let load = Load::Open { profile: profile.parse().unwrap(), arrivals: spread };
    let stop = Stop { duration_ns: Some(duration_ns), requests: None };
    Plan { load, stop, seed: 5, connections: 500.into(), ..Plan::of_calls(target, ProtocolOptions::default()) }
}

fn arrivals(plan: &Plan, portion: Portion, after_ns: u64) -> Vec<Arrivals> {
    let Load::Open { profile, arrivals } = &plan.load else { panic!("{plan:?}") };
    let of = |share| {
        let mut of_share = Arrivals::new(profile.clone(), *arrivals, share, plan.seed, None);
        of_share.pass(after_ns);
        of_share
    };
    portion.shares().map(of).collect()
}

impl Agent {
    fn begin(&mut self, plan: &Plan, number: u32, portion: Portion, after_ns: u64) {
        self.ledger.begin(number, (number > 0).then_some(after_ns / SECOND_NS));
        let next = after_ns / SECOND_NS;
        self.sends.extend(arrivals(plan, portion, after_ns));
        self.parts.push(Part { number, arrivals: arrivals(plan, portion, after_ns), next });
    }

    /// What it says at `now`: the seconds that are over, and its end once they all are.
    fn says(&mut self, now: u64, duration_ns: u64) -> Vec<FromAgent> {
        let mut seconds = Vec::new();
        for part in &mut self.parts {
            while (part.next + 1) * SECOND_NS <= now.min(duration_ns) {
                let end = (part.next + 1) * SECOND_NS;
                let due: u64 = part.arrivals.iter_mut().map(|arrivals| arrivals.pass(end)).sum();
                let mut snapshot = Snapshot::with_numbers([(Counter::Due, due)]);
                (0..due).for_each(|_| snapshot.statuses.record(200));
                snapshot.times.record_n(Timing::Response, 1, due);
                let (second, length_ns) = (part.next, SECOND_NS);
                let interval = Interval {
                    worker: 0,
                    phase: Phase::Measured,
                    second,
                    length_ns,
                    snapshot,
                    open_connections: 0,
                    in_flight: 0,
                    oldest_ns: 0,
                };
                part.next += 1;
                seconds.extend(self.ledger.add(part.number, interval));
            }
        }
        let has_ended = now >= duration_ns && !self.has_ended;
        if has_ended {
            self.has_ended = true;
            for part in self.parts.drain(..) {
                seconds.extend(self.ledger.end(part.number));
            }
        }
        let mut says: Vec<_> =
            seconds.into_iter().map(|one| FromAgent::Second { run: 1, interval: Box::new(one) }).collect();
        if has_ended {
            let ended = Ended { measured_ns: duration_ns, ..Ended::default() };
            says.push(FromAgent::Finished { run: 1, ended, taken: self.taken });
        }
        says
    }
}

/// Runs `plan` over simulated agents. Agent `i` dies at `deaths[i]`, in nanoseconds, or never. With how many calls reached the target.
fn carry_out(plan: &Plan, workers: &[u32], deaths: &[u64], on_lost: OnLost) -> (Recording, u64) {
    let (reports, reported) = channel();
    let of = workers.iter().sum();
    let duration_ns = plan.duration_ns().unwrap();
    let (mut agents, mut in_run, mut first) = (Vec::new(), Vec::new(), 0);
    for (place, count) in workers.iter().enumerate() {
        let portion = Portion::new(first, *count, of).unwrap();
        first += count;
        let part = AgentPart::new(&format!("a{place}"), "0", 1, *count, workers.len());
        in_run.push(InRun::new(part, portion, place, plan));
        let dies_at = deaths.get(place).copied().unwrap_or(u64::MAX);
        let (parts, ledger, sends) = (Vec::new(), Ledger::default(), Vec::new());
        let mut agent = Agent { parts, ledger, dies_at, taken: 0, has_ended: false, sends };
        agent.begin(plan, 0, portion, 0);
        agents.push(agent);
    }
    let begun = Begun { plan: plan.clone(), given: Value::Nil, counted: Figures::default(), at: 0, agents: in_run };
    let mut running = InProgress::new(1, begun, on_lost, reports.clone());
    let stop = StopHandle::default();
    // What is under way to agents and from them, and when it arrives.
    let mut to_agents: Vec<(u64, usize, LeftWork)> = Vec::new();
    let mut from_agents: Vec<(u64, usize, FromAgent)> = Vec::new();
    let mut now = 0;
    while !running.is_over() {
        now += 20 * MS;
        assert!(now < duration_ns + 60_000 * MS, "the run does not end");
        for (place, agent) in agents.iter_mut().enumerate().filter(|(_, agent)| now < agent.dies_at) {
            to_agents.retain(|(at, to, work)| {
                if *to != place || *at > now {
                    return true;
                }
                agent.taken += 1;
                let number = work.number;
                if agent.has_ended {
                    from_agents.push((
                        now + UNDERWAY_NS,
                        place,
                        FromAgent::Declined { run: 1, number, problem: String::new() },
                    ));
                } else {
                    agent.begin(plan, number, work.portion, work.after_ns);
                    from_agents.push((now + UNDERWAY_NS, place, FromAgent::Took { run: 1, number }));
                }
                false
            });
            let says = agent.says(now, duration_ns);
            from_agents.extend(says.into_iter().map(|words| (now + UNDERWAY_NS, place, words)));
        }
        for (_, place, words) in from_agents.extract_if(.., |(at, ..)| *at <= now) {
            running.take(place, words, None, &stop, now).unwrap();
        }
        for (place, agent) in agents.iter().enumerate() {
            if now >= agent.dies_at.saturating_add(SILENT_NS) {
                running.gone(place);
                let ahead_ns = if on_lost == OnLost::Continue { AHEAD_NS } else { AHEAD_BRIEFLY_NS };
                running.lose(place, "it died", on_lost, now, Some(agent.dies_at + ahead_ns));
            }
        }
        running.go_on_without(now);
        let left = std::mem::take(&mut running.left_work);
        to_agents.extend(left.into_iter().map(|(place, work)| (now + UNDERWAY_NS, place, work)));
    }
    running.finish_lost();
    let parts: Vec<_> = running.begun.agents.into_iter().map(|agent| agent.part).collect();
    drop(reports);
    let names: Vec<_> = parts.iter().map(|part| part.name.clone()).collect();
    let control = brunt_engine::Control::default();
    let who = brunt_engine::Agents { names: &names, counted: &Figures::default() };
    let mut run = brunt_engine::gather(plan, who, &reported, &mut Nobody, &control, &stop, 0);
    run.agents = parts;
    let sent = agents.into_iter().map(|agent| {
        let until = agent.dies_at.min(duration_ns);
        agent.sends.into_iter().map(|mut arrivals| arrivals.pass(until)).sum::<u64>()
    });
    (run, sent.sum())
}

fn whole(plan: &Plan, until_ns: u64) -> u64 {
    arrivals(plan, Portion::whole(1), 0).iter_mut().map(|all| all.pass(until_ns)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whoever dies and when, those who took over too: every call of the run is due once, and made, unsent or unknown. No call is unsent
    /// that the target has counted.
    #[test]
    fn the_sums_close_whoever_is_lost(
        poisson: bool, workers in prop::collection::vec(1_u32..4, 2..6),
        deaths in prop::collection::vec(prop::option::of(100_u64..14_000), 5), reassigns: bool,
    ) {
        let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
        let plan = plan("100..300/12s", spread, 12 * SECOND_NS);
        let on_lost = if reassigns { OnLost::Reassign } else { OnLost::Continue };
        let mut deaths: Vec<u64> = deaths.into_iter().map(|at| at.map_or(u64::MAX, |ms| ms * MS)).collect();
        // One is left.
        deaths[0] = u64::MAX;
        let (run, counted) = carry_out(&plan, &workers, &deaths, on_lost);
        let total = &run.measured;
        let of = |counter| total.numbers.get(counter);
        let sum = total.statuses.total() + of(Counter::Unsent) + of(Counter::Unknown);
        prop_assert_eq!(total.numbers.get(Counter::Due), whole(&plan, 12 * SECOND_NS));
        prop_assert_eq!(of(Counter::Due), sum);
        prop_assert!(total.statuses.total() <= counted && counted <= of(Counter::Due) - of(Counter::Unsent), "{}", counted);
        prop_assert_eq!(total.numbers.get(Counter::Unsent), total.numbers.get(Counter::UnsentLost));
        prop_assert_eq!(total.times.bounds(Timing::Response).count(), of(Counter::Unsent) + of(Counter::Unknown));
        let of_agents = |of: fn(&Snapshot) -> u64| run.agents.iter().map(|agent| of(&agent.measured)).sum::<u64>();
        prop_assert_eq!(of_agents(Snapshot::due), total.numbers.get(Counter::Due));
        prop_assert_eq!(of_agents(|one| one.numbers.get(Counter::Unsent)), total.numbers.get(Counter::Unsent));
        let due: u64 = run.series.points().iter().map(|point| point.numbers.get(Counter::Due)).sum();
        prop_assert_eq!((due, run.series.points().len()), (total.numbers.get(Counter::Due), 12));
    }
}

#[test]
fn only_the_calls_until_the_takeover_are_not_made() {
    let plan = plan("100", Spread::Uniform, 20 * SECOND_NS);
    let (run, _) = carry_out(&plan, &[1, 1, 1, 1], &[5_500 * MS, u64::MAX, 11_100 * MS], OnLost::Reassign);
    assert_eq!(run.measured.numbers.get(Counter::Due), 2000);
    let gap = |place: usize| {
        let AgentEnd::Lost { after_ns, taken_over_ns, .. } = &run.agents[place].ended else { panic!("{place}") };
        (taken_over_ns.unwrap() - after_ns) as f64 / 1e9
    };
    // Found lost 3 s after its death, taken over 0.6 s later; what it did since its last second is not known.
    assert!((4.0..4.2).contains(&gap(0)) && (3.6..3.8).contains(&gap(2)), "{} {}", gap(0), gap(2));
    // The second one had its own calls and a third of the first one's.
    let expected = 25.0 * gap(0) + 25.0 * (1.0 + 1.0 / 3.0) * gap(2);
    let of = |counter| run.measured.numbers.get(counter) as f64;
    let (unsent, unknown) = (of(Counter::Unsent), of(Counter::Unknown));
    assert!((unsent + unknown - expected).abs() <= 4.0, "{unsent} {unknown} {expected}");
    // From 3.5 s after its death on it has sent nothing.
    assert!((unknown - 25.0 * 4.0 - 25.0 * (1.0 + 1.0 / 3.0) * 3.6).abs() <= 4.0, "{unknown}");
    let last = run.series.points().last().unwrap();
    assert_eq!((last.numbers.get(Counter::Due), last.ended()), (100, 100));
}
