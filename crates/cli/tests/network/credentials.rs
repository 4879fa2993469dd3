//! Whose user goes where: two servers and two users, by each way of naming a target.

use std::fmt::Write as _;

use crate::nginx::{Listen, Nginx};
use crate::program::{Directory, brunt, done, run};

/// What a way leads to, as `PATH USER` at either server; each path is the way's own.
type Asked = &'static [&'static str];

/// Ways of a flood: their flags, the lines of `--url-lines`, and what each server is asked. `A` and `B` stand for the servers; the target is `me:pw@A`
/// or, where flags name a user, `A`.
const FLOODS: &[(&[&str], &str, Asked, Asked)] = &[
    (&[], "", &["/ me"], &[]),
    (
        &[],
        "/a\nhttp://A/b\nhttp://you:pw@A/c\nhttp://B/d\nhttp://you:pw@B/e\n",
        &["/a me", "/b me", "/c you"],
        &["/d -", "/e you"],
    ),
    // vegeta's targets.
    (
        &[],
        "GET http://A/a\nX-A: 1\n\nGET http://B/b\nX-A: 1\n\nGET http://you:pw@B/c\nX-A: 1\n\nGET http://B/d\nAuthorization: Basic eW91OnB3\n",
        &["/a me"],
        &["/b -", "/c you", "/d you"],
    ),
    (
        &[],
        "{\"url\": \"http://A/a\", \"headers\": {\"X-A\": \"1\"}}\n{\"url\": \"http://you:pw@A/b\"}\n{\"url\": \"http://you:pw@B/c\", \"headers\": {\"X-A\": \"1\"}}\n\
         {\"url\": \"http://B/d\", \"body\": \"x\"}\n",
        &["/a me", "/b you"],
        &["/c you", "/d -"],
    ),
    // What flags name is for every target, and a line's own goes before it.
    (&["--basic", "me:pw"], "/a\nhttp://B/b\nhttp://you:pw@B/c\n", &["/a me"], &["/b me", "/c you"]),
    (&["-H", "Authorization: Basic bWU6cHc="], "/a\nhttp://B/b\nhttp://you:pw@B/c\n", &["/a me"], &["/b me", "/c you"]),
];

/// Scripts whose `http` has the base `me:pw@A`. There `/to-b` redirects to `/landed` on server B, and `/to-a` to `/landed` on A.
const SCRIPTS: &[(&str, Asked, Asked)] = &[
    (
        "http:get('/a') http:get('http://A/b') http:get('http://B/c') http:get('http://you:pw@B/d') http:get('http://you:pw@A/e')",
        &["/a me", "/b me", "/e you"],
        &["/c -", "/d you"],
    ),
    ("http:batch { '/a', 'http://B/b', 'http://you:pw@B/c' }", &["/a me"], &["/b -", "/c you"]),
    ("http:get('/to-b') http:get('/to-a')", &["/to-b me", "/to-a me", "/landed me"], &["/landed -"]),
    (
        "http:get('/to-b', { basic = { 'you', 'pw' } }) http:get('/to-a', { basic = { 'you', 'pw' } })",
        &["/to-b you", "/to-a you", "/landed you"],
        &["/landed -"],
    ),
];

/// Both servers. With each redirect A leads to B.
struct Pair {
    a: Nginx,
    b: Nginx,
}

impl Pair {
    fn start(listen: Listen) -> Self {
        let b = Nginx::listening(listen, &[], "location / { empty_gif; }");
        let leads = format!(
            "location / {{ empty_gif; }} location = /to-b {{ return 302 http://127.0.0.1:{}/landed; }} location = /to-a {{ return 302 /landed; }}",
            b.port
        );
        Self { a: Nginx::listening(listen, &[], &leads), b }
    }

    /// The text with the servers' addresses.
    fn of(&self, text: &str) -> String {
        let place = |nginx: &Nginx| format!("127.0.0.1:{}/", nginx.port);
        text.replace("A/", &place(&self.a)).replace("B/", &place(&self.b))
    }

    #[track_caller]
    fn assert_asked(self, way: &str, of_a: Asked, of_b: Asked) {
        for (nginx, expected) in [(self.a, of_a), (self.b, of_b)] {
            let said = |user: &str| if user.is_empty() { "-".to_owned() } else { user.to_owned() };
            let line =
                |line: &crate::nginx::Line| format!("{} {}", line.get("request_uri"), said(line.get("remote_user")));
            let mut asked: Vec<_> = nginx.log().iter().map(line).collect();
            let mut expected: Vec<_> = expected.iter().map(|line| (*line).to_owned()).collect();
            asked.sort();
            expected.sort();
            assert_eq!(asked, expected, "{way}");
        }
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn users_go_to_the_origins_that_they_are_named_for() {
    let dir = Directory::new();
    for (listen, version) in [(Listen::Plain, "1.1"), (Listen::Http2, "2")] {
        for (flags, lines, of_a, of_b) in FLOODS {
            let pair = Pair::start(listen);
            let count = (of_a.len() + of_b.len()).to_string();
            let url = pair.of(if flags.is_empty() { "http://me:pw@A/" } else { "http://A/" });
            let mut words = vec!["-t", "1", "-c", "1", "-n", &count, "--http", version, &url];
            words.extend(*flags);
            let file = dir.file("lines", pair.of(lines));
            if !lines.is_empty() {
                words.extend(["--url-lines", &file]);
            }
            run(&words).with_status(0);
            pair.assert_asked(&format!("{flags:?} {lines}, HTTP/{version}"), of_a, of_b);
        }
        // Cookies that flags name go to every target.
        let pair = Pair::start(listen);
        let file = dir.file("lines", pair.of("/a\nhttp://B/b\n"));
        let url = pair.of("http://A/");
        run(["-c", "1", "-n", "2", "--http", version, "-b", "s=1", "--url-lines", &file, &url]).with_status(0);
        for nginx in [pair.a, pair.b] {
            let lines = nginx.log();
            assert_eq!((lines.len(), lines[0].get("http_cookie")), (1, "s=1"), "HTTP/{version}");
        }
        for (script, of_a, of_b) in SCRIPTS {
            let pair = Pair::start(listen);
            let text = pair.of(&format!(
                "local brunt = require 'brunt'
                 local http = brunt.http {{ base = 'http://me:pw@A/', http = '{version}' }}
                 brunt.scenario('s', function() {script} end):inject {{ brunt.iterations_each(1, 1) }}"
            ));
            run(["run", "-t", "1", &dir.file("s.lua", text)]).with_status(0);
            pair.assert_asked(&format!("{script}, HTTP/{version}"), of_a, of_b);
        }
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_replay_and_an_import_keep_users_apart() {
    let dir = Directory::new();
    let pair = Pair::start(Listen::Plain);
    let mut log = String::new();
    for path in ["/a", "/b"] {
        writeln!(
            log,
            "10.0.0.1 - bob [10/Oct/2025:13:55:36 +0000] \"GET {path} HTTP/1.1\" 200 43 \"http://you:pw@B/\" \"x\""
        )
        .unwrap();
    }
    run(["replay", "-t", "1", &dir.file("access.log", pair.of(&log)), &pair.of("http://me:pw@A/")]).with_status(0);
    pair.assert_asked("replay", &["/a me", "/b me"], &[]);

    let pair = Pair::start(Listen::Plain);
    let commands = "curl http://me:pw@A/a\ncurl http://B/b\ncurl -u you:pw http://B/c\ncurl -u you:pw http://A/d\ncurl -L http://me:pw@A/to-b\n";
    let imported = run(["import", "curl", &dir.file("commands", pair.of(commands))]).with_status(0).stdout;
    let script = dir.file("imported.lua", imported);
    done(brunt(["run", "-t", "1", "--env", "PASSWORD", &script]).env("PASSWORD", "pw")).with_status(0);
    pair.assert_asked("curl", &["/a me", "/d you", "/to-b me"], &["/b -", "/c you", "/landed -"]);

    for (tool, text, of_a, of_b) in IMPORTS {
        let pair = Pair::start(Listen::Plain);
        let imported = run(["import", tool, &dir.file("file", pair.of(text))]).with_status(0).stdout;
        let mut command = brunt(["run", "-t", "1", &dir.file("imported.lua", imported)]);
        for (name, value) in [("PASSWORD", "pw"), ("BASIC_USER", "you"), ("BASIC_PASSWORD", "pw")] {
            command.args(["--env", &format!("{name}={value}")]);
        }
        done(&mut command).with_status(0);
        pair.assert_asked(tool, of_a, of_b);
    }
}

/// What tools save, as an importer reads it: one request names a user in its URL, one in a header field or an `auth` of its own, and one none.
const IMPORTS: &[(&str, &str, Asked, Asked)] = &[
    (
        "har",
        r#"{"log": {"version": "1.2", "entries": [
             {"request": {"method": "GET", "url": "http://me:p%77@A/a", "headers": []}, "response": {"status": 200}},
             {"request": {"method": "GET", "url": "http://B/b", "headers": []}, "response": {"status": 200}},
             {"request": {"method": "GET", "url": "http://B/c", "headers": [{"name": "Authorization", "value": "Basic eW91OnB3"}]},
              "response": {"status": 200}}]}}"#,
        &["/a me"],
        &["/b -", "/c you"],
    ),
    (
        "postman",
        r#"{"info": {"schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
            "auth": {"type": "basic", "basic": {"username": "me", "password": "pw"}},
            "item": [{"name": "a", "request": {"method": "GET", "url": "http://A/a"}},
                     {"name": "b", "request": {"method": "GET", "url": "http://B/b", "auth": {"type": "noauth"}}},
                     {"name": "c", "request": {"method": "GET", "url": "http://B/c",
                                               "auth": {"type": "basic", "basic": {"username": "you", "password": "pw"}}}}]}"#,
        &["/a me"],
        &["/b -", "/c you"],
    ),
    (
        "openapi",
        r#"{"openapi": "3.0.0", "servers": [{"url": "http://A/"}], "security": [{"basic": []}],
            "components": {"securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
            "paths": {"/a": {"get": {}}, "/b": {"get": {"security": []}}}}"#,
        &["/a you", "/b -"],
        &[],
    ),
];
