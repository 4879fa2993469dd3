//! A worker's part of a log: what the thread that reads it has sent, and the cookies of sessions.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};

use brunt_protocol::replay::{Ended, LoggedCall, Replay, Upcoming};
use brunt_protocol::user::{Message, Refusal};
use cookie::time::OffsetDateTime;

use crate::against::{Against, Came};
use crate::jar::Jar;
use crate::request::Request;

/// The most sessions of a worker whose cookies are kept; beyond them, those that were made first are forgotten.
const MOST_JARS: usize = 1 << 16;

/// A request with when it is due.
#[derive(Debug)]
pub struct Item {
    /// When, and whose it is.
    pub call: LoggedCall,
    /// What is sent.
    pub request: Arc<Request>,
}

/// What the reading thread sends.
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
    under_way: HashMap<u64, Item>,
    jars: HashMap<u64, Jar>,
    jars_by_age: VecDeque<u64>,
    out: Vec<u8>,
    against: Against,
    /// Where what came is put together at the end.
    all: Arc<Mutex<Against>>,
}

impl WorkerLog {
    /// What comes by `read`; what came of it is added to `all` in the end.
    pub fn new(read: Receiver<Read>, all: Arc<Mutex<Against>>) -> Self {
        Self {
            read,
            items: VecDeque::new(),
            end: None,
            under_way: HashMap::new(),
            jars: HashMap::new(),
            jars_by_age: VecDeque::new(),
            out: Vec::new(),
            against: Against::default(),
            all,
        }
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

impl Replay for WorkerLog {
    fn next(&mut self) -> Upcoming {
        if let Some(end) = &self.end {
            return end.clone();
        }
        if self.items.is_empty() {
            match self.read.try_recv() {
                Ok(Read::Items(items)) => self.items.extend(items),
                Ok(Read::Failed(reason)) => self.end = Some(Upcoming::Failed(reason)),
                Ok(Read::Over) | Err(TryRecvError::Disconnected) => self.end = Some(Upcoming::Over),
                Err(TryRecvError::Empty) => return Upcoming::NotYet,
            }
        }
        match self.items.pop_front() {
            Some(item) => {
                let call = item.call;
                self.under_way.insert(call.number, item);
                Upcoming::Call(call)
            }
            None => self.end.clone().unwrap_or(Upcoming::NotYet),
        }
    }

    fn call(&mut self, number: u64) -> Result<Message<'_>, Refusal> {
        let Some(Item { call, request }) = self.under_way.get(&number) else { return Err(Refusal::Done) };
        self.out.clear();
        self.out.extend_from_slice(&request.head);
        let jar = call.session.and_then(|session| self.jars.get(&session));
        let none = Jar::default();
        jar.unwrap_or(&none).write(&request.cookies, &request.path, &mut self.out);
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(&request.body);
        Ok(Message { bytes: &self.out, idempotent: request.is_idempotent, ..Message::default() })
    }

    fn name(&self, number: u64) -> (u32, &str) {
        self.under_way.get(&number).map_or((0, ""), |item| (item.request.template.0, &item.request.template.1))
    }

    fn ended(&mut self, number: u64, ended: Ended<'_>) {
        let Some(Item { call, request }) = self.under_way.remove(&number) else { return };
        match ended {
            Ended::Answered { status, took_ns, parts } => {
                let bytes = if request.is_head { 0 } else { body_bytes(parts.head, parts.body) };
                self.against.ended(&request, Some(Came { status, bytes, took_ns }));
                if let Some(session) = call.session
                    && sets_cookies(parts.head)
                {
                    self.jar(session).take(parts.head, OffsetDateTime::now_utc);
                }
            }
            Ended::Failed | Ended::Cut => self.against.ended(&request, None),
        }
    }
}

impl Drop for WorkerLog {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).merge(&self.against);
    }
}

/// The lines of an answer's head with these names, in whatever case.
fn field<'a>(head: &'a [u8], name: &'static [u8]) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let (field, value) = line.split_at_checked(name.len())?;
        field.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn sets_cookies(head: &[u8]) -> bool {
    field(head, b"set-cookie:").is_some()
}

/// How large an answer's body was on its way: as it says, or else as it came.
fn body_bytes(head: &[u8], body: &[u8]) -> u64 {
    let said = field(head, b"content-length:").and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
    said.unwrap_or(body.len() as u64)
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
        log.ended(0, Ended::Answered { status: 200, took_ns: 5, parts });
        let mut sends = |number: u64| String::from_utf8(log.call(number).unwrap().bytes.to_vec()).unwrap();
        assert!(sends(1).contains("\r\nCookie: sid=x\r\n\r\n"));
        assert!(!sends(2).contains("Cookie") && !sends(3).contains("Cookie"));
        assert_eq!(log.call(0).err(), Some(Refusal::Done), "it has ended");
        log.ended(1, Ended::Failed);
        drop(log);
        let (told, _) = all.lock().unwrap().told();
        assert_eq!((told.calls, told.answered), (2, 1));
    }

    #[test]
    fn sizes_are_those_on_the_way() {
        assert_eq!(body_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n", b"unpacked"), 20);
        assert_eq!(body_bytes(b"HTTP/1.1 200 OK\r\n\r\n", b"chunks"), 6);
    }
}
