//! How a user's iterations follow one another: at once, without a round through the engine, or not.

use super::*;
use brunt_record::catalogue::Counter;

/// The shortest and the longest iteration, in milliseconds.
fn lengths(played: &Played) -> (Option<u64>, Option<u64>) {
    let iterations = &played.scenario("s").iterations.known;
    (iterations.min().map(|ns| ns / MS), iterations.max().map(|ns| ns / MS))
}

#[test]
fn iterations_that_follow_at_once_are_told_apart() {
    let played = play(
        "brunt.scenario('s', function(vu) http:get('/' .. vu.iteration) end):inject { brunt.users(1, 0.0105) }",
        hello,
    );
    // Each answer takes 1 ms; the eleventh iteration is begun before the end, and ends after it.
    let expected: Vec<_> = (1..=11).map(|iteration| format!("GET /{iteration}")).collect();
    assert_eq!(played.lines(), expected);
    assert_eq!(played.times(), (0..=10).collect::<Vec<_>>());
    assert_eq!(played.scenario("s").iterations.known.count(), 11);
    assert_eq!(lengths(&played), (Some(1), Some(1)));
}

#[test]
fn pacing_holds_from_the_iteration_that_asks_for_it() {
    let script = "brunt.scenario('s', function(vu)
        http:get('/')
        if vu.iteration == 3 then brunt.pacing(0.01) end
      end):inject { brunt.users(1, 0.035) }";
    assert_eq!(play(script, hello).times(), [0, 1, 2, 12, 22, 32]);
}

#[test]
fn an_error_ends_the_iteration_that_was_begun_at_once_and_no_other() {
    let script = "brunt.scenario('s', function(vu)
        if vu.iteration == 3 then error('third') end
        http:get('/' .. vu.iteration)
      end):inject { brunt.users(1, 0.0045) }";
    let played = play(script, hello);
    assert_eq!(played.lines(), ["GET /1", "GET /2", "GET /4", "GET /5", "GET /6"]);
    let scenario = played.scenario("s");
    assert_eq!((scenario.iterations.count(), scenario.errors), (5, 1));
}

#[test]
fn a_function_that_calls_nothing_now_and_then_ends_its_iteration_all_the_same() {
    let script = "brunt.scenario('s', function(vu)
        if vu.iteration % 3 == 1 then http:get('/' .. vu.iteration) end
      end):inject { brunt.users(1, 0.0025) }";
    let played = play(script, hello);
    assert_eq!(played.lines(), ["GET /1", "GET /4", "GET /7"]);
    assert_eq!(played.scenario("s").iterations.count(), 6 + 1);
}

#[test]
fn calls_that_are_the_same_each_time_keep_their_own_names_tags_and_timeouts() {
    fn slow(request: &str) -> (u64, String) {
        (if request.contains("/slow") { 20 * MS } else { MS }, response("200 OK", "", ""))
    }
    let script = "brunt.scenario('s', function(vu)
        http:get('/a', { name = 'one', tags = { plan = vu.iteration == 1 and 'pro' or 'free' } })
        http:get('/a')
        local late = http:get('/slow', { timeout = 0.005 })
        brunt.check(late, { late = late.error == 'timeout' })
        http:get('/slow', { timeout = 0.5 })
        http:head('/a')
      end):inject { brunt.iterations_each(1, 2) }";
    let played = play(script, slow);
    let figures = &played.summary.total.figures;
    let due = |name: &str| figures.requests.get(name).map(|calls| calls.numbers.get(Counter::Due));
    assert_eq!([due("one"), due("GET /a"), due("GET /slow"), due("HEAD /a")], [Some(2), Some(2), Some(4), Some(2)]);
    let tagged = |name: &str| figures.tags.get(name).map(|calls| calls.numbers.get(Counter::Due));
    assert_eq!([tagged("plan=pro"), tagged("plan=free")], [Some(1), Some(1)]);
    assert_eq!(figures.checks.get("GET /slow: late").unwrap().passes, 2);
    let sent: Vec<_> = played.requests.iter().map(|(.., request)| request.len()).collect();
    let bytes: u64 = figures.requests.iter().map(|(_, calls)| calls.numbers.get(Counter::ClearOut)).sum();
    // The bytes sent for answered calls: all but the two whose answers came too late.
    let late = played.requests.iter().find(|(.., request)| request.contains("/slow")).unwrap().2.len();
    assert_eq!(bytes as usize, sent.iter().sum::<usize>() - 2 * late);
}

#[test]
fn pacing_holds_after_an_iteration_that_an_error_has_ended() {
    let script = "brunt.scenario('s', function(vu)
        brunt.pacing(0.01)
        http:get('/' .. vu.iteration)
        if vu.iteration % 2 == 0 then error('even') end
      end):inject { brunt.iterations_each(1, 4) }";
    let played = play(script, hello);
    assert_eq!(played.times(), [0, 10, 20, 30]);
    assert_eq!(played.scenario("s").errors, 2);
}

#[test]
fn the_script_ends_the_run_for_its_reason() {
    let script = "brunt.scenario('s', function(vu)
        http:get('/')
        if vu.iteration == 3 then brunt.stop_run(REASON) end
      end):inject { brunt.users(1, 60) }";
    for (reason, ending) in [
        ("'the database is gone'", Ending::GivenUp("the database is gone".to_owned())),
        ("'seen enough', { ok = true }", Ending::Stopped("seen enough".to_owned())),
        ("{ ok = true, reason = 'seen enough' }", Ending::Stopped("seen enough".to_owned())),
        ("{ ok = false }", Ending::GivenUp("no reason given".to_owned())),
    ] {
        let played = play(&script.replace("REASON", reason), hello);
        assert_eq!((played.requests.len(), played.summary.run.ending), (3, ending), "{reason}");
    }
}

#[test]
fn the_most_users_are_seen_between_two_seconds() {
    // All users come at one moment, and have gone long before the second is over.
    let played = play("brunt.scenario('s', function() http:get('/') end):inject { brunt.at_once(7) }", hello);
    assert_eq!(played.summary.run.series.most_users(), 7);
}
