//! Logs in which anything stands: every line is a request, or is skipped by name.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process, thread};

use brunt_protocol::plan::share::Portion;
use brunt_protocol::plan::target::Url;
use brunt_protocol::record::replayed::{Replayed, Skip};
use brunt_protocol::replay::{LoggedCall, Upcoming, WorkerReplay as _};
use brunt_replay::config::ReplayConfig;
use brunt_replay::format::{Format, Options};
use brunt_replay::log::Log;
use brunt_replay::schedule::Scaling;
use brunt_replay::select::{Filter, Selection, Window};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

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

/// How a log in the combined format is read.
fn config(path: &Path) -> ReplayConfig {
    ReplayConfig {
        path: path.to_owned(),
        more: Vec::new(),
        format: Some(Format::Combined),
        options: Options::default(),
        selection: Selection::new(Url::parse("http://127.0.0.1/").unwrap().target),
        scaling: Scaling { speed: 1.0, scale: 1.0, shift_ns: 0, seed: 1 },
        sort_ns: 10_000_000_000,
        repeats: false,
        rate: None,
        headers: Vec::new(),
        trace: None,
        logged_is_ok: true,
        bytes: None,
    }
}

/// Every call of a log in the combined format, and what was replayed of it.
fn read(path: &Path) -> (Vec<LoggedCall>, Replayed) {
    read_by(config(path), usize::MAX)
}

/// The first calls of a log, and what was replayed of it by then.
fn read_by(config: ReplayConfig, most: usize) -> (Vec<LoggedCall>, Replayed) {
    let log = Log::open(config).unwrap();
    let watch = log.watch();
    let mut calls = Vec::new();
    let mut worker = log.begin(Portion::whole(1)).unwrap().pop().unwrap();
    while calls.len() < most {
        match worker.next() {
            Upcoming::Call(call) => calls.push(call),
            Upcoming::NotYet => thread::yield_now(),
            Upcoming::Over => break,
            Upcoming::Failed(reason) => panic!("{reason}"),
        }
    }
    let until_ns = calls.last().map_or(0, |call| call.due_ns + 1);
    (calls, watch.replayed(until_ns))
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
    let (calls, replayed) = read(&file.0);
    let due: Vec<_> = calls.iter().map(|call| call.due_ns / 60_000_000_000).collect();
    assert!(due.iter().copied().eq(0..240), "{due:?}");
    assert!(replayed.skipped.is_empty(), "{:?}", replayed.skipped);
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
    let (calls, replayed) = read(&file.0);
    assert!(calls.iter().map(|call| call.due_ns / 1_000_000_000).eq(0..60));
    let names = [Skip::Binary, Skip::Incomplete, Skip::Jump, Skip::BadTime, Skip::Malformed, Skip::TooLong];
    let counts = names.map(|skip| replayed.skipped.get(skip.name()).copied().unwrap_or(0));
    assert_eq!(counts, [10; 6], "{:?}", replayed.skipped);
    assert_eq!((replayed.lines, replayed.skipped.values().sum::<u64>()), (120, 60));
}

#[test]
fn a_stray_line_moves_no_window_and_ends_none() {
    // The first line is of another year, and one in the middle of a later one.
    let mut text = line("01/Jan/1999:10:00:00 +0000");
    for second in 0..60 {
        text += &line(&format!("01/Mar/2026:10:00:{second:02} +0000"));
        if second == 20 {
            text += &line("01/Mar/2036:10:00:00 +0000");
        }
    }
    let file = File::new("stray.log", text.as_bytes());
    let mut config = config(&file.0);
    config.selection.window = Some(Window::parse("10:00:10-10:00:50").unwrap());
    let (calls, replayed) = read_by(config, usize::MAX);
    assert!(calls.iter().map(|call| call.due_ns / 1_000_000_000).eq(0..40), "{} calls", calls.len());
    let of = |skip: Skip| replayed.skipped.get(skip.name()).copied();
    assert_eq!((of(Skip::Jump), of(Skip::Outside)), (Some(2), Some(20)));
}

#[test]
fn a_filter_that_leaves_few_lines_leaves_them_where_they_are() {
    let mut text = String::new();
    for hour in 0..9 {
        for (minute, path) in [(0, "/report"), (20, "/x"), (40, "/x")] {
            text +=
                &line(&format!("01/Mar/2026:{hour:02}:{minute:02}:00 +0000")).replace("GET /", &format!("GET {path}"));
        }
    }
    let file = File::new("sparse.log", text.as_bytes());
    let mut config = config(&file.0);
    config.selection.filters = vec![Filter::parse("path=/report").unwrap()];
    let (calls, replayed) = read_by(config, usize::MAX);
    assert!(calls.iter().map(|call| call.due_ns / 3_600_000_000_000).eq(0..9), "{:?}", replayed.skipped);
    assert_eq!(replayed.skipped.get(Skip::Filtered.name()), Some(&18));
}

#[test]
fn targets_that_begin_anew_keep_their_rate() {
    let file = File::new("targets.json", "{\"method\":\"GET\",\"url\":\"/t\"}\n".repeat(7).as_bytes());
    let config = ReplayConfig { format: Some(Format::Vegeta), repeats: true, rate: Some(100.0), ..config(&file.0) };
    let (calls, _) = read_by(config, 1000);
    assert!(calls.iter().zip(0..).all(|(call, nth)| call.due_ns.abs_diff(nth * 10_000_000) < 10), "{:?}", &calls[..9]);
}

#[test]
fn a_scale_that_leaves_out_all_sessions_of_a_pass_goes_on_with_the_next() {
    let file = File::new("one.log", line("01/Mar/2026:10:00:00 +0000").as_bytes());
    let scaling = Scaling { speed: 1.0, scale: 0.1, shift_ns: 0, seed: 1 };
    let (calls, replayed) = read_by(ReplayConfig { repeats: true, scaling, ..config(&file.0) }, 50);
    // Passes of a second, each with a session of its own, of which a tenth is taken.
    let seconds = calls.last().unwrap().due_ns / 1_000_000_000;
    assert!((250..1000).contains(&seconds), "50 calls in {seconds} s");
    assert_eq!(replayed.sessions, 50, "those that were read ahead are none of the replay");
    let none = Scaling { scale: 1e-12, ..scaling };
    let log = Log::open(ReplayConfig { repeats: true, scaling: none, ..config(&file.0) }).unwrap();
    let mut worker = log.begin(Portion::whole(1)).unwrap().pop().unwrap();
    let end = std::iter::repeat_with(|| worker.next()).find(|next| *next != Upcoming::NotYet);
    assert!(matches!(end, Some(Upcoming::Failed(reason)) if reason.contains("--scale left out every session")));
}

#[test]
fn a_packed_log_that_was_cut_off_fails_however_short_it_is() {
    let text = line("01/Mar/2026:10:00:00 +0000").repeat(300);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let zstd = |text: &str| compress_to_vec(text.as_bytes(), CompressionLevel::Uncompressed);
    let two_frames = [zstd(&text), zstd(&text)].concat();
    for (name, packed) in [("cut.gz", gzip.finish().unwrap()), ("cut.zst", two_frames)] {
        for missing in [1, 9, 100] {
            let file = File::new(name, &packed[..packed.len() - missing]);
            let mut worker = Log::open(config(&file.0)).unwrap().begin(Portion::whole(1)).unwrap().pop().unwrap();
            let mut upcoming = std::iter::repeat_with(|| worker.next());
            let end = upcoming.find(|next| !matches!(next, Upcoming::NotYet | Upcoming::Call(_)));
            let says = |reason: &str| reason.contains("cannot read all of the log");
            assert!(matches!(&end, Some(Upcoming::Failed(reason)) if says(reason)), "{name} - {missing}: {end:?}");
        }
    }
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
        let (calls, replayed) = read(&file.0);
        prop_assert_eq!(calls.len() as u64 + replayed.skipped.values().sum::<u64>(), replayed.lines);
        prop_assert!(calls.is_sorted_by_key(|call| call.due_ns));
    }
}
