//! Questions of scripts to answers, and pages with their resources.

use super::*;

/// The numbers of passes and failures of the check with this name.
fn check(played: &Played, name: &str) -> (u64, u64) {
    let checks = &played.summary.total.figures.checks;
    let check = checks.get(name).unwrap_or_else(|| panic!("{name}: {:?}", played.scenario("s").tracebacks));
    (check.passes, check.fails)
}

fn shop(request: &str) -> (u64, String) {
    let path = request.split(' ').nth(1).unwrap_or("");
    let body = match path {
        "/form" => {
            "<!doctype html><form><input name=csrf value='a&amp;b'><p class=x> one </p><p class=x>two<br>three</p>\
             <table><tr><td>1<td>2</table></form>"
        }
        "/items" => r#"{"items":[{"id":1,"price":5},{"id":2,"price":20},{"id":3,"price":30}],"none":null}"#,
        "/soap" => {
            "<?xml version='1.0'?><s:Envelope xmlns:s='urn:s'><s:Body><id n='7'>x</id><id n='8'>y</id></s:Body></s:Envelope>"
        }
        "/broken" => "<?xml version='1.0'?><a><b></a>",
        "/text" => "order=17; order=18; total 3 EUR",
        _ => "",
    };
    (MS, response("200 OK", "", body))
}

fn looks_for(script: &str) -> Played {
    play(&format!("brunt.scenario('s', function() {script} end):inject {{ brunt.iterations_each(1, 1) }}"), shop)
}

#[test]
fn answers_are_asked_by_selectors_paths_and_patterns() {
    let played = looks_for(
        "local form = http:get('/form', { name = 'form' })
         local all = form:css_all('p.x')
         brunt.check(form, {
           attr = form:css('input[name=csrf]'):attr('value') == 'a&b',
           text = all[1].text == 'one' and all[2].text == 'twothree' and #all == 2 and all[1].name == 'p',
           none = #form:css_all('video') == 0 and not form:has_css('video') and form:has_css('p'),
           table = form:xpath('//td[2]') == '2' and form:xpath('//input/@value') == 'a&b' and form:xpath('count(//p)') == 2,
         })
         local items = http:get('/items', { name = 'items' })
         local dear = items:jsonpath_all('$.items[?(@.price>10)].id')
         brunt.check(items, {
           first = items:jsonpath('$.items[?(@.price>10)].id') == 2 and items:jsonpath('$.items[0]').price == 5,
           all = #dear == 2 and dear[2] == 3,
           null = items:jsonpath('$.none') == brunt.null and not items:has_jsonpath('$.nowhere'),
         })
         local soap = http:get('/soap', { name = 'soap' })
         brunt.check(soap, {
           named = soap:xpath('/e:Envelope/e:Body/id[2]/@n', { e = 'urn:s' }) == '8',
           all = table.concat(soap:xpath_all('//id'), ',') == 'x,y',
           truth = soap:has_xpath('//id[.=\"y\"]') and not soap:has_xpath('count(//id) > 2'),
         })
         local text = http:get('/text', { name = 'text' })
         local total, currency = text:regex([[total (\\d+) (\\w+)]])
         brunt.check(text, {
           whole = text:regex([[order=\\d+]]) == 'order=17',
           groups = total == '3' and currency == 'EUR',
           named = text:regex('order=(?<id>[0-9]+)').id == '17',
           all = text:regex_all('order=([0-9]+)')[2][1] == '18' and text:regex_all('[A-Z]+')[1] == 'EUR',
           none = not text:has_regex('nowhere'),
         })",
    );
    for name in ["form: attr", "form: text", "form: none", "form: table", "items: first", "items: all", "items: null"] {
        assert_eq!(check(&played, name), (1, 0), "{name}");
    }
    for name in ["soap: named", "soap: all", "soap: truth", "text: whole", "text: groups", "text: named", "text: all"] {
        assert_eq!(check(&played, name), (1, 0), "{name}");
    }
    assert_eq!(check(&played, "text: none"), (1, 0));
}

#[test]
fn null_is_no_check_that_holds() {
    let played = looks_for(
        "local items = http:get('/items', { name = 'items' })
         brunt.check(items, { null = items:json().none, path = items:jsonpath('$.none'), zero = 0 })",
    );
    assert_eq!([check(&played, "items: null"), check(&played, "items: path")], [(0, 1), (0, 1)]);
    assert_eq!(check(&played, "items: zero"), (1, 0));
}

#[test]
fn a_body_is_held_against_a_schema() {
    let schema = r"{ type = 'object', required = { 'items' }, properties = { items = {
        type = 'array', items = { properties = { price = { type = 'number', maximum = 20 } } } } } }";
    let played = looks_for(&format!(
        "local schema = {schema}
         local text = [[{{\"properties\": {{\"none\": {{\"type\": \"string\"}}}}}}]]
         local items = http:get('/items', {{ name = 'items' }})
         local held = items:matches_schema(schema)
         brunt.check(items, {{ ['given back'] = held == false and items:matches_schema({{}}, 'anything') == true }})
         items:matches_schema(text, 'has a text')
         local page = http:get('/text', {{ name = 'text' }})
         page:matches_schema(schema, 'is JSON')",
    ));
    assert_eq!(check(&played, "items: matches_schema"), (0, 1));
    assert_eq!([check(&played, "items: anything"), check(&played, "items: given back")], [(1, 0), (1, 0)]);
    assert_eq!([check(&played, "items: has a text"), check(&played, "text: is JSON")], [(0, 1), (0, 1)]);
    let figures = &played.summary.total.figures;
    let why = |name: &str| format!("{:?}", figures.checks.get(name).unwrap().example);
    assert!(
        why("items: matches_schema").contains("at /items/2/price: 30 is greater than the maximum of 20"),
        "{}",
        why("items: matches_schema")
    );
    assert!(why("items: has a text").contains("at /none: null is not of type"), "{}", why("items: has a text"));
    assert!(why("text: is JSON").contains("it is not JSON"), "{}", why("text: is JSON"));
    // A call counts once as not ok, however many of its checks fail.
    assert_eq!(figures.requests.get("items").unwrap().not_ok(&played.summary.plan.ok_status), 1);
    assert_eq!(played.scenario("s").errors, 0);
}

#[test]
fn a_schema_that_is_none_is_found_before_the_load() {
    for (schema, expected) in [
        ("1", "matches_schema takes a JSON Schema"),
        ("{ type = 'text' }", "it is not a JSON Schema: at /type"),
        ("'{'", "it is not JSON: "),
        ("{ ['$ref'] = 'http://127.0.0.1:1/s.json' }", "it is not a JSON Schema: "),
    ] {
        let error = refused(&format!("http:get('/'):matches_schema({schema})"));
        assert!(error.contains(expected), "{schema}: {error}");
    }
}

#[test]
fn what_is_not_found_is_named_and_ends_the_iteration() {
    for (looks, expected) in [
        (
            "http:get('/form'):css('#nowhere')",
            "s.lua:1: the answer (status 200) has no element that matches '#nowhere'",
        ),
        ("http:get('/form'):css('input'):attr('href')", "<input> has no attribute 'href'"),
        ("http:get('/items'):jsonpath('$.nowhere')", "has nothing at '$.nowhere'; it begins: {\"items\""),
        ("http:get('/text'):jsonpath('$.a')", "the answer (status 200): it is not JSON"),
        ("http:get('/text'):regex('x+y')", "has no match of 'x+y'"),
        ("http:get('/broken'):xpath('//a')", "it is not XML"),
        ("http:get('/empty'):xpath('//a')", "has nothing at '//a'; its body is empty"),
    ] {
        let played = looks_for(looks);
        let traceback = &played.scenario("s").tracebacks[0].0;
        assert!(traceback.contains(expected), "{looks}: {traceback}");
    }
}

#[test]
fn what_a_script_demands_of_an_answer_is_a_check_of_its_call() {
    let played = play(
        "brunt.scenario('s', function(vu)
           local path = vu.iteration == 2 and '/text' or '/items'
           local id = http:get(path, { name = 'login' }):jsonpath('$.items[0].id')
           local form = http:get('/form', { name = 'form' })
           local input = form:css('input')
           pcall(input.attr, input, 'href')
           brunt.check(form, { fine = input:attr('value') == 'a&b' })
           for n = 1, 30 do pcall(form.regex, form, 'nowhere' .. n) end
           http:get('/' .. id)
         end):inject { brunt.iterations_each(1, 3) }",
        shop,
    );
    let figures = &played.summary.total.figures;
    let login = figures.requests.get("login").unwrap();
    assert_eq!((login.numbers.get(Counter::Due), login.not_ok(&played.summary.plan.ok_status)), (3, 1));
    for (name, counted) in [
        ("login: jsonpath $.items[0].id", (2, 0)),
        ("login: jsonpath", (0, 1)),
        ("form: css input", (2, 0)),
        ("form: attr href", (0, 2)),
        ("form: attr value", (2, 0)),
        ("form: fine", (2, 0)),
        ("form: regex nowhere20", (0, 2)),
        ("form: regex (others)", (0, 20)),
    ] {
        assert_eq!(check(&played, name), counted, "{name}");
    }
    // Questions that scripts make up without end become one check.
    assert_eq!(figures.checks.iter().count(), 27);
    // A call is marked once, however many demands on it fail.
    let form = figures.requests.get("form").unwrap();
    assert_eq!((form.numbers.get(Counter::Due), form.not_ok(&played.summary.plan.ok_status)), (2, 2));
    let scenario = played.scenario("s");
    assert_eq!((scenario.iterations.count(), scenario.errors), (2, 1));
    assert!(scenario.tracebacks[0].0.contains("the answer (status 200): it is not JSON"), "{:?}", scenario.tracebacks);
    let example = figures.checks.get("login: jsonpath").unwrap().example.clone().unwrap();
    assert!(example.status == Some(200) && example.body.starts_with("order=17"), "{example:?}");
}

/// The error about a script before the load.
fn refused(looks: &str) -> String {
    let script = format!("brunt.scenario('s', function() {looks} end):inject {{ brunt.iterations_each(1, 1) }}");
    let plan = plan_of(&script, &[]).unwrap();
    brunt_engine::check(&plan, &built_in(), &LuaJit).unwrap_err().to_string()
}

#[test]
fn a_question_that_is_none_is_found_before_the_load() {
    for (looks, expected) in [
        ("http:get('/'):css('p[')", "s.lua:1: css 'p[': it is not a CSS selector"),
        ("http:get('/'):has_xpath('//a[')", "it is not an XPath"),
        ("local a = http:get('/'):jsonpath('$.a').b.c http:get('/'):jsonpath_all('items[')", "it is not a JSONPath"),
        ("if http:get('/'):css('a'):attr('b') then http:get('/'):regex('(a') end", "it is not a regular expression"),
        ("http:get('/'):css(7)", "css takes a CSS selector, not 7"),
    ] {
        let problem = refused(looks);
        assert!(problem.contains(expected), "{looks}: {problem}");
    }
}

#[test]
fn a_page_brings_what_it_names_and_a_cache_spares_it_the_second_time() {
    fn site(request: &str) -> (u64, String) {
        let path = request.split(' ').nth(1).unwrap_or("");
        let answer = match path {
            "/shop/" => response(
                "200 OK",
                "Content-Type: text/html\r\n",
                "<link rel=stylesheet href=style.css><script src='/app.js'></script><img src=\"data:image/png;base64,x\">\
                 <img src=logo.png><img src='logo.png#again'><a href=other></a><link rel=next href=next>",
            ),
            "/shop/style.css" => response("200 OK", "Cache-Control: public, max-age=60\r\n", "p {}"),
            "/app.js" if request.contains("If-None-Match: \"1\"") => {
                "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".into()
            }
            "/app.js" => response("200 OK", "ETag: \"1\"\r\nCache-Control: no-cache\r\n", "1"),
            "/shop/logo.png" => response("302 Found", "Location: /real.png\r\nCache-Control: max-age=60\r\n", ""),
            "/real.png" => response("200 OK", "Cache-Control: no-store\r\n", "png"),
            _ => response("404 Not Found", "", ""),
        };
        (10 * MS, answer)
    }
    let played = play(
        "brunt.scenario('s', function()
           local home = http:page('/shop/', { resources = 'things' })
           brunt.check(home, { page = home.status == 200 and home:has_css('a') })
           for _, one in ipairs(home.resources) do brunt.check(one, { fine = one.ok }) end
         end):inject { brunt.iterations_each(1, 2) }",
        site,
    );
    let lines = played.lines();
    assert_eq!(lines[..5], ["GET /shop/", "GET /shop/style.css", "GET /app.js", "GET /shop/logo.png", "GET /real.png"]);
    assert_eq!(lines[5..], ["GET /shop/", "GET /app.js", "GET /shop/logo.png", "GET /real.png"]);
    assert_eq!(played.times()[..5], [0, 10, 10, 10, 20], "what a page names comes at once");
    assert_eq!(check(&played, "GET /shop/: page"), (2, 0));
    assert_eq!(check(&played, "things: fine").0, 5);
    assert_eq!(played.summary.total.figures.requests.get("things").unwrap().numbers.get(Counter::Due), 5);
}

#[test]
fn a_check_that_raises_an_error_does_not_hold_and_the_others_count() {
    // Whatever the order of a table, many names come both before and after the one in question.
    let others = (0..20).map(|n| format!("c{n} = true")).collect::<Vec<_>>().join(", ");
    let played = play(
        &format!(
            "brunt.scenario('s', function()
               brunt.check(http:get('/', {{ name = 'home' }}), {{ {others}, bad = function() error('no such luck') end }})
             end):inject {{ brunt.iterations_each(1, 3) }}"
        ),
        hello,
    );
    assert_eq!(check(&played, "home: bad"), (0, 3));
    assert!((0..20).all(|n| check(&played, &format!("home: c{n}")) == (3, 0)));
    let errors = &played.scenario("s").tracebacks;
    assert!(errors.iter().any(|(text, _)| text.contains("no such luck")), "{errors:?}");
}

#[test]
fn a_check_whose_value_is_nil_does_not_hold() {
    let script = "local more = require 'more'
         brunt.scenario('s', function(vu)
           local answer = http:get('/', { name = 'login' })
           brunt.check(answer, { fine = answer.ok, ['has session'] = answer.reason, odd = vu.iteration % 2 == 1 or nil })
           brunt.check(
             nil,
             { alone = answer.reason }
           )
           local made = { sure = true }
           if vu.iteration == 1 then made.some = true end
           brunt.check(nil, made)
           more(answer)
         end):inject { brunt.iterations_each(1, 3) }";
    let module = "local brunt = require 'brunt'
         return function(answer) brunt.check(answer, { there = answer.ok, gone = answer.reason }) end";
    let mut plan = plan_of(script, &[("more.lua", module)]).unwrap();
    plan.sandbox = Sandbox::Closed;
    let played = play_with(&plan, hello);
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    for (name, counted) in [
        ("login: fine", (3, 0)),
        ("login: has session", (0, 3)),
        ("login: odd", (2, 1)),
        ("alone", (0, 3)),
        ("sure", (3, 0)),
        ("some", (1, 0)),
        ("login: there", (3, 0)),
        ("login: gone", (0, 3)),
    ] {
        assert_eq!(check(&played, name), counted, "{name}");
    }
    let login = played.summary.total.figures.requests.get("login").unwrap();
    assert_eq!(login.not_ok(&played.summary.plan.ok_status), 3);
}

#[test]
fn a_check_without_a_value_fails_wherever_its_name_comes_from() {
    let played = play(
        "local name = 'a name'
         brunt.scenario('s', function(vu)
           local r = http:get('/', { name = 'get' })
           brunt.check(r, { fixed = r.ok, [name] = r.reason })
           brunt.check(r, { ['b' .. vu.id * 0] = r.ok, [name .. 2] = r.reason })
           brunt.check(r, { [name .. 3] = r.reason })
           brunt.check(r, { c = r.ok, d = r.reason }) brunt.check(r, { c = r.ok, d = r.ok })
           brunt.check(r, { e = r.reason })
         end):inject { brunt.iterations_each(1, 3) }",
        hello,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    for (name, counted) in
        [("get: fixed", (3, 0)), ("get: b0", (3, 0)), ("get: c", (6, 0)), ("get: d", (3, 3)), ("get: e", (0, 3))]
    {
        assert_eq!(check(&played, name), counted, "{name}");
    }
    let checks = &played.summary.total.figures.checks;
    let nameless: Vec<_> = checks.iter().filter(|(name, _)| name.contains("without a value, ")).collect();
    assert!(nameless.iter().all(|(_, check)| (check.passes, check.fails) == (0, 3)), "{nameless:?}");
    assert_eq!(nameless.len(), 3, "{nameless:?}");
}

#[test]
fn calls_of_check_that_cannot_be_told_apart_are_refused() {
    let script = "brunt.scenario('s', function(vu)
           local r = http:get('/')
           brunt.check(r, { a = r.ok, b = r.reason }) brunt.check(r, { a = r.ok })
         end):inject { brunt.iterations_each(1, 1) }";
    let plan = plan_of(script, &[]).unwrap();
    let error = brunt_engine::check(&plan, &built_in(), &LuaJit).unwrap_err().to_string();
    assert!(error.contains("write each on a line of its own"), "{error}");
}

#[test]
fn a_check_that_raises_an_error_says_why_it_does_not_hold() {
    let played = play(
        "brunt.scenario('s', function()
           brunt.check(http:get('/', { name = 'get' }), { session = function(r) return r.body.session.id end })
         end):inject { brunt.iterations_each(1, 1) }",
        hello,
    );
    let session = played.summary.total.figures.checks.get("get: session").unwrap();
    let example = session.example.as_ref().unwrap();
    assert!(example.body.contains("attempt to index"), "{example:?}");
}

#[test]
fn a_table_of_checks_that_has_none_is_an_error() {
    let played = play(
        "brunt.scenario('s', function()
           brunt.check(nil, setmetatable({ ['has session'] = http:get('/').reason }, nil))
         end):inject { brunt.iterations_each(1, 3) }",
        hello,
    );
    let errors = &played.scenario("s").tracebacks;
    assert!(errors.iter().any(|(text, _)| text.contains("the table of brunt.check is empty")), "{errors:?}");
}

#[test]
fn a_check_without_a_value_fails_wherever_its_table_is_written() {
    let played = play(
        "local function expect(answer, checks)
           return brunt.check(answer, checks)
         end
         local function both(checks)
           brunt.check(nil, checks)
           brunt.check(nil, { both = true })
         end
         brunt.scenario('s', function()
           local answer = http:get('/')
           local one = { ['in a local'] = answer.reason }
           brunt.check(nil, one)
           expect(nil, { ['handed on'] = answer.reason, there = true })
           both { there = true }
           both({ ['called alone'] = answer.reason })
         end):inject { brunt.iterations_each(1, 3) }",
        hello,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    let checks = &played.summary.total.figures.checks;
    let counted = |name: &str| checks.get(name).map(|check| (check.passes, check.fails));
    for name in ["in a local", "handed on", "called alone"] {
        assert_eq!(counted(name), Some((0, 3)), "{name}");
    }
    assert_eq!([counted("there"), counted("both")], [Some((6, 0)), Some((6, 0))]);
}

#[test]
fn a_group_with_a_call_that_is_not_ok_is_not_ok() {
    fn answer(request: &str) -> (u64, String) {
        let status = if request.starts_with("GET /bad") { "500 Oh" } else { "200 OK" };
        (MS, response(status, "", "hello"))
    }
    let played = play(
        "brunt.scenario('s', function(vu)
           http:get('/bad')
           brunt.group('fine', function() http:get('/') end)
           brunt.group('status', function() brunt.group('inner', function() http:get('/bad') end) http:get('/') end)
           brunt.group('check', function() brunt.check(http:get('/'), { no = false }) end)
           brunt.group('said', function() http:get('/', { name = 'said' }):fail('no session') end)
           brunt.group('batch', function() http:batch { '/', '/bad' } end)
           brunt.group('task', function() brunt.spawn(function() http:get('/bad') end):wait() end)
         end):inject { brunt.iterations_each(1, 2) }",
        answer,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    let figures = &played.summary.total.figures;
    for (name, failed) in
        [("fine", 0), ("status", 2), ("status/inner", 2), ("check", 2), ("said", 2), ("batch", 2), ("task", 2)]
    {
        assert_eq!(figures.groups.get(name).unwrap().failed, failed, "{name}");
    }
    let said = figures.checks.get("said: no session").unwrap();
    assert_eq!((said.passes, said.fails), (0, 2));
    assert_eq!(figures.requests.get("said").unwrap().not_ok(&played.summary.plan.ok_status), 2);
}
