//! Users of a lost agent's part, whom others take over.

use std::time::Duration;

use brunt_plan::share::Portion;
use brunt_record::catalogue::Counter;
use brunt_record::recording::Recording;
use brunt_record::series::Point;
use proptest::prelude::*;

use super::*;
use brunt_engine::{Gate, Part, Takeover};

/// Carries out a part. Returns its recording, and the times and paths of the target's requests.
fn carry_out(plan: &Plan, part: Part) -> (Recording, Vec<(u64, String)>) {
    let requests = Requests::default();
    let net = VirtualNet::new(Server { answer: hello, waiting: BTreeMap::new(), requests: Arc::clone(&requests) });
    carry_out_on(plan, part, &net, &requests)
}

fn carry_out_on(plan: &Plan, part: Part, net: &VirtualNet, requests: &Requests) -> (Recording, Vec<(u64, String)>) {
    let run = run_part_on(net, plan, part, &built_in(), &mut Seconds::default()).run;
    let path = |request: &str| request.split(' ').nth(1).unwrap_or("").to_owned();
    let requests = std::mem::take(&mut *requests.lock().unwrap());
    (run, requests.into_iter().map(|(at, _, request)| (at, path(&request))).collect())
}

fn elsewhere(portion: Portion, after_ns: Option<u64>) -> Part {
    let takeover = after_ns.map(|after_ns| Takeover { after_ns, numbers: Vec::new() });
    Part {
        portion,
        takeover,
        surroundings: brunt_engine::Surrounded::Elsewhere(brunt_protocol::scenario::Value::Nil),
        ..Part::whole(1)
    }
}

fn started(run: &Recording) -> u64 {
    [&run.measured, &run.drained]
        .iter()
        .flat_map(|part| part.figures.scenarios.iter())
        .map(|(_, one)| one.users_started)
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Users who arrive one after the other arrive at the times that they would have on one machine, whoever takes them
    /// over.
    #[test]
    fn who_was_still_to_come_comes_elsewhere(
        poisson: bool, workers in prop::collection::vec(1_u32..4, 1..4), lost: prop::sample::Index, parts in 1_u32..5,
        after_ms in 1_u64..900,
    ) {
        let arrivals = if poisson { "poisson" } else { "uniform" };
        let script = format!(
            "brunt.scenario('s', function(user) http:get('/' .. user.id) end)
             :inject {{ brunt.at_once(7), brunt.rate(40, '1s'), brunt.peak(20, '500ms'), arrivals = '{arrivals}' }}"
        );
        let plan = plan_of(&script, &[]).unwrap();
        let of = workers.iter().sum();
        let (whole, mut expected) = carry_out(&plan, Part::whole(of));
        let begin = expected[0].0;
        let lost = lost.index(workers.len());
        let (mut users, mut asked) = (0, Vec::new());
        for (place, count) in workers.iter().enumerate() {
            let portion = Portion::new(workers[..place].iter().sum(), *count, of).unwrap();
            let (own, requests) = carry_out(&plan, elsewhere(portion, None));
            if place != lost {
                users += started(&own);
                asked.extend(requests);
                continue;
            }
            let before = requests.into_iter().filter(|(at, _)| *at < begin + after_ms * MS);
            asked.extend(before.clone());
            users += before.count() as u64;
            for portion in portion.divided(parts) {
                let (own, requests) = carry_out(&plan, elsewhere(portion, Some(after_ms * MS)));
                users += started(&own);
                // The taken-over part's clock begins when it joins.
                asked.extend(requests.into_iter().map(|(at, path)| (at + after_ms * MS, path)));
            }
        }
        asked.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(users, started(&whole));
        // Random arrivals are dealt out from another worker on at each step, so their numbers are not those of their
        // places.
        let seen = |asked: &[(u64, String)]| asked.iter().map(|(at, path)| (*at, if poisson { "" } else { path }.to_owned())).collect::<Vec<_>>();
        prop_assert_eq!(seen(&asked), seen(&expected));
    }
}

#[test]
fn as_many_users_are_there_again() {
    let script = "brunt.scenario('s', function(user) http:get('/' .. user.id) brunt.pause(0.01) end)
                  :inject { brunt.users(9, '2s') }";
    let plan = plan_of(script, &[]).unwrap();
    let lost = Portion::new(1, 1, 3).unwrap();
    let (own, asked) = carry_out(&plan, elsewhere(lost, None));
    assert_eq!(started(&own), 3);
    let names =
        |asked: &[(u64, String)]| asked.iter().map(|(_, path)| path.clone()).collect::<std::collections::BTreeSet<_>>();
    let (mut users, mut paths) = (0, std::collections::BTreeSet::new());
    for portion in lost.divided(2) {
        let (run, asked) = carry_out(&plan, elsewhere(portion, Some(700 * MS)));
        users += started(&run);
        assert!((2 * SECOND_NS..2_100 * MS).contains(&run.measured_ns), "{}: the time before counts", run.measured_ns);
        assert_eq!(run.series.points()[0].start_ns, 0);
        paths.extend(names(&asked));
    }
    assert_eq!((users, paths), (3, names(&asked)));
}

#[test]
fn a_throttle_makes_up_for_nothing_that_came_before() {
    let script = "brunt.throttle('100')
                  brunt.scenario('s', function() http:get('/') end):inject { brunt.users(20, '1s') }";
    let (_, asked) = carry_out(&plan_of(script, &[]).unwrap(), elsewhere(Portion::whole(1), Some(500 * MS)));
    assert!((45..=71).contains(&asked.len()), "{}", asked.len());
    // Not fifty at once. Connecting takes 50 µs, and one call may fall into the moment before.
    let close = asked.windows(2).filter(|pair| pair[1].0 - pair[0].0 < 9 * MS).count();
    assert!(close <= 1, "{asked:?}");
}

/// A process that is stopped and later goes on finds its users given to others. Calls that waited for a connection are
/// not made, either.
#[test]
fn users_beyond_the_horizon_make_no_call() {
    let batch = "http:batch({ { 'GET', '/' }, { 'GET', '/' }, { 'GET', '/' }, { 'GET', '/' }, { 'GET', '/' } })";
    for (prelude, calls) in [
        ("", "http:get('/')"),
        ("", batch),
        ("http = brunt.http { base = 'http://127.0.0.1', pool = 1 }", "http:get('/')"),
    ] {
        let script = format!(
            "{prelude} brunt.scenario('s', function() {calls} brunt.pause(0.005) end):inject {{ brunt.users(8, '4s') }}"
        );
        let requests = Requests::default();
        let server = Server { answer: hello, waiting: BTreeMap::new(), requests: Arc::clone(&requests) };
        let net = VirtualNet::new(server).standing_still(2 * SECOND_NS, SECOND_NS);
        // It stands still from 2 s to 3 s of a clock that begins at 1 s, and may make calls in the first 1.5 s.
        let gate = net.gate_to(Duration::from_millis(1500));
        let part = Part { gate: Some(gate), ..Part::whole(1) };
        let (run, asked) = carry_out_on(&plan_of(&script, &[]).unwrap(), part, &net, &requests);
        assert!(asked.len() > 100 && asked.iter().all(|(at, _)| *at <= 2 * SECOND_NS), "{script}: {:?}", asked.last());
        let mut total = run.measured.clone();
        total.merge(&run.drained);
        assert_eq!(total.numbers.get(Counter::Due), total.ended(), "{script}");
    }
}

/// Once the horizon moves on, all users go on, including those that waited for a connection.
#[test]
fn users_go_on_with_the_horizon() {
    /// Moves the horizon on after the clock has passed it.
    struct Extending(Gate);
    impl brunt_engine::Observer for Extending {
        fn second(&mut self, live: &Live, _so_far: &brunt_engine::RunningTotal<'_>) -> ControlFlow<String> {
            if live.elapsed_ns == 3 * SECOND_NS {
                self.0.extend(36_000 * SECOND_NS);
            }
            ControlFlow::Continue(())
        }
    }
    fn slow(request: &str) -> (u64, String) {
        (900 * MS, hello(request).1)
    }
    // Eight users, each with its own connection, or with one for all of them.
    for (prelude, least) in [("", 5.0), ("http = brunt.http { base = 'http://127.0.0.1', pool = 1 }", 0.9)] {
        let script = format!(
            "{prelude} brunt.scenario('s', function() http:get('/') brunt.pause(0.2) end):inject {{ brunt.users(8, '1h') }}"
        );
        let net = VirtualNet::new(Server { answer: slow, waiting: BTreeMap::new(), requests: Requests::default() });
        let gate = net.gate_to(Duration::from_millis(1500));
        let part = Part { gate: Some(gate.clone()), ..Part::whole(1) };
        let plan = Plan { timeout_ns: 60 * SECOND_NS, ..plan_of(&script, &[]).unwrap() };
        let run = run_part_on(&net, &plan, part, &built_in(), &mut Extending(gate)).run;
        // The observer acts in real time, which simulated time does not wait for. An hour of it is long enough.
        // Users go in step, so a single second may hold one round of theirs more or less.
        let last: Vec<f64> = run.series.points().iter().rev().skip(2).take(33).map(Point::rate).collect();
        assert!(last.iter().sum::<f64>() / last.len() as f64 > least, "{prelude}: {last:?}");
        assert_eq!(run.measured.numbers.get(Counter::Due), run.measured.ended() + run.drained.ended(), "{prelude}");
    }
}

/// A second has all users that were due in it, and no others, whatever the worker does when it ends. So the report of a
/// lost agent's users ends where others begin to count those who never came.
#[test]
fn a_second_has_the_users_that_were_due_in_it() {
    #[derive(Default)]
    struct Started(Vec<u64>);
    impl brunt_engine::Observer for Started {
        fn second(&mut self, live: &Live, _so_far: &brunt_engine::RunningTotal<'_>) -> ControlFlow<String> {
            let scenarios = live.snapshot.figures.scenarios.iter();
            self.0.push(scenarios.map(|(_, one)| one.users_started).sum());
            ControlFlow::Continue(())
        }
    }
    let script = "brunt.scenario('s', function() http:get('/') end):inject { brunt.rate(50, '4s') }";
    let plan = plan_of(script, &[]).unwrap();
    // The clock begins at a full second. The worker stands still when second 1 ends, or ends all seconds on time.
    for still_ns in [0, 300 * MS] {
        let server = Server { answer: hello, waiting: BTreeMap::new(), requests: Requests::default() };
        let net = VirtualNet::new(server).standing_still(2_900 * MS, still_ns);
        let mut started = Started::default();
        run_part_on(&net, &plan, Part::whole(1), &built_in(), &mut started);
        assert_eq!(started.0[..4], [50; 4], "{:?}", started.0);
    }
}

#[test]
fn what_nobody_may_do_twice_is_not_taken_over() {
    let files = [("users.csv", "name\nann\nbob\n")];
    let check = |script: &str| {
        let found = brunt_engine::check_takeover(&plan_of(script, &files).unwrap(), &built_in(), &LuaJit);
        found.map_err(|error| error.to_string())
    };
    let scenario = "brunt.scenario('visit', function() http:get('/') end)";
    for (script, why) in [
        (format!("brunt.csv('users.csv'):queue() {scenario}:inject {{ brunt.rate(5, '1s') }}"), "rows of data"),
        (format!("brunt.csv('users.csv'):per_user() {scenario}:inject {{ brunt.rate(5, '1s') }}"), "rows of data"),
        (format!("{scenario}:inject {{ brunt.iterations_shared(2, 7) }}"), "the iterations of 'visit'"),
        (format!("{scenario}:inject {{ brunt.iterations_each(2, 7) }}"), "the iterations of 'visit'"),
        (
            format!(
                "local a = {scenario}:inject {{ brunt.at_once(2) }}
                 brunt.scenario('b', function() end):inject {{ brunt.at_once(1), after = a }}"
            ),
            "'b' begins when",
        ),
    ] {
        let error = check(&script).unwrap_err();
        assert!(error.contains(why) && error.contains("--on-lost-agent reassign"), "{script}: {error}");
    }
    let shared = "local users = brunt.csv('users.csv'):circular() local some = brunt.csv('users.csv'):random()";
    assert_eq!(check(&format!("{shared} {scenario}:inject {{ brunt.at_once(2), brunt.rate(5, '1s') }}")), Ok(()));
    assert_eq!(check(&format!("{scenario}:inject {{ brunt.ramp_users(0, 5, '1s') }}")), Ok(()));
}
