//! Wire form of a plan: everything another machine needs to carry it out.
//!
//! A plan has two written forms. The *shown* form is its `Serialize`: files, reports and kept runs have it, and it has
//! no secrets. The *wire* form is the shown one and everything that it leaves out. It is bytes, made by
//! [`Plan::to_wire`] and read by [`Plan::from_wire`], and neither `Debug` nor `Display` reaches them.
//!
//! | bytes | what |
//! | --- | --- |
//! | 10 | `brunt-plan` |
//! | 2 | the form's version, big-endian: [`WIRE_VERSION`] |
//! | 32 | SHA-256 (FIPS 180-4) of all that follows |
//! | the rest | JSON: `{"plan": the shown form, "hidden": what it leaves out}`; options without secrets, which may be large, stand there once |

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::environment::Environment;
use crate::plan::{Plan, ProtocolOptions, Sandbox};
use crate::secret::Template;

/// The version of the wire form that this brunt reads and writes. The plan in it has a version of its own,
/// [`PLAN_VERSION`](crate::plan::PLAN_VERSION).
pub const WIRE_VERSION: u16 = 4;

const MAGIC: &[u8; 10] = b"brunt-plan";
const HASH_BYTES: usize = 32;

/// A plan that cannot be put on the wire, or taken from it. No message includes content of the plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The plan has a value that JSON cannot represent.
    #[error("the plan cannot be sent: the path of its Unix socket is not UTF-8; rename the socket")]
    Unwritable,
    /// The bytes do not begin as a plan does.
    #[error("expected a plan in wire form, got {length} bytes that are something else")]
    NotAPlan {
        /// How many bytes there are.
        length: usize,
    },
    /// Another version wrote it.
    #[error(
        "the plan has wire format version {got}, this brunt reads version {WIRE_VERSION}: run one version everywhere"
    )]
    Version {
        /// The version found.
        got: u16,
    },
    /// The bytes differ from those that were sent.
    #[error("the plan arrived damaged: its hash is {got}, and was {expected} when it was sent; send it again")]
    Damaged {
        /// The hash that was sent.
        expected: Hash,
        /// That of the bytes that arrived.
        got: Hash,
    },
    /// The bytes are those that were sent, but this brunt does not understand them.
    #[error("the plan cannot be read at column {column} of its {length} bytes: run one version everywhere")]
    Unreadable {
        /// Where reading stopped, from 1.
        column: usize,
        /// How long the plan is.
        length: usize,
    },
}

/// The SHA-256 of a plan in wire form: the same for the same plan, wherever it is made.
///
/// It covers secrets: someone who knows the rest of a plan could guess a short secret by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; HASH_BYTES]);

impl Hash {
    fn digest(payload: &[u8]) -> Self {
        Self(Sha256::digest(payload).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A plan in wire form. Send [`Wire::bytes`] only to receivers that may have the plan's secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Wire {
    bytes: Vec<u8>,
    hash: Hash,
}

impl Wire {
    /// All bytes, for sending.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash, which tells this plan from others.
    pub fn hash(&self) -> Hash {
        self.hash
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload<'a, P> {
    plan: P,
    hidden: Hidden<'a>,
}

/// The values that the shown form of a plan leaves out, or does not tell apart.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hidden<'a> {
    /// The target's path with its query.
    path: String,
    /// The protocol's options, whole; `None` if they are shown whole.
    protocol: Option<Cow<'a, serde_json::Value>>,
    key_pem: Option<Text>,
    proxy: Option<Text>,
    base_url: Option<String>,
    env: BTreeMap<String, Text>,
    script_args: Vec<Text>,
    sandbox: Sandbox,
    environment: BTreeMap<String, String>,
}

/// A template as written, and whether it is secret.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    text: String,
    secret: bool,
}

impl Text {
    fn from_template(template: &Template) -> Self {
        Self { text: template.as_written().to_owned(), secret: template.is_secret() }
    }

    fn template(self) -> Template {
        if self.secret { Template::secret(self.text) } else { Template::open(self.text) }
    }
}

impl<'a> Hidden<'a> {
    fn from_plan(plan: &'a Plan) -> Self {
        let scenarios = plan.scenarios.as_ref();
        let env = scenarios.into_iter().flat_map(|scenarios| &scenarios.env);
        Self {
            path: plan.target.path.clone(),
            protocol: plan.protocol.hidden().map(Cow::Borrowed),
            key_pem: plan.transport.tls.key_pem.as_ref().map(Text::from_template),
            proxy: plan.transport.proxy_credentials().map(Text::from_template),
            base_url: scenarios.and_then(|scenarios| scenarios.base_url.clone()),
            env: env.map(|(name, value)| (name.clone(), Text::from_template(value))).collect(),
            script_args: plan.script.iter().flat_map(|script| &script.args).map(Text::from_template).collect(),
            sandbox: plan.sandbox,
            environment: plan.environment.reveal().clone(),
        }
    }

    /// Restores these values in the plan that was read from the shown form.
    fn restore(self, plan: &mut Plan) {
        plan.target.path = self.path;
        if let Some(whole) = self.protocol {
            plan.protocol = ProtocolOptions::new(whole.into_owned(), plan.protocol.shown().clone());
        }
        plan.transport.tls.key_pem = self.key_pem.map(Text::template);
        if let Some(proxy) = &mut plan.transport.proxy {
            proxy.credentials = self.proxy.map(Text::template);
        }
        plan.sandbox = self.sandbox;
        plan.environment = Environment::arrived(self.environment);
        if let Some(script) = &mut plan.script {
            script.args = self.script_args.into_iter().map(Text::template).collect();
        }
        if let Some(scenarios) = &mut plan.scenarios {
            scenarios.base_url = self.base_url;
            scenarios.env = self.env.into_iter().map(|(name, value)| (name, value.template())).collect();
        }
    }
}

impl Plan {
    /// The plan in wire form.
    ///
    /// # Errors
    /// When it has the path of a Unix socket that is not UTF-8.
    pub fn to_wire(&self) -> Result<Wire, WireError> {
        let payload = Payload { plan: self, hidden: Hidden::from_plan(self) };
        let mut bytes = [&MAGIC[..], &WIRE_VERSION.to_be_bytes(), &[0; HASH_BYTES]].concat();
        let head = bytes.len();
        serde_json::to_writer(&mut bytes, &payload).map_err(|_| WireError::Unwritable)?;
        let hash = Hash::digest(bytes.get(head..).unwrap_or_default());
        if let Some(place) = bytes.get_mut(head - HASH_BYTES..head) {
            place.copy_from_slice(&hash.0);
        }
        Ok(Wire { bytes, hash })
    }

    /// Reads the plan that [`Plan::to_wire`] wrote. It is as valid as it was: the code that carries it out validates
    /// it.
    ///
    /// # Errors
    /// When the bytes are not a plan, are one of another version, or are incomplete.
    pub fn from_wire(bytes: &[u8]) -> Result<Self, WireError> {
        let not_a_plan = WireError::NotAPlan { length: bytes.len() };
        let rest = bytes.strip_prefix(MAGIC).ok_or(not_a_plan.clone())?;
        let (version, rest) = rest.split_first_chunk().ok_or(not_a_plan.clone())?;
        let got = u16::from_be_bytes(*version);
        if got != WIRE_VERSION {
            return Err(WireError::Version { got });
        }
        let (expected, payload) = rest.split_first_chunk().ok_or(not_a_plan)?;
        let (expected, got) = (Hash(*expected), Hash::digest(payload));
        if got != expected {
            return Err(WireError::Damaged { expected, got });
        }
        // The reader's error would quote content of the plan.
        let unreadable =
            |error: serde_json::Error| WireError::Unreadable { column: error.column(), length: payload.len() };
        let Payload { mut plan, hidden } = serde_json::from_slice::<Payload<'_, Self>>(payload).map_err(unreadable)?;
        hidden.restore(&mut plan);
        Ok(plan)
    }
}

#[cfg(test)]
mod tests;
