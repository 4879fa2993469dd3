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
