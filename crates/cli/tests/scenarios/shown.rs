//! What a script logs, and what `--once` shows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use brunt_testbed::server::{Delay, Server, ServerConfig};
use serde_json::Value;

use crate::nginx::Nginx;
use crate::program::{brunt, done, run};
use crate::{play, script};

#[test]
fn what_scripts_say_and_what_fails_is_written_down() {
    let server = Server::start(ServerConfig::default()).unwrap();
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

#[test]
fn once_shows_everything_but_secrets() {
    let server = Server::start(ServerConfig::default()).unwrap();
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

/// Going through a script once is that, whatever else is said of how many there are to be.
#[test]
fn once_is_once() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "brunt.scenario('s', function() http:get('/') end):inject { brunt.users(5, '1s') }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let done = done(&mut brunt(["run", &path, "--once", "--scale", "3x", "-t", "2"])).with_status(0);
    assert_eq!(done.stdout.matches("→ GET /").count() + done.stderr.matches("→ GET /").count(), 1, "{}", done.stdout);
}

#[test]
fn what_a_script_prints_stays_out_of_a_result_for_programs() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "print('at the top')
       brunt.scenario('s', function() io.write('by io\\n') print('by print', 1) http:get('/') end)
         :inject { brunt.iterations_each(1, 1) }";
    let (_directory, path) = script(&server.url(), text);
    for format in ["json", "csv", "junit"] {
        let done = run(["run", &path, "--format", format]).with_status(0);
        let is_told = |text: &str| ["at the top", "by io", "by print\t1"].iter().all(|word| text.contains(word));
        assert!(is_told(&done.stderr) && !done.stdout.contains("by print\t1"), "{format}: {done:#?}");
    }
    let for_people = run(["run", &path]).with_status(0);
    assert!(for_people.stdout.contains("by print\t1"), "{for_people:#?}");
}

/// The rows of a file, by column.
fn rows(path: &str) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<_> = lines.next().unwrap().split(',').collect();
    lines
        .map(|line| columns.iter().map(|name| (*name).to_owned()).zip(line.split(',').map(str::to_owned)).collect())
        .collect()
}

/// The response time, in nanoseconds, that this share of the calls of `rows` keep to: a failed call would have taken longer
/// than it did (Kaplan and Meier). `None` where too many failed to tell.
fn quantile(rows: &[&BTreeMap<String, String>], share: f64) -> Option<f64> {
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().ok();
    let time = |row: &BTreeMap<String, String>| {
        let until = number(row, "arrived_ns").or_else(|| number(row, "ended_ns")).unwrap();
        until - number(row, "due_ns").unwrap() - number(row, "lag_ns").unwrap_or(0.0)
    };
    let mut times: Vec<_> = rows.iter().map(|row| (time(row), row["outcome"] != "ok")).collect();
    times.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let (mut longer, count) = (1.0, times.len());
    times.into_iter().enumerate().find_map(|(place, (time, has_failed))| {
        longer *= if has_failed { 1.0 } else { 1.0 - 1.0 / (count - place) as f64 };
        (longer <= 1.0 - share + 1e-9).then_some(time)
    })
}

#[test]
fn a_row_for_each_call_gives_the_reports_percentiles() {
    let server = Server::start(ServerConfig {
        delay: Delay::Uniform { min: Duration::ZERO, max: Duration::from_millis(9) },
        error_rate: 0.05,
        ..ServerConfig::default()
    })
    .unwrap();
    let text = "brunt.scenario('s', function(vu)
         http:get('/a', { name = 'a', tags = { plan = 'pro' } })
         if vu.iteration == 40 then http:get('/_/status/503', { name = 'bad', ok = { 503 } }) end
       end):inject { brunt.users(4, '900ms') }";
    let (directory, path) = script(server.url().trim_end_matches('/'), text);
    let file = directory.path("calls.csv");
    let url = server.url();
    let runs: [&[&str]; 4] = [
        &["run", &path, "--samples", &file],
        &["-c", "4", "-d", "900ms", "-w", "200ms", "--samples", &file, &url],
        &["-r", "500", "-d", "900ms", "--samples", &file, &url],
        // Calls that time out, some of them behind the end.
        &["-r", "500", "-d", "900ms", "--timeout", "7ms", "--drain", "3ms", "--samples", &file, &url],
    ];
    for args in runs {
        let done = run(args.iter().copied().chain(["--format", "json"])).with_status(0);
        let json: Value = serde_json::from_str(&done.stdout).unwrap();
        let rows = rows(&file);
        assert_eq!(json["samples"]["rows"], rows.len(), "{}", json["samples"]);
        let measured: Vec<_> = rows.iter().filter(|row| row["phase"] == "measured").collect();
        assert_eq!(measured.len() as u64, json["outcomes"]["due"].as_u64().unwrap(), "{args:?}: {}", json["samples"]);
        assert_eq!(rows.len() > measured.len(), args.contains(&"-w"), "calls of the warm-up have rows");
        for shown in json["times"]["response"]["quantiles"].as_array().unwrap() {
            let Some(exact) = quantile(&measured, shown["share_ratio"].as_f64().unwrap()) else { continue };
            let value = shown["value_ns"].as_f64().unwrap();
            assert!((value - exact).abs() <= exact * 0.008 + 1.0, "{args:?}: {shown:#} and {exact}");
        }
        if args.contains(&"run") {
            let bad =
                rows.iter().filter(|row| row["name"] == "bad" && row["outcome"] == "ok" && row["status"] == "503");
            assert!(bad.count() > 0);
            let a = rows.iter().find(|row| row["name"] == "a").unwrap();
            assert_eq!((a["tags"].as_str(), a["iteration"].as_str()), ("plan=pro", "1"));
        }
    }
    let done = run(["-n", "50", "--samples", &file, "--samples-share", "10%", &url]).with_status(0);
    let left = 50 - rows(&file).len();
    assert!(done.stdout.contains(&format!("{left} calls have none, as 10% of calls have one")), "{}", done.stdout);
    // A disk that is full ends in an error, and no rows are said to be there.
    let full = format!("{file}.full.csv");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let done = run(["-n", "5", "--samples", &full, &url]).with_status(2);
    assert!(done.stdout.contains("is not whole: No space left on device"), "{}", done.stdout);
    // A row has the bytes of its own call, and not those of calls before it that have none: an
    // answer's size is its status', however few calls have rows.
    let sizes = |share: &str| {
        run(["-n", "300", "-c", "1", "-t", "1", "--samples", &file, "--samples-share", share, &url]).with_status(0);
        let mut sizes = BTreeMap::<_, BTreeSet<_>>::new();
        for row in rows(&file) {
            sizes.entry(row["status"].clone()).or_default().insert(row["bytes_in"].clone());
        }
        assert!(sizes.values().all(|sizes| sizes.len() == 1), "{share}: {sizes:?}");
        sizes
    };
    let of_each = sizes("100%");
    for (status, size) in sizes("30%") {
        assert!(of_each.get(&status).is_none_or(|whole| *whole == size), "{status}: {size:?} and {of_each:?}");
    }
    assert_eq!(sizes("30%").get("200"), of_each.get("200"));
    let refused = run(["-n", "1", "--samples", "calls.txt", &url]).with_status(2);
    assert!(refused.stderr.contains("FILE.csv or FILE.ndjson"), "{refused:#?}");
}
