//! A packed log whose lines would not fit into memory.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::io::{Cursor, Write as _};

use brunt_replay::format::MOST_LINE_BYTES;
use brunt_replay::input::{LogLines, unpacked};
use flate2::Compression;
use flate2::write::GzEncoder;

/// The most memory that this process ever had, in kB.
fn most_resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    most.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn lines_of_ten_megabytes_take_no_more_than_a_line_may_have() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let long = vec![b'x'; 10 << 20];
    for _ in 0..10 {
        packed.write_all(&long).unwrap();
        packed.write_all(b"\nshort\n").unwrap();
    }
    let packed = packed.finish().unwrap();
    drop(long);
    // What was freed is there to be used again, and counts already.
    let before = most_resident();
    let mut lines = LogLines::new(unpacked(Box::new(Cursor::new(packed))).unwrap());
    let mut lengths = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        lengths.push(line.len());
    }
    assert_eq!(lengths, [MOST_LINE_BYTES + 1, 5].repeat(10));
    let grown = most_resident() - before;
    assert!(grown < 8 << 10, "{grown} kB more for 100 MB of lines");
}
