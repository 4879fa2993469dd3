//! A store that an earlier brunt wrote is read whole: each value of a pinned result is in what is loaded of it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use brunt_decide::decision::KeptDecision;
use brunt_decide::kept::Filter;
use brunt_report::{Format, Style, decision, render};
use brunt_store::{RunSelector, Store, StoredResult};
use flate2::read::GzDecoder;
use serde_json::Value;

/// The pinned store, unpacked into a directory of its own that goes with its test.
struct Pinned(PathBuf);

impl Pinned {
    fn unpacked(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("brunt-store-pinned-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("runs.db"), read("tests/pinned/v1/runs.db.gz")).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("runs.db")
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// What this brunt writes of the pinned result with this name, which `brunt-report` holds against the file itself.
fn result(name: &str) -> Value {
    let bytes = read(&format!("../report/tests/pinned/v1/{name}.json.gz"));
    let again = if let Some(decided) = decision::read(&bytes).unwrap() {
        written(&decided)
    } else {
        let summary = brunt_report::json::read_whole(&bytes).unwrap().summary();
        render(Format::Json, &summary, Style::default()).unwrap()
    };
    serde_json::from_slice(&again).unwrap()
}

fn written(decided: &KeptDecision) -> Vec<u8> {
    decision::render(decision::Format::Json, decided.decision(), Style::default()).unwrap()
}

#[test]
fn every_run_is_loaded_whole() {
    let pinned = Pinned::unpacked("loaded");
    let mut store = Store::open_kept(&pinned.file()).unwrap();
    for (number, name) in (1..).zip(["closed", "open", "scenario", "agents", "lost"]) {
        assert_eq!(store.number(&RunSelector::Name(name.into())).unwrap(), number, "{name}");
        let summary = store.load(&RunSelector::Number(number)).unwrap();
        let mut shown: Value =
            serde_json::from_slice(&render(Format::Json, &summary, Style::default()).unwrap()).unwrap();
        // A run in a store is judged anew, by the default limit of failures as well; a result file says what it said.
        shown["thresholds"].as_array_mut().unwrap().retain(|threshold| threshold["implicit"] != true);
        let mut expected = result(name);
        // Nor do its statements tell of a default that it did not know.
        for result in [&mut shown, &mut expected] {
            assert!(result.as_object_mut().unwrap().remove("statements").is_some(), "{name}");
            // Today's brunt finds more.
            result.as_object_mut().unwrap().remove("remarks");
        }
        // A result of before does not say which successes came after the measured part.
        let [exact, shared] = [&mut shown, &mut expected]
            .map(|result| result["rates"].as_object_mut().unwrap().remove("ok_per_s").unwrap());
        let (exact, shared) = (exact.as_f64().unwrap(), shared.as_f64().unwrap());
        assert!((exact - shared).abs() <= 0.05 * exact, "{name}: {exact} and {shared}");
        // What was found is the same; its words are today's.
        for result in [&mut shown, &mut expected] {
            for finding in result["verdict"]["findings"].as_array_mut().unwrap() {
                let finding = finding.as_object_mut().unwrap();
                assert!(finding.remove("message").is_some() && finding.remove("advice").is_some(), "{name}");
            }
            for threshold in result["thresholds"].as_array_mut().unwrap() {
                assert!(threshold.as_object_mut().unwrap().remove("got").is_some(), "{name}");
            }
            let sentence = result["verdict"]["sentence"].as_str().unwrap();
            result["verdict"]["sentence"] = sentence.split(':').next().unwrap().into();
        }
        for (key, value) in expected.as_object().unwrap() {
            assert!(shown.get(key) == Some(value), "{name}: {key} differs from that of the pinned result");
        }
        assert_eq!(shown.as_object().unwrap().len(), expected.as_object().unwrap().len(), "{name}");
    }
    // Runs of the decision, of which there is no result beside.
    for (number, due, p99) in [(6, 53, 8_762_973), (7, 58, 17_273_731), (8, 60, 33_973_398)] {
        let summary = store.load(&RunSelector::Number(number)).unwrap();
        let response = summary.times.response.as_ref().unwrap();
        assert_eq!((summary.total.due(), response.quantiles[4].value().value), (due, p99), "{number}");
    }
}

#[test]
fn a_decision_is_loaded_with_its_runs() {
    let pinned = Pinned::unpacked("decision");
    let mut store = Store::open_kept(&pinned.file()).unwrap();
    let StoredResult::Decision(decided, runs) = store.kept(&RunSelector::Name("sweep".into())).unwrap() else {
        panic!("sweep is no decision")
    };
    assert_eq!(runs, [6, 7, 8]);
    assert_eq!(serde_json::from_slice::<Value>(&written(&decided)).unwrap(), result("sweep"));
}

#[test]
fn lists_and_trends_have_every_run() {
    let pinned = Pinned::unpacked("lists");
    let mut store = Store::open_kept(&pinned.file()).unwrap();
    let listed: Vec<_> = store.list(&[]).unwrap();
    let main: Vec<_> = listed.iter().filter(|entry| entry.label.tags == [("branch".into(), "main".into())]).collect();
    let got: Vec<_> = main.iter().map(|entry| (entry.number, entry.due, entry.p50_ns, entry.p99_ns)).collect();
    let expected = [
        (5, 400, Some(99_263), Some(1_910_505_471)),
        (4, 200, Some(3_569_663), Some(293_076_991)),
        (3, 680, Some(103_743), Some(3_319_807)),
        (2, 288, Some(4_227_071), Some(250_216_447)),
        (1, 400, Some(66_751), Some(200_063)),
    ];
    assert_eq!(got, expected);
    let thresholds: Vec<_> = main.iter().map(|entry| (entry.thresholds, entry.thresholds_failed)).collect();
    assert_eq!(thresholds, [(0, 0), (1, 0), (6, 1), (3, 2), (0, 0)]);
    assert_eq!(main[2].script.as_deref(), Some("shop.lua"));
    let trend = store.trend(&Filter::default(), "p99", "branch", 10).unwrap();
    let points: Vec<_> = trend.iter().map(|point| (point.number, point.value, point.limit, point.held)).collect();
    assert_eq!(points[..2], [(1, 200_063.0, None, true), (2, 250_216_447.0, Some(1e9), true)]);
    // Runs of a decision are no part of a trend.
    assert_eq!(points.len(), 5);
    let (figures, limits) = store.figures_of(2).unwrap();
    assert!(figures.iter().any(|figure| figure.name == "due" && figure.value == 288.0));
    let held: Vec<_> = limits.iter().map(|limit| (limit.threshold.as_str(), limit.held)).collect();
    assert_eq!(held, [("p99<1s", true), ("error_rate<1%", false), ("timeout==0", false)]);
}

/// It goes on being the same store: what is written to it later stands beside what is there.
#[test]
fn a_run_is_added_to_a_pinned_store() {
    let pinned = Pinned::unpacked("added");
    let mut store = Store::open(&pinned.file()).unwrap();
    let summary = store.load(&RunSelector::Name("open".into())).unwrap();
    let number = store.save(&summary, &brunt_decide::kept::Label::default(), "! interrupted").unwrap();
    assert_eq!(number, 10);
    assert_eq!(store.load(&RunSelector::Number(number)).unwrap().total.due(), 288);
    let listed = store.list(&[]).unwrap();
    assert_eq!((listed.len(), listed[0].headline.as_deref()), (10, Some("! interrupted")));
    assert!(listed[1..].iter().all(|entry| entry.headline.is_none()), "brunt of then kept none");
}
