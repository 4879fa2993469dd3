//! The examples of scenarios: each runs against the built-in target, and does what it is there to show.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

#[allow(dead_code, reason = "shared with other tests")]
#[path = "cli/program.rs"]
mod program;

use std::collections::BTreeSet;
use std::path::PathBuf;

use brunt_testbed::server::{Server, ServerConfig};
use program::{Done, run};
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios")
}

/// What came of an example: its result, and how many requests the target saw.
struct Shown {
    done: Done,
    result: Value,
    requests: u64,
    connections: u64,
}

fn show(name: &str, more: &[&str]) -> Shown {
    let server = Server::start(ServerConfig { workers: 2, ..ServerConfig::default() }).unwrap();
    let file = folder().join(name).to_str().unwrap().to_owned();
    let base = server.url();
    let args = ["run", "-t", "2", "--format", "json", "--base-url", base.trim_end_matches('/'), &file];
    let done = run([args.as_slice(), more].concat());
    let result = serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{name}: {error}: {done:#?}"));
    Shown { done, result, requests: server.requests(), connections: server.connections() }
}

impl Shown {
    #[track_caller]
    fn with_status(self, expected: i32) -> Self {
        assert_eq!(
            self.done.status,
            Some(expected),
            "{}\n{:#}\n{:#}\n{:#}",
            self.done.stderr,
            self.result["thresholds"],
            self.result["names"]["checks"],
            self.result["names"]["scenarios"].as_array().map_or(&Value::Null, |all| &all[0]["tracebacks"]),
        );
        // Whatever the example: nothing vanishes, and what was sent was seen.
        let outcomes = &self.result["outcomes"];
        let sum: u64 = ["answered", "failed", "unfinished", "unsent"].iter().map(|name| number(outcomes, name)).sum();
        assert_eq!(number(outcomes, "due"), sum, "{outcomes}");
        // The target counts an answer once it is whole, which one that a user left never was.
        let left = outcomes["messages"]["left"].as_u64().unwrap_or(0);
        let seen = self.requests + left;
        assert!(seen >= number(outcomes, "answered"), "{outcomes}; the target saw {} requests", self.requests);
        self
    }

    /// With the exit status that its thresholds ask for, of which only these may fail: on a machine that stands still for a
    /// while, times say nothing about brunt.
    #[track_caller]
    fn but_for_times(self, thresholds: &[&str]) -> Self {
        let all = self.result["thresholds"].as_array().unwrap();
        let failed: Vec<_> = all.iter().filter(|one| one["held"] == false).collect();
        for one in &failed {
            assert!(thresholds.contains(&one["threshold"].as_str().unwrap()), "{one}");
        }
        let status = i32::from(!failed.is_empty());
        self.with_status(status)
    }

    /// What is reported of a name.
    #[track_caller]
    fn named(&self, kind: &str, name: &str) -> &Value {
        let all = self.result["names"][kind].as_array().unwrap();
        let key = |one: &Value| match (one["name"].as_str(), one["call"].as_str(), one["check"].as_str()) {
            (Some(name), ..) => name.to_owned(),
            (_, Some(call), Some(check)) => format!("{call}: {check}"),
            (.., check) => check.unwrap_or("").to_owned(),
        };
        let found = all.iter().find(|one| key(one) == name);
        found.unwrap_or_else(|| panic!("no {kind} '{name}' among {:?}", all.iter().map(key).collect::<Vec<_>>()))
    }

    #[track_caller]
    fn due(&self, request: &str) -> u64 {
        number(self.named("requests", request), "due")
    }

    #[track_caller]
    fn checks_passed(&self, least: u64) {
        let checks = self.result["names"]["checks"].as_array().unwrap();
        let sum = |what| checks.iter().map(|check| number(check, what)).sum::<u64>();
        assert!(sum("fails") == 0 && sum("passes") >= least, "{checks:#?}");
    }
}

#[track_caller]
fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value:#}"))
}

#[test]
fn streams() {
    let times = ["chat:first_message.p99 < 1s", "chat:message_gap.p99 < 200ms"];
    let shown = show("streams.lua", &[]).but_for_times(&times);
    shown.checks_passed(20);
    assert_eq!((shown.due("chat"), shown.due("glance")), (10, 10));
    let (chat, glance) = (shown.named("requests", "chat"), shown.named("requests", "glance"));
    let counted = |of: &Value| number(&of["messages"], "count");
    assert_eq!(counted(chat), 500);
    // The fifth may have come together with the fourth.
    assert!((40..=60).contains(&counted(glance)), "{}", counted(glance));
    assert_eq!(number(&shown.result["outcomes"]["messages"], "left"), 10);
    assert_eq!(chat["messages"]["first_message"]["count"], 10);
    // Of 50 tokens 49 come 20 ms after the one before. A first one that comes late takes from what the others are apart on average.
    assert_eq!(chat["messages"]["message_gap"]["count"], 490);
    assert!(
        number(&chat["messages"]["first_message"], "min_ns") >= 199_000_000,
        "{:#}",
        chat["messages"]["first_message"]
    );
    assert!(
        number(&chat["messages"]["each_message"], "min_ns") >= 18_000_000,
        "{:#}",
        chat["messages"]["each_message"]
    );
}

/// So that no example can come that nothing looks at.
#[test]
fn every_example_has_a_test() {
    let tests = concat!(
        include_str!("scenario_examples.rs"),
        include_str!("network/conversations.rs"),
        include_str!("thrift/scenarios.rs"),
        include_str!("grpc/scenarios.rs")
    );
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.strip_suffix(".lua").is_some() {
            let is_run = ["show", "example"].iter().any(|by| tests.contains(&format!("{by}(\"{name}\"")));
            assert!(is_run, "{name}");
        }
    }
}

#[test]
fn first() {
    let shown = show("first.lua", &[]).with_status(0);
    assert!(shown.due("GET /shop/") >= 10);
    assert!(
        (10..=12).contains(&number(&shown.result["names"], "most_users")),
        "{}",
        shown.result["names"]["most_users"]
    );
    assert_eq!(shown.connections, 10, "each user has one");
}

#[test]
fn checkout() {
    let shown = show("checkout.lua", &[]).but_for_times(&["p99 < 2s", "home:p95 < 1s"]);
    let scenario = shown.named("scenarios", "checkout");
    let started = number(scenario, "users_started");
    assert_eq!(started, 10 + 40 + 60);
    assert_eq!(
        (number(scenario, "users_ended"), number(scenario, "iterations"), number(scenario, "errors")),
        (started, started, 0)
    );
    for name in ["home", "login", "add to cart", "cart/:id", "checkout"] {
        assert_eq!(shown.due(name), started, "{name}");
    }
    let group = shown.named("groups", "cart");
    assert_eq!(number(group, "count"), started);
    let min = |times: &str| number(&group[times], "min_ns");
    assert!(min("with_pauses") >= min("without_pauses") + 20_000_000, "the pause is in the one alone");
    assert!(min("without_pauses") >= 20_000_000, "the checkout takes 20 ms");
    assert_eq!(shown.result["thresholds"].as_array().unwrap().len(), 4);
    shown.checks_passed(3 * started);
}

#[test]
fn session() {
    let shown = show("session.lua", &[]).with_status(0);
    shown.checks_passed(4 * 3 * 8);
    assert_eq!(shown.due("not followed"), 12);
    assert_eq!(number(shown.named("requests", "bearer"), "not_ok"), 12, "401 is no success");
}

#[test]
fn reading() {
    let shown = show("reading.lua", &[]).with_status(0);
    shown.checks_passed(4 * 3 * 6);
}

#[test]
fn own_figures() {
    let shown = show("own_figures.lua", &[]).with_status(0);
    let (added, items) = (shown.named("own", "added"), shown.named("own", "price"));
    assert_eq!((added["sum"].as_f64(), added["kind"].as_str()), (Some(12.0), Some("counter")));
    assert_eq!((number(items, "count"), items["unit"].as_str()), (12, Some("eur")));
    assert_eq!(shown.named("own", "has a name")["ratio"].as_f64(), Some(1.0));
    assert!(shown.named("own", "cart")["max"].as_f64().is_some_and(|max| max >= 1.0));
}

#[test]
fn tasks() {
    let shown = show("tasks.lua", &[]).with_status(0);
    shown.checks_passed(4 * 2 * 5);
    assert_eq!(shown.due("of home"), 4 * 3, "the cache has what a user has fetched");
    assert_eq!((shown.due("slow"), shown.due("the end")), (8, 4));
}

#[test]
fn who_comes_is_listed_and_changed_without_the_file() {
    let run = |args: &[&str]| {
        let file = folder().join("several.lua").to_str().unwrap().to_owned();
        run([&["run", &file], args].concat())
    };
    let listed = run(&["--list"]).with_status(0).stdout;
    let names: Vec<_> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 1 && listed.contains(" model, "), "{listed}");
    let other =
        run(&["--list", "--only", names[0], "--inject", &format!("{}=ramp_rate(0, 50, 30s) rate(50,1m)", names[0])]);
    let other = other.with_status(0).stdout;
    assert!(other.contains("browse  open model, 0 to 50 iterations/s in 30s, 50 iterations/s for 1m\n"), "{other}");
    assert!(other.lines().nth(1).is_some_and(|line| line.ends_with("nobody")), "{other}");
    for (args, expected) in [
        (["--only", "nobody"], "there is no scenario 'nobody'; there are "),
        (["--inject", &format!("{}=rat(5)", names[0])], "expected steps such as rate(50, 1m)"),
        (["--inject", &format!("{}=rate(x, 1m)", names[0])], "a rate must be a number, not 'x'"),
        (["--inject", &format!("{}=", names[0])], "expected steps such as rate(50, 1m) or users(10, 30s), got none"),
    ] {
        let refused = run(&[args[0], args[1], "--dry-run"]).with_status(2).stderr;
        assert!(refused.contains(expected), "{args:?}: {refused}");
    }
}

#[test]
fn requests() {
    let shown = show("requests.lua", &[]).with_status(0);
    shown.checks_passed(4 * 10);
    assert_eq!(number(shown.named("requests", "late"), "failed"), 4);
    assert_eq!(shown.due("purge") + shown.due("options") + shown.due("delete") + shown.due("HEAD /shop/items"), 16);
}

#[test]
fn batch() {
    let shown = show("batch.lua", &[]).with_status(0);
    let pages = shown.due("home");
    assert!(pages >= 3);
    assert!(shown.due("GET /shop/style.css") >= pages - 3 && shown.due("GET /shop/logo.svg") >= pages - 3);
    // Who asks for a second page has had the first as a whole.
    let least = if pages > 3 { 4 } else { 3 };
    assert!((least..=3 * 6).contains(&shown.connections), "{} connections of 3 users", shown.connections);
}

#[test]
fn pool() {
    let shown = show("pool.lua", &[]).with_status(0);
    assert!(shown.due("pooled") >= 20);
    assert!(shown.connections <= 4, "{} connections", shown.connections);
}

#[test]
fn data() {
    let shown = show("data.lua", &[]).with_status(0);
    // Who finds no voucher left ends the run, while the two others may wait for their answers.
    shown.checks_passed(4 * 3);
    let (free, pro) = (shown.named("tags", "plan=free"), shown.named("tags", "plan=pro"));
    assert_eq!((number(free, "due"), number(pro, "due")), (3, 3));
    assert!(number(&shown.result["measured"], "length_ns") < 9_000_000_000, "the queue ends it");
    assert!(shown.result["ending"].to_string().contains("rows"), "and it is said: {}", shown.result["ending"]);
}

#[test]
fn open() {
    let shown = show("open.lua", &[]).with_status(0);
    let length = number(&shown.result["measured"], "length_ns");
    assert!(length >= 2_000_000_000, "{length}");
    assert_eq!(shown.due("items"), 88);
}

#[test]
fn poisson() {
    let shown = show("poisson.lua", &["--seed", "7", "--allow-less", "100%"]).with_status(0);
    let scenario = shown.named("scenarios", "crowd");
    let (started, refused) = (number(scenario, "users_started"), number(scenario, "not_admitted"));
    assert!((200..400).contains(&(started + refused)), "{started} + {refused}");
    assert!(refused > 50, "ten at a time, each for 100 ms, are a hundred a second");
    assert!(number(&shown.result["names"], "most_users") <= 10);
    let again = show("poisson.lua", &["--seed", "7", "--allow-less", "100%"]).with_status(0);
    let scenario = again.named("scenarios", "crowd");
    assert_eq!(number(scenario, "users_started") + number(scenario, "not_admitted"), started + refused);
}

#[test]
fn closed() {
    let shown = show("closed.lua", &[]).with_status(0);
    assert_eq!(number(shown.named("scenarios", "each"), "users_started"), 5);
    assert_eq!(number(shown.named("scenarios", "shared"), "users_started"), 5);
    let most = number(&shown.result["names"], "most_users");
    assert!((4..=20).contains(&most), "{most}");
    assert!(number(shown.named("scenarios", "crowd"), "iterations") > 0);
}

#[test]
fn several() {
    let shown = show("several.lua", &[]).with_status(0);
    let (browse, buy) = (shown.due("items"), shown.due("item"));
    assert_eq!(browse + buy, 200);
    assert!((5..=40).contains(&buy), "about a tenth: {buy}");
    assert!(shown.due("count") > 0);
}

#[test]
fn groups() {
    let shown = show("groups.lua", &[]).but_for_times(&["group browse/details:p99 < 2s"]);
    let iterations = number(shown.named("scenarios", "groups"), "iterations");
    assert!(iterations <= 4 * 11, "{iterations} at a pace of ten a second for each of four users");
    let inner = shown.named("groups", "browse/details");
    assert!(number(inner, "count") <= number(shown.named("groups", "browse"), "count"));
    shown.checks_passed(4);
}

#[test]
fn setup() {
    let shown = show("setup.lua", &[]).with_status(0);
    shown.checks_passed(20);
    // Once each, whatever the number of threads; what they call is in no figure of the load.
    assert_eq!(shown.requests, 20 + 2);
}

#[test]
fn thresholds() {
    let shown = show("thresholds.lua", &[]).with_status(1);
    let cause = &shown.result["ending"]["aborted"]["threshold"];
    assert_eq!(cause["threshold"], "failing:error_rate < 5%", "{cause}");
    let held: BTreeSet<_> = shown.result["thresholds"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| result["held"] == true)
        .map(|result| result["threshold"].as_str().unwrap().to_owned())
        .collect();
    assert!(!held.contains("failing:error_rate < 5% abort"), "{held:#?}");
    // The others are about times.
    for threshold in ["kind=good:error_rate <= 0%", "scenario failing:script_errors == 0"] {
        assert!(held.contains(threshold), "{held:#?}");
    }
    assert!(number(&shown.result["measured"], "length_ns") < 50_000_000_000);
}

#[test]
fn errors() {
    let shown = show("errors.lua", &[]).with_status(0);
    let tracebacks = shown.named("scenarios", "wrong")["tracebacks"].as_array().unwrap().clone();
    assert!(tracebacks.len() == 2 && tracebacks.iter().all(|one| number(one, "count") == 4), "{tracebacks:#?}");
    let text = |at: usize| tracebacks[at]["traceback"].as_str().unwrap();
    assert!(text(0).contains("errors.lua:") && text(1).contains("errors.lua:"), "{tracebacks:#?}");
    assert!(tracebacks.iter().any(|one| one["traceback"].as_str().unwrap().contains("one too many")));
    shown.checks_passed(3);
}

#[test]
fn stop() {
    let shown = show("stop.lua", &[]).with_status(0);
    assert!(shown.due("failing") >= 20);
    assert!(number(&shown.result["measured"], "length_ns") < 50_000_000_000);
}

#[test]
fn throttle() {
    let shown = show("throttle.lua", &[]).with_status(0);
    assert!(shown.due("home") >= 10, "{}", shown.due("home"));
}

#[test]
fn modules() {
    let shown = show("modules.lua", &["--env", "GREETING=good day"]).with_status(0);
    shown.checks_passed(12 + 3);
}

#[test]
fn values() {
    let shown = show("values.lua", &[]).with_status(0);
    shown.checks_passed(5 * 12);
    assert_eq!((shown.due("order"), shown.due("search")), (12, 12));
}

#[test]
fn authorization() {
    let shown = show("authorization.lua", &[]).with_status(0);
    shown.checks_passed(3 * 6);
    assert_eq!(shown.due("aws"), 6);
}

#[test]
fn rows() {
    let shown = show("rows.lua", &[]).with_status(0);
    // Who asks for a row in vain ends the run, which may cut the last answer off.
    shown.checks_passed(2 * 2);
    assert_eq!(shown.result["ending"]["stopped"], "all 3 rows of data/shop.db were given out");
}
