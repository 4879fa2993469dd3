//! The JSON document: it fits its schema, can be read back, and says why when it cannot.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_decide::packing;
use brunt_judge::summary::Summary;
use brunt_plan::random::Random;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Numbers, Timing};
use brunt_record::figures::FigureByName as _;
use brunt_record::instrument::{ArrivalTime, CallTimes};
use brunt_record::outcome::Failure;
use brunt_record::recording::{AbortCause, Ending, Recording};
use brunt_record::snapshot::Snapshot;
use brunt_record::time::Tick;
use brunt_record::timeline::DueLog;
use brunt_record::watched::{WatchedFigure, WatchedUnit};
use brunt_report::{Detail, Format, Style, json, render};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use serde_json::{Value, json as value};

mod fixtures;

fn schema() -> Value {
    serde_json::from_str(brunt_report::schema::RESULT).unwrap()
}

fn document(summary: &Summary) -> Vec<u8> {
    render(Format::Json, summary, Style::default()).unwrap()
}

fn clean() -> Value {
    serde_json::from_slice(&document(&fixtures::clean())).unwrap()
}

#[test]
fn every_document_fits_the_schema() {
    let schema = schema();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for (name, summary) in fixtures::all().into_iter().chain(std::iter::once(("secretive", fixtures::secretive()))) {
        let document = serde_json::from_slice(&document(&summary)).unwrap();
        let errors: Vec<_> =
            validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

/// Every field has a doc comment; the tag of a variant has that of the variant.
#[test]
fn every_field_is_described() {
    fn check(schema: &Value, path: &str) {
        if let Some(Value::Object(fields)) = schema.get("properties") {
            for (name, field) in fields {
                let is_variant = schema.get("description").is_some() && fields.len() == 1;
                let is_described = field.get("description").is_some() || field.get("const").is_some() || is_variant;
                assert!(is_described, "{path}/{name} has no description");
            }
        }
        match schema {
            Value::Object(parts) => parts.iter().for_each(|(name, part)| check(part, &format!("{path}/{name}"))),
            Value::Array(parts) => parts.iter().for_each(|part| check(part, path)),
            _ => {}
        }
    }
    check(&schema(), "result");
    check(&serde_json::from_str(brunt_report::schema::DECISION).unwrap(), "decision");
}

/// Where only a lower bound of a percentile is known, its interval has no upper end.
#[test]
fn what_is_at_least_has_no_end() {
    fn check(value: &Value, seen: &mut u32, name: &str) {
        match value {
            Value::Object(fields) => {
                if fields.get("at_least") == Some(&Value::Bool(true))
                    && let Some(interval) = fields.get("interval").filter(|interval| interval.is_object())
                {
                    *seen += 1;
                    assert!(interval["high_ns"].is_null(), "{name}: {value:#}");
                }
                fields.values().for_each(|field| check(field, seen, name));
            }
            Value::Array(parts) => parts.iter().for_each(|part| check(part, seen, name)),
            _ => {}
        }
    }
    let mut seen = 0;
    for (name, summary) in fixtures::all() {
        let written = render(Format::Json, &summary, Style::default()).unwrap();
        check(&serde_json::from_slice(&written).unwrap(), &mut seen, name);
    }
    assert!(seen > 3, "{seen}");
}

#[test]
fn a_broken_document_does_not_fit() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let broken: [fn(&mut Value); 8] = [
        |doc| doc["surprise"] = value!(1),
        |doc| doc["version"] = value!(4),
        |doc| doc["outcomes"]["due"] = value!(-1),
        |doc| doc["outcomes"]["error_ratio"] = value!(1.5),
        |doc| doc["verdict"]["judgement"] = value!("splendid"),
        |doc| doc["times"]["response"]["p98_ns"] = value!(1),
        |doc| doc["histograms"]["response"]["counts"][0] = value!([1]),
        |doc| _ = doc.as_object_mut().unwrap().remove("rates"),
    ];
    for (i, damage) in broken.iter().enumerate() {
        let mut document = clean();
        damage(&mut document);
        assert!(!validator.is_valid(&document), "damage {i} went unnoticed");
    }
}

/// The bytes of every format, in each detail.
fn views(summary: &Summary) -> Vec<(&'static str, Vec<u8>)> {
    let of = |format: Format, detail| {
        (format.name(), render(format, summary, Style { detail, ..Style::default() }).unwrap())
    };
    Format::ALL.into_iter().flat_map(|format| [of(format, Detail::Brief), of(format, Detail::Verbose)]).collect()
}

/// Asserts that the run says the same from a file and from the store, and that its file is written again byte for byte.
fn assert_same_from_anywhere(name: &str, summary: &Summary) {
    let expected = views(summary);
    let from_file = json::read(&document(summary)).unwrap();
    let (plan, run) = packing::unpack_run(&packing::pack(&(&summary.plan, &summary.run)).unwrap()).unwrap();
    for (from, again) in [("file", Box::new(from_file)), ("store", Box::new(Summary::new(plan, run)))] {
        for ((format, shown), (_, again)) in expected.iter().zip(views(&again)) {
            let [shown, again] = [shown, &again].map(|bytes| String::from_utf8_lossy(bytes));
            for (line, other) in shown.lines().zip(again.lines()) {
                assert_eq!(other, line, "{name}, {format}, from the {from}");
            }
            assert_eq!(again, shown, "{name}, {format}, from the {from}");
        }
    }
}

#[test]
fn every_view_is_the_same_from_the_run_a_file_and_the_store() {
    for (name, summary) in fixtures::all() {
        assert_same_from_anywhere(name, &summary);
    }
}

/// Calls of a second: how long each took in microseconds, its status, and the number of its name.
type Calls = Vec<(u64, u16, u8)>;

fn calls() -> impl Strategy<Value = Calls> {
    let status = prop_oneof![4 => Just(200_u16), 1 => Just(404), 1 => Just(503)];
    prop::collection::vec((1_u64..5_000_000, status, 0_u8..4), 0..40)
}

/// A run of these seconds, of which every eighth call fails, and the calls that ended after it.
fn run_of(seconds: &[Calls], drained: &Calls, warmup_ns: u64) -> Summary {
    let mut plan = fixtures::clean().plan;
    (plan.warmup_ns, plan.watches) = (warmup_ns, vec!["pid:7".parse().unwrap()]);
    let snapshot = |calls: &Calls| {
        let mut snapshot = Snapshot::with_numbers([(Counter::Due, calls.len() as u64)]);
        for (micros, status, name) in calls {
            let ns = micros * 1000;
            let named = snapshot.figures.requests.named(&format!("GET /{name}"));
            named.due();
            snapshot.times.record(Timing::Response, ns);
            if micros % 8 == 0 {
                named.failed(Failure::Timeout, ns, Some(ns));
                snapshot.failures.record(Failure::Timeout, "no answer in 1s");
                snapshot.times.record(Timing::Failed, ns);
            } else {
                named.answered(*status, ns, ns / 2);
                snapshot.statuses.record(*status);
                snapshot.times.record(Timing::Service, ns / 2);
            }
            let cpu = WatchedFigure::value(WatchedUnit::Cores, *micros as f64 / 3.0);
            snapshot.watched.named("cpu").merge(&cpu);
        }
        snapshot
    };
    let mut run = Recording::begun(1_767_225_600_000);
    for calls in seconds {
        let mut second = snapshot(calls);
        second.count_ends(&plan.ok_status);
        run.series.push(SECOND_NS, &second, &plan.ok_status);
        run.measured.merge(&second);
        run.measured_ns += SECOND_NS;
    }
    run.drained = snapshot(drained);
    Summary::new(plan, run)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_run_is_read_back_as_it_was(
        seconds in prop::collection::vec(calls(), 0..8), drained in calls(), warmup_ns in 0..3 * SECOND_NS,
    ) {
        assert_same_from_anywhere("any", &run_of(&seconds, &drained, warmup_ns));
    }

    /// Bytes of a recording that somebody changed are an error, or a run that every view can show.
    #[test]
    fn a_damaged_recording_is_refused_or_shown(
        fixture in any::<prop::sample::Index>(), at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let all = fixtures::all();
        let (name, summary) = fixture.get(&all);
        let mut plain = brunt_record::bytes::to_bytes(&summary.run);
        for (at, byte) in &at {
            let at = at.index(plain.len());
            plain[at] = *byte;
        }
        if let Some(cut) = cut {
            plain.truncate(cut.index(plain.len()));
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&plain).unwrap();
        let mut document: Value = serde_json::from_slice(&document(summary)).unwrap();
        document["recording"] = STANDARD.encode(encoder.finish().unwrap()).into();
        match json::read(document.to_string().as_bytes()) {
            Ok(read) => prop_assert!(!views(&read).is_empty()),
            Err(error) => prop_assert!(matches!(error, json::ReadError::Recording { .. }), "{name}: {error}"),
        }
    }

    /// So are bytes of a file, wherever they are changed or cut.
    #[test]
    fn a_damaged_file_is_refused_or_shown(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = document(&fixtures::streams());
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        if let Ok(read) = json::read(&bytes) {
            prop_assert!(!views(&read).is_empty());
        }
    }
}

#[test]
fn a_remark_names_the_conditions_that_it_is_about() {
    let remark = |summary: &Summary, about: &str| {
        let document: Value = serde_json::from_slice(&document(summary)).unwrap();
        let remarks = document["remarks"].as_array().unwrap();
        remarks
            .iter()
            .find(|remark| remark["about"] == about)
            .unwrap_or_else(|| panic!("{about}: {remarks:#?}"))
            .clone()
    };
    let Summary { mut plan, mut run, .. } = fixtures::failing();
    plan.thresholds.clear();
    plan.max_error_rate = 0.001;
    let failing = Summary::new(plan.clone(), run.clone());
    assert_eq!(remark(&failing, "too_many_failed")["thresholds"], value!(["error_rate<=0.1%"]));
    plan.thresholds = vec!["timeout==0 abort".parse().unwrap(), "p99<1h".parse().unwrap()];
    let threshold = plan.thresholds[0].without_abort();
    let cause = AbortCause::Threshold { place: 0, threshold, got: "1".to_owned(), after_ns: SECOND_NS, at_once: false };
    run.ending = Ending::Aborted(cause);
    let aborted = Summary::new(plan, run);
    assert_eq!(remark(&aborted, "ending")["thresholds"], value!([aborted.thresholds[0].condition.to_string()]));
}

#[test]
fn figures_are_not_read_back() {
    let mut document = clean();
    let expected = json::read(document.to_string().as_bytes()).unwrap();
    for key in ["verdict", "rates", "times", "outcomes", "thresholds", "series", "histograms", "measured"] {
        document[key] = value!("changed");
    }
    assert_eq!(json::read(document.to_string().as_bytes()).unwrap(), expected);
    document
        .as_object_mut()
        .unwrap()
        .retain(|key, _| ["format", "version", "plan", "recording"].contains(&key.as_str()));
    assert_eq!(json::read(document.to_string().as_bytes()).unwrap(), expected);
}

#[test]
fn outcomes_sum_up_by_themselves() {
    for (name, summary) in fixtures::all() {
        let written: Value = serde_json::from_slice(&document(&summary)).unwrap();
        let outcome = |key: &str| written["outcomes"][key].as_u64().unwrap();
        let ended: u64 = ["answered", "failed", "unfinished", "unsent", "unknown"].map(outcome).iter().sum();
        assert_eq!(outcome("due"), ended, "{name}");
    }
}

/// Ten minutes, each second of which is full of different times.
#[test]
fn ten_minutes_take_two_megabytes() {
    let mut random = Random::new(7, 1);
    let plan = fixtures::open().plan;
    let mut run = Recording::begun(1_767_225_600_000);
    for second in 0..600_u64 {
        let mut snapshot =
            Snapshot { numbers: Numbers::of_health(SECOND_NS, 620_000_000, 1_000_000), ..Snapshot::default() };
        let mut log = DueLog::beginning_at(Tick::EPOCH);
        for call in 0..500_u64 {
            let (due, spread) =
                (second * SECOND_NS + call * 2_000_000, (0..4).map(|_| random.unit()).sum::<f64>().exp());
            let (sent, took) = (due + 20_000, (spread * 1e6) as u64);
            let arrived = sent + took;
            let times = CallTimes {
                due,
                ready: due,
                sent,
                exposed: u64::MAX,
                first_byte: Some(arrived),
                arrived: ArrivalTime::At(arrived),
                read: arrived + 9_000,
            };
            snapshot.arrived(&times, 1);
            snapshot.times.record(Timing::Lag, 20_000 + (random.unit() * 30_000.0) as u64);
            snapshot.statuses.record(200);
            snapshot.numbers.add(Counter::Due, 1);
            log.answered(Tick::from_ns(due), took);
            log.completed(Tick::from_ns(arrived));
        }
        snapshot.timeline = log.take();
        snapshot.count_ends(&plan.ok_status);
        run.series.push(SECOND_NS, &snapshot, &plan.ok_status);
        run.measured.merge(&snapshot);
        run.measured_ns += SECOND_NS;
    }
    let written = document(&Summary::new(plan, run));
    assert!(written.len() <= 2_000_000, "{} bytes", written.len());
}

#[test]
fn a_field_of_a_later_brunt_does_no_harm() {
    let mut document = clean();
    document["later"] = value!({"more": true});
    document["rates"]["later_per_s"] = value!(1.0);
    assert!(json::read(&serde_json::to_vec(&document).unwrap()).is_ok());
}

#[test]
fn what_cannot_be_read_says_why() {
    let error = |bytes: &[u8]| json::read(bytes).unwrap_err().to_string();
    assert!(error(b"{\"format\": ").starts_with("line 1, column 11: not JSON: "));
    assert!(error(b"").starts_with("line 1, column 0: not JSON: "));
    for other in ["[]", "{}", "7", "{\"format\": \"har\"}", "{\"format\": \"brunt-result\"}"] {
        assert!(error(other.as_bytes()).starts_with("expected a result that brunt wrote as JSON"), "{other}");
    }
    assert_eq!(
        error(b"{\"format\": \"brunt-result\", \"version\": 9}"),
        "the result has format version 9, this brunt reads version 3: read it with the brunt that wrote it"
    );
    assert!(error(b"{\"format\": \"brunt-result\", \"version\": 1}").contains("drafts of brunt wrote"));
    let mut document = clean();
    document["plan"]["seed"] = value!("many");
    let broken = serde_json::to_vec_pretty(&document).unwrap();
    let text = error(&broken);
    assert!(text.contains("not a whole result: invalid type: string \"many\""), "{text}");
}

#[test]
fn secrets_are_in_no_format() {
    for format in Format::ALL {
        let text = String::from_utf8(render(format, &fixtures::secretive(), Style::default()).unwrap()).unwrap();
        assert!(!text.contains("hunter2"), "{}", format.name());
    }
    let json = String::from_utf8(document(&fixtures::secretive())).unwrap();
    assert!(json.contains("[redacted]"));
}
