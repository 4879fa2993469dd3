//! Losses that random seeds meet seldom.

use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::SECOND_NS;
use brunt_record::agents::{AgentEnd, Untold};
use brunt_record::recording::Recording;

use super::bus::Weather;
use super::checks::{RunResult, check};
use super::world::{CONTROLLER, Fault, World};
use super::{Case, Hardness, MS, carry_out, of_a_rate, of_two};

/// A closed run of eight connections over two agents. The second agent is four times as slow as the first.
fn broken(seed: u64, stop: StopRule, faults: &[(u64, Fault)]) -> Box<Recording> {
    let plan = Plan { load: Load::Closed {}, stop, ..of_a_rate(0) };
    let case = Case { hardness: Hardness::Rough, faults: faults.to_vec(), ..of_two(&plan) };
    let mut world = World::new(seed, 2, Weather::FAIR, 0);
    world.machines[1].slowness = 4;
    for (at, fault) in faults {
        world.plan_fault(*at, *fault);
    }
    let came = carry_out(&mut world, &plan, case.terms(), case.patience_ns());
    check(&case, &world, &came);
    let RunResult::Ran { run, .. } = came else { panic!("it did not run") };
    run
}

/// Why each agent was lost, and what nobody knows of it.
fn losses(run: &Recording) -> Vec<(&str, Option<Untold>)> {
    let lost = run.agents.iter().filter_map(|part| match &part.ended {
        AgentEnd::Lost { reason, untold, .. } => Some((reason.as_str(), *untold)),
        AgentEnd::Finished => None,
    });
    lost.collect()
}

/// Without its word, the controller would wait for reports of agents that have none to make.
#[test]
fn an_agent_that_gave_the_run_up_meanwhile_says_so_at_once() {
    let plan = of_a_rate(60);
    let mut world = World::new(21, 2, Weather::FAIR, 0);
    // The agents give up after 15 s, and do not wait for longer than 8 s to be heard.
    world.plan_fault(4 * SECOND_NS, Fault::CutOff { side: CONTROLLER, for_ns: 30 * SECOND_NS });
    let came = carry_out(&mut world, &plan, of_two(&plan).terms(), 90 * SECOND_NS);
    let RunResult::Ran { run, lost_its_agents: true } = came else { panic!("it ran, and lost its agents") };
    let losses = losses(&run);
    assert_eq!(losses.len(), 2);
    for (reason, _) in losses {
        assert!(reason.contains("it gave the run up"), "{reason}");
    }
}

#[test]
fn requests_that_were_given_back_and_dealt_to_nobody_are_unsent() {
    let stop = StopRule { duration_ns: None, requests: Some(4_000) };
    // By then both have given most of theirs back.
    let faults = [1, 2].map(|side| (8_500 * MS, Fault::Kill { side }));
    let run = broken(22, stop, &faults);
    assert_eq!(losses(&run).len(), 2);
    let unsent: u64 = run.drained.numbers.get(brunt_record::catalogue::Counter::UnsentLost);
    assert!((1_000..4_000).contains(&unsent), "{unsent}");
}

#[test]
fn of_a_lost_agent_that_no_number_bounds_connections_and_time_are_said() {
    let stop = StopRule { duration_ns: Some(9 * SECOND_NS), requests: None };
    let run = broken(23, stop, &[(5_700 * MS, Fault::Kill { side: 2 })]);
    let losses = losses(&run);
    let [(_, Some(untold))] = losses.as_slice() else { panic!("{losses:?}") };
    // Of three workers it has the last: the third connection, and the sixth.
    assert_eq!(untold.connections, 2, "{untold:?}");
    assert!((SECOND_NS / 2..9 * SECOND_NS).contains(&untold.ns), "{untold:?}");
}
