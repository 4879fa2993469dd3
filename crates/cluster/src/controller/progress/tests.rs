use std::ops::ControlFlow;
use std::sync::mpsc::channel;

use brunt_engine::{Observer, RunningTotal};
use brunt_plan::arrivals::{Arrivals, Spread};
use brunt_plan::plan::{Load, ProtocolOptions, StopRule};
use brunt_plan::target::Url;
use brunt_protocol::scenario::Value;
use brunt_record::live::Live;
use brunt_record::recording::Recording;
use proptest::prelude::*;

use super::super::AHEAD_NS;
use brunt_plan::share::Portion;
use brunt_record::agents::AgentPart;
use brunt_record::catalogue::Timing;
use brunt_record::recording::LifecycleFigures;
use brunt_record::snapshot::Snapshot;

use super::*;

const MS: u64 = 1_000_000;
/// How long words take, and how long an agent is silent when it is found lost.
const UNDERWAY_NS: u64 = 60 * MS;
const SILENT_NS: u64 = 3_000 * MS;

struct Nobody;

impl Observer for Nobody {
    fn second(&mut self, _second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<brunt_engine::AbortCause> {
        ControlFlow::Continue(())
    }
}

/// An agent that answers every call that is due, and reports each second.
struct Agent {
    arrivals: Vec<Arrivals>,
    /// The second that it reports next.
    next: u64,
    dies_at: u64,
    has_ended: bool,
    /// What it sends, as the target counts it.
    sends: Vec<Arrivals>,
}

fn plan(profile: &str, spread: Spread, duration_ns: u64) -> Plan {
    let target = Url::parse("http://127.0.0.1/").unwrap().target;
    let load = Load::Open { profile: profile.parse().unwrap(), arrivals: spread };
    let stop = StopRule { duration_ns: Some(duration_ns), requests: None };
    Plan { load, stop, seed: 5, connections: 500.into(), ..Plan::of_calls(target, ProtocolOptions::default()) }
}

fn arrivals(plan: &Plan, portion: Portion) -> Vec<Arrivals> {
    let Load::Open { profile, arrivals } = &plan.load else { panic!("{plan:?}") };
    portion.shares().map(|share| Arrivals::new(profile.clone(), *arrivals, share, plan.seed, None)).collect()
}

impl Agent {
    /// What it says at `now`: the seconds that are over, and its end once they all are.
    fn says(&mut self, now: u64, duration_ns: u64) -> Vec<FromAgent> {
        let mut says = Vec::new();
        while (self.next + 1) * SECOND_NS <= now.min(duration_ns) {
            let end = (self.next + 1) * SECOND_NS;
            let due: u64 = self.arrivals.iter_mut().map(|arrivals| arrivals.pass(end)).sum();
            let mut snapshot = Snapshot::with_numbers([(Counter::Due, due)]);
            (0..due).for_each(|_| snapshot.statuses.record(200));
            snapshot.times.record_n(Timing::Response, 1, due);
            let interval = Interval {
                worker: 0,
                phase: Phase::Measured,
                second: self.next,
                length_ns: SECOND_NS,
                snapshot,
                open_connections: 0,
                in_flight: 0,
                oldest_ns: 0,
            };
            self.next += 1;
            says.push(FromAgent::Second { run: 1, interval: Box::new(interval) });
        }
        if now >= duration_ns && !self.has_ended {
            self.has_ended = true;
            let ended = PartEnd { measured_ns: duration_ns, ..PartEnd::default() };
            says.push(FromAgent::Finished { run: 1, ended });
        }
        says
    }
}

/// Runs `plan` over simulated agents. Agent `i` dies at `deaths[i]`, in nanoseconds, or never. With how many calls reached the target.
fn carry_out(plan: &Plan, workers: &[u32], deaths: &[u64]) -> (Recording, u64) {
    let (reports, reported) = channel();
    let of = workers.iter().sum();
    let duration_ns = plan.duration_ns().unwrap();
    let (mut agents, mut in_run, mut first) = (Vec::new(), Vec::new(), 0);
    for (place, count) in workers.iter().enumerate() {
        let portion = Portion::new(first, *count, of).unwrap();
        first += count;
        let part = AgentPart::new(&format!("a{place}"), "0", 1, *count, workers.len());
        in_run.push(InRun::new(part, portion, plan));
        let dies_at = deaths.get(place).copied().unwrap_or(u64::MAX);
        let (arrivals, sends) = (arrivals(plan, portion), arrivals(plan, portion));
        agents.push(Agent { arrivals, next: 0, dies_at, has_ended: false, sends });
    }
    let begun =
        StartedRun { plan: plan.clone(), given: Value::Nil, left: LifecycleFigures::default(), at: 0, agents: in_run };
    let mut running = InProgress::new(1, begun, reports.clone());
    let stop = StopHandle::default();
    // What is under way from agents, and when it arrives.
    let mut from_agents: Vec<(u64, usize, FromAgent)> = Vec::new();
    let mut now = 0;
    while !running.is_over() {
        now += 20 * MS;
        assert!(now < duration_ns + 60_000 * MS, "the run does not end");
        for (place, agent) in agents.iter_mut().enumerate().filter(|(_, agent)| now < agent.dies_at) {
            let says = agent.says(now, duration_ns);
            from_agents.extend(says.into_iter().map(|words| (now + UNDERWAY_NS, place, words)));
        }
        for (_, place, words) in from_agents.extract_if(.., |(at, ..)| *at <= now) {
            running.take(place, words, None, &stop, now).unwrap();
        }
        for (place, agent) in agents.iter().enumerate() {
            if now >= agent.dies_at.saturating_add(SILENT_NS) {
                running.gone(place);
                running.lose(place, "it died", OnLost::Continue, Some(agent.dies_at + AHEAD_NS));
            }
        }
        running.go_on_without(now);
    }
    running.finish_lost();
    let parts: Vec<_> = running.begun.agents.into_iter().map(|agent| agent.part).collect();
    drop(reports);
    let names: Vec<_> = parts.iter().map(|part| part.name.clone()).collect();
    let control = brunt_engine::Control::default();
    let who = brunt_engine::Agents { names: &names, left: &LifecycleFigures::default() };
    let mut run = brunt_engine::gather(plan, who, &reported, &mut Nobody, &control, &stop, 0);
    run.agents = parts;
    let sent = agents.into_iter().map(|agent| {
        let until = agent.dies_at.min(duration_ns);
        agent.sends.into_iter().map(|mut arrivals| arrivals.pass(until)).sum::<u64>()
    });
    (run, sent.sum())
}

fn whole(plan: &Plan, until_ns: u64) -> u64 {
    arrivals(plan, Portion::whole(1)).iter_mut().map(|all| all.pass(until_ns)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whoever dies and when: every call of the run is due once, and made, unsent or unknown. No call is unsent that the
    /// target has counted.
    #[test]
    fn the_sums_close_whoever_is_lost(
        poisson: bool, workers in prop::collection::vec(1_u32..4, 2..6),
        deaths in prop::collection::vec(prop::option::of(100_u64..14_000), 5),
    ) {
        let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
        let plan = plan("100..300/12s", spread, 12 * SECOND_NS);
        let mut deaths: Vec<u64> = deaths.into_iter().map(|at| at.map_or(u64::MAX, |ms| ms * MS)).collect();
        // One is left.
        deaths[0] = u64::MAX;
        let (run, counted) = carry_out(&plan, &workers, &deaths);
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
