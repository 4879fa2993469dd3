//! Tasks beside a user's own function, and the flow of iterations.

use super::*;
use brunt_record::catalogue::Counter;

fn slow(_request: &str) -> (u64, String) {
    (10 * MS, response("200 OK", "", "x"))
}

fn tracebacks(played: &Played) -> Vec<&str> {
    played.scenario("s").tracebacks.iter().map(|(text, _)| text.as_str()).collect()
}

fn once(script: &str) -> Played {
    play(&format!("brunt.scenario('s', function(vu) {script} end):inject {{ brunt.iterations_each(1, 1) }}"), slow)
}

#[test]
fn tasks_go_on_beside_their_user_and_give_what_they_return() {
    let played = once(
        "local a = brunt.spawn(function(x) http:get('/a1') http:get('/a2') return x, 'b' end, 'a')
         local b = brunt.spawn(function() brunt.pause('5ms') http:get('/b') vu.store.b = true end)
         http:get('/main')
         local one, two = a:wait()
         brunt.wait()
         if one == 'a' and two == 'b' and vu.store.b and a:has_ended() then http:get('/all') end",
    );
    assert_eq!(tracebacks(&played), [""; 0]);
    assert_eq!(played.lines(), ["GET /main", "GET /a1", "GET /b", "GET /a2", "GET /all"]);
    assert_eq!(played.times(), [0, 0, 5, 10, 20]);
    assert_eq!(played.scenario("s").iterations.count(), 1);
    // As in a browser, the connections are the user's, whichever of its tasks calls.
    assert_eq!(played.summary.total.numbers.get(Counter::ConnectionsMade), 3);
}

#[test]
fn cookies_are_the_users_whoever_of_it_calls() {
    fn site(request: &str) -> (u64, String) {
        let fields = if request.starts_with("GET /login") { "Set-Cookie: id=7\r\n" } else { "" };
        (MS, response("200 OK", fields, ""))
    }
    let played = play(
        "brunt.scenario('s', function() brunt.spawn(function() http:get('/login') end):wait() http:get('/in') end)
           :inject { brunt.iterations_each(1, 1) }",
        site,
    );
    assert!(played.requests[1].2.contains("\r\nCookie: id=7\r\n"), "{:?}", played.requests);
}

#[test]
fn an_iteration_ends_its_tasks_and_what_they_have_under_way_is_counted() {
    let played = play(
        "brunt.scenario('s', function(vu)
           brunt.spawn(function() while true do brunt.pause('4ms') end end)
           brunt.spawn(function() http:get('/task') http:get('/never') end)
           brunt.spawn(function() brunt.group('g', function() brunt.pause('1h') end) end)
           brunt.pause('5ms')
           vu.store.n = (vu.store.n or 0) + 1
           if vu.store.n == 2 then error('oh') end
         end):inject { brunt.iterations_each(1, 3) }",
        slow,
    );
    assert_eq!(played.lines(), ["GET /task"; 3]);
    // The next iteration begins when the call of the last iteration's task has ended.
    assert_eq!(played.times(), [0, 10, 20]);
    assert_eq!(played.summary.total.statuses.total(), 3);
    let scenario = played.scenario("s");
    assert_eq!((scenario.iterations.count(), scenario.errors), (2, 1));
    assert_eq!(played.summary.total.figures.groups.get("g").unwrap().unfinished, 3);
}

#[test]
fn an_error_in_a_task_is_that_of_who_waits_or_of_the_iteration() {
    let waited = once(
        "local task = brunt.spawn(function() http:get('/a') error('in the task') end)
         local fine, problem = pcall(task.wait, task)
         if not fine and problem:find('in the task') then http:get('/seen') end",
    );
    assert_eq!(waited.lines(), ["GET /a", "GET /seen"]);
    assert_eq!(tracebacks(&waited), [""; 0]);
    let nobody = once("brunt.spawn(function() error('in the task') end) http:get('/a')");
    assert!(tracebacks(&nobody)[0].contains("in the task"), "{:?}", tracebacks(&nobody));
    let wrong = play(
        "brunt.scenario('s', function()
           if http:get('/a').body == 'x' then brunt.spawn(function() http:get('/b', { naem = 1 }) end) end
           http:get('/c')
         end):inject { brunt.iterations_each(1, 9) }",
        slow,
    );
    let Ending::Failed(problem) = &wrong.summary.run.ending else { panic!("{:?}", wrong.summary.run.ending) };
    assert!(problem.contains("s.lua:2: a request has no option 'naem'"), "{problem}");
}

#[test]
fn a_time_limit_ends_what_takes_longer() {
    let played = once(
        "local given, why = brunt.timeout(function() http:get('/long') http:get('/never') return 1 end, '4ms')
         http:get('/' .. tostring(given) .. '-' .. why)
         local value = brunt.timeout(function() http:get('/short') return 'in-time' end, '40ms')
         http:get('/' .. value)",
    );
    assert_eq!(tracebacks(&played), [""; 0]);
    assert_eq!(played.lines(), ["GET /long", "GET /nil-timeout", "GET /short", "GET /in-time"]);
    assert_eq!(played.times()[1], 4);
    assert_eq!(played.summary.total.statuses.total(), 4, "what was cut off is counted");
}

#[test]
fn tasks_can_be_waited_for_a_while_and_cancelled() {
    let played = once(
        "local task = brunt.spawn(function() brunt.pause('50ms') http:get('/never') end)
         local nothing, why = task:wait('3ms')
         if nothing == nil and why == 'timeout' and not task:has_ended() then http:get('/waited') end
         task:cancel() task:cancel()
         if task:has_ended() and task:wait() == nil then http:get('/cancelled') end
         brunt.pause('100ms')",
    );
    assert_eq!(tracebacks(&played), [""; 0]);
    assert_eq!(played.lines(), ["GET /waited", "GET /cancelled"]);
}

#[test]
fn a_cancelled_task_leaves_the_calls_that_a_throttle_holds_back() {
    let played = play(
        "brunt.throttle('10')
         brunt.scenario('s', function()
           local task = brunt.spawn(function() http:batch { '/1', '/2', '/3', '/4' } end)
           brunt.pause('150ms')
           task:cancel()
           http:get('/after')
         end):inject { brunt.iterations_each(1, 2) }",
        slow,
    );
    // The throttle does not reuse the slots of dropped calls: the second iteration begins in the middle of one.
    assert_eq!(played.lines(), ["GET /1", "GET /2", "GET /after", "GET /1", "GET /after"]);
    assert_eq!((played.scenario("s").iterations.count(), played.scenario("s").errors), (2, 0));
}

#[test]
fn misuse_of_tasks_is_said() {
    for (script, expected) in [
        ("brunt.spawn('x')", "brunt.spawn takes a function, not 'x'"),
        ("brunt.timeout(function() end, '2 fortnights')", "the length of brunt.timeout must be a duration"),
        ("brunt.spawn(function() http:get('/', { naem = 1 }) end)", "a request has no option 'naem'"),
        ("brunt.choose { { function() http:get('/', { naem = 1 }) end, 1 } }", "a request has no option 'naem'"),
        ("brunt.retry({ tmies = 2 }, function() end)", "brunt.retry has no option 'tmies'"),
        ("brunt.during('1x', function() end)", "the length of brunt.during must be a duration"),
    ] {
        let script = format!("brunt.scenario('s', function() {script} end):inject {{ brunt.iterations_each(1, 1) }}");
        let problem =
            brunt_engine::check(&plan_of(&script, &[]).unwrap(), &built_in(), &LuaJit).unwrap_err().to_string();
        assert!(problem.contains(expected), "{script}: {problem}");
    }
    let many = once("for i = 1, 101 do brunt.spawn(function() brunt.pause(1) end) end");
    assert!(tracebacks(&many)[0].contains("this user has 100 tasks"), "{:?}", tracebacks(&many));
}

#[test]
fn the_run_may_end_while_tasks_are_under_way() {
    let played = play(
        "brunt.scenario('s', function()
           for i = 1, 3 do brunt.spawn(function() while true do http:get('/task') end end) end
           while true do http:get('/main') brunt.pause('1ms') end
         end):inject { brunt.users(2, '35ms') }",
        slow,
    );
    let total = &played.summary.total;
    assert_eq!(total.numbers.get(Counter::Due), total.ended());
    assert!(total.numbers.get(Counter::Due) > 20, "{}", total.numbers.get(Counter::Due));
}

#[test]
fn what_fails_is_tried_again() {
    fn moody(request: &str) -> (u64, String) {
        let status =
            if request.starts_with("GET /1 ") || request.starts_with("GET /2 ") { "503 Busy" } else { "200 OK" };
        (MS, response(status, "", ""))
    }
    let played = play(
        "brunt.scenario('s', function()
           local n = 0
           local answer = brunt.retry({ times = 5, pause = '10ms' }, function() n = n + 1 return http:get('/' .. n) end)
           if answer.ok and n == 3 then http:get('/fine') end
           local last = brunt.retry({ times = 2 }, function() return http:get('/1') end)
           if not last.ok then http:get('/last') end
           local tries = 0
           local given = brunt.retry({ when = function(x) return x < 3 end }, function() tries = tries + 1 return tries end)
           http:get('/given-' .. given)
           brunt.retry({ times = 2 }, function() error('always') end)
         end):inject { brunt.iterations_each(1, 1) }",
        moody,
    );
    let lines = ["/1", "/2", "/3", "/fine", "/1", "/1", "/last", "/given-3"].map(|path| format!("GET {path}"));
    assert_eq!(played.lines(), lines);
    assert_eq!(played.times()[..3], [0, 11, 22]);
    assert!(tracebacks(&played)[0].contains("always"));
}

#[test]
fn a_group_that_an_error_ends_is_over_where_it_is_caught() {
    let played = play(
        "brunt.scenario('s', function()
           pcall(brunt.group, 'outer', function()
             brunt.group('inner', function() brunt.pause('5ms') error('caught') end)
           end)
           brunt.pause('10ms')
           local tries = 0
           brunt.retry({ times = 2 }, function()
             brunt.group('tried', function() tries = tries + 1 if tries == 1 then brunt.fail('first') end end)
           end)
           brunt.group('last', function() http:get('/') end)
         end):inject { brunt.iterations_each(1, 3) }",
        hello,
    );
    assert_eq!(tracebacks(&played), [""; 0]);
    let groups = &played.summary.total.figures.groups;
    let counted = |name: &str| {
        let group = groups.get(name).unwrap();
        (group.with_pauses.count(), group.failed, group.unfinished)
    };
    let names: Vec<_> = groups.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["outer", "outer/inner", "tried", "last"]);
    assert_eq!([counted("outer"), counted("outer/inner")], [(3, 3, 0); 2]);
    assert_eq!([counted("tried"), counted("last")], [(6, 3, 0), (3, 0, 0)]);
    let longest = groups.get("outer/inner").unwrap().with_pauses.lower().max().unwrap();
    assert_eq!(longest / MS, 5, "a group ends with its error, and not with the next group or iteration");
}

#[test]
fn an_error_out_of_a_group_is_told_with_where_it_was_raised() {
    let played = once(
        "local function deep() error('far down') end
         brunt.group('a', function() brunt.group('b', function() http:get('/') deep() end) end)",
    );
    let traceback = tracebacks(&played)[0];
    assert!(traceback.starts_with("s.lua:1: far down") && traceback.contains("in function 'deep'"), "{traceback}");
    let groups = &played.summary.total.figures.groups;
    let failed = ["a", "a/b"].map(|name| groups.get(name).map(|group| group.failed));
    assert_eq!(failed, [Some(1); 2]);
}

#[test]
fn an_iteration_can_end_in_the_middle_and_last_for_a_while() {
    let played = play(
        "brunt.scenario('s', function(vu)
           brunt.group('g', function()
             brunt.during('25ms', function() http:get('/loop') end)
             if vu.iteration == 1 then brunt.exit_here() end
           end)
           http:get('/after')
         end):inject { brunt.iterations_each(1, 2) }",
        slow,
    );
    assert_eq!(played.lines(), [&["GET /loop"; 6][..], &["GET /after"]].concat());
    let scenario = played.scenario("s");
    assert_eq!((scenario.iterations.count(), scenario.errors), (2, 0));
    let group = played.summary.total.figures.groups.get("g").unwrap();
    assert_eq!((group.with_pauses.count(), group.unfinished), (2, 0));
    // A function that waits for nothing does not stop the clock.
    let still = once("local n = 0 brunt.during('1ms', function() n = n + 1 end) http:get('/done')");
    assert_eq!(still.lines(), ["GET /done"]);
}

#[test]
fn a_choice_is_made_by_weight() {
    let played = play(
        "brunt.scenario('s', function(vu)
           brunt.choose { { function() http:get('/a') end, 90 }, { function() http:get('/b') end, 10 },
             { function() http:get('/c') end, 0 } }
         end):inject { brunt.iterations_each(1, 400) }",
        hello,
    );
    let count = |line: &str| played.lines().iter().filter(|known| **known == line).count();
    assert!((340..380).contains(&count("GET /a")), "{}", count("GET /a"));
    assert_eq!((count("GET /a") + count("GET /b"), count("GET /c")), (400, 0));
}

#[test]
fn users_meet_and_go_on_at_once() {
    let played = play(
        "brunt.scenario('s', function(vu)
           brunt.pause(vu.id * 0.01)
           local met = brunt.rendezvous('gate', 3, '1s')
           http:get(met and '/met' or '/alone')
         end):inject { brunt.at_once(7) }",
        hello,
    );
    assert_eq!(played.lines(), [&["GET /met"; 6][..], &["GET /alone"]].concat());
    assert_eq!(played.times(), [0, 0, 0, 30, 30, 30, 1040]);
}
