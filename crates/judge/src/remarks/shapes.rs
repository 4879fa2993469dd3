//! Each episode on its shape: found whenever it is there, with its stretch, and nothing else beside it. Places, lengths and times of calls are
//! drawn, so that none of it rests on an edge that falls together with a point's.

use brunt_plan::random::Random;
use brunt_record::SECOND_NS;

use super::About;
use super::episodes::tests::{End, MS, carried_out, evenly, kinds, remarks};

/// What a run has, and for how long.
#[derive(Debug, Clone, Copy)]
struct Shape {
    about: About,
    length_ns: u64,
}

/// The shapes of a run of so many seconds.
fn shapes(seconds: u64) -> Vec<Shape> {
    // Points of three hours are 13 s wide; silences are known to 100 ms in any run.
    let long = if seconds > 100 { 120 * SECOND_NS } else { 5 * SECOND_NS / 2 };
    [
        (About::Outage, long),
        (About::Freeze, 3 * SECOND_NS / 2),
        (About::Slowness, long),
        (About::Overload, seconds * SECOND_NS / 2),
        (About::RateLimit, seconds * SECOND_NS),
    ]
    .map(|(about, length_ns)| Shape { about, length_ns })
    .to_vec()
}

/// What is found in a run with this shape, and where it was.
fn found(shape: Shape, rate: u64, seconds: u64, seed: u64) -> (Vec<About>, String, [u64; 4]) {
    let mut random = Random::new(seed, rate);
    let whole = seconds * SECOND_NS;
    let from = match shape.about {
        About::RateLimit => 0,
        About::Overload => whole - shape.length_ns,
        _ => whole * 2 / 10 + (random.unit() * (whole * 3 / 10) as f64) as u64,
    };
    let to = from + shape.length_ns;
    let (mut free, mut second, mut let_through) = (0, 0, 0);
    let limit = rate * 6 / 10;
    let end = |due: u64| {
        let usual = MS + (random.unit() * 2.0 * MS as f64) as u64;
        if !(from..to).contains(&due) {
            return End::Ok(usual);
        }
        match shape.about {
            About::Outage => End::Unreached(usual / 10),
            About::Freeze => End::Ok(to - due + usual),
            About::Slowness => End::Ok(usual + 80 * MS),
            About::Overload => {
                free = free.max(due) + SECOND_NS * 10 / (rate * 6);
                End::Ok(free - due + usual)
            }
            _ => {
                if due / SECOND_NS != second {
                    (second, let_through) = (due / SECOND_NS, 0);
                }
                let_through += 1;
                if let_through <= limit { End::Ok(usual) } else { End::Refused(usual / 2) }
            }
        }
    };
    let remarks = remarks(carried_out(seconds, evenly(rate, seconds), end));
    let stretch = remarks.first().map_or((0, 0), |remark| (remark.from_ns.unwrap_or(0), remark.to_ns.unwrap_or(0)));
    (kinds(&remarks), format!("{remarks:?}"), [from, to, stretch.0, stretch.1])
}

#[track_caller]
fn all_are_found(rate: u64, seconds: u64, seeds: std::ops::Range<u64>) {
    let mut missed = Vec::new();
    for shape in shapes(seconds) {
        // A limit of the rate needs 50 calls a second to be told from chance.
        if shape.about == About::RateLimit && rate < 100 {
            continue;
        }
        for seed in seeds.clone() {
            let (kinds, said, [from, to, seen_from, seen_to]) = found(shape, rate, seconds, seed);
            // A bin of 20 calls, and a point, to each side. Overload begins where so many calls wait that no chance explains them, which is
            // within a tenth of its length.
            let late = if shape.about == About::Overload { SECOND_NS + shape.length_ns / 10 } else { 0 };
            let off = (20 * SECOND_NS / rate).max(seconds * SECOND_NS / 600).max(200 * MS) + late;
            let is_there =
                shape.about == About::RateLimit || seen_from.abs_diff(from) <= off && seen_to.abs_diff(to) <= off;
            if kinds != [shape.about] || !is_there {
                missed.push(format!("{:?} {rate}/s {seconds}s seed {seed}: {from} to {to}: {said}", shape.about));
            }
        }
    }
    assert!(missed.is_empty(), "{} missed, such as {:#?}", missed.len(), missed.iter().take(3).collect::<Vec<_>>());
}

#[test]
fn each_is_found_twenty_times_of_twenty_at_50_calls_a_second() {
    all_are_found(50, 10, 0..20);
}

#[test]
fn each_is_found_twenty_times_of_twenty_at_5000_calls_a_second() {
    all_are_found(5000, 10, 0..20);
}

#[test]
fn each_is_found_in_three_hours() {
    all_are_found(20, 3 * 3600, 0..3);
}
