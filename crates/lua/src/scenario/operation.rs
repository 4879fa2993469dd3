//! What a user yields, and what it is resumed with.

use mlua::{Lua, LuaString, MultiValue, Table, Value as LuaValue};

use super::value;
use brunt_protocol::scenario::Value;

/// What a step of the library returns: an operation and its values.
pub(super) type Returned = (LuaValue, LuaValue, LuaValue, LuaValue, MultiValue);

const CALL: u32 = 1;
const START: u32 = 2;
const WAIT: u32 = 3;
const PAUSE: u32 = 4;
const ITERATED: u32 = 5;
const END: u32 = 6;
const FAILED: u32 = 7;
const READ: u32 = 8;
const LABEL: u32 = 9;
const CHECK: u32 = 10;
const CHECK_FAILED: u32 = 11;
const GROUP: u32 = 12;
const GROUP_ENDED: u32 = 13;
const STOP: u32 = 14;
const EXHAUSTED: u32 = 15;
const CHECK_PASSED: u32 = 16;
const CONVERSE: u32 = 17;
const RELEASE: u32 = 18;
const PREPARE: u32 = 19;
const CALL_PREPARED: u32 = 20;
const SPAWN: u32 = 21;
const JOIN: u32 = 22;
const CANCEL: u32 = 23;
const TASK_ENDED: u32 = 24;
const MEET: u32 = 25;
const LOG: u32 = 26;
const STREAM: u32 = 27;
const NEXT: u32 = 28;
const LEAVE: u32 = 29;
const SAY: u32 = 30;
/// Added to the operation before which an iteration has ended and the next has begun.
const AGAIN: u32 = 64;

const NUMBERS: [(&str, u32); 31] = [
    ("CALL", CALL),
    ("START", START),
    ("WAIT", WAIT),
    ("PAUSE", PAUSE),
    ("ITERATED", ITERATED),
    ("END", END),
    ("FAILED", FAILED),
    ("READ", READ),
    ("LABEL", LABEL),
    ("CHECK", CHECK),
    ("CHECK_FAILED", CHECK_FAILED),
    ("GROUP", GROUP),
    ("GROUP_ENDED", GROUP_ENDED),
    ("STOP", STOP),
    ("EXHAUSTED", EXHAUSTED),
    ("CHECK_PASSED", CHECK_PASSED),
    ("CONVERSE", CONVERSE),
    ("RELEASE", RELEASE),
    ("PREPARE", PREPARE),
    ("CALL_PREPARED", CALL_PREPARED),
    ("SPAWN", SPAWN),
    ("JOIN", JOIN),
    ("CANCEL", CANCEL),
    ("TASK_ENDED", TASK_ENDED),
    ("MEET", MEET),
    ("LOG", LOG),
    ("STREAM", STREAM),
    ("NEXT", NEXT),
    ("LEAVE", LEAVE),
    ("SAY", SAY),
    ("AGAIN", AGAIN),
];

/// A call that a user wants.
#[derive(Debug)]
pub struct Wanted {
    /// The client, counted from 0.
    pub client: usize,
    /// The number of its name.
    pub label: u32,
    /// How long it may take, if it says so.
    pub timeout_ns: Option<u64>,
    /// Which connection it goes on.
    pub way: Placement,
    /// Whether the library is shown each answer, and says whether it is the last.
    pub judged: bool,
    /// Whether it counts for nothing if no answer comes in time.
    pub optional: bool,
    /// Whether its user takes the messages of its answer one by one.
    pub streams: bool,
    /// The protocol's values.
    pub values: Vec<Value<'static>>,
}

/// Which connection a call goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Any that its user, or the client's pool, has to where it goes.
    Any,
    /// A new one, which its user holds by this handle from then on.
    Open(u32),
    /// The one that its user holds by this handle.
    On(u32),
}

impl Placement {
    /// By its number in the library: 0 for any, a handle, or a handle below 0 to open it.
    fn of(number: f64) -> Self {
        match number as i64 {
            0 => Self::Any,
            handle @ 1.. => Self::On(handle as u32),
            handle => Self::Open(handle.unsigned_abs() as u32),
        }
    }
}

/// What a call's judge says of an answer, by the numbers in `library/conversations.lua`.
#[derive(Debug)]
pub enum Verdict {
    /// It is the last of its call.
    Taken,
    /// The call takes another one, as these values of the protocol ask for.
    ReadsOn(Vec<Value<'static>>),
    /// It is the wrong one, for this reason.
    Rejected(String),
    /// The judge itself failed, in the midst of an answer for all anybody knows.
    Broken(String),
}

impl Verdict {
    pub(super) fn of((verdict, rest): &(LuaValue, MultiValue)) -> Self {
        let reason = || rest.front().map(text).unwrap_or_default();
        match some_number(verdict).map(|number| number as u32) {
            Some(0) => Self::Taken,
            Some(1) => match rest.iter().map(value::of_lua).collect() {
                Ok(values) => Self::ReadsOn(values),
                Err(problem) => Self::Broken(problem),
            },
            Some(2) => Self::Rejected(reason()),
            _ => Self::Broken(reason()),
        }
    }
}

/// What a user yields, by its number in `numbers`.
#[derive(Debug)]
pub enum Operation {
    /// A call, whose end is waited for.
    Call(Wanted),
    /// A call that was prepared, whose end is waited for.
    CallPrepared {
        /// Its number.
        prepared: u32,
        /// The number of its name.
        label: u32,
        /// How long it may take, if it says so.
        timeout_ns: Option<u64>,
    },
    /// A call is encoded, to be made by its number from then on.
    Prepare(Wanted),
    /// A call that is begun.
    Start(Wanted),
    /// A call that is begun, whose answer comes as messages.
    Stream(Wanted),
    /// The next message of a stream is waited for, or its end.
    NextMessage {
        /// Which stream.
        ticket: u64,
        /// Which part of the message; empty for the message itself.
        part: String,
        /// The longest that it is waited for, in nanoseconds, if there is such a limit.
        most_ns: Option<u64>,
    },
    /// More is said on the call of a stream.
    Say {
        /// Which stream.
        ticket: u64,
        /// The protocol's values.
        values: Vec<Value<'static>>,
    },
    /// Nothing more is wanted of the stream with this ticket.
    LeaveStream(u64),
    /// The end of all calls that were begun is waited for.
    Wait,
    /// So many nanoseconds are waited.
    Pause(u64),
    /// The iteration is over; the next begins so many nanoseconds after this one began, at least.
    Iterated(u64),
    /// The user ends.
    End,
    /// The iteration has failed.
    Failed {
        /// What was wrong, with a traceback.
        problem: String,
        /// Whether the script itself is wrong, whatever comes of its calls.
        wrong: bool,
        /// How long after this iteration began the next does, at least.
        pacing_ns: u64,
    },
    /// A part of an answer.
    Read {
        /// Which answer.
        ticket: u64,
        /// Which part.
        what: String,
    },
    /// The number of a call's name, with tags.
    Label {
        /// The name.
        name: String,
        /// `key=value`, sorted.
        tags: Vec<String>,
    },
    /// The number of a check.
    Check {
        /// The number of the name of the calls it is about; 0 for none.
        label: u32,
        /// The check's own name.
        name: String,
    },
    /// A check did not hold.
    CheckFailed {
        /// Its number.
        id: u32,
        /// Which answer it is about; 0 for none.
        ticket: u64,
        /// The number of the name of its call.
        label: u32,
        /// Whether it is the first that did not hold for the answer.
        first: bool,
    },
    /// The check with this number held; only where that is to be seen.
    CheckPassed(u32),
    /// The number of a group.
    Group(String),
    /// A group has ended.
    GroupEnded {
        /// Its number.
        id: u32,
        /// How long it took.
        with_pauses_ns: u64,
        /// The same without pauses.
        without_pauses_ns: u64,
        /// Whether it ended as it should.
        ok: bool,
    },
    /// The connection that the user holds by this handle is closed.
    Release(u32),
    /// The run ends, for this reason.
    Stop(String),
    /// A queue of data is empty: the user's scenario ends.
    Exhausted,
    /// A task begins, which does something else for the same user.
    Spawn,
    /// The end of any task of the user is waited for, so many nanoseconds at most.
    Join(Option<u64>),
    /// The task with this number ends.
    Cancel(u32),
    /// The task that says so has ended.
    TaskEnded,
    /// The script writes something down.
    Log {
        /// `debug`, `info`, `warn` or `error`.
        level: String,
        /// What it says.
        text: String,
    },
    /// So many users are waited for.
    Meet {
        /// The name of the meeting.
        name: String,
        /// How many users meet.
        users: u64,
        /// How long they are waited for.
        most_ns: u64,
    },
}

/// What a user is resumed with.
#[derive(Debug)]
pub enum Resumption<'a> {
    /// Nothing.
    Nothing,
    /// A number that was asked for.
    Number(u32),
    /// A stream was begun.
    Begun {
        /// By which its messages are asked for.
        ticket: f64,
    },
    /// A call was answered.
    Answered {
        /// By which its parts are read.
        ticket: f64,
        /// The protocol's status.
        status: u16,
        /// Whether that is a success.
        ok: bool,
        /// What the protocol lets its library know.
        flags: u32,
        /// Whether the user may begin its next iteration without asking.
        goes_on: bool,
    },
    /// A call has failed.
    Failed {
        /// By which its timings are read.
        ticket: f64,
        /// The failure's name.
        failure: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A call could not be made.
    Refused(&'a str),
    /// A call could not be begun.
    Problem(&'a str),
    /// A part of an answer.
    Read(Value<'a>),
    /// A part could not be read.
    Unread(&'a str),
    /// The ends of all calls that were begun, in their order: answered or failed.
    Results(Vec<Resumption<'a>>),
}

fn some_number(value: &LuaValue) -> Option<f64> {
    match value {
        LuaValue::Integer(number) => Some(*number as f64),
        LuaValue::Number(number) => Some(*number),
        _ => None,
    }
}

fn number(value: &LuaValue) -> f64 {
    some_number(value).unwrap_or(0.0)
}

fn text(value: &LuaValue) -> String {
    value.as_string().map(LuaString::to_string_lossy).unwrap_or_default()
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9).round() as u64
}

impl Operation {
    /// The operation that a step returned, and whether an iteration has ended before it and the next has begun.
    pub(super) fn of(returned: Returned) -> (Self, bool) {
        let (operation, a, b, c, rest) = returned;
        let operation = number(&operation) as u32;
        (Self::of_number(operation & !AGAIN, &a, &b, &c, &rest), operation & AGAIN != 0)
    }

    fn of_number(operation: u32, a: &LuaValue, b: &LuaValue, c: &LuaValue, rest: &MultiValue) -> Self {
        match operation {
            CALL_PREPARED => Self::CallPrepared {
                prepared: (number(a) as u32).wrapping_sub(1),
                label: number(b) as u32,
                timeout_ns: some_number(c).map(nanoseconds),
            },
            CALL | START | CONVERSE | PREPARE | STREAM => {
                let mut rest = rest.iter();
                let (mut way, mut judged, mut optional) = (Placement::Any, false, false);
                if operation == CONVERSE {
                    way = Placement::of(rest.next().map_or(0.0, number));
                    judged = rest.next() == Some(&LuaValue::Boolean(true));
                    optional = rest.next() == Some(&LuaValue::Boolean(true));
                }
                let mut values = Vec::with_capacity(rest.len());
                for value in rest {
                    match value::of_lua(value) {
                        Ok(value) => values.push(value),
                        Err(problem) => return Self::Failed { problem, wrong: true, pacing_ns: 0 },
                    }
                }
                let wanted = Wanted {
                    client: (number(a) as usize).wrapping_sub(1),
                    label: number(b) as u32,
                    timeout_ns: some_number(c).map(nanoseconds),
                    way,
                    judged,
                    optional,
                    streams: operation == STREAM,
                    values,
                };
                match operation {
                    START => Self::Start(wanted),
                    STREAM => Self::Stream(wanted),
                    PREPARE => Self::Prepare(wanted),
                    _ => Self::Call(wanted),
                }
            }
            NEXT => {
                Self::NextMessage { ticket: number(a) as u64, part: text(b), most_ns: some_number(c).map(nanoseconds) }
            }
            SAY => match rest.iter().map(value::of_lua).collect() {
                Ok(values) => Self::Say { ticket: number(a) as u64, values },
                Err(problem) => Self::Failed { problem, wrong: true, pacing_ns: 0 },
            },
            LEAVE => Self::LeaveStream(number(a) as u64),
            WAIT => Self::Wait,
            PAUSE => Self::Pause(nanoseconds(number(a))),
            ITERATED => Self::Iterated(nanoseconds(number(a))),
            END => Self::End,
            FAILED => Self::Failed {
                problem: text(a),
                wrong: *b == LuaValue::Boolean(true),
                pacing_ns: nanoseconds(number(c)),
            },
            READ => Self::Read { ticket: number(a) as u64, what: text(b) },
            LABEL => {
                let tags = [b, c].into_iter().chain(rest).filter(|tag| !tag.is_nil()).map(text).collect();
                Self::Label { name: text(a), tags }
            }
            CHECK => Self::Check { label: number(a) as u32, name: text(b) },
            CHECK_FAILED => Self::CheckFailed {
                id: number(a) as u32,
                ticket: number(b) as u64,
                label: number(c) as u32,
                first: rest.front() == Some(&LuaValue::Boolean(true)),
            },
            GROUP => Self::Group(text(a)),
            GROUP_ENDED => Self::GroupEnded {
                id: number(a) as u32,
                with_pauses_ns: number(b).max(0.0) as u64,
                without_pauses_ns: number(c).max(0.0) as u64,
                ok: rest.front() == Some(&LuaValue::Boolean(true)),
            },
            STOP => Self::Stop(text(a)),
            EXHAUSTED => Self::Exhausted,
            CHECK_PASSED => Self::CheckPassed(number(a) as u32),
            RELEASE => Self::Release(number(a) as u32),
            SPAWN => Self::Spawn,
            JOIN => Self::Join(some_number(a).filter(|seconds| *seconds >= 0.0).map(nanoseconds)),
            CANCEL => Self::Cancel(number(a) as u32),
            TASK_ENDED => Self::TaskEnded,
            LOG => Self::Log { level: text(a), text: text(b) },
            MEET => Self::Meet { name: text(a), users: number(b) as u64, most_ns: nanoseconds(number(c)) },
            _ => Self::Failed {
                problem:
                    "coroutine.yield was called by the scenario's function itself: virtual users wait by brunt.pause, \
                          and other coroutines are resumed by who made them"
                        .to_owned(),
                wrong: true,
                pacing_ns: 0,
            },
        }
    }
}

/// The numbers of the operations, by the names that the library has for them.
pub(super) fn numbers(lua: &Lua) -> mlua::Result<Table> {
    lua.create_table_from(NUMBERS)
}

/// The results of calls that were begun, as the library takes them.
pub(super) fn results(lua: &Lua, results: &[Resumption<'_>]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(results.len(), 0)?;
    for result in results {
        let one = lua.create_table_with_capacity(6, 0)?;
        match result {
            Resumption::Answered { ticket, status, ok, flags, .. } => {
                one.raw_set(1, *ticket)?;
                one.raw_set(2, *status)?;
                one.raw_set(3, *ok)?;
                one.raw_set(4, *flags)?;
            }
            Resumption::Failed { ticket, failure, reason } => {
                one.raw_set(1, *ticket)?;
                one.raw_set(2, 0)?;
                one.raw_set(3, false)?;
                one.raw_set(4, 0)?;
                one.raw_set(5, *failure)?;
                one.raw_set(6, *reason)?;
            }
            _ => {}
        }
        table.raw_push(one)?;
    }
    Ok(table)
}
