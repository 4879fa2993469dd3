//! Logs that are replayed, in whatever bytes: recognised, unpacked, read line by line, sorted and scheduled. Nothing panics; every line is
//! a request, nothing, or skipped by name; due times do not fall; what is composed is one request.
//!
//! The first byte of an input chooses the format (beyond them: the one that is recognised), the second the layout of a template.

#![no_main]

use std::io::Cursor;

use brunt_plan::target::Url;
use brunt_replay::entry::Skips;
use brunt_replay::format::{Format, MOST_LINE_BYTES, Options, Parser, har};
use brunt_replay::input::{LogLines, unpacked};
use brunt_replay::neighbours::Neighbours;
use brunt_replay::order::Sorter;
use brunt_replay::request::Composer;
use brunt_replay::schedule::{Scaling, Schedule};
use brunt_replay::select::{FromHosts, Selection};
use libfuzzer_sys::fuzz_target;

const LAYOUTS: [&str; 4] = [
    "$msec $request_time \"$request\" $status",
    "[$time_iso8601] $request_method $uri $args $http_cookie",
    "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" %D",
    "%{sec}t %m %U%q %s",
];

fuzz_target!(|input: &[u8]| {
    let [choice, layout, bytes @ ..] = input else { return };
    let Ok(whole) = unpacked(Box::new(Cursor::new(bytes.to_vec()))) else { return };
    let mut lines = LogLines::new(whole);
    let given = Format::ALL.get(usize::from(*choice)).copied();
    let template = LAYOUTS[usize::from(*layout) % LAYOUTS.len()];
    let options = Options { template: Some(template.to_owned()), ..Options::default() };
    let Some(format) = given.or_else(|| Format::recognise(bytes)).or(Some(Format::Template)) else { return };
    let (mut skips, mut taken, mut read) = (Skips::default(), 0_u64, 0_u64);
    let target = Url::parse("http://127.0.0.1:8080/").expect("a URL").target;
    let mut selection = Selection::new(target.clone());
    (selection.writes, selection.hosts) = (true, FromHosts::Any);
    let (mut neighbours, mut sorter) = (Neighbours::default(), Sorter::new(2_000_000_000));
    let mut select = |neighbours: &mut Neighbours, skips: &mut Skips| {
        while let Some(entry) = neighbours.pop() {
            match selection.take(entry) {
                Ok(entry) => sorter.push(entry, skips),
                Err(skip) => skips.add(skip),
            }
        }
    };
    let mut take = |entry, skips: &mut Skips| {
        neighbours.push(entry, skips);
        select(&mut neighbours, skips);
    };
    if format == Format::Har {
        for entry in har::entries(bytes, &options).into_iter().flatten() {
            read += 1;
            match entry {
                Ok(entry) => take(entry, &mut skips),
                Err(skip) => skips.add(skip),
            }
        }
    } else {
        let mut parser = Parser::new(format, options).expect("known layouts");
        while let Ok(Some(line)) = lines.next_line() {
            assert!(line.len() <= MOST_LINE_BYTES + 1);
            match parser.line(line) {
                Ok(Some(entry)) => {
                    read += 1;
                    take(entry, &mut skips);
                }
                Ok(None) => {}
                Err(skip) => {
                    read += 1;
                    skips.add(skip);
                }
            }
        }
    }
    neighbours.finish(&mut skips);
    select(&mut neighbours, &mut skips);
    sorter.finish();
    let scaling = Scaling { speed: 3.0, scale: 1.5, shift_ns: 50_000_000, seed: 1 };
    let (mut schedule, mut composer, mut last) = (Schedule::new(scaling), Composer::new(&target, Vec::new()), 0);
    while let Some(timed) = sorter.pop() {
        taken += 1;
        let request = composer.request(&timed.entry);
        let head = String::from_utf8(request.head).expect("text");
        assert!(
            head.ends_with("\r\n") && !head.contains("\r\n\r\n") && !head.replace("\r\n", "").contains(['\r', '\n'])
        );
        assert_eq!(head.lines().next().map(|line| line.split(' ').count()), Some(3), "{head}");
        schedule.push(&timed, &(), 1);
    }
    assert_eq!(taken + skips.total(), read);
    schedule.end_pass(false);
    while let Some(due) = schedule.pop() {
        assert!(due.ns >= last);
        last = due.ns;
    }
});
