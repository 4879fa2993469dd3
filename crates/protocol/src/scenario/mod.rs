//! How a protocol offers itself to scenarios: the seam between Lua and bytes. HTTP goes through it like any other.
//!
//! A protocol that wants to be `brunt.NAME` in scripts gives a [`Dialect`]. Three things make it:
//!
//! 1. **A library**, in Lua: a chunk that is run once in each worker's state, is given the table `core`, and returns the
//!    function that becomes `brunt.NAME`. It is what users see; it makes of their tables what goes through the seam.
//! 2. **[`Dialect::client`]**: called when a script says `brunt.NAME{…}`, before any load, with these options. It validates
//!    them and gives the [`Caller`] that all calls of this client go through.
//! 3. **A [`Caller`]**: encodes a call from the values that the library gave to `core`, makes the state of each connection
//!    (the same [`Client`] that a flood has), and reads of an answer what the script asks for.
//!
//! The library has these functions (`script/scenario/library/calls.lua` has their text):
//!
//! - `core.client(NAME, options)`: makes the client; gives its number. `base`, `timeout`, `connections`, `pool` and
//!   `pipeline` are the engine's and are taken out; the others go to [`Dialect::client`].
//! - `core.call(client, name, options, …)`: one call. What stands behind `options` goes to [`Caller::encode`]. The user waits
//!   until it has ended; the result is an answer: `status`, `ok`, `error` (a failure's name) and `reason` where there is
//!   none, and `core.read(answer, what)`, which goes to [`Caller::read`]. `options` may have the engine's `name`, `tags`,
//!   `timeout`.
//! - `core.prepare(client, …)` and `core.call_prepared(number, name, options)`: the same for a call that is the same each time,
//!   which is encoded once.
//! - `core.start(…)` and `core.wait()`: several calls at once; `core.wait` gives the answers in the order of the starts.
//! - `core.connect(client, name, options, …)`: one call on a new connection that the user has for itself; gives the answer,
//!   and a number for `core.on(number, client, name, options, judge, …)`, one call on it, and `core.release(number)`, its end.
//!   What came before it ended can still be received: [`Client::start`] answers with [`Started::Sent`](crate::Started::Sent)
//!   what it has.
//! - `core.converse(client, name, options, judge, …)`: one call that may take several answers. `judge` is shown the body, the
//!   flags and the status of each, and says whether the call is over, fails, or goes on with other values.
//! - `core.stream(client, name, options, …)`: begins a call whose answer comes as messages ([`Started::Streamed`](crate::Started::Streamed)),
//!   and gives its stream. `core.next_message(stream)` waits for the next message, which is what [`Caller::read`] makes of the part
//!   `message`, or gives nil and the answer once the call has ended; `core.leave(stream)` wants no more of it, and gives the answer.
//!   `core.next_message(stream, timeout)` waits so long at most, and gives nil alone then; a field `part` of the stream is read in place of
//!   `message`. `core.say(stream, …)` says more on the call ([`Client::send_message`]); what stands behind the stream goes to [`Caller::encode`]. It
//!   gives false once the call has ended.
//! - `core.digest(algorithm, text, encoding)`, `core.hmac(algorithm, key, text, encoding)`, `core.base64(text)` and
//!   `core.url_encode(text)`: as `brunt.sha256` and its like have them.
//! - `core.misused(message, …)`: refuses arguments, which follow the message; gives a made-up value where a rehearsal made
//!   them up. `core.made_up()` is such a value in a rehearsal, and nil otherwise.
//!
//! **What the engine does**: which connection a call goes on (the user's own, or the client's pool), connecting and TLS,
//! timeouts, names, tags and groups, counting, sending again what is idempotent, traces of `--once`, which calls have a `traceparent`. A protocol does none of it.
//!
//! **An answer's parts** are kept by the connection's [`Client`], as for wrk's scripts: they reach Lua when the script reads
//! them, until the user's next call or pause. What it does not read is forgotten.

mod bodies;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::sync::Arc;

use brunt_plan::target::Target;
use brunt_record::outcome::OkStatus;

use crate::discovery::Discovery;
use crate::flags::ReadFile;
use crate::message::{Message, Tail};
use crate::traced::TraceIds;
use crate::{AnswerParts, Client, OptionsError};

pub use bodies::{LEAST_SHARED_BYTES, shared_body};
pub use value::{Fields, Value, duration_ns, is_rounded, number_text, rounded, unknown, unknown_name};

/// What a protocol is in scenarios: a library in Lua, and the clients that scripts make by it.
///
/// # Example
///
/// `brunt.echo { base = "echo://…" }`, whose clients have one method, `say`:
///
/// ```
/// use brunt_protocol::scenario::{CompleteAnswer, Caller, Dialect, Encoded, ClientSetting, Fields, Value};
/// use brunt_protocol::source::Message;
/// use brunt_protocol::{Client, Malformed, OptionsError, Progress, Started};
///
/// struct EchoDialect;
///
/// impl Dialect for EchoDialect {
///     fn name(&self) -> &'static str {
///         "echo"
///     }
///
///     fn library(&self) -> &'static str {
///         "local core, name = ...
///          local Client = {}
///          Client.__index = Client
///          function Client:say(text, options)
///            return core.call(self.client, 'say', options, text)
///          end
///          return function(options)
///            return setmetatable({ client = core.client(name, options) }, Client)
///          end"
///     }
///
///     fn client(&self, options: &Value<'_>, setting: &ClientSetting<'_>) -> Result<Box<dyn Caller>, OptionsError> {
///         Fields::parse("brunt.echo", options, &[])?;
///         match setting.base {
///             Some(_) => Ok(Box::new(Echo)),
///             None => Err(OptionsError("brunt.echo needs a base: brunt.echo { base = \"echo://…\" }".to_owned())),
///         }
///     }
/// }
///
/// struct Echo;
///
/// impl Caller for Echo {
///     fn connection(&self) -> Box<dyn Client> {
///         Box::new(Lines::default())
///     }
///
///     fn encode(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
///         let text = values.first().unwrap_or(&Value::Nil);
///         let line = text.as_bytes().ok_or_else(|| OptionsError(format!("say takes a string, not {}", text.kind())))?;
///         out.bytes.extend_from_slice(line);
///         out.bytes.push(b'\n');
///         out.idempotent = true;
///         Ok(())
///     }
///
///     fn read<'a>(&self, what: &str, answer: &CompleteAnswer<'a>) -> Result<Value<'a>, OptionsError> {
///         match what {
///             "body" => Ok(Value::Text(answer.parts.body.into())),
///             _ => Err(OptionsError(format!("an echo has no '{what}'"))),
///         }
///     }
/// }
/// # #[derive(Default)]
/// # struct Lines {
/// #     in_flight: u32,
/// #     partial: Vec<u8>,
/// # }
/// # impl Client for Lines {
/// #     fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
/// #         out.extend_from_slice(message.bytes);
/// #         self.in_flight += 1;
/// #         Started::Awaited
/// #     }
/// #     fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
/// #         Ok((bytes.len(), Progress::More))
/// #     }
/// # }
///
/// # let base = brunt_protocol::plan::target::Url::parse("echo://localhost:7/")?.target;
/// let caller = EchoDialect.client(&Value::Nil, &ClientSetting::alone(Some(&base)))?;
/// let mut call = Encoded::default();
/// caller.encode(&[Value::text("hi")], &mut call)?;
/// assert_eq!(call.bytes, b"hi\n");
/// assert_eq!(caller.encode(&[Value::Number(1.0)], &mut call).unwrap_err().0, "say takes a string, not a number");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Dialect: Send + Sync {
    /// Its name: `brunt.NAME`.
    fn name(&self) -> &'static str;

    /// Its library, in Lua.
    fn library(&self) -> &'static str;

    /// Annotations of its library for editors, in Lua with `LuaLS` comments: declares `brunt.NAME` and its classes. What
    /// `brunt types` writes; the engine's part comes before it.
    fn types(&self) -> &'static str {
        ""
    }

    /// The client that a script makes with these options; those of the engine are not among them.
    ///
    /// # Errors
    /// Says which option is wrong and what it may be. The engine adds file and line.
    fn client(&self, options: &Value<'_>, setting: &ClientSetting<'_>) -> Result<Box<dyn Caller>, OptionsError>;
}

/// The surroundings in which a client is made.
#[derive(Clone, Copy)]
pub struct ClientSetting<'a> {
    /// Where its calls go by default.
    pub base: Option<&'a Target>,
    /// Reads a file by its path beside the script, which then travels with the script in a plan.
    pub read: &'a ReadFile,
    /// Makes content from the base's answers when the script is loaded; it travels with the script in a plan, as a file
    /// does.
    pub learn: &'a Discovery<'a>,
    /// Whether each call has a connection of its own, which a protocol may announce to the peer.
    pub closes: bool,
}

impl<'a> ClientSetting<'a> {
    /// A setting without files and without a target to ask.
    pub fn alone(base: Option<&'a Target>) -> Self {
        Self {
            base,
            read: &|_| Ok(None),
            learn: &|_, _| Err("there is no target to ask here".to_owned()),
            closes: false,
        }
    }
}

/// Encodes the calls of one client of a script, and reads their answers. Shared by the workers' users; it has no state
/// of theirs.
///
/// [`encode`](Self::encode) is on the way of every call: it takes no lock, and does what can be done once beforehand. For an
/// example see [`Dialect`].
pub trait Caller: Send + Sync {
    /// The state for one connection. It must keep its answers for [`Client::parts`].
    fn connection(&self) -> Box<dyn Client>;

    /// The names to offer in the TLS handshake (ALPN, RFC 7301), by preference.
    fn alpn(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Whether a connection carries each call on a stream of its own, so that users may share it (`connections = "shared"`).
    fn multiplexes(&self) -> bool {
        false
    }

    /// Encodes a call, from the values that the library gave, into `out`, which is empty.
    ///
    /// # Errors
    /// Says what is wrong with the values; it is raised in the script, where the call stands.
    fn encode(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError>;

    /// Appends `more`, a further message of a stream, to the call that began it, which has not been sent yet or is sent
    /// again.
    fn join(&self, more: &Encoded, call: &mut Encoded) {
        call.bytes.extend_from_slice(&more.bytes);
    }

    /// Whether some of its calls have a place for a `traceparent` ([`add_trace`](Self::add_trace)). Asked before the load: a run that is to
    /// be traced says which clients have none.
    fn traces(&self) -> bool {
        false
    }

    /// Adds a `traceparent` with these ids to an encoded call; false where the call has one already, or has no place for it.
    fn add_trace(&self, _call: &mut Encoded, _ids: &TraceIds) -> bool {
        false
    }

    /// Examines the values of a call before the load, if no answer made them, and returns the status of a good
    /// answer.
    ///
    /// # Errors
    /// Says what is wrong with the values whatever the answer will be: it ends the run before it begins.
    fn examine(&self, values: &[Value<'_>]) -> Result<u16, OptionsError> {
        self.encode(values, &mut Encoded::default()).map(|()| 200)
    }

    /// The statuses that are a success of its calls, where neither the call nor the run says which are. `None` for the statuses of HTTP under 400,
    /// which are those of a run of scenarios.
    fn ok_status(&self) -> Option<OkStatus> {
        None
    }

    /// Facts about every answer that the library has without asking, as bits of its own; 0 for none. `answer.flags` in
    /// the library.
    fn flags(&self, _answer: &CompleteAnswer<'_>) -> u32 {
        0
    }

    /// Reads the part `what` of an answer, for `core.read(answer, what)`.
    ///
    /// # Errors
    /// Says what is wrong with it, or that there is no such part; it is raised in the script.
    fn read<'a>(&self, what: &str, answer: &CompleteAnswer<'a>) -> Result<Value<'a>, OptionsError>;

    /// The name of an answer's status, where that says more than its number. Asked where the status differs from that
    /// of the answer before with the same name, not for each answer.
    fn status_name(&self, _call: &Encoded, _status: u16) -> Option<String> {
        None
    }

    /// A word such as `redirect`, where an answer to `call` is not its last but leads on to another request, which the
    /// library makes in its place. Such a request and its answer are counted by the call's name with this word and a
    /// number behind it (`login redirect 1`). The call itself is counted once, with the answer that leads no further
    /// and the time of them all.
    ///
    /// The library goes on with it by `core.call` with the field `continues` in its options: the answer that led on.
    fn leads_on(&self, _call: &Encoded, _answer: &CompleteAnswer<'_>) -> Option<&'static str> {
        None
    }

    /// A call as `--once` shows it, where people cannot read its bytes.
    fn shown_call<'a>(&self, call: &'a Encoded) -> Cow<'a, [u8]> {
        call.whole()
    }

    /// The head of an answer as `--once` shows it, likewise.
    fn shown_head<'a>(&self, answer: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        Cow::Borrowed(answer.parts.head)
    }

    /// A message of the answer to `call` that comes as messages, as `--once` shows it, likewise.
    fn shown_message<'a>(&self, _call: &Encoded, message: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        Cow::Borrowed(message.parts.body)
    }

    /// The body of the answer to `call` as `--once` shows it, likewise.
    fn shown_answer<'a>(&self, _call: &Encoded, answer: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        Cow::Borrowed(answer.parts.body)
    }
}

/// A call as a [`Caller`] encoded it.
#[derive(Debug, Default)]
pub struct Encoded {
    /// The message's bytes for [`Client::start`].
    pub bytes: Vec<u8>,
    /// The message's tail: a large body that calls of other users send as well ([`shared_body`]).
    pub tail: Option<Arc<[u8]>>,
    /// Whether it may be sent again when a connection dies before any part of its answer came.
    pub idempotent: bool,
    /// The message's hint for [`Client::start`].
    pub hint: u32,
    /// Its destination, if not the client's base.
    pub target: Option<Target>,
    /// Whether its library follows redirects and the like, for [`Caller::leads_on`].
    pub follows: bool,
}

impl Encoded {
    /// The message for [`Client::start`].
    #[inline]
    pub fn message(&self) -> Message<'_> {
        let tail = self.tail.as_ref().map(|of| Tail { of, from: 0, to: of.len() });
        Message { bytes: &self.bytes, tail, idempotent: self.idempotent, hint: self.hint, more: false }
    }

    /// How many bytes it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.tail.as_ref().map_or(0, |tail| tail.len())
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of its bytes.
    pub fn whole(&self) -> Cow<'_, [u8]> {
        match &self.tail {
            None => Cow::Borrowed(&self.bytes),
            Some(tail) => Cow::Owned([&self.bytes, &tail[..]].concat()),
        }
    }

    /// Copies the message of another call, without its destination.
    pub fn copy_message(&mut self, other: &Self) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&other.bytes);
        self.tail.clone_from(&other.tail);
        (self.idempotent, self.hint, self.follows) = (other.idempotent, other.hint, other.follows);
    }

    /// Adds a `traceparent` to a call whose bytes are a request of HTTP/1.1; false where it has one already
    /// ([`TraceIds::add_to_request`]).
    pub fn add_traceparent(&mut self, ids: &TraceIds) -> bool {
        let untraced = std::mem::take(&mut self.bytes);
        let is_added = ids.add_to_request(&untraced, &mut self.bytes);
        if !is_added {
            self.bytes = untraced;
        }
        is_added
    }

    /// Forgets the last call, and keeps its memory within bounds.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(16 * 1024);
        self.tail = None;
        self.idempotent = false;
        self.hint = 0;
        self.target = None;
        self.follows = false;
    }
}

/// A complete answer, as its connection's [`Client`] kept it.
#[derive(Debug, Clone, Copy)]
pub struct CompleteAnswer<'a> {
    /// The protocol's own status.
    pub status: u16,
    /// The parts that were kept.
    pub parts: AnswerParts<'a>,
}
