//! Why a plan could not be carried out at all.

use std::io;

use brunt_plan::plan::PlanError;
use brunt_plan::setting::Setting;
use brunt_plan::units::{ExactDuration, counted};
use brunt_protocol::{OptionsError, UnknownScheme};
use brunt_record::redaction::Secrets;
use brunt_script::ScriptError;

use crate::transport::pacing::NoSpareCpu;
use crate::transport::route::RouteError;

/// Why a plan could not be carried out at all.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Something in the plan is wrong.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan's protocol part is wrong.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// No way leads to the target, or to a host that a script calls.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// No protocol has this scheme.
    #[error(transparent)]
    Scheme(#[from] UnknownScheme),
    /// The URL names no port, and its scheme has none of its own.
    #[error(
        "the URL names no port, and {scheme}:// has none of its own: write it behind the host, such as {scheme}://localhost:7"
    )]
    NoPort {
        /// The target's scheme.
        scheme: &'static str,
    },
    /// More connections than this process may have.
    #[error("{needed} file descriptors are needed for {}, and the limit is {limit}", counted(u64::from(*connections), "connection"))]
    Descriptors {
        /// The connections asked for.
        connections: u32,
        /// Descriptors that takes.
        needed: u64,
        /// The descriptors that the process may have.
        limit: u64,
    },
    /// Workers that wait awake would leave no CPU to anything else.
    #[error(transparent)]
    NoSpareCpu(#[from] NoSpareCpu),
    /// The operating system refused something that a run cannot do without.
    #[error("cannot {what}")]
    System {
        /// The resource that was refused.
        what: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// The protocol does not take calls of scripts.
    #[error(
        "a script makes HTTP/1.1 requests, and {scheme}:// takes none: leave the script out, or aim at http:// or https://"
    )]
    Unscriptable {
        /// The target's scheme.
        scheme: &'static str,
    },
    /// The plan's script is wrong, or failed before the load began.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The script's setup or teardown did not end within its time.
    #[error("{what} took longer than {}, and was cut off", ExactDuration(*limit_ns))]
    TookTooLong {
        /// The function, with its place in the script.
        what: String,
        /// How long it may take, in nanoseconds.
        limit_ns: u64,
        /// The setting that says so.
        setting: Setting,
    },
    /// The plan is a replay, and this machine has no log for it.
    #[error("the plan replays a log, which does not travel with it: give both to brunt replay")]
    NoLog,
    /// A defect of brunt.
    #[error("a worker came to an unplanned end; this is a defect of brunt, please report it")]
    Defect,
}

impl EngineError {
    /// The error without secrets, which the words of a script or of options may repeat.
    #[must_use]
    pub(crate) fn without(self, secrets: &Secrets) -> Self {
        match self {
            Self::Script(error) => Self::Script(error.without(secrets)),
            Self::Options(OptionsError(problem)) => Self::Options(OptionsError(secrets.hide(&problem).into_owned())),
            other => other,
        }
    }
}
