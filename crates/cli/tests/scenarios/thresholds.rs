//! Thresholds of a script, and on figures of its own.

use brunt_testbed::server::{Server, ServerConfig};

use crate::program::run;
use crate::{play, script};

#[test]
fn a_figure_of_the_scripts_own_ends_a_run_that_cannot_pass() {
    let server = Server::start(ServerConfig::default()).unwrap();
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
        let cause = &json["ending"]["aborted"]["threshold"];
        assert!(
            cause["threshold"].as_str().is_some_and(|text| text.starts_with("own:")),
            "{condition}: {}",
            json["ending"]
        );
    }
}

#[test]
fn what_setup_recorded_counts_while_the_run_goes_on() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "local spent = brunt.counter('spent')
       brunt.setup(function() spent:add(5) end)
       brunt.scenario('s', function() http:get('/') brunt.pause('10ms') end):inject { brunt.users(2, '30s') }
       brunt.expect { ['spent:sum'] = { '< 3', abort = true } }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let json = play(&path, &[], 1);
    let cause = &json["ending"]["aborted"]["threshold"];
    assert_eq!(cause["got"], "5", "{:#}", json["ending"]);
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
fn thresholds_of_the_script_decide() {
    let server = Server::start(ServerConfig::default()).unwrap();
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
