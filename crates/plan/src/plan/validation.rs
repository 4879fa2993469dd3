//! Plans that cannot be carried out, and why.

use super::{Load, PLAN_VERSION, Plan};
use crate::scenario::InjectionError;
use crate::secret::REDACTED;
use crate::setting::Setting;
use crate::target::{Url, UrlError};
use crate::threshold::{Guard, GuardAction, ThresholdError};
use crate::units::{ExactDuration, LONGEST_NS};
use crate::watch::{self, MOST_WATCHES, Watch};

/// A plan that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Another version wrote the plan.
    #[error("the plan has format version {got}, this brunt reads version {PLAN_VERSION}")]
    Version {
        /// The version found.
        got: u32,
    },
    /// A number is out of range.
    #[error("{setting} must be {expected}, not {got}")]
    Range {
        /// Which number.
        setting: Setting,
        /// The valid values.
        expected: String,
        /// The value.
        got: String,
    },
    /// No URL could name this target.
    #[error("the plan's target: {0}")]
    Target(UrlError),
    /// The plan was stored, and secrets are not stored.
    #[error("the plan's URL: a secret was left out of it when the plan was written; put it back")]
    Secrets,
    /// The plan was stored, and secrets are not stored.
    #[error(
        "the plan's script.args[{place}]: it was left out when the plan was written; put it back, or edit it to @NAME and \
         set NAME in the environment"
    )]
    Argument {
        /// The population's index, from 0.
        place: usize,
    },
    /// Two settings contradict each other.
    #[error("{one} and {other} cannot go together: {why}")]
    Conflict {
        /// One setting.
        one: Setting,
        /// The other.
        other: Setting,
        /// Why not.
        why: &'static str,
    },
    /// The steps of its scenarios' users are invalid.
    #[error(transparent)]
    Injection(#[from] InjectionError),
    /// A threshold names a figure that its script does not declare.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// A guard's window never fills within the run.
    #[error("the guard '{guard}' looks at more time than the run takes: it would never fire")]
    IdleGuard {
        /// The guard as written.
        guard: String,
    },
    /// Guards have no rate that they could lower.
    #[error("guards cannot back off: the run has no rate that they could lower")]
    NoRateToLower,
    /// A guard that backs off, and no guard.
    #[error("nothing would back off: there is no guard")]
    NoGuard,
    /// Watched figures have equal names, or there are too many.
    #[error("--watch: {0}")]
    Watch(String),
    /// Nothing ends the run.
    #[error("nothing ends this run: it has no duration, no number of requests and no profile with lengths")]
    Endless,
}

/// The most connections a plan may ask for.
pub const MOST_CONNECTIONS: u32 = 1_000_000;
/// The most calls in flight on one connection.
pub const MOST_PIPELINED: u32 = 1024;

impl Plan {
    /// Checks what can be checked without the protocol.
    ///
    /// # Errors
    /// Says which setting is wrong and what it may be.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.version != PLAN_VERSION {
            return Err(PlanError::Version { got: self.version });
        }
        range(Setting::Connections, 1, MOST_CONNECTIONS, self.connections.most())?;
        range(Setting::Workers, 1, self.connections.most().min(1024), self.workers)?;
        range(Setting::Pipeline, 1, MOST_PIPELINED, self.pipeline)?;
        self.validate_target()?;
        self.validate_times()?;
        if self.stop.requests == Some(0) {
            return Err(zero(Setting::Requests));
        }
        if self.connections.is_growing() && self.load == (Load::Closed {}) {
            return Err(PlanError::Conflict {
                one: Setting::Connections,
                other: Setting::Load,
                why: "connections grow with a rate; without one, give their number",
            });
        }
        if self.reconnect && self.pipeline > 1 {
            return Err(PlanError::Conflict {
                one: Setting::Reconnect,
                other: Setting::Pipeline,
                why: "a connection that carries one call cannot have several in flight",
            });
        }
        if self.transport.unix_socket.is_some() && !self.transport.source_ips.is_empty() {
            return Err(PlanError::Conflict {
                one: Setting::UnixSocket,
                other: Setting::SourceAddresses,
                why: "a Unix socket has no addresses",
            });
        }
        if self.transport.unix_socket.is_some() && self.transport.proxy.is_some() {
            return Err(PlanError::Conflict {
                one: Setting::UnixSocket,
                other: Setting::Proxy,
                why: "a proxy connects to hosts and ports",
            });
        }
        let own: Vec<_> = self.own_figures().collect();
        self.conditions().try_for_each(|threshold| threshold.check_own(&own))?;
        if self.watches.len() > MOST_WATCHES {
            return Err(PlanError::Watch(format!("at most {MOST_WATCHES} may be watched, not {}", self.watches.len())));
        }
        if let Some(name) = watch::repeated(&self.watches) {
            return Err(PlanError::Watch(format!(
                "two figures are called '{name}': give a name, such as --watch db=pid:1234"
            )));
        }
        let watched = self.watches.iter().flat_map(Watch::figures).map(|figure| figure.name).collect::<Vec<_>>();
        self.conditions().try_for_each(|threshold| threshold.check_watched(&watched))?;
        let longest_ns = self.duration_ns().map(|measured_ns| self.warmup_ns.saturating_add(measured_ns));
        let is_longer = |guard: &&Guard| longest_ns.is_some_and(|longest_ns| guard.window_ns() > longest_ns);
        if let Some(guard) = self.guards.iter().find(is_longer) {
            return Err(PlanError::IdleGuard { guard: guard.to_string() });
        }
        if self.guard_action == GuardAction::BackOff {
            if self.guards.is_empty() {
                return Err(PlanError::NoGuard);
            }
            if !matches!(self.load, Load::Open { .. }) || self.scenarios.is_some() || self.own_times {
                return Err(PlanError::NoRateToLower);
            }
        }
        if let Some(scenarios) = &self.scenarios {
            scenarios.validate()?;
        } else if matches!(self.load, Load::Replay(_)) {
            // Its log ends it.
        } else if self.duration_ns().is_none() && self.stop.requests.is_none() {
            return Err(PlanError::Endless);
        }
        Ok(())
    }

    fn validate_times(&self) -> Result<(), PlanError> {
        for (setting, ns, may_be_zero) in [
            (Setting::Duration, self.stop.duration_ns, false),
            (Setting::Warmup, Some(self.warmup_ns), true),
            (Setting::Timeout, Some(self.timeout_ns), false),
            (Setting::ConnectTimeout, Some(self.connect_timeout_ns), false),
            (Setting::Drain, Some(self.drain_ns), true),
            (Setting::SetupTimeout, self.scenarios.as_ref().and_then(|all| all.setup_timeout_ns), false),
            (Setting::TeardownTimeout, self.scenarios.as_ref().and_then(|all| all.teardown_timeout_ns), false),
            (Setting::Wait, Some(self.transport.wait_ns), true),
        ] {
            match ns {
                Some(0) if !may_be_zero => return Err(zero(setting)),
                Some(ns) if ns > LONGEST_NS => {
                    let (expected, got) = ("at most 720h".into(), ExactDuration(ns).to_string());
                    return Err(PlanError::Range { setting, expected, got });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// However the plan was made, its target must be one that a URL could name.
    fn validate_target(&self) -> Result<(), PlanError> {
        let base_url = self.scenarios.as_ref().and_then(|scenarios| scenarios.base_url.as_deref());
        if self.target.lacks_secrets() || base_url.is_some_and(|url| url.contains(REDACTED)) {
            return Err(PlanError::Secrets);
        }
        let args = self.script.iter().flat_map(|script| &script.args);
        if let Some(place) = args.into_iter().position(|argument| argument.as_written().contains(REDACTED)) {
            return Err(PlanError::Argument { place });
        }
        let url = self.target.whole_url();
        let read = Url::parse(&url).map_err(PlanError::Target)?.target;
        if read == self.target {
            return Ok(());
        }
        let problem = format!("expected it in the parts of '{}'", read.url());
        Err(PlanError::Target(UrlError { url, column: 1, problem }))
    }
}

fn range(setting: Setting, least: u32, most: u32, got: u32) -> Result<(), PlanError> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    Err(PlanError::Range { setting, expected: format!("between {least} and {most}"), got: got.to_string() })
}

fn zero(setting: Setting) -> PlanError {
    PlanError::Range { setting, expected: "above 0".into(), got: "0".into() }
}
