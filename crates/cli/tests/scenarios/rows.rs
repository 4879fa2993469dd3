//! Data, modules and settings: who gets which row, and what travels in the plan.

use brunt_testbed::server::{Server, ServerConfig};
use serde_json::Value;

use crate::program::{brunt, done, run};
use crate::{play, script};

#[test]
fn modules_data_and_settings_travel_with_the_plan() {
    let server = Server::start(ServerConfig::default()).unwrap();
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
    let done = run(["--plan", &plan, "--format", "json"]).with_status(1);
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    let names: Vec<_> =
        json["names"]["requests"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(json["outcomes"]["due"], 2);
    assert!(names.contains(&"GET /ANNx") && names.contains(&"GET /BOBx"), "{names:?}");
}

/// What a server echoed of rows, by the checks that hold: their names are what came.
fn given_out(json: &Value) -> Vec<(String, u64)> {
    let requests = json["names"]["requests"].as_array().unwrap();
    requests.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), one["due"].as_u64().unwrap())).collect()
}

#[test]
fn users_of_all_threads_have_rows_of_their_own_from_a_file_that_stays_on_disk() {
    let server = Server::start(ServerConfig::default()).unwrap();
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
    let server = Server::start(ServerConfig::default()).unwrap();
    // Where the script does not say that the run is to end so, less load was made than it asked for.
    for (order, ends) in [
        ("per_user()", Some("given_up")),
        ("per_user { at_end = 'stop_run' }", Some("stopped")),
        ("per_user { at_end = 'repeat' }", None),
    ] {
        let text = format!(
            "local rows = brunt.data({{ 'a', 'b', 'c' }}):{order}
             brunt.scenario('s', function() http:get('/', {{ name = rows:next() }}) end)
               :inject {{ brunt.iterations_each(5, 1) }}"
        );
        let (_directory, path) = script(server.url().trim_end_matches('/'), &text);
        let json = play(&path, &["-t", "1"], i32::from(ends == Some("given_up")));
        let stopped = ends.map(|ending| json["ending"][ending].as_str());
        assert_eq!(stopped, ends.map(|_| Some("all 3 rows of brunt.data were given out")));
        let due: u64 = given_out(&json).iter().map(|(_, due)| due).sum();
        assert!(if ends.is_some() { due <= 3 } else { due == 5 }, "{json:#}");
    }
    let text = "brunt.data({ 1 }):queue { at_end = 'repeat' }";
    let (_directory, path) = script(&server.url(), text);
    let refused = run(["run", &path]).with_status(2);
    assert!(
        refused.stderr.contains("s.lua:2: queue: at_end must be \"stop_scenario\" or \"stop_run\" (:circular()"),
        "{refused:#?}"
    );
}
