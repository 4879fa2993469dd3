//! Loading of scripts: what a language is told beside the files, and what it makes of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use brunt_protocol::discovery::DiscoveryReply;
use brunt_protocol::plan::plan::{ProtocolOptions, Sandbox};
use brunt_protocol::plan::scenario::Scenarios;
use brunt_protocol::plan::secret::Template;
use brunt_protocol::plan::target::Target;
use brunt_protocol::plan::threshold::Threshold;

use crate::{AssignedLocal, UnsetGlobal};

/// A kind of client in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientKind {
    /// The function of the module that makes it: `brunt.http`.
    pub name: String,
    /// Whether some of its calls can have a `traceparent`.
    pub traces: bool,
}

/// The result of loading a script.
#[derive(Debug)]
pub struct Loaded {
    /// The script with its files, and the injections of its users.
    pub scenarios: Scenarios,
    /// The thresholds that it sets.
    pub thresholds: Vec<Threshold>,
    /// The base URL of the first client that has one.
    pub target: Option<Target>,
    /// The kinds of its clients, each once, in the order in which the script makes them.
    pub clients: Vec<ClientKind>,
    /// The names of its scenarios, in their order.
    pub names: Vec<String>,
    /// The locals at its top that its scenarios assign, or whose fields they assign: the users of a thread share them.
    pub assigned_locals: Vec<AssignedLocal>,
    /// The globals that it reads and nothing sets.
    pub unset_globals: Vec<UnsetGlobal>,
    /// What it judges by conditions of its own, in place of brunt's rules.
    pub own_rules: OwnRules,
    /// Whether it does without checks of servers' certificates.
    pub is_insecure: bool,
    /// What of it is not carried out, in words.
    pub notes: Vec<String>,
}

/// Rules of brunt's that a script sets aside, since it has conditions of its own for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnRules {
    /// How many calls may fail.
    pub errors: bool,
    /// How much less than was asked may be made.
    pub load: bool,
}

/// Asks the target at the first address, in a run whose own target is the second, as
/// [`Inquiry`](brunt_protocol::discovery::Inquiry) says; the error says why there is no answer.
pub type AskAt = dyn Fn(&Target, &Target, &ProtocolOptions) -> Result<DiscoveryReply, String> + Send + Sync;

/// Asks targets on behalf of clients while a script is loaded; the default asks nobody.
#[derive(Clone, Default)]
pub struct Asking(Option<Arc<AskAt>>);

impl Asking {
    /// Asks by this function.
    pub fn by(ask: Arc<AskAt>) -> Self {
        Self(Some(ask))
    }

    /// What asks; `None` where nobody does.
    pub fn asks(&self) -> Option<&AskAt> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asking").field(&self.0.is_some()).finish()
    }
}

/// Options for loading a script, besides its files.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The values that `brunt.env` returns.
    pub env: BTreeMap<String, Template>,
    /// The URL that replaces the base of the first client.
    pub base_url: Option<String>,
    /// Injections in place of the script's: the scenario, and the steps as written (`rate(50, 1m)`).
    pub injections: Vec<(String, String)>,
    /// The scenarios whose users come; all where it is empty.
    pub only: Vec<String>,
    /// The script's permissions.
    pub sandbox: Sandbox,
    /// Asks targets for the data without which clients cannot be made.
    pub asking: Asking,
}
