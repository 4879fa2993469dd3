//! What the connections of all echoes share: incomplete input, and answers that are not due yet.

use std::collections::VecDeque;
use std::time::Duration;

use crate::service::Service;

/// The most answers that wait on one connection before reading pauses, and the most bytes that they hold.
const MAX_WAITING: usize = 1024;
const MAX_HELD: usize = 1024 * 1024;

/// The received part of something incomplete.
#[derive(Debug, Default)]
pub(crate) struct PartialInput(Vec<u8>);

impl PartialInput {
    /// Gives `take` the kept bytes followed by `input`, and keeps what it leaves. `take` returns how many bytes it
    /// took.
    pub(crate) fn receive(&mut self, input: &[u8], take: impl FnOnce(&[u8]) -> usize) {
        if self.0.is_empty() {
            let taken = take(input);
            self.0.extend_from_slice(input.get(taken..).unwrap_or_default());
        } else {
            self.0.extend_from_slice(input);
            let taken = take(&self.0).min(self.0.len());
            self.0.drain(..taken);
            if self.0.is_empty() {
                self.0 = Vec::new();
            }
        }
    }
}

#[derive(Debug)]
struct Answer {
    due: Duration,
    bytes: Vec<u8>,
    /// Whether it counts as an answer.
    counts: bool,
}

/// Answers that are not due yet, in their order.
#[derive(Debug, Default)]
pub(crate) struct DelayedAnswers {
    answers: VecDeque<Answer>,
    held: usize,
}

impl DelayedAnswers {
    /// Whether no answer waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Whether so much waits that reading pauses: the peer does not read, or sends without waiting for answers.
    pub(crate) fn is_full(&self) -> bool {
        self.answers.len() >= MAX_WAITING || self.held >= MAX_HELD
    }

    /// When the next answer is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.answers.front().map(|answer| answer.due)
    }

    /// Gives an answer at `due`, behind those that wait: at once, if nothing delays it.
    #[inline]
    pub(crate) fn answer(
        &mut self,
        due: Duration,
        service: &mut Service,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        if due.is_zero() && self.answers.is_empty() {
            service.answered += 1;
            write(out);
        } else {
            let mut bytes = Vec::new();
            write(&mut bytes);
            self.push(due, bytes, true);
        }
    }

    /// Queues a message behind the answers that wait; it does not count as an answer.
    pub(crate) fn follow(&mut self, bytes: Vec<u8>, out: &mut Vec<u8>) {
        match self.answers.back() {
            Some(last) => self.push(last.due, bytes, false),
            None => out.extend_from_slice(&bytes),
        }
    }

    fn push(&mut self, due: Duration, bytes: Vec<u8>, counts: bool) {
        self.held += bytes.len();
        self.answers.push_back(Answer { due, bytes, counts });
    }

    /// Appends what is due by now.
    pub(crate) fn pump(&mut self, service: &mut Service, out: &mut Vec<u8>) {
        while self.answers.front().is_some_and(|answer| service.is_due(answer.due))
            && let Some(answer) = self.answers.pop_front()
        {
            self.held -= answer.bytes.len();
            service.answered += u64::from(answer.counts);
            out.extend_from_slice(&answer.bytes);
        }
    }
}
