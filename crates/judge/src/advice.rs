//! What to do about a finding, as values. `report` has their words.

use std::fmt;

/// Calls/s, shown with a digit behind the point where there are few.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallRate(pub f64);

impl fmt::Display for CallRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = usize::from(self.0 < 9.95);
        write!(f, "{:.digits$}", self.0)
    }
}

/// What to do about a finding.
#[derive(Debug, Clone, PartialEq)]
pub enum Advice {
    /// Answers of another kind came.
    CheckBodies,
    /// The load was more than the target takes.
    FindCapacity,
    /// The target limits the rate.
    AskForLess {
        /// What it let through.
        rate: CallRate,
    },
    /// Answers come in two kinds.
    CompareModes,
    /// Answers take as long as a delayed acknowledgement.
    SetNoDelay,
    /// Failures take less time than successes.
    TurnedAway,
    /// Failures take more time than successes.
    LookAtWait,
    /// Connections were made at the second attempt.
    RaiseBacklog,
    /// One of several addresses does not answer.
    CheckAddresses,
    /// brunt closed connections for what came on them.
    LookBehindAnswers,
    /// The target closes connections.
    KeepAlive,
    /// Agents were lost.
    LeaveOutAgent {
        /// The first of them.
        name: String,
    },
    /// No call succeeded, and what is wrong with them shows in one.
    LookAtCall,
    /// No call was due, since no user of the script made one.
    SeeCalls,
    /// No call was due, since the run ended before its measured part.
    LastLonger,
    /// As [`LookAtCall`](Self::LookAtCall), where answers came.
    LookAtAnswer,
    /// Answers that were to come as messages did not.
    CheckFraming,
    /// Redirects, to several places.
    FollowRedirects,
    /// Redirects to one place.
    UseThatUrl,
    /// Status 400.
    CheckRequest,
    /// Status 401.
    GiveCredentials,
    /// Status 403.
    CheckCredentials,
    /// Status 404 or 410.
    CheckPath,
    /// Status 405.
    CheckMethod,
    /// Status 407.
    TargetIsProxy,
    /// Status 413.
    SmallerBody,
    /// Status 415.
    CheckBodyType,
    /// Status 421.
    CheckHost,
    /// Status 426 or 505.
    CheckVersion,
    /// Status 429.
    TargetLimitsRate,
    /// Status 502 or 504.
    LookBehindProxy,
    /// Status 503.
    SeeTargetsLogs,
    /// Calls were cut off at the end.
    WarmUp,
    /// The warm-up was shorter than calls take.
    LongerWarmUp {
        /// About as long as they take, in seconds.
        seconds: u64,
    },
    /// Too few connections for the rate.
    RaiseConnections {
        /// About as many as it takes.
        needed: u64,
    },
    /// As many connections as brunt opens by itself were too few.
    GiveConnections,
    /// Enough connections on average, and too few for a while.
    MoreConnections,
    /// Conversations had every connection, and others waited.
    MoreConversations,
    /// Calls waited for a connection that users share.
    RaisePool,
    /// Users were not admitted.
    RaiseMostAlive,
    /// A feeder had no more rows.
    MoreRows,
    /// Workers used their CPUs all the time.
    MoreCores,
    /// Other programs used the workers' CPUs.
    KeepOffCores,
    /// Nothing that brunt knows of kept it.
    QuieterMachine,
    /// No local ports were left.
    MorePorts,
    /// No file descriptors were left.
    MoreDescriptors,
    /// The buffers of sockets were full, and smaller than wanted.
    LargerBuffers,
    /// The buffers of sockets were full, and as large as wanted.
    LessAtOnce,
    /// A scenario took the workers' time.
    LighterScenario,
    /// A wrk script's hooks took the workers' time.
    LighterHooks,
    /// Many users came in one moment.
    SpreadUsers,
    /// A worker had more calls to send than it can.
    FewerCallsEach,
    /// Connections made in a burst kept the workers.
    ConnectSlower {
        /// Connections of the burst.
        made: u64,
    },
    /// As [`ConnectSlower`](Self::ConnectSlower), where they can be there before the load.
    ConnectEarlier {
        /// Connections of the burst.
        made: u64,
        /// The most that were open.
        open: u64,
    },
    /// An advice that `brunt doctor` helps to follow.
    SeeDoctor(Box<Advice>),
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
