//! One connection to a Thrift server: calls with sequence ids out, answers matched by them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use brunt_record::outcome::Failure;

use super::carrier::{Arrived, Carrier, Transport};
use super::conforming::{fault, has_parts};
use super::json;
use super::method::{Method, Unfit};
use super::options::WireName;
use super::reply::{Fault, Reply, ReplyFraming, ReplyReader};
use super::schema::{Function, Schema};
use super::value::{WireType, WireValue};
use super::wire::{Binary, Compact, MessageKind, WireProtocol, read_value, write_value};
use brunt_protocol::source::Message;
use brunt_protocol::{Answer, AnswerParts, Client, FailedCall, Malformed, Progress, Started};

/// The longest result that is kept to compare the next one with, in bytes.
const MOST_REMEMBERED_BYTES: usize = 4 * 1024;
/// How much of an exception's own words is counted by, in characters.
const MOST_REASON_CHARS: usize = 200;

/// What the clients of a run share.
#[derive(Debug)]
pub(super) struct Calls {
    /// The methods of the run. A message's hint holds an index into them, and the offset of its sequence id.
    pub(super) methods: Vec<Method>,
    pub(super) wire: WireName,
    pub(super) transport: Transport,
    /// The most bytes of one answer.
    pub(super) limit: u32,
    /// The result struct that answers are compared with, if they are.
    pub(super) expected: Option<WireValue>,
    /// The IDL, which has the types of the methods' results.
    pub(super) schema: Arc<Schema>,
    pub(super) functions: Vec<Function>,
}

impl Calls {
    /// The client of a connection. With `keep`, each answer is kept until the next one begins.
    pub(super) fn client(self: &Arc<Self>, keep: bool) -> Box<dyn Client> {
        let calls = Arc::clone(self);
        match self.wire {
            WireName::Binary | WireName::Json => Box::new(ThriftClient::<Binary>::new(calls, keep)),
            WireName::Compact => Box::new(ThriftClient::<Compact>::new(calls, keep)),
        }
    }
}

/// Packs a method's index and the offset of its sequence id into a hint.
pub(super) fn hint(method: usize, sequence_at: usize) -> u32 {
    (method as u32) << 16 | sequence_at as u32 & 0xffff
}

pub(super) struct ThriftClient<W> {
    calls: Arc<Calls>,
    /// What whole messages are cut out by, before they are read.
    carrier: Option<Carrier>,
    reader: ReplyReader<W>,
    /// The expected result in its most frequent encoding; empty if none is expected.
    expected: Vec<u8>,
    /// The method and the result that last conformed to the IDL; the next result is most often the same.
    conforming: (u32, Vec<u8>),
    /// The next call's sequence id.
    sequence: i32,
    /// Sequence ids and methods of the calls in flight, oldest first.
    in_flight: VecDeque<(i32, u32)>,
    /// The bytes of a sequence id.
    number: Vec<u8>,
}

impl<W: WireProtocol> ThriftClient<W> {
    pub(super) fn new(calls: Arc<Calls>, keep: bool) -> Self {
        let keeps = keep || calls.expected.is_some() || calls.functions.iter().any(has_parts);
        let carrier = Carrier::new(&calls.transport, calls.wire, calls.limit);
        let framing = calls.transport.framing(calls.wire).unwrap_or(ReplyFraming::Unframed);
        let reader = ReplyReader::new(framing, calls.limit, keeps);
        let mut expected = Vec::new();
        if let Some(value) = &calls.expected {
            write_value::<W>(&mut expected, value);
        }
        let conforming = (0, Vec::new());
        let (in_flight, number) = (VecDeque::new(), Vec::new());
        Self { calls, carrier, reader, expected, conforming, sequence: 0, in_flight, number }
    }

    /// Whether the newest result is the expected one, if any is expected.
    fn is_expected(&self) -> bool {
        let Some(expected) = &self.calls.expected else { return true };
        let (_, body) = self.reader.kept();
        body == self.expected
            || read_value::<W>(body, WireType::Struct).is_ok_and(|(value, _)| expected.is_met_by(&value))
    }

    /// Where the newest result departs from the IDL, if its method's result has parts that can.
    fn fault(&mut self, place: u32) -> Option<String> {
        let function = self.calls.functions.get(place as usize).filter(|function| has_parts(function))?;
        let (_, body) = self.reader.kept();
        if self.conforming.0 == place && self.conforming.1 == body {
            return None;
        }
        let fault = match read_value::<W>(body, WireType::Struct) {
            Ok((value, _)) => fault(&self.calls.schema, function, &value),
            Err(malformed) => Some(malformed.0.into_owned()),
        };
        if fault.is_none() && body.len() <= MOST_REMEMBERED_BYTES {
            self.conforming.0 = place;
            self.conforming.1.clear();
            self.conforming.1.extend_from_slice(body);
        }
        fault
    }

    fn is_oneway(&self, method: u32) -> bool {
        self.calls.methods.get(method as usize).is_some_and(|method| method.oneway)
    }

    /// The progress that a message makes which a carrier has cut out.
    fn carried(&mut self, arrived: Arrived) -> Result<Progress, Fault> {
        let Some(carrier) = &self.carrier else { return Ok(Progress::ControlFrame) };
        let Some((_, method)) = self.in_flight.front().copied() else {
            return Err(Malformed::because("an answer that nobody asked for").into());
        };
        if arrived.status != 200 {
            self.in_flight.pop_front();
            let reason = Cow::Owned(format!("the server answered {}, not 200 OK", arrived.status));
            let (failure, reusable) = (Failure::Exception, arrived.reusable);
            return Ok(Progress::Failed(FailedCall { position: 0, failure, reason, reusable }));
        }
        if self.is_oneway(method) {
            self.in_flight.pop_front();
            return Ok(Progress::Answered(Answer { position: 0, status: 0, reusable: arrived.reusable }));
        }
        let message = match self.calls.wire {
            WireName::Json => {
                Cow::Owned(json::to_binary(&self.calls.schema, &self.calls.functions, carrier.message())?)
            }
            WireName::Binary | WireName::Compact => Cow::Borrowed(carrier.message()),
        };
        let reply = match self.reader.receive(&message)? {
            (taken, Some(reply)) if taken == message.len() => reply,
            (_, Some(_)) => return Err(Malformed::because("bytes behind the end of a message").into()),
            (_, None) => return Err(Malformed::because("an answer that ends within its message").into()),
        };
        let mut progress = self.answered(&reply)?;
        if let Progress::Answered(Answer { reusable, .. }) | Progress::Failed(FailedCall { reusable, .. }) =
            &mut progress
        {
            *reusable &= arrived.reusable;
        }
        Ok(progress)
    }

    /// The progress that a complete answer makes.
    fn answered(&mut self, reply: &Reply) -> Result<Progress, Malformed> {
        if matches!(reply.kind, MessageKind::Call | MessageKind::Oneway) {
            return Err(Malformed::because("a call where an answer belongs"));
        }
        // Almost always the answer is to the oldest call, which is the only one.
        let Some(position) = self.in_flight.iter().position(|(sequence, _)| *sequence == reply.sequence) else {
            return Ok(failed(0, Failure::Sequence, "an answer with a sequence id that no call in flight has", false));
        };
        let Some((_, place)) = self.in_flight.remove(position) else {
            return Err(Malformed::because("an answer that nobody asked for"));
        };
        let Some(method) = self.calls.methods.get(place as usize) else {
            return Err(Malformed::because("an answer that nobody asked for"));
        };
        if !method.is_named(self.reader.name()) {
            return Ok(failed(position, Failure::Protocol, "an answer to another method than was called", false));
        }
        if reply.kind == MessageKind::Exception {
            let reason = application_exception::<W>(self.reader.kept().1);
            return Ok(Progress::Failed(FailedCall { position, failure: Failure::Exception, reason, reusable: true }));
        }
        let judged = method.judge(reply);
        if judged.is_ok()
            && let Some(reason) = self.fault(place)
        {
            let reason = Cow::Owned(reason);
            return Ok(Progress::Failed(FailedCall { position, failure: Failure::Protocol, reason, reusable: true }));
        }
        Ok(match judged {
            Ok(0) if !self.is_expected() => {
                failed(position, Failure::Mismatch, "a result that is not the expected one", true)
            }
            Ok(id) => Progress::Answered(Answer { position, status: id.unsigned_abs(), reusable: true }),
            Err(Unfit(reason)) => failed(position, Failure::Protocol, reason, true),
        })
    }
}

fn failed(position: usize, failure: Failure, reason: &'static str, reusable: bool) -> Progress {
    Progress::Failed(FailedCall { position, failure, reason: Cow::Borrowed(reason), reusable })
}

impl<W: WireProtocol> Client for ThriftClient<W> {
    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        let (method, sequence_at) = (message.hint >> 16, (message.hint & 0xffff) as usize);
        let (before, after) = message.bytes.split_at_checked(sequence_at).unwrap_or((message.bytes, &[]));
        let sequence = self.sequence;
        // Never negative, as some servers read the id as unsigned.
        self.sequence = sequence.wrapping_add(1) & i32::MAX;
        self.number.clear();
        match self.calls.wire {
            WireName::Json => self.number.extend_from_slice(sequence.to_string().as_bytes()),
            WireName::Binary | WireName::Compact => W::write_sequence(&mut self.number, sequence),
        }
        let length = before.len() + self.number.len() + after.len();
        self.calls.transport.write_head(length, sequence, self.calls.wire, out);
        out.extend_from_slice(before);
        out.extend_from_slice(&self.number);
        out.extend_from_slice(after);
        // HTTP answers every request, with an empty body where the method has no answer.
        let is_answered = matches!(self.calls.transport, Transport::Http(_));
        if !is_answered && self.is_oneway(method) {
            return Started::Sent(0);
        }
        self.in_flight.push_back((sequence, method));
        Started::Awaited
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        if self.in_flight.is_empty() {
            return Err(Malformed::because("an answer that nobody asked for"));
        }
        let received = match &mut self.carrier {
            None => match self.reader.receive(bytes) {
                Ok((taken, None)) => Ok((taken, Progress::More)),
                Ok((taken, Some(reply))) => return Ok((taken, self.answered(&reply)?)),
                Err(fault) => Err(fault),
            },
            Some(carrier) => match carrier.receive(bytes) {
                Ok((taken, None)) => Ok((taken, Progress::More)),
                Ok((taken, Some(arrived))) => self.carried(arrived).map(|progress| (taken, progress)),
                Err(fault) => Err(fault),
            },
        };
        received.or_else(|fault| match fault {
            Fault::Malformed(malformed) => Err(malformed),
            Fault::Oversize => {
                let reason = "an answer of more bytes than --max-answer allows";
                Ok((bytes.len(), failed(0, Failure::Oversize, reason, false)))
            }
        })
    }

    /// Some HTTP servers end an answer by closing.
    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        let arrived = self.carrier.as_mut()?.closed()?;
        match self.carried(arrived) {
            Ok(Progress::Answered(answer)) => Some(Ok(answer)),
            Ok(Progress::Failed(failed)) => Some(Err(failed)),
            _ => None,
        }
    }

    fn parts(&self) -> AnswerParts<'_> {
        let (head, body) = self.reader.kept();
        AnswerParts { head, body }
    }
}

/// A `TApplicationException` in words: its type by name (`thrift-rpc.md`, "Response struct") and its message.
fn application_exception<W: WireProtocol>(body: &[u8]) -> Cow<'static, str> {
    let Ok((WireValue::Struct(fields), _)) = read_value::<W>(body, WireType::Struct) else {
        return Cow::Borrowed("an exception that is too long to be shown");
    };
    let field = |wanted: i16| fields.iter().find(|(id, _)| *id == wanted).map(|(_, value)| value);
    let kind = match field(2) {
        Some(WireValue::I32(number)) => *number,
        _ => 0,
    };
    let name = match kind {
        1 => "unknown method",
        2 => "invalid message type",
        3 => "wrong method name",
        4 => "bad sequence id",
        5 => "missing result",
        6 => "internal error",
        7 => "protocol error",
        8 => "invalid transform",
        9 => "invalid protocol",
        10 => "unsupported client type",
        _ => "unknown exception",
    };
    match field(1) {
        Some(WireValue::Bytes(words)) if !words.is_empty() => {
            let words: String = String::from_utf8_lossy(words).chars().take(MOST_REASON_CHARS).collect();
            Cow::Owned(format!("{name}: {words}"))
        }
        _ => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(transport: Transport) -> Arc<Calls> {
        let add = Method {
            name: "add".to_owned(),
            service: None,
            oneway: false,
            result: Some(WireType::I32),
            throws: vec![1],
        };
        let tell = Method { name: "tell".to_owned(), oneway: true, result: None, throws: Vec::new(), ..add.clone() };
        Arc::new(Calls {
            methods: vec![add, tell],
            // Clients of tests are made for their protocol.
            wire: WireName::Binary,
            transport,
            limit: 30_000,
            expected: None,
            schema: Arc::default(),
            functions: Vec::new(),
        })
    }

    fn start<W: WireProtocol>(client: &mut ThriftClient<W>, method: usize) -> (Vec<u8>, Started) {
        let mut bytes = Vec::new();
        let sequence_at = client.calls.methods[method].encode::<W>(&WireValue::Struct(Vec::new()), &mut bytes);
        let (mut out, hint) = (Vec::new(), hint(method, sequence_at));
        let started = client.start(&Message { bytes: &bytes, idempotent: false, hint, ..Message::default() }, &mut out);
        (out, started)
    }

    fn answer<W: WireProtocol>(
        kind: MessageKind,
        name: &[u8],
        sequence: i32,
        fields: Vec<(i16, WireValue)>,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        W::write_head_before_sequence(&mut bytes, kind, name);
        W::write_sequence(&mut bytes, sequence);
        W::write_head_after_sequence(&mut bytes, name);
        write_value::<W>(&mut bytes, &WireValue::Struct(fields));
        bytes
    }

    fn receive<W: WireProtocol>(client: &mut ThriftClient<W>, bytes: &[u8]) -> Result<Progress, Malformed> {
        let (taken, progress) = client.receive(bytes, &mut Vec::new())?;
        assert_eq!(taken, bytes.len());
        Ok(progress)
    }

    #[test]
    fn calls_are_numbered_and_answers_matched() {
        let mut client = ThriftClient::<Compact>::new(calls(Transport::Unframed), false);
        assert_eq!(start(&mut client, 0), (b"\x82\x21\0\x03add\0".to_vec(), Started::Awaited));
        assert_eq!(start(&mut client, 0).0, b"\x82\x21\x01\x03add\0");
        let result = || vec![(0, WireValue::I32(5))];
        let late = answer::<Compact>(MessageKind::Reply, b"add", 1, result());
        let expected = Progress::Answered(Answer { position: 1, status: 0, reusable: true });
        assert_eq!(receive(&mut client, &late), Ok(expected));
        let first = answer::<Compact>(MessageKind::Reply, b"add", 0, result());
        let expected = Progress::Answered(Answer { position: 0, status: 0, reusable: true });
        assert_eq!(receive(&mut client, &first), Ok(expected));
        assert!(receive(&mut client, &first).is_err(), "nobody asked");
    }

    #[test]
    fn a_oneway_call_ends_when_it_is_sent() {
        let mut client = ThriftClient::<Binary>::new(calls(Transport::Framed), false);
        let (bytes, started) = start(&mut client, 1);
        assert_eq!(bytes, b"\0\0\0\x11\x80\x01\0\x04\0\0\0\x04tell\0\0\0\0\0");
        assert_eq!(started, Started::Sent(0));
        assert!(receive(&mut client, b"\0\0\0\0").is_err());
    }

    #[test]
    fn a_declared_exception_is_an_answer() {
        let mut client = ThriftClient::<Binary>::new(calls(Transport::Unframed), true);
        start(&mut client, 0);
        let bytes = answer::<Binary>(MessageKind::Reply, b"add", 0, vec![(1, WireValue::Struct(Vec::new()))]);
        let expected = Progress::Answered(Answer { position: 0, status: 1, reusable: true });
        assert_eq!(receive(&mut client, &bytes), Ok(expected));
        let parts = client.parts();
        assert_eq!([parts.head, parts.body].concat(), bytes);
        assert_eq!(parts.body, b"\x0c\0\x01\0\0");
    }

    fn failure_of(
        fields: Vec<(i16, WireValue)>,
        kind: MessageKind,
        name: &[u8],
        sequence: i32,
    ) -> (Failure, String, bool) {
        let mut client = ThriftClient::<Binary>::new(calls(Transport::Unframed), false);
        start(&mut client, 0);
        match receive(&mut client, &answer::<Binary>(kind, name, sequence, fields)) {
            Ok(Progress::Failed(FailedCall { position: 0, failure, reason, reusable })) => {
                (failure, reason.into_owned(), reusable)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn other_answers_are_failures_by_name() {
        let words = || vec![(1, WireValue::Bytes(b"no such method".to_vec())), (2, WireValue::I32(1))];
        let (failure, reason, reusable) = failure_of(words(), MessageKind::Exception, b"add", 0);
        assert_eq!((failure, reason.as_str(), reusable), (Failure::Exception, "unknown method: no such method", true));
        let (_, reason, _) =
            failure_of(vec![(1, WireValue::Bytes(vec![b'x'; 20_000]))], MessageKind::Exception, b"add", 0);
        assert_eq!(reason, "an exception that is too long to be shown");
        let result = || vec![(0, WireValue::I32(5))];
        let (failure, _, reusable) = failure_of(result(), MessageKind::Reply, b"add", 7);
        assert_eq!((failure, reusable), (Failure::Sequence, false));
        let (failure, _, reusable) = failure_of(result(), MessageKind::Reply, b"sub", 0);
        assert_eq!((failure, reusable), (Failure::Protocol, false));
        let (failure, reason, reusable) = failure_of(Vec::new(), MessageKind::Reply, b"add", 0);
        assert_eq!((failure, reason.as_str(), reusable), (Failure::Protocol, "a reply with no result in it", true));
    }

    #[test]
    fn an_answer_beyond_the_limit_is_refused_by_name() {
        for (transport, bytes) in [
            (Transport::Framed, b"\0\0\x75\x31".to_vec()),
            (
                Transport::Unframed,
                answer::<Binary>(MessageKind::Reply, b"add", 0, vec![(0, WireValue::Bytes(vec![0; 30_000]))]),
            ),
        ] {
            let mut client = ThriftClient::<Binary>::new(calls(transport), false);
            start(&mut client, 0);
            let progress = receive(&mut client, &bytes).unwrap();
            assert!(
                matches!(progress, Progress::Failed(FailedCall { failure: Failure::Oversize, .. })),
                "{progress:?}"
            );
        }
    }

    #[test]
    fn a_result_may_be_expected() {
        let expected = WireValue::Struct(vec![(0, WireValue::I32(5))]);
        let calls = Calls { expected: Some(expected), ..Arc::into_inner(calls(Transport::Unframed)).unwrap() };
        let mut client = ThriftClient::<Compact>::new(Arc::new(calls), false);
        for (sequence, result, met) in [(0, 5, true), (1, 6, false), (2, 5, true)] {
            start(&mut client, 0);
            let bytes = answer::<Compact>(MessageKind::Reply, b"add", sequence, vec![(0, WireValue::I32(result))]);
            match receive(&mut client, &bytes).unwrap() {
                Progress::Answered(_) => assert!(met),
                Progress::Failed(failed) => assert!(!met && failed.failure == Failure::Mismatch && failed.reusable),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn sequence_ids_wrap_and_are_never_negative() {
        let mut client = ThriftClient::<Binary>::new(calls(Transport::Unframed), false);
        client.sequence = i32::MAX;
        assert!(start(&mut client, 0).0.windows(4).any(|four| four == b"\x7f\xff\xff\xff"));
        assert_eq!(client.sequence, 0);
    }
}
