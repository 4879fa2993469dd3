//! A script as a user: its hooks run in the worker's own Lua state.

use std::sync::Arc;
use std::time::Instant;

use bstr::BStr;
use mlua::{Function, Lua, LuaString, ObjectLike as _, Table, Value};

use super::answers::Answers;
use super::ready_made::{Piece, Reader};
use super::state::{self, function};
use super::thread::Thread;
use super::values::kind;
use crate::error::from_lua;
use brunt_protocol::AnswerParts;
use brunt_protocol::source::{Heartbeat, Hooks, Message, RequestSource, SourceEnd};
use brunt_script::{Hook, ScriptError};

/// One call of a hook in this many is timed, to represent all of them.
const TIMED: u32 = 16;

/// The most requests that are made ahead in one call: a slow script has to return soon.
const MOST_AHEAD: usize = 16;
/// The most calls of `request` in a row that may return nil.
const MOST_PASSED_OVER: u32 = 1000;

/// One more than the largest number of a timed hook.
const HOOKS: usize = Hook::Delay as usize + 1;

/// The source of requests.
enum Source {
    /// One request for all calls.
    Static,
    /// The hook `request`: once, or several times in a row.
    Hook { one: Function, several: Function, made: Table },
}

/// A script on one worker.
pub(super) struct ScriptUser {
    /// How often in a row `request` has returned nil.
    passed_over: u32,
    lua: Lua,
    file: String,
    thread: Arc<Thread>,
    source: Source,
    delay: Option<Function>,
    answers: Option<Answers>,
    /// The requests made last, and the number of them that were taken.
    bytes: Vec<u8>,
    requests: Vec<Request>,
    taken: usize,
    reader: Reader,
    /// The number of calls that will certainly be wanted next.
    expected: usize,
    /// Set when the script is not called any more, but its last requests still count.
    ending: Option<Ending>,
    /// Set when the script is not called any more.
    refusal: Option<SourceEnd>,
    meter: Meter,
}

/// One request that a script made.
#[derive(Debug, Clone, Copy)]
struct Request {
    from: usize,
    /// Its end, and its properties.
    piece: Piece,
    /// Whether the same call of the hook made the next request, too, which goes on the same connection.
    more: bool,
}

/// Why a script makes no more requests.
enum Ending {
    Stopped,
    Failed(ScriptError),
}

/// Tracks and times the calls of hooks.
struct Meter {
    heart: Heartbeat,
    clocks: [Clock; HOOKS],
}

/// Times one hook by samples.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    calls: u32,
    spent_ns: u64,
}

impl ScriptUser {
    /// The user of a state whose `init` has been called. Its first request is made and checked here, before any load
    /// begins.
    pub(super) fn begin(lua: Lua, file: &str, thread: Arc<Thread>, heart: Heartbeat) -> Result<Self, ScriptError> {
        let wrong = |error: mlua::Error| from_lua("preparing the script", file, &error);
        let objects = lua.named_registry_value::<Table>(state::OBJECTS).map_err(wrong)?;
        let inner = state::inner(&lua).map_err(wrong)?;
        let hooks = lua.load(include_str!("hooks.lua")).set_name("=hooks");
        let hooks: Table = hooks.call((objects, inner)).map_err(wrong)?;
        let hook = |name: &str| hooks.get::<Function>(name).map_err(wrong);
        let source = match function(&lua, "request") {
            None => Source::Static,
            Some(_) => Source::Hook {
                one: hook("request")?,
                several: hook("requests")?,
                made: hooks.get("made").map_err(wrong)?,
            },
        };
        let delay = function(&lua, "delay").map(|_| hook("delay")).transpose()?;
        let answers = Answers::begin(&lua, &hooks).map_err(wrong)?;
        let mut user = Self {
            file: file.to_owned(),
            thread,
            source,
            delay,
            answers,
            bytes: Vec::new(),
            requests: Vec::new(),
            taken: 0,
            reader: Reader::default(),
            expected: 0,
            passed_over: 0,
            ending: None,
            refusal: None,
            meter: Meter { heart, clocks: [Clock::default(); HOOKS] },
            lua,
        };
        // A script that never returns a request is wrong before the load.
        while user.requests.is_empty() && user.ending.is_none() {
            user.refill()?;
        }
        Ok(user)
    }

    /// Gets the next request, or requests, from the script.
    fn refill(&mut self) -> Result<(), ScriptError> {
        self.taken = 0;
        let ahead = self.expected.min(MOST_AHEAD);
        let returned = match &self.source {
            Source::Static => {
                let wrk: mlua::Result<Table> = self.lua.globals().get("wrk");
                wrk.and_then(|wrk| wrk.call_function::<Value>("request", ()))
            }
            Source::Hook { several, .. } if ahead > 1 => {
                let timer = self.meter.enter(Hook::Request, ahead);
                let returned = several.call::<Value>(ahead);
                self.meter.leave(Hook::Request, timer);
                self.take_several(returned, ahead);
                return Ok(());
            }
            Source::Hook { one, .. } => {
                let timer = self.meter.enter(Hook::Request, 1);
                let returned = one.call::<Value>(());
                self.meter.leave(Hook::Request, timer);
                returned
            }
        };
        let returned = returned.map_err(|error| from_lua("request()", &self.file, &error))?;
        if matches!(returned, Value::Nil) {
            return self.pass_over();
        }
        self.passed_over = 0;
        let text = self.text(returned)?;
        let text = text.as_bytes();
        // Most scripts whose requests have the same path return the same text again.
        if *text != *self.bytes || self.requests.len() != 1 {
            self.bytes.clear();
            self.requests.clear();
            self.append(&text)?;
        }
        Ok(())
    }

    /// Passes over a call of `request` that returned nil. wrk leaves the connection idle that asked for it; here the next
    /// request is asked for, unless the script has stopped its thread, and so has none left.
    #[cold]
    fn pass_over(&mut self) -> Result<(), ScriptError> {
        let is_stopped = self.thread.is_stopped();
        if is_stopped || !matches!(self.source, Source::Static) {
            self.bytes.clear();
            self.requests.clear();
        }
        if is_stopped {
            self.ending = Some(Ending::Stopped);
            return Ok(());
        }
        self.passed_over += 1;
        if !matches!(self.source, Source::Static) && self.passed_over < MOST_PASSED_OVER {
            return Ok(());
        }
        self.text(Value::Nil).map(drop)
    }

    /// The result of `request`, if it is a string.
    fn text(&self, returned: Value) -> Result<LuaString, ScriptError> {
        match returned {
            Value::String(text) => Ok(text),
            // To Lua a number is a string, but it is never a request.
            other => {
                let problem = format!("request() must return an HTTP request, a string, and returned {}", kind(&other));
                Err(ScriptError::new(&self.file, problem))
            }
        }
    }

    /// Takes the result of one call of `request`.
    fn append(&mut self, text: &[u8]) -> Result<(), ScriptError> {
        let mut from = self.bytes.len();
        let first = self.requests.len();
        let requests = &mut self.requests;
        let checked = self.reader.read(text, |piece| {
            requests.push(Request { from, piece, more: true });
            from += piece.length;
        });
        if let Err(incomplete) = checked {
            self.requests.truncate(first);
            let shown = BStr::new(text.get(..200).unwrap_or(text));
            let problem = format!("request() returned what is not an HTTP request: {incomplete}\nit begins: {shown:?}");
            return Err(ScriptError::new(&self.file, problem));
        }
        if let Some(last) = self.requests.last_mut() {
            last.more = false;
        }
        self.bytes.extend_from_slice(text);
        Ok(())
    }

    /// Takes the results of `count` calls of `request`: all before the first problem, and the problem for when these
    /// are used up.
    fn take_several(&mut self, returned: mlua::Result<Value>, count: usize) {
        self.requests.clear();
        self.bytes.clear();
        let failed = match returned {
            Ok(Value::String(joined)) => {
                let joined = joined.as_bytes();
                if self.take_joined(&joined, count) {
                    return;
                }
                self.requests.clear();
                self.bytes.clear();
                None
            }
            Ok(_) => None,
            Err(error) => Some(from_lua("request()", &self.file, &error)),
        };
        let each = self.take_each();
        self.ending = match (each, failed) {
            (Err(error), _) | (Ok(()), Some(error)) => Some(Ending::Failed(error)),
            (Ok(()), None) if self.thread.is_stopped() => {
                // The request during which a script stops is not made.
                self.requests.pop();
                while self.requests.last().is_some_and(|before| before.more) {
                    self.requests.pop();
                }
                Some(Ending::Stopped)
            }
            (Ok(()), None) => None,
        };
    }

    /// Takes requests joined by a byte of zero; `false` if `joined` is something else.
    fn take_joined(&mut self, joined: &[u8], count: usize) -> bool {
        let (mut from, mut returned) = (0, 0);
        while from < joined.len() {
            let Ok(piece) = self.reader.read_one(joined.get(from..).unwrap_or(&[])) else { return false };
            let end = from + piece.length;
            // No request begins with zero, so it can only separate two.
            let more = joined.get(end).is_some_and(|next| *next != 0);
            self.requests.push(Request { from, piece, more });
            from = end + usize::from(!more);
            returned += usize::from(!more);
        }
        self.bytes.extend_from_slice(joined);
        returned == count && joined.last() != Some(&0)
    }

    /// Takes requests one by one, up to the first malformed one.
    fn take_each(&mut self) -> Result<(), ScriptError> {
        let Source::Hook { made, .. } = &self.source else { return Ok(()) };
        let wrong = |error: mlua::Error| from_lua("request()", &self.file, &error);
        let count: usize = made.raw_get("count").map_err(wrong)?;
        let returned: Vec<Value> =
            (1..=count).map(|place| made.raw_get(place)).collect::<Result<_, _>>().map_err(wrong)?;
        for value in returned {
            if value.is_nil() && !self.thread.is_stopped() {
                self.pass_over()?;
                continue;
            }
            if value.is_nil() && self.thread.is_stopped() {
                // Another in its place: the request during which a script stops is taken back.
                self.requests.push(Request {
                    from: self.bytes.len(),
                    piece: Piece { length: 0, idempotent: false },
                    more: false,
                });
                return Ok(());
            }
            let text = self.text(value)?;
            self.passed_over = 0;
            self.append(&text.as_bytes())?;
        }
        Ok(())
    }

    /// Checks after each hook whether the script has stopped.
    fn check(&mut self) -> Result<(), SourceEnd> {
        if self.thread.is_stopped() && self.refusal.is_none() {
            return Err(self.stopped());
        }
        self.refusal.clone().map_or(Ok(()), Err)
    }

    fn stopped(&mut self) -> SourceEnd {
        self.refusal = Some(SourceEnd::Done);
        SourceEnd::Done
    }

    /// Shows answers to the hook `response`.
    fn show(&mut self, show: impl FnOnce(&mut Answers, &Lua) -> mlua::Result<()>) -> Result<(), SourceEnd> {
        let Some(answers) = &mut self.answers else { return Ok(()) };
        let timer = self.meter.enter(Hook::Response, answers.waiting() as usize);
        let shown = show(answers, &self.lua);
        self.meter.leave(Hook::Response, timer);
        if let Err(error) = shown {
            let error = from_lua("response()", &self.file, &error);
            return Err(self.failed(&error));
        }
        self.check()
    }

    fn failed(&mut self, error: &ScriptError) -> SourceEnd {
        let refusal = SourceEnd::Failed(format!("thread {}: {error}", self.thread.number + 1));
        self.refusal = Some(refusal.clone());
        refusal
    }
}

impl Meter {
    /// Begins `times` calls of a hook. Every so often their time is taken; for several calls it always is.
    #[inline]
    fn enter(&mut self, hook: Hook, times: usize) -> Option<(Instant, u32)> {
        self.heart.enter(hook as u8);
        if times > 1 {
            return Some((Instant::now(), 1));
        }
        let clock = self.clocks.get_mut(hook as usize)?;
        let timed = clock.calls.is_multiple_of(TIMED);
        clock.calls = clock.calls.wrapping_add(1);
        timed.then(|| (Instant::now(), TIMED))
    }

    #[inline]
    fn leave(&mut self, hook: Hook, timer: Option<(Instant, u32)>) {
        self.heart.leave();
        if let Some((began, times)) = timer
            && let Some(clock) = self.clocks.get_mut(hook as usize)
        {
            clock.spent_ns += began.elapsed().as_nanos() as u64 * u64::from(times);
        }
    }
}

impl RequestSource for ScriptUser {
    fn request(&mut self, _index: u64) -> Result<Message<'_>, SourceEnd> {
        self.settle()?;
        while self.taken >= self.requests.len() {
            match self.ending.take() {
                Some(Ending::Failed(error)) => return Err(self.failed(&error)),
                Some(Ending::Stopped) => return Err(self.stopped()),
                None if matches!(self.source, Source::Static) => self.taken = 0,
                None => self.refill().map_err(|error| self.failed(&error))?,
            }
        }
        // Requests made before the one in which a script stops are still sent.
        if self.ending.is_none() {
            self.check()?;
        }
        let request = self.requests.get(self.taken).copied().ok_or(SourceEnd::Done)?;
        self.taken += 1;
        self.expected = self.expected.saturating_sub(1);
        let is_static = matches!(self.source, Source::Static) && self.requests.len() == 1;
        Ok(Message {
            bytes: self.bytes.get(request.from..request.from + request.piece.length).unwrap_or(&[]),
            idempotent: request.piece.idempotent && is_static,
            hint: 0,
            more: request.more,
            tail: None,
        })
    }

    fn expect(&mut self, calls: usize) {
        self.expected = calls;
    }

    fn hooks(&self) -> Hooks {
        Hooks { pauses: self.delay.is_some(), answers: self.answers.is_some() }
    }

    fn pause(&mut self) -> Result<u64, SourceEnd> {
        let Some(delay) = &self.delay else { return Ok(0) };
        let timer = self.meter.enter(Hook::Delay, 1);
        let returned = delay.call::<Value>(());
        self.meter.leave(Hook::Delay, timer);
        let milliseconds = returned.map(|value| value.as_f64().or_else(|| value.to_string().ok()?.parse().ok()));
        let milliseconds = match milliseconds {
            Ok(number) => number.unwrap_or(0.0),
            Err(error) => {
                let error = from_lua("delay()", &self.file, &error);
                return Err(self.failed(&error));
            }
        };
        self.check()?;
        // Whole milliseconds, as in wrk; a negative number or NaN is no pause.
        Ok((milliseconds.max(0.0) as u64).saturating_mul(1_000_000))
    }

    fn answered(&mut self, status: u16, parts: AnswerParts<'_>) -> Result<(), SourceEnd> {
        // A stopped user sees no more answers.
        if self.refusal.is_some() {
            return Ok(());
        }
        if self.answers.as_mut().is_some_and(|answers| answers.join(status, parts)) {
            return Ok(());
        }
        self.show(|answers, lua| answers.add(lua, status, parts))
    }

    fn settle(&mut self) -> Result<(), SourceEnd> {
        if self.refusal.is_none() && self.answers.as_ref().is_some_and(|answers| answers.waiting() > 0) {
            return self.show(Answers::show);
        }
        Ok(())
    }

    fn take_busy_ns(&mut self) -> u64 {
        self.meter.clocks.iter_mut().map(|clock| std::mem::take(&mut clock.spent_ns)).sum()
    }
}

impl Drop for ScriptUser {
    fn drop(&mut self) {
        state::flush(&self.lua);
    }
}
