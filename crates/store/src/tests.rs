#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use brunt_decide::kept::{Filter, Page, TrendPoint};
use brunt_judge::remarks::Tone;
use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_plan::target::Url;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::recording::Recording;

use super::*;

/// A directory that goes with its test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("brunt-store-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("a/b/runs.db")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run with a second of calls, the number of which tells it from others.
fn summary(calls: u64) -> Summary {
    let target = Url::parse("http://127.0.0.1:8080/").unwrap().target;
    let plan = Plan::of_calls(target, ProtocolOptions::default());
    let mut run = Recording {
        measured_ns: 1_000_000_000,
        measured: brunt_record::snapshot::Snapshot::with_numbers([(Counter::Due, calls)]),
        ..Recording::begun(1_767_225_600_000)
    };
    for i in 0..calls {
        run.measured.statuses.record(200);
        run.measured.times.record(Timing::Response, 1_000_000 + i * i);
        run.measured.times.record(Timing::Service, 900_000 + i);
    }
    run.measured.count_ends(&plan.ok_status);
    run.series.push(1_000_000_000, &run.measured, &plan.ok_status);
    Summary::new(plan, run)
}

/// What a run is kept under.
const HEADLINE: &str = "✓ the threshold held: 1 of 1 call succeeded, 1 ok/s";

fn headline() -> Headline {
    Headline { tone: Tone::Good, line: HEADLINE.to_owned() }
}

fn named(name: &str) -> Label {
    Label { name: Some(name.to_owned()), tags: vec![("branch".into(), name.to_owned())] }
}

#[test]
fn a_run_comes_back_with_every_figure() {
    let directory = Directory::new();
    let mut store = Store::open(&directory.file()).unwrap();
    let summary = summary(1000);
    let number = store.save(&summary, &named("first"), headline()).unwrap();
    drop(store);
    let mut store = Store::open_kept(&directory.file()).unwrap();
    for which in [RunSelector::Last, RunSelector::Number(number), RunSelector::Name("first".into())] {
        let loaded = store.load(&which).unwrap();
        let listed = store.list(&[]).unwrap().remove(0);
        assert_eq!((listed.headline.as_deref(), listed.tone), (Some(HEADLINE), Some(Tone::Good)));
        assert_eq!(listed.judgement, Some(store.load(&RunSelector::Last).unwrap().verdict.judgement));
        let whole = |summary: &Summary| serde_json::to_value(&summary.run).unwrap();
        assert_eq!(whole(&loaded), whole(&summary));
    }
}

#[test]
fn lists_have_the_newest_first_and_can_be_narrowed() {
    let directory = Directory::new();
    let mut store = Store::open(&directory.file()).unwrap();
    for (name, calls) in [("a", 10), ("b", 20), ("a", 30)] {
        store.save(&summary(calls), &named(name), headline()).unwrap();
    }
    let due: Vec<_> = store.list(&[]).unwrap().iter().map(|entry| entry.due).collect();
    assert_eq!(due, [30, 20, 10]);
    let tagged = store.list(&[("branch".into(), "a".into())]).unwrap();
    assert_eq!(tagged.iter().map(|entry| entry.due).collect::<Vec<_>>(), [30, 10]);
    assert_eq!(store.load(&RunSelector::Name("a".into())).unwrap().total.numbers.get(Counter::Due), 30);
    assert_eq!(tagged[0].label, named("a"));
}

#[test]
fn lists_tell_scripts_apart_that_have_one_target() {
    let directory = Directory::new();
    let mut store = Store::open(&directory.file()).unwrap();
    let mut scripted = summary(1);
    scripted.plan.script = Some(brunt_plan::plan::Script {
        file: "examples/counter.lua".into(),
        content: brunt_plan::content::Content(Vec::new()),
        args: Vec::new(),
    });
    store.save(&scripted, &Label::default(), headline()).unwrap();
    let entries = store.list(&[]).unwrap();
    assert_eq!(entries[0].script.as_deref(), Some("examples/counter.lua"));
}

#[test]
fn numbers_are_never_used_twice() {
    let directory = Directory::new();
    let mut store = Store::open(&directory.file()).unwrap();
    let numbers: Vec<_> = (0..3).map(|_| store.save(&summary(1), &named("x"), headline()).unwrap()).collect();
    assert_eq!(store.remove(&[RunSelector::Last, RunSelector::Number(numbers[0])]).unwrap(), 2);
    assert!(store.save(&summary(1), &Label::default(), headline()).unwrap() > numbers[2]);
    let error =
        store.remove(&[RunSelector::Number(numbers[1]), RunSelector::Number(numbers[0])]).unwrap_err().to_string();
    assert!(error.starts_with("there is no run 1 in "), "{error}");
    assert_eq!(store.list(&[]).unwrap().len(), 2, "all of them or none");
    assert_eq!(store.prune(1).unwrap(), 1);
    let tags: i64 = store.connection.query_row("SELECT count(*) FROM tags", [], |row| row.get(0)).unwrap();
    assert_eq!(tags, 0, "tags go with their run");
}

#[test]
fn the_oldest_go_when_there_are_too_many_or_they_take_too_much() {
    let directory = Directory::new();
    let mut store = Store::open(&directory.file()).unwrap();
    store.most_runs = 3;
    for calls in 1..=5 {
        store.save(&summary(calls), &Label::default(), headline()).unwrap();
    }
    let due = |store: &mut Store| store.list(&[]).unwrap().iter().map(|entry| entry.due).collect::<Vec<_>>();
    assert_eq!(due(&mut store), [5, 4, 3]);
    store.most_bytes = store.list(&[]).unwrap()[0].content_bytes * 2 + 100;
    store.save(&summary(6), &Label::default(), headline()).unwrap();
    assert_eq!(due(&mut store), [6, 5]);
    store.most_bytes = 10;
    assert!(matches!(store.save(&summary(7), &Label::default(), headline()), Err(StoreError::TooLarge { .. })));
}

#[test]
fn two_at_once_both_keep_their_runs() {
    let directory = Directory::new();
    let path = directory.file();
    let save = |calls| {
        let path = path.clone();
        std::thread::spawn(move || {
            for _ in 0..10 {
                Store::open(&path).unwrap().save(&summary(calls), &Label::default(), headline()).unwrap();
            }
        })
    };
    let threads: Vec<_> = (1..=4).map(save).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(Store::open_kept(&path).unwrap().list(&[]).unwrap().len(), 40);
}

#[test]
fn a_full_disk_loses_nothing_but_the_run() {
    let directory = Directory::new();
    let mut store = Store::open(&directory.file()).unwrap();
    store.save(&summary(1), &Label::default(), headline()).unwrap();
    let pages: i64 = store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    // SQLite says the same when its file may not grow as when the disk is full.
    store.connection.pragma_update(None, "max_page_count", pages).unwrap();
    let error = store.save(&summary(50_000), &Label::default(), headline()).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().starts_with("no room in "), "{error}");
    drop(store);
    assert_eq!(Store::open_kept(&directory.file()).unwrap().list(&[]).unwrap().len(), 1);
}

#[test]
fn files_that_are_not_ours_stay_as_they_are() {
    let directory = Directory::new();
    let path = directory.0.join("other");
    let refused = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        let written = Store::open(&path).err().map(|error| error.to_string());
        let read = Store::open_kept(&path).err().map(|error| error.to_string());
        assert_eq!(std::fs::read(&path).unwrap(), content, "it was changed");
        (written.unwrap(), read.unwrap())
    };
    let text = refused(b"a text that is longer than a header of SQLite has to be, with nothing of it");
    assert!(text.0.contains("is damaged") && text.1.contains("move it away"), "{text:?}");

    std::fs::remove_file(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE shopping (item TEXT)").unwrap();
    drop(other);
    let foreign = refused(&std::fs::read(&path).unwrap());
    assert!([&foreign.0, &foreign.1].iter().all(|error| error.ends_with("belongs to another program")), "{foreign:?}");

    std::fs::remove_file(&path).unwrap();
    Store::open(&path).unwrap().connection.pragma_update(None, "user_version", 7).unwrap();
    let newer = refused(&std::fs::read(&path).unwrap());
    assert!(newer.0.contains("made by a later brunt (its format is 7, this one knows 4)"), "{newer:?}");

    std::fs::remove_file(&path).unwrap();
    Store::open(&path).unwrap().connection.pragma_update(None, "user_version", 2).unwrap();
    let draft = refused(&std::fs::read(&path).unwrap());
    assert!([&draft.0, &draft.1].iter().all(|error| error.contains("made by a draft of brunt")), "{draft:?}");

    let missing = Store::open_kept(&directory.0.join("nothing")).unwrap_err().to_string();
    assert!(missing.starts_with("no runs are kept in "), "{missing}");
}

/// Whatever is wrong with the file, there is an error or a run, and no panic.
#[test]
fn a_damaged_file_is_an_error() {
    let directory = Directory::new();
    let mut store = Store::open(&directory.file()).unwrap();
    store.save(&summary(5000), &named("x"), headline()).unwrap();
    drop(store);
    let whole = std::fs::read(directory.file()).unwrap();
    let mut errors = 0;
    for at in (0..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        std::fs::write(directory.file(), &damaged).unwrap();
        let loaded = Store::open_kept(&directory.file()).and_then(|mut store| store.load(&RunSelector::Last));
        errors += usize::from(loaded.is_err());
        let _ =
            Store::open(&directory.file()).and_then(|mut store| store.save(&summary(1), &Label::default(), headline()));
    }
    assert!(errors > 0);
    std::fs::write(directory.file(), &whole[..whole.len() / 2]).unwrap();
    let error = Store::open_kept(&directory.file()).and_then(|mut store| store.load(&RunSelector::Last)).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = Directory::new();
    Store::open(&directory.file()).unwrap();
    assert_eq!(std::fs::metadata(directory.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

/// A comparison of nothing, which tells it from others by `a`.
fn decided(a: &str) -> KeptDecision {
    KeptDecision::Comparison(brunt_decide::compare::ComparedRuns {
        origin: brunt_plan::plan::Origin::default(),
        a: a.to_owned(),
        b: "b".to_owned(),
        how: String::new(),
        differing: Vec::new(),
        comparison: None,
        conditions: Vec::new(),
        interrupted: false,
        runs: Vec::new(),
        lacking: brunt_decide::short::Lacking::default(),
    })
}

#[test]
fn a_decision_is_kept_with_the_runs_that_it_rests_on() {
    let directory = Directory::new();
    let mut store = Store::open(&directory.file()).unwrap();
    let other = store.save(&summary(1), &named("other"), headline()).unwrap();
    let runs = [2, 3].map(|calls| store.save(&summary(calls), &Label::default(), headline()).unwrap());
    let number = store.save_decision(&decided("x"), "as fast".to_owned(), &runs, &named("compared")).unwrap();
    let StoredResult::Decision(kept, rests_on) = store.kept(&RunSelector::Name("compared".into())).unwrap() else {
        panic!()
    };
    assert_eq!((*kept, rests_on), (decided("x"), runs.to_vec()));
    assert!(matches!(store.load(&RunSelector::Last), Err(StoreError::NotARun { .. })));
    let of: Vec<_> =
        store.list(&[]).unwrap().into_iter().map(|entry| (entry.number, entry.kind, entry.part_of)).collect();
    let run = |number, part_of| (number, KeptKind::Run, part_of);
    let expected = [
        (number, KeptKind::Comparison, None),
        run(runs[1], Some(number)),
        run(runs[0], Some(number)),
        run(other, None),
    ];
    assert_eq!(of, expected);
    // What it rests on goes with it.
    store.remove(&[RunSelector::Number(number)]).unwrap();
    assert_eq!(store.list(&[]).unwrap().into_iter().map(|entry| entry.number).collect::<Vec<_>>(), [other]);
}

/// A store with a run for each of these limits on p99, tagged with its version.
fn nightly(directory: &Directory, limits: &[&str]) -> Store {
    let mut store = Store::open(&directory.file()).unwrap();
    for (night, limit) in (1..).zip(limits) {
        let Summary { mut plan, mut run, .. } = summary(10 * night);
        plan.thresholds = vec![format!("p99<{limit}").parse().unwrap()];
        run.started_unix_ms += night * 86_400_000;
        let tags = vec![("version".to_owned(), format!("1.{}", night / 2)), ("branch".to_owned(), "main".to_owned())];
        store.save(&Summary::new(plan, run), &Label { name: Some("Nightly".to_owned()), tags }, headline()).unwrap();
    }
    store
}

#[test]
fn a_page_is_a_part_of_what_is_meant() {
    let directory = Directory::new();
    let mut store = nightly(&directory, &["1s"; 5]);
    store.save(&summary(1), &named("other"), headline()).unwrap();
    let numbers = |page: &Page| page.runs.iter().map(|listed| listed.entry.number).collect::<Vec<_>>();
    let all = Filter::default();
    let first = store.page(&all, 0, 4).unwrap();
    assert_eq!((numbers(&first), first.count), (vec![6, 5, 4, 3], 6));
    assert_eq!(numbers(&store.page(&all, 4, 4).unwrap()), [2, 1]);
    assert!(store.page(&all, u64::MAX, 4).unwrap().runs.is_empty());
    let mut counts = Vec::new();
    let mut count = |filter: Filter| counts.push(store.page(&filter, 0, 10).unwrap().count);
    count(Filter { name: "nightLY".into(), ..Filter::default() });
    count(Filter { tags: vec![("version".into(), "1.1".into())], ..Filter::default() });
    count(Filter { tags: vec![("version".into(), "1.1".into()), ("branch".into(), "x".into())], ..Filter::default() });
    count(Filter { target: "127.0.0.1:8080".into(), ..Filter::default() });
    // What means something to SQL means itself.
    count(Filter { target: "%".into(), ..Filter::default() });
    count(Filter { name: "' OR 1 --".into(), ..Filter::default() });
    count(Filter { script: "x".into(), ..Filter::default() });
    count(Filter { kind: Some(KeptKind::Sweep), ..Filter::default() });
    assert_eq!(counts, [5, 2, 0, 6, 0, 0, 0, 0]);
    assert_eq!(store.tags().unwrap().len(), 5);
    let listed = store.listed(3).unwrap();
    assert_eq!(listed.sparkline.unwrap().answered_per_s, [30.0]);
    assert!(matches!(store.listed(99), Err(StoreError::NoSuchRun { .. })));
}

#[test]
fn a_trend_has_each_runs_figure_threshold_and_mark() {
    let directory = Directory::new();
    let mut store = nightly(&directory, &["1s", "1s", "500us"]);
    let filter = Filter { name: "nightly".into(), ..Filter::default() };
    let trend = store.trend(&filter, "p99", "version", 10).unwrap();
    let of = |point: &TrendPoint| (point.number, point.limit, point.held, point.mark.clone().unwrap());
    let expected = [
        (1, Some(1e9), true, "1.0".to_owned()),
        (2, Some(1e9), true, "1.1".to_owned()),
        (3, Some(5e5), false, "1.1".to_owned()),
    ];
    assert_eq!(trend.iter().map(of).collect::<Vec<_>>(), expected);
    assert!(trend[0].value >= 1e6 && trend[0].started_unix_ms < trend[1].started_unix_ms);
    let newest = store.trend(&filter, "rate", "", 2).unwrap();
    let of = |point: &TrendPoint| (point.number, point.value, point.limit, point.mark.is_some());
    assert_eq!(newest.iter().map(of).collect::<Vec<_>>(), [(2, 20.0, None, false), (3, 30.0, None, false)]);
    assert!(store.figures(&filter).unwrap().contains(&"p99.9".to_owned()));
    let (figures, limits) = store.figures_of(3).unwrap();
    assert!(figures.iter().any(|figure| figure.name == "due" && figure.value == 30.0));
    assert_eq!((limits[0].threshold.as_str(), limits[0].held), ("p99<500us", false));
    store.remove(&[RunSelector::Number(3)]).unwrap();
    assert!(store.figures_of(3).unwrap() == (Vec::new(), Vec::new()), "figures go with their run");
}

#[test]
fn a_row_that_cannot_be_read_costs_no_other() {
    let directory = Directory::new();
    let mut store = nightly(&directory, &["1s"; 3]);
    store.connection.execute("UPDATE runs SET due = -1, sparkline = '{' WHERE number = 2", []).unwrap();
    store.connection.execute("UPDATE runs SET sparkline = '[]', content = x'00' WHERE number = 3", []).unwrap();
    let page = store.page(&Filter::default(), 0, 10).unwrap();
    let shown: Vec<_> = page.runs.iter().map(|run| (run.entry.number, run.sparkline.is_some())).collect();
    assert_eq!((shown, page.unreadable), (vec![(3, false), (1, true)], vec![2]));
    assert!(matches!(store.load(&RunSelector::Number(3)), Err(StoreError::Damaged { .. })));
}

/// What `docs/reference.md` shows to readers of the file.
#[test]
fn the_views_answer_what_the_guide_asks() {
    let directory = Directory::new();
    let store = nightly(&directory, &["1s", "500us"]);
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md")).unwrap();
    let blocks: Vec<_> =
        guide.split("```sql\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned())).collect();
    assert!(!blocks.is_empty());
    for statement in blocks.iter().flat_map(|block| block.split(';')).filter(|text| !text.trim().is_empty()) {
        let mut query = store.connection.prepare(statement).unwrap_or_else(|error| panic!("{error}: {statement}"));
        let rows = query.query_map([], |_| Ok(())).unwrap().count();
        assert!(rows > 0, "{statement}");
    }
    let plan: String = store
        .connection
        .query_row("EXPLAIN QUERY PLAN SELECT run FROM tags WHERE key = 'a' AND value = 'b'", [], |row| row.get(3))
        .unwrap();
    assert!(plan.contains("tags_by_value"), "{plan}");
    let plan: String = store
        .connection
        .query_row("EXPLAIN QUERY PLAN SELECT number FROM runs WHERE part_of = 7", [], |row| row.get(3))
        .unwrap();
    assert!(plan.contains("runs_by_decision"), "{plan}");
}
