//! Users who arrive again, begin later, and are cut off.

use super::*;
use brunt_judge::asked::Asked;

/// The users of a run that arrived, and those among them that found no place, of how many; the users that there were.
fn arrivals(played: &Played) -> (u64, u64, u64) {
    let scenario = played.scenario("s");
    let made = played.summary.made.iter().find(|made| made.of == Asked::Arrivals).unwrap();
    assert_eq!(made.asked as u64, scenario.iterations_begun() + scenario.not_admitted);
    assert_eq!(made.made as u64, scenario.iterations_begun());
    (made.made as u64, scenario.not_admitted, scenario.users_started)
}

#[test]
fn an_arrival_takes_an_idle_user_with_its_state_and_its_connection() {
    let played = play(
        "brunt.scenario('s', function(vu)
           vu.store.times = (vu.store.times or 0) + 1
           http:get('/' .. vu.id .. '/' .. vu.iteration .. '/' .. vu.store.times)
         end):inject { brunt.rate(20, '1s'), reuse_users = true }
         :on_stop(function(vu) http:get('/bye/' .. vu.id) end)",
        hello,
    );
    let visits = (1..=20).map(|n| format!("GET /1/{n}/{n}"));
    assert_eq!(played.lines(), visits.chain(["GET /bye/1".to_owned()]).collect::<Vec<_>>());
    assert_eq!(arrivals(&played), (20, 0, 1));
    assert_eq!(played.summary.total.numbers.get(Counter::ConnectionsMade), 1);
    assert_eq!(played.times()[..3], [0, 50, 100]);
}

#[test]
fn a_user_comes_anew_only_where_none_is_idle() {
    // Each is busy for 351 ms, so that four are needed for ten arrivals a second.
    let script = |options: &str| {
        format!(
            "brunt.scenario('s', function(vu) http:get('/' .. vu.id) brunt.pause(0.35) end)
             :inject {{ brunt.rate(10, '1s'), reuse_users = true{options} }}"
        )
    };
    let played = play(&script(""), hello);
    assert_eq!(arrivals(&played), (10, 0, 4));
    let users: Vec<_> = played.lines().iter().map(|line| line.trim_start_matches("GET /").to_owned()).collect();
    assert_eq!(users, ["1", "2", "3", "4", "1", "2", "3", "4", "1", "2"], "who has waited longest comes first");
    let played = play(&script(", most_alive = 3"), hello);
    assert_eq!(arrivals(&played), (8, 2, 3), "of each four, one finds all three busy");
    for (most, workers) in [(4, 2), (3, 3)] {
        let mut plan = plan_of(&script(&format!(", most_alive = {most}")), &[]).unwrap();
        plan.workers = workers;
        let played = play_with(&plan, hello);
        let (came, not_admitted, users) = arrivals(&played);
        assert_eq!((came + not_admitted, users), (10, most), "{workers} workers");
    }
}

#[test]
fn users_who_failed_are_idle_too_and_those_who_left_are_not() {
    let played = play(
        "brunt.scenario('s', function(vu)
           http:get('/' .. vu.id)
           if vu.iteration == 2 then error('twice') end
           if vu.iteration == 3 then brunt.stop_user() end
         end):inject { brunt.rate(10, '500ms'), reuse_users = true }",
        hello,
    );
    assert_eq!(played.lines(), ["GET /1", "GET /1", "GET /1", "GET /2", "GET /2"]);
    assert_eq!(arrivals(&played), (5, 0, 2));
}

#[test]
fn idle_users_end_when_the_rows_are_used_up() {
    let plan = plan_of(
        "local rows = brunt.csv('r.csv'):queue()
         brunt.scenario('s', function(vu) http:get('/' .. rows:next().n) brunt.pause(0.15) end)
         :inject { brunt.rate(10, '10s'), reuse_users = true }",
        &[("r.csv", "n\n1\n2\n3\n4\n5\n")],
    );
    let played = play_with(&plan.unwrap(), hello);
    assert_eq!(played.lines().len(), 5);
    assert_eq!(played.scenario("s").out_of_rows, 1);
    assert!(played.summary.run.measured_ns < SECOND_NS, "{}", played.summary.run.measured_ns);
}

#[test]
fn populations_start_later() {
    let played = play(
        "local a = brunt.scenario('a', function() http:get('/a') brunt.pause(0.1) end)
         a:inject { brunt.iterations_each(1, 2), start = '200ms' }
         brunt.scenario('b', function() http:get('/b') end):inject { brunt.at_once(1) }
         brunt.scenario('c', function() http:get('/c') brunt.pause(0.1) end):inject { brunt.users(1, '150ms'), start = '30ms' }
         brunt.scenario('d', function() http:get('/d') end):inject { brunt.iterations_shared(1, 1), after = a, start = '50ms' }",
        hello,
    );
    assert_eq!(played.lines(), ["GET /b", "GET /c", "GET /c", "GET /a", "GET /a", "GET /d"]);
    assert_eq!(played.times(), [0, 30, 131, 200, 301, 452]);
}

#[test]
fn no_iteration_begins_after_the_longest_time() {
    for steps in ["brunt.iterations_each(2, 100)", "brunt.iterations_shared(2, 200)"] {
        let script = |options: &str| {
            format!(
                "brunt.scenario('s', function() http:get('/') brunt.pause(0.1) end)
                 :inject {{ {steps}, start = '100ms', longest = '250ms'{options} }}"
            )
        };
        let length = |played: &Played| played.summary.run.measured_ns / MS;
        let played = play(&script(""), hello);
        assert_eq!((played.lines().len(), length(&played)), (6, 403), "{steps}");
        let made = &played.summary.made[0];
        assert_eq!((made.of, made.made as u64, made.asked as u64), (Asked::Iterations, 6, 200));
        let played = play(&script(", grace = '20ms'"), hello);
        assert_eq!((played.lines().len(), length(&played)), (6, 370), "{steps}, cut off");
        assert_eq!(played.scenario("s").iterations.bounds.count(), 2, "those that were cut off");
        // Who would begin its next iteration after the end ends then.
        let paced = script("").replace("brunt.pause(0.1)", "brunt.pacing(10)");
        assert_eq!(length(&play(&paced, hello)), 350, "{steps}, paced");
    }
}

#[test]
fn iterations_are_cut_off_after_their_grace_with_their_calls() {
    fn slow(request: &str) -> (u64, String) {
        let after = if request.contains("/slow") { 2000 * MS } else { MS };
        (after, response("200 OK", "", "x"))
    }
    // A population that goes on all the while, on connections that both share.
    for client in
        ["", ", pool = 5"].map(|pool| format!("brunt.http {{ base = 'http://127.0.0.1', timeout = 3{pool} }}"))
    {
        for steps in ["brunt.users(2, '300ms')", "brunt.at_once(2), brunt.nothing_for('300ms')"] {
            let played = play(
                &format!(
                    "local client = {client}
                     brunt.scenario('cut', function()
                       brunt.group('g', function()
                         brunt.spawn(function() client:get('/slow-task') end)
                         client:batch {{ '/slow', '/fast' }}
                       end)
                     end):inject {{ {steps}, grace = '100ms' }}
                     brunt.scenario('stays', function() client:get('/fast') brunt.pause(0.05) end):inject {{ brunt.users(1, '1s') }}"
                ),
                slow,
            );
            let total = &played.summary.total;
            assert_eq!(total.numbers.get(Counter::Unfinished), 4, "{client} {steps}");
            let cut = played.scenario("cut");
            assert_eq!((cut.iterations.bounds.count(), cut.iterations.known.count()), (2, 0), "{client} {steps}");
            assert_eq!(cut.iterations.bounds.max().unwrap() / MS, 400, "{client} {steps}");
            assert_eq!(total.figures.groups.get("g").unwrap().unfinished, 2);
            assert_eq!(total.failures.total(), 0, "{:?}", total.failures);
            let stays = played.scenario("stays").iterations.known.count();
            assert!((18..=20).contains(&stays), "{stays}");
        }
    }
}

#[test]
fn users_whom_a_ramp_takes_away_are_cut_off_the_last_first() {
    let played = play(
        "brunt.scenario('s', function(vu) http:get('/' .. vu.id) brunt.pause(10) http:get('/end/' .. vu.id) end)
         :inject { brunt.ramp_users(0, 4, '400ms'), brunt.ramp_users(4, 1, '300ms'), brunt.users(1, '2s'),
           grace = '9s', ramp_down_grace = '500ms' }",
        hello,
    );
    assert_eq!(played.lines(), ["GET /1", "GET /2", "GET /3", "GET /4", "GET /end/1"]);
    let cut = played.scenario("s").iterations.bounds.clone();
    // Users 2 to 4 came at 200, 300 and 400 ms. They were one too many from 600, 500 and 400 ms on, and had 500 ms more.
    let mut lengths: Vec<_> = [0.01, 0.5, 0.99].iter().map(|q| cut.quantile(*q).unwrap() / MS).collect();
    lengths.dedup();
    assert_eq!((cut.count(), lengths.first().copied(), lengths.last().copied()), (3, Some(500), Some(900)));
}

#[test]
fn options_that_do_not_fit_are_refused() {
    for (options, expected) in [
        ("brunt.users(1, '1s'), reuse_users = true", "reuse_users is for users who arrive"),
        ("brunt.rate(1, '1s'), longest = '1s'", "longest is for steps that count iterations"),
        ("brunt.rate(1, '1s'), ramp_down_grace = '1s'", "ramp_down_grace is for numbers of users"),
        ("brunt.iterations_each(1, 1), brunt.nothing_for('1s')", "start = \"10s\""),
        ("brunt.users(1, '1s'), start = 'soon'", "start must be a duration"),
        ("brunt.iterations_each(1, 1), longest = 0", "longest must be a length"),
    ] {
        let script = format!("brunt.scenario('s', function() end):inject {{ {options} }}");
        let problem = match plan_of(&script, &[]) {
            Err(problem) => problem,
            Ok(plan) => plan.validate().err().map(|problem| problem.to_string()).unwrap_or_default(),
        };
        assert!(problem.contains(expected), "{options}: {problem}");
    }
}
