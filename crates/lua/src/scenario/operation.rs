//! Conversion of yields and resumptions between Lua and the contract of scripts.

use brunt_record::recording::Stop;
use brunt_script::{Labelled, Operation, Placement, Resumption, Verdict, Wanted};
use mlua::{Lua, LuaString, MultiValue, Table, Value as LuaValue};

use super::value;

/// The values that a step of the library returns: an operation and its arguments.
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
const CONTINUE: u32 = 31;
const EXCUSE: u32 = 32;
/// Added to the number of an operation if an iteration has ended and the next has begun before it.
const AGAIN: u32 = 64;

const NUMBERS: [(&str, u32); 33] = [
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
    ("CONTINUE", CONTINUE),
    ("EXCUSE", EXCUSE),
    ("AGAIN", AGAIN),
];

/// The connection of a call, by its number in the library: 0 for any, a handle, or a negative handle to open it.
fn placement(number: f64) -> Placement {
    match number as i64 {
        0 => Placement::Any,
        handle @ 1.. => Placement::On(handle as u32),
        handle => Placement::Open(handle.unsigned_abs() as u32),
    }
}

/// The verdict of a judge, by the numbers in `library/conversations.lua`.
pub(super) fn verdict((verdict, rest): &(LuaValue, MultiValue)) -> Verdict {
    let reason = || rest.front().map(text).unwrap_or_default();
    match some_number(verdict).map(|number| number as u32) {
        Some(0) => Verdict::Taken,
        Some(1) => match rest.iter().map(value::of_lua).collect() {
            Ok(values) => Verdict::ReadsOn(values),
            Err(problem) => Verdict::Broken(problem),
        },
        Some(2) => Verdict::Rejected(reason()),
        _ => Verdict::Broken(reason()),
    }
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

/// The operation that a step returned, and whether an iteration has ended and the next has begun before it.
#[inline]
pub(super) fn returned((number_and_again, a, b, c, rest): &Returned) -> (Operation, bool) {
    let number = number(number_and_again) as u32;
    (operation(number & !AGAIN, a, b, c, rest), number & AGAIN != 0)
}

/// Whether a value is `true`.
fn is_true(value: &LuaValue) -> bool {
    matches!(value, LuaValue::Boolean(true))
}

/// The operation of a number, with its arguments.
fn operation(operation: u32, a: &LuaValue, b: &LuaValue, c: &LuaValue, rest: &MultiValue) -> Operation {
    match operation {
        CALL_PREPARED => Operation::CallPrepared {
            prepared: (number(a) as u32).wrapping_sub(1),
            label: number(b) as u32,
            timeout_ns: some_number(c).map(nanoseconds),
        },
        CALL | START | CONVERSE | PREPARE | STREAM => {
            let mut rest = rest.iter();
            let (mut way, mut judged, mut optional) = (Placement::Any, false, false);
            if operation == CONVERSE {
                way = placement(rest.next().map_or(0.0, number));
                judged = rest.next().is_some_and(is_true);
                optional = rest.next().is_some_and(is_true);
            }
            let mut values = Vec::with_capacity(rest.len());
            for value in rest {
                match value::of_lua(value) {
                    Ok(value) => values.push(value),
                    Err(problem) => return Operation::Failed { problem, wrong: true, pacing_ns: 0 },
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
                START => Operation::Start(wanted),
                STREAM => Operation::Stream(wanted),
                PREPARE => Operation::Prepare(wanted),
                _ => Operation::Call(wanted),
            }
        }
        NEXT => {
            Operation::NextMessage { ticket: number(a) as u64, part: text(b), most_ns: some_number(c).map(nanoseconds) }
        }
        SAY => match rest.iter().map(value::of_lua).collect() {
            Ok(values) => Operation::Say { ticket: number(a) as u64, values },
            Err(problem) => Operation::Failed { problem, wrong: true, pacing_ns: 0 },
        },
        LEAVE => Operation::LeaveStream(number(a) as u64),
        CONTINUE => Operation::Continue(number(a) as u64),
        WAIT => Operation::Wait,
        PAUSE => Operation::Pause(nanoseconds(number(a))),
        ITERATED => Operation::Iterated { pacing_ns: nanoseconds(number(a)), ok: !is_true(b) },
        END => Operation::End,
        FAILED => Operation::Failed { problem: text(a), wrong: is_true(b), pacing_ns: nanoseconds(number(c)) },
        READ => Operation::Read { ticket: number(a) as u64, what: text(b) },
        LABEL => {
            let mut rest = rest.iter();
            // The library has checked the statuses already.
            let ok = rest.next().filter(|ok| !ok.is_nil()).and_then(|ok| text(ok).parse().ok());
            let tags = rest.filter(|tag| !tag.is_nil()).map(text).collect();
            Operation::Label(Box::new(Labelled { name: text(a), tags, place: (text(b), text(c)), ok }))
        }
        CHECK => Operation::Check { label: number(a) as u32, name: text(b), is_reason: is_true(c) },
        CHECK_FAILED => Operation::CheckFailed {
            id: number(a) as u32,
            ticket: number(b) as u64,
            label: number(c) as u32,
            first: rest.front().is_some_and(is_true),
            reason: rest.get(1).filter(|reason| !reason.is_nil()).map(text),
        },
        GROUP => Operation::Group(text(a)),
        GROUP_ENDED => Operation::GroupEnded {
            id: number(a) as u32,
            with_pauses_ns: number(b).max(0.0) as u64,
            without_pauses_ns: number(c).max(0.0) as u64,
            ok: rest.front().is_some_and(is_true),
        },
        STOP => Operation::Stop(Stop { reason: text(a), ok: is_true(b) }),
        EXHAUSTED => Operation::Exhausted,
        CHECK_PASSED => Operation::CheckPassed(number(a) as u32),
        EXCUSE => Operation::Excuse { label: number(a) as u32, status: number(b) as u16 },
        RELEASE => Operation::Release(number(a) as u32),
        SPAWN => Operation::Spawn,
        JOIN => Operation::Join(some_number(a).filter(|seconds| *seconds >= 0.0).map(nanoseconds)),
        CANCEL => Operation::Cancel(number(a) as u32),
        TASK_ENDED => Operation::TaskEnded,
        LOG => Operation::Log { level: text(a), text: text(b) },
        MEET => Operation::Meet { name: text(a), users: number(b) as u64, most_ns: nanoseconds(number(c)) },
        _ => Operation::Failed {
            problem:
                "coroutine.yield was called by the scenario's function itself: virtual users wait by brunt.pause, \
                      and other coroutines are resumed by who made them"
                    .to_owned(),
            wrong: true,
            pacing_ns: 0,
        },
    }
}

/// The numbers of the operations, by their names in the library.
pub(super) fn numbers(lua: &Lua) -> mlua::Result<Table> {
    lua.create_table_from(NUMBERS)
}

/// The results of started calls, in the form that the library takes.
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
