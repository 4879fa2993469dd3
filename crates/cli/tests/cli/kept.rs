//! Runs that are kept: found again, shown as they were, and never in the way of a result.

use brunt_testbed::server::{Server, ServerConfig};

use crate::program::{Directory, brunt, done, run};

fn server() -> Server {
    Server::start(ServerConfig::default()).unwrap()
}

/// A short run that is kept in `store`; what it printed.
fn kept(store: &str, url: &str, more: &[&str]) -> String {
    let args = ["-n", "200", "-c", "2", "-t", "1", "--seed", "7", "--store", store];
    let done = run([&args, more, &[url]].concat()).with_status(0);
    assert_eq!(done.stderr, "");
    done.stdout
}

/// The lines of a list of runs, without the one that explains the mark of a p99 of few calls.
fn rows(list: &str) -> Vec<&str> {
    list.lines().filter(|line| !line.starts_with("  * ")).collect()
}

/// A report without the line of the machine, and that line: what is shown later has it whole, in as many lines as it takes.
fn apart(report: &str) -> (Vec<&str>, String) {
    let mut machine = String::new();
    let mut is_of_it = false;
    let rest = report.lines().filter(|line| {
        is_of_it = line.starts_with("  brunt ") && line.contains(" on ") || is_of_it && line.starts_with("  ");
        if is_of_it {
            machine.push_str(line);
        }
        !is_of_it
    });
    let rest = rest.collect();
    (rest, machine)
}

#[test]
fn a_run_is_shown_as_it_was() {
    let (dir, server) = (Directory::new(), server());
    let (store, json) = (dir.path("runs.db"), dir.path("a.json"));
    let printed = kept(&store, &server.url(), &["-o", &json, "--name", "nightly", "--tag", "branch=main"]);
    kept(&store, &server.url(), &["--quiet", "--tag", "branch=other", "--tag", "branch=twice"]);
    for which in ["1", "nightly"] {
        let shown = run(["show", which, "--store", &store]).with_status(0).stdout;
        assert_eq!(apart(&shown).0, apart(&printed).0);
        assert!(apart(&shown).1.contains(" core") && apart(&printed).1.starts_with("  brunt "), "{shown}");
    }
    let shown = run(["show", "1", "--format", "json", "--store", &store]).with_status(0).stdout;
    assert_eq!(shown, std::fs::read_to_string(&json).unwrap());
    let csv = dir.path("a.csv");
    run(["show", "--store", &store, "-o", &csv]).with_status(0);
    assert!(std::fs::read_to_string(&csv).unwrap().starts_with("kind,name,second,"));

    let list = run(["runs", "--store", &store]).with_status(0).stdout;
    let lines = rows(&list);
    assert_eq!(lines.len(), 3, "{list}");
    assert!(lines[1].contains("nightly") && lines[1].contains(&server.url()), "{list}");
    assert!(lines[2].trim_start().starts_with("2 ") && lines[2].contains("branch=twice"), "{list}");
    let newest = run(["runs", "-n", "1", "--store", &store]).with_status(0).stdout;
    assert!(rows(&newest).len() == 2 && newest.contains("branch=twice"), "{newest}");
    let tagged = run(["runs", "--tag", "branch=main", "--store", &store]).with_status(0).stdout;
    assert_eq!(rows(&tagged).len(), 2, "{tagged}");

    let gone = run(["runs", "rm", "nightly", "--store", &store]).with_status(0);
    assert_eq!(gone.stderr, "forgot 1 run\n");
    let missing = run(["show", "1", "--store", &store]).with_status(2);
    assert!(
        missing.stderr.contains("there is no run 1 in ") && missing.stderr.contains("`brunt runs`"),
        "{missing:#?}"
    );
    run(["runs", "prune", "--keep", "0", "--store", &store]).with_status(0);
    assert!(run(["show", "--store", &store]).with_status(2).stderr.contains("there is no run at all"));
}

#[test]
fn a_kept_run_makes_a_page() {
    let (dir, server) = (Directory::new(), server());
    let (store, html) = (dir.path("runs.db"), dir.path("a.html"));
    kept(&store, &server.url(), &[]);
    run(["report", "--store", &store, "-o", &html]).with_status(0);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("200 due = 200 answered") && page.starts_with("<!doctype html>"));
}

#[test]
fn secrets_are_not_kept() {
    let (dir, server) = (Directory::new(), server());
    let store = dir.path("runs.db");
    let url = server.url().replace("http://", "http://me:hunter2@");
    kept(&store, &url, &["-H", "Cookie: a=hunter2", "-H", "X-Api-Key: hunter2"]);
    let shown = run(["show", "--format", "json", "--store", &store]).with_status(0).stdout;
    assert!(shown.contains("[redacted]") && !shown.contains("hunter2"), "{shown}");
    assert!(!run(["runs", "--store", &store]).with_status(0).stdout.contains("hunter2"));
}

#[test]
fn nothing_is_kept_unless_wanted_and_the_rest_in_the_state_directory() {
    let (dir, server) = (Directory::new(), server());
    let (state, url) = (dir.path("state"), server.url());
    let with = |args: &[&str], no_save: &str| {
        let mut command = brunt([args, &["-n", "10", "-c", "1", &url]].concat());
        done(command.env("XDG_STATE_HOME", &state).env("BRUNT_NO_SAVE", no_save)).with_status(0)
    };
    with(&[], "1");
    with(&["--no-save"], "");
    assert!(dir.names().is_empty(), "{:?}", dir.names());
    with(&[], "");
    let list = done(brunt(["runs"]).env("XDG_STATE_HOME", &state)).with_status(0).stdout;
    assert_eq!(rows(&list).len(), 2, "{list}");
    let nowhere = done(brunt(["runs"]).env("XDG_STATE_HOME", dir.path("other"))).with_status(2);
    assert!(nowhere.stderr.contains("no runs are kept in ") && nowhere.stdout.is_empty(), "{nowhere:#?}");
}

/// Whatever is wrong with where it is to be kept: the result is printed, its exit status stands, and a warning says what
/// to do.
#[test]
fn what_cannot_be_kept_is_shown_all_the_same() {
    let (dir, server) = (Directory::new(), server());
    let file = dir.file("file", "no database, and longer than the header that SQLite would look for in it");
    let newer = dir.path("newer.db");
    kept(&newer, &server.url(), &[]);
    // The format stands in bytes 60 to 63 of the header (https://www.sqlite.org/fileformat.html).
    let mut bytes = std::fs::read(&newer).unwrap();
    bytes[63] = 9;
    std::fs::write(&newer, &bytes).unwrap();
    for (store, expected) in [
        (file.as_str(), "is damaged"),
        (&newer, "made by a later brunt"),
        (&format!("{file}/below/runs.db"), "cannot open"),
        ("/dev/full", "/dev/full"),
        ("/proc/runs.db", "/proc/runs.db"),
    ] {
        let args = ["-n", "50", "-c", "1", "--threshold", "rate<1", "--store", store];
        let done = run([&args, &[server.url().as_str()][..]].concat()).with_status(1);
        assert!(done.stdout.contains("50 due = 50 answered"), "{done:#?}");
        let warned = done.stderr.starts_with("warning: the run was not kept: ") && done.stderr.contains(expected);
        assert!(warned && done.stderr.lines().count() == 1, "{store}: {done:#?}");
    }
}

/// The seed of a result's plan.
fn seed_of(json: &str) -> String {
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    document["plan"]["seed"].to_string()
}

/// The same of a comparison, and of the users of a script.
#[test]
fn how_it_is_repeated_stands_in_every_result() {
    let (dir, server) = (Directory::new(), server());
    let (json, lua, url) = (dir.path("a.json"), dir.path("a.lua"), server.url());
    let flags = ["-n", "50", "-c", "1", "--rounds", "10", "--tag", "a=b", "--name", "both", "-w", "0s", "-o", &json];
    run([&["compare"], &flags[..], &[&url, &url]].concat());
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let command = document["origin"]["command"].as_str().unwrap();
    assert!(command.starts_with("brunt compare --seed ") && command.contains(" --rounds 10 "), "{command}");
    assert!(command.ends_with(&format!(" {url} {url}")) && !command.contains("both"), "{command}");
    assert_eq!((&document["origin"]["name"], &document["origin"]["tags"]["a"]), (&"both".into(), &"b".into()));
    let script = format!(
        "local brunt = require 'brunt'\nlocal web = brunt.http {{ base = '{url}' }}\n\
         local s = brunt.scenario('s', function() web:get('/') end)\n\
         s:inject {{ brunt.iterations_each(1, 1) }}\n"
    );
    std::fs::write(&lua, script).unwrap();
    run(["run", &lua, "--seed", "9", "--env", "API_TOKEN=abc", "--scale", "2x", "-o", &json, "--quiet"]).with_status(0);
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let expected = format!("brunt run --scale 2x --env API_TOKEN=[redacted] --seed 9 {lua}");
    assert_eq!(document["plan"]["origin"]["command"], expected);
}

#[test]
fn what_was_decided_is_kept_with_its_runs_and_shown_again() {
    let (dir, server) = (Directory::new(), server());
    let (store, url) = (dir.path("runs.db"), server.url());
    let flags = ["-c", "1,2", "-t", "1", "-n", "50", "-w", "0s", "--store", &store, "--name", "knee", "--tag", "a=b"];
    let printed = run([&["sweep"], &flags[..], &[&url]].concat()).with_status(0).stdout;
    let agrees = |shown: String| {
        assert_eq!(apart(&shown).0, apart(&printed).0, "{shown}");
        assert!(!apart(&shown).1.is_empty(), "{shown}");
    };
    agrees(run(["show", "knee", "--store", &store]).with_status(0).stdout);
    // Each of its runs can be repeated by itself, and has its tags.
    let part = dir.path("part.json");
    run(["show", "2", "--store", &store, "-o", &part]).with_status(0);
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&part).unwrap()).unwrap();
    let alone = format!("brunt -c 2 -t 1 -n 50 -w 0s --seed {} {url}", seed_of(&part));
    assert_eq!(document["plan"]["origin"], serde_json::json!({"tags": {"a": "b"}, "command": alone}));
    // What was written into a file is read from there.
    let json = dir.path("sweep.json");
    run(["show", "knee", "--store", &store, "-o", &json]).with_status(0);
    agrees(run(["show", &json]).with_status(0).stdout);
    let command = format!("brunt sweep --seed {} -n 50 -c 1,2 -t 1 -w 0s {url}", seed_of(&json));
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let origin = serde_json::json!({"name": "knee", "tags": {"a": "b"}, "command": command});
    assert_eq!(document["plan"]["origin"], origin);
    let (html, kept) = (dir.path("sweep.html"), dir.path("kept.html"));
    run(["report", &json, "-o", &html]).with_status(0);
    run(["report", "knee", "--store", &store, "-o", &kept]).with_status(0);
    let page = |path: &str| std::fs::read_to_string(path).unwrap();
    assert!(page(&html).contains(&format!(">{command}</pre>")) && !page(&html).contains("Its whole page:"));
    assert!(page(&kept).contains(&format!("<code>brunt report 2 --store &#39;{store}&#39; -o run-2.html</code>")));
    let markdown = run(["show", "--format", "markdown", "--store", &store]).with_status(0).stdout;
    assert!(markdown.starts_with("# Sweep of connections"), "{markdown}");
    let wrong = run(["show", "--format", "wrk", "--store", &store]).with_status(2).stderr;
    assert!(wrong.contains("expected one of the formats text, json, csv, junit, markdown and html"), "{wrong}");
    let list = |more: &[&str]| run([&["runs", "--store", &store], more].concat()).with_status(0).stdout;
    let shown = list(&[]);
    assert!(rows(&shown).len() == 2 && shown.contains("knee  sweep") && shown.contains("a=b"), "{shown}");
    assert_eq!(rows(&list(&["--all"])).len(), 4);
    let json: serde_json::Value = serde_json::from_str(&list(&["--all", "--format", "json"])).unwrap();
    let kinds: Vec<_> = json.as_array().unwrap().iter().map(|run| (&run["kind"], &run["part_of"])).collect();
    let (sweep, single) = ("sweep".into(), "run".into());
    let (none, third) = (serde_json::Value::Null, 3.into());
    assert_eq!(kinds, [(&sweep, &none), (&single, &third), (&single, &third)]);
    assert_eq!(json[0]["tags"]["a"], "b");
    // A single run of it is one like any other.
    assert!(run(["show", "2", "--store", &store]).with_status(0).stdout.contains("\nbrunt http://"));
    run(["runs", "rm", "knee", "--store", &store]).with_status(0);
    assert!(list(&["--all"]).is_empty());
}

#[test]
fn runs_that_are_kept_are_compared() {
    let (dir, server) = (Directory::new(), server());
    let (store, url) = (dir.path("runs.db"), server.url());
    for side in ["old", "new"] {
        let tag = format!("build={side}");
        (0..3).for_each(|_| drop(kept(&store, &url, &["--quiet", "--tag", &tag])));
    }
    let compare = |a: &str, b: &str| run(["compare", a, b, "--store", &store]);
    let printed = compare("build=old", "build=new").with_status(0).stdout;
    assert!(printed.contains("A  3 runs tagged build=old") && printed.contains("3 runs of A, 3 of B"), "{printed}");
    // What is shown later says when it was.
    let shown = run(["show", "--store", &store]).with_status(0).stdout;
    let (of_then, rest): (Vec<_>, Vec<_>) = apart(&shown).0.into_iter().partition(|line| line.ends_with(" UTC"));
    assert_eq!((of_then.len(), rest), (1, apart(&printed).0), "{shown}");
    let short = compare("1", "last").with_status(2).stderr;
    assert!(short.contains("7 in ") && short.contains("was decided over several runs"), "{short}");
    let short = compare("1", "2").with_status(2).stderr;
    assert!(short.contains("run 1 (") && short.contains("too short to be compared by itself"), "{short}");
    let none = compare("build=old", "build=other").with_status(2).stderr;
    assert!(none.contains("no run that was kept has the tag build=other"), "{none}");
    let mixed = compare("1", &url).with_status(2).stderr;
    assert!(mixed.contains("name two targets, or two results"), "{mixed}");
}

#[test]
fn secrets_of_a_query_are_neither_kept_nor_shown() {
    let (dir, server) = (Directory::new(), server());
    let (store, plan) = (dir.path("runs.db"), dir.path("plan.json"));
    let url = format!("{}?q=1&access_token=t0psecret", server.url());
    let printed = kept(&store, &url, &["--format", "json"]);
    run(["--write-plan", &plan, "--dry-run", &url]).with_status(0);
    let shown = run(["show", "--store", &store, "--format", "json"]).with_status(0).stdout;
    let list = run(["runs", "--store", &store]).with_status(0).stdout;
    for text in [&printed, &shown, &list, &std::fs::read_to_string(&plan).unwrap()] {
        assert!(!text.contains("t0psecret") && text.contains("access_token=[redacted]"), "{text}");
    }
    let refused = run(["--plan", &plan, "--no-save"]).with_status(2).stderr;
    assert!(refused.contains("a secret was left out of it"), "{refused}");
}

#[test]
fn a_result_in_a_file_is_shown_as_its_run_is() {
    let (dir, server) = (Directory::new(), server());
    let (store, json) = (dir.path("runs.db"), dir.path("a.json"));
    kept(&store, &server.url(), &["-o", &json, "--threshold", "p99<10s"]);
    for format in ["text", "wrk", "json", "csv", "junit"] {
        let shown = |run_of: &str| run(["show", run_of, "--store", &store, "--format", format]).with_status(0).stdout;
        assert_eq!(shown(&json), shown("1"), "{format}");
    }
    let csv = dir.path("a.csv");
    run(["show", &json, "-o", &csv]).with_status(0);
    assert!(std::fs::read_to_string(&csv).unwrap().starts_with("kind,"));
    let missing = run(["show", &dir.path("gone.json")]).with_status(2).stderr;
    assert!(missing.contains("cannot read") && missing.contains("gone.json"), "{missing}");
}

#[test]
fn what_cannot_be_written_does_not_cost_the_others() {
    let (dir, server) = (Directory::new(), server());
    let store = dir.path("runs.db");
    kept(&store, &server.url(), &[]);
    let (bad, worse, good) = (dir.path("gone/a.json"), "/proc/a.csv", dir.path("a.csv"));
    let shown = run(["show", "--store", &store, "-o", &bad, "-o", &good, "-o", worse]).with_status(2);
    assert!(shown.stdout.contains("200 due = 200 answered"), "{shown:#?}");
    for path in [bad.as_str(), worse] {
        assert!(shown.stderr.contains(&format!("error: cannot write {path}")), "{shown:#?}");
    }
    assert_eq!(shown.stderr.lines().count(), 2, "{shown:#?}");
    assert!(std::fs::read_to_string(&good).unwrap().starts_with("kind,"));
    // A run has lost nothing yet, and says so before its load.
    let refused = run(["-n", "1", "--no-save", "-o", &bad, "-o", &good, &server.url()]).with_status(2);
    assert!(refused.stdout.is_empty() && refused.stderr.contains("cannot write"), "{refused:#?}");
}

/// The file, the store and the run say the same, in every format; figures in the file are not read back.
#[test]
fn a_run_is_the_same_from_its_file_and_from_the_store() {
    let (dir, server) = (Directory::new(), server());
    let (store, file, bare) = (dir.path("runs.db"), dir.path("run.json"), dir.path("bare.json"));
    kept(&store, &server.url(), &["-o", &file]);
    let text = std::fs::read_to_string(&file).unwrap();
    for format in ["text", "wrk", "json", "csv", "junit", "html"] {
        let shown = |arguments: &[&str]| run([&["show", "--format", format], arguments].concat()).with_status(0).stdout;
        assert_eq!(shown(&[&file]), shown(&["--store", &store]), "{format}");
    }
    assert_eq!(run(["show", &file, "--format", "json"]).with_status(0).stdout, text);
    let mut written: serde_json::Value = serde_json::from_str(&text).unwrap();
    written["outcomes"]["due"] = 7.into();
    std::fs::write(&bare, written.to_string()).unwrap();
    assert!(run(["show", &bare]).with_status(0).stdout.contains("200 due = 200 answered"));
    _ = written.as_object_mut().unwrap().remove("recording");
    std::fs::write(&bare, written.to_string()).unwrap();
    for refused in [run(["show", &bare]), run(["compare", &bare, &file])] {
        let refused = refused.with_status(2).stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(refused.contains("the result has no recording") && refused.contains("brunt show -o"), "{refused}");
    }
}
