//! What a user wants of the engine, and what it is resumed with.

use brunt_protocol::record::outcome::OkStatus;
use brunt_protocol::scenario::Value;

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

/// What a call's judge says of an answer.
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

/// What a user wants of the engine.
///
/// The engine does it and resumes the user with what each variant says; with [`Resumption::Nothing`] where it says nothing. A user who ends, whose
/// iteration is over or has failed, is not resumed. An answer can be read until the next call, pause or wait.
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
        /// How long it may take, if it says so.
        timeout_ns: Option<u64>,
    },
    /// A call is encoded, to be made by its [`Number`](Resumption::Number) from then on; or it is [`Refused`](Resumption::Refused).
    Prepare(Wanted),
    /// A call that is begun, for [`Wait`](Self::Wait): [`Resumption::Nothing`], or a [`Problem`](Resumption::Problem).
    Start(Wanted),
    /// A call that is begun, whose answer comes as messages: [`Resumption::Begun`] or [`Refused`](Resumption::Refused).
    Stream(Wanted),
    /// The next message of a stream is waited for: [`Resumption::Read`], with [`Value::Nil`] where none came in time. At the stream's end it is
    /// what came of its call; after that, [`Unread`](Resumption::Unread).
    NextMessage {
        /// Which stream.
        ticket: u64,
        /// Which part of the message; empty for the message itself.
        part: String,
        /// The longest that it is waited for, in nanoseconds, if there is such a limit.
        most_ns: Option<u64>,
    },
    /// More is said on the call of a stream: [`Number`](Resumption::Number) 1, or 0 once the call has ended; or
    /// [`Refused`](Resumption::Refused).
    Say {
        /// Which stream.
        ticket: u64,
        /// The protocol's values.
        values: Vec<Value<'static>>,
    },
    /// Nothing more is wanted of the stream with this ticket: what came of its call.
    LeaveStream(u64),
    /// The user's next call goes on with the one whose answer has this ticket and led on to it: [`Resumption::Nothing`].
    Continue(u64),
    /// The end of all calls that were begun is waited for: [`Resumption::Results`].
    Wait,
    /// So many nanoseconds are waited: [`Resumption::Nothing`].
    Pause(u64),
    /// The iteration is over.
    Iterated {
        /// The next begins so many nanoseconds after this one began, at least, by
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
        /// How long after this iteration began the next does, at least.
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
    Label {
        /// The name.
        name: String,
        /// `key=value`, sorted.
        tags: Vec<String>,
        /// The scenario of the user and the path of the group that it is in, each empty where the script does not tell them.
        place: (String, String),
        /// The statuses with which such calls succeed, if not those of the run.
        ok: Option<OkStatus>,
    },
    /// The [`Number`](Resumption::Number) of a check.
    Check {
        /// The number of the name of the calls it is about; 0 for none.
        label: u32,
        /// The check's own name.
        name: String,
        /// Whether it is the reason for which the script fails calls, and no condition that may hold.
        is_reason: bool,
    },
    /// A call that was answered counts as ok, against its status.
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
        /// Which answer it is about; 0 for none.
        ticket: u64,
        /// The number of the name of its call.
        label: u32,
        /// Whether it is the first that did not hold for the answer.
        first: bool,
        /// What it said, if it raised an error: shown in place of the answer's body.
        reason: Option<String>,
    },
    /// The check with this number held; only where that is to be seen.
    CheckPassed(u32),
    /// The [`Number`](Resumption::Number) of the group with this path.
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
    /// A task begins, which does something else for the same user: the [`Number`](Resumption::Number) of its slot, in which it is resumed with
    /// [`Nothing`](Resumption::Nothing) first.
    Spawn,
    /// The end of any task of the user is waited for, so many nanoseconds at most: [`Resumption::Nothing`].
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
    /// So many users are waited for: [`Resumption::Nothing`] once they are there, or for too long.
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
