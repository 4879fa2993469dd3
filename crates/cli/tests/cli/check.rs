//! `brunt check` and `brunt init`: a script before there is any load.

use std::path::Path;

use brunt_testbed::grpc;

use crate::program::{Directory, Running, brunt, done, run};

const HEAD: &str = "local brunt = require 'brunt'\nlocal http = brunt.http { base = 'http://127.0.0.1:1' }\n";

/// What is said of a script that begins with [`HEAD`], with `FILE` for its path.
fn said(script: &str, status: i32) -> (String, String) {
    let dir = Directory::new();
    let file = dir.file("shop.lua", format!("{HEAD}{script}"));
    let done = run(["check", &file]).with_status(status);
    (done.stdout.replace(&file, "FILE"), done.stderr.replace(&file, "FILE"))
}

#[test]
fn what_a_script_does_is_listed_without_a_call() {
    let (listed, noted) = said(
        "local token\n\
         brunt.setup(function() return http:get('/token'):json().token end)\n\
         brunt.teardown(function() http:post('/bye') end)\n\
         local buy = brunt.scenario('buy', function()\n\
         brunt.group('cart', function()\n\
         local cart = http:post('/cart', { name = 'add', tags = { plan = 'pro' } })\n\
         brunt.check(cart, { ['201'] = cart.status == 201 })\n\
         http:get('/cart/' .. cart:json().id)\n\
         end)\n\
         end)\n\
         buy:inject { brunt.rate(20, '1s') }\n\
         brunt.expect { ['add:p95'] = '< 1s', ['plan=pro:p95'] = '< 1s', ['add: 201:checks'] = '> 99%', ['{group=cart}:p95'] = '< 1s' }",
        0,
    );
    assert_eq!(noted, "");
    let expected = "FILE: 1 scenario, 4 calls, 1 check, 4 thresholds\n\n\
        Scenarios\n  buy  open model, 20 iterations/s for 1s\n\
        Calls\n  buy       add                 http://127.0.0.1:1\n  buy       GET /cart/anything  http://127.0.0.1:1\n\
        \x20 setup     GET /token          http://127.0.0.1:1\n  teardown  POST /bye           http://127.0.0.1:1\n\
        Groups\n  buy  cart\n\
        Checks\n  buy  add: 201\n\
        Thresholds\n  ";
    assert!(listed.starts_with(expected), "{listed}");
    assert!(listed.contains("made-up answers; anything is what an answer would have given."), "{listed}");
}

#[test]
fn what_is_wrong_has_file_line_and_column() {
    let visit = |body: &str| {
        format!("local s = brunt.scenario('s', function()\n{body}\nend)\ns:inject {{ brunt.users(1, 1) }}")
    };
    for (script, expected) in [
        ("local x = = 1".to_owned(), "FILE:3:11: error: unexpected symbol near '='\n"),
        ("brunt.scenaro('s')".to_owned(), "FILE:3:7: error: brunt has no 'scenaro'; did you mean 'scenario'?\n"),
        (visit("http:get('/', { tiemout = 1 })"), "FILE:4:17: error: "),
        (visit("http:get('/', {\n  name = 'x',\n  tiemout = 1,\n})"), "FILE:6:3: error: "),
        (visit("brunt.pause('1x')"), "FILE:4:14: error: "),
        (visit("htp:get('/')"), "FILE:4:1: error: nothing sets the global 'htp'; did you mean 'http'?\n"),
        (
            visit("http:gett('/')"),
            "FILE:4:6: error: attempt to call method 'gett' (a nil value); did you mean 'get'?\n",
        ),
        ("brunt.expect { p99x = '< 1s' }".to_owned(), "FILE:3:16: error: "),
        (
            format!("{}\nbrunt.expect {{\n  ['hoem:p95'] = '< 1s' }}", visit("http:get('/', { name = 'home' })")),
            "FILE:8:5: error: the threshold hoem:p95 < 1s: nothing has the name 'hoem'; did you mean 'home'?\n",
        ),
    ] {
        let (listed, noted) = said(&script, 2);
        assert!(noted.starts_with(expected) && noted.lines().count() == 1, "{script}: {noted}");
        assert_eq!(listed, "", "{script}");
    }
}

#[test]
fn what_users_of_other_tools_write_is_answered_with_what_there_is() {
    for (body, said) in [
        ("local found = http:get('/').body.contains('x')", "(a nil value); write text:find(part, 1, true)"),
        ("console.log('x')", "nothing sets the global 'console'; write brunt.log(level, text)"),
        ("http:get('/'):css('a', 'href')", "css takes a selector alone: css(selector):attr(name) reads an attribute"),
        ("local id = http:get('/').json().id", "write answer:json(…), with a colon"),
        ("local id = http:get('/').jsonpath('$.id')", "write answer:jsonpath(…), with a colon"),
        ("pages.add(1)", "write figure:add(value), with a colon"),
        ("brunt.constant_users(1, 1)", "did you mean brunt.users?"),
        (
            "pages:add(http:get('/').timings.duration)",
            "timings has no 'duration'; it has first_byte, response, service",
        ),
        ("local fine = http:get('/').status_code == 200", "an answer has no 'status_code'; write answer.status"),
        (
            "local fine = http:get('/').staus == 200",
            "FILE:5:28: error: an answer has no 'staus'; did you mean 'status'?",
        ),
        ("local found = http:get('/').bdy:find('x')", "an answer has no 'bdy'; did you mean 'body'?"),
        ("http:post('/', { body = tostring(vu.iter) })", "the user has no 'iter'; did you mean 'iteration'?"),
        (
            "local token = http:get('/').body\nhttp:get('/', { bearer = tokn })",
            "FILE:6:26: error: nothing sets the global 'tokn'; did you mean 'token'?",
        ),
        ("if false then print(usrname) end", "FILE:5:21: error: nothing sets the global 'usrname'"),
        ("if false then http:get(__ENV.PATH) end", "nothing sets the global '__ENV'; write brunt.env(name, default)"),
        (
            "if vu.id > 9 then local mine = 1 end\nprint(mine)",
            "nothing sets the global 'mine'; the local of line 5 does not reach here",
        ),
        ("http:post('/', { a = 1 })", "a request has no option 'a'; it has aws, basic"),
        ("local x = brunt.ws.connect('/')", "brunt.ws makes a client: local ws = brunt.ws { base = … } at the top"),
        ("rows:circular()()", "a feeder is for the top of the script"),
        ("http:psot('/')", "(a nil value); did you mean 'post'?"),
        ("local user = rows[1 % #rows + 1]", "data:length() says how many rows there are, and # does not"),
        ("rows:next()", "write data:circular() at the top, and feeder:next()"),
        // Nothing was made up before it.
        ("local me = ({})[brunt.random(1, 2)]\nhttp:get('/' .. me.name)", "attempt to index local 'me' (a nil value)"),
        ("brunt.ramp_users(1, '1s')", "to of ramp_users(from, to, length) must be a number, not '1s'"),
        ("brunt.exit()", "brunt has no 'exit'; did you mean brunt.exit_here?"),
        ("brunt.base64_encode('a')", "did you mean brunt.base64?"),
        ("http:fetch('/')", "(a nil value); write http:get(path)"),
        ("local t = http:get('/').response_time", "write answer.timings.response"),
        (
            "http:get('/', { headers = { A = 12345678901234567891 } })",
            "headers: the header A: 12345678901234567168 is beyond 2^53",
        ),
        // Arithmetic with what an answer would have given goes on.
        (
            "for _, c in ipairs(http:get('/'):jsonpath_all('$.a')) do pages:add(-c % 7 * 2 / 100 + 1) end\nhttp:post('/', { data = 'x' })",
            "a request has no option 'data'; did you mean 'body'?",
        ),
    ] {
        let script = format!(
            "local pages, rows = brunt.trend('pages'), brunt.data {{ 1 }}\nlocal s = brunt.scenario('s', function(vu)\n{body}\nend)\ns:inject {{ brunt.users(1, 1) }}"
        );
        let (_, noted) = self::said(&script, 2);
        assert!(noted.contains(said), "{body}: {noted}");
    }
    // At the top.
    for (text, said) in [
        (
            "s:inject { stages = {} }",
            "inject has no option 'stages'; write steps: inject { brunt.ramp_users(0, 10, \"1m\")",
        ),
        ("s:inject { vus = 10, duration = '1s' }", "write a step: inject { brunt.users(10, \"30s\") }"),
        ("s:inject { brunt.iterations_shared(20, 4) }", "20 users cannot share 4 iterations"),
        ("brunt.expect { http_req_duration = 'p(95)<500' }", "write p95 = \"< 500ms\", not http_req_duration"),
        (
            "brunt.expect { ['http_req_duration{name:home}'] = 'avg < 200' }",
            "write [\"{name=home}:mean\"] = \"< 200ms\"",
        ),
        ("brunt.expect { http_req_failed = 'rate<0.01' }", "write error_rate = \"< 0.01\""),
        ("brunt.rate('errors') brunt.expect { errors = '< 0.1' }", "write [\"errors:share\"] = \"< 0.1\""),
        ("brunt.rate('errors') brunt.expect { errors = 'rate<0.1' }", "write [\"errors:share\"] = \"< 0.1\""),
    ] {
        let (_, noted) = self::said(&format!("local s = brunt.scenario('s', function() end)\n{text}"), 2);
        assert!(noted.contains(said), "{text}: {noted}");
    }
    // One step need not be a list.
    said("brunt.scenario('s', function() http:get('/') end):inject(brunt.users(1, 1))", 0);
    // What a function does with made-up answers ends it early, and decides nothing.
    let script = "brunt.scenario('s', function()\nlocal n = http:get('/').body:match('%d+')\nbrunt.pause(n + 1) end):inject { brunt.users(1, 1) }";
    let (shown, _) = said(script, 0);
    let ended = "s ended early: FILE:5: attempt to perform arithmetic on local 'n' (a nil value); line 4 assigned it: local n =";
    assert!(shown.contains(ended) && shown.contains("brunt run --once FILE"), "{shown}");
}

#[test]
fn what_may_be_right_is_no_error() {
    let visit = |body: &str, expected: &str| {
        format!(
            "local s = brunt.scenario('s', function()\n{body}\nend)\ns:inject {{ brunt.users(1, 1) }}\nbrunt.expect {{ {expected} }}"
        )
    };
    // A branch that is not taken has its name in the text, or is called by its path.
    let branches =
        "local r = http:get('/item')\nif r.status == 404 then http:get('/', { name = 'items' }) http:get('/itemz') end";
    assert_eq!(said(&visit(branches, "['items:p95'] = '< 1s', ['GET /itemz:p95'] = '< 1s'"), 0).1, "");
    // What is made of an answer may be nil here, and not there.
    assert_eq!(said(&visit("local token = http:get('/').body:match('t=(%w+)')\nhttp:get('/' .. token)", ""), 0).1, "");
    // Globals that are set elsewhere or need not be, and fields that scripts give answers and users.
    let set = "counted = (counted or 0) + 1\nlocal http = http or nil\nlocal base = BASE or 'x'\nif DEBUG then print(DEBUG) end\nif type(log) == 'function' then log('x') end\n\
               local one, other = rawget(_G, 'never'), _G.never\n_G.made = 1\nprint(made, later, other == nil and one)\n\
               for _, name in ipairs { 'first', 'second' } do _G[name] = 1 end\nprint(first, second)\nload('third = 1')()\nprint(third)";
    let set = format!("function after() later = 1 end\n{}", visit(set, ""));
    assert_eq!(said(&set, 0).1, "");
    let own = "local r = http:get('/')\nif not r.seen and not vu.token then r.seen, vu.token = true, 'x' end\n\
               if r.error or r.reason or r.url then return end";
    assert_eq!(said(&visit(own, "").replace("function()", "function(vu)"), 0).1, "");
    let strict = "setmetatable(_G, { __index = function(_, name) error('no ' .. name) end })";
    assert_eq!(said(&format!("{strict}\n{}", visit("print(mispelt)", "")), 2).1.lines().count(), 1);
    // A name that is made is nowhere.
    let made = "for i = 1, 3 do http:get('/', { name = 'page ' .. i }) end";
    let (_, noted) = said(&visit(made, "['something else:p95'] = '< 1s'"), 0);
    assert!(
        noted.contains("FILE:7:18: warning: ") && noted.contains("nothing has the name 'something else'"),
        "{noted}"
    );
    // A local that users share.
    let (_, noted) = said(&format!("local token\n{}", visit("token = http:get('/').body", "")), 0);
    assert!(
        noted.starts_with("FILE:5:1: warning: scenarios assign 'token'") && noted.contains("brunt.user.token"),
        "{noted}"
    );
}

#[test]
fn a_script_may_need_values_and_a_brunt_toml_is_checked_with_it() {
    let dir = Directory::new();
    let script = "local v = brunt.env('TOKEN')\nbrunt.scenario('s', function() http:get('/' .. v) end)";
    let file = dir.file("shop.lua", format!("{HEAD}{script}"));
    let lacking = run(["check", &file]).with_status(2).stderr;
    assert!(lacking.contains(":3:") && lacking.contains("no value 'TOKEN'"), "{lacking}");
    let given = run(["check", "--env", "TOKEN=abc", &file]).with_status(0).stdout;
    assert!(given.contains("GET /[redacted]") && given.contains("nobody"), "{given}");
    dir.file("brunt.toml", "threshold = [\"GET /abd:p95<1s\"]\n[run]\nenv = [\"TOKEN=abd\"]\n");
    let given = run(["check", &file]).with_status(0).stdout;
    assert!(given.contains("1 threshold\n"), "{given}");
    dir.file("brunt.toml", "[run]\nevn = [\"TOKEN=abc\"]\n");
    let wrong = run(["check", &file]).with_status(2).stderr;
    assert!(wrong.contains("line 2, column 1: evn is not a flag of a run; did you mean env?"), "{wrong}");
}

#[test]
fn what_is_no_script_of_scenarios_is_told() {
    let dir = Directory::new();
    let wrk = dir.file("post.lua", "request = function() return 'x' end");
    let said = run(["check", &wrk]).with_status(2).stderr;
    assert!(said.contains("it is a script of wrk: brunt -s "), "{said}");
    let missing = run(["check", &dir.path("none.lua")]).with_status(2).stderr;
    assert!(missing.contains("none.lua: error: cannot be read"), "{missing}");
    let nowhere =
        "local brunt = require 'brunt' local http = brunt.http() brunt.scenario('s', function() http:get('/') end)";
    let nowhere = run(["check", &dir.file("a.lua", nowhere)]).with_status(2).stderr;
    assert!(nowhere.contains("a.lua: error: no client has a base"), "{nowhere}");
}

#[test]
fn a_folder_to_begin_with_runs_against_the_built_in_target() {
    for protocol in ["http", "ws", "grpc", "thrift", "tcp"] {
        let dir = Directory::new();
        let folder = dir.path("shop");
        let said = run(["init", protocol, "--dir", &folder]).with_status(0).stdout;
        assert!(said.starts_with("wrote scenario.lua, brunt.toml, ") && said.contains("brunt serve "), "{said}");
        let script = Path::new(&folder).join("scenario.lua").display().to_string();
        let checked = run(["check", &script]).with_status(0);
        assert_eq!(checked.stderr, "", "{protocol}");
        assert!(checked.stdout.contains("Thresholds\n"), "{protocol}: {}", checked.stdout);
        let serving = said.lines().find_map(|line| line.trim().strip_prefix("brunt serve ")).unwrap();
        let serving = serving.split_whitespace().next().unwrap();
        let mut server = Running::start(["serve", serving, "127.0.0.1:0"]);
        let line = server.line();
        let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}"));
        let base = if protocol == "tcp" { url.replace("http://", "tcp://") } else { url.to_owned() };
        // How fast answers are is the machine's.
        let done = run(["run", "--once", "--base-url", &base, &script]);
        let holds = |words: &str| done.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(words);
        assert!(holds("✓ checks > 99% 100%") && holds("✓ error_rate < 1% 0%"), "{protocol}: {done:#?}");
    }
}

#[test]
fn a_word_behind_init_is_a_protocol_or_a_place() {
    let dir = Directory::new();
    let init = |words: &[&str]| done(brunt([&["init"], words].concat()).current_dir(dir.path(".")));
    // The words, the script that they make, and the line to type next.
    for (words, script, next) in [
        (&["my"][..], "my/scenario.lua", "brunt serve http"),
        (&["ws", "chat"], "chat/scenario.lua", "brunt serve ws"),
        (&["echo", "grpc"], "echo/scenario.lua", "brunt serve grpc"),
        (&["http", "a/shop.lua"], "a/shop.lua", "brunt run --once a/shop.lua"),
        (&["HTTPS", "./http"], "http/scenario.lua", "brunt check http/scenario.lua"),
        (&["one.lua"], "one.lua", "brunt check one.lua"),
        (&[], "scenario.lua", "brunt run --once scenario.lua"),
    ] {
        let said = init(words).with_status(0).stdout;
        assert!(said.contains(next), "{words:?}: {said}");
        run(["check", &dir.path(script)]).with_status(0);
    }
    assert!(std::fs::read_to_string(dir.path("a/shop.lua")).unwrap().contains("brunt check shop.lua"));
    // A further script leaves its folder's other files as they are, and takes no script's place.
    dir.file("a/brunt.toml", "timeout = \"9s\"\n");
    let further = init(&["tcp", "a/two.lua"]).with_status(0).stdout;
    assert!(further.starts_with("wrote two.lua, ") && further.contains("; kept brunt.toml\n"), "{further}");
    assert_eq!(std::fs::read_to_string(dir.path("a/brunt.toml")).unwrap(), "timeout = \"9s\"\n");
    assert!(init(&["ws", "a/shop.lua"]).with_status(2).stderr.contains("shop.lua is there already"));
    for (words, way) in [
        (&["htpp"][..], "did you mean brunt init http? A folder of that name is ./htpp"),
        (&["http://127.0.0.1:8080/"], "brunt run --base-url URL"),
        (&["my.js"], "brunt init my.lua"),
        (&["a", "b"], "one protocol"),
        (&["http", "ws"], "one protocol"),
        (&["--dir", "a", "b"], "one place"),
    ] {
        let said = init(words).with_status(2).stderr;
        assert!(said.contains(way) && said.lines().count() == 1, "{words:?}: {said}");
    }
    assert!(!Path::new(&dir.path("htpp")).exists() && !Path::new(&dir.path("b")).exists());
}

#[test]
fn nothing_is_written_over_unasked() {
    let dir = Directory::new();
    let folder = dir.path("shop");
    let init = |args: &[&str], status: i32| run([&["init", "--dir", &folder], args].concat()).with_status(status);
    init(&[], 0);
    // What init itself wrote is no loss.
    init(&[], 0);
    dir.file("shop/brunt.toml", "timeout = \"9s\"\n");
    std::fs::remove_file(dir.path("shop/scenario.lua")).unwrap();
    let refused = init(&[], 2).stderr;
    assert!(refused.contains("brunt.toml is there already, and nothing was written"), "{refused}");
    assert!(!dir.names_in("shop").contains(&"scenario.lua".to_owned()));
    init(&["--force"], 0);
    assert!(std::fs::read_to_string(dir.path("shop/brunt.toml")).unwrap().starts_with("#:schema "));
    let proto = dir.path("shop/echo.proto");
    init(&["--force", "grpc"], 0);
    assert_eq!(std::fs::read_to_string(proto).unwrap(), grpc::PROTO);
}

#[test]
fn the_schema_of_the_file_knows_its_flags() {
    let schema: serde_json::Value = serde_json::from_str(&run(["schema", "config"]).with_status(0).stdout).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for (file, holds) in [
        (
            "timeout = '2s'\nthreshold = ['p99<500ms', 'error_rate<1% abort']\ninsecure = true\n[run]\nscale = '2x'",
            true,
        ),
        ("threads = 2\nthreshold = 'home:p95 <= 10ms'\narrivals = 'poisson'", true),
        ("arrivals = 'bursty:0.5'", true),
        ("threshold = ['p99 50ms']", false),
        ("arrivals = 'gauss'", false),
        ("treshold = ['p99<50ms']", false),
        ("insecure = 'yes'", false),
        ("[run]\npipeline = 5", false),
        ("script = 'a.lua'", false),
    ] {
        let value: serde_json::Value = toml::from_str(file).unwrap();
        assert_eq!(validator.is_valid(&value), holds, "{file}");
        // The program says the same.
        let dir = Directory::new();
        let path = dir.file("flags.toml", file);
        let config = done(brunt(["config", "run", "a.lua"]).env("BRUNT_CONFIG", &path));
        let is_known = config.status == Some(0);
        assert!(is_known || !holds, "{file}: {config:#?}");
    }
}
