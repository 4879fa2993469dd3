//! What must hold of a run, whatever went wrong in it.

use std::ops::ControlFlow;

use brunt_engine::{Observer, RunningTotal};
use brunt_plan::arrivals::Arrivals;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::share::Share;
use brunt_plan::timetable::Timetable;
use brunt_record::agents::{AgentEnd, AgentPart};
use brunt_record::catalogue::Counter;
use brunt_record::change::Change;
use brunt_record::live::Live;
use brunt_record::recording::{Ending, Recording};
use brunt_record::snapshot::Snapshot;

use super::log;
use super::machine::Truth;
use super::world::{Fault, World};
use super::{Case, Hardness, SECOND_NS, carry_out};
use crate::controller::{ClusterError, OnLost};
use crate::roster::WantedAgents;

/// What came of a run.
pub(super) enum RunResult {
    NotTaken(ClusterError),
    NotBegun(ClusterError),
    Ran { run: Box<Recording>, lost_its_agents: bool },
    ControllerDied,
}

pub(super) struct Nobody;

impl Observer for Nobody {
    fn second(&mut self, _second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<brunt_engine::AbortCause> {
        ControlFlow::Continue(())
    }
}

/// The accounts of a run, or of an agent's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sums {
    due: u64,
    answered: u64,
    failed: u64,
    unfinished: u64,
    unsent: u64,
    held: u64,
    unknown: u64,
}

impl Sums {
    fn new(measured: &Snapshot, drained: &Snapshot) -> Self {
        let of = |counter| measured.numbers.get(counter) + drained.numbers.get(counter);
        Self {
            due: of(Counter::Due),
            answered: measured.statuses.total() + drained.statuses.total(),
            failed: measured.failures.total() + drained.failures.total(),
            unfinished: of(Counter::Unfinished),
            unsent: of(Counter::Unsent),
            held: of(Counter::UnsentHeld),
            unknown: of(Counter::Unknown),
        }
    }

    fn of_part(part: &AgentPart) -> Self {
        Self::new(&part.measured, &part.drained)
    }

    fn close(&self, whose: &str) {
        let Self { due, answered, failed, unfinished, unsent, unknown, .. } = *self;
        assert_eq!(due, answered + failed + unfinished + unsent + unknown, "{whose}: {self:?}");
    }
}

/// Calls of a rate, or of a log, that are due in so much of the measured part.
fn timetable(plan: &Plan, changes: &[Change], until_ns: u64) -> Option<u64> {
    let Load::Open { profile, arrivals } = &plan.load else { return log::due_before(plan, until_ns) };
    let mut all = Arrivals::new(profile.clone(), *arrivals, Share::WHOLE, plan.seed, plan.stop.requests);
    all.change(&Timetable::new(profile.clone()).with(changes, 0));
    Some(all.pass(until_ns))
}

/// What the agent of this name did in the first run that it was in.
fn truth_of(world: &World, name: &str) -> Truth {
    let side: usize = name.trim_start_matches('a').parse().unwrap();
    let truths = world.machines[side - 1].truth.values();
    // Each seed has one run of which anything is checked at a time.
    truths.fold(Truth::default(), |all, one| Truth {
        due: all.due + one.due,
        sent: all.sent + one.sent,
        answered: all.answered + one.answered,
        failed: all.failed + one.failed,
    })
}

pub(super) fn check(case: &Case, world: &World, came: &RunResult) {
    let told = |fault: fn(&Fault) -> bool| case.faults.iter().any(|(_, one)| fault(one));
    let set_up: u64 = world.machines.iter().map(|machine| machine.set_up).sum();
    match came {
        RunResult::ControllerDied => assert!(told(|fault| matches!(fault, Fault::Kill { side: 0 }))),
        RunResult::NotTaken(error) => {
            assert!(case.hardness == Hardness::Rough, "{error}");
            // Too few came, and strangers announced others.
            let is_known =
                matches!(error, ClusterError::TooFew { .. } | ClusterError::Roster(_) | ClusterError::Interrupted);
            assert!(is_known, "{error}");
        }
        RunResult::NotBegun(error) => {
            assert!(case.hardness == Hardness::Rough, "{error}");
            let is_known = match error {
                ClusterError::LostBefore { .. } => true,
                ClusterError::Interrupted => world.stop.is_stopped(),
                ClusterError::Agent { problem, .. } => problem.contains("setup failed") || problem.contains("teardown"),
                _ => false,
            };
            assert!(is_known, "{error}");
            torn_down(world, set_up, &error.to_string());
        }
        RunResult::Ran { run, lost_its_agents } => {
            check_run(case, world, run, *lost_its_agents);
            let said = if let Ending::Failed(reason) = &run.ending { reason.as_str() } else { "" };
            torn_down(world, set_up, said);
            check_counted(case, run, said);
        }
    }
}

/// What setup and teardown count is in the result, once each, whatever became of the agents.
fn check_counted(case: &Case, run: &Recording, said: &str) {
    let held = |name: &str| run.measured.figures.checks.get(name).map_or(0, |check| check.passes);
    let has_script = u64::from(case.plan.scenarios.is_some());
    assert_eq!(held("set up"), has_script);
    assert_eq!(held("torn down"), if said.contains("teardown") { 0 } else { has_script }, "{said}");
}

/// Teardown ran if setup returned, unless it is said that it could not.
fn torn_down(world: &World, set_up: u64, said: &str) {
    let torn_down: u64 = world.machines.iter().map(|machine| machine.torn_down).sum();
    assert!(torn_down <= set_up, "{torn_down} teardowns, {set_up} setups");
    let is_said = said.contains("teardown");
    // What setup returned on an agent that was lost before it could say so, nobody knows.
    let is_lost = said.contains("was lost before the run began");
    assert!(torn_down == set_up || is_said || is_lost, "{torn_down} teardowns, {set_up} setups: {said}");
}

fn check_run(case: &Case, world: &World, run: &Recording, lost_its_agents: bool) {
    println!("ended {:?} after {} ns, lost its agents: {lost_its_agents}", run.ending, run.measured_ns);
    for part in &run.agents {
        let (sums, truth) = (Sums::of_part(part), truth_of(world, &part.name));
        println!("{}: {sums:?} {truth:?} {:?} after {} ns", part.name, part.ended, part.measured_ns);
    }
    let total = Sums::new(&run.measured, &run.drained);
    total.close("the run");
    let mut of_parts = Sums { due: 0, answered: 0, failed: 0, unfinished: 0, unsent: 0, held: 0, unknown: 0 };
    let (mut sent, mut unreported) = (0, 0);
    // A replay ends with its log, if that is over first.
    let is_replay = matches!(case.plan.load, Load::Replay(_));
    let whole_ns = case.plan.duration_ns().filter(|_| !is_replay).unwrap_or(0);
    for part in &run.agents {
        let (sums, truth) = (Sums::of_part(part), truth_of(world, &part.name));
        sums.close(&part.name);
        of_parts.due += sums.due;
        of_parts.answered += sums.answered;
        of_parts.failed += sums.failed;
        of_parts.unfinished += sums.unfinished;
        of_parts.unsent += sums.unsent;
        of_parts.held += sums.held;
        of_parts.unknown += sums.unknown;
        sent += truth.sent;
        if case.liar.is_some_and(|liar| part.name == format!("a{liar}")) {
            // What it says of itself is its own affair.
            continue;
        }
        let whose = format!("{}: {sums:?} {truth:?} {:?}", part.name, part.ended);
        assert!(sums.answered <= truth.answered && sums.failed <= truth.failed, "{whose}");
        if part.is_lost() {
            let is_bounded = timetable(&case.plan, &[], 0).is_some() || case.plan.stop.requests.is_some();
            let hidden = truth.sent > sums.due - sums.unsent;
            let is_said = matches!(part.ended, AgentEnd::Lost { untold: Some(_), .. });
            // What no number bounds is said by agent, connections and time.
            assert!(!hidden || is_said && !is_bounded, "{whose}");
            unreported += truth.sent - (sums.answered + sums.failed).min(truth.sent);
        } else {
            // What an agent has finished is what it really did.
            let expected = (truth.due, truth.answered, truth.failed, 0);
            assert_eq!((sums.due, sums.answered, sums.failed, sums.unknown), expected, "{whose}");
        }
    }
    assert_eq!(of_parts, total, "agents together");
    // Calls of the closed model that a lost agent did not report are due in no account of it.
    let untold = if timetable(&case.plan, &[], 0).is_some() { 0 } else { unreported };
    let is_true = case.liar.is_none();
    assert!(
        !is_true || total.answered <= sent && sent <= total.due - total.unsent + untold,
        "{sent} sent, {untold} untold: {total:?}"
    );
    let lost: Vec<_> = run.agents.iter().filter(|part| part.is_lost()).collect();
    let is_stopped = world.stop.is_stopped();
    if let Some(due) = timetable(&case.plan, &world.changed, run.measured_ns).filter(|_| is_true) {
        // Where a run is ended, agents end one after the other. One of a number of requests is planned until the last of them.
        let planned_ns = case.plan.duration_ns().unwrap_or(3600 * SECOND_NS).max(run.measured_ns);
        let beyond =
            if lost.is_empty() { 0 } else { timetable(&case.plan, &world.changed, planned_ns).unwrap_or(0) - due };
        let at = run.measured_ns;
        if is_stopped || lost_its_agents {
            assert!(total.due <= due + beyond, "the timetable until {at}: {total:?}");
        } else {
            assert_eq!(total.due, due, "the timetable until {at}: {total:?}");
        }
    }
    if !is_stopped && lost.len() < run.agents.len() && !lost_its_agents && case.setup_fails {
        assert!(!matches!(run.ending, Ending::Failed(_)), "{:?}", run.ending);
    }
    if !is_stopped && lost.is_empty() && is_true {
        // Nobody was lost: it is a whole run.
        assert_eq!(run.measured_ns.max(whole_ns), run.measured_ns, "{:?}", run.ending);
    }
    if let Some(requests) = case.plan.stop.requests.filter(|_| !is_stopped && !lost_its_agents && is_true) {
        // Those too that a lost agent was to make.
        assert_eq!(total.due, requests, "{total:?}");
    }
    let all_lost = lost.len() == run.agents.len();
    if let Some(requests) = case.plan.stop.requests.filter(|_| !is_stopped && is_true && all_lost)
        && !lost.iter().any(|part| left_in_order(part))
        && matches!(case.plan.load, Load::Closed {})
        && case.on_lost == OnLost::Continue
    {
        // Those too that nobody was left to make.
        assert_eq!(total.due, requests, "{total:?}");
    }
    if matches!(case.plan.load, Load::Closed {}) && is_true {
        let mut made: Vec<u64> = world.machines.iter().flat_map(|machine| machine.made.iter().copied()).collect();
        let number = made.len();
        made.sort_unstable();
        made.dedup();
        assert_eq!(made.len(), number, "a number was made twice");
        assert!(made.last().copied() < case.plan.stop.requests || number == 0, "{:?}", made.last());
        if lost.is_empty() && !is_stopped && case.plan.stop.requests.is_some() {
            assert_eq!(Some(number as u64), case.plan.stop.requests, "each number is made");
        }
    }
    // Each loss is said, and decides the exit status unless it was allowed.
    let is_abort = case.on_lost == OnLost::Abort && lost.iter().any(|part| !left_in_order(part));
    assert_eq!(lost_its_agents, all_lost || is_abort, "{lost:?}");
    for part in &lost {
        let AgentEnd::Lost { reason, .. } = &part.ended else { continue };
        assert!(!reason.is_empty());
    }
    if case.hardness != Hardness::Rough {
        assert!(lost.is_empty(), "{lost:?}");
        assert_eq!((total.unsent, total.held, total.unknown), (0, 0, 0), "{total:?}");
        assert_eq!(run.ending, Ending::Completed);
    }
}

/// Whether a lost agent has said that it ends: that is no reason to abort.
fn left_in_order(part: &AgentPart) -> bool {
    let AgentEnd::Lost { reason, .. } = &part.ended else { return false };
    reason.contains("it was ended on its machine") || reason.contains("it heard nothing of this brunt")
}

/// Whoever lives carries the next run out, and nothing is lost in it.
pub(super) fn check_next(case: &Case, world: &mut World) {
    let living: Vec<usize> = (1..=case.agents).filter(|side| world.is_well(*side)).collect();
    if living.is_empty() || living.len() < (1..=case.agents).filter(|side| world.is_alive(*side)).count() {
        return;
    }
    world.stop = brunt_engine::StopHandle::default();
    world.machines.iter_mut().for_each(|machine| {
        machine.truth.clear();
        machine.made.clear();
        (machine.setup_fails, machine.lies) = (false, false);
        (machine.set_up, machine.torn_down) = (0, 0);
    });
    let terms = crate::controller::ClusterOptions { wanted: WantedAgents::Number(living.len() as u32), ..case.terms() };
    match carry_out(world, &case.plan, terms, case.patience_ns()) {
        RunResult::Ran { run, lost_its_agents: false } => {
            assert!(run.agents.iter().all(|part| !part.is_lost()), "{:?}", run.agents);
            assert_eq!(run.agents.len(), living.len());
            let calm = Case { hardness: Hardness::Calm, setup_fails: false, liar: None, ..Case::from_seed(0) };
            let calm = Case { plan: case.plan.clone(), on_lost: case.on_lost, ..calm };
            check_run(&calm, world, &run, false);
        }
        RunResult::Ran { run, .. } => panic!("the next run lost agents: {:?}", run.ending),
        RunResult::NotTaken(error) | RunResult::NotBegun(error) => panic!("the next run: {error}"),
        RunResult::ControllerDied => panic!("the controller of the next run died"),
    }
}
