//! Runs that are changed while they go on: `brunt ctl`.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};

use brunt_plan::units::Clock;
use brunt_testbed::server::ServerConfig;
use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, at_s};
use crate::program::{Directory, brunt, done, until};
use crate::runs::target;

#[test]
fn what_was_due_is_the_integral_of_the_changed_rate() {
    let ((_server, url), place, files) = (target(ServerConfig::default()), Place::new(), Directory::new());
    let page = files.path("page.html");
    let running = place.start(&["-r", "200", "-d", "3s", "--format", "json", "--html", &page, &url]);
    let rate = place.change(&["rate", "500"]);
    let mark = place.change(&["mark", "deployed v2"]);
    let pause = place.change(&["pause"]);
    let again = place.ctl(&["pause"]).with_status(2);
    assert!(again.stderr.starts_with("error: the run is paused already, since 0:0"), "{}", again.stderr);
    let resume = place.change(&["resume"]);
    assert!(place.ctl(&["resume"]).with_status(2).stderr.contains("the run is not paused"));
    let done = running.wait().with_status(0);
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    // A mark stands where it was set; a change of the rate takes effect a moment later.
    let mut changes = vec![rate.clone(), mark.clone(), pause.clone(), resume.clone()];
    changes.sort_by_key(|change| change["at_ns"].as_i64());
    assert_eq!(result["changes"], Value::from(changes));
    assert_eq!((&mark["action"]["mark"], &rate["by"]), (&Value::from("deployed v2"), &Value::from("ctl")));
    let expected = 200.0 * at_s(&rate) + 500.0 * (at_s(&pause) - at_s(&rate)) + 500.0 * (3.0 - at_s(&resume));
    let due = result["outcomes"]["due"].as_f64().unwrap();
    assert!((due - expected.ceil()).abs() <= 1.0, "{due} of {expected}");
    let page = std::fs::read_to_string(page).unwrap();
    // A line for each on the run's charts, and on those of the load.
    assert_eq!(page.matches("<path class=\"change\"").count(), 8);
    assert!(page.contains("deployed v2"));
}

#[test]
fn what_cannot_be_changed_is_refused_with_a_reason() {
    let ((_server, url), place) = (target(ServerConfig::default()), Place::new());
    assert!(place.ctl(&["pause"]).with_status(2).stderr.contains("no run of this user goes on"));
    let closed = place.start(&["-c", "2", "-d", "1m", "--name", "nightly", &url]);
    place.change(&["nightly", "mark", "begun"]);
    for (words, why) in [
        (&["rate", "5"][..], "its connections call as soon as they are answered; start it with -r"),
        (
            &["users", "5"],
            "'brunt ctl rate 5k' changes the load of one with -r, 'brunt ctl users 50' that of 'brunt run FILE'",
        ),
        (&["mark", ""], "a mark has a text of 1 to 200 characters"),
        (&["daily", "pause"], "no run 'daily' goes on; there are "),
    ] {
        let refused = place.ctl(words).with_status(2);
        assert!(refused.stderr.starts_with("error: ") && refused.stderr.contains(why), "{}", refused.stderr);
    }
    let listed = place.ctl(&[]).with_status(0).stdout;
    assert!(listed.contains("nightly") && listed.contains(&url), "{listed}");
    closed.send(Signal::INT);
    let said = closed.wait().with_status(130).stdout;
    assert!(said.contains("Changes        0:0") && said.contains("begun"), "{said}");
}

/// Nobody waits for the end of a pause.
#[test]
fn a_run_that_is_paused_ends_by_a_signal() {
    let ((server, url), place) = (target(ServerConfig::default()), Place::new());
    for load in [&["-r", "100"][..], &["-c", "3"]] {
        let running = place.start(&[load, &["-d", "1h", "--format", "json", &url]].concat());
        place.change(&["pause"]);
        let mut asked = 0;
        until("nothing more is asked of the target", || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            std::mem::replace(&mut asked, server.requests()) == server.requests()
        });
        running.send(Signal::INT);
        let result: Value = serde_json::from_str(&running.wait().with_status(130).stdout).unwrap();
        let outcomes = &result["outcomes"];
        assert_eq!(outcomes["due"], outcomes["answered"], "{outcomes}");
        let mut remarks = result["remarks"].as_array().unwrap().iter();
        assert!(remarks.all(|remark| remark["of"] != "target"), "a pause is no finding: {}", result["remarks"]);
    }
}

#[test]
fn two_at_once_and_strangers_are_served() {
    let ((_server, url), place) = (target(ServerConfig::default()), Place::new());
    // One that a run left behind that was killed.
    std::fs::create_dir(place.directory.path("brunt")).unwrap();
    std::fs::set_permissions(place.directory.path("brunt"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let left = place.directory.path("brunt/1.sock");
    drop(UnixListener::bind(&left).unwrap());
    let running = place.start(&["-r", "50", "-d", "1h", "--format", "json", &url]);
    place.change(&["mark", "begun"]);
    assert!(!std::path::Path::new(&left).exists(), "it is cleared away");
    let socket = place.directory.path(&format!("brunt/{}", place.directory.names_in("brunt")[0]));
    let mut stranger = UnixStream::connect(&socket).unwrap();
    stranger.write_all(b"\x00\xffPOST /\r\n").unwrap();
    let mut answer = String::new();
    stranger.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("{\"refused\":"), "{answer}");
    let _silent = UnixStream::connect(&socket).unwrap();
    std::thread::scope(|scope| {
        for text in ["one", "another"] {
            scope.spawn(|| place.change(&["mark", text]));
        }
    });
    running.send(Signal::INT);
    let result: Value = serde_json::from_str(&running.wait().with_status(130).stdout).unwrap();
    let changes = result["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 3);
    assert!(at_s(&changes[1]) <= at_s(&changes[2]));
    assert_eq!(place.directory.names_in("brunt"), [] as [String; 0], "a run clears its socket away");
}

#[test]
fn a_guard_backs_off_only_where_there_is_a_rate() {
    let (_server, url) = target(ServerConfig::default());
    let guard = ["--guard", "p99>500ms for 1s", "--guard-action", "back-off"];
    let wrong = done(&mut brunt([&guard[..], &["-d", "5s", &url]].concat())).with_status(2);
    assert!(wrong.stderr.contains("guards cannot back off: the run has no rate that they could lower"), "{wrong:?}");
    let wrong = done(&mut brunt(["-r", "5", "-d", "5s", "--guard-action", "back-off", &url])).with_status(2);
    assert!(wrong.stderr.contains("there is no guard"), "{wrong:?}");
    let holds = done(&mut brunt([&guard[..], &["-r", "50", "-d", "2s", "--format", "json", &url]].concat()));
    let result: Value = serde_json::from_str(&holds.with_status(0).stdout).unwrap();
    assert_eq!(result["plan"]["guard_action"], "back-off");
}

#[test]
fn a_repeated_run_takes_the_changes_as_its_profile() {
    let ((_server, url), place) = (target(ServerConfig::default()), Place::new());
    let store = place.directory.path("runs.db");
    let running = place.start(&["-r", "100", "-d", "3s", "--store", &store, "--format", "json", &url]);
    place.change(&["rate", "400"]);
    place.change(&["pause"]);
    place.change(&["resume"]);
    let first: Value = serde_json::from_str(&running.wait().with_status(0).stdout).unwrap();
    let again = ["--profile", "from-run:last", "--store", &store, "--format", "json", &url];
    let again: Value = serde_json::from_str(&place.start(&again).wait().with_status(0).stdout).unwrap();
    let due = |result: &Value| result["outcomes"]["due"].as_f64().unwrap();
    assert!((due(&again) - due(&first)).abs() <= 1.0, "{} and {}", due(&first), due(&again));
    assert_eq!(again["changes"], Value::Null);
    let profile = again["plan"]["load"]["open"]["profile"].as_str().unwrap();
    assert_eq!(profile.matches(',').count(), 3, "{profile}");
    // Who repeats that run does not need the first one.
    let command = again["plan"]["origin"]["command"].as_str().unwrap();
    assert!(command.contains(&format!("-r {profile}")) && !command.contains("from-run"), "{command}");
    for (given, why) in [
        (&["--profile", "from-run:99"][..], "--profile from-run:99: "),
        (&["--profile", "of-run:1"], "expected from-run:RUN"),
        (&["--profile", "from-run:last", "-r", "5"], "cannot be used with"),
    ] {
        let wrong = done(&mut place.command(&[given, &["--store", &store, &url]].concat())).with_status(2);
        assert!(wrong.stderr.contains(why), "{}", wrong.stderr);
    }
}

/// Half a run is no run that held, whatever its thresholds come to.
#[test]
fn a_run_that_is_paused_to_its_end_has_failed_and_says_so() {
    let ((_server, url), place) = (target(ServerConfig::default()), Place::new());
    let held = ["--threshold", "p99<10s", "--threshold", "error_rate<5%"];
    let start = |more: &[&str]| place.start(&[&["-r", "200", "-d", "3s"][..], &held, more, &[&url]].concat());
    let running = start(&[]);
    let pause = place.change(&["pause"]);
    let done = running.wait().with_status(1);
    // On a busy machine it stands below a doubt of the generator.
    let said = format!("✗ paused from {} to the end", Clock((at_s(&pause) * 1e9) as u64));
    assert!(done.stdout.contains(&said), "{said}: {}", done.stdout);
    assert!(done.stdout.contains("nothing was measured for"), "{}", done.stdout);
    // It is the pause that failed, and no threshold.
    assert!(!done.stdout.contains("failed:"), "{}", done.stdout);
    let running = start(&["--format", "junit"]);
    place.change(&["pause"]);
    let done = running.wait().with_status(1);
    assert!(done.stderr.contains("error: paused from 0:0"), "{}", done.stderr);
    assert_eq!(done.stdout.matches("<failure ").count(), 1, "{}", done.stdout);
    let running = start(&[]);
    place.change(&["pause"]);
    place.change(&["resume"]);
    assert!(!running.wait().with_status(0).stdout.contains("paused from"));
}

/// The number of a script's users is raised and lowered while it runs. What is not a number, or out of range, is refused.
#[test]
fn the_number_of_virtual_users_changes() {
    let ((_server, url), place) = (target(ServerConfig::default()), Place::new());
    let base = url.trim_end_matches('/');
    let script = format!(
        "local brunt = require 'brunt'
         local http = brunt.http {{ base = '{base}' }}
         brunt.scenario('s', function() http:get('/') brunt.pause('20ms') end):inject {{ brunt.users(2, '8s') }}"
    );
    let file = place.directory.file("s.lua", script);
    let page = place.directory.path("page.html");
    let running = place.start(&["run", &file, "-t", "2", "--format", "json", "--html", &page]);
    let more = place.change(&["users", "7"]);
    for (number, why) in
        [("0", "has 1 to 100000 of them, not 0"), ("200000", "not 200000"), ("some", "expected a whole number")]
    {
        let refused = place.ctl(&["users", number]).with_status(2);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
    // What stood at the end of a second is read only once a second has passed.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let fewer = place.change(&["users", "3"]);
    let result: Value = serde_json::from_str(&running.wait().with_status(0).stdout).unwrap();
    assert_eq!(result["changes"], Value::from(vec![more, fewer]));
    assert_eq!(result["changes"][0]["action"]["users"], 7);
    let users: Vec<_> =
        result["series"].as_array().unwrap().iter().filter_map(|point| point["users"].as_u64()).collect();
    assert!(users.contains(&7) && users.iter().all(|users| *users <= 7), "{users:?}");
    let scenario = &result["names"]["scenarios"][0];
    assert_eq!(scenario["users_started"], 7, "{scenario:#}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("7 users") && page.contains("3 users"));
}
