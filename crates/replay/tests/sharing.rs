//! A log that several workers and machines share: each call falls to one of them, and none waits for another.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use brunt_protocol::plan::plan::{Plan, ProtocolOptions};
use brunt_protocol::plan::replay::LogReplay as Planned;
use brunt_protocol::plan::share::Portion;
use brunt_protocol::plan::target::Url;
use brunt_protocol::replay::{LogTimetable as _, LoggedCall, Upcoming, WorkerReplay as _};
use brunt_replay::config::ReplayConfig;
use brunt_replay::fingerprint;
use brunt_replay::log::Log;
use brunt_replay::worker::WorkerLog;
use proptest::prelude::*;

/// A file that ends with its test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = env::temp_dir().join(format!("brunt-sharing-{}-{name}", process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    /// The log, as one of several machines reads it.
    fn open(&self, change: impl FnOnce(&mut Planned)) -> Log {
        let mut replay = Planned::new(self.0.to_str().unwrap(), "combined");
        replay.fingerprint = Some(fingerprint::take(&self.0).unwrap());
        change(&mut replay);
        let target = Url::parse("http://127.0.0.1/").unwrap().target;
        let plan = Plan { seed: 7, ..Plan::of_calls(target, ProtocolOptions::default()) };
        Log::open(ReplayConfig::from_plan(&plan, &replay).unwrap()).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn line(second: u64, client: u64, path: &str) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!(
        "10.0.0.{client} - - [01/Jan/2026:00:{minute:02}:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 2 \"-\" \"-\"\n"
    )
}

/// The next call, once it is there.
fn next(log: &mut WorkerLog) -> Option<LoggedCall> {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        match log.next() {
            Upcoming::Call(call) => return Some(call),
            Upcoming::Over => return None,
            Upcoming::Failed(reason) => panic!("{reason}"),
            Upcoming::NotYet => assert!(Instant::now() < patience, "the call does not come"),
        }
        thread::yield_now();
    }
}

/// What a worker does: when each call is due, of which session, and what it sends.
fn all(mut log: WorkerLog) -> Vec<(u64, Option<u64>, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(call) = next(&mut log) {
        all.push((call.due_ns, call.session, log.call(call.number).unwrap().bytes.to_vec()));
    }
    all
}

fn shared(file: &File, change: impl Fn(&mut Planned), machines: &[u32]) -> Vec<(u64, Option<u64>, Vec<u8>)> {
    let of = machines.iter().sum();
    let (mut first, mut union) = (0, Vec::new());
    let mut owners = BTreeMap::new();
    for workers in machines {
        let portion = Portion::new(first, *workers, of).unwrap();
        for (place, log) in file.open(&change).begin(portion).unwrap().into_iter().enumerate() {
            let worker = first + place as u32;
            let calls = all(log);
            assert!(calls.is_sorted_by_key(|(due, ..)| *due), "in the order of due times");
            for session in calls.iter().filter_map(|(_, session, _)| *session) {
                assert_eq!(*owners.entry(session).or_insert(worker), worker, "a session is one worker's");
                assert_eq!(session % u64::from(of), u64::from(worker), "the documented rule");
            }
            union.extend(calls);
        }
        first += workers;
    }
    union.sort();
    union
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// For any number of machines and workers: the shares are disjoint, and together the whole.
    #[test]
    fn shares_are_disjoint_and_complete(
        machines in prop::collection::vec(1..5_u32, 1..6), clients in 1..60_u64, count in 0..400_u64, scale in 0.3..3.5_f64,
        has_sessions: bool, case: u32,
    ) {
        let mut text = line(0, 1, "/first");
        for nth in 0..count {
            let _ = write!(text, "{}", line(nth / 9, nth * 7 % clients, &format!("/p/{nth}")));
        }
        let file = File::new(&format!("{case}.log"), &text);
        let change = |replay: &mut Planned| {
            replay.scale = scale;
            replay.shift_ns = 2_000_000_000;
            if !has_sessions {
                replay.session = "none".to_owned();
            }
        };
        let whole = shared(&file, change, &[1]);
        prop_assert!(!whole.is_empty() || scale < 1.0);
        prop_assert_eq!(shared(&file, change, &machines), whole.clone());
        // Whoever keeps account of all calls deals them out by the same rule.
        let mut listing = file.open(change).list().unwrap();
        let of: u32 = machines.iter().sum();
        let mut counts = vec![0; of as usize];
        loop {
            match listing.next() {
                Upcoming::Call(call) => counts[(call.number % u64::from(of)) as usize] += 1,
                Upcoming::NotYet => thread::yield_now(),
                Upcoming::Over => break,
                Upcoming::Failed(reason) => panic!("{reason}"),
            }
        }
        prop_assert_eq!(counts.iter().sum::<usize>(), whole.len());
        let mut first = 0;
        for workers in &machines {
            let portion = Portion::new(first, *workers, of).unwrap();
            for (place, log) in file.open(change).begin(portion).unwrap().into_iter().enumerate() {
                prop_assert_eq!(all(log).len(), counts[first as usize + place]);
            }
            first += workers;
        }
    }
}

#[test]
fn a_worker_with_few_calls_has_them_while_another_has_more_than_it_takes() {
    let (busy, rare) = (3, (0..50).find(|client| owner(*client) != owner(3)).unwrap());
    let mut text = line(0, rare, "/rare");
    for nth in 0..20_000 {
        text += &line(nth / 400, busy, "/busy");
    }
    let file = File::new("rare.log", &text);
    let mut logs = file.open(|_| ()).begin(Portion::whole(2)).unwrap();
    // Nobody takes what is read ahead for the other one.
    let mut of_rare = logs.remove(owner(rare));
    assert!(next(&mut of_rare).is_some_and(|call| call.due_ns < 1_000_000_000));
    drop(logs);
}

/// Which of two workers has the session of a client.
fn owner(client: u64) -> usize {
    let file = File::new(&format!("owner-{client}.log"), &line(0, client, "/"));
    let logs = file.open(|_| ()).begin(Portion::whole(2)).unwrap();
    let calls: Vec<_> = logs.into_iter().map(|log| all(log).len()).collect();
    calls.iter().position(|calls| *calls == 1).unwrap()
}

#[test]
fn a_log_that_is_cut_off_while_it_is_read_is_not_replayed_as_if_it_ended_there() {
    let text: String = (0..60_000).map(|nth| line(nth / 100, nth % 50, "/some/path")).collect();
    let file = File::new("cut.log", &text);
    let mut log = file.open(|_| ()).begin(Portion::whole(1)).unwrap().remove(0);
    assert!(next(&mut log).is_some());
    fs::OpenOptions::new().write(true).open(&file.0).unwrap().set_len(text.len() as u64 / 2).unwrap();
    let failed = loop {
        match log.next() {
            Upcoming::Failed(reason) => break reason,
            Upcoming::Over => panic!("it ended as if it were whole"),
            Upcoming::Call(_) | Upcoming::NotYet => thread::yield_now(),
        }
    };
    assert!(failed.contains("was cut off while it was read"), "{failed}");
}
