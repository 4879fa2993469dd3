//! The client of one connection: HTTP below, and above it what the events of answers say.
//!
//! An event is a message of its call only if it adds text to the answer. One that only names a role, that counts tokens or that says why
//! the model stopped is read and told with the end, so that no time to a first token ends at an event without one.

use std::borrow::Cow;
use std::collections::VecDeque;

use brunt_protocol::messages::Framing;
use brunt_protocol::source::Message;
use brunt_protocol::{
    Answer, AnswerParts, Client, FailedCall, KeptAnswer, Malformed, Opening, Pending, Progress, Started,
};
use brunt_record::kinds::AnswerSample;
use brunt_record::outcome::Failure;

use crate::dialect::ApiDialect;
use crate::event::{Finish, Usage};
use crate::facts::{self, Said};
use crate::reply::Reply;
use crate::turns::LATER;

/// The reasons of failures.
const FAILED: &str = "the server reports an error in its stream";
const NOT_JSON: &str = "an answer, or an event of one, is not JSON of this API";
const CUT: &str = "the stream ended before the model had finished";
const EMPTY: &str = "the stream ended without a word of the model";
const NO_STREAM: &str =
    "the answer is no stream of events: see its Content-Type, and ask for whole answers with --no-stream";
const ENCODED: &str = "the stream is compressed (Content-Encoding), which brunt did not ask for";

/// A call in flight.
#[derive(Debug, Default)]
struct InFlight {
    usage: Usage,
    finish: Option<Finish>,
    has_text: bool,
    is_last: bool,
    /// Whether it is a turn after the first of its conversation.
    is_later: bool,
    /// Its text so far, where a later turn repeats it.
    reply: Reply,
    /// The choices, by their bits, that have text and have not come to their end.
    unended: u64,
    /// Why it has failed, once it has.
    problem: Option<(Failure, &'static str)>,
}

/// A connection to a server of language models.
pub struct LlmClient {
    inner: Box<dyn Client>,
    dialect: ApiDialect,
    streams: bool,
    /// Whether the text of answers is kept.
    keeps_replies: bool,
    calls: VecDeque<InFlight>,
    /// What is told of the last message, or the last end.
    facts: Vec<u8>,
    /// Streams that were whole but for their dialect's last event.
    without_last: u64,
}

impl LlmClient {
    /// A client on one of HTTP, which keeps answers.
    pub fn new(inner: Box<dyn Client>, dialect: ApiDialect, streams: bool) -> Self {
        let (calls, facts) = (VecDeque::new(), Vec::new());
        Self { inner, dialect, streams, keeps_replies: false, calls, facts, without_last: 0 }
    }

    /// The same client, which tells the text of each answer with its end.
    #[must_use]
    pub fn keeping_replies(self) -> Self {
        Self { keeps_replies: true, ..self }
    }

    /// What HTTP has seen, as far as it is anybody's business: `None` for an event that adds no text.
    fn told(&mut self, progress: Progress) -> Option<Progress> {
        match progress {
            Progress::Message { position, status } => self.message(position, status),
            Progress::Answered(answer) => Some(self.answered(answer)),
            Progress::Failed(failed) => {
                self.calls.remove(failed.position);
                Some(Progress::Failed(failed))
            }
            Progress::Refused { position, reason } => {
                self.calls.remove(position);
                Some(Progress::Refused { position, reason })
            }
            Progress::Draining { unprocessed } => {
                self.calls.truncate(unprocessed);
                Some(Progress::Draining { unprocessed })
            }
            other => Some(other),
        }
    }

    fn message(&mut self, position: usize, status: u16) -> Option<Progress> {
        // The first line is the event's name, the second its id, the rest its data.
        let mut parts = self.inner.parts().body.splitn(3, |byte| *byte == b'\n');
        let is_error = parts.next() == Some(b"error");
        let data = parts.nth(1).unwrap_or_default();
        let is_alone = self.calls.len() == 1;
        let call = self.calls.get_mut(position)?;
        let reply = if self.keeps_replies { call.reply.open() } else { None };
        let event = self.dialect.read(data, reply);
        call.reply.cut();
        let Some(event) = event.filter(|event| !event.is_error && !is_error) else {
            let problem =
                if is_error || event.is_some() { (Failure::Exception, FAILED) } else { (Failure::Protocol, NOT_JSON) };
            let problem = *call.problem.get_or_insert(problem);
            // Other streams of the connection go on, and this one ends when its server ends it.
            return is_alone.then(|| failed(&mut self.calls, position, problem, false));
        };
        call.usage.update(event.usage);
        call.finish = event.finish.or(call.finish);
        call.is_last |= event.is_last;
        call.unended = (call.unended | event.said_by) & !event.ended;
        let (kind, bytes) = event.text?;
        call.has_text = true;
        let said = Said { kind, bytes, output: event.usage.output, is_later: call.is_later };
        facts::write_message(&mut self.facts, &said);
        Some(Progress::Message { position, status })
    }

    fn answered(&mut self, answer: Answer) -> Progress {
        let mut call = self.calls.remove(answer.position).unwrap_or_default();
        if !(200..300).contains(&answer.status) {
            facts::write_end(&mut self.facts, &call.usage, None, 0, "");
            return Progress::Answered(answer);
        }
        let mut bytes = 0;
        if !self.streams {
            let reply = if self.keeps_replies { call.reply.open() } else { None };
            match self.dialect.read(self.inner.parts().body, reply) {
                Some(event) if event.is_error => call.problem = Some((Failure::Exception, FAILED)),
                Some(event) => {
                    call.usage = event.usage;
                    call.finish = event.finish;
                    bytes = event.text.map_or(0, |(_, bytes)| bytes);
                }
                None => call.problem = Some((Failure::Protocol, NOT_JSON)),
            }
            call.reply.cut();
        } else if (call.finish.is_none() || call.unended != 0) && !call.is_last {
            let problem = if call.has_text || call.finish.is_some() {
                (Failure::EndedEarly, CUT)
            } else {
                no_stream(self.inner.parts().head, self.dialect.framing()).unwrap_or((Failure::EndedEarly, EMPTY))
            };
            call.problem.get_or_insert(problem);
        } else if !call.is_last {
            self.without_last += 1;
        }
        facts::write_end(&mut self.facts, &call.usage, call.finish, bytes, call.reply.as_str());
        match call.problem {
            None => Progress::Answered(answer),
            Some((failure, reason)) => Progress::Failed(FailedCall {
                position: answer.position,
                failure,
                reason: reason.into(),
                reusable: answer.reusable,
            }),
        }
    }
}

/// Why an answer with this head has no event that can be read, if that is not the model's fault.
fn no_stream(head: &[u8], framing: Framing) -> Option<(Failure, &'static str)> {
    let field = |wanted: &str| {
        let lines = head.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let values =
            lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        values.map(|(_, value)| value.trim().to_ascii_lowercase()).next()
    };
    if field("content-encoding").is_some_and(|coding| coding != "identity") {
        return Some((Failure::Protocol, ENCODED));
    }
    let is_other = |kind: String| framing == Framing::Sse && !kind.starts_with("text/event-stream");
    field("content-type").is_some_and(is_other).then_some((Failure::Protocol, NO_STREAM))
}

fn failed(
    calls: &mut VecDeque<InFlight>,
    position: usize,
    (failure, reason): (Failure, &'static str),
    reusable: bool,
) -> Progress {
    calls.remove(position);
    Progress::Failed(FailedCall { position, failure, reason: reason.into(), reusable })
}

impl Client for LlmClient {
    fn open(&mut self, alpn: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        self.inner.open(alpn, out)
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let is_later = message.hint & LATER != 0;
        let started = self.inner.start(&Message { hint: message.hint & !LATER, ..*message }, out);
        if !matches!(started, Started::Malformed(_)) {
            self.calls.push_back(InFlight { is_later, ..InFlight::default() });
        }
        started
    }

    fn send_message(&mut self, position: usize, message: &Message<'_>, out: &mut Vec<u8>) -> Result<(), &'static str> {
        self.inner.send_message(position, message, out)
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let (n, progress) = self.inner.receive(rest, out)?;
            taken += n;
            if let Some(told) = self.told(progress) {
                return Ok((taken, told));
            }
            if taken >= bytes.len() {
                return Ok((taken, Progress::More));
            }
        }
    }

    fn take_superseded(&mut self) -> Option<Answer> {
        self.inner.take_superseded()
    }

    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        let ended = self.inner.closed()?;
        let progress = match ended {
            Ok(answer) => Progress::Answered(answer),
            Err(failed) => Progress::Failed(failed),
        };
        match self.told(progress)? {
            Progress::Answered(answer) => Some(Ok(answer)),
            Progress::Failed(failed) => Some(Err(failed)),
            _ => None,
        }
    }

    fn has_asked_to_close(&self) -> bool {
        self.inner.has_asked_to_close()
    }

    fn close_reason(&self) -> Option<Cow<'static, str>> {
        self.inner.close_reason()
    }

    fn cancel(&mut self, position: usize, out: &mut Vec<u8>) -> bool {
        let goes_on = self.inner.cancel(position, out);
        if goes_on {
            self.calls.remove(position);
        }
        goes_on
    }

    fn is_framed(&self) -> bool {
        self.inner.is_framed()
    }

    fn pending(&self) -> Pending {
        self.inner.pending()
    }

    fn more(&mut self, out: &mut Vec<u8>) {
        self.inner.more(out);
    }

    fn stalled(&mut self) {
        self.inner.stalled();
    }

    fn resumed(&mut self, out: &mut Vec<u8>) {
        self.inner.resumed(out);
    }

    fn take_events(&mut self, note: &mut dyn FnMut(&str, u64)) {
        self.inner.take_events(note);
        if self.without_last > 0 {
            note("streams without their last event", std::mem::take(&mut self.without_last));
        }
    }

    fn has_finished(&self) -> bool {
        self.inner.has_finished()
    }

    fn sends_early(&mut self, is_early: bool) {
        self.inner.sends_early(is_early);
    }

    fn beat(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        self.inner.beat(out)
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.inner.close(out);
    }

    fn parts(&self) -> AnswerParts<'_> {
        AnswerParts { head: self.inner.parts().head, body: &self.facts }
    }

    fn excerpt<'a>(&self, came: &'a [u8]) -> &'a [u8] {
        self.inner.excerpt(came)
    }

    fn request_sample(&mut self) -> bool {
        self.inner.request_sample()
    }

    fn take_sample(&self) -> Option<AnswerSample<'_>> {
        self.inner.take_sample()
    }

    fn take_answer(&mut self, kept: &mut KeptAnswer) {
        self.inner.take_answer(kept);
    }
}

#[cfg(test)]
mod tests;
