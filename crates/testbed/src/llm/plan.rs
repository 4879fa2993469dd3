//! When each token of an answer comes: the formulas of docs/target.md, from the start in a slot. Pure.

use std::ops::Range;
use std::time::Duration;

/// How fast the model is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Prompt tokens read a second, by each request.
    pub prefill: f64,
    /// Tokens that an answer has a second.
    pub decode: f64,
}

/// What happens to an answer that begins well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// An error event in place of the next chunk; a whole answer is an error of the server.
    Error,
    /// The connection ends.
    Cut,
}

/// The course of an answer. Tokens count from 1, chunks from 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) speed: Speed,
    /// Prompt tokens to be read, without those of the prefix cache.
    pub(super) uncached: u64,
    /// Tokens of the answer, at least 1, and how many of them, the first, are reasoning.
    pub(super) tokens: u64,
    pub(super) reasoning: u64,
    /// Tokens that a chunk carries, and chunks that leave together; at least 1.
    pub(super) per_chunk: u64,
    pub(super) burst: u64,
    /// A pause behind this chunk.
    pub(super) pause: Option<(u64, Duration)>,
    /// What happens behind this chunk, in place of the rest.
    pub(super) fault: Option<(u64, Fault)>,
}

/// `count` things at `rate` a second.
fn taking(count: u64, rate: f64) -> Duration {
    Duration::from_nanos((count as f64 * 1e9 / rate).round() as u64)
}

impl Plan {
    fn reasoning_chunks(&self) -> u64 {
        self.reasoning.min(self.tokens).div_ceil(self.per_chunk)
    }

    /// The chunks of the whole answer, if nothing happens to it.
    pub(super) fn all_chunks(&self) -> u64 {
        let content = self.tokens - self.reasoning.min(self.tokens);
        self.reasoning_chunks() + content.div_ceil(self.per_chunk)
    }

    /// The chunks that are made: those up to the fault, if there is one.
    pub(super) fn chunks(&self) -> u64 {
        let all = self.all_chunks();
        self.fault.map_or(all, |(behind, _)| all.min(behind + 1))
    }

    /// The tokens of a chunk, and whether they are reasoning. No chunk has both kinds.
    pub(super) fn chunk(&self, chunk: u64) -> (Range<u64>, bool) {
        let reasoning = self.reasoning.min(self.tokens);
        let is_reasoning = chunk < self.reasoning_chunks();
        let (before, at, most) = if is_reasoning {
            (0, chunk, reasoning)
        } else {
            (reasoning, chunk - self.reasoning_chunks(), self.tokens)
        };
        let first = before + at * self.per_chunk + 1;
        (first..(first + self.per_chunk).min(most + 1), is_reasoning)
    }

    /// When the last token of a chunk is ready, from the start: prefill, and what decoding took since the first token.
    pub(super) fn ready(&self, chunk: u64) -> Duration {
        let last = self.chunk(chunk).0.end - 1;
        let pause = self.pause.filter(|(behind, _)| *behind < chunk).map_or(Duration::ZERO, |(_, length)| length);
        taking(self.uncached, self.speed.prefill) + taking(last.saturating_sub(1), self.speed.decode) + pause
    }

    /// How long reading the prompt takes, and how long writing the answer takes from its first token on.
    pub(super) fn parts(&self) -> (Duration, Duration) {
        let read = taking(self.uncached, self.speed.prefill);
        (read, self.work().saturating_sub(read))
    }

    /// When a chunk is sent, from the start: as soon as the last of those that leave together is ready.
    pub(super) fn due(&self, chunk: u64) -> Duration {
        let last = (chunk / self.burst + 1) * self.burst - 1;
        self.ready(last.min(self.chunks().saturating_sub(1)))
    }

    /// How long the answer keeps its slot: until the last token that is made.
    pub(super) fn work(&self) -> Duration {
        self.ready(self.chunks().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn plan(tokens: u64) -> Plan {
        Plan {
            speed: Speed { prefill: 20_000.0, decode: 50.0 },
            uncached: 1000,
            tokens,
            reasoning: 0,
            per_chunk: 1,
            burst: 1,
            pause: None,
            fault: None,
        }
    }

    fn dues(plan: &Plan) -> Vec<u64> {
        (0..plan.chunks()).map(|chunk| plan.due(chunk).as_millis() as u64).collect()
    }

    #[test]
    fn tokens_come_by_the_formula() {
        let one = plan(4);
        assert_eq!(dues(&one), [50, 70, 90, 110]);
        assert_eq!(one.work(), MS(110));
        let third = Plan { speed: Speed { prefill: 3.0, decode: 3.0 }, uncached: 1, ..plan(2) };
        assert_eq!(third.due(0), Duration::from_nanos(333_333_333));
        assert_eq!(third.due(1), Duration::from_nanos(666_666_666));
        assert_eq!(Plan { uncached: 0, ..plan(1) }.due(0), Duration::ZERO);
    }

    #[test]
    fn a_chunk_comes_with_its_last_token() {
        let three = Plan { per_chunk: 3, ..plan(8) };
        assert_eq!(dues(&three), [90, 150, 190]);
        assert_eq!([0, 1, 2].map(|chunk| three.chunk(chunk).0), [1..4, 4..7, 7..9]);
        assert_eq!(three.work(), MS(190));
    }

    #[test]
    fn reasoning_comes_first_and_in_chunks_of_its_own() {
        let plan = Plan { per_chunk: 3, reasoning: 4, ..plan(8) };
        let chunks: Vec<_> = (0..plan.chunks()).map(|chunk| plan.chunk(chunk)).collect();
        assert_eq!(chunks, [(1..4, true), (4..5, true), (5..8, false), (8..9, false)]);
        let all = Plan { reasoning: 100, ..plan };
        assert!((0..all.chunks()).all(|chunk| all.chunk(chunk).1) && all.chunks() == 3);
    }

    #[test]
    fn bursts_wait_for_their_last_chunk_and_pauses_move_what_follows() {
        assert_eq!(dues(&Plan { burst: 3, ..plan(5) }), [90, 90, 90, 130, 130]);
        let paused = Plan { pause: Some((1, MS(2000))), ..plan(4) };
        assert_eq!(dues(&paused), [50, 70, 2090, 2110]);
        assert_eq!(paused.work(), MS(2110));
    }

    #[test]
    fn a_fault_ends_the_work_with_the_chunk_before_it() {
        let broken = Plan { fault: Some((1, Fault::Cut)), per_chunk: 2, ..plan(10) };
        assert_eq!((broken.chunks(), broken.all_chunks()), (2, 5));
        assert_eq!(broken.work(), MS(50 + 3 * 20));
    }

    proptest! {
        #[test]
        fn chunks_hold_each_token_once_and_in_order_and_never_come_earlier_than_one_before(
            tokens in 1_u64..200,
            reasoning in 0_u64..220,
            per_chunk in 1_u64..20,
            burst in 1_u64..9,
            pause in proptest::option::of(0_u64..50),
            fault in proptest::option::of(0_u64..50),
        ) {
            let pause = pause.map(|behind| (behind, MS(500)));
            let fault = fault.map(|behind| (behind, Fault::Error));
            let plan = Plan { reasoning, per_chunk, burst, pause, fault, ..plan(tokens) };
            let mut next = 1;
            for chunk in 0..plan.chunks() {
                let (range, is_reasoning) = plan.chunk(chunk);
                prop_assert!(range.start == next && range.end > range.start && range.end - range.start <= per_chunk);
                prop_assert!(range.clone().all(|token| (token <= reasoning) == is_reasoning));
                prop_assert!(plan.due(chunk) >= plan.ready(chunk));
                prop_assert!(chunk == 0 || plan.due(chunk) >= plan.due(chunk - 1));
                next = range.end;
            }
            prop_assert_eq!(plan.due(plan.chunks() - 1), plan.work());
            if plan.fault.is_none() {
                prop_assert_eq!(next, tokens + 1);
            }
        }
    }
}
