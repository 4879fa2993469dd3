//! Each finding on its shape: found whenever it is there, an episode with its stretch, and nothing else beside it. Places, lengths and times of calls are
//! drawn, so that none of it rests on an edge that falls together with a point's.

use brunt_plan::plan::Plan;
use brunt_plan::random::Random;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::kinds::AnswerSample;
use brunt_record::outcome::Failure;
use brunt_record::recording::Recording;

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
    assert!(missed.is_empty(), "{} missed, such as {:#?}", missed.len(), missed.iter().take(300).collect::<Vec<_>>());
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

/// What is there all through a run, or at moments of it.
type Made = fn(load: Evenly, random: &mut Random) -> (Plan, Recording);

/// So many calls a second for so many seconds.
#[derive(Debug, Clone, Copy)]
struct Evenly {
    rate: u64,
    seconds: u64,
}

impl Evenly {
    fn carried_out(self, end: impl FnMut(u64) -> End) -> (Plan, Recording) {
        carried_out(self.seconds, evenly(self.rate, self.seconds), end)
    }

    /// A moment well within the run.
    fn moment(self, random: &mut Random) -> u64 {
        let whole = (self.seconds * SECOND_NS) as f64;
        (whole * (0.3 + 0.3 * random.unit())) as u64
    }
}

/// Calls that take 1 to 3 ms.
fn usual(random: &mut Random) -> u64 {
    MS + (random.unit() * 2.0 * MS as f64) as u64
}

fn calm(load: Evenly, random: &mut Random) -> (Plan, Recording) {
    load.carried_out(|_| End::Ok(usual(random)))
}

/// Calls of three requests by turns: of the last one a share fails, or all take so long.
fn with_one_apart(load: Evenly, random: &mut Random, failing: f64, slow_ns: u64) -> (Plan, Recording) {
    let (plan, mut run) = calm(load, random);
    for call in 0..load.rate * load.seconds {
        let is_other = call % 8 == 7;
        let id =
            run.measured.figures.requests.id(if is_other { "checkout" } else { ["home", "cart"][call as usize % 2] });
        let figures = run.measured.figures.requests.at(id);
        let took = usual(random) + if is_other { slow_ns } else { 0 };
        figures.due();
        if is_other && random.unit() < failing {
            figures.failed(Failure::Closed, took, Some(took));
        } else {
            figures.answered(200, took, took);
        }
    }
    (plan, run)
}

const PATTERNS: [(About, Made); 10] =
    [
        (About::Drops, |load, random| {
            // Those under way at a moment: eight or more.
            let (at, took) = (load.moment(random), (150 * MS).max(8 * SECOND_NS / load.rate));
            load.carried_out(|due| {
                if (at - took..at).contains(&due) { End::Unreached(at - due) } else { End::Ok(usual(random)) }
            })
        }),
        (About::Freeze, |load, random| {
            // For 400 ms every two seconds.
            let first = (random.unit() * 1.5e9) as u64;
            load.carried_out(|due| {
                let within = (due + 2 * SECOND_NS - first) % (2 * SECOND_NS);
                End::Ok(usual(random) + (400 * MS).saturating_sub(within))
            })
        }),
        (About::FailingRequest, |load, random| with_one_apart(load, random, 0.4, 0)),
        (About::SlowRequest, |load, random| with_one_apart(load, random, 0.0, 40 * MS)),
        (About::Modes, |load, random| {
            load.carried_out(|_| End::Ok(usual(random) + if random.unit() < 0.25 { 40 * MS } else { 0 }))
        }),
        (About::FailureTimes, |load, random| {
            load.carried_out(|_| {
                if random.unit() < 0.1 { End::Refused(usual(random) / 4) } else { End::Ok(5 * usual(random)) }
            })
        }),
        (About::ListenQueue, |load, random| {
            let (plan, mut run) = calm(load, random);
            run.measured.times.record_n(Timing::Connect, MS, 90);
            for _ in 0..10 {
                run.measured.times.record(Timing::Connect, SECOND_NS + usual(random));
            }
            (plan, run)
        }),
        (About::Closes, |load, random| {
            let (plan, mut run) = calm(load, random);
            run.measured
                .numbers
                .set(Counter::ConnectionsMade, load.rate * load.seconds / (5 + (random.unit() * 10.0) as u64));
            run.series.connections_open(4);
            (plan, run)
        }),
        (About::Address, |load, random| {
            let (mut plan, mut run) = calm(load, random);
            plan.target.host = "shop.example".to_owned();
            run.measured.numbers.set(Counter::ConnectionsMade, 64);
            run.measured.numbers.set(Counter::ConnectionsFailed, 40);
            let address = "127.0.0.2:80".parse().unwrap();
            (0..40).for_each(|_| run.measured.addresses.failed(address, Failure::Connect, "connection refused"));
            (plan, run)
        }),
        (About::AnotherAnswer, |load, random| {
            let (plan, mut run) = calm(load, random);
            let from = load.moment(random);
            for due in evenly(load.rate.min(100), load.seconds) {
                let content_type = if due > from && random.unit() < 0.5 { "text/html" } else { "application/json" };
                let look = AnswerSample { content_type, length: Some(500), ..AnswerSample::default() };
                run.measured.kinds.add("", 200, look, due, || "<html>sorry".to_owned());
            }
            (plan, run)
        }),
    ];

#[track_caller]
fn each_pattern_is_found(load: Evenly, seeds: std::ops::Range<u64>) {
    let mut missed = Vec::new();
    for (about, made) in PATTERNS {
        for seed in seeds.clone() {
            let found = remarks(made(load, &mut Random::new(seed, load.rate)));
            if kinds(&found) != [about] {
                missed.push(format!("{about:?} {load:?} seed {seed}: {found:?}"));
            }
        }
    }
    assert!(missed.is_empty(), "{} missed, such as {:#?}", missed.len(), missed.iter().take(300).collect::<Vec<_>>());
}

#[test]
fn each_pattern_is_found_twenty_times_of_twenty_at_50_calls_a_second() {
    each_pattern_is_found(Evenly { rate: 50, seconds: 10 }, 0..20);
}

#[test]
fn each_pattern_is_found_twenty_times_of_twenty_at_5000_calls_a_second() {
    each_pattern_is_found(Evenly { rate: 5000, seconds: 10 }, 0..20);
}

#[test]
fn each_pattern_is_found_in_three_hours() {
    each_pattern_is_found(Evenly { rate: 20, seconds: 3 * 3600 }, 0..1);
}
