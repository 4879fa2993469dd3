use super::*;

pub(super) fn population(steps: &[Step]) -> Population {
    Population {
        scenarios: vec![Weighted { scenario: "shop".into(), weight: 1.0 }],
        steps: steps.to_vec(),
        ..Population::default()
    }
}

pub(crate) fn scenarios(populations: Vec<Population>) -> Scenarios {
    let file = File { name: "shop.lua".into(), content: Content::default() };
    Scenarios {
        files: vec![file],
        streamed: Vec::new(),
        env: BTreeMap::new(),
        base_url: None,
        populations,
        throttle: None,
        smallest_pool: None,
        hosts: Hosts::default(),
        trace_ratio: None,
        setup_timeout_ns: None,
        teardown_timeout_ns: None,
        own: Vec::new(),
    }
}

fn problem(steps: &[Step]) -> String {
    scenarios(vec![population(steps)]).validate().err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn injections_that_cannot_be_are_refused() {
    assert_eq!(problem(&[Step::AtOnce { users: 10.0 }, Step::Rate { from: 0.0, to: 9.0, seconds: 2.0 }]), "");
    assert!(problem(&[]).contains("nobody ever comes"));
    assert!(problem(&[Step::NothingFor { seconds: 1.0 }]).contains("nobody ever comes"));
    assert!(problem(&[Step::Rate { from: -1.0, to: 1.0, seconds: 1.0 }]).contains("a rate must be between 0"));
    assert!(problem(&[Step::Rate { from: 1.0, to: 1.0, seconds: f64::NAN }]).contains("a length must be above 0"));
    let closed = Step::Users { from: 1.0, to: 1.0, seconds: 1.0 };
    assert!(problem(&[Step::AtOnce { users: 1.0 }, closed]).contains("cannot go together"));
    assert!(problem(&[Step::IterationsEach { users: 1.0, iterations: 1.0 }, closed]).contains("only step"));
}

#[test]
fn the_smallest_limit_says_how_many_workers_there_may_be() {
    let alive = |most| Population { most_alive: most, ..population(&[Step::AtOnce { users: 9.0 }]) };
    let limited = |alive_at_most: &[Option<u64>], pool| {
        let populations = alive_at_most.iter().map(|most| alive(*most)).collect();
        Scenarios { smallest_pool: pool, ..scenarios(populations) }.most_workers()
    };
    assert_eq!(limited(&[None, None], None), None);
    assert_eq!(limited(&[Some(u64::MAX), Some(3)], Some(5)), Some((3, "most_alive")));
    assert_eq!(limited(&[None, Some(3)], Some(2)), Some((2, "pool")));
}

#[test]
fn a_run_is_changed_without_its_file() {
    let mut changed = scenarios(vec![
        population(&[Step::Rate { from: 0.0, to: 10.0, seconds: 30.0 }, Step::AtOnce { users: 3.0 }]),
        Population { after: Some(0), ..population(&[Step::Users { from: 5.0, to: 5.0, seconds: 30.0 }]) },
    ]);
    assert_eq!(changed.seconds(), 60.0);
    changed.scale(2.0);
    changed.stretch(6.0);
    assert_eq!(
        changed.populations.iter().flat_map(|p| p.steps.clone()).collect::<Vec<_>>(),
        [
            Step::Rate { from: 0.0, to: 20.0, seconds: 3.0 },
            Step::AtOnce { users: 6.0 },
            Step::Users { from: 10.0, to: 10.0, seconds: 3.0 }
        ]
    );
}

#[test]
fn a_constant_load_is_shared_as_the_scripts_own() {
    let rate = |from, to| population(&[Step::Rate { from, to, seconds: 30.0 }, Step::NothingFor { seconds: 9.0 }]);
    let late = Population { start_seconds: 7.0, after: Some(0), most_alive: Some(40), ..rate(30.0, 0.0) };
    let mut shared = scenarios(vec![rate(0.0, 10.0), late]);
    let load = ConstantLoad::Iterations { per_s: 100.0, most_alive: None, reuse_users: true };
    shared.make_constant(load, 5.0).unwrap();
    let step = |per_s| vec![Step::Rate { from: per_s, to: per_s, seconds: 5.0 }];
    let [first, late] = shared.populations.as_slice() else { panic!("{shared:?}") };
    assert_eq!((&first.steps, &late.steps), (&step(25.0), &step(75.0)));
    assert_eq!((late.start_seconds, late.after, late.most_alive, late.reuse_users), (0.0, None, Some(40), true));
    assert_eq!((shared.seconds(), shared.validate()), (5.0, Ok(())));
    // Of a limit for all, each has its part.
    let load = ConstantLoad::Iterations { per_s: 8.0, most_alive: Some(20), reuse_users: false };
    shared.make_constant(load, 5.0).unwrap();
    assert_eq!(shared.populations.iter().map(|each| each.most_alive).collect::<Vec<_>>(), [Some(5), Some(15)]);

    let each = population(&[Step::IterationsEach { users: 1.0, iterations: 9.0 }]);
    let each = Population { longest_seconds: Some(9.0), ..each };
    let mut closed = scenarios(vec![population(&[Step::Users { from: 0.0, to: 3.0, seconds: 2.0 }]), each]);
    closed.make_constant(ConstantLoad::Users(2.0), 1.0).unwrap();
    let step = |users| vec![Step::Users { from: users, to: users, seconds: 1.0 }];
    let steps: Vec<_> = closed.populations.iter().map(|each| each.steps.clone()).collect();
    assert_eq!(steps, [step(2.0), step(1.0)], "each has a user");
    assert_eq!(closed.validate(), Ok(()));

    let mut mixed = scenarios(vec![population(&[Step::AtOnce { users: 1.0 }]), closed.populations.remove(0)]);
    assert!(mixed.make_constant(load, 1.0).unwrap_err().to_string().contains("which one load cannot replace"));
}
