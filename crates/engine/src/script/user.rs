//! The user that a script is: each of its hooks on the worker's own Lua state.

use std::sync::Arc;
use std::time::Instant;

use bstr::BStr;
use mlua::{Function, Lua, LuaString, ObjectLike as _, Table, Value};

use super::ScriptError;
use super::hook::Hook;
use super::state::{self, function};
use super::thread::Thread;
use super::values::kind;
use crate::protocol::Parts;
use crate::protocol::http1::ready_made::{self, Piece};
use crate::user::{Heart, Interests, Message, Refusal, User};

/// One in this many calls of a hook is timed, for all of them.
const TIMED: u32 = 16;

/// A body of at most this size is kept without giving memory back, in bytes.
const MOST_KEPT_BYTES: usize = 1 << 16;

/// How much of an answer `response` is given.
enum Respond {
    /// There is no such hook.
    Absent,
    /// The first parameters alone, since it has no more; the headers among them or not.
    Narrow { respond: Function, headers: bool },
    /// Everything.
    Whole,
}

/// Where the next request comes from.
enum Source {
    /// All are this one.
    Static,
    /// The hook `request`.
    Hook(Function),
}

/// A script on one worker.
pub(super) struct ScriptUser {
    lua: Lua,
    file: String,
    thread: Arc<Thread>,
    hooks: Table,
    source: Source,
    delay: Option<Function>,
    respond: Respond,
    repeats: Repeats,
    /// The requests that came of the last call of `request`, and how many of them were taken.
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    taken: usize,
    /// Set when there is nothing more to ask the script for.
    refusal: Option<Refusal>,
    meter: Meter,
}

/// Shows and measures when hooks are called.
struct Meter {
    heart: Heart,
    clocks: [Clock; Hook::COUNT],
}

/// Measures the time in one hook by samples.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    calls: u32,
    spent_ns: u64,
}

impl ScriptUser {
    /// The user of a state whose `init` has been called. Its first request is asked for and checked here, before any
    /// load begins.
    pub(super) fn begin(lua: Lua, file: &str, thread: Arc<Thread>, heart: Heart) -> Result<Self, ScriptError> {
        let wrong = |error: mlua::Error| ScriptError::from_lua("preparing the script", file, &error);
        let hooks: Table = lua.load(include_str!("hooks.lua")).set_name("=hooks").call(()).map_err(wrong)?;
        let hook = |name: &str| hooks.get::<Function>(name).map_err(wrong);
        let present = |name: &str| function(&lua, name).map(|_| hook(name)).transpose();
        let source = present("request")?.map_or(Source::Static, Source::Hook);
        let delay = present("delay")?;
        let repeats = Repeats::new(hook("response")?, hook("remember")?, hook("again")?);
        let mut user = Self {
            file: file.to_owned(),
            thread,
            source,
            delay,
            respond: Respond::Absent,
            repeats,
            bytes: Vec::new(),
            pieces: Vec::new(),
            taken: 0,
            refusal: None,
            meter: Meter { heart, clocks: [Clock::default(); Hook::COUNT] },
            hooks,
            lua,
        };
        user.respond = user.choose_respond().map_err(wrong)?;
        user.refill()?;
        Ok(user)
    }

    /// What `response` is to be given, as it stands now.
    fn choose_respond(&self) -> mlua::Result<Respond> {
        let Some(response) = function(&self.lua, "response") else { return Ok(Respond::Absent) };
        // A function of C does not tell what it takes.
        if response.info().what == "C" {
            return Ok(Respond::Whole);
        }
        let arity: u32 = self.hooks.get::<Function>("arity")?.call(())?;
        if arity >= 3 {
            return Ok(Respond::Whole);
        }
        let respond: Function = self.hooks.get::<Function>("narrow")?.call(())?;
        Ok(Respond::Narrow { respond, headers: arity == 2 })
    }

    /// Asks the script for its next request, or requests.
    fn refill(&mut self) -> Result<(), ScriptError> {
        let returned = match &self.source {
            Source::Static => {
                let wrk: mlua::Result<Table> = self.lua.globals().get("wrk");
                wrk.and_then(|wrk| wrk.call_function::<Value>("request", ()))
            }
            Source::Hook(request) => {
                let timer = self.meter.enter(Hook::Request);
                let returned = request.call::<Value>(());
                self.meter.leave(Hook::Request, timer);
                returned
            }
        };
        let returned = returned.map_err(|error| ScriptError::from_lua("request()", &self.file, &error))?;
        let text = match returned {
            Value::String(text) => text,
            // A number is a string to Lua, though never a request.
            other => {
                let problem = format!("request() must return an HTTP request, a string, and returned {}", kind(&other));
                return Err(ScriptError::new(&self.file, problem));
            }
        };
        self.take(&text)
    }

    fn take(&mut self, text: &LuaString) -> Result<(), ScriptError> {
        let text = text.as_bytes();
        self.taken = 0;
        if *text == *self.bytes && !self.pieces.is_empty() {
            return Ok(());
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&text);
        ready_made::read(&self.bytes, &mut self.pieces).map_err(|incomplete| {
            let shown = BStr::new(self.bytes.get(..200).unwrap_or(&self.bytes));
            let problem = format!("request() returned what is no HTTP request: {incomplete}\nit begins: {shown:?}");
            ScriptError::new(&self.file, problem)
        })
    }

    /// Whether the script wants no more; asked after each hook.
    fn check(&mut self) -> Result<(), Refusal> {
        if self.thread.is_stopped() && self.refusal.is_none() {
            self.refusal = Some(Refusal::Done);
        }
        self.refusal.clone().map_or(Ok(()), Err)
    }

    fn failed(&mut self, error: &ScriptError) -> Refusal {
        let refusal = Refusal::Failed(format!("thread {}: {error}", self.thread.number + 1));
        self.refusal = Some(refusal.clone());
        refusal
    }

    fn respond(&mut self, status: u16, parts: Parts<'_>) -> mlua::Result<()> {
        let changed = match &self.respond {
            Respond::Absent => false,
            Respond::Narrow { respond, headers: false } => respond.call::<bool>(status)?,
            Respond::Narrow { respond, headers: true } => {
                respond.call::<bool>((status, header_table(&self.lua, parts.head)?))?
            }
            Respond::Whole => {
                self.repeats.respond(&self.lua, status, parts)?;
                false
            }
        };
        if changed {
            // It is another function now, which may see more: this answer is its first.
            self.respond = match self.choose_respond()? {
                // What is called is not there any more: as in Lua, that is an error.
                Respond::Absent => Respond::Whole,
                other => other,
            };
            return self.respond(status, parts);
        }
        Ok(())
    }
}

impl Meter {
    /// A hook begins. Every so often its time is taken.
    #[inline]
    fn enter(&mut self, hook: Hook) -> Option<Instant> {
        self.heart.enter(hook as u8);
        let clock = self.clocks.get_mut(hook as usize)?;
        let timed = clock.calls.is_multiple_of(TIMED);
        clock.calls = clock.calls.wrapping_add(1);
        timed.then(Instant::now)
    }

    #[inline]
    fn leave(&mut self, hook: Hook, timer: Option<Instant>) {
        self.heart.leave();
        if let Some(began) = timer
            && let Some(clock) = self.clocks.get_mut(hook as usize)
        {
            clock.spent_ns += began.elapsed().as_nanos() as u64 * u64::from(TIMED);
        }
    }
}

/// The header fields of an answer, with their names as they came; of a name that comes again, the last value.
fn header_table(lua: &Lua, head: &[u8]) -> mlua::Result<Table> {
    lua.create_table_from(fields(head))
}

/// Names and values of the header fields in `head`.
fn fields(head: &[u8]) -> impl Iterator<Item = (&BStr, &BStr)> {
    head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?);
        Some((BStr::new(name), BStr::new(value.trim_ascii())))
    })
}

/// Gives `response` whole answers. What repeats the answer before is made from the strings that Lua has already.
struct Repeats {
    respond: Function,
    remember: Function,
    again: Function,
    /// The head of the answer before, and whether Lua keeps its fields.
    head: Vec<u8>,
    is_kept: bool,
    /// The body that Lua keeps, if it keeps one.
    body: Option<Vec<u8>>,
}

impl Repeats {
    fn new(respond: Function, remember: Function, again: Function) -> Self {
        Self { respond, remember, again, head: Vec::new(), is_kept: false, body: None }
    }

    fn respond(&mut self, lua: &Lua, status: u16, parts: Parts<'_>) -> mlua::Result<()> {
        let body = BStr::new(parts.body);
        if parts.head != self.head {
            self.head.clear();
            self.head.extend_from_slice(parts.head);
            self.is_kept = false;
            return self.respond.call((status, header_table(lua, parts.head)?, body));
        }
        if !self.is_kept {
            let both = fields(parts.head).flat_map(|(name, value)| [name, value]);
            self.is_kept = self.remember.call(lua.create_sequence_from(both)?)?;
            if !self.is_kept {
                return self.respond.call((status, header_table(lua, parts.head)?, body));
            }
        }
        if self.body.as_deref() == Some(parts.body) {
            return self.again.call(status);
        }
        let kept = self.body.get_or_insert_default();
        kept.clear();
        kept.extend_from_slice(parts.body);
        kept.shrink_to(MOST_KEPT_BYTES);
        self.again.call((status, body))
    }
}

impl User for ScriptUser {
    fn call(&mut self, _index: u64) -> Result<Message<'_>, Refusal> {
        if matches!(self.source, Source::Static) {
            if self.taken >= self.pieces.len() {
                self.taken = 0;
            }
        } else if self.taken >= self.pieces.len()
            && let Err(error) = self.refill()
        {
            return Err(self.failed(&error));
        }
        self.check()?;
        let from = self.taken.checked_sub(1).and_then(|last| self.pieces.get(last)).map_or(0, |piece| piece.end);
        let piece = self.pieces.get(self.taken).copied().ok_or(Refusal::Done)?;
        self.taken += 1;
        let is_static = matches!(self.source, Source::Static) && self.pieces.len() == 1;
        Ok(Message {
            bytes: self.bytes.get(from..piece.end).unwrap_or(&[]),
            idempotent: piece.idempotent && is_static,
            hint: piece.hint,
            more: self.taken < self.pieces.len(),
        })
    }

    fn interests(&self) -> Interests {
        Interests { pauses: self.delay.is_some(), answers: !matches!(self.respond, Respond::Absent) }
    }

    fn pause(&mut self) -> Result<u64, Refusal> {
        let Some(delay) = &self.delay else { return Ok(0) };
        let timer = self.meter.enter(Hook::Delay);
        let returned = delay.call::<Value>(());
        self.meter.leave(Hook::Delay, timer);
        let milliseconds = returned.map(|value| value.as_f64().or_else(|| value.to_string().ok()?.parse().ok()));
        let milliseconds = match milliseconds {
            Ok(number) => number.unwrap_or(0.0),
            Err(error) => {
                let error = ScriptError::from_lua("delay()", &self.file, &error);
                return Err(self.failed(&error));
            }
        };
        self.check()?;
        // Whole milliseconds, as wrk has it; what is negative or no number is no pause.
        Ok((milliseconds.max(0.0) as u64).saturating_mul(1_000_000))
    }

    fn answered(&mut self, status: u16, parts: Parts<'_>) -> Result<(), Refusal> {
        // Whoever has stopped sees no more.
        if self.refusal.is_some() {
            return Ok(());
        }
        let timer = self.meter.enter(Hook::Response);
        let done = self.respond(status, parts);
        self.meter.leave(Hook::Response, timer);
        if let Err(error) = done {
            let error = ScriptError::from_lua("response()", &self.file, &error);
            return Err(self.failed(&error));
        }
        self.check()
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
