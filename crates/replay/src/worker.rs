//! A worker's part of a log: its calls from the reading thread, and the cookies of its sessions.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};

use brunt_protocol::plan::random::ByNumber;
use brunt_protocol::replay::{LoggedCall, ReplayedEnd, Upcoming, WorkerReplay};
use brunt_protocol::source::{Message, SourceEnd};
use brunt_protocol::traced::{TRACEPARENT, TraceIds, Tracing};
use cookie::time::OffsetDateTime;
use memchr::memchr;

use crate::against::{Against, Came};
use crate::jar::Jar;
use crate::request::Request;

/// The most sessions of a worker whose cookies are kept; beyond them, the oldest are forgotten.
const MOST_JARS: usize = 1 << 16;

/// The most bytes of requests that are due and have not ended: with `--think`, those of late users wait here.
const MOST_UNDER_WAY_BYTES: usize = 512 << 20;
/// The reason for not reading on when too many requests wait.
const TOO_MANY_UNDER_WAY: &str = "requests of 512 MiB are due and have no answer: the target is far behind the log. Replay it slower (--speed) or less of it \
                                  (--scale), and let requests fail sooner (--timeout); with --think they wait without end";

/// A request with its due time.
#[derive(Debug)]
pub struct Item {
    /// The due time, and the session.
    pub call: LoggedCall,
    /// The request to send.
    pub request: Arc<Request>,
}

impl Item {
    /// The approximate size in memory, in bytes.
    fn weight(&self) -> usize {
        size_of::<UnderWay>() + self.request.weight()
    }
}

/// An item whose call has not ended.
struct UnderWay {
    item: Item,
    /// Its trace ids, if it is traced.
    trace: Option<TraceIds>,
}

/// A message from the reading thread.
#[derive(Debug)]
pub enum Read {
    /// Requests, in the order of their due times.
    Items(Vec<Item>),
    /// The log is over.
    Over,
    /// The log cannot be read on, for this reason.
    Failed(String),
}

/// A worker's part of a log.
pub struct WorkerLog {
    read: Receiver<Read>,
    items: VecDeque<Item>,
    end: Option<Upcoming>,
    /// Calls that were handed out and have not ended, by the worker's numbers for them; and the free numbers.
    under_way: Vec<Option<UnderWay>>,
    vacant: Vec<u64>,
    /// Their approximate size in memory, in bytes.
    under_way_bytes: usize,
    /// Which calls are traced, if any, and how many were handed out.
    tracing: Option<Tracing>,
    /// Whether the status that the log has is a success.
    logged_is_ok: bool,
    given: u64,
    jars: ByNumber<Jar>,
    jars_by_age: VecDeque<u64>,
    out: Vec<u8>,
    against: Against,
    /// Collects the results of all workers at the end.
    all: Arc<Mutex<Against>>,
}

impl WorkerLog {
    /// Takes the messages of `read`; the results are added to `all` in the end.
    pub fn new(read: Receiver<Read>, all: Arc<Mutex<Against>>) -> Self {
        Self {
            read,
            items: VecDeque::new(),
            end: None,
            under_way: Vec::new(),
            vacant: Vec::new(),
            under_way_bytes: 0,
            tracing: None,
            logged_is_ok: false,
            given: 0,
            jars: ByNumber::default(),
            jars_by_age: VecDeque::new(),
            out: Vec::new(),
            against: Against::default(),
            all,
        }
    }

    /// Traces this share of its calls, above 0 and up to 1; `None` traces no calls.
    #[must_use]
    pub fn tracing(mut self, share: Option<f64>) -> Self {
        self.tracing = share.map(Tracing::of_share);
        self
    }

    /// Whether the status that the log has of a call is a success.
    #[must_use]
    pub fn accepting_logged(mut self, accepts: bool) -> Self {
        self.logged_is_ok = accepts;
        self
    }

    /// The call of an item, under a number that no other call under way has.
    fn give(&mut self, item: Item) -> LoggedCall {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            (self.under_way.len() - 1) as u64
        });
        let call = LoggedCall { number, ..item.call };
        // A `traceparent` from the log takes precedence.
        let trace = self.tracing.and_then(|tracing| tracing.ids(self.given)).filter(|_| !item.request.has_trace());
        self.given += 1;
        self.under_way_bytes = self.under_way_bytes.saturating_add(item.weight());
        if let Some(place) = self.under_way.get_mut(number as usize) {
            *place = Some(UnderWay { item, trace });
        }
        call
    }

    fn item(&self, number: u64) -> Option<&Item> {
        self.under_way.get(number as usize)?.as_ref().map(|under_way| &under_way.item)
    }

    fn jar(&mut self, session: u64) -> &mut Jar {
        if !self.jars.contains_key(&session) {
            if self.jars.len() >= MOST_JARS
                && let Some(oldest) = self.jars_by_age.pop_front()
            {
                self.jars.remove(&oldest);
            }
            self.jars_by_age.push_back(session);
        }
        self.jars.entry(session).or_default()
    }
}

impl WorkerReplay for WorkerLog {
    fn next(&mut self) -> Upcoming {
        if let Some(end) = &self.end {
            return end.clone();
        }
        if self.under_way_bytes > MOST_UNDER_WAY_BYTES {
            self.items.clear();
            self.end = Some(Upcoming::Failed(TOO_MANY_UNDER_WAY.to_owned()));
        }
        if self.items.is_empty() && self.end.is_none() {
            match self.read.try_recv() {
                Ok(Read::Items(items)) => self.items.extend(items),
                Ok(Read::Failed(reason)) => self.end = Some(Upcoming::Failed(reason)),
                Ok(Read::Over) | Err(TryRecvError::Disconnected) => self.end = Some(Upcoming::Over),
                Err(TryRecvError::Empty) => return Upcoming::NotYet,
            }
        }
        match self.items.pop_front() {
            Some(item) => Upcoming::Call(self.give(item)),
            None => self.end.clone().unwrap_or(Upcoming::NotYet),
        }
    }

    fn call(&mut self, number: u64) -> Result<Message<'_>, SourceEnd> {
        let place = self.under_way.get(number as usize).and_then(Option::as_ref);
        let Some(UnderWay { item: Item { call, request }, trace }) = place else { return Err(SourceEnd::Done) };
        self.out.clear();
        self.out.extend_from_slice(&request.head);
        if let Some(ids) = trace {
            self.out.extend_from_slice(format!("{TRACEPARENT}: {ids}\r\n").as_bytes());
        }
        let jar = call.session.filter(|_| !self.jars.is_empty()).and_then(|session| self.jars.get(&session));
        if jar.is_some() || !request.cookies.is_empty() {
            jar.unwrap_or(&Jar::default()).write(&request.cookies, request.path(), &mut self.out);
        }
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(&request.body);
        Ok(Message { bytes: &self.out, idempotent: request.is_idempotent, ..Message::default() })
    }

    fn name(&self, number: u64) -> (u32, &str) {
        self.item(number).map_or((0, ""), |item| (item.request.template.0, &item.request.template.1))
    }

    fn trace(&self, number: u64) -> Option<TraceIds> {
        self.under_way.get(number as usize)?.as_ref()?.trace
    }

    fn excuses(&self, number: u64, status: u16) -> bool {
        self.logged_is_ok && self.item(number).is_some_and(|item| item.request.status == Some(status))
    }

    fn traces(&self) -> bool {
        self.tracing.is_some()
    }

    fn ended(&mut self, number: u64, ended: ReplayedEnd<'_>) {
        let Some(UnderWay { item, .. }) = self.under_way.get_mut(number as usize).and_then(Option::take) else {
            return;
        };
        self.vacant.push(number);
        self.under_way_bytes = self.under_way_bytes.saturating_sub(item.weight());
        let Item { call, request } = item;
        match ended {
            ReplayedEnd::Answered { status, took_ns, parts } => {
                let said = Said::from_head(parts.head);
                let bytes = if request.is_head { 0 } else { said.body_bytes.unwrap_or(parts.body.len() as u64) };
                self.against.ended(&request, Some(Came { status, bytes, took_ns }));
                if let Some(session) = call.session
                    && said.sets_cookies
                {
                    self.jar(session).take(parts.head, OffsetDateTime::now_utc);
                }
            }
            ReplayedEnd::Failed | ReplayedEnd::Cut => self.against.ended(&request, None),
        }
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).merge(&self.against);
    }
}

/// The properties of an answer's head that a replay needs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    /// The size of the body as transferred, in bytes.
    body_bytes: Option<u64>,
    sets_cookies: bool,
}

impl Said {
    fn from_head(head: &[u8]) -> Self {
        let mut said = Self::default();
        let mut rest = head;
        while let Some(end) = memchr(b'\n', rest) {
            let Some((line, behind)) = rest.split_at_checked(end + 1) else { break };
            rest = behind;
            match line.first() {
                Some(b'c' | b'C') if said.body_bytes.is_none() => {
                    let value = value_of(line, b"content-length:").and_then(|value| std::str::from_utf8(value).ok());
                    said.body_bytes = value.and_then(|value| value.trim().parse().ok());
                }
                Some(b's' | b'S') => said.sets_cookies |= value_of(line, b"set-cookie:").is_some(),
                _ => {}
            }
        }
        said
    }
}

/// The text behind a name, if the line begins with it in any case of letters.
fn value_of<'a>(line: &'a [u8], name: &'static [u8]) -> Option<&'a [u8]> {
    let (field, value) = line.split_at_checked(name.len())?;
    field.eq_ignore_ascii_case(name).then_some(value)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use brunt_protocol::AnswerParts;
    use brunt_protocol::plan::target::Url;

    use super::*;
    use crate::entry::Entry;
    use crate::request::Composer;

    #[test]
    fn a_session_keeps_its_cookies_and_no_other_sees_them() {
        let mut composer = Composer::new(&Url::parse("http://a/").unwrap().target, Vec::new());
        let entry = Entry { method: "GET".to_owned(), url: "/".to_owned(), ..Entry::default() };
        let request = Arc::new(composer.request(&entry));
        let item = |number: u64, session: Option<u64>| Item {
            call: LoggedCall { number, due_ns: number, session, logged_ns: 0 },
            request: Arc::clone(&request),
        };
        let (sender, receiver) = channel();
        let all = Arc::new(Mutex::new(Against::default()));
        let mut log = WorkerLog::new(receiver, Arc::clone(&all));
        assert_eq!(log.next(), Upcoming::NotYet);
        sender.send(Read::Items(vec![item(0, Some(1)), item(1, Some(1)), item(2, Some(2)), item(3, None)])).unwrap();
        sender.send(Read::Over).unwrap();
        for number in 0..4 {
            assert!(matches!(log.next(), Upcoming::Call(call) if call.number == number));
        }
        assert_eq!((log.next(), log.next()), (Upcoming::Over, Upcoming::Over));
        let parts = AnswerParts { head: b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=x\r\n", body: b"hi" };
        log.ended(0, ReplayedEnd::Answered { status: 200, took_ns: 5, parts });
        let mut sends = |number: u64| String::from_utf8(log.call(number).unwrap().bytes.to_vec()).unwrap();
        assert!(sends(1).contains("\r\nCookie: sid=x\r\n\r\n"));
        assert!(!sends(2).contains("Cookie") && !sends(3).contains("Cookie"));
        assert_eq!(log.call(0).err(), Some(SourceEnd::Done), "it has ended");
        log.ended(1, ReplayedEnd::Failed);
        drop(log);
        let (total, _) = all.lock().unwrap().total_and_templates();
        assert_eq!((total.calls, total.answered), (2, 1));
    }

    #[test]
    fn requests_that_never_end_take_no_memory_without_end() {
        let mut composer = Composer::new(&Url::parse("http://a/").unwrap().target, Vec::new());
        let entry =
            Entry { method: "GET".to_owned(), url: "/".to_owned(), body: Some(vec![0; 1 << 20]), ..Entry::default() };
        let request = Arc::new(composer.request(&entry));
        let log = || {
            let (sender, receiver) = channel();
            let call = |number| LoggedCall { number, due_ns: 0, session: Some(1), logged_ns: 0 };
            let items = (0..1000).map(|number| Item { call: call(number), request: Arc::clone(&request) });
            sender.send(Read::Items(items.collect())).unwrap();
            sender.send(Read::Over).unwrap();
            WorkerLog::new(receiver, Arc::default())
        };
        let mut stuck = log();
        let given = std::iter::from_fn(|| matches!(stuck.next(), Upcoming::Call(_)).then_some(())).count();
        assert!((500..=513).contains(&given), "{given} of a megabyte each");
        assert!(matches!(stuck.next(), Upcoming::Failed(reason) if reason.contains("--speed")));
        // Calls that end make room.
        let mut quick = log();
        while let Upcoming::Call(call) = quick.next() {
            quick.ended(call.number, ReplayedEnd::Failed);
        }
        assert_eq!((quick.next(), quick.under_way_bytes), (Upcoming::Over, 0));
    }

    #[test]
    fn a_head_says_how_large_its_body_was_on_the_way_and_whether_it_sets_cookies() {
        let said = |head: &str| Said::from_head(head.as_bytes());
        let plain = said("HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: 20\r\nConnection: close\r\n\r\n");
        assert_eq!(plain, Said { body_bytes: Some(20), sets_cookies: false });
        let chunks = said("HTTP/1.1 200 OK\r\nSet-Cookie: content-length: 7\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(chunks, Said { body_bytes: None, sets_cookies: true });
    }
}
