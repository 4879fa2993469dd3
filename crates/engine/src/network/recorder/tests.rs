use brunt_record::SECOND_NS;
use brunt_record::time::Tick;

use super::super::sampler::{Sampler, Timed};
use super::*;

/// The kernel may tell nothing of the first answers, for it begins to when it is asked first.
#[test]
fn answers_before_the_first_that_is_timed_are_lost_to_nobody() {
    let mut recorder =
        Recorder { sampler: Sampler { timed: Timed::Some, ..Sampler::default() }, ..Recorder::default() };
    let mut end = |at: Tick, arrived: Option<Tick>, end: End<'_>| {
        let mut call = Call::new((), at, true, Counted::AtOnce);
        call.send(at, SECOND_NS);
        call.receive(at + 100);
        recorder.reads(arrived, at + 100);
        recorder.ended(&mut call, end, at + 100);
        recorder.has_read();
    };
    end(Tick::EPOCH, None, End::Answered(200));
    for call in 1..5 {
        end(Tick::from_ns(call * 1000), Some(Tick::from_ns(call * 1000 + 50)), End::Failed(Failure::Mismatch, "no"));
    }
    let snapshot = recorder.take();
    assert_eq!((snapshot.numbers.get(Counter::Due), snapshot.times.known(Timing::Response).count()), (5, 5));
    assert_eq!(snapshot.times.known(Timing::ResponseValue).count(), 5);
    assert_eq!(snapshot.times.known(Timing::FirstByteValue).count(), 1);
}

/// Calls of a flood, by the numbers of their names, of which the kernel tells each tenth arrival.
fn sampled(names: impl Iterator<Item = usize>, took_ns: impl Fn(usize) -> u64) -> Snapshot {
    let mut recorder =
        Recorder { sampler: Sampler { timed: Timed::Some, ..Sampler::default() }, ..Recorder::default() };
    for (call, name) in names.enumerate() {
        let at = Tick::from_ns(call as u64 * 1_000_000);
        let (arrived, read) = (at + took_ns(name), at + took_ns(name) + 500);
        let id = recorder.snapshot.figures.requests.id(&format!("call {name}"));
        let mut one = Call::new((), at, true, Counted::AtOnce);
        one.send(at, SECOND_NS);
        one.receive(read);
        recorder.reads((call % 10 == 0).then_some(arrived), read);
        recorder.ended(&mut one, End::Answered(200), read);
        recorder.ended_by_name(id, &one, End::Answered(200), false, read);
        recorder.has_read();
    }
    recorder.take()
}

#[test]
fn a_timed_call_stands_for_others_of_its_own_name() {
    // Every second one takes ten times as long.
    let snapshot = sampled((0..10_000).map(|call| call / 7 % 2), |name| if name == 0 { 100_000 } else { 1_000_000 });
    for (name, took_ns) in [("call 0", 100_000), ("call 1", 1_000_000)] {
        let calls = snapshot.figures.requests.get(name).unwrap();
        let times = calls.times.known(Timing::Response);
        assert_eq!(times.count(), calls.statuses.total(), "{name}");
        let p50 = times.quantile(0.5).unwrap();
        assert!(p50.abs_diff(took_ns) <= took_ns / 50, "{name}: {p50}, without the 500 ns that it waited to be read");
    }
}

/// A call that ends once it is sent, or with what was read before, waits for no timed one.
#[test]
fn calls_that_end_without_a_read_have_their_own_times_by_name_too() {
    let mut recorder =
        Recorder { sampler: Sampler { timed: Timed::Some, ..Sampler::default() }, ..Recorder::default() };
    recorder.reads(Some(Tick::from_ns(1)), Tick::from_ns(2));
    recorder.has_read();
    let id = recorder.snapshot.figures.requests.id("send");
    for (call, took_ns) in [1_000, 80_000, 500_000].into_iter().enumerate() {
        let due = Tick::from_ns(1_000_000 * (call as u64 + 1));
        let mut one = Call::new((), due, true, Counted::AtOnce);
        one.send(due, SECOND_NS);
        recorder.ended(&mut one, End::Answered(200), due + took_ns);
        recorder.ended_by_name(id, &one, End::Answered(200), false, due + took_ns);
    }
    let snapshot = recorder.take();
    let named = snapshot.figures.requests.get("send").unwrap().times.known(Timing::Response).clone();
    let ends = [0.01, 0.99].map(|share| named.quantile(share).unwrap());
    assert!(named.count() == 3 && ends[0] <= 1_020 && ends[1] >= 490_000, "{ends:?}");
    assert_eq!(snapshot.times.known(Timing::Response).count(), 3);
}

#[test]
fn names_beyond_the_most_are_sampled_together() {
    let snapshot = sampled(0..2000, |_| 100_000);
    let others = snapshot.figures.requests.others().unwrap();
    assert_eq!((others.statuses.total(), others.times.known(Timing::Response).count()), (1500, 1500));
}

/// Where no arrival is told (`--arrival-times read`, a Unix socket), names have the times of all calls: those of reading, with the
/// delay in sending. Failures, of which all times are known, do not stand for answers.
#[test]
fn names_and_all_calls_agree_where_no_arrival_is_told() {
    for timed in [Timed::None, Timed::All, Timed::Some] {
        let mut recorder = Recorder { sampler: Sampler { timed, ..Sampler::default() }, ..Recorder::default() };
        for number in 0..300_u64 {
            let due = Tick::from_ns(number * 1_000_000);
            let (sent, read) = (due + 40_000, due + 40_000 + 1_000 * (number + 1));
            let id = recorder.snapshot.figures.requests.id("cart");
            let mut call = Call::new((), due, true, Counted::AtOnce);
            call.send(sent, SECOND_NS);
            call.receive(read);
            recorder.reads(None, read);
            let fails = timed == Timed::None && number % 3 > 0;
            let end = if fails { End::Failed(Failure::Mismatch, "no") } else { End::Answered(200) };
            recorder.ended(&mut call, end, read);
            recorder.ended_by_name(id, &call, end, false, read);
            recorder.has_read();
        }
        let snapshot = recorder.take();
        let cart = snapshot.figures.requests.get("cart").unwrap().response_times();
        for q in [0.1, 0.3, 0.5, 0.9] {
            let (all, named) = (snapshot.response_times().quantile(q), cart.quantile(q));
            assert_eq!(all, named, "p{} {timed:?}", q * 100.0);
        }
        assert!(cart.quantile(0.1).unwrap().value >= 40_000, "{timed:?}");
    }
}
