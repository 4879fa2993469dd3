//! Virtual users on a made-up network, in made-up time: scripts of scenarios as they are written, whole workers under them.

mod absences;
mod arriving;
mod conversing;
mod garbage;
mod iterating;
mod own;
mod reading;
mod saying;
mod selecting;
mod sessions;
mod state;
mod streaming;
mod tasks;

use std::collections::BTreeMap;

use brunt_judge::distribution::Distribution;
use brunt_judge::summary::Summary;
use brunt_plan::content::Content;
use brunt_plan::plan::{Plan, ProtocolOptions, StopRule};
use brunt_plan::scenario::File;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use brunt_record::recording::Ending;

use super::*;
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_lua::scenario::read;
use brunt_record::time::Tick;
use brunt_script::{Files, LoadOptions};

/// How the peer answers a request: how long after it, and with what.
pub(super) type Answer = fn(request: &str) -> (u64, String);

/// A server that answers requests as it is told, and remembers them.
struct Server {
    answer: Answer,
    waiting: BTreeMap<u64, Vec<u8>>,
    requests: Requests,
}

/// The requests of a run: when each came, on which connection, its text.
type Requests = Arc<std::sync::Mutex<Vec<(u64, u64, String)>>>;

impl Peer for Server {
    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let waiting = self.waiting.entry(connection).or_default();
        waiting.extend_from_slice(bytes);
        let mut reaction = Vec::new();
        while let Some(head) = waiting.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(waiting).into_owned();
            let length = text.split("Content-Length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            let whole = head + 4 + length.unwrap_or(0);
            if waiting.len() < whole {
                break;
            }
            waiting.drain(..whole);
            let request = text[..whole].to_owned();
            let (after, answer) = (self.answer)(&request);
            self.requests.lock().unwrap().push((now.ns(), connection, request));
            if !answer.is_empty() {
                reaction.push((after, Act::Send(answer.into_bytes())));
            }
        }
        reaction
    }
}

fn response(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

pub(super) fn hello(_request: &str) -> (u64, String) {
    (MS, response("200 OK", "", "hello"))
}

/// What came of a script.
pub(super) struct Played {
    pub(super) summary: Summary,
    requests: Vec<(u64, u64, String)>,
}

impl Played {
    /// Method and path of each request, in the order in which they came.
    fn lines(&self) -> Vec<&str> {
        self.requests.iter().map(|(.., request)| request.split(" HTTP/").next().unwrap_or("")).collect()
    }

    /// When each request came, in milliseconds after the first, rounded: connecting takes 50 µs.
    fn times(&self) -> Vec<u64> {
        let first = self.requests.first().map_or(0, |request| request.0);
        self.requests.iter().map(|(at, ..)| (at - first + MS / 2) / MS).collect()
    }

    fn scenario(&self, name: &str) -> &brunt_record::figures::ScenarioFigures {
        self.summary.total.figures.scenarios.get(name).unwrap()
    }
}

const PRELUDE: &str = "local brunt = require 'brunt'; local http = brunt.http { base = 'http://127.0.0.1' }; ";

pub(super) fn plan_of(script: &str, files: &[(&str, &str)]) -> Result<Plan, String> {
    let registry = built_in();
    let file = |name: &str, text: &str| File { name: name.to_owned(), content: Content(text.as_bytes().to_vec()) };
    let script = file("s.lua", &format!("{PRELUDE}{script}"));
    let files: Vec<_> = files.iter().map(|(name, text)| file(name, text)).collect();
    let loaded = read(script.clone(), Files::Plan(files.clone()), &LoadOptions::default(), &registry);
    let loaded = loaded.map_err(|e| e.to_string())?;
    let mut scenarios = loaded.scenarios;
    scenarios.files = std::iter::once(script).chain(files).collect();
    Ok(Plan {
        scenarios: Some(scenarios),
        protocol: ProtocolOptions::default(),
        stop: StopRule::default(),
        thresholds: loaded.thresholds,
        ..plan("http://127.0.0.1/")
    })
}

/// Lets the users of a script play against a server that answers like this.
pub(super) fn play(script: &str, answer: Answer) -> Played {
    play_with(&plan_of(script, &[]).unwrap(), answer)
}

fn play_with(plan: &Plan, answer: Answer) -> Played {
    let requests = Requests::default();
    let server = Server { answer, waiting: BTreeMap::new(), requests: Arc::clone(&requests) };
    let summary = play_against(plan, server, &StopHandle::default());
    let requests = std::mem::take(&mut *requests.lock().unwrap());
    Played { summary, requests }
}

fn play_against(plan: &Plan, peer: impl Peer, stop: &StopHandle) -> Summary {
    play_on(plan, &VirtualNet::new(peer), stop)
}

fn play_on(plan: &Plan, net: &VirtualNet, stop: &StopHandle) -> Summary {
    let summary = judged(run_on(plan, net, stop, &mut Seconds::default()));
    let total = &summary.total;
    assert_eq!(total.numbers.get(Counter::Due), total.ended(), "due is the sum of outcomes: {total:#?}");
    assert_eq!(
        total.times.get(Timing::Response).count(),
        total.numbers.get(Counter::Due),
        "every call has a response time"
    );
    let named: u64 = total.figures.requests.iter().map(|(_, calls)| calls.numbers.get(Counter::Due)).sum();
    assert_eq!(named, total.numbers.get(Counter::Due), "every call has a name");
    let ended: u64 = total.figures.requests.iter().map(|(_, calls)| calls.ended()).sum();
    assert_eq!(ended, total.numbers.get(Counter::Due), "every named call has ended");
    for (name, scenario) in total.figures.scenarios.iter() {
        assert_eq!(scenario.users_gained(), 0, "the users of {name} have all ended");
    }
    summary
}

#[test]
fn a_user_does_what_its_function_says() {
    let played = play(
        "brunt.scenario('shop', function(vu)
           local home = http:get('/', { name = 'home' })
           brunt.check(home, { ok = home.status == 200, hello = home:find('ell') ~= nil, never = false })
           brunt.pause(0.1)
           brunt.group('cart', function()
             http:post('/cart?x=1', { json = { item = vu.iteration, user = vu.id } })
             brunt.pause('50ms')
           end)
         end):inject { brunt.iterations_each(1, 3) }",
        hello,
    );
    assert_eq!(played.lines(), ["GET /", "POST /cart?x=1"].repeat(3));
    assert_eq!(played.times(), [0, 101, 152, 253, 304, 405]);
    assert!(played.requests[3].2.ends_with("\r\n\r\n{\"item\":2,\"user\":1}"), "{}", played.requests[3].2);
    assert!(played.requests[3].2.contains("\r\nContent-Type: application/json\r\nContent-Length: 19\r\n"));
    let figures = &played.summary.total.figures;
    assert_eq!(figures.requests.get("home").unwrap().numbers.get(Counter::Due), 3);
    assert_eq!(figures.requests.get("POST /cart").unwrap().numbers.get(Counter::Due), 3);
    let group = figures.groups.get("cart").unwrap();
    assert_eq!(group.with_pauses.lower().max().map(|ns| ns / MS), Some(51));
    assert_eq!(group.without_pauses.lower().max().map(|ns| ns / MS), Some(1));
    let check = |name: &str| {
        let check = figures.checks.get(name).unwrap();
        (check.passes, check.fails)
    };
    assert_eq!([check("home: ok"), check("home: hello"), check("home: never")], [(3, 0), (3, 0), (0, 3)]);
    let example = figures.checks.get("home: never").unwrap().example.clone().unwrap();
    assert_eq!((example.status, example.body.as_str()), (Some(200), "hello"));
    assert_eq!(played.summary.total.failed_check.total(), 3, "a call with a failed check is marked once");
    assert_eq!(played.scenario("shop").iterations.count(), 3);
    // One connection for the user, kept over its iterations.
    assert_eq!(played.summary.total.numbers.get(Counter::ConnectionsMade), 1);
}

#[test]
fn figures_by_name_hold_no_delay_of_the_generator() {
    let plan = plan_of(
        "brunt.scenario('s', function() http:get('/', { name = 'home' }) end):inject { brunt.iterations_each(1, 100) }",
        &[],
    );
    let server = Server { answer: hello, waiting: BTreeMap::new(), requests: Requests::default() };
    // Its clock begins at a second; the worker stands still while an answer is on its way.
    let net = VirtualNet::new(server).standing_still(Tick::from_ns(SECOND_NS + 20 * MS), 300 * MS);
    let summary = play_on(&plan.unwrap(), &net, &StopHandle::default());
    let home = summary.total.figures.requests.get("home").unwrap();
    let ended = home.times.known(Timing::Response).max().unwrap();
    assert!(ended < 2 * MS, "{ended} ns");
    assert_eq!(summary.times.response.unwrap().max.value, ended);
    assert!(summary.total.times.known(Timing::Response).max().unwrap() > 299 * MS, "as read it is longer");
}

#[test]
fn users_come_when_they_are_due_and_their_first_call_is_due_then() {
    let played = play(
        "brunt.scenario('s', function() http:get('/') end)
         :inject { brunt.at_once(2), brunt.nothing_for('100ms'), brunt.rate(10, '300ms') }",
        hello,
    );
    assert_eq!(played.times(), [0, 0, 100, 200, 300]);
    assert_eq!(played.scenario("s").users_started, 5);
    assert_eq!(played.summary.total.numbers.get(Counter::ConnectionsMade), 5, "each user has its own connection");
    // Connecting takes 50 µs here: it is between when the call was due and when it was sent.
    let total = &played.summary.total;
    let longest = |times: &brunt_record::histogram::Censored| times.lower().max().unwrap();
    assert_eq!(longest(total.times.get(Timing::Response)) - longest(total.times.get(Timing::Service)), 50_000);
}

#[test]
fn who_finds_no_place_is_not_admitted() {
    let played = play(
        "brunt.scenario('s', function() http:get('/') brunt.pause(1) end)
         :inject { brunt.rate(10, '1s'), most_alive = 3 }",
        hello,
    );
    let scenario = played.scenario("s");
    assert_eq!((scenario.users_started, scenario.not_admitted), (3, 7));
}

#[test]
fn so_many_users_are_there_as_are_wanted() {
    let played = play(
        "brunt.scenario('s', function() http:get('/') brunt.pause(0.1) end)
         :inject { brunt.ramp_users(0, 10, '1s'), brunt.users(10, '1s'), brunt.ramp_users(10, 0, '1s') }",
        hello,
    );
    let scenario = played.scenario("s");
    // The area under the curve is 20 users × seconds; an iteration takes 101 ms, and some begin late or overrun.
    let iterations = scenario.iterations.count();
    assert!((185..=205).contains(&iterations), "{iterations}");
    assert_eq!(scenario.users_started, 10);
    let last = played.summary.run.measured_ns / MS;
    assert!((3000..=3120).contains(&last), "{last}");
}

#[test]
fn iterations_are_shared_and_paced() {
    let played = play(
        "brunt.scenario('s', function() brunt.pacing(0.05) http:get('/') end):inject { brunt.iterations_shared(2, 7) }",
        hello,
    );
    assert_eq!(played.times(), [0, 0, 50, 50, 100, 100, 150]);
}

#[test]
fn populations_follow_one_another_and_mix() {
    let played = play(
        "local a = brunt.scenario('a', function() http:get('/a') brunt.pause(0.1) end):inject { brunt.at_once(2) }
         local b = brunt.scenario('b', function() http:get('/b') end)
         local c = brunt.scenario('c', function() http:get('/c') end)
         brunt.mix { { b, 9 }, { c, 1 } }:inject { brunt.at_once(200), after = a }",
        hello,
    );
    assert_eq!(played.lines()[..2], ["GET /a", "GET /a"]);
    assert_eq!(played.times()[2], 101);
    let started = ["b", "c"].map(|name| played.scenario(name).users_started);
    assert_eq!(started, [180, 20]);
}

#[test]
fn failures_reach_the_script_and_end_nothing() {
    fn silent_then_hello(request: &str) -> (u64, String) {
        if request.contains("/silent") { (0, String::new()) } else { hello(request) }
    }
    let played = play(
        "brunt.scenario('s', function()
           local r = http:get('/silent', { timeout = '30ms' })
           if r.error == 'timeout' and r.status == 0 and not r.ok and r.body == '' then http:get('/saw-it') end
         end):inject { brunt.iterations_each(1, 2) }",
        silent_then_hello,
    );
    assert_eq!(played.lines(), ["GET /silent", "GET /saw-it", "GET /silent", "GET /saw-it"]);
    assert_eq!(played.times(), [0, 30, 31, 61]);
    assert_eq!(played.summary.total.failures.count(Failure::Timeout), 2);
}

#[test]
fn users_whose_connections_are_refused_do_not_spin() {
    struct Refusal;
    impl Peer for Refusal {
        fn connecting(&mut self, _now: Tick) -> Reaction {
            vec![(MS, Act::Refuse)]
        }
        fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
            vec![]
        }
    }
    let plan =
        plan_of("brunt.scenario('s', function() http:get('/') end):inject { brunt.users(1, '2s') }", &[]).unwrap();
    let summary = play_against(&plan, Refusal, &StopHandle::default());
    let refused = summary.total.failures.count(Failure::Connect);
    assert!((16..=26).contains(&refused), "{refused} attempts in two seconds");
    let last = summary.run.measured_ns / MS;
    assert_eq!(last, 2000, "who waits for the next iteration ends with the load");
}

#[test]
fn an_error_ends_its_iteration_and_is_counted_with_its_place() {
    let played = play(
        "\nbrunt.scenario('s', function(vu)
           http:get('/')
           if vu.iteration == 2 then brunt.group('g', function() local x = nil + 1 end) end
           if vu.iteration == 3 then brunt.fail('no stock') end
           http:get('/end')
         end):inject { brunt.iterations_each(1, 4) }",
        hello,
    );
    assert_eq!(played.lines().iter().filter(|line| **line == "GET /end").count(), 2);
    let scenario = played.scenario("s");
    assert_eq!((scenario.errors, scenario.iterations.count()), (2, 2));
    let first = &scenario.tracebacks[0].0;
    assert!(first.starts_with("s.lua:4: attempt to perform arithmetic on a nil value"), "{first}");
    assert!(scenario.tracebacks[1].0.starts_with("s.lua:5: no stock"), "{:?}", scenario.tracebacks[1]);
    assert_eq!(played.summary.total.figures.groups.get("g").unwrap().failed, 1);
}

#[test]
fn a_script_that_is_wrong_ends_the_run() {
    for (script, expected) in [
        ("http:get('/', { nmae = 'home' })", "s.lua:2: a request has no option 'nmae'; did you mean 'name'?"),
        ("brunt.pause('1 parsec')", "s.lua:2: a pause must be a duration such as"),
        ("coroutine.yield()", "coroutine.yield was called by the scenario's function itself"),
    ] {
        // The rehearsal goes through the first iteration only.
        let script = format!(
            "\nbrunt.scenario('s', function(vu) if vu.iteration > 1 then {script} end end):inject {{ brunt.users(1, '1s') }}"
        );
        let summary = play(&script, hello).summary;
        assert!(
            matches!(&summary.run.ending, Ending::Failed(reason) if reason.contains(expected)),
            "{:?}",
            summary.run.ending
        );
    }
}

#[test]
fn a_body_is_there_until_the_next_call() {
    let played = play(
        "brunt.scenario('s', function()
           local a = http:get('/a')
           local read = a.body
           local b = http:get('/b')
           if a.body == 'hello' and b:match('h(e)') == 'e' and b.timings.service > 0 then http:get('/read') end
           return b.status and a:find('hello') and http:get('/late', { name = a.headers.x }) and b.body
         end):inject { brunt.iterations_each(1, 1) }",
        hello,
    );
    assert_eq!(played.lines(), ["GET /a", "GET /b", "GET /read"]);
    let traceback = &played.scenario("s").tracebacks[0].0;
    assert!(traceback.contains("s.lua:6: the headers of this answer is gone"), "{traceback}");
}

#[test]
fn a_pool_is_shared_by_all_users() {
    fn slow(_request: &str) -> (u64, String) {
        (10 * MS, response("200 OK", "", "x"))
    }
    let played = play(
        "local pooled = brunt.http { base = 'http://127.0.0.1', pool = 2 }
         brunt.scenario('s', function() pooled:get('/') end):inject { brunt.at_once(6) }",
        slow,
    );
    assert_eq!(played.times(), [0, 0, 10, 10, 20, 20]);
    assert_eq!(played.summary.total.numbers.get(Counter::ConnectionsMade), 2);
    let longest = played.summary.total.times.get(Timing::Response).lower().max().unwrap();
    assert!(longest >= 30 * MS, "waiting for the pool counts");
}

#[test]
fn answers_that_are_no_success_have_times_of_their_own_by_name() {
    fn site(request: &str) -> (u64, String) {
        if request.starts_with("GET /gone") {
            (9 * MS, response("404 Not Found", "", ""))
        } else {
            (MS, response("200 OK", "", ""))
        }
    }
    let played = play(
        "brunt.scenario('s', function()
           http:get('/here', { name = 'page', tags = { kind = 'any' } })
           http:get('/gone', { name = 'page', tags = { kind = 'any' } })
         end):inject { brunt.iterations_each(1, 2) }",
        site,
    );
    let names = &played.summary.breakdown;
    for calls in names.requests.iter().chain(&names.tags) {
        let max = |times: &Option<Distribution>| times.as_ref().map(|times| (times.count, times.max.value / MS));
        assert_eq!(
            (max(&calls.response_ok), max(&calls.response_not_ok)),
            (Some((2, 1)), Some((2, 9))),
            "{}",
            calls.name
        );
    }
    assert_eq!((names.requests.len(), names.tags.len()), (1, 1));
}

#[test]
fn a_rate_over_all_calls_is_reached_and_held() {
    let played = play(
        "brunt.throttle('100')
         brunt.scenario('s', function() http:get('/') end):inject { brunt.users(20, '1s') }",
        hello,
    );
    let due = played.summary.total.numbers.get(Counter::Due);
    // Users who are in an iteration at the end still make their call.
    assert!((99..=121).contains(&due), "{due}");
    let times = played.times();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 10), "one every ten milliseconds: {times:?}");
}

#[test]
fn data_is_given_out_and_a_queue_ends_its_scenario() {
    let script = "local users = brunt.csv('users.csv'):circular()
         local items = brunt.jsonl('items.jsonl'):queue()
         brunt.scenario('s', function()
           local user = users:next()
           http:get('/' .. user.name .. '/' .. items:next().id)
           return pcall(function() return user.nmae end)
         end):inject { brunt.users(1, '10s') }";
    let files = [("users.csv", "name,age\nann,1\nbob,2\n"), ("items.jsonl", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n")];
    let played = play_with(&plan_of(script, &files).unwrap(), hello);
    assert_eq!(played.lines(), ["GET /ann/1", "GET /bob/2", "GET /ann/3"]);
    assert!(played.summary.run.measured_ns < SECOND_NS, "the scenario has ended with its data");
    assert_eq!(played.scenario("s").out_of_rows, 1);
}

#[test]
fn the_end_of_a_run_cuts_short_what_is_under_way() {
    fn never(request: &str) -> (u64, String) {
        if request.contains("/slow") { (0, String::new()) } else { hello(request) }
    }
    let mut plan = plan_of(
        "brunt.scenario('s', function()
           brunt.group('g', function() http:get('/') http:get('/slow') end)
         end):inject { brunt.users(2, '100ms') }",
        &[],
    )
    .unwrap();
    plan.timeout_ns = SECOND_NS;
    plan.drain_ns = 50 * MS;
    let played = play_with(&plan, never);
    let total = &played.summary.total;
    assert_eq!((total.statuses.total(), total.numbers.get(Counter::Unfinished)), (2, 2));
    assert_eq!(total.figures.groups.get("g").unwrap().unfinished, 2);
    assert_eq!(played.scenario("s").iterations.bounds.count(), 2);
}

#[test]
fn scripts_that_cannot_be_are_refused_with_their_place() {
    for (script, expected) in [
        (
            "\nbrunt.scenario('s', function() end):inject { brunt.users('many', '1s') }",
            "s.lua:2: users must be a number",
        ),
        (
            "\nbrunt.scenario('s', function() end):inject { brunt.rate(1, '1 moon') }",
            "s.lua:2: a length must be a duration",
        ),
        ("brunt.csv('gone.csv')", "s.lua:1: the plan has no file 'gone.csv'"),
        ("brunt.http { bsae = 'x' }", "s.lua:1: brunt.http has no option 'bsae'; did you mean 'base'?"),
        ("brunt.http { base = 'ftp://x' }", "s.lua:1: brunt.http: base must begin with http:// or https://"),
        ("brunt.expect { p99 = '< 5 bananas' }", "s.lua:1: "),
        ("brunt.pause(1)", "s.lua:1: brunt.pause is for virtual users"),
        ("http:get('/')", "s.lua:1: a call is for virtual users"),
        ("require 'nothing'", "no file 'nothing.lua' that belongs to the script"),
        ("brunt.env('PLAN')", "s.lua:1: the script was given no value 'PLAN', and brunt.env has no default for it"),
        ("x = = 1", "s.lua:1: unexpected symbol"),
    ] {
        let error = plan_of(script, &[]).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{script}: {error}");
    }
}
