//! Runs on made-up time, by seeds: agents, their controller and the bus between them, which lose, delay, double, reorder, stand still, die, begin anew and
//! are spoken to by strangers. Every run ends by itself, its sums close, and what it says is what the machines really did.
//!
//! `BRUNT_SEED=7 BRUNT_SEEDS=1 cargo test -p brunt-cluster simulation` runs one seed alone.

mod bus;
mod checks;
mod dice;
mod log;
mod machine;
mod mutations;
mod rare;
mod strangers;
mod world;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use brunt_engine::{Agents, Control, Report, StopHandle};
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, ProtocolOptions, StopRule};
use brunt_plan::replay::LogReplay;
use brunt_plan::target::Url;
use brunt_record::SECOND_NS;
use brunt_record::agents::AgentEnd;
use brunt_record::change::{Action, Author};
use brunt_record::recording::Ending;

use self::bus::Weather;
use self::checks::{RunResult, check, check_next};
use self::dice::Dice;
use self::log::Listed;
use self::world::{CONTROLLER, Fault, World};
use crate::controller::state::Controller;
use crate::controller::{ClusterError, ClusterOptions, Command, OnLost, Order, RunRemainder, Startup};
use crate::roster::{WantedAgents, Workers};

const MS: u64 = 1_000_000;

/// How hard a seed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hardness {
    /// Nothing goes wrong.
    Calm,
    /// What goes wrong is over so soon that nothing may be lost.
    Gentle,
    /// Anything goes wrong.
    Rough,
}

/// What a seed stands for.
struct Case {
    plan: Plan,
    agents: usize,
    on_lost: OnLost,
    hardness: Hardness,
    weather: Weather,
    strangers_every_ns: u64,
    faults: Vec<(u64, Fault)>,
    setup_fails: bool,
    /// The agent that reports what it did not do.
    liar: Option<usize>,
    /// How many times as long the calls of each agent take.
    slowness: Vec<u64>,
}

fn plan(dice: &mut Dice) -> Plan {
    let target = Url::parse("http://127.0.0.1/").unwrap().target;
    let duration_ns = dice.between(1_500, 9_000) * MS;
    let base = Plan {
        seed: dice.next(),
        connections: (dice.between(8, 20) as u32).into(),
        warmup_ns: if dice.in_thousand(250) { SECOND_NS } else { 0 },
        ..Plan::of_calls(target, ProtocolOptions::default())
    };
    let timed = StopRule { duration_ns: Some(duration_ns), requests: None };
    match dice.below(13) {
        0..5 => {
            let arrivals = if dice.in_thousand(500) { Spread::Uniform } else { Spread::Poisson };
            let profile = dice.pick(&["50", "120", "20..200/5s"]).parse().unwrap();
            Plan { load: Load::Open { profile, arrivals }, stop: timed, ..base }
        }
        5 | 6 => Plan { stop: timed, ..base },
        7 | 8 => {
            let requests = Some(dice.between(50, 6_000));
            Plan { stop: StopRule { duration_ns: None, requests }, warmup_ns: 0, ..base }
        }
        9 | 10 => {
            let arrivals = if dice.in_thousand(500) { Spread::Uniform } else { Spread::Poisson };
            // Of a slow one the last calls are far apart.
            let rate = dice.pick(&[7, 50]);
            let profile = rate.to_string().parse().unwrap();
            let stop = StopRule { duration_ns: None, requests: Some(rate * dice.between(3, 12)) };
            Plan { load: Load::Open { profile, arrivals }, stop, warmup_ns: 0, ..base }
        }
        _ => {
            let step =
                serde_json::json!({"kind": "users", "from": 5.0, "to": 5.0, "seconds": duration_ns as f64 / 1e9});
            let size = dice.pick(&[10_usize, 100_000, 1_500_000]);
            let file = serde_json::json!({"name": "s.lua", "content": "x".repeat(size)});
            let scenarios = serde_json::json!({"files": [file], "populations": [{"scenarios": [], "steps": [step]}]});
            Plan { scenarios: Some(serde_json::from_value(scenarios).unwrap()), ..base }
        }
    }
}

/// Some of the plans with a rate replay a log instead: drawn apart from the rest, which stays as it is.
fn replayed(plan: Plan, seed: u64) -> Plan {
    let mut dice = Dice::new(seed ^ 0x0010_6600);
    if !matches!(plan.load, Load::Open { .. }) || dice.in_thousand(700) {
        return plan;
    }
    // Half of them end with the log, and the others after a time.
    let duration_ns = plan.stop.duration_ns.filter(|_| dice.in_thousand(500));
    let stop = StopRule { duration_ns, requests: None };
    Plan { load: Load::Replay(Box::new(LogReplay::new("made-up.log", "combined"))), stop, warmup_ns: 0, ..plan }
}

impl Case {
    fn from_seed(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let hardness = match dice.below(10) {
            0 => Hardness::Calm,
            1 | 2 => Hardness::Gentle,
            _ => Hardness::Rough,
        };
        let mut plan = replayed(plan(&mut dice), seed);
        let mut on_lost = dice.pick(&[OnLost::Continue, OnLost::Continue, OnLost::Continue, OnLost::Abort]);
        if hardness == Hardness::Gentle {
            on_lost = OnLost::Continue;
        }
        let agents = dice.between(1, 5) as usize;
        let is_rough = hardness == Hardness::Rough;
        let mut weather = match dice.below(4) {
            0 if is_rough => Weather {
                loses: dice.between(1, 150),
                doubles: dice.between(0, 200),
                delay_ns: dice.between(0, 100) * MS,
                jitter_ns: dice.between(0, 200) * MS,
                bytes_per_s: 10_000_000,
            },
            1 if is_rough => {
                Weather { bytes_per_s: dice.between(80_000, 2_000_000), delay_ns: 50 * MS, ..Weather::FAIR }
            }
            2 => Weather { doubles: 300, jitter_ns: 20 * MS, ..Weather::FAIR },
            _ => Weather::FAIR,
        };
        let mut faults = Vec::new();
        let until_ms = plan.duration_ns().unwrap_or(6 * SECOND_NS) / MS + 3_000;
        let count = match hardness {
            Hardness::Calm => 0,
            // One at a time, and the bus has to be back before it goes again.
            Hardness::Gentle => 1,
            Hardness::Rough => dice.between(1, 4),
        };
        for _ in 0..count {
            let at = 1_000 * MS + dice.below(until_ms) * MS;
            let agent = dice.between(1, agents as u64) as usize;
            let fault = if is_rough { rough(agent, agents, &mut dice) } else { gentle(agent, &mut dice) };
            if let Fault::Kill { side } = fault
                && side != CONTROLLER
                && dice.in_thousand(300)
            {
                faults.push((at + dice.between(10, 6_000) * MS, Fault::Restart { side }));
            }
            faults.push((at, fault));
        }
        if is_rough && plan.scenarios.is_none() && dice.in_thousand(150) {
            // One is lost, and comes back while the others go on.
            if let Some(duration_ns) = &mut plan.stop.duration_ns {
                *duration_ns = dice.between(11_000, 16_000) * MS;
            }
            on_lost = OnLost::Continue;
            let side = dice.between(1, agents as u64) as usize;
            let for_ns = dice.between(3_200, 8_000) * MS;
            faults = vec![(dice.between(2_500, 5_000) * MS, Fault::Pause { side, for_ns })];
        }
        if is_rough && plan.scenarios.is_some() {
            match dice.below(4) {
                0 => {
                    // The bus goes while the plan is on its way, and nothing else ends the run.
                    weather = Weather { bytes_per_s: dice.between(100_000, 400_000), ..Weather::FAIR };
                    let fault = Fault::Away { for_ns: dice.between(10, 800) * MS, most_payload: 4 << 10 };
                    faults = vec![(dice.between(1_100, 3_000) * MS, fault)];
                }
                1 => {
                    // It ends before it begins: perhaps in the setup.
                    let side = dice.between(1, agents as u64) as usize;
                    let fault = dice.pick(&[Fault::Stop, Fault::Stop, Fault::Kill { side }]);
                    faults.push((dice.between(1_020, 2_000) * MS, fault));
                }
                _ => {}
            }
        }
        let strangers_every_ns = if dice.in_thousand(400) { dice.between(1, 50) * MS } else { 0 };
        let setup_fails = is_rough && dice.in_thousand(100);
        let liar = (is_rough && dice.in_thousand(120)).then(|| dice.between(1, agents as u64) as usize);
        // Drawn apart from the rest, which stays as it is.
        let mut theirs = Dice::new(seed ^ 0x510_0000);
        let slowness = (0..agents).map(|_| if theirs.in_thousand(700) { 1 } else { theirs.between(2, 5) }).collect();
        let mut case =
            Self { plan, agents, on_lost, hardness, weather, strangers_every_ns, faults, setup_fails, liar, slowness };
        if !case.changes(seed).is_empty() {
            // A change takes effect where no agent may have gone yet.
            case.plan.stop.duration_ns = case.plan.stop.duration_ns.map(|ns| ns + 10 * SECOND_NS);
        }
        case
    }

    /// How its run is changed while it goes on: drawn apart from the rest, which stays as it is.
    fn changes(&self, seed: u64) -> Vec<(u64, Action)> {
        let mut dice = Dice::new(seed ^ 0xc4a4_6e00);
        if !matches!(self.plan.load, Load::Open { .. }) || dice.in_thousand(400) {
            return Vec::new();
        }
        let is_timed = self.plan.stop.requests.is_none();
        let mut changes: Vec<_> = (0..dice.between(1, 4))
            .map(|_| {
                let action = match dice.below(4) {
                    0 if is_timed => Action::Pause,
                    1 if is_timed => Action::Resume,
                    _ => Action::Rate(dice.between(1, 300) as f64),
                };
                (dice.below(4_000) * MS, action)
            })
            .collect();
        changes.sort_by_key(|(after_ns, _)| *after_ns);
        changes
    }

    /// Says what it is, where a test that fails shows it.
    fn describe(&self) {
        let Plan { load, stop, connections, warmup_ns, scenarios, .. } = &self.plan;
        println!("{load:?} {stop:?} {connections:?} warm-up {warmup_ns} scenarios {}", scenarios.is_some());
        println!("{} agents, {:?}, {:?}, {:?}", self.agents, self.on_lost, self.hardness, self.weather);
        println!(
            "strangers every {} ns, setup fails: {}, {:?} lies",
            self.strangers_every_ns, self.setup_fails, self.liar
        );
    }

    /// How long its run takes at most.
    fn patience_ns(&self) -> u64 {
        // A slow agent may have to make all requests.
        150 * SECOND_NS + self.plan.stop.requests.unwrap_or(0) * SECOND_NS / 20
    }

    fn terms(&self) -> ClusterOptions {
        ClusterOptions {
            wanted: WantedAgents::Number(self.agents as u32),
            patience: Duration::from_secs(10),
            on_lost: self.on_lost,
            secrets_from_agents: false,
            name: "c".to_owned(),
            notice: |_| {},
        }
    }
}

/// Something that is over so soon that nothing may be lost.
fn gentle(agent: usize, dice: &mut Dice) -> Fault {
    match dice.below(4) {
        0 => Fault::Pause { side: agent, for_ns: dice.between(100, 2_000) * MS },
        1 => Fault::Pause { side: CONTROLLER, for_ns: dice.between(100, 6_000) * MS },
        2 => Fault::StandStill { for_ns: dice.between(100, 5_000) * MS },
        _ => Fault::Away {
            for_ns: dice.between(100, 4_700) * MS,
            most_payload: dice.pick(&[4 << 10, 64 << 10, 1 << 20]),
        },
    }
}

fn rough(agent: usize, agents: usize, dice: &mut Dice) -> Fault {
    let side = dice.below(agents as u64 + 1) as usize;
    match dice.below(25) {
        22..25 => {
            // Some never come back.
            let for_ns = if dice.in_thousand(500) { 3_600 * SECOND_NS } else { dice.between(500, 30_000) * MS };
            Fault::Hang { side: agent, for_ns }
        }
        20..22 => Fault::CutOff { side, for_ns: dice.between(1_000, 40_000) * MS },
        0..5 => Fault::Kill { side: agent },
        5 => Fault::Kill { side: CONTROLLER },
        6..10 => Fault::Pause { side, for_ns: dice.between(100, 20_000) * MS },
        10..13 => Fault::StandStill { for_ns: dice.between(100, 14_000) * MS },
        13..16 => {
            let most_payload = dice.pick(&[2 << 10, 4 << 10, 4 << 10, 64 << 10]);
            Fault::Away { for_ns: dice.between(10, 14_000) * MS, most_payload }
        }
        16 => Fault::Stop,
        17 => Fault::Leave { side: agent },
        _ => gentle(agent, dice),
    }
}

/// What was ordered of a controller, and where the answers come.
struct Ordered {
    begun: Receiver<Result<Startup, ClusterError>>,
    over: Receiver<RunRemainder>,
    reported: Receiver<Report>,
    control: Control,
    /// The time of the world, for `control`.
    clock: Arc<AtomicU64>,
}

fn order(world: &mut World, plan: &Plan, stop: &StopHandle) -> Ordered {
    let ((reports, reported), (begun, begins), (over, ends)) = (channel(), channel(), channel());
    let (control, stop, clock) = (Control::default(), stop.clone(), Arc::new(AtomicU64::new(world.now)));
    let theirs = Arc::clone(&clock);
    control.ready_elsewhere(plan, move || theirs.load(Ordering::Relaxed));
    let timetable = Listed::of_plan(plan);
    let (plan, workers, theirs) = (plan.clone(), Workers::AsCores, control.clone());
    let order = Order { plan, workers, reports, control: theirs, stop, begun, over, timetable };
    world.order(Command::Run(Box::new(order)));
    Ordered { begun: begins, over: ends, reported, control, clock }
}

/// Lets the world go on until `is_so`. It does within `patience_ns`.
fn until<T>(world: &mut World, patience_ns: u64, what: &str, mut is_so: impl FnMut(&mut World) -> Option<T>) -> T {
    let end = world.now + patience_ns;
    loop {
        if let Some(came) = is_so(world) {
            return came;
        }
        world.log.drain(..).for_each(|line| println!("{line}"));
        if world.now >= end {
            world.describe();
            panic!("{what} within {} s", patience_ns / SECOND_NS);
        }
        world.step();
    }
}

/// Has agents taken, and a run carried out by them.
fn carry_out(world: &mut World, plan: &Plan, terms: ClusterOptions, patience_ns: u64) -> RunResult {
    world.begin(terms);
    let taken = until(world, patience_ns, "agents are taken or not", |world| match &mut world.controller {
        Some(controller) => controller.take_taken().map(|taken| taken.map(|taken| taken.agents.len())),
        None => Some(Ok(0)),
    });
    match taken {
        Err(error) => return RunResult::NotTaken(error),
        Ok(0) => return RunResult::ControllerDied,
        Ok(_) => {}
    }
    run_once(world, plan, patience_ns)
}

/// Has the controller's agents carry out a run.
fn run_once(world: &mut World, plan: &Plan, patience_ns: u64) -> RunResult {
    let stop = world.stop.of_run();
    let ordered = order(world, plan, &stop);
    // A setup may take ten minutes.
    let begun = until(world, patience_ns.max(700 * SECOND_NS), "the run begins or does not", |world| {
        ordered.clock.store(world.now, Ordering::Relaxed);
        match ordered.begun.try_recv() {
            Ok(begun) => Some(Some(begun)),
            Err(TryRecvError::Empty) if world.controller.is_some() => None,
            Err(_) => Some(None),
        }
    });
    let began = world.now;
    let startup = match begun {
        None => return RunResult::ControllerDied,
        Some(Err(error)) => return RunResult::NotBegun(error),
        Some(Ok(startup)) => startup,
    };
    let over = until(world, patience_ns, "the run ends", |world| {
        ordered.clock.store(world.now, Ordering::Relaxed);
        while world.to_change.first().is_some_and(|(after_ns, _)| world.now >= began + after_ns) {
            let (_, action) = world.to_change.remove(0);
            // One that comes too late, or pauses twice, is refused.
            let _ = ordered.control.ask(action, Author::Ctl);
        }
        match ordered.over.try_recv() {
            Ok(over) => Some(Some(over)),
            Err(TryRecvError::Empty) if world.controller.is_some() => None,
            Err(_) => Some(None),
        }
    });
    world.to_change.clear();
    world.changed = ordered.control.changes();
    let Some(over) = over else { return RunResult::ControllerDied };
    let lost_its_agents = over.lost_its_agents;
    let agents = Agents { names: &startup.agents, left: &startup.left };
    let run = brunt_engine::gather(plan, agents, &ordered.reported, &mut checks::Nobody, &ordered.control, &stop, 0);
    RunResult::Ran { run: Box::new(over.complete(run)), lost_its_agents }
}

/// What a seed was good for.
#[derive(Debug, Clone, Copy, Default)]
struct SeedStatistics {
    /// How often its run was changed while it went on.
    changed: usize,
    /// What happened: messages, faults, and turns of the sides.
    steps: u64,
}

/// One seed: a run in which things go wrong, and one after it in which nothing does.
fn seed(seed: u64) -> SeedStatistics {
    let case = Case::from_seed(seed);
    case.describe();
    let mut world = World::new(seed, case.agents, case.weather.clone(), case.strangers_every_ns);
    world.machines.iter_mut().zip(&case.slowness).for_each(|(machine, slowness)| machine.slowness = *slowness);
    world.machines.iter_mut().for_each(|machine| machine.setup_fails = case.setup_fails);
    if let Some(liar) = case.liar {
        world.machines[liar - 1].lies = true;
    }
    for (at, fault) in &case.faults {
        world.plan_fault(*at, *fault);
    }
    world.to_change = case.changes(seed);
    let came = carry_out(&mut world, &case.plan, case.terms(), case.patience_ns());
    check(&case, &world, &came);
    let changed = match &came {
        RunResult::Ran { run, .. } => run.changes.len(),
        _ => 0,
    };
    // Everybody is free again, whatever went wrong, and the next run is whole.
    if world.controller.is_some() {
        world.order(Command::Release);
        until(&mut world, 60 * SECOND_NS, "the controller lets its agents go", |world| {
            world.controller.as_ref().is_none_or(Controller::is_over).then_some(())
        });
    }
    world.controller = None;
    world.bus.weather = Weather::FAIR;
    let last = case.faults.iter().map(|(at, _)| *at).max().unwrap_or(0);
    let mended_at = world.now.max(last + 20 * SECOND_NS);
    // It takes messages as they are again.
    world.plan_fault(mended_at, Fault::Away { for_ns: 100 * MS, most_payload: 1 << 20 });
    let calm_at = mended_at + 25 * SECOND_NS;
    until(&mut world, 120 * SECOND_NS, "time passes", |world| (world.now >= calm_at).then_some(()));
    check_next(&case, &mut world);
    SeedStatistics { changed, steps: world.steps }
}

/// A run of some seconds of a rate, with a secret.
fn with_a_secret() -> Plan {
    let target = Url::parse("http://127.0.0.1/").unwrap().target;
    let scenarios = serde_json::json!({
        "files": [], "base_url": "http://me:hunter2@127.0.0.1/",
        "populations": [{"scenarios": [], "steps": [{"kind": "users", "from": 5.0, "to": 5.0, "seconds": 2.0}]}],
    });
    let scenarios = Some(serde_json::from_value(scenarios).unwrap());
    Plan { scenarios, connections: 8.into(), ..Plan::of_calls(target, ProtocolOptions::default()) }
}

#[test]
fn no_secret_is_in_any_message_where_a_side_is_not_private() {
    let calm = Case { agents: 2, hardness: Hardness::Calm, on_lost: OnLost::Continue, ..Case::from_seed(0) };
    for (is_private, server) in [(true, "the-only-one"), (false, "the-only-one"), (true, "another")] {
        let mut world = World::new(7, 2, Weather::FAIR, 0);
        world.agents[1].about.is_private = is_private;
        world.agents[1].bus_said(crate::post::BusEvent::Back(crate::post::Server {
            id: server.to_owned(),
            most_payload: 1 << 20,
        }));
        let came = carry_out(&mut world, &with_a_secret(), calm.terms(), 60 * SECOND_NS);
        let travels = is_private && server == "the-only-one";
        assert_eq!(world.bus.has_seen_it, travels);
        match came {
            RunResult::Ran { .. } => assert!(travels),
            RunResult::NotBegun(ClusterError::OpenWay { agent }) => assert!(!is_private && agent == "a2"),
            RunResult::NotBegun(ClusterError::OtherServer { agent }) => {
                assert!(is_private && !travels && agent == "a2");
            }
            _ => panic!("it ran, or did not begin"),
        }
    }
}

/// A calm case of this plan, for two agents.
fn of_two(plan: &Plan) -> Case {
    let calm = Case { agents: 2, hardness: Hardness::Calm, on_lost: OnLost::Continue, ..Case::from_seed(0) };
    Case { plan: plan.clone(), setup_fails: false, liar: None, faults: Vec::new(), ..calm }
}

fn names(came: &RunResult) -> Vec<(String, bool)> {
    let RunResult::Ran { run, .. } = came else { panic!("it did not run") };
    run.agents.iter().map(|part| (part.name.clone(), part.is_lost())).collect()
}

#[test]
fn an_agent_that_comes_back_takes_part_in_the_next_run() {
    let plan = of_a_rate(6);
    let mut world = World::new(11, 2, Weather::FAIR, 0);
    world.plan_fault(4 * SECOND_NS, Fault::Kill { side: 1 });
    let first = carry_out(&mut world, &plan, of_two(&plan).terms(), 60 * SECOND_NS);
    assert_eq!(names(&first), [("a1".to_owned(), true), ("a2".to_owned(), false)]);
    // Without it, the next one is made by the other.
    let second = run_once(&mut world, &plan, 60 * SECOND_NS);
    assert_eq!(names(&second), [("a2".to_owned(), false)]);
    world.plan_fault(world.now, Fault::Restart { side: 1 });
    // It was away for two runs, and comes in its old place.
    let third = run_once(&mut world, &plan, 60 * SECOND_NS);
    assert_eq!(names(&third), [("a1".to_owned(), false), ("a2".to_owned(), false)]);
}

#[test]
fn when_all_are_lost_the_next_run_waits_for_whoever_comes_back() {
    let plan = with_a_secret();
    let mut world = World::new(12, 2, Weather::FAIR, 0);
    for side in [1, 2] {
        world.plan_fault(2_500 * MS, Fault::Kill { side });
    }
    let first = carry_out(&mut world, &plan, of_two(&plan).terms(), 60 * SECOND_NS);
    assert!(matches!(&first, RunResult::Ran { lost_its_agents: true, .. }));
    let second = run_once(&mut world, &plan, 60 * SECOND_NS);
    assert!(matches!(second, RunResult::NotBegun(ClusterError::NobodyLeft)));
    world.plan_fault(world.now, Fault::Restart { side: 2 });
    assert_eq!(names(&run_once(&mut world, &plan, 60 * SECOND_NS)), [("a2".to_owned(), false)]);
}

#[test]
fn a_secret_goes_on_over_a_server_that_was_started_anew() {
    let plan = with_a_secret();
    let mut world = World::new(13, 2, Weather::FAIR, 0);
    let first = carry_out(&mut world, &plan, of_two(&plan).terms(), 60 * SECOND_NS);
    assert_eq!(names(&first).len(), 2);
    world.plan_fault(world.now, Fault::Away { for_ns: 300 * MS, most_payload: 1 << 20 });
    // Another plan, so that it is sent again.
    let plan = Plan { seed: 99, ..plan };
    assert_eq!(
        names(&run_once(&mut world, &plan, 60 * SECOND_NS)),
        [("a1".to_owned(), false), ("a2".to_owned(), false)]
    );
}

/// A run at 100 calls a second for so many seconds.
fn of_a_rate(seconds: u64) -> Plan {
    Plan {
        load: Load::Open { profile: "100".parse().unwrap(), arrivals: Spread::Uniform },
        stop: StopRule { duration_ns: Some(seconds * SECOND_NS), requests: None },
        connections: 8.into(),
        ..Plan::of_calls(Url::parse("http://127.0.0.1/").unwrap().target, ProtocolOptions::default())
    }
}

#[test]
fn when_all_are_silent_for_seconds_nobody_is_lost() {
    let plan = of_a_rate(8);
    let mut world = World::new(14, 2, Weather::FAIR, 0);
    for side in [1, 2] {
        world.plan_fault(3 * SECOND_NS, Fault::CutOff { side, for_ns: 5 * SECOND_NS });
    }
    let came = carry_out(&mut world, &plan, of_two(&plan).terms(), 60 * SECOND_NS);
    assert_eq!(names(&came), [("a1".to_owned(), false), ("a2".to_owned(), false)]);
}

/// Whoever answers, and hangs at a step, is named within its limit.
#[test]
fn an_agent_that_hangs_at_any_step_is_lost_by_its_limit() {
    let plan = with_a_secret();
    // Before setup, in it, while connections are made, in the load, and in teardown.
    for (at_ms, planned_s) in [(1_000, 700), (1_600, 700), (2_400, 700), (3_000, 60), (5_400, 120)] {
        for side in [1, 2] {
            let mut world = World::new(at_ms + side as u64, 2, Weather::FAIR, 0);
            world.plan_fault(at_ms * MS, Fault::Hang { side, for_ns: 3_600 * SECOND_NS });
            let came = carry_out(&mut world, &plan, of_two(&plan).terms(), planned_s * SECOND_NS);
            let said = match &came {
                RunResult::NotBegun(ClusterError::LostBefore { reason, .. }) => reason.clone(),
                RunResult::Ran { run, .. } => {
                    let lost = run.agents.iter().filter_map(|part| match &part.ended {
                        AgentEnd::Lost { reason, .. } => Some(reason.clone()),
                        AgentEnd::Finished => None,
                    });
                    let of_ending = match &run.ending {
                        Ending::Failed(reason) => Some(reason.clone()),
                        _ => None,
                    };
                    lost.chain(of_ending).collect::<Vec<_>>().join("; ")
                }
                RunResult::NotTaken(error) | RunResult::NotBegun(error) => panic!("{error}"),
                RunResult::ControllerDied => panic!("the controller died"),
            };
            // A machine that had done its part already hangs without harm.
            let has_ended = at_ms == 5_400 && said.is_empty();
            assert!(said.contains("it answers, but") || has_ended, "{at_ms} ms, a{side}: {said}");
        }
    }
}

/// Kilobytes of memory that this process has.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_hundred_thousand_messages_of_strangers_change_nothing() {
    let plan = Plan { connections: 20.into(), ..of_a_rate(5) };
    let calm = Case { agents: 3, hardness: Hardness::Calm, on_lost: OnLost::Continue, ..Case::from_seed(0) };
    let calm = Case { plan: plan.clone(), setup_fails: false, liar: None, faults: Vec::new(), ..calm };
    let before = resident_kb();
    let mut world = World::new(3, 3, Weather::FAIR, 50_000);
    let came = carry_out(&mut world, &plan, calm.terms(), 60 * SECOND_NS);
    check(&calm, &world, &came);
    assert!(matches!(came, RunResult::Ran { .. }));
    assert!(world.bus.count > 100_000, "{}", world.bus.count);
    let grown = resident_kb().saturating_sub(before);
    assert!(grown < 100_000, "{grown} kB more");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_goes_wrong_runs_end_and_their_sums_close() {
    let (first, count) = (number("BRUNT_SEED", 1), number("BRUNT_SEEDS", 100));
    let next = AtomicU64::new(first);
    // The seeds of one thread; each takes the next that none has taken.
    let some = || {
        let mut tried = SeedStatistics::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= first + count {
                return tried;
            }
            let ran = std::panic::catch_unwind(|| seed(number));
            if ran.is_err() {
                // One is enough.
                next.store(first + count, Ordering::Relaxed);
            }
            assert!(ran.is_ok(), "BRUNT_SEED={number} BRUNT_SEEDS=1 cargo test -p brunt-cluster simulation");
            let ran = ran.unwrap_or_default();
            (tried.changed, tried.steps) = (tried.changed + ran.changed, tried.steps + ran.steps);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let tried: Vec<SeedStatistics> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (changed, steps) =
        (tried.iter().map(|one| one.changed).sum::<usize>(), tried.iter().map(|one| one.steps).sum::<u64>());
    println!("{steps} steps; {changed} changes took effect");
    assert!(changed > 0 || count < 20, "no run was changed");
    // A thousand seeds are a million steps.
    assert!(steps > 1_000 * count, "{steps} steps of {count} seeds");
}
