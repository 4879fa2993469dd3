//! The log of a day whose requests in each second are known: an hour of it at its own speed and with three times its requests, and all of it
//! sixty times as fast. The server's own log is held against it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::{env, fs, process, thread};

use brunt_engine::simulated::{Act, Peer, Reaction};
use brunt_judge::summary::Summary;
use brunt_plan::share::Portion;
use brunt_plan::target::Url;
use brunt_protocol::replay::{ReplayedEnd, Upcoming, WorkerReplay};
use brunt_protocol::source::{Message, SourceEnd};
use brunt_record::catalogue::Counter;
use brunt_record::time::Tick;
use brunt_replay::config::ReplayConfig;
use brunt_replay::format::Options;
use brunt_replay::log::Log;
use brunt_replay::schedule::Scaling;
use brunt_replay::select::{Selection, Window};
use brunt_replay::watch::Watch;
use brunt_replay::worker::WorkerLog;

use super::{MS, SECOND_NS, carried_out};

const DAY_S: u64 = 86_400;
/// By how much earlier a request may come than the first one, against their due times: that one has its connection made.
const SLACK_NS: u64 = MS / 2;

/// How many requests the log has in a second of the day: up to one, and more of them by day than at night; every five minutes a burst of 40.
fn logged_in(second: u64) -> u64 {
    let daylight = second.min(DAY_S - second) * 6 / DAY_S;
    u64::from(second % 8 <= daylight) + if second % 300 == 7 { 40 } else { 0 }
}

/// Of which client a second's nth request is: seven at a time, others every ten minutes.
fn client(second: u64, nth: u64) -> u64 {
    second / 600 * 7 + (second + nth) % 7
}

/// The seconds of the day from one hour to another.
fn hours(from: u64, to: u64) -> impl Iterator<Item = u64> + Clone {
    from * 3600..to * 3600
}

/// The day's log: a path names its client, and how many the client had asked for before.
struct Day {
    text: String,
    /// Paths by client, in their order.
    asked: BTreeMap<u64, Vec<String>>,
}

impl Day {
    fn new() -> Self {
        let (mut text, mut asked) = (String::new(), BTreeMap::<u64, Vec<String>>::new());
        for second in 0..DAY_S {
            let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
            for nth in 0..logged_in(second) {
                let client = client(second, nth);
                let of_client = asked.entry(client).or_default();
                let line = format!("{} /c{client}/{}", if nth % 3 == 2 { "HEAD" } else { "GET" }, of_client.len());
                let _ = writeln!(
                    text,
                    "10.0.{}.{} - - [01/Mar/2026:{clock} +0100] \"{line} HTTP/1.1\" 200 0 \"-\" \"a browser\"",
                    client / 256,
                    client % 256
                );
                of_client.push(line);
            }
        }
        Self { text, asked }
    }

    /// What clients ask for in these seconds.
    fn within(&self, seconds: impl Iterator<Item = u64>) -> BTreeMap<u64, Vec<String>> {
        let mut counts = BTreeMap::<u64, usize>::new();
        let (mut before, mut first) = (BTreeMap::<u64, usize>::new(), None);
        for second in seconds {
            first.get_or_insert(second);
            (0..logged_in(second)).for_each(|nth| *counts.entry(client(second, nth)).or_default() += 1);
        }
        for second in 0..first.unwrap_or(0) {
            (0..logged_in(second)).for_each(|nth| *before.entry(client(second, nth)).or_default() += 1);
        }
        let lines = |(client, count): (u64, usize)| {
            let from = before.get(&client).copied().unwrap_or(0);
            (client, self.asked[&client][from..from + count].to_vec())
        };
        counts.into_iter().map(lines).collect()
    }
}

/// A file that is gone with its test.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A log that is waited for: made-up time must not pass while it is read.
struct Awaited(WorkerLog);

impl WorkerReplay for Awaited {
    fn next(&mut self) -> Upcoming {
        loop {
            match self.0.next() {
                Upcoming::NotYet => thread::yield_now(),
                upcoming => return upcoming,
            }
        }
    }

    fn call(&mut self, number: u64) -> Result<Message<'_>, SourceEnd> {
        self.0.call(number)
    }

    fn name(&self, number: u64) -> (u32, &str) {
        self.0.name(number)
    }

    fn ended(&mut self, number: u64, ended: ReplayedEnd<'_>) {
        self.0.ended(number, ended);
    }
}

/// A request as the server had it: when, on which connection, and its method and path.
type Came = (u64, u64, String);

/// A server that writes down what it is asked, and answers within a millisecond.
struct Server(Arc<Mutex<Vec<Came>>>);

impl Peer for Server {
    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let text = std::str::from_utf8(bytes).unwrap();
        let line = text.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
        self.0.lock().unwrap().push((now.ns(), connection, line));
        vec![(MS / 2, Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()))]
    }
}

/// A replay of the day.
struct Replayed {
    summary: Summary,
    watch: Watch,
    came: Vec<Came>,
}

fn replay(day: &Day, name: &str, speed: f64, scale: f64, window: Option<&str>) -> Replayed {
    let file = File(env::temp_dir().join(format!("brunt-whole-runs-{}-{name}.log", process::id())));
    fs::write(&file.0, &day.text).unwrap();
    let mut selection = Selection::new(Url::parse("http://127.0.0.1/").unwrap().target);
    selection.window = window.map(|window| Window::parse(window).unwrap());
    let config = ReplayConfig {
        path: file.0.clone(),
        more: Vec::new(),
        format: None,
        options: Options::default(),
        selection,
        scaling: Scaling { speed, scale, shift_ns: 50 * MS, seed: 7 },
        sort_ns: 10 * SECOND_NS,
        repeats: false,
        rate: None,
        headers: Vec::new(),
        trace: None,
        logged_is_ok: true,
        bytes: None,
    };
    let log = Log::open(config).unwrap();
    let watch = log.watch();
    let logs =
        log.begin(Portion::whole(1)).unwrap().into_iter().map(|log| Box::new(Awaited(log)) as Box<dyn WorkerReplay>);
    let came = Arc::new(Mutex::new(Vec::new()));
    let summary = carried_out(|_| (), logs.collect(), Server(Arc::clone(&came)));
    let came = std::mem::take(&mut *came.lock().unwrap());
    Replayed { summary, watch, came }
}

impl Replayed {
    /// How many requests came in each second; the first one was due at the beginning.
    fn counts(&self, seconds: usize) -> Vec<u64> {
        let begin = self.came[0].0 - SLACK_NS;
        let mut counts = vec![0; seconds];
        self.came.iter().for_each(|(at, ..)| counts[((at - begin) / SECOND_NS) as usize] += 1);
        counts
    }

    /// What came of each client, in the order in which it came.
    fn by_client(&self) -> BTreeMap<u64, Vec<String>> {
        let mut all = BTreeMap::<u64, Vec<String>>::new();
        self.came.iter().for_each(|(.., line)| all.entry(client_of(line)).or_default().push(line.clone()));
        all
    }

    fn nothing_failed(&self, requests: u64) {
        assert_eq!(self.summary.total.numbers.get(Counter::Due), requests);
        assert_eq!((self.summary.not_ok, self.came.len() as u64), (0, requests));
        let replayed = self.watch.replayed(u64::MAX);
        assert_eq!((replayed.all.calls, replayed.all.answered, replayed.all.other_status), (requests, requests, 0));
    }
}

fn client_of(line: &str) -> u64 {
    line.split_once("/c").unwrap().1.split('/').next().unwrap().parse().unwrap()
}

/// Every second within 1%.
fn same_counts(came: &[u64], expected: &[u64]) {
    assert_eq!(came.len(), expected.len());
    for (second, (came, expected)) in came.iter().zip(expected).enumerate() {
        assert!(came.abs_diff(*expected) * 100 <= *expected, "second {second}: {came} came, {expected} were logged");
    }
}

/// How bursty counts are, whatever their mean: their variance over the square of it.
fn burst_index(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let variance = counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum::<f64>() / counts.len() as f64;
    variance / (mean * mean)
}

#[test]
fn an_hour_of_a_day_at_its_own_speed_has_its_seconds_and_its_sessions() {
    let day = Day::new();
    let logged: Vec<u64> = hours(9, 10).map(logged_in).collect();
    let replayed = replay(&day, "hour", 1.0, 1.0, Some("09:00-10:00"));
    replayed.nothing_failed(logged.iter().sum());
    same_counts(&replayed.counts(3600), &logged);
    assert!(replayed.by_client() == day.within(hours(9, 10)), "what came is what the log has, client by client");
    let mut owners = BTreeMap::new();
    for (_, connection, line) in &replayed.came {
        assert_eq!(
            *owners.entry(connection).or_insert(client_of(line)),
            client_of(line),
            "a connection has one client"
        );
    }
}

#[test]
fn a_day_sixty_times_as_fast_takes_24_minutes_of_the_same_shape() {
    let day = Day::new();
    let minute = |minute: u64| (minute * 60..(minute + 1) * 60).map(logged_in).sum();
    let logged: Vec<u64> = (0..DAY_S / 60).map(minute).collect();
    let replayed = replay(&day, "day", 60.0, 1.0, None);
    replayed.nothing_failed(logged.iter().sum());
    same_counts(&replayed.counts(1440), &logged);
    assert!(replayed.by_client() == day.asked, "what came is what the log has, client by client");
}

#[test]
fn three_times_the_requests_of_an_hour_are_as_bursty() {
    let day = Day::new();
    let logged: Vec<u64> = hours(9, 10).map(logged_in).collect();
    let replayed = replay(&day, "scaled", 1.0, 3.0, Some("09:00-10:00"));
    replayed.nothing_failed(3 * logged.iter().sum::<u64>());
    // A copy may be shifted out of the last second.
    let ratio = burst_index(&replayed.counts(3601)[..3600]) / burst_index(&logged);
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    // Each copy has connections of its own, on which its requests follow each other as in the log.
    let mut by_connection = BTreeMap::<u64, Vec<&str>>::new();
    let mut counts = BTreeMap::<&str, u64>::new();
    for (_, connection, line) in &replayed.came {
        by_connection.entry(*connection).or_default().push(line);
        *counts.entry(line).or_default() += 1;
    }
    let asked = day.within(hours(9, 10));
    let lines = asked.values().flatten();
    assert!(lines.clone().count() == counts.len() && lines.clone().all(|line| counts[line.as_str()] == 3));
    for lines in by_connection.values() {
        let of_client = &asked[&client_of(lines[0])];
        let from = of_client.iter().position(|line| line == lines[0]).unwrap();
        assert!(of_client[from..].iter().zip(lines).all(|(logged, came)| logged == came), "{lines:?}");
    }
}
