//! Results that earlier brunts wrote are read whole: each value of a file in `pinned/` is in the document that is written of it
//! again. `pinned/README.md` lists the files.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

use base64::Engine as _;
use brunt_judge::summary::Summary;
use brunt_report::decision;
use brunt_report::{Format, Style, json, render};
use flate2::read::GzDecoder;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json as value};

/// Runs in `pinned/v1`.
const RUNS: [&str; 10] = ["closed", "open", "script", "scenario", "http2", "sse", "stalled", "grpc", "agents", "lost"];
/// Decisions in `pinned/v1`.
const DECISIONS: [&str; 3] = ["find", "compare", "sweep"];

fn bytes(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pinned/v1").join(format!("{name}.json.gz"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

fn pinned(name: &str) -> Value {
    serde_json::from_slice(&bytes(name)).unwrap()
}

fn summary(name: &str) -> Summary {
    json::read_whole(&bytes(name)).unwrap().summary()
}

fn written(summary: &Summary) -> Value {
    serde_json::from_slice(&render(Format::Json, summary, Style::default()).unwrap()).unwrap()
}

/// The document with the parts of agents as values in place of `MessagePack`.
fn opened(mut document: Value) -> Value {
    let agents = document.pointer_mut("/agents/list").and_then(Value::as_array_mut);
    for agent in agents.into_iter().flatten() {
        let packed = base64::engine::general_purpose::STANDARD.decode(agent["part"].as_str().unwrap()).unwrap();
        agent["part"] = rmp_serde::from_slice::<Opened>(&packed).unwrap().0;
    }
    document
}

/// Any value of `MessagePack`, as JSON: bytes become a list, and keys become texts.
struct Opened(Value);

impl<'de> Deserialize<'de> for Opened {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Opened;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E>(self) -> Result<Opened, E> {
                Ok(Opened(Value::Null))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Opened, E> {
                Ok(Opened(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Opened, E> {
                Ok(Opened(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Opened, E> {
                Ok(Opened(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Opened, E> {
                Ok(Opened(value.into()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Opened, E> {
                Ok(Opened(value.into()))
            }
            fn visit_bytes<E>(self, value: &[u8]) -> Result<Opened, E> {
                Ok(Opened(value.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Opened, A::Error> {
                let mut list = Vec::new();
                while let Some(Opened(value)) = values.next_element()? {
                    list.push(value);
                }
                Ok(Opened(list.into()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Opened, A::Error> {
                let mut map = serde_json::Map::new();
                while let Some((Opened(key), Opened(value))) = entries.next_entry()? {
                    map.insert(key.as_str().map_or_else(|| key.to_string(), str::to_owned), value);
                }
                Ok(Opened(map.into()))
            }
        }
        from.deserialize_any(Reader)
    }
}

/// The parts of agents, taken out of a document.
fn parts(document: &mut Value) -> Vec<Value> {
    let agents = document.pointer_mut("/agents/list").and_then(Value::as_array_mut);
    agents.into_iter().flatten().map(|agent| agent["part"].take()).collect()
}

/// How often each value stands in a tree, wherever that is; zeros apart, which are left out when nothing was counted.
fn values(tree: &Value, found: &mut BTreeMap<String, usize>) {
    match tree {
        Value::Object(entries) => entries.values().for_each(|value| values(value, found)),
        Value::Array(list) => list.iter().for_each(|value| values(value, found)),
        Value::Null | Value::Bool(false) => {}
        value if value.as_f64() == Some(0.0) => {}
        value => *found.entry(value.to_string()).or_default() += 1,
    }
}

/// Numbers of a part had fields of their own in version 1, and stand under the catalogue's keys now: each of them is somewhere.
fn check_no_part_is_lost(name: &str, kept: &[Value], again: &[Value]) {
    assert_eq!(kept.len(), again.len(), "{name}");
    for (kept, again) in kept.iter().zip(again) {
        let (mut before, mut now) = (BTreeMap::new(), BTreeMap::new());
        values(kept, &mut before);
        values(again, &mut now);
        before.retain(|value, n| now.get(value).is_none_or(|now| now < n));
        assert!(before.is_empty(), "{name}: {before:?}");
    }
}

/// The places of values in `kept` that are missing from `again` or different there.
fn lost(kept: &Value, again: &Value, path: &str, found: &mut Vec<String>) {
    match (kept, again) {
        (Value::Object(kept), Value::Object(again)) => {
            for (name, value) in kept {
                lost(value, again.get(name).unwrap_or(&Value::Null), &format!("{path}/{name}"), found);
            }
        }
        (Value::Array(kept), Value::Array(again)) if kept.len() == again.len() => {
            for (at, (value, other)) in kept.iter().zip(again).enumerate() {
                lost(value, other, &format!("{path}/{at}"), found);
            }
        }
        _ if kept == again => {}
        _ => found.push(format!("{path}: {kept} became {again}")),
    }
}

fn check_nothing_is_lost(name: &str, kept: &Value, again: &Value) {
    let mut found = Vec::new();
    lost(kept, again, "", &mut found);
    assert!(
        found.is_empty(),
        "{name}: {} values, of which the first are {:#?}",
        found.len(),
        &found[..found.len().min(9)]
    );
}

/// What a summary that was read back does not know: which answers came after the measured part.
const AFTER_THE_END: [&str; 2] = ["/measured/answered", "/outcomes/messages/measured"];

#[test]
fn every_value_of_a_run_is_read() {
    for name in RUNS {
        let mut kept = opened(pinned(name));
        let mut document = opened(serde_json::to_value(json::read(&bytes(name)).unwrap()).unwrap());
        let mut again = opened(written(&summary(name)));
        let kept_parts = parts(&mut kept);
        check_no_part_is_lost(name, &kept_parts, &parts(&mut document));
        check_no_part_is_lost(name, &kept_parts, &parts(&mut again));
        check_nothing_is_lost(name, &kept, &document);
        for pointer in AFTER_THE_END.into_iter().filter(|_| name == "sse") {
            *again.pointer_mut(pointer).unwrap() = kept.pointer(pointer).unwrap().clone();
        }
        keep_percentiles_of_failing(&kept, &mut again);
        if kept["verdict"]["sentence"] == "trustworthy" {
            assert_eq!(again["verdict"]["sentence"], "measured well", "the same in today's words");
            again["verdict"]["sentence"].clone_from(&kept["verdict"]["sentence"]);
        }
        check_nothing_is_lost(name, &kept, &again);
    }
}

/// Percentiles of calls of which some failed are derived by another rule since these runs were made, and figures of successes more exactly.
fn keep_percentiles_of_failing(kept: &Value, again: &mut Value) {
    if kept["outcomes"]["not_ok"].as_u64() > Some(0) {
        again["times"]["response"]["quantiles"].clone_from(&kept["times"]["response"]["quantiles"]);
    }
    for kind in ["requests", "tags"] {
        let number = kept.pointer(&format!("/names/{kind}")).and_then(Value::as_array).map_or(0, Vec::len);
        for place in 0..number {
            let of = |field: &str| format!("/names/{kind}/{place}/{field}");
            if kept.pointer(&of("response_not_ok")).is_none_or(Value::is_null) {
                continue;
            }
            for field in ["response/quantiles", "response_ok"].map(of) {
                again.pointer_mut(&field).unwrap().clone_from(kept.pointer(&field).unwrap());
            }
        }
    }
}

#[test]
fn every_value_of_a_decision_is_read() {
    for name in DECISIONS {
        let decided = decision::read(&bytes(name)).unwrap().unwrap();
        let again = decision::render(decision::Format::Json, decided.decision(), Style::default()).unwrap();
        check_nothing_is_lost(name, &pinned(name), &serde_json::from_slice(&again).unwrap());
    }
}

/// Key figures of each run, written out: the files themselves stay as they are.
#[test]
fn figures_are_those_of_the_run() {
    let p50 = "/times/response/quantiles/0/value_ns";
    let p99 = "/times/response/quantiles/4/value_ns";
    let expected = [
        ("closed", "/outcomes/statuses", value!([{"status": 200, "count": 400}])),
        ("closed", "/rates/ok_per_s", pinned("closed")["rates"]["answered_per_s"].clone()),
        ("closed", p50, value!(66_751)),
        ("closed", p99, value!(200_063)),
        ("open", "/outcomes/due", value!(288)),
        ("open", "/outcomes/not_ok", value!(23)),
        ("open", "/outcomes/statuses", value!([{"status": 200, "count": 265}, {"status": 503, "count": 7}])),
        ("open", "/outcomes/failures/0/failure", value!("timeout")),
        ("open", "/outcomes/failures/0/reasons/0/count", value!(16)),
        ("open", "/outcomes/waited_for_connection", value!(36)),
        ("open", "/plan/warmup_ns", value!(500_000_000)),
        ("open", "/series/1/due", value!(135)),
        ("open", "/thresholds/0/held", value!(true)),
        ("open", "/thresholds/1/got", value!("7.986111%")),
        ("open", p99, value!(250_216_447)),
        ("script", "/outcomes/statuses/1", value!({"status": 500, "count": 14})),
        ("script", p99, value!(4_046_847)),
        ("scenario", "/outcomes/due", value!(680)),
        ("scenario", "/names/most_users", value!(7)),
        ("scenario", "/names/groups/1/name", value!("browse/pause")),
        ("scenario", "/names/tags/1/name", value!("plan=free")),
        ("scenario", "/names/own/3/name", value!("page")),
        ("scenario", "/thresholds/0/got", value!("93.333333%")),
        ("scenario", "/thresholds/5/got", value!("15.7")),
        ("http2", "/outcomes/events", value!({"header bytes saved": 12_158})),
        ("http2", "/connections/made", value!(2)),
        ("http2", p99, value!(585_583)),
        ("sse", "/outcomes/messages/count", value!(160)),
        ("sse", "/thresholds/0/got", value!("30.48ms")),
        ("stalled", "/outcomes/failures/0/failure", value!("stalled")),
        ("stalled", "/outcomes/messages/streams", value!(6)),
        ("grpc", "/outcomes/messages/together", value!(80)),
        ("grpc", "/outcomes/status_names/0", value!("OK")),
        ("agents", "/outcomes/due", value!(200)),
        ("agents", "/agents/list/0/response_p99_ns", value!(290_193_407)),
        ("agents", "/agents/list/1/response_p99_ns", value!(299_368_447)),
        ("agents", "/agents/list/1/lag_p99_ns", value!(785_919)),
        ("lost", "/outcomes/unsent", value!(100)),
        ("lost", "/agents/unsent_lost", value!(100)),
        ("lost", "/agents/list/1/lost/after_ns", value!(2_000_000_000_u64)),
    ];
    for name in RUNS {
        let again = written(&summary(name));
        for (_, pointer, expected) in expected.iter().filter(|(run, ..)| *run == name) {
            assert_eq!(again.pointer(pointer), Some(expected), "{name}: {pointer}");
        }
    }
}

/// An agent's part holds all of its figures: without the other agent the run reads as its own.
#[test]
fn an_agent_is_left_out_of_a_pinned_run() {
    for (name, left_out, due, unsent, p99) in [
        ("agents", "a1", 100, 0, 299_368_447),
        ("agents", "a2", 100, 0, 290_193_407),
        ("lost", "a1", 200, 100, 1_950_351_359),
        ("lost", "a2", 200, 0, 228_735),
    ] {
        let whole = summary(name);
        let run = whole.run.without(&[left_out.to_owned()]).unwrap();
        let again = written(&Summary::new(whole.plan, run));
        let got = ["/outcomes/due", "/outcomes/unsent", "/times/response/quantiles/4/value_ns"];
        let got = got.map(|pointer| again.pointer(pointer).and_then(Value::as_u64));
        assert_eq!(got, [Some(due), Some(unsent), Some(p99)], "{name} without {left_out}");
        let seconds: u64 = again["series"].as_array().unwrap().iter().filter_map(|point| point["due"].as_u64()).sum();
        assert_eq!(seconds, due, "{name} without {left_out}");
    }
}
