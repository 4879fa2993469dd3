//! A run from setup to teardown: order, changes by flags, and every way to end it.

use brunt_testbed::server::{Server, ServerConfig};
use rustix::process::Signal;
use serde_json::Value;

use crate::nginx::Nginx;
use crate::program::{Running, brunt, done, run};
use crate::{play, script};

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
fn a_run_is_changed_without_editing_its_file() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') end):inject { brunt.rate(100, '10s') }";
    let (_directory, path) = script(&server.url(), text);
    let json = play(&path, &["--scale", "2x", "--duration", "500ms"], 0);
    assert_eq!(json["outcomes"]["due"], 100);
}

/// The pause in which a user is cut off is no part of its group's time without pauses.
#[test]
fn a_group_that_is_cut_short_leaves_its_pause_out() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "brunt.scenario('s', function() brunt.group('g', function() http:get('/') brunt.pause(60) end) end)
         :inject { brunt.users(1, '2s'), grace = 0 }";
    let (_directory, path) = script(&server.url(), text);
    let json = play(&path, &["--allow-less", "100%"], 0);
    let group = &json["names"]["groups"][0];
    let least = |times: &str| group[times]["min_ns"].as_u64().unwrap();
    assert_eq!(group["unfinished"], 1, "{group}");
    assert!(least("with_pauses") > 1_500_000_000 && least("without_pauses") < 1_000_000_000, "{group}");
}

#[test]
fn a_scenario_that_never_waits_is_left_behind() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "brunt.scenario('other', function() http:get('/') brunt.pause(9) end):inject { brunt.users(1, '60s') }
       brunt.scenario('s', function() http:get('/') http:get('/') while true do end end):inject { brunt.users(1, '60s') }";
    let (directory, path) = script(&server.url(), text);
    let kept = directory.path("run.json");
    let done = run(["run", "-t", "1", &path, "-o", &kept]).with_status(2);
    let shown = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = format!("the function of scenario 's' ({path}:3) has not come back");
    assert!(shown.contains(&named) && !shown.contains("never answered"), "{done:#?}");
    // Its thread had not told of the calls before: they were due, and nobody knows how they ended.
    let json: Value = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
    let outcomes = &json["outcomes"];
    let count = |name: &str| outcomes[name].as_u64().unwrap();
    assert_eq!((count("due"), count("answered") + count("unfinished")), (3, 3), "{outcomes:#}");
}

#[test]
fn setup_and_teardown_end_when_their_time_is_over() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let waits = |which: &str| {
        format!(
            "brunt.scenario('s', function() http:get('/') end):inject {{ brunt.iterations_each(1, 1) }}
             brunt.{which}(function()
               while true do brunt.pause(0.05) end
             end)"
        )
    };
    let (_directory, path) = script(&server.url(), &waits("setup"));
    let done = run(["run", &path, "--setup-timeout", "200ms"]).with_status(2);
    let told =
        format!("setup ({path}:3) took longer than 200ms, and was cut off: let it end, or raise --setup-timeout");
    assert!(done.stderr.contains(&told), "{done:#?}");
    // What the load has measured is kept.
    let (_directory, path) = script(&server.url(), &waits("teardown"));
    let json = play(&path, &["--teardown-timeout", "200ms"], 2);
    assert_eq!(json["ending"]["failed"], format!("teardown ({path}:3) took longer than 200ms, and was cut off"));
    assert_eq!(json["outcomes"]["answered"], 1);
}

#[test]
fn ctrl_c_is_heard_in_setup_and_in_teardown() {
    let server = Server::start(ServerConfig::default()).unwrap();
    for which in ["setup", "teardown"] {
        let text = format!(
            "brunt.scenario('s', function() http:get('/') end):inject {{ brunt.iterations_each(1, 1) }}
             brunt.{which}(function() io.stderr:write('waiting\\n') while true do brunt.pause(0.05) end end)"
        );
        let (_directory, path) = script(&server.url(), &text);
        let mut running = Running::start(["run", &path]);
        while !running.told().contains("waiting") {}
        running.send(Signal::INT);
        // The second press waits for nothing; pressed at once, both would count as one.
        std::thread::sleep(std::time::Duration::from_millis(100));
        running.send(Signal::INT);
        running.wait().ended_by(&[Signal::INT]);
    }
}

#[test]
fn ctrl_c_ends_it_with_its_report() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') brunt.pause(0.01) end):inject { brunt.users(5, '60s') }";
    let (_directory, path) = script(&server.url(), text);
    let mut running = Running::start(["run", &path, "-v"]);
    // The heading, and the first second.
    for _ in 0..2 {
        assert!(!running.told().is_empty());
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
fn the_reason_for_which_a_script_ends_the_run_is_shown() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') brunt.stop_run('no stock is left') end)
       :inject { brunt.users(1, '1h') }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    assert_eq!(play(&path, &[], 1)["ending"]["given_up"], "no stock is left");
    let given_up = done(&mut brunt(["run", "--format", "junit", &path])).with_status(1);
    assert!(given_up.stdout.contains("given up by the script: no stock is left"), "{}", given_up.stdout);
    let text = text.replace("'no stock is left'", "'seen enough', { ok = true }");
    let (_directory, path) = script(server.url().trim_end_matches('/'), &text);
    assert_eq!(play(&path, &[], 0)["ending"]["stopped"], "seen enough");
    let right = done(&mut brunt(["run", &path])).with_status(0);
    assert!(right.stdout.contains("stopped by the script: seen enough"), "{}", right.stdout);
}

/// In whichever function a script ends the run, and whatever another user says.
#[test]
fn a_script_ends_the_run_from_setup_and_teardown_too() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let of = |text: &str| script(server.url().trim_end_matches('/'), text);
    let plain = "brunt.scenario('s', function() http:get('/') end):inject { brunt.iterations_each(2, 2) }";
    let answered = |result: &Value| result["outcomes"]["answered"].clone();
    for (function, makes) in [("setup", 0), ("teardown", 4)] {
        let (_directory, path) = of(&format!("brunt.{function}(function() brunt.stop_run('no queue') end) {plain}"));
        let result = play(&path, &[], 1);
        assert_eq!(
            (&result["ending"]["given_up"], answered(&result)),
            (&"no queue".into(), makes.into()),
            "{function}"
        );
        let quiet = done(&mut brunt(["run", "--quiet", &path])).with_status(1);
        assert!(quiet.stderr.contains("no queue"), "{}", quiet.stderr);
        let (_directory, path) =
            of(&format!("brunt.{function}(function() brunt.stop_run('all is done', {{ ok = true }}) end) {plain}"));
        let result = play(&path, &[], 0);
        assert_eq!((&result["ending"]["stopped"], answered(&result)), (&"all is done".into(), makes.into()));
        assert!(!result["remarks"][0]["message"].as_str().unwrap().contains("no call was ever due"), "{result}");
    }
    let (_directory, path) = of(&format!(
        "brunt.setup(function() brunt.stop_run('fine', {{ ok = true }}) end)
         brunt.teardown(function() brunt.stop_run('broken') end) {plain}"
    ));
    assert_eq!(play(&path, &[], 1)["ending"]["given_up"], "broken", "no word before it takes a failure back");
}

#[test]
fn what_a_script_did_comes_before_its_word_for_the_end() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') brunt.stop_run('seen enough', { ok = true }) end)
       :inject { brunt.users(1, '1h') }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let first = |arguments: &[&str], status| play(&path, arguments, status)["remarks"][0]["message"].clone();
    assert!(first(&[], 0).as_str().unwrap().starts_with("1 of 1 call succeeded"), "{}", first(&[], 0));
    let failed = first(&["--threshold", "p99<1ns"], 1);
    assert!(failed.as_str().unwrap().contains("threshold failed"), "{failed}");
}

#[test]
fn users_do_something_last_once_their_iterations_are_over() {
    let server = Server::start(ServerConfig::default()).unwrap();
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
    let server = Server::start(ServerConfig::default()).unwrap();
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
