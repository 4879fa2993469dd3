//! Mistakes in a script, found before the load, and what must not pass for one.

use brunt_testbed::server::{Server, ServerConfig};

use crate::nginx::Nginx;
use crate::program::{Directory, Done, brunt, done, run};
use crate::{play, script};

/// Lua's tables keep no key whose value is nil, so such a check would go unseen.
#[test]
fn what_a_script_has_forgotten_is_noted() {
    let server = Server::start(ServerConfig::default()).unwrap();
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
    // Lines are broken at the width of a terminal.
    let words = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("nothing has the name 'hom'; did you mean the request 'home'?"), "{done:#?}");
    assert!(!done.stdout.contains("the name '\"home\"'"), "{done:#?}");
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
        let server = Server::start(ServerConfig::default()).unwrap();
        let (_directory, path) = script(&server.url(), text);
        let Done { stderr, stdout, .. } = run(["run", &path]).with_status(2);
        assert!(stderr.contains(expected) || stdout.contains(expected), "{text}: {stderr} {stdout}");
    }
    assert!(run(["run", "gone.lua"]).with_status(2).stderr.contains("gone.lua: cannot be read"));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn what_is_misspelt_in_a_function_is_found_before_anything_is_sent() {
    let nginx = Nginx::start("location / { return 200 hello; }");
    let base = nginx.url("").trim_end_matches('/').to_owned();
    for (text, wrong) in [
        ("http:get('/', { nmae = 'x' })", "s.lua:4: a request has no option 'nmae'; did you mean 'name'?"),
        (
            "http:batch { { 'POST', '/', 'body', { name = 'x' } } }",
            "s.lua:4: a request of batch is { method, path, options }",
        ),
        ("http:batch { '/', { method = 'POST', url = '/' } }", "its request 2 has no path"),
        ("http:cookie('a', { path = '/' })", "s.lua:4: cookie takes a name, and the URL or path"),
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

/// What a conversation cannot send, and a method that is called with a dot.
#[test]
fn what_no_socket_takes_is_found_by_check() {
    for (call, expected) in [
        ("socket:send({ a = 1 })", "write socket:send(brunt.json.encode(value)) for JSON"),
        ("socket:request({ a = 1 })", "write socket:request(brunt.json.encode(value)) for JSON"),
        ("socket:send(nil)", "a message is a text, not nil"),
        ("socket.send('x')", "write socket:send(…), with a colon"),
        ("ws.connect('/')", "write ws:connect(…), with a colon"),
        ("bytes:send({})", "send takes bytes as a text, not a table"),
        ("bytes:request({}, 4)", "request takes bytes as a text, not a table"),
        ("bytes.receive_exactly(4)", "write socket:receive_exactly(…), with a colon"),
    ] {
        let text = format!(
            "local brunt = require 'brunt'
             local ws = brunt.ws {{ base = 'ws://127.0.0.1:1' }}
             local tcp = brunt.tcp {{ address = '127.0.0.1:1' }}
             brunt.scenario('s', function()
               local socket, bytes = ws:connect('/'), tcp:connect()
               {call}
             end):inject {{ brunt.users(1, '1s') }}"
        );
        let directory = Directory::new();
        let path = directory.file("s.lua", text);
        let done = run(["check", &path]).with_status(2);
        assert!(done.stderr.contains("s.lua:6") && done.stderr.contains(expected), "{call}: {}", done.stderr);
    }
}

#[test]
fn a_mix_is_listed_with_its_shares_and_dealt_by_them() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = "local a = brunt.scenario('browse', function() http:get('/a') end)
       local b = brunt.scenario('buy', function() http:get('/b') end)
       brunt.mix { { a, 3 }, { b, 1 } }:inject { brunt.iterations_each(12, 1) }";
    let (_directory, path) = script(server.url().trim_end_matches('/'), text);
    let listed = run(["run", "--list", &path]).with_status(0).stdout;
    assert!(listed.contains("browse  75% of a mix: ") && listed.contains("buy     25% of a mix: "), "{listed}");
    for threads in ["1", "2", "5"] {
        let result = play(&path, &["-t", threads], 0);
        let due = |name: &str| {
            let names = result["names"]["requests"].as_array().unwrap();
            names.iter().find(|one| one["name"] == name).unwrap()["due"].clone()
        };
        assert_eq!((due("GET /a"), due("GET /b")), (9.into(), 3.into()), "{threads}");
    }
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
    // The rows end before the iterations do.
    let done = done(&mut brunt(["run", &path, "-t", "1", "--allow-less", "100%"])).with_status(0);
    assert_eq!(nginx.log().len(), 2 + 5);
    assert_eq!(done.stdout.matches("printed").count() + done.stderr.matches("printed").count(), 2, "{}", done.stdout);
}

/// Before the load each function is gone through once, which is to change nothing: neither files nor what programs do.
#[test]
fn what_functions_do_outside_happens_as_often_as_users_do_it() {
    let server = Server::start(ServerConfig::default()).unwrap();
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

/// `LuaJIT` cuts the beginning of a long path off.
#[test]
fn an_error_has_the_whole_path_of_its_file() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let directory = Directory::new();
    let folder = directory.path("a folder whose name takes a good part of the sixty bytes, übrigens");
    std::fs::create_dir_all(format!("{folder}/lib")).unwrap();
    let (path, url) = (format!("{folder}/visit.lua"), server.url());
    let base = url.trim_end_matches('/');
    let head = format!("local brunt = require 'brunt'\nlocal http = brunt.http {{ base = '{base}' }}\n");
    let played = |body: &str, args: &[&str], status| {
        let text =
            format!("{head}brunt.scenario('s', function()\n{body}\nend):inject {{ brunt.iterations_each(1, 1) }}");
        std::fs::write(&path, text).unwrap();
        let done = run(args.iter().copied().chain([path.as_str()])).with_status(status);
        assert!(!done.stdout.contains("...") && !done.stderr.contains("..."), "{done:#?}");
        // Lines are broken at the width of a terminal, and a line feed of JSON is written out.
        [done.stdout, done.stderr].concat().replace("\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let late = "local answer = http:get('/') if answer.status == 200 then";
    for (body, said) in [
        (format!("{late}\nlocal x = nil + 1 end"), ":5: attempt to perform arithmetic on a nil value"),
        (format!("{late}\nerror('own') end"), ":5: own"),
        (format!("{late}\nhttp:get('/', {{ tiemout = 1 }}) end"), ":5: a request has no option 'tiemout'"),
    ] {
        let status = if body.contains("tiemout") { 2 } else { 0 };
        for args in [&["run", "--format", "json"][..], &["run", "--once"]] {
            let said = format!("{path}{said}");
            let shown = played(&body, args, status);
            assert!(shown.contains(&said), "{args:?}: {said}: {shown}");
        }
    }
    let shown = played("local x = {} + 1", &["check"], 2);
    assert!(shown.contains(&format!("{path}:4: error: attempt to perform arithmetic")), "{shown}");
}

#[test]
fn integers_of_64_bits_are_sent_with_all_digits_or_refused_by_name() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let checked =
        |call: &str, said: &str| {
            let text = format!(
                "local id = 9223372036854775807LL
             brunt.scenario('s', function() {call} end):inject {{ brunt.iterations_each(1, 1) }}"
            );
            let (_directory, path) = script(server.url().trim_end_matches('/'), &text);
            let done = run(["run", "--once", &path])
                .with_status(if said.contains("beyond") || said.contains("Lua's") { 2 } else { 0 });
            assert!([&done.stdout, &done.stderr].iter().any(|text| text.contains(said)), "{call}: {done:#?}");
        };
    for (call, said) in [
        ("http:get('/' .. tostring(id))", "GET /9223372036854775807 "),
        ("http:get('/', { query = { id = id } })", "GET /?id=9223372036854775807 "),
        ("http:post('/', { form = { id = id } })", "id=9223372036854775807"),
        (
            "http:post('/', { json = { a = { id = id, u = 18446744073709551615ULL } } })",
            "{\"a\":{\"id\":9223372036854775807,\"u\":18446744073709551615}}",
        ),
        ("http:get('/', { headers = { id = id } })", "id: 9223372036854775807"),
        (
            "http:post('/', { body = 'id=' .. 2 ^ 53 })",
            "the body has 9.007199254741e+15: Lua's .. keeps 14 digits of a number",
        ),
        ("http:post('/', { form = { id = 'a-' .. 2 ^ 52 + 1 } })", "form: 'id' has 4.5035996273705e+15: Lua's"),
        (
            "http:get('/', { headers = { Id = ('%s'):format(123456789012345) } })",
            "the header Id has 1.2345678901234e+14: Lua's",
        ),
        ("http:post('/', { form = { id = 2 ^ 60 } })", "form: 'id': 1152921504606846976 is beyond 2^53"),
        ("http:get('/', { query = { id = 2 ^ 60 } })", "query: 'id': 1152921504606846976 is beyond 2^53"),
        ("http:post('/', { json = { a = { 1, { id = 2 ^ 60 } } } })", "'a[2].id': 1152921504606846976 is beyond 2^53"),
        ("http:get('/', { headers = { id = 2 ^ 60 } })", "header id: 1152921504606846976 is beyond 2^53"),
    ] {
        checked(call, said);
    }
}
