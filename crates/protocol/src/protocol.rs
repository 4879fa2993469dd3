//! A protocol: its schemes, its flags, and what it prepares for a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_plan::replay::LogReplay as Trace;
use brunt_plan::scenario::DeclaredFigure;
use brunt_plan::share::Share;
use brunt_plan::target::Target;
use brunt_record::call_timeline::CallTimeline;
use brunt_record::figures::OwnKind;
use brunt_record::outcome::OkStatus;

use crate::client::{Client, Direction};
use crate::flags::{Flag, FlagValues, shown_options};
use crate::meter::Meter;
use crate::options::OptionsError;
use crate::replay::WorkerReplay;
use crate::scenario::Dialect;
use crate::source::RequestSource;
use crate::traced::Tracing;

/// What a scheme means to the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// In lower case, as in `http://`.
    pub name: &'static str,
    /// The port where the URL names none; 0 if it must name one.
    pub default_port: u16,
    /// Whether TLS lies under the protocol.
    pub tls: bool,
}

/// A protocol that a plan's scheme may name: its schemes, its flags, and what it makes of them.
///
/// One value of it serves the whole program. It keeps no state of a run: [`options`](Self::options) makes plain data of flags, which
/// may be stored or sent to another machine, and [`prepare`](Self::prepare) makes of that data, there, what a run needs.
///
/// # Contract
///
/// - [`options`](Self::options) and [`prepare`](Self::prepare) do no I/O. Files that flags name are given by content.
/// - [`prepare`](Self::prepare) trusts nothing: a plan may come from a file, so every limit is checked again.
/// - Errors name what is wrong and what was expected, in the words of the flag.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use brunt_protocol::flags::{Flag, FlagValues, ValueKind};
/// use brunt_protocol::plan::plan::{Plan, ProtocolOptions};
/// use brunt_protocol::source::{Message, RepeatingSource, RequestSource};
/// use brunt_protocol::{Client, Malformed, OptionsError, Prepared, Progress, Protocol, Registry, Scheme, Started};
/// use brunt_protocol::{read_options, write_options};
///
/// /// Asks `echo://` servers for a text.
/// struct Echo;
///
/// const FLAGS: [Flag; 1] = [Flag::new("text", ValueKind::Text("TEXT"), "The text that is sent [default: hi]")];
///
/// impl Protocol for Echo {
///     fn name(&self) -> &'static str {
///         "echo"
///     }
///
///     fn schemes(&self) -> &[Scheme] {
///         &[Scheme { name: "echo", default_port: 7, tls: false }]
///     }
///
///     fn flags(&self) -> &[Flag] {
///         &FLAGS
///     }
///
///     fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
///         given.refuse_user("echo")?;
///         write_options(&given.text("text").unwrap_or("hi"))
///     }
///
///     fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
///         let text: String = read_options(plan, self.name())?;
///         if text.contains('\n') {
///             return Err(OptionsError("the text must be one line".to_owned()));
///         }
///         Ok(Arc::new(Line(RepeatingSource::new(format!("{text}\n").into_bytes(), true))))
///     }
/// }
///
/// struct Line(RepeatingSource);
///
/// impl Prepared for Line {
///     fn client(&self, _keep: bool) -> Box<dyn Client> {
///         Box::new(Lines::default())
///     }
///
///     fn user(&self) -> Box<dyn RequestSource> {
///         Box::new(self.0.clone())
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
/// let mut registry = Registry::default();
/// registry.register(Echo);
/// let (protocol, scheme) = registry.named("echo")?;
/// let options = protocol.options(&FlagValues::default())?;
/// # let target = brunt_protocol::plan::target::Url::parse("echo://localhost/")?.target;
/// let plan = Plan::of_calls(target, options);
/// let prepared = protocol.prepare(&plan)?;
/// assert_eq!((scheme.default_port, prepared.user().request(0).map(|request| request.bytes.to_vec())), (7, Ok(b"hi\n".to_vec())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Protocol: Send + Sync {
    /// Its name in the help, such as `HTTP`.
    fn name(&self) -> &'static str;

    /// Its schemes.
    fn schemes(&self) -> &[Scheme];

    /// The statuses that are a success unless the plan says otherwise.
    fn ok_status(&self) -> OkStatus {
        OkStatus::default()
    }

    /// How long its calls may take unless the plan says otherwise, in nanoseconds; `None` for what is usual.
    fn usual_timeout_ns(&self) -> Option<u64> {
        None
    }

    /// The flags for its options.
    fn flags(&self) -> &[Flag] {
        &[]
    }

    /// Whether calls made by these flags share a connection, each on a stream of its own, so that any number may be in flight.
    fn multiplexes(&self, _given: &FlagValues) -> bool {
        false
    }

    /// The plan's `protocol` part for these flags. Files are in it by content.
    ///
    /// # Errors
    /// Says which flag is wrong and what was expected.
    fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError>;

    /// The options for display: by default without the values of fields that share their names with secret flags, or
    /// whose names suggest a secret. Called with options from anywhere, also from a file, valid or not.
    ///
    /// Values of secret flags are left out wherever they stand. So a protocol whose options have other names than its
    /// flags needs this for plans from files only.
    fn shown(&self, options: &serde_json::Value) -> serde_json::Value {
        shown_options(options, self.flags())
    }

    /// Reads and validates the plan's `protocol` part, and prepares what can be prepared before the load begins.
    ///
    /// # Errors
    /// Says what in the plan is wrong (file, line, option) and what to do.
    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError>;

    /// When calls made by these flags are due, where the protocol decides it ([`Prepared::own_calls`]).
    ///
    /// # Errors
    /// Says which flag or file is wrong.
    fn own_times(&self, _given: &FlagValues) -> Result<OwnTimes, OptionsError> {
        Ok(OwnTimes::None)
    }

    /// The figures that [`Prepared::meter`] measures in a run by these options, by which thresholds may name them.
    fn own_figures(&self, _options: &ProtocolOptions) -> Vec<DeclaredFigure> {
        Vec::new()
    }

    /// Checks objectives of a call, such as `ttft<500ms,tpot<50ms`, for a threshold `within(ttft<500ms,tpot<50ms)>90%`. Where they are known,
    /// [`Prepared::meter`] records a rate by the name `within(ttft<500ms,tpot<50ms)`: of the calls that were due, those that met all of them.
    ///
    /// # Errors
    /// Says which objectives it measures, if any.
    fn check_objectives(&self, _limits: &str) -> Result<(), OptionsError> {
        Err(OptionsError(format!("{} measures no objectives of single calls", self.name())))
    }

    /// Its library in scenarios, if it has words of its own there. Otherwise it is `brunt.SCHEME`, by its first scheme,
    /// and its options and calls have the names of its flags: `brunt.memcached{ address = … }:call{ item = "a" }`.
    fn dialect(&self) -> Option<Box<dyn Dialect>> {
        None
    }
}

/// Whether a protocol says by itself when calls are due.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnTimes {
    /// It does not: the load does.
    None,
    /// Calls come in conversations: a rate is one of conversations, connections are conversations at once.
    Conversations,
    /// Calls, or the first turns of conversations, are due at the times of a file, unless the load has a rate or a number of connections.
    Trace {
        /// The file and its speed.
        trace: Box<Trace>,
        /// Whether they begin conversations.
        has_turns: bool,
    },
}

/// A protocol made ready for one plan, shared by the workers' threads.
///
/// It is made before any connection; whatever can be computed once belongs here, so that no call pays for it.
///
/// # Example
///
/// ```
/// use brunt_protocol::source::{Message, RepeatingSource, RequestSource};
/// use brunt_protocol::{Client, Malformed, Prepared, Progress, Started};
///
/// /// Calls that are all alike, each answered by a line.
/// struct Ping(RepeatingSource);
///
/// impl Prepared for Ping {
///     fn client(&self, _keep: bool) -> Box<dyn Client> {
///         Box::new(Lines::default())
///     }
///
///     fn user(&self) -> Box<dyn RequestSource> {
///         Box::new(self.0.clone())
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
/// let ping = Ping(RepeatingSource::new(b"PING\n".as_slice(), true));
/// let (mut client, mut user) = (ping.client(false), ping.user());
/// let mut out = Vec::new();
/// assert_eq!(user.request(0).map(|call| client.start(&call, &mut out)), Ok(Started::Awaited));
/// assert_eq!(out, b"PING\n");
/// ```
pub trait Prepared: Send + Sync {
    /// The state for one connection. It lives from the connection's beginning to its end. With `keep`, it keeps each
    /// answer for [`Client::parts`].
    fn client(&self, keep: bool) -> Box<dyn Client>;

    /// The state for the connection of a flood with this number, where connections differ: by default all are alike.
    /// Numbers begin at 0, and no two connections of a run have the same, over all its workers and machines.
    fn client_of(&self, _number: u64, keep: bool) -> Box<dyn Client> {
        self.client(keep)
    }

    /// The source of calls on one worker, unless a script is it.
    fn user(&self) -> Box<dyn RequestSource>;

    /// The calls of one worker, where the protocol says when they are due ([`Protocol::own_times`]): those of a trace, or turns of
    /// conversations. `None` where the plan's load makes the calls of [`user`](Self::user).
    fn own_calls(&self, _share: Share) -> Option<Box<dyn WorkerReplay>> {
        None
    }

    /// What measures the calls of one worker beside what every call has, if the protocol has figures of its own. Its clients keep
    /// what it reads.
    fn meter(&self) -> Option<Box<dyn Meter>> {
        None
    }

    /// Where calls go, by the numbers of [`RequestSource::target`]; empty where all go to the plan's target. Their schemes are this
    /// protocol's.
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }

    /// Whether all calls may go as early data of TLS (0-RTT), which somebody on the way can send again: requests that change nothing.
    fn is_safe(&self) -> bool {
        false
    }

    /// The names to offer in the TLS handshake (ALPN, RFC 7301), by preference. Where they are spoken over QUIC ([`is_over_quic`]), connections
    /// are those of QUIC, and clients read and write records of streams instead of a stream of bytes.
    fn alpn(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Single calls of the run so far, with the times of the parts of their answers, where [`Prepared::meter`] writes some down.
    fn timelines(&self) -> Vec<CallTimeline> {
        Vec::new()
    }

    /// Names of statuses that say more than their numbers.
    fn status_names(&self) -> BTreeMap<u16, String> {
        BTreeMap::new()
    }

    /// Which calls of a script are traced, whose requests the script writes ([`Plan::script`]). Where there is no script, the user traces.
    fn tracing(&self) -> Option<Tracing> {
        None
    }

    /// Where the first answer that was a redirect led, as it said, if one was.
    fn redirected_to(&self) -> Option<String> {
        None
    }

    /// A narrator of one connection for `--once`, where the meaning of bytes depends on earlier ones. Asked once for
    /// each connection.
    fn narrator(&self) -> Option<Box<dyn Narrator>> {
        None
    }

    /// Bytes of a call or of its answer in words, for `--once`, where people cannot read them as they are: frames,
    /// arguments by their names. They may be cut short.
    fn meaning(&self, _direction: Direction, _bytes: &[u8]) -> Option<String> {
        None
    }
}

/// Whether these names are those of protocols over QUIC, as IANA's registry of names for ALPN has them.
pub fn is_over_quic(alpn: &[Vec<u8>]) -> bool {
    !alpn.is_empty() && alpn.iter().all(|name| matches!(name.as_slice(), b"h3" | b"doq"))
}

/// The figure of the round-trip times of connections over QUIC: the smoothed one of each, once a second and at its end.
pub const RTT: &str = "quic_rtt";
/// The unit of [`RTT`].
pub const RTT_UNIT: &str = "ms";

/// The figures that the engine records of connections over QUIC, for [`Protocol::own_figures`] of a protocol that is spoken over it.
pub fn quic_figures() -> Vec<DeclaredFigure> {
    vec![DeclaredFigure { drawn: true, ..DeclaredFigure::new(RTT, OwnKind::Trend, RTT_UNIT) }]
}

/// A part of what a connection sends or receives, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Narration {
    /// A title in the first line; then header fields, `name: value` in a line each.
    pub head: String,
    /// Its data.
    pub body: Vec<u8>,
}

/// Puts the bytes of one connection into words.
///
/// It is given all of them, in their order, those of the opening exchange included. What it keeps has a bound.
pub trait Narrator: Send {
    /// Takes the next bytes of one direction and returns what they complete; `None` if people can read the bytes as
    /// they are.
    fn narrate(&mut self, direction: Direction, bytes: &[u8]) -> Option<Vec<Narration>>;
}

/// The plan's `protocol` part for these flags. Its form for display has nothing in it that a secret flag gave.
///
/// # Errors
/// As [`Protocol::options`].
pub fn options_of(protocol: &dyn Protocol, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
    let made = protocol.options(given)?;
    let mut shown = protocol.shown(made.shown());
    for (secret, instead) in given.secrets(protocol.flags()) {
        replace(&mut shown, &secret, &instead);
    }
    Ok(made.with_shown(shown))
}

/// The same for options from a file or a store.
pub fn redact_loaded(protocol: &dyn Protocol, options: &ProtocolOptions) -> ProtocolOptions {
    options.clone().with_shown(protocol.shown(options.reveal()))
}

fn replace(value: &mut serde_json::Value, secret: &str, instead: &str) {
    match value {
        serde_json::Value::String(text) if text.contains(secret) && text != instead => {
            *text = text.replace(secret, instead);
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(|one| replace(one, secret, instead)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|one| replace(one, secret, instead)),
        _ => {}
    }
}
