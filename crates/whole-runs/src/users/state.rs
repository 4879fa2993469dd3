//! State that belongs to a user alone, and values on their way out of the script.

use super::*;

#[test]
fn what_a_user_keeps_nobody_else_sees() {
    let played = play(
        "local rows = brunt.data { { name = 'ann', list = { 1 } } }
         local feeder = rows:circular()
         local function remember(id) brunt.user.mine = (brunt.user.mine or 0) + id end
         brunt.setup(function() return { token = 'first', deep = { n = 1 } } end)
         brunt.scenario('s', function(vu, given)
           remember(vu.id)
           local row = feeder:next()
           local task = brunt.spawn(function() return brunt.user.mine end)
           brunt.check(nil, {
             own = brunt.user.mine == vu.id * vu.iteration and vu.store.mine == brunt.user.mine,
             task = task:wait() == vu.id * vu.iteration,
             given = given.token == (vu.iteration == 1 and 'first' or 'of ' .. vu.id) and given.deep.n == vu.iteration,
             row = row.name == 'ann' and #row.list == 1,
           })
           given.token, given.deep.n = 'of ' .. vu.id, given.deep.n + 1
           row.name, row.list[2] = 'bob', 2
           http:get('/')
         end):inject { brunt.iterations_each(4, 3) }",
        hello,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    let checks = &played.summary.total.figures.checks;
    for name in ["own", "task", "given", "row"] {
        let check = checks.get(name).unwrap();
        assert_eq!((check.passes, check.fails), (12, 0), "{name}");
    }
}

#[test]
fn what_setup_returns_is_the_same_json() {
    let json = r#"{"all":[1,[],{}],"empty":[],"none":null}"#;
    let played = play(
        &format!(
            "brunt.setup(function() return brunt.json.decode('{json}') end)
             brunt.scenario('s', function(vu, given)
               brunt.check(nil, {{ same = brunt.json.encode(given) == '{json}' }})
               http:get('/')
             end):inject {{ brunt.iterations_each(1, 1) }}"
        ),
        hello,
    );
    assert_eq!(played.summary.total.figures.checks.get("same").unwrap().passes, 1);
}

#[test]
fn setup_and_teardown_count_their_checks_and_figures_and_no_calls() {
    let played = play(
        "local made, took = brunt.counter('made'), brunt.trend('took')
         brunt.setup(function()
           local r = http:get('/set-up', { name = 'r' })
           brunt.check(r, { fine = r.ok, gone = r.status == 404 })
           made:add(3)
           took:add(7)
         end)
         brunt.teardown(function()
           brunt.check(nil, { gone = false })
           made:add(5)
         end)
         brunt.scenario('s', function() http:get('/') made:add() end):inject { brunt.iterations_each(1, 2) }",
        hello,
    );
    let figures = &played.summary.total.figures;
    let counted = |name: &str| figures.checks.get(name).map(|check| (check.passes, check.fails));
    assert_eq!([counted("r: fine"), counted("r: gone"), counted("gone")], [Some((1, 0)), Some((0, 1)), Some((0, 1))]);
    assert_eq!(figures.own.get("made").unwrap().sum(), Some(10.0));
    assert_eq!(figures.own.get("took").unwrap().count, 1);
    assert_eq!(played.summary.total.numbers.get(Counter::Due), 2);
}

#[test]
fn the_table_of_a_user_is_for_users() {
    let error = plan_of("brunt.user.token = 1", &[]).unwrap_err();
    assert!(error.contains("brunt.user is for virtual users"), "{error}");
}

#[test]
fn whole_numbers_are_sent_in_full() {
    let played = play(
        "brunt.scenario('s', function()
           local id = 2 ^ 53 - 1
           http:get('/', { query = { id = id, half = 0.5, below = -id } })
           http:post('/', { form = { id = id } })
           http:post('/', { multipart = { id = id } })
           http:post('/', { json = { id = id, none = brunt.array {}, empty = {} } })
         end):inject { brunt.iterations_each(1, 1) }",
        hello,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    assert_eq!(played.lines()[0], "GET /?below=-9007199254740991&half=0.5&id=9007199254740991");
    let body = |place: usize| played.requests[place].2.split("\r\n\r\n").skip(1).collect::<Vec<_>>().join("|");
    assert_eq!(body(1), "id=9007199254740991");
    assert!(body(2).contains("|9007199254740991\r\n"), "{}", body(2));
    assert_eq!(body(3), r#"{"empty":{},"id":9007199254740991,"none":[]}"#);
}

/// Numbers of every size, each as JavaScript and Python would write it: all digits of a whole one, the shortest text of a fraction.
#[test]
fn numbers_read_back_from_wherever_they_are_sent() {
    let mut numbers =
        vec![1e21, 1.5e300, 5e-324, 0.1 + 0.2, 1e15 + 0.5, -9_007_199_254_740_992.0, 1e14, 123_456_789_012_345.0];
    for at in 0..40 {
        let unit = |index: u64| brunt_plan::random::unit(9, index);
        let number = (unit(2 * at) - 0.5) * 10_f64.powf(unit(2 * at + 1) * 30.0 - 15.0);
        numbers.extend([number, (number * 1e9).clamp(-9e15, 9e15).round() + 0.0]);
    }
    let listed: Vec<_> = numbers.iter().map(|number| format!("{number:?}")).collect();
    let played = play(
        &format!(
            "local numbers = {{ {} }}
             brunt.scenario('s', function()
               for _, n in ipairs(numbers) do
                 http:get('/' .. tostring(n))
                 http:get('/', {{ query = {{ n = n }} }})
                 http:post('/', {{ form = {{ n = n }} }})
                 http:post('/', {{ json = {{ variables = {{ n = n }} }} }})
                 http:post('/', {{ multipart = {{ n = n }} }})
                 http:post('/', {{ body = 'n=' .. brunt.json.encode(n) }})
                 http:set_cookie('n', n)
                 http:get('/', {{ headers = {{ n = n }} }})
                 http:clear_cookies()
               end
             end):inject {{ brunt.iterations_each(1, 1) }}",
            listed.join(", ")
        ),
        hello,
    );
    assert_eq!(played.scenario("s").tracebacks.len(), 0, "{:?}", played.scenario("s").tracebacks);
    let read = |text: &str| text.trim_matches(|c: char| !c.is_ascii_digit() && c != '-').parse::<f64>();
    for (number, sent) in numbers.iter().zip(played.requests.chunks(7)) {
        let after = |place: usize, what: &str| {
            let text = &sent[place].2;
            let text = text.split_once(what).unwrap_or_else(|| panic!("no {what} in {text}")).1;
            let end = text.find(['\r', '}', ';', ' ']).unwrap_or(text.len());
            text[..end].replace("%2B", "+")
        };
        let places = [
            (0, "GET /"),
            (1, "?n="),
            (2, "\r\n\r\nn="),
            (3, "\"n\":"),
            (4, "name=\"n\"\r\n\r\n"),
            (5, "\r\n\r\nn="),
            (6, "n: "),
            (6, "ookie: n="),
        ];
        for (place, what) in places {
            let text = after(place, what);
            assert_eq!(read(&text), Ok(*number), "{what}{text} for {number:?}");
            // A sign and an exponent beside the digits.
            assert!(
                text.len() <= 25 && (number.fract() != 0.0 || number.abs() > 1e20 || !text.contains(['e', '.'])),
                "{what}{text}"
            );
        }
    }
}

#[test]
fn locals_that_scenarios_assign_are_named() {
    let places = |script: &str| {
        let file = File { name: "s.lua".to_owned(), content: Content(format!("{PRELUDE}{script}").into_bytes()) };
        read(file, Files::Plan(Vec::new()), &LoadOptions::default(), &built_in()).unwrap().assigned_locals
    };
    let assigned = |script: &str| places(script).into_iter().map(|local| local.name).collect::<Vec<_>>();
    let names = assigned(
        "local token, count, never, nested, cache, rows, made = nil, 0, 1, 2, {}, {}, setmetatable({}, {})
         local function login() token = http:get('/').body end
         brunt.scenario('s', function(vu)
           local own = 1
           local function inner() own = 2 end
           inner() login()
           if count > 3 then count = 1.5 end
           brunt.group('g', function() nested = 'x' end)
           cache.x = never
           rows[vu.id] = never
           made.x = never
           local mine = {}
           mine.x, brunt.user.x = rows.x, cache.y
         end)",
    );
    assert_eq!(names, ["cache", "count", "nested", "token"]);
    assert_eq!(assigned("local n = 1 n = 2 brunt.scenario('s', function() local m = n m = 3 end)"), [""; 0]);
    let script = "local token\nbrunt.scenario('s', function()\nhttp:get('/')\ntoken = 'x'\ntoken = 'y' end)";
    let local = &places(script)[0];
    let line = format!("{PRELUDE}{script}").lines().position(|line| line == "token = 'x'").unwrap() + 1;
    assert_eq!((local.file.as_str(), local.line), ("s.lua", line));
}
