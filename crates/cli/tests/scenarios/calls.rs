//! The calls of users: which ones reach the server, where they go, and how they are judged.

use brunt_testbed::server::{Server, ServerConfig};
use serde_json::Value;

use crate::nginx::Nginx;
use crate::program::run;
use crate::{play, script};

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
    let server = Server::start(ServerConfig::default()).unwrap();
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
fn a_check_on_what_is_not_found_fails() {
    let server = Server::start(ServerConfig::default()).unwrap();
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
fn calls_are_judged_by_conditions_and_by_what_the_script_says_of_them() {
    let server = Server::start(ServerConfig::default()).unwrap();
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
fn a_target_that_is_not_there_never_answered() {
    let text = "brunt.scenario('s', function() http:get('/') end):inject { brunt.iterations_each(1, 2) }";
    let (_directory, path) = script("http://127.0.0.1:1", text);
    run(["run", &path]).with_status(3);
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
    // No server has this name: --connect-to says where it is reached.
    let (_directory, path) = script("http://shop.invalid", &text);
    let address = first.url("").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let json = play(&path, &["--connect-to", &address], 0);
    let checks = json["names"]["checks"].as_array().unwrap();
    assert!(checks.len() == 2 && checks.iter().all(|check| check["fails"] == 0), "{:#}", json["names"]);
}

#[test]
fn a_check_of_a_call_without_an_answer_shows_why_there_was_none() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "brunt.scenario('s', function(vu)
         local late = http:get('/_/delay/2000', { name = 'late', timeout = '50ms' })
         brunt.check(late, { ['200'] = late.status == 200 })
         local bare = http:get('/_/bytes/0', { name = 'bare' })
         brunt.check(bare, { ['404'] = bare.status == 404 })
       end):inject { brunt.iterations_shared(1, 2) }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let said = run(["run", &path, "-t", "1"]).with_status(0).stdout;
    for expected in ["such as 'timeout: no complete answer within", "such as 200\n"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let junit = run(["run", &path, "-t", "1", "--format", "junit", "--max-error-rate", "1%"]).with_status(1).stdout;
    for expected in ["such as: body &apos;timeout: no complete answer", "such as: status 200"] {
        assert!(junit.contains(expected), "{expected}: {junit}");
    }
}
