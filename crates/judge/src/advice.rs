//! What to do about a finding, as values: their words stand here and nowhere else.

use std::fmt;

use serde::{Serialize, Serializer};

/// Calls/s, shown with a digit behind the point where there are few.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallRate(pub f64);

impl fmt::Display for CallRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = usize::from(self.0 < 9.95);
        write!(f, "{:.digits$}", self.0)
    }
}

/// Declares the advices with their words, so that none can be without them; `{field}` shows a field.
macro_rules! advices {
    ($($(#[$doc:meta])* $name:ident $({ $($(#[$field_doc:meta])* $field:ident: $type:ty),+ })? => $words:literal,)+) => {
        /// What to do about a finding; shown by its words.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Advice {
            $($(#[$doc])* $name $({ $($(#[$field_doc])* $field: $type),+ })?,)+
            /// An advice that `brunt doctor` helps to follow.
            SeeDoctor(Box<Advice>),
        }

        /// The words of every advice, with the names of fields in braces where they are shown.
        pub const WORDS: &[&str] = &[$($words,)+ "brunt doctor"];

        impl fmt::Display for Advice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name $({ $($field),+ })? => write!(f, $words),)+
                    Self::SeeDoctor(advice) => write!(f, "{advice}; see brunt doctor"),
                }
            }
        }
    };
}

advices! {
    /// Answers of another kind came.
    CheckBodies => "see whether they are what you asked for: --expect-body TEXT counts others as failed",
    /// The load was more than the target takes.
    FindCapacity => "what it takes for good: brunt find",
    /// The target limits the rate.
    AskForLess {
        /// What it let through.
        rate: CallRate
    } => "ask for less (-r {rate}), or raise the target's limit",
    /// Answers come in two kinds.
    CompareModes => "look for what the slow ones share: one of several servers, a cache that misses",
    /// Answers take as long as a delayed acknowledgement.
    SetNoDelay => "the target may write an answer in two pieces, and hold the second back until the first is acknowledged (Nagle): set TCP_NODELAY there, or write once",
    /// Failures take less time than successes.
    TurnedAway => "the target may turn them away before it does their work",
    /// Failures take more time than successes.
    LookAtWait => "look at what they wait for: a timeout, brunt's own (--timeout) or one behind the target, or a retry",
    /// Connections were made at the second attempt.
    RaiseBacklog => "the target's listen queue was full, or packets were lost: raise its backlog (net.core.somaxconn, and the backlog of its listen call)",
    /// One of several addresses does not answer.
    CheckAddresses => "see that each of the target's addresses is up, or aim at one (--connect-to)",
    /// brunt closed connections for what came on them.
    LookBehindAnswers => "--once shows what the target sends behind its answers",
    /// The target closes connections.
    KeepAlive => "let it keep them open (keep-alive, keepalive_requests), or measure new connections on purpose (--reconnect)",
    /// Agents were lost.
    LeaveOutAgent {
        /// The first of them.
        name: String
    } => "leave them out of the figures (brunt show --without {name}), or run again",
    /// No call succeeded, and what is wrong with them shows in one.
    LookAtCall => "look at a call: brunt --once",
    /// As [`LookAtCall`](Self::LookAtCall), where answers came.
    LookAtAnswer => "look at an answer: brunt --once",
    /// Answers that were to come as messages did not.
    CheckFraming => "look at an answer with brunt --once: it may be compressed, no stream, or framed otherwise (--messages)",
    /// Redirects, to several places.
    FollowRedirects => "aim at where they lead: brunt --once shows it",
    /// Redirects to one place.
    UseThatUrl => "use that URL: brunt follows no redirects",
    /// Status 400.
    CheckRequest => "look at an answer with brunt --once: a malformed request, or http:// to a port that speaks TLS",
    /// Status 401.
    GiveCredentials => "give credentials: --basic USER:PASSWORD, or -H 'Authorization: …'",
    /// Status 403.
    CheckCredentials => "check credentials and headers: the target understands these requests and refuses them",
    /// Status 404 or 410.
    CheckPath => "check the URL's path",
    /// Status 405.
    CheckMethod => "check the method (-m)",
    /// Status 407.
    TargetIsProxy => "the target is a proxy that wants credentials",
    /// Status 413.
    SmallerBody => "send a smaller body",
    /// Status 415.
    CheckBodyType => "check the body's type: -H 'Content-Type: …', or --json",
    /// Status 421.
    CheckHost => "check the URL's host: the target does not answer for it",
    /// Status 426 or 505.
    CheckVersion => "check the protocol: brunt speaks HTTP/1.1 unless --http says otherwise",
    /// Status 429.
    TargetLimitsRate => "ask for less (-r): the target limits the rate",
    /// Status 502 or 504.
    LookBehindProxy => "a proxy's own server fails or is slow: look behind the proxy",
    /// Status 503.
    SeeTargetsLogs => "the server, or a proxy before it, refuses work: see its logs",
    /// Calls were cut off at the end.
    WarmUp => "begin with a warm-up as long as calls take (-w), or measure for longer (-d)",
    /// Too few connections for the rate.
    RaiseConnections {
        /// About as many as it takes.
        needed: u64
    } => "raise -c to about {needed}, or leave it out: a rate opens as many as it takes",
    /// As many connections as brunt opens by itself were too few.
    GiveConnections => "give a number with -c, and more descriptors (ulimit -Hn) if it takes them",
    /// Enough connections on average, and too few for a while.
    MoreConnections => "they would do on average, so the target was slow for a while: more of them (-c) would have asked it in time",
    /// Calls waited for a connection that users share.
    RaisePool => "raise pool of its client, or leave it out: each user then has connections of its own",
    /// Users were not admitted.
    RaiseMostAlive => "raise most_alive, or lower the rate",
    /// A feeder had no more rows.
    MoreRows => "give more rows, or let them begin anew by :circular()",
    /// Workers used their CPUs all the time.
    MoreCores => "give brunt more cores (-t), or let a second machine help; to measure latency, ask for less (-r)",
    /// Other programs used the workers' CPUs.
    KeepOffCores => "give brunt cores of its own, without other work or the target (taskset); of several threads, use fewer (-t)",
    /// Nothing that brunt knows of kept it.
    QuieterMachine => "brunt had CPU to spare, so the machine held it up (other guests, power saving, a pause): run again, or on a quieter machine",
    /// No local ports were left.
    MorePorts => "connect from more addresses (--source-ip A-B), keep connections (no --reconnect), or widen net.ipv4.ip_local_port_range",
    /// No file descriptors were left.
    MoreDescriptors => "raise the hard limit (ulimit -Hn), or lower -c",
    /// A scenario took the workers' time.
    LighterScenario => "do less between calls: read of answers only what is needed, make at the top of the script what can be made once; or give it more threads on more cores (-t)",
    /// A wrk script's hooks took the workers' time.
    LighterHooks => "do less in request() and response(): make requests in init(), leave out parameters of response() that it does not use; or give it more threads on more cores (-t)",
    /// Many users came in one moment.
    SpreadUsers => "users who come in one moment (brunt.at_once) make their first calls one after the other: let them come over some time (brunt.ramp), give brunt more cores (-t), or keep other work off them",
    /// A worker had more calls to send than it can.
    FewerCallsEach => "use fewer calls a second for each worker (-t), on more cores",
    /// Connections made in a burst kept the workers.
    ConnectSlower {
        /// Connections of the burst.
        made: u64
    } => "{made} connections made at once kept brunt busy: give brunt more cores (-t)",
    /// As [`ConnectSlower`](Self::ConnectSlower), where they can be there before the load.
    ConnectEarlier {
        /// Connections of the burst.
        made: u64,
        /// The most that were open.
        open: u64
    } => "{made} connections made at once kept brunt busy: open them before the load (-c {open}), or give brunt more cores (-t)",
}

impl Advice {
    /// The likely mistake in requests that all get this answer (RFC 9110 §15).
    pub(crate) const fn on_status(status: u16) -> Self {
        match status {
            300..=399 => Self::FollowRedirects,
            400 => Self::CheckRequest,
            401 => Self::GiveCredentials,
            403 => Self::CheckCredentials,
            404 | 410 => Self::CheckPath,
            405 => Self::CheckMethod,
            407 => Self::TargetIsProxy,
            413 => Self::SmallerBody,
            415 => Self::CheckBodyType,
            421 => Self::CheckHost,
            426 | 505 => Self::CheckVersion,
            429 => Self::TargetLimitsRate,
            502 | 504 => Self::LookBehindProxy,
            503 => Self::SeeTargetsLogs,
            _ => Self::LookAtAnswer,
        }
    }

    /// Whether a single call that is shown (`--once`) is what it asks for.
    pub const fn asks_for_one_call(&self) -> bool {
        matches!(
            self,
            Self::LookAtCall
                | Self::LookAtAnswer
                | Self::LookBehindAnswers
                | Self::CheckFraming
                | Self::CheckRequest
                | Self::FollowRedirects
        )
    }
}

/// As its words.
impl Serialize for Advice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Advice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Advice".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}
