//! `brunt run`: scenarios against the built-in target and nginx, with what came of them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "network/nginx.rs"]
mod nginx;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "cli/program.rs"]
mod program;

use brunt_testbed::server::{Config, Server};
use nginx::Nginx;
use program::{Directory, Done, Running, brunt, done, run};
use rustix::process::Signal;
use serde_json::Value;

/// A script in a directory of its own, for a client with this base.
fn script(base: &str, text: &str) -> (Directory, String) {
    let directory = Directory::new();
    let prelude = format!("local brunt = require 'brunt'; local http = brunt.http {{ base = '{base}' }}\n");
    let path = directory.file("s.lua", prelude + text);
    (directory, path)
}

/// Runs a script with these further arguments, to this exit status; its result, which adds up.
#[track_caller]
fn play(path: &str, args: &[&str], status: i32) -> Value {
    let done = done(brunt(["run", path]).args(args).args(["--format", "json"])).with_status(status);
    let json: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:#?}"));
    let outcomes = &json["outcomes"];
    let count = |name: &str| outcomes[name].as_u64().unwrap();
    assert_eq!(
        count("due"),
        ["answered", "failed", "unfinished", "unsent"].map(count).iter().sum::<u64>(),
        "{outcomes:#}"
    );
    json
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn what_users_do_stands_in_the_servers_log() {
    let nginx = Nginx::start("location / { return 200 hello; }");
    let text = "brunt.scenario('s', function(vu)
         local r = http:get('/a', { name = 'a' })
         brunt.check(r, { ['200'] = r.status == 200, hello = r.body == 'hello' })
         brunt.group('rest', function() http:post('/b', { body = 'x' }) http:batch { '/c', '/d' } end)
       end):inject { brunt.iterations_shared(7, 50) }";
    let (_directory, path) = script(nginx.url("").trim_end_matches('/'), text);
    let json = play(&path, &["-t", "3"], 0);
    assert_eq!(json["outcomes"]["answered"], 200);
    let log = nginx.log();
    let count = |path: &str| log.iter().filter(|line| line.get("request_uri") == path).count();
    assert_eq!(["/a", "/b", "/c", "/d"].map(count), [50; 4]);
}

#[test]
fn there_are_no_more_threads_than_a_limit_of_the_script() {
    let server = Server::start(Config::default()).unwrap();
    let text = "local one = brunt.http { base = http.base, pool = 1 }
       brunt.scenario('s', function() one:get('/') end):inject { brunt.iterations_each(3, 2) }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let refused = run(["run", &path, "-t", "2"]).with_status(2);
    assert!(
        refused.stderr.contains("-t 2 is too many: the script's pool = 1 holds for all threads together"),
        "{refused:#?}"
    );
    let json = play(&path, &[], 0);
    assert_eq!((&json["plan"]["workers"], &json["outcomes"]["answered"]), (&1.into(), &6.into()), "{:#}", json["plan"]);
}

#[test]
fn a_figure_of_the_scripts_own_ends_a_run_that_cannot_pass() {
    let server = Server::start(Config::default()).unwrap();
    for (declared, recorded, condition) in [
        ("brunt.counter('own')", "own:add()", "['own:sum'] = { '< 5', abort = true }"),
        ("brunt.trend('own')", "own:add(90)", "['own:max'] = { '< 50', abort = true }"),
        ("brunt.rate('own')", "own:add(true)", "['own:share'] = { '< 0.1%', abort = true }"),
    ] {
        let text = format!(
            "local own = {declared}
             local first = brunt.scenario('first', function() http:get('/') end):inject {{ brunt.iterations_each(1, 1) }}
             brunt.scenario('s', function() http:get('/') {recorded} brunt.pause('10ms') end)
               :inject {{ brunt.users(2, '30s'), after = first }}
             brunt.expect {{ {condition} }}"
        );
        let (_directory, path) = script(server.url().trim_end_matches('/'), &text);
        let json = play(&path, &[], 1);
        let why = json["ending"]["aborted"].as_str().unwrap_or_else(|| panic!("{condition}: {:#}", json["ending"]));
        assert!(why.starts_with("the threshold own:") && why.contains("could no longer pass"), "{why}");
    }
}

#[test]
fn what_setup_recorded_counts_while_the_run_goes_on() {
    let server = Server::start(Config::default()).unwrap();
    let text = "local spent = brunt.counter('spent')
       brunt.setup(function() spent:add(5) end)
       brunt.scenario('s', function() http:get('/') brunt.pause('10ms') end):inject { brunt.users(2, '30s') }
       brunt.expect { ['spent:sum'] = { '< 3', abort = true } }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let json = play(&path, &[], 1);
    let why = json["ending"]["aborted"].as_str().unwrap_or_else(|| panic!("{:#}", json["ending"]));
    assert!(why.starts_with("the threshold spent:sum") && why.ends_with("it was at 5"), "{why}");
}

#[test]
fn a_limit_without_its_unit_is_refused_before_the_load() {
    let text = "brunt.scenario('s', function() http:get('/', { name = 'login' }) end):inject { brunt.at_once(1) }";
    let (_directory, path) = script("http://127.0.0.1:1", text);
    let refused = run(["run", &path, "--threshold", "login:p95<500"]).with_status(2);
    assert!(refused.stderr.contains("expected a duration with its unit, such as 50ms, got '500'"), "{refused:#?}");
    let flood = run(["http://127.0.0.1:1/", "--threshold", "login:sum<5"]).with_status(2);
    assert!(flood.stderr.contains("no script declares a figure 'login'"), "{flood:#?}");
}

#[test]
fn what_scripts_say_and_what_fails_is_written_down() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('s', function(vu)
         brunt.log('debug', 'nobody sees this')
         brunt.log('warn', 'iteration', vu.iteration, nil, true)
         http:get('/', { name = 'fine' })
         http:get('/_/status/503?token=t0p', { bearer = 't0psecret', name = 'broken' })
         local bad = http:get('/', { name = 'bad' })
         brunt.check(bad, { ['has a unicorn'] = bad:has_regex('unicorn') })
         if vu.iteration == 10 then error('oh') end
       end):inject { brunt.iterations_each(1, 10) }";
    let (directory, path) = script(server.url().trim_end_matches('/'), text);
    let log = directory.path("log.txt");
    play(&path, &["-t", "1", "--log", &log, "--debug", "20%"], 0);
    let written = std::fs::read_to_string(&log).unwrap();
    let count = |what: &str| written.matches(what).count();
    assert_eq!((count(" s 1 warn: iteration 3 nil true\n"), count("warn: ")), (1, 10), "{written}");
    assert_eq!((count("nobody sees"), count("→ fine")), (0, 0), "{written}");
    // Of twenty calls that fail, each fifth, whole.
    assert_eq!(count("→ broken") + count("→ bad"), 4, "{written}");
    assert!(
        count("GET /_/status/503?token=[redacted] HTTP/1.1") == 2 && count("Authorization: [redacted]") == 2,
        "{written}"
    );
    assert_eq!((count("t0p"), count("✗ bad: has a unicorn")), (0, 2), "{written}");
    assert_eq!(count("s.lua:9: oh"), 1, "{written}");
    let again = directory.path("all.txt");
    play(&path, &["-t", "1", "--log", &again, "--log-level", "debug", "--debug", "100%"], 0);
    let written = std::fs::read_to_string(&again).unwrap();
    assert_eq!(written.matches("debug: nobody sees this").count(), 10);
    assert_eq!(written.matches("→ broken").count() + written.matches("→ bad").count(), 20);
    for (args, expected) in [
        (["--debug", "1%"], "--log <FILE>"),
        (["--log", "/nowhere/log"], "cannot write /nowhere/log"),
        (["--log-level", "loud"], "expected debug, info, warn or error"),
    ] {
        let refused = run(["run", &path, args[0], args[1]]).with_status(2).stderr;
        assert!(refused.contains(expected), "{refused}");
    }
    let once = run(["run", &path, "--once"]).with_status(0).stdout;
    assert!(once.contains("warn: iteration 1 nil true"), "{once}");
}

/// A check whose value is nil is none in Lua's tables: it would go unseen.
#[test]
fn what_a_script_has_forgotten_is_noted() {
    let server = Server::start(Config::default()).unwrap();
    let text = "local token, untouched = nil, 0
       brunt.scenario('s', function(vu)
         token = http:get('/', { name = 'home' }).status + untouched
         brunt.check(nil, { counted = token == 200 })
         if vu.id > 9 then brunt.check(nil, { ['never a'] = true, never_b = true, counted = true }) end
       end):inject { brunt.iterations_each(1, 2) }
       brunt.expect { ['\"home\":p95'] = '< 10s', ['hom:p95'] = '< 10s' }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let done = run(["run", &path]).with_status(1);
    let expected = format!("note: the checks 'never a' ({path}:6), 'never_b' ({path}:6) were never counted");
    assert!(done.stderr.contains(&expected), "{done:#?}");
    let expected = format!("note: {path}:4: scenarios assign 'token', a local of the script's top");
    assert!(done.stderr.contains(&expected), "{done:#?}");
    assert!(!done.stderr.contains("untouched"), "{done:#?}");
    assert!(done.stdout.contains("nothing has the name 'hom'; did you mean the request 'home'?"), "{done:#?}");
    assert!(!done.stdout.contains("the name '\"home\"'"), "{done:#?}");
}

#[test]
fn a_check_on_what_is_not_found_fails() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('s', function(vu)
         local r = http:get('/', { name = 'home' })
         brunt.check(r, { find = r:find('nowhere'), match = r:match('no(where)'), found = r:find('%a'), got = r:match('%a') })
       end):inject { brunt.iterations_shared(1, 3) }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let json = play(&path, &["-t", "1"], 0);
    let checks: Vec<_> =
        json["names"]["checks"].as_array().unwrap().iter().map(|c| (&c["check"], &c["passes"], &c["fails"])).collect();
    for (check, passes, fails) in [("find", 0, 3), ("match", 0, 3), ("found", 3, 0), ("got", 3, 0)] {
        assert!(
            checks.contains(&(&Value::from(check), &Value::from(passes), &Value::from(fails))),
            "{check}: {checks:?}"
        );
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn what_authorizes_at_one_place_does_not_follow_a_redirect_to_another() {
    let other = Nginx::start("location / { return 200 '[$http_authorization][$http_cookie][$http_x_own]'; }");
    let there = other.url("/there");
    let nginx = Nginx::start(&format!(
        "location /away {{ return 302 {there}; }}
         location /back {{ return 302 /here; }}
         location /here {{ return 200 '[$http_authorization][$http_cookie][$http_x_own]'; }}"
    ));
    let base = nginx.url("");
    let text = format!(
        "local all = brunt.http {{ base = '{}', headers = {{ Authorization = 'A', Cookie = 'c=1', ['X-Own'] = 'x' }} }}
         brunt.scenario('s', function(vu)
           local function same(answer, wanted) brunt.check(answer, {{ [wanted] = answer.body == wanted }}) end
           same(all:get('/back'), '[A][c=1][x]')
           same(all:get('/away'), '[][][x]')
           same(http:get('/back', {{ headers = {{ Authorization = 'B' }} }}), '[B][][]')
           same(http:get('/away', {{ headers = {{ authorization = 'B' }} }}), '[][][]')
         end):inject {{ brunt.iterations_shared(1, 1) }}",
        base.trim_end_matches('/')
    );
    let (_directory, path) = script(base.trim_end_matches('/'), &text);
    let json = play(&path, &["-t", "1"], 0);
    let checks = json["names"]["checks"].as_array().unwrap();
    assert!(checks.len() == 4 && checks.iter().all(|check| check["fails"] == 0), "{:#}", json["names"]);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn setup_gives_users_what_it_found_and_teardown_comes_last() {
    let nginx = Nginx::start("location / { return 200 $request_uri; }");
    let text = "brunt.setup(function() return { token = http:get('/token').body, deep = { 1, { x = true } } } end)
       brunt.scenario('s', function(vu, given)
         if given.deep[2].x then http:get('/use' .. given.token) end
       end):inject { brunt.iterations_each(2, 2) }
       brunt.teardown(function(given) http:get('/end' .. given.token) end)";
    let (_directory, path) = script(nginx.url("").trim_end_matches('/'), text);
    let json = play(&path, &["-t", "2"], 0);
    assert_eq!(json["outcomes"]["due"], 4, "setup and teardown are in no figure");
    let log = nginx.log();
    let paths: Vec<_> = log.iter().map(|line| line.get("request_uri")).collect();
    assert_eq!(paths, [&["/token"][..], &["/use/token"; 4], &["/end/token"]].concat());
}

#[test]
fn modules_data_and_settings_travel_with_the_plan() {
    let server = Server::start(Config::default()).unwrap();
    let text = "local names = require 'lib.names'
       local users = brunt.csv('users.csv'):queue()
       brunt.scenario('s', function() http:get('/' .. names.path(users:next().name) .. brunt.env('TAIL', 'none')) end)
         :inject { brunt.users(2, '30s') }";
    let (directory, path) = script("http://127.0.0.1:1", text);
    std::fs::create_dir(directory.path("lib")).unwrap();
    directory.file("lib/names.lua", "return { path = function(name) return name:upper() end }");
    directory.file("users.csv", "name\nann\nbob\n");
    let plan = directory.path("plan.json");
    let change = ["--base-url", &server.url(), "--env", "TAIL=x", "--write-plan", &plan, "--dry-run"];
    done(brunt(["run", &path]).args(change)).with_status(0);
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(directory.path("users.csv")).unwrap();
    let done = run(["--plan", &plan, "--format", "json"]).with_status(0);
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    let names: Vec<_> =
        json["names"]["requests"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(json["outcomes"]["due"], 2);
    assert!(names.contains(&"GET /ANNx") && names.contains(&"GET /BOBx"), "{names:?}");
}

#[test]
fn a_run_is_changed_without_editing_its_file() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') end):inject { brunt.rate(100, '10s') }";
    let (_directory, path) = script(&server.url(), text);
    let json = play(&path, &["--scale", "2x", "--duration", "500ms"], 0);
    assert_eq!(json["outcomes"]["due"], 100);
}

#[test]
fn thresholds_of_the_script_decide() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('s', function()
         local r = http:get('/', { name = 'home' })
         brunt.check(r, { wrong = r.status == 404 })
       end):inject { brunt.iterations_each(1, 10) }
       brunt.expect { error_rate = '< 0.1%', ['home:p95'] = '< 10s' }";
    let (_directory, path) = script(&server.url(), text);
    let json = play(&path, &[], 1);
    let held = |figure: &str| {
        let thresholds = json["thresholds"].as_array().unwrap();
        let found = thresholds.iter().find(|one| one["threshold"].as_str().unwrap().starts_with(figure));
        found.unwrap_or_else(|| panic!("{figure} in {thresholds:?}"))["held"].as_bool()
    };
    assert_eq!((held("error_rate"), held("home:p95")), (Some(false), Some(true)));
}

#[test]
fn calls_are_judged_by_conditions_and_by_what_the_script_says_of_them() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('shop', function(vu)
         http:get('/', { name = 'home' })
         brunt.group('cart', function()
           local r = http:get('/shop/items', { name = 'items', tags = { plan = 'pro' } })
           if vu.iteration == 1 then r:fail('no items') end
         end)
         assert(http:get('/_/status/404', { name = 'gone', ok = { 200, 404 } }).ok)
       end):inject { brunt.iterations_each(2, 100) }
       brunt.expect { ['{group=cart,plan=pro}:error_rate'] = '<= 1%', ['{scenario=shop,status=2xx}:due'] = '>= 400' }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let json = play(&path, &[], 0);
    let shop = &json["names"]["scenarios"][0];
    assert_eq!((&shop["iterations"], &shop["not_ok"]), (&200.into(), &2.into()), "{shop:#}");
    let reason = &json["names"]["checks"][0];
    assert_eq!((&reason["check"], &reason["fails"], &reason["reasons"]), (&"no items".into(), &2.into(), &2.into()));
    for (threshold, status, said) in [
        ("{scenario=shop}:error_rate<1%", 0, ""),
        ("{scenario=shpo}:error_rate<1%", 2, "the script has no scenario 'shpo'; did you mean 'shop'?"),
        ("{scenario:shop}:error_rate<1%", 2, "did you mean {scenario=shop}?"),
        ("{group=crat}:error_rate<1%", 1, "no call has group=crat; did you mean group=cart?"),
        ("{stauts=5xx}:due<9", 1, "no call has stauts=5xx; did you mean status=5xx?"),
        ("home{status=200}:p95<1s", 1, "calls by conditions are {name=home,status=200}"),
        ("{status=5xx}:due<9", 0, ""),
    ] {
        let done = run(["run", &path, "--quiet", "--threshold", threshold]).with_status(status);
        assert!(done.stderr.contains(said), "{threshold}: {done:#?}");
    }
}

#[test]
fn what_is_wrong_is_said_with_file_and_line() {
    for (text, expected) in [
        ("\nbrunt.scenario('s', function() end):inject { brunt.users(5) }", "s.lua:3: a length must be a duration"),
        ("local users = brunt.csv('gone.csv')", "s.lua:2: cannot read gone.csv"),
        ("error('as told')", "s.lua:2: as told"),
        ("x = = 1", "s.lua:2: unexpected symbol near '='"),
        ("", "nobody ever comes"),
        (
            "brunt.scenario('s', function() http:get('/', { nmae = 1 }) end):inject { brunt.at_once(1) }",
            "did you mean 'name'?",
        ),
    ] {
        let server = Server::start(Config::default()).unwrap();
        let (_directory, path) = script(&server.url(), text);
        let Done { stderr, stdout, .. } = run(["run", &path]).with_status(2);
        assert!(stderr.contains(expected) || stdout.contains(expected), "{text}: {stderr} {stdout}");
    }
    assert!(run(["run", "gone.lua"]).with_status(2).stderr.contains("gone.lua: cannot be read"));
}

#[test]
fn a_target_that_is_not_there_never_answered() {
    let text = "brunt.scenario('s', function() http:get('/') end):inject { brunt.iterations_each(1, 2) }";
    let (_directory, path) = script("http://127.0.0.1:1", text);
    run(["run", &path]).with_status(3);
}

#[test]
fn a_scenario_that_never_waits_is_left_behind() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') while true do end end):inject { brunt.users(1, '60s') }";
    let (_directory, path) = script(&server.url(), text);
    let done = run(["run", &path]).with_status(2);
    assert!(done.stdout.contains("a scenario's function has not come back"), "{done:#?}");
}

#[test]
fn once_shows_everything_but_secrets() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('s', function()
         local r = http:get('/', { name = 'home', bearer = brunt.env('TOKEN') })
         brunt.check(r, { good = r.status == 200, bad = r.status == 404 })
       end):inject { brunt.users(1000, '60s') }
       brunt.scenario('other', function() error('as told') end)";
    let (_directory, path) = script(&server.url(), text);
    let done = run(["run", &path, "--once", "--env", "TOKEN=t0p"]).with_status(0);
    for expected in
        ["\ns\n\n→ home\n  GET / HTTP/1.1\n", "\n← 200 in ", "\n✓ home: good\n", "\n✗ home: bad\n", "s.lua:6: as told"]
    {
        assert!(done.stdout.contains(expected), "{expected}: {done:#?}");
    }
    assert!(!done.stdout.contains("t0p") && done.stdout.contains("Authorization: [redacted]"), "{done:#?}");
    assert!(
        run(["run", &path, "--once", "--show-secrets", "--env", "TOKEN=t0p"])
            .with_status(0)
            .stdout
            .contains("Bearer t0p")
    );
}

#[test]
fn ctrl_c_ends_it_with_its_report() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') brunt.pause(0.01) end):inject { brunt.users(5, '60s') }";
    let (_directory, path) = script(&server.url(), text);
    let mut running = Running::start(["run", &path, "-v"]);
    // The heading, and the first second.
    for _ in 0..2 {
        assert!(!running.line().is_empty());
    }
    running.send(Signal::INT);
    let done = running.wait().with_status(130);
    assert!(done.stdout.contains("users       5 started, 5 ended"), "{done:#?}");
}

/// One user is on one thread; the other thread must wait for it too.
#[test]
#[ignore = "needs nginx: make test installs it"]
fn what_comes_after_another_waits_for_all_threads() {
    let nginx = Nginx::start("location / { return 200 hello; }");
    let text = "local first = brunt.scenario('first', function() http:get('/slow') brunt.pause(0.3) http:get('/first') end)
       first:inject { brunt.iterations_each(1, 1) }
       brunt.scenario('second', function() http:get('/second') end):inject { brunt.iterations_each(4, 1), after = first }";
    let (_directory, path) = script(nginx.url("").trim_end_matches('/'), text);
    play(&path, &["-t", "2"], 0);
    let log: Vec<_> = nginx.log().iter().map(|line| line.get("request_uri").to_owned()).collect();
    assert_eq!(log[..2], ["/slow", "/first"]);
    assert_eq!(log[2..], ["/second"; 4]);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn once_shows_setup_and_teardown_too() {
    let nginx = Nginx::start("location / { return 200 hello; }");
    let text = "brunt.setup(function() return http:get('/before').status end)
       brunt.teardown(function() http:get('/after') end)
       brunt.scenario('s', function() http:get('/during') end):inject { brunt.users(9, '1h') }";
    let (_directory, path) = script(nginx.url("").trim_end_matches('/'), text);
    let done = done(&mut brunt(["run", &path, "--once"])).with_status(0);
    let shown = |what: &str| done.stdout.find(what).unwrap_or_else(|| panic!("{what}: {}", done.stdout));
    let places = ["\nsetup", "GET /before ", "\ns\n", "GET /during ", "\nteardown", "GET /after "].map(shown);
    assert!(places.is_sorted(), "{places:?}: {}", done.stdout);
}

#[test]
fn the_reason_for_which_a_script_ends_the_run_is_shown() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') brunt.stop_run('seen enough') end)
       :inject { brunt.users(1, '1h') }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    assert_eq!(play(&path, &[], 0)["ending"]["stopped"], "seen enough");
    let done = done(&mut brunt(["run", &path])).with_status(0);
    assert!(done.stdout.contains("stopped by the script: seen enough"), "{}", done.stdout);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn another_way_to_the_first_base_is_none_to_other_hosts() {
    let first = Nginx::start("location / { return 200 first; }");
    let other = Nginx::start("location / { return 200 other; }");
    let text = format!(
        "brunt.scenario('s', function()
           local a = http:get('/')
           brunt.check(a, {{ first = a.body == 'first' }})
           local b = http:get('{}')
           brunt.check(b, {{ other = b.body == 'other' }})
         end):inject {{ brunt.iterations_shared(1, 1) }}",
        other.url("/")
    );
    // A name that there is not, reached where the flag says.
    let (_directory, path) = script("http://shop.invalid", &text);
    let address = first.url("").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let json = play(&path, &["--connect-to", &address], 0);
    let checks = json["names"]["checks"].as_array().unwrap();
    assert!(checks.len() == 2 && checks.iter().all(|check| check["fails"] == 0), "{:#}", json["names"]);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn what_is_misspelt_in_a_function_is_found_before_anything_is_sent() {
    let nginx = Nginx::start("location / { return 200 hello; }");
    let base = nginx.url("").trim_end_matches('/').to_owned();
    for (text, wrong) in [
        ("http:get('/', { nmae = 'x' })", "s.lua:4: a request has no option 'nmae'; did you mean 'name'?"),
        (
            "local r = http:get('/'); http:get('/' .. r:json().id .. given.x); brunt.pause('5 bananas')",
            "s.lua:4: a pause must be",
        ),
        (
            "local row = rows:next(); http:get('/' .. row.nmae)",
            "s.lua:4: rows.csv has no column 'nmae'; it has name, age",
        ),
        (
            "brunt.group('g', function() http:batch { '/a', { 'GET', '/b', { query = {}, taggs = {} } } } end)",
            "'taggs'",
        ),
    ] {
        let text = format!(
            "local rows = brunt.csv('rows.csv'):circular()
             brunt.scenario('s', function(vu, given)
               {text}
             end):inject {{ brunt.users(1, '1s') }}"
        );
        let (directory, path) = script(&base, &text);
        directory.file("rows.csv", "name,age\nann,1\n");
        let done = done(&mut brunt(["run", &path])).with_status(2);
        assert!(done.stderr.contains(wrong), "{wrong}: {}", done.stderr);
    }
    assert_eq!(nginx.log().len(), 0, "nothing was sent");
}

/// What made-up answers lead to is no error of the script, and leaves nothing behind.
#[test]
#[ignore = "needs nginx: make test installs it"]
fn what_only_servers_can_answer_is_not_held_against_a_script() {
    let nginx = Nginx::start("location / { return 200 '{\"wait\": 0.001, \"list\": [1, 2]}'; }");
    let text = "local queue = brunt.data({ 'a', 'b' }):queue()
       brunt.scenario('s', function()
         local row = queue:next()
         local r = http:get('/' .. row)
         print('printed ' .. row)
         brunt.pause(r:json().wait)
         assert(#r:json().list == 2)
         while #r.body == 0 do brunt.pause(1) end
       end):inject { brunt.iterations_each(1, 5) }
       brunt.scenario('caught', function()
         local body = http:get('/caught').body
         while #body == 0 do pcall(error) end
       end):inject { brunt.iterations_each(1, 5) }";
    let (_directory, path) = script(nginx.url("").trim_end_matches('/'), text);
    let done = done(&mut brunt(["run", &path, "-t", "1"])).with_status(0);
    assert_eq!(nginx.log().len(), 2 + 5);
    assert_eq!(done.stdout.matches("printed").count() + done.stderr.matches("printed").count(), 2, "{}", done.stdout);
}

/// Before the load each function is gone through once, which is to change nothing: neither files nor what programs do.
#[test]
fn what_functions_do_outside_happens_as_often_as_users_do_it() {
    let server = Server::start(Config::default()).unwrap();
    let directory = Directory::new();
    let marks = directory.file("marks", "");
    let text = format!(
        "local brunt = require 'brunt'
         local http = brunt.http {{ base = '{}' }}
         local execute, kept = os.execute, assert(io.open('{marks}', 'a'))
         assert(io.popen('echo top'):read('*l') == 'top')
         brunt.scenario('s', function(vu)
           kept:write('kept\\n')
           kept:flush()
           assert(execute('echo executed >> {marks}') == 0)
           local log = assert(io.open('{marks}', 'a'))
           log:write('opened\\n')
           log:close()
           for line in io.popen('echo program >> {marks}; echo a'):lines() do assert(line == 'a') end
           os.remove('{marks}.gone')
           if vu.iteration == 3 then os.exit(7) end
           http:get('/')
         end):inject {{ brunt.iterations_each(1, 2) }}",
        server.url().trim_end_matches('/')
    );
    let path = directory.file("s.lua", text);
    play(&path, &["-t", "1"], 0);
    let written = std::fs::read_to_string(&marks).unwrap();
    let count = |mark: &str| written.lines().filter(|line| *line == mark).count();
    assert_eq!(["kept", "executed", "opened", "program"].map(count), [2; 4], "{written}");
    // In a rehearsal that comes back, files can still be read.
    let text = "local brunt = require 'brunt'
         local http = brunt.http { base = 'http://127.0.0.1:9' }
         brunt.scenario('s', function()
           local file = assert(io.open(debug.getinfo(1, 'S').source:sub(2), 'r'))
           if file:read('*l'):find('brunt') then http:get('/', { nmae = 'x' }) end
         end):inject { brunt.iterations_each(1, 2) }";
    let done = done(&mut brunt(["run", &directory.file("reads.lua", text)])).with_status(2);
    assert!(done.stderr.contains("did you mean 'name'?"), "{}", done.stderr);
}

/// Where C calls back, and in coroutines of the script's own, nobody can wait: it is found before anything is sent, with the
/// line that is to be changed.
#[test]
fn waiting_where_nobody_can_names_the_line() {
    for (text, wrong) in [
        (
            "table.sort({ 2, 1 }, function(a, b)\n http:get('/')\n return a < b end)",
            "s.lua:4: a call cannot wait inside",
        ),
        ("pcall(string.gsub, 'a', 'a', function()\n brunt.pause(1) end) brunt.pause('x')", "s.lua:4: a pause must be"),
        (
            "for page in coroutine.wrap(function()\n local r = http:get('/') end) do end",
            "s.lua:4: a call cannot wait in a",
        ),
        (
            "string.gsub('a', 'a', function()\n brunt.check(nil, { new = false }) end)",
            "s.lua:4: brunt.check cannot wait",
        ),
    ] {
        let text = format!("brunt.scenario('s', function()\n{text}\nend):inject {{ brunt.iterations_each(1, 1) }}");
        let (_directory, path) = script("http://127.0.0.1:9", &text);
        let done = done(&mut brunt(["run", &path])).with_status(2);
        assert!(done.stderr.contains(wrong), "{wrong}: {}", done.stderr);
    }
}

/// Going through a script once is that, whatever else is said of how many there are to be.
#[test]
fn once_is_once() {
    let server = Server::start(Config::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') end):inject { brunt.users(5, '1s') }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let done = done(&mut brunt(["run", &path, "--once", "--scale", "3x", "-t", "2"])).with_status(0);
    assert_eq!(done.stdout.matches("→ GET /").count() + done.stderr.matches("→ GET /").count(), 1, "{}", done.stdout);
}

/// What a server echoed of rows, by the checks that hold: their names are what came.
fn given_out(json: &Value) -> Vec<(String, u64)> {
    let requests = json["names"]["requests"].as_array().unwrap();
    requests.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), one["due"].as_u64().unwrap())).collect()
}

#[test]
fn users_of_all_threads_have_rows_of_their_own_from_a_file_that_stays_on_disk() {
    let server = Server::start(Config::default()).unwrap();
    let text = "local rows = brunt.csv('rows.csv', { stream = true })
       local own, queue = rows:per_user(), rows:queue()
       brunt.scenario('s', function(vu)
         local first = own:next().id
         http:get('/', { name = 'own ' .. own:next().id })
         brunt.check(nil, { same = first == own:next().id })
         http:get('/', { name = 'queue ' .. queue:next().id })
       end):inject { brunt.iterations_each(8, 3) }";
    let (directory, path) = script(server.url().trim_end_matches('/'), text);
    let rows = (0..100).map(|id| format!("{id},{}\n", "x".repeat(50))).collect::<Vec<_>>().concat();
    directory.file("rows.csv", format!("id,filler\n{rows}"));
    let plan = directory.path("plan.json");
    let json = play(&path, &["-t", "3", "--write-plan", &plan], 0);
    let names = given_out(&json);
    let of =
        |kind: &str| names.iter().filter(|(name, _)| name.starts_with(kind)).map(|(_, due)| *due).collect::<Vec<_>>();
    assert_eq!(of("own "), [3; 8], "{names:?}");
    assert_eq!(of("queue "), [1; 24], "{names:?}");
    // The plan names the file and does not carry it; carried out in the sandbox, it is refused.
    let written = std::fs::read_to_string(&plan).unwrap();
    assert!(!written.contains("xxxxxxxx"), "{written}");
    let refused = run(["--plan", &plan]).with_status(2);
    assert!(
        refused.stderr.contains("rows.csv is streamed from disk") && refused.stderr.contains("--no-sandbox"),
        "{refused:#?}"
    );
    let again = run(["--plan", &plan, "--no-sandbox", "--format", "json"]).with_status(0);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["outcomes"]["due"], 48);
    directory.file("rows.csv", format!("id,filler\n{rows}1,x\n"));
    let changed = run(["--plan", &plan, "--no-sandbox"]).with_status(2);
    assert!(
        changed.stderr.contains("rows.csv has 5404 bytes, and had 5400")
            && changed.stderr.contains("make the plan again"),
        "{changed:#?}"
    );
    // Beside the script it is the script's own, in the sandbox too; elsewhere it is not.
    play(&path, &["--sandbox"], 0);
    let shown = run(["run", &path, "--sandbox", "--once"]).with_status(0);
    assert!(shown.stdout.contains("→ own 0"), "{shown:#?}");
    let outside = text.replace("rows.csv", "../rows.csv");
    let (_other, path) = script(server.url().trim_end_matches('/'), &outside);
    let refused = run(["run", &path, "--sandbox", "--dry-run"]).with_status(2);
    assert!(refused.stderr.contains("s.lua:2: cannot read ../rows.csv: in the sandbox"), "{refused:#?}");
}

#[test]
fn a_run_ends_when_a_user_comes_for_whom_there_is_no_row() {
    let server = Server::start(Config::default()).unwrap();
    for (order, ends) in [("per_user()", true), ("per_user { at_end = 'repeat' }", false)] {
        let text = format!(
            "local rows = brunt.data({{ 'a', 'b', 'c' }}):{order}
             brunt.scenario('s', function() http:get('/', {{ name = rows:next() }}) end)
               :inject {{ brunt.iterations_each(5, 1) }}"
        );
        let (_directory, path) = script(server.url().trim_end_matches('/'), &text);
        let json = play(&path, &["-t", "1"], 0);
        let stopped = json["ending"]["stopped"].as_str();
        assert_eq!(stopped, ends.then_some("all 3 rows of brunt.data were given out"));
        let due: u64 = given_out(&json).iter().map(|(_, due)| due).sum();
        assert!(if ends { due <= 3 } else { due == 5 }, "{json:#}");
    }
    let text = "brunt.data({ 1 }):queue { at_end = 'repeat' }";
    let (_directory, path) = script(&server.url(), text);
    let refused = run(["run", &path]).with_status(2);
    assert!(
        refused.stderr.contains("s.lua:2: queue: at_end must be \"stop_scenario\" or \"stop_run\" (:circular()"),
        "{refused:#?}"
    );
}

#[test]
fn users_do_something_last_once_their_iterations_are_over() {
    let server = Server::start(Config::default()).unwrap();
    let text = "local last = brunt.counter('last')
       local function stop(vu, data)
         last:add(vu.iteration)
         http:get('/', { name = 'logout' })
         brunt.check(nil, { ['knows its user'] = brunt.user.name == vu.id and data == 7 })
       end
       local function run(vu) brunt.user.name = vu.id http:get('/', { name = 'visit' }) end
       brunt.setup(function() return 7 end)
       brunt.scenario('each', run):on_stop(stop):inject { brunt.iterations_each(3, 2) }
       brunt.scenario('come', run):on_stop(stop):inject { brunt.at_once(4) }
       brunt.scenario('fails', function(vu) run(vu) error('oh') end):on_stop(stop):inject { brunt.at_once(1) }
       brunt.scenario('leaves', function(vu) run(vu) brunt.stop_user() end):on_stop(stop):inject { brunt.at_once(1) }
       brunt.scenario('closed', function(vu) run(vu) brunt.pause('10ms') end):on_stop(stop):inject { brunt.users(2, '300ms') }
       brunt.scenario('none', function() http:get('/', { name = 'none' }) end):inject { brunt.at_once(2) }
       brunt.expect { ['scenario fails:script_error_rate'] = '<= 100%', checks = '>= 100%' }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let json = play(&path, &["-t", "2"], 0);
    let due = |name: &str| {
        let all = json["names"]["requests"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).map_or(0, |one| one["due"].as_u64().unwrap())
    };
    assert_eq!(due("logout"), 3 + 4 + 1 + 1 + 2, "{:#}", json["names"]["requests"]);
    assert_eq!(due("none"), 2);
    let iterations = |name: &str| {
        let all = json["names"]["scenarios"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["iterations"].as_u64().unwrap()
    };
    // What is done last is no iteration.
    assert_eq!((iterations("each"), iterations("come")), (6, 4), "{:#}", json["names"]["scenarios"]);
    let twice = "brunt.scenario('s', function() end):on_stop(print):on_stop(print)";
    let (_directory, path) = script("http://127.0.0.1:1", twice);
    let refused = run(["run", &path]).with_status(2);
    assert!(refused.stderr.contains("'s' has an on_stop already"), "{refused:#?}");
}

#[test]
fn a_script_makes_files_of_the_result_where_it_may() {
    let server = Server::start(Config::default()).unwrap();
    let text =
        "brunt.scenario('s', function() http:get('/', { name = 'home' }) end):inject { brunt.iterations_each(2, 5) }
       brunt.handle_summary(function(summary)
         local words = ('%d calls of %s'):format(summary.outcomes.answered, summary.names.requests[1].name)
         return { [brunt.env('TO')] = words, stdout = words .. '\\n' }
       end)";
    let (directory, path) = script(server.url().trim_end_matches('/'), text);
    let (inside, outside) = (directory.path("made.txt"), directory.path("../made.txt"));
    let folder = directory.path("");
    let with = |to: &str, allowed: &[&str]| {
        let to = format!("TO={to}");
        done(brunt(["run", &path, "--quiet", "--env", &to]).args(allowed))
    };
    let refused = with(&inside, &[]).with_status(2);
    assert!(
        refused.stderr.contains("the script may not write") && refused.stderr.contains("--allow-write"),
        "{refused:#?}"
    );
    let made = with(&inside, &["--allow-write", &folder]).with_status(0);
    assert_eq!(made.stdout, "10 calls of home\n");
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "10 calls of home");
    with(&outside, &["--allow-write", &folder]).with_status(2);
    assert!(!std::path::Path::new(&outside).exists());
    std::os::unix::fs::symlink("/dev/null", directory.path("link")).unwrap();
    with(&directory.path("link"), &["--allow-write", &folder]).with_status(2);
    let (_directory, path) = script(
        server.url().trim_end_matches('/'),
        "brunt.scenario('s', function() http:get('/') end):inject { brunt.at_once(1) }
         brunt.handle_summary(function(summary) return summary.no.such end)",
    );
    let failed = run(["run", &path, "--quiet"]).with_status(2);
    assert!(failed.stderr.contains("s.lua:3:"), "{failed:#?}");
}
