//! What browsers do with answers: cookies, redirects, several requests at once, pages.

use super::*;

#[test]
fn a_batch_goes_over_several_connections_as_a_browser_has_them() {
    fn slow(_request: &str) -> (u64, String) {
        (10 * MS, response("200 OK", "", "x"))
    }
    let played = play(
        "local few = brunt.http { base = 'http://127.0.0.1', connections = 2 }
         brunt.scenario('s', function()
           http:get('/')
           local answers = http:batch { '/1', '/2', { 'POST', '/3', { body = 'x' } }, '/4', '/5', '/6', '/7' }
           brunt.check(answers[7], { seven = answers[7].status == 200 and #answers == 7 })
           few:batch { '/a', '/b', '/c' }
         end):inject { brunt.iterations_each(1, 1) }",
        slow,
    );
    // One connection is open and five are new: the seventh call waits.
    let times = played.times();
    assert_eq!(times[..8], [0, 10, 10, 10, 10, 10, 10, 20]);
    assert_eq!(times[8..], [30, 30, 40]);
    assert_eq!(played.summary.total.numbers.get(Counter::ConnectionsMade), 8);
    assert_eq!(played.summary.total.figures.checks.get("GET /7: seven").unwrap().passes, 1);
}

#[test]
fn sessions_keep_cookies_and_follow_redirects() {
    fn site(request: &str) -> (u64, String) {
        let path = request.split(' ').nth(1).unwrap_or("");
        let answer = match path {
            "/login" => response("302 Found", "Location: home?x=1\r\nSet-Cookie: id=7; Path=/; HttpOnly\r\n", ""),
            "/home?x=1" if request.contains("\r\nCookie: id=7\r\n") => {
                response("301 Moved", "Location: /shop/./a/../\r\nSet-Cookie: deep=1; Path=/other\r\n", "")
            }
            "/shop/" => response("200 OK", "", "in"),
            "/logout" => response("200 OK", "Set-Cookie: id=; Max-Age=0; Path=/\r\n", "out"),
            _ => response("404 Not Found", "", "?"),
        };
        (MS, answer)
    }
    let played = play(
        "brunt.scenario('s', function()
           local r = http:post('/login', { form = { user = 'a b', pin = 1 }, name = 'login' })
           brunt.check(r, { followed = r.body == 'in' and r.url == 'http://127.0.0.1/shop/' })
           http:get('/logout')
           http:get('/login', { redirects = false })
         end):inject { brunt.iterations_each(1, 1) }",
        site,
    );
    assert_eq!(played.lines(), ["POST /login", "GET /home?x=1", "GET /shop/", "GET /logout", "GET /login"]);
    assert!(played.requests[0].2.ends_with("\r\n\r\npin=1&user=a+b"), "{}", played.requests[0].2);
    assert!(!played.requests[1].2.contains("pin=1"), "a redirected POST is a GET without its body");
    assert!(played.requests[2].2.contains("\r\nCookie: id=7\r\n") && !played.requests[2].2.contains("deep"));
    assert!(!played.requests[4].2.contains("Cookie"), "the cookie is gone after the logout");
    let figures = &played.summary.total.figures;
    assert_eq!(figures.checks.get("login: followed").map(|check| check.passes), Some(1));
}

#[test]
fn cookies_go_when_their_time_is_up() {
    fn site(request: &str) -> (u64, String) {
        let sets = "Set-Cookie: short=1; Max-Age=10\r\nSet-Cookie: long=2; Max-Age=3600\r\nSet-Cookie: stays=3\r\n";
        (MS, response("200 OK", if request.starts_with("GET /login") { sets } else { "" }, ""))
    }
    let played = play(
        "brunt.scenario('s', function()
           http:get('/login')
           brunt.pause(9)
           http:get('/before')
           brunt.pause(2)
           http:get('/after')
         end):inject { brunt.iterations_each(1, 1) }",
        site,
    );
    let cookies = |place: usize| {
        let request = &played.requests[place].2;
        request.lines().find_map(|line| line.strip_prefix("Cookie: ")).map(str::to_owned)
    };
    assert_eq!(cookies(0), None);
    assert_eq!(cookies(1).as_deref(), Some("short=1; long=2; stays=3"));
    assert_eq!(cookies(2).as_deref(), Some("long=2; stays=3"));
}

#[test]
fn a_redirect_in_a_batch_leaves_the_other_answers_there() {
    fn site(request: &str) -> (u64, String) {
        let path = request.split(' ').nth(1).unwrap_or("");
        let answer = match path {
            "/old" | "/older" => response("302 Found", &format!("Location: {path}/new\r\n"), ""),
            _ => response("200 OK", "X-Path: here\r\n", path),
        };
        (MS, answer)
    }
    let played = play(
        "brunt.scenario('s', function()
           local answers = http:batch { '/a', '/old', '/older', '/b' }
           for place, expected in ipairs { '/a', '/old/new', '/older/new', '/b' } do
             local one = answers[place]
             brunt.check(one, { whole = one.body == expected and one.headers['X-Path'] == 'here'
               and one.timings.service > 0 and one.sizes.body == #expected })
           end
         end):inject { brunt.iterations_each(1, 1) }",
        site,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    let checks = &played.summary.total.figures.checks;
    assert_eq!(checks.iter().map(|(_, check)| (check.passes, check.fails)).collect::<Vec<_>>(), [(1, 0); 4]);
}

#[test]
fn a_page_keeps_its_answer_when_its_resources_are_fetched() {
    fn site(request: &str) -> (u64, String) {
        let body = if request.starts_with("GET / ") { "<img src='/a.png'>" } else { "png" };
        (MS, response("200 OK", "X-Here: yes\r\n", body))
    }
    let played = play(
        "brunt.scenario('s', function()
           local page = http:page('/')
           brunt.check(page, { whole = page.headers['x-here'] == 'yes' and page.timings.service > 0 and #page.resources == 1 })
         end):inject { brunt.iterations_each(1, 1) }",
        site,
    );
    let check = played.summary.total.figures.checks.get("GET /: whole").map(|check| (check.passes, check.fails));
    assert_eq!(check, Some((1, 0)), "{:?}", played.scenario("s").tracebacks);
}

#[test]
fn limits_are_the_runs_and_not_each_threads() {
    fn slow(_request: &str) -> (u64, String) {
        (10 * MS, response("200 OK", "", "x"))
    }
    for (script, most) in [
        ("brunt.scenario('s', function() http:get('/') end):inject { brunt.rate(400, '1s'), most_alive = 1 }", 1),
        ("brunt.scenario('s', function() http:get('/') end):inject { brunt.rate(400, '1s'), most_alive = 3 }", 3),
        (
            "local pooled = brunt.http { base = 'http://127.0.0.1', pool = 2 }
             brunt.scenario('s', function() pooled:get('/') end):inject { brunt.users(20, '1s') }",
            2,
        ),
    ] {
        let plan = Plan { workers: 4, ..plan_of(script, &[]).unwrap() };
        let played = play_with(&plan, slow);
        assert_eq!(played.summary.plan.workers, most, "{script}");
        let at_once = |at: u64| played.requests.iter().filter(|(came, ..)| (at..at + 9 * MS).contains(came)).count();
        let busiest = played.requests.iter().map(|(came, ..)| at_once(*came)).max();
        assert_eq!(busiest, Some(most as usize), "{script}");
        let connections: std::collections::BTreeSet<_> = played.requests.iter().map(|(_, number, _)| *number).collect();
        assert!(!script.contains("pool =") || connections.len() == most as usize, "{connections:?}");
    }
}

/// A site whose login redirects twice, and ends where its query says.
fn leading(request: &str) -> (u64, String) {
    let (path, query) = request.split(' ').nth(1).unwrap_or("").split_once('?').unwrap_or_default();
    let to = |status: &str, place: &str| response(status, &format!("Location: /{place}?{query}\r\n"), "");
    match (path, query) {
        ("/login", _) => (10 * MS, to("302 Found", "second")),
        ("/second", "silent") => (20 * MS, to("303 See Other", "never")),
        ("/second", _) => (20 * MS, to("303 See Other", "end")),
        ("/never", _) => (0, String::new()),
        (_, "bad") => (800 * MS, response("500 Oops", "", "")),
        _ => (30 * MS, response("200 OK", "", "in")),
    }
}

/// By name: the calls due, the calls not ok, and the longest time in milliseconds.
fn calls(played: &Played) -> Vec<(&str, u64, u64, u64)> {
    let of = |(name, calls): (_, &brunt_record::figures::CallFigures)| {
        let longest = calls.times.get(Timing::Response).lower().max().unwrap() / MS;
        (name, calls.numbers.get(Counter::Due), calls.not_ok(&played.summary.plan.ok_status), longest)
    };
    let figures = &played.summary.total.figures;
    let mut all: Vec<_> = figures.requests.iter().chain(figures.tags.iter()).map(of).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_call_is_the_whole_chain_of_its_redirects() {
    let played = play(
        "brunt.scenario('s', function()
           local r = http:get('/login?bad', { name = 'login', tags = { kind = 'auth' }, timeout = '2s' })
           brunt.check(r, { took = r.timings.response > 0.829 and r.timings.service > 0.829, fine = r.ok })
           http:get('/login?good', { name = 'again', redirects = 1 })
         end):inject { brunt.iterations_each(1, 2) }
         brunt.expect { ['login:error_rate'] = '< 1%', ['login:p95'] = '< 500ms' }",
        leading,
    );
    let mut expected = vec![
        // Its chain is cut at the limit that the script sets.
        ("again", 2, 2, 30),
        ("again redirect 1", 2, 0, 10),
        ("kind=auth", 2, 2, 830),
        ("login", 2, 2, 830),
        ("login redirect 1", 2, 0, 10),
        ("login redirect 2", 2, 0, 20),
    ];
    expected.sort_unstable();
    assert_eq!(calls(&played), expected);
    let figures = &played.summary.total.figures;
    assert_eq!(figures.checks.get("login: took").map(|check| check.passes), Some(2));
    let statuses = |name: &str| figures.requests.get(name).unwrap().statuses.sorted();
    assert_eq!([statuses("login"), statuses("again")], [vec![(500, 2)], vec![(303, 2)]]);
    let asked = played.summary.thresholds.iter().filter(|result| !result.is_implicit());
    assert_eq!(asked.map(|result| result.held).collect::<Vec<_>>(), [false; 2]);
}

#[test]
fn a_chain_that_breaks_off_counts_once() {
    fn away(_request: &str) -> (u64, String) {
        (MS, response("302 Found", "Location: ftp://elsewhere/\r\n", ""))
    }
    let played = play(
        "brunt.scenario('s', function(vu)
           local answers = http:batch { { 'GET', '/login?good', { name = 'a' } }, { 'GET', '/login?silent', { name = 'b' } } }
           brunt.check(answers[1], { there = answers[1].body == 'in' })
           brunt.check(answers[2], { late = answers[2].error == 'timeout' })
         end):inject { brunt.iterations_each(1, 1) }",
        leading,
    );
    // The second chain continues when the first has ended.
    let expected = [
        ("a", 1, 0, 60),
        ("a redirect 1", 1, 0, 10),
        ("a redirect 2", 1, 0, 20),
        ("b", 1, 1, 280),
        ("b redirect 1", 1, 0, 10),
        ("b redirect 2", 1, 0, 20),
    ];
    assert_eq!(calls(&played), expected);
    let checks = &played.summary.total.figures.checks;
    let held: Vec<_> = checks.iter().map(|(name, check)| (name, check.passes)).collect();
    assert_eq!(held, [("a: there", 1), ("b: late", 1)]);
    // A run that ends in the middle of a chain keeps its books, like every run here; so does a redirect to nowhere.
    for length in [5, 15, 45, 75] {
        let script = format!(
            "brunt.scenario('s', function() http:get('/login?good', {{ name = 'a' }}) end)
               :inject {{ brunt.users(3, '{length}ms') }}"
        );
        play(&script, leading);
    }
    let played = play(
        "brunt.scenario('s', function() http:get('/', { name = 'a' }) end):inject { brunt.iterations_each(1, 1) }",
        away,
    );
    assert_eq!(calls(&played), [("a", 1, 0, 1)]);
    assert_eq!(played.scenario("s").errors, 1);
}

#[test]
fn cookies_are_read_set_and_cleared() {
    let played = play_with(
        &plan_of(
            "local each = brunt.http { base = 'http://127.0.0.1', cookies = 'iteration' }
             brunt.scenario('s', function(vu)
               http:set_cookie('b', 1, { path = '/in' }) http:set_cookie('a', 'x y', { path = '/in' }) http:set_cookie('b', 2, { path = '/in' })
               http:get('/in/side')
               http:get('/in/side', { headers = { Cookie = 'mine=1' } })
               http:batch { { 'GET', '/in/batch', { headers = { cookie = 'mine=2' } } } }
               brunt.check(nil, { read = http:cookie('b', '/in/') == '2', none = http:cookie('b') == nil })
               http:clear_cookies('a') http:get('/in/b')
               http:clear_cookies() http:get('/in/none')
               brunt.check(nil, { refused = not pcall(http.set_cookie, http, 'a', 1, { domain = 'else.where' }),
                 bad = not pcall(http.set_cookie, http, 'a=b', 1) })
               if vu.iteration == 1 then each:set_cookie('once', 1) end
               each:get('/each')
             end):inject { brunt.iterations_each(1, 2) }",
            &[],
        )
        .unwrap(),
        hello,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    assert!(played.summary.total.figures.checks.iter().all(|(_, check)| check.fails == 0));
    let cookies: Vec<Vec<&str>> = played
        .requests
        .iter()
        .map(|(.., request)| {
            let fields = request.lines().filter_map(|line| line.split_once(": "));
            fields.filter(|(name, _)| name.eq_ignore_ascii_case("cookie")).map(|(_, value)| value).collect()
        })
        .collect();
    let first = [vec!["b=2; a=x y"], vec!["mine=1; b=2; a=x y"], vec!["mine=2; b=2; a=x y"], vec!["b=2"], vec![]];
    assert_eq!(cookies[..5], first);
    assert_eq!((&cookies[5], &cookies[11]), (&vec!["once=1"], &vec![]), "{cookies:?}");
}

#[test]
fn a_location_keeps_its_empty_parts() {
    fn answer(request: &str) -> (u64, String) {
        let path = request.split(' ').nth(1).unwrap_or("");
        let to = match path {
            "/1" => "/a//b/../c/.",
            "/2" => "/../x/..",
            "/a/3" => "d//e",
            _ => return hello(request),
        };
        (MS, response("302 Found", &format!("Location: {to}\r\n"), ""))
    }
    let played = play(
        "brunt.scenario('s', function() http:get('/1') http:get('/2') http:get('/a/3') end):inject { brunt.at_once(1) }",
        answer,
    );
    let lines = played.lines();
    assert_eq!(lines, ["GET /1", "GET /a//c/", "GET /2", "GET /", "GET /a/3", "GET /a/d//e"]);
}

#[test]
fn several_files_of_one_name_and_the_bytes_of_a_file_are_sent() {
    let script = "local picture = brunt.file('a.bin')
        brunt.scenario('s', function()
          http:post('/', { multipart = { pictures = { { filename = 'a', content = picture }, { filename = 'b', content = 'B' } },
            tags = { 'x', 'y' }, one = { filename = 'c', content = 'C' } } })
        end):inject { brunt.at_once(1) }";
    let played = play_with(&plan_of(script, &[("a.bin", "\0\u{1}z")]).unwrap(), hello);
    let body = &played.requests[0].2;
    for expected in [
        "name=\"pictures\"; filename=\"a\"\r\nContent-Type: application/octet-stream\r\n\r\n\0\u{1}z\r\n",
        "name=\"pictures\"; filename=\"b\"\r\nContent-Type: application/octet-stream\r\n\r\nB\r\n",
        "name=\"tags\"\r\n\r\nx\r\n",
        "name=\"tags\"\r\n\r\ny\r\n",
        "name=\"one\"; filename=\"c\"",
    ] {
        assert!(body.contains(expected), "{expected:?} in {body:?}");
    }
    let problem = plan_of("brunt.file('b.bin')", &[]).unwrap_err();
    assert!(problem.contains("there is no file 'b.bin' beside the script"), "{problem}");
}

#[test]
fn connections_end_with_the_call_or_the_iteration() {
    let script = |options: &str| {
        format!(
            "local own = brunt.http {{ base = 'http://127.0.0.1', {options} }}
             brunt.scenario('s', function()
               own:get('/a') own:batch {{ '/b', '/c' }} own:get('/d')
             end):inject {{ brunt.iterations_each(2, 3) }}"
        )
    };
    for (options, made) in [
        ("keep_alive = true", 4),
        // Two of each user, in each iteration.
        ("keep_alive = 'iteration'", 12),
        ("keep_alive = false", 24),
        ("keep_alive = false, pipeline = 4, pool = 2", 24),
    ] {
        let played = play(&script(options), hello);
        let numbers = &played.summary.total.numbers;
        assert_eq!((played.lines().len(), numbers.get(Counter::ConnectionsMade)), (24, made), "{options}");
        assert_eq!(played.summary.total.failures.total(), 0, "{options}");
        let closes =
            played.requests.iter().filter(|(.., request)| request.contains("\r\nConnection: close\r\n")).count();
        assert_eq!(closes, if options.contains("false") { 24 } else { 0 }, "{options}");
    }
    for (options, expected) in [
        ("keep_alive = 'call'", "keep_alive must be false"),
        ("keep_alive = 'iteration', pool = 2", "keep_alive is for connections that are a user's own"),
        ("cert = 'x'", "cert and key are given together"),
        ("cert = 'client.pem', key = 'x'", "a certificate in PEM"),
    ] {
        let problem = plan_of(&script(options), &[]).unwrap_err();
        assert!(problem.contains(expected), "{options}: {problem}");
    }
}

#[test]
fn a_header_is_left_out_by_false() {
    let played = play(
        "local own = brunt.http { base = 'http://127.0.0.1', headers = { ['User-Agent'] = false, ['X-Own'] = '1' } }
         brunt.scenario('s', function(vu)
           own:get('/a')
           own:get('/b', { headers = { ['x-own'] = false, ['X-Other'] = '2' } })
           http:post('/c', { headers = { ['user-agent'] = false, ['Content-Type'] = false }, json = { 1 } })
           http:get('/d')
           -- A rehearsal, which finds it before the load, has one iteration.
           if vu.iteration == 2 then http:get('/e', { headers = { ['Host'] = false } }) end
         end):inject { brunt.iterations_each(1, 2) }",
        hello,
    );
    let fields = |place: usize| -> Vec<&str> {
        let head = played.requests[place].2.split("\r\n\r\n").next().unwrap();
        head.lines().skip(1).map(|line| line.split(':').next().unwrap()).filter(|name| *name != "Host").collect()
    };
    assert_eq!(
        (0..4).map(fields).collect::<Vec<_>>(),
        [vec!["X-Own"], vec!["X-Other"], vec!["Content-Length"], vec!["User-Agent"]]
    );
    assert!(
        played.scenario("s").tracebacks[0].0.contains("Host cannot be left out"),
        "{:?}",
        played.scenario("s").tracebacks
    );
}

#[test]
fn a_blocked_host_is_not_called_and_a_mapped_one_is_elsewhere() {
    let played = play(
        "brunt.hosts { ['shop.example'] = '127.0.0.1:80', ['*.other.example'] = '127.0.0.1:80', ['bad.example'] = '127.0.0.1:80' }
         brunt.block { '*.ads.example', 'bad.example', '10.0.0.0/8' }
         local base = brunt.http { base = 'http://bad.example' }
         brunt.scenario('s', function()
           http:get('http://shop.example:8080/a')
           http:get('http://x.other.example/b')
           for _, host in ipairs { 'x.ads.example', 'bad.example', '10.1.2.3' } do
             local answer = http:get('http://' .. host .. '/', { name = host })
             brunt.check(answer, { [host] = answer.error == 'blocked' })
           end
           local answer = base:get('/', { name = 'base' })
           brunt.check(answer, { base = answer.error == 'blocked' })
         end):inject { brunt.iterations_each(1, 2) }",
        hello,
    );
    assert_eq!(played.lines(), ["GET /a", "GET /b", "GET /a", "GET /b"]);
    assert!(played.requests[0].2.contains("\r\nHost: shop.example:8080\r\n"), "{}", played.requests[0].2);
    let total = &played.summary.total;
    assert_eq!((total.failures.count(Failure::Blocked), total.failures.total()), (8, 8), "{:?}", total.failures);
    assert!(total.figures.checks.iter().all(|(_, check)| (check.passes, check.fails) == (2, 0)));
    assert_eq!(total.numbers.get(Counter::ConnectionsFailed), 0);
    let reasons = format!("{:?}", total.failures.reasons(Failure::Blocked));
    assert!(reasons.contains("10.1.2.3 is blocked by '10.0.0.0/8'"), "{reasons}");
    for (script, expected) in [
        ("brunt.hosts { 'a' }", "brunt.hosts takes hosts"),
        ("brunt.hosts { a = 'b c' }", "'b c' is no place"),
        ("brunt.block { a = 'b' }", "brunt.block takes a list"),
        ("brunt.block { '10.0.0.0/99' }", "is no host"),
    ] {
        assert!(plan_of(script, &[]).unwrap_err().contains(expected), "{script}");
    }
}

#[test]
fn iterations_are_numbered_over_all_users_and_threads() {
    let mut plan = plan_of(
        "brunt.scenario('s', function()
           local number = brunt.run_iteration()
           brunt.spawn(function() http:get('/' .. brunt.run_iteration()) end)
           brunt.wait()
           brunt.check(nil, { same = number == brunt.run_iteration() })
         end):inject { brunt.iterations_shared(4, 30) }",
        &[],
    )
    .unwrap();
    plan.workers = 3;
    let played = play_with(&plan, hello);
    let mut numbers: Vec<u64> =
        played.lines().iter().map(|line| line.trim_start_matches("GET /").parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=30).collect::<Vec<_>>());
    assert!(played.summary.total.figures.checks.iter().all(|(_, check)| check.fails == 0 && check.passes == 30));
}

#[test]
fn large_bodies_arrive_whole_and_count() {
    let played = play(
        "local body = ('0123456789abcdef'):rep(5000)
         brunt.scenario('s', function(vu)
           http:post('/same', { body = body })
           http:post('/own', { body = vu.id .. body, headers = { ['Content-Type'] = 'text/x' } })
           http:get('/after')
         end):inject { brunt.iterations_each(3, 2) }",
        hello,
    );
    let lines = played.lines();
    assert_eq!(lines.len(), 18);
    for (.., request) in &played.requests {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let expected = match head.split(' ').nth(1).unwrap() {
            "/same" => 80_000,
            "/own" => 80_001,
            _ => 0,
        };
        assert_eq!(body.len(), expected, "{head}");
        assert!(body.trim_start_matches(['1', '2', '3']).trim_start_matches("0123456789abcdef").is_empty());
    }
    let home = played.summary.total.figures.requests.get("POST /same").unwrap();
    assert!(home.numbers.get(Counter::ClearOut) >= 6 * 80_000, "{:?}", home.numbers);
}
