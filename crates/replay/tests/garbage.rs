//! Logs in which anything stands: every line is a request, or is skipped by name.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::{Path, PathBuf};
use std::{env, fs, process, thread};

use brunt_protocol::plan::target::Url;
use brunt_protocol::record::replayed::{Replayed, Skip};
use brunt_protocol::replay::{LoggedCall, Replay as _, Upcoming};
use brunt_replay::format::{Format, Options};
use brunt_replay::log::{Config, Log};
use brunt_replay::schedule::Scaling;
use brunt_replay::select::Selection;
use proptest::prelude::*;

/// A file that is gone with its test.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = env::temp_dir().join(format!("brunt-replay-{}-{name}", process::id()));
        fs::write(&path, content).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Every call of a log in the combined format, and what was told of it.
fn read(path: &Path) -> (Vec<LoggedCall>, Replayed) {
    let config = Config {
        path: path.to_owned(),
        format: Some(Format::Combined),
        options: Options::default(),
        selection: Selection::new(Url::parse("http://127.0.0.1/").unwrap().target),
        scaling: Scaling { speed: 1.0, scale: 1.0, shift_ns: 0, seed: 1 },
        sort_ns: 10_000_000_000,
        repeats: false,
        rate: None,
        headers: Vec::new(),
    };
    let log = Log::open(config).unwrap();
    let watch = log.watch();
    let mut calls = Vec::new();
    let mut worker = log.begin(1).unwrap().pop().unwrap();
    loop {
        match worker.next() {
            Upcoming::Call(call) => calls.push(call),
            Upcoming::NotYet => thread::yield_now(),
            Upcoming::Over => break,
            Upcoming::Failed(reason) => panic!("{reason}"),
        }
    }
    (calls, watch.replayed())
}

fn line(time: &str) -> String {
    format!("10.0.0.1 - - [{time}] \"GET / HTTP/1.1\" 200 2 \"-\" \"-\"\n")
}

#[test]
fn an_hour_that_comes_twice_is_two_hours() {
    // Summer time ends at 03:00: the clock says 02:30 again an hour later.
    let mut text = String::new();
    for (hour, offset) in [("01", "+0200"), ("02", "+0200"), ("02", "+0100"), ("03", "+0100")] {
        for minute in 0..60 {
            text += &line(&format!("25/Oct/2026:{hour}:{minute:02}:00 {offset}"));
        }
    }
    let file = File::new("summer.log", text.as_bytes());
    let (calls, told) = read(&file.0);
    let due: Vec<_> = calls.iter().map(|call| call.due_ns / 60_000_000_000).collect();
    assert!(due.iter().copied().eq(0..240), "{due:?}");
    assert!(told.skipped.is_empty(), "{:?}", told.skipped);
}

#[test]
fn what_is_wrong_is_counted_by_name_and_moves_nothing_else() {
    let mut text = Vec::new();
    for second in 0..60 {
        let good = line(&format!("01/Mar/2026:10:00:{second:02} +0000"));
        text.extend(good.bytes());
        match second % 6 {
            0 => text.extend([0xff, 0xfe, 0, 1, 2, b'\n']),
            1 => text.extend(good.bytes().take(40).chain([b'\n'])),
            2 => text.extend(line(&format!("01/Mar/2016:10:00:{second:02} +0000")).bytes()),
            3 => text.extend(line("31/Feb/2026:10:00:00 +0000").bytes()),
            4 => text.extend(b"once upon a time\n"),
            _ => text.extend([b"a".repeat(2 << 20), b"\n".to_vec()].concat()),
        }
    }
    let file = File::new("wrong.log", &text);
    let (calls, told) = read(&file.0);
    assert!(calls.iter().map(|call| call.due_ns / 1_000_000_000).eq(0..60));
    let names = [Skip::Binary, Skip::Incomplete, Skip::Jump, Skip::BadTime, Skip::Malformed, Skip::TooLong];
    let counts = names.map(|skip| told.skipped.get(skip.name()).copied().unwrap_or(0));
    assert_eq!(counts, [10; 6], "{:?}", told.skipped);
    assert_eq!((told.lines, told.skipped.values().sum::<u64>()), (120, 60));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_line_is_a_request_or_skipped(
        pieces in prop::collection::vec((0..4_u8, 0..86_400_u32, prop::collection::vec(any::<u8>(), 0..80)), 1..40),
    ) {
        let mut text = line("01/Mar/2026:00:00:00 +0000").into_bytes();
        for (kind, second, garbage) in &pieces {
            let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
            let good = line(&format!("01/Mar/2026:{clock} +0000"));
            match kind {
                0 => text.extend(good.bytes()),
                1 => text.extend(garbage),
                2 => text.extend(good.bytes().take(garbage.len())),
                _ => text.extend([good.as_bytes(), garbage, b"\n"].concat()),
            }
        }
        let file = File::new("any.log", &text);
        let (calls, told) = read(&file.0);
        prop_assert_eq!(calls.len() as u64 + told.skipped.values().sum::<u64>(), told.lines);
        prop_assert!(calls.is_sorted_by_key(|call| call.due_ns));
    }
}
