//! Examples of calls that were not ok. Few calls of each kind of ending come here.

use brunt_plan::bodies::shown_beginning;
use brunt_record::examples::{ExampleEnd, FailedExample, LONGEST_SAID};
use brunt_record::slowest::TracedCall;
use brunt_record::time::Tick;

use super::calls::CallId;
use super::calls::{Call, End};
use super::{Network, Workload};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::Answer;

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// An answer whose status is no success has come, at the end of these bytes: keeps an excerpt of it for an example.
    #[cold]
    pub(super) fn keep_excerpt<W: Workload<D, Tag = T>>(
        &mut self,
        load: &W,
        token: ConnectionId,
        answer: &Answer,
        came: &[u8],
    ) {
        let connection = &self.connections[token];
        let Some(id) = connection.calls.get(answer.position).copied() else { return };
        let has_trace = || self.calls.get(id).is_some_and(|call| load.trace_id(call.tag).is_some());
        if self.recorder.wants_example(ExampleEnd::Status(answer.status), has_trace) {
            self.recorder.excerpt = Some((id, shown(connection.link.client.excerpt(came))));
        }
    }

    /// A successful call took longer than those kept of this interval: keeps it, if it has a trace.
    #[cold]
    pub(super) fn note_slow<W: Workload<D, Tag = T>>(&mut self, load: &W, call: &Call<T>, status: u16, now: Tick) {
        let took_ns = self.recorder.response_ns(call, now);
        if !call.measured || !self.recorder.is_slow(took_ns) {
            return;
        }
        let Some(trace_id) = load.trace_id(call.tag) else { return };
        let request = load.request_name(call.tag, self.connection_number(call)).unwrap_or_default().to_owned();
        let due_ns = self.recorder.measured_at(call.due);
        self.recorder.slow(TracedCall { due_ns, took_ns, status, request, trace_id });
    }

    /// A call has ended and was not ok.
    pub(super) fn note_example<W: Workload<D, Tag = T>>(
        &mut self,
        load: &W,
        id: CallId,
        call: &Call<T>,
        end: End<'_>,
        now: Tick,
    ) {
        let excerpt = self.recorder.excerpt.take().filter(|(of, _)| *of == id).map(|(_, excerpt)| excerpt);
        let ended = match (end, end.failure()) {
            (End::Answered(status), _) => ExampleEnd::Status(status),
            (_, Some((failure, _))) => ExampleEnd::Failure(failure),
            _ => return,
        };
        let trace_id = load.trace_id(call.tag);
        if !call.measured || !self.recorder.wants_example(ended, || trace_id.is_some()) {
            return;
        }
        let said = match (end.failure(), call.connection()) {
            (Some((_, reason)), _) => reason.to_owned(),
            (_, Some(token)) => match excerpt.filter(|excerpt| !excerpt.is_empty()) {
                Some(excerpt) => excerpt,
                None => shown(self.connections[token].link.client.parts().body),
            },
            _ => String::new(),
        };
        let request = load.request_name(call.tag, self.connection_number(call)).unwrap_or_default().to_owned();
        let due_ns = self.recorder.measured_at(call.due);
        let trace_id = trace_id.unwrap_or_default();
        let took_ns = call.response_ns(now);
        self.recorder.example(ended, FailedExample { due_ns, took_ns, request, said, trace_id });
    }
}

/// The beginning of a body as it may be shown; empty if the body is not text.
pub(super) fn shown(body: &[u8]) -> String {
    let (beginning, is_cut) = shown_beginning(body, LONGEST_SAID);
    let mut text = String::from_utf8_lossy(&beginning).into_owned();
    if is_cut {
        // A character that was cut in two does not make a text binary.
        while text.ends_with('\u{fffd}') {
            text.pop();
        }
        text.push('…');
    }
    let is_text = !text.chars().any(|c| c == '\u{fffd}' || (c.is_control() && !matches!(c, '\t' | '\n' | '\r')));
    if is_text { text.trim().to_owned() } else { String::new() }
}
