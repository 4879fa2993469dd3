//! Shows the bytes that the connections of a flood send and receive. It sits between the worker and the protocol, so it
//! works the same for every protocol, and costs nothing where no trace is asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brunt_plan::share::Share;
use brunt_plan::target::Target;
use brunt_record::call_timeline::CallTimeline;
use brunt_record::outcome::Failure;
use brunt_record::recording::Recording;
use brunt_record::time::Tick;

use super::{ExchangePart, Trace, Traced};
use crate::transport::Clock;
use brunt_protocol::meter::Meter;
use brunt_protocol::replay::WorkerReplay;
use brunt_protocol::source::{Message, RequestSource};
use brunt_protocol::{
    Answer, AnswerParts, Client, Direction, FailedCall, KeptAnswer, Malformed, Narration, Narrator, Opening, Pending,
    Prepared, Progress, Started,
};

/// The most of the bytes received at once that are kept to be shown.
const MOST_KEPT_BYTES: usize = 64 * 1024;
/// The most messages of an answer that are shown one by one.
const MOST_MESSAGES: usize = 50;

/// The most narrated parts of the bytes received at once that are kept to be shown.
const MOST_TOLD: usize = 100;

/// A protocol whose connections show `trace` their bytes.
pub(crate) struct FloodTrace {
    shared: Arc<Shared>,
}

/// State that its connections share.
struct Shared {
    prepared: Arc<dyn Prepared>,
    trace: Arc<dyn Trace>,
    /// The time, in nanoseconds.
    clock: Clock,
    status_names: BTreeMap<u16, String>,
    /// Whether the end of the call has been shown.
    ended: AtomicBool,
}

impl FloodTrace {
    /// Wraps `prepared`, to be shown to `trace` with times by `clock` (nanoseconds).
    pub(crate) fn new(prepared: Arc<dyn Prepared>, trace: Arc<dyn Trace>, clock: Clock) -> Self {
        let shared =
            Shared { status_names: prepared.status_names(), prepared, trace, clock, ended: AtomicBool::new(false) };
        Self { shared: Arc::new(shared) }
    }

    /// Shows at the end of the run how its call ended, if no protocol could know: the connection failed, or time was
    /// up.
    pub(crate) fn finish(&self, run: &Recording) {
        if self.shared.ended.load(Ordering::Relaxed) {
            return;
        }
        for failures in [&run.measured.failures, &run.drained.failures] {
            for (failure, _) in failures.counted() {
                let reasons = failures.reasons(failure);
                let reason = reasons.first().map_or("", |(reason, _)| reason);
                self.shared.failed(failure, reason, None);
            }
        }
    }
}

impl Shared {
    fn failed(&self, failure: Failure, reason: &str, service_ns: Option<u64>) {
        self.ended.store(true, Ordering::Relaxed);
        self.trace.see(&Traced::CallFailed { failure, reason, service_ns });
    }

    fn answered(&self, status: u16, service_ns: u64) {
        self.ended.store(true, Ordering::Relaxed);
        let status_name = self.status_names.get(&status).map(String::as_str);
        self.trace.see(&Traced::CallAnswered { status, status_name, service_ns });
    }
}

impl Prepared for FloodTrace {
    fn client(&self, keep: bool) -> Box<dyn Client> {
        self.client_of(0, keep)
    }

    fn own_calls(&self, share: Share) -> Option<Box<dyn WorkerReplay>> {
        self.shared.prepared.own_calls(share)
    }

    fn meter(&self) -> Option<Box<dyn Meter>> {
        self.shared.prepared.meter()
    }

    fn timelines(&self) -> Vec<CallTimeline> {
        self.shared.prepared.timelines()
    }

    fn client_of(&self, number: u64, keep: bool) -> Box<dyn Client> {
        Box::new(SeenClient {
            inner: self.shared.prepared.client_of(number, keep),
            narrator: self.shared.prepared.narrator(),
            told: None,
            shared: Arc::clone(&self.shared),
            is_open: false,
            sent_at: Tick::EPOCH,
            called_at: None,
            received: Vec::new(),
            count: 0,
            messages: 0,
        })
    }

    fn user(&self) -> Box<dyn RequestSource> {
        self.shared.prepared.user()
    }

    fn targets(&self) -> Vec<Target> {
        self.shared.prepared.targets()
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        self.shared.prepared.alpn()
    }

    fn status_names(&self) -> BTreeMap<u16, String> {
        self.shared.status_names.clone()
    }

    fn is_safe(&self) -> bool {
        self.shared.prepared.is_safe()
    }

    fn redirected_to(&self) -> Option<String> {
        self.shared.prepared.redirected_to()
    }

    fn narrator(&self) -> Option<Box<dyn Narrator>> {
        self.shared.prepared.narrator()
    }

    fn meaning(&self, direction: Direction, bytes: &[u8]) -> Option<String> {
        self.shared.prepared.meaning(direction, bytes)
    }
}

impl fmt::Debug for FloodTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FloodTrace").finish_non_exhaustive()
    }
}

/// A connection whose bytes are shown.
struct SeenClient {
    inner: Box<dyn Client>,
    shared: Arc<Shared>,
    /// Narrates its bytes, where the protocol has a narrator.
    narrator: Option<Box<dyn Narrator>>,
    /// The narration of received bytes that was not shown yet.
    told: Option<Vec<Narration>>,
    is_open: bool,
    /// When it last sent bytes.
    sent_at: Tick,
    /// When its call was sent.
    called_at: Option<Tick>,
    /// The beginning of the received bytes that were not shown yet.
    received: Vec<u8>,
    /// The number of received bytes that were not shown yet.
    count: u64,
    /// The number of messages shown one by one.
    messages: usize,
}

impl SeenClient {
    /// Shows the bytes of `out` from `from` on, and `more` behind them.
    fn sent(&mut self, part: ExchangePart, out: &[u8], from: usize, more: &[u8]) {
        let bytes = [out.get(from..).unwrap_or_default(), more].concat();
        if bytes.is_empty() {
            return;
        }
        self.sent_at = (self.shared.clock)();
        let told = self.narrator.as_mut().and_then(|narrator| narrator.narrate(Direction::Sent, &bytes));
        self.moved(Direction::Sent, part, &bytes, bytes.len() as u64, None, told.as_deref());
    }

    /// Shows the received bytes.
    fn show_received(&mut self, part: ExchangePart) {
        let (bytes, count) = (std::mem::take(&mut self.received), std::mem::take(&mut self.count));
        if count > 0 {
            let after_ns = (self.shared.clock)().since(self.sent_at);
            let told = self.told.take();
            self.moved(Direction::Received, part, &bytes, count, Some(after_ns), told.as_deref());
        }
    }

    fn moved(
        &self,
        direction: Direction,
        part: ExchangePart,
        bytes: &[u8],
        count: u64,
        after_ns: Option<u64>,
        told: Option<&[Narration]>,
    ) {
        let meaning =
            if part == ExchangePart::Handshake { None } else { self.shared.prepared.meaning(direction, bytes) };
        let meaning = meaning.as_deref();
        self.shared.trace.see(&Traced::Moved { direction, part, bytes, count, meaning, told, after_ns });
    }

    fn service_ns(&self) -> Option<u64> {
        self.called_at.map(|called_at| (self.shared.clock)().since(called_at))
    }

    /// The owner of bytes that are not understood yet.
    fn part(&self) -> ExchangePart {
        match (self.is_open, self.called_at) {
            (false, _) => ExchangePart::Handshake,
            (true, Some(_)) => ExchangePart::Call,
            (true, None) => ExchangePart::Aside,
        }
    }

    fn progressed(&mut self, progress: &Progress) {
        match progress {
            Progress::More | Progress::Part { .. } => {}
            Progress::Opened => {
                self.show_received(ExchangePart::Handshake);
                self.is_open = true;
            }
            Progress::Message { .. } => {
                // Messages after the most that are shown are shown at the end, as far as they are kept.
                if self.messages < MOST_MESSAGES {
                    self.messages += 1;
                    self.show_received(ExchangePart::Call);
                }
            }
            Progress::ControlFrame | Progress::Unsolicited | Progress::Draining { .. } | Progress::Refused { .. } => {
                self.show_received(ExchangePart::Aside);
            }
            Progress::Answered(answer) => {
                self.show_received(ExchangePart::Call);
                self.shared.answered(answer.status, self.service_ns().unwrap_or(0));
                self.called_at = None;
            }
            Progress::Failed(failed) => {
                self.show_received(ExchangePart::Call);
                self.shared.failed(failed.failure, &failed.reason, self.service_ns());
                self.called_at = None;
            }
            Progress::Closing(reason) => {
                self.show_received(if self.is_open { ExchangePart::Goodbye } else { ExchangePart::Handshake });
                let failure = if self.is_open { Failure::Closed } else { Failure::Handshake };
                if let Some(service_ns) = self.service_ns() {
                    self.shared.failed(failure, reason, Some(service_ns));
                }
            }
        }
    }
}

impl Client for SeenClient {
    fn open(&mut self, alpn: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        let from = out.len();
        let opening = self.inner.open(alpn, out)?;
        self.is_open = opening == Opening::Ready;
        self.sent(ExchangePart::Handshake, out, from, &[]);
        Ok(opening)
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let from = out.len();
        let started = self.inner.start(message, out);
        let tail = message.tail.as_ref().filter(|_| !self.inner.is_framed());
        self.sent(ExchangePart::Call, out, from, tail.map_or(&[], |tail| tail.bytes()));
        self.called_at = Some(self.sent_at);
        if let Started::Sent(status) = started {
            self.shared.answered(status, 0);
            self.called_at = None;
        }
        started
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        let from = out.len();
        let received = self.inner.receive(bytes, out);
        let taken = received.as_ref().map_or(bytes.len(), |(taken, _)| *taken);
        let bytes = bytes.get(..taken).unwrap_or(bytes);
        self.count += bytes.len() as u64;
        if let Some(told) = self.narrator.as_mut().and_then(|narrator| narrator.narrate(Direction::Received, bytes)) {
            let all = self.told.get_or_insert_default();
            all.extend(told);
            // No more parts are shown than the limit.
            all.truncate(MOST_TOLD);
        }
        let room = MOST_KEPT_BYTES.saturating_sub(self.received.len());
        self.received.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        match &received {
            Ok((_, progress)) => {
                let reply = match progress {
                    _ if !self.is_open => ExchangePart::Handshake,
                    Progress::Closing(_) => ExchangePart::Goodbye,
                    _ => ExchangePart::Aside,
                };
                self.progressed(progress);
                if out.len() > from {
                    self.show_received(self.part());
                }
                self.sent(reply, out, from, &[]);
            }
            Err(malformed) => {
                self.show_received(self.part());
                if let Some(service_ns) = self.service_ns() {
                    self.shared.failed(Failure::Protocol, &malformed.0, Some(service_ns));
                }
            }
        }
        received
    }

    fn has_asked_to_close(&self) -> bool {
        self.inner.has_asked_to_close()
    }

    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        let ended = self.inner.closed();
        self.show_received(self.part());
        match &ended {
            Some(Ok(answer)) => self.shared.answered(answer.status, self.service_ns().unwrap_or(0)),
            Some(Err(failed)) => self.shared.failed(failed.failure, &failed.reason, self.service_ns()),
            None => return ended,
        }
        self.called_at = None;
        ended
    }

    fn cancel(&mut self, position: usize, out: &mut Vec<u8>) -> bool {
        let from = out.len();
        let goes_on = self.inner.cancel(position, out);
        self.sent(ExchangePart::Aside, out, from, &[]);
        goes_on
    }

    fn is_framed(&self) -> bool {
        self.inner.is_framed()
    }

    fn pending(&self) -> Pending {
        self.inner.pending()
    }

    fn more(&mut self, out: &mut Vec<u8>) {
        let from = out.len();
        self.inner.more(out);
        self.sent(ExchangePart::Call, out, from, &[]);
    }

    fn stalled(&mut self) {
        self.inner.stalled();
    }

    fn resumed(&mut self, out: &mut Vec<u8>) {
        let from = out.len();
        self.inner.resumed(out);
        self.sent(ExchangePart::Aside, out, from, &[]);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.show_received(self.part());
        let from = out.len();
        self.inner.close(out);
        self.sent(ExchangePart::Goodbye, out, from, &[]);
    }

    fn has_finished(&self) -> bool {
        self.inner.has_finished()
    }

    fn sends_early(&mut self, is_early: bool) {
        self.inner.sends_early(is_early);
    }

    fn beat(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let from = out.len();
        self.inner.beat(out)?;
        self.sent(ExchangePart::Aside, out, from, &[]);
        Ok(())
    }

    fn take_events(&mut self, note: &mut dyn FnMut(&str, u64)) {
        self.inner.take_events(note);
    }

    fn parts(&self) -> AnswerParts<'_> {
        self.inner.parts()
    }

    fn take_answer(&mut self, kept: &mut KeptAnswer) {
        self.inner.take_answer(kept);
    }
}

impl Drop for SeenClient {
    /// The bytes of an answer that was never complete are worth seeing most.
    fn drop(&mut self) {
        self.show_received(self.part());
    }
}
