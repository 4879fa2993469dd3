//! Operations, which a user wants of the engine, and resumptions, which carry the results back.

use brunt_protocol::record::outcome::OkStatus;
use brunt_protocol::record::recording::Stop;
use brunt_protocol::scenario::Value;

/// A call that a user wants.
#[derive(Debug)]
pub struct Wanted {
    /// The client, counted from 0.
    pub client: usize,
    /// The number of its name.
    pub label: u32,
    /// The timeout of its own, if it has one.
    pub timeout_ns: Option<u64>,
    /// The connection that it goes on.
    pub way: Placement,
    /// Whether the library is shown each answer, and decides whether it is the last.
    pub judged: bool,
    /// Whether the call counts for nothing if no answer comes in time.
    pub optional: bool,
    /// Whether its user takes the messages of its answer one by one.
    pub streams: bool,
    /// The protocol's values.
    pub values: Vec<Value<'static>>,
}

/// Which connection a call goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Any connection to its destination that its user, or the client's pool, has.
    Any,
    /// A new connection, which its user holds by this handle from then on.
    Open(u32),
    /// The connection that its user holds by this handle.
    On(u32),
}

/// A judge's verdict on an answer to a call.
#[derive(Debug)]
pub enum Verdict {
    /// The answer is the last of its call.
    Taken,
    /// The call waits for another answer, as these values of the protocol ask for.
    ReadsOn(Vec<Value<'static>>),
    /// The answer is the wrong one, for this reason.
    Rejected(String),
    /// The judge itself failed, possibly in the midst of an answer.
    Broken(String),
}

/// A name for calls. It is asked for once, and so lies apart from the operations, which are moved for each call.
#[derive(Debug)]
pub struct Labelled {
    /// The name.
    pub name: String,
    /// `key=value`, sorted.
    pub tags: Vec<String>,
    /// The scenario of the user and the path of the group that it is in; each is empty where the script does not
    /// tell them apart.
    pub place: (String, String),
    /// The statuses with which such calls succeed, if they differ from those of the run.
    pub ok: Option<OkStatus>,
}

/// An operation that a user wants of the engine.
///
/// The engine does it and resumes the user with the variant that each operation names, or with [`Resumption::Nothing`]
/// where it names none. A user who ends, whose iteration is over or has failed, is not resumed. An answer can be read
/// until the next call, pause or wait.
#[derive(Debug)]
pub enum Operation {
    /// A call, whose end is waited for: [`Resumption::Answered`] or [`Failed`](Resumption::Failed), or at once
    /// [`Refused`](Resumption::Refused).
    Call(Wanted),
    /// A call that was prepared, whose end is waited for as that of [`Call`](Self::Call).
    CallPrepared {
        /// Its number.
        prepared: u32,
        /// The number of its name.
        label: u32,
        /// The timeout of its own, if it has one.
        timeout_ns: Option<u64>,
    },
    /// Encodes a call, which is made by its [`Number`](Resumption::Number) from then on; or the call is
    /// [`Refused`](Resumption::Refused).
    Prepare(Wanted),
    /// Begins a call for [`Wait`](Self::Wait): [`Resumption::Nothing`], or a [`Problem`](Resumption::Problem).
    Start(Wanted),
    /// Begins a call whose answer comes as messages: [`Resumption::Begun`] or [`Refused`](Resumption::Refused).
    Stream(Wanted),
    /// Waits for the next message of a stream: [`Resumption::Read`], with [`Value::Nil`] where none came in time. At
    /// the stream's end it is the result of its call; after that, [`Unread`](Resumption::Unread).
    NextMessage {
        /// Which stream.
        ticket: u64,
        /// Which part of the message; empty for the message itself.
        part: String,
        /// The longest wait, in nanoseconds, if there is a limit.
        most_ns: Option<u64>,
    },
    /// Sends a further message on the call of a stream: [`Number`](Resumption::Number) 1, or 0 once the call has ended;
    /// or [`Refused`](Resumption::Refused).
    Say {
        /// Which stream.
        ticket: u64,
        /// The protocol's values.
        values: Vec<Value<'static>>,
    },
    /// Leaves the stream with this ticket: the result of its call.
    LeaveStream(u64),
    /// The user's next call continues the one whose answer has this ticket and led on to it: [`Resumption::Nothing`].
    Continue(u64),
    /// The end of all calls that were begun is waited for: [`Resumption::Results`].
    Wait,
    /// Waits this many nanoseconds: [`Resumption::Nothing`].
    Pause(u64),
    /// The iteration is over.
    Iterated {
        /// The least time from the beginning of this iteration to that of the next, in nanoseconds, by
        /// [`Library::begin_iteration`](crate::Library::begin_iteration).
        pacing_ns: u64,
        /// Whether all of its calls were ok.
        ok: bool,
    },
    /// The user ends, in the midst of its iteration.
    End,
    /// The iteration has failed.
    Failed {
        /// What was wrong, with a traceback.
        problem: String,
        /// Whether the script itself is wrong, whatever comes of its calls.
        wrong: bool,
        /// The least time from the beginning of this iteration to that of the next.
        pacing_ns: u64,
    },
    /// A part of an answer: [`Resumption::Read`] or [`Unread`](Resumption::Unread).
    Read {
        /// Which answer.
        ticket: u64,
        /// Which part.
        what: String,
    },
    /// The [`Number`](Resumption::Number) of a call's name, with tags.
    Label(Box<Labelled>),
    /// The [`Number`](Resumption::Number) of a check.
    Check {
        /// The number of the name of the calls that the check is about; 0 for none.
        label: u32,
        /// The check's own name.
        name: String,
        /// Whether it is a reason for which the script fails calls, rather than a condition that may hold.
        is_reason: bool,
    },
    /// Counts an answered call as ok, whatever its status.
    Excuse {
        /// The number of its name.
        label: u32,
        /// The status of its answer.
        status: u16,
    },
    /// A check did not hold.
    CheckFailed {
        /// Its number.
        id: u32,
        /// The ticket of the answer that it is about; 0 for none.
        ticket: u64,
        /// The number of the name of its call.
        label: u32,
        /// Whether it is the first check that did not hold for the answer.
        first: bool,
        /// The error that the check raised, if it raised one: shown in place of the answer's body.
        reason: Option<String>,
    },
    /// The check with this number held. Told only where each check is shown.
    CheckPassed(u32),
    /// The [`Number`](Resumption::Number) of the group with this path.
    Group(String),
    /// A group has ended.
    GroupEnded {
        /// Its number.
        id: u32,
        /// How long it took.
        with_pauses_ns: u64,
        /// How long it took, without pauses.
        without_pauses_ns: u64,
        /// Whether it ended without a failure.
        ok: bool,
    },
    /// The connection that the user holds by this handle is closed.
    Release(u32),
    /// The run ends.
    Stop(Stop),
    /// A queue of data is empty: the user's scenario ends.
    Exhausted,
    /// Begins a task, which does something else for the same user: the [`Number`](Resumption::Number) of its slot, in
    /// which it is resumed with [`Nothing`](Resumption::Nothing) first.
    Spawn,
    /// Waits for the end of any task of the user, at most this many nanoseconds: [`Resumption::Nothing`].
    Join(Option<u64>),
    /// The task with this number ends.
    Cancel(u32),
    /// The task that wants this has ended.
    TaskEnded,
    /// The script writes something down.
    Log {
        /// `debug`, `info`, `warn` or `error`.
        level: String,
        /// The text.
        text: String,
    },
    /// Waits until this many users have met: [`Resumption::Nothing`] once they have, or after too long.
    Meet {
        /// The name of the meeting.
        name: String,
        /// How many users meet.
        users: u64,
        /// The longest wait, in nanoseconds.
        most_ns: u64,
    },
}

/// The result of an operation, with which its user is resumed.
#[derive(Debug)]
pub enum Resumption<'a> {
    /// No result.
    Nothing,
    /// A number that was asked for.
    Number(u32),
    /// A stream was begun.
    Begun {
        /// The ticket by which its messages are asked for.
        ticket: f64,
    },
    /// A call was answered.
    Answered {
        /// The ticket by which its parts are read.
        ticket: f64,
        /// The protocol's status.
        status: u16,
        /// Whether that status is a success.
        ok: bool,
        /// The facts that the protocol gives its library ([`Caller::flags`](brunt_protocol::scenario::Caller::flags)).
        flags: u32,
        /// Whether the user may begin its next iteration without asking.
        goes_on: bool,
    },
    /// A call has failed.
    Failed {
        /// The ticket by which its timings are read.
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
