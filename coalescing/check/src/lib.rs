//! Whether a server coalesces identical HTTP requests, and whether that is safe: the requests of the check, and what
//! the answers prove.
//!
//! It is a check, not a load: it sends a few hundred requests, and keeps every answer.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use brunt_coalesce_check::{CheckOptions, Check, OriginHits};
//!
//! # async fn example() -> Result<(), brunt_coalesce_check::CheckError> {
//! let check = Check::begin(CheckOptions {
//!     url: http::Uri::from_static("http://127.0.0.1:8080/report"),
//!     origin_hits: OriginHits::Page(http::Uri::from_static("http://127.0.0.1:3000/count")),
//!     connections: 50,
//!     rounds: 5,
//!     with_post: false,
//!     by_address: false,
//!     by_forwarded: false,
//!     headers: Vec::new(),
//!     timeout: Duration::from_secs(30),
//!     trust: brunt_proxy::Trust::System,
//!     shown: |url| url.into(),
//! })
//! .await?;
//! println!("{}", check.run().await?);
//! # Ok(())
//! # }
//! ```

mod client;
mod error;
mod hostile;
mod probes;
mod text;

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use brunt_proxy::Trust;
use http::{HeaderName, HeaderValue, Uri};

use client::{Client, Probe};
use probes::Meter;

pub use error::{AskError, CheckError};

/// Writes a URL for display: its user and its query may hold secrets.
pub type ShowUrl = fn(&str) -> Cow<'_, str>;

/// The settings of a check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// An absolute URL that takes a while, and may be requested often.
    pub url: Uri,
    /// The source of the number of requests that reach the origin.
    pub origin_hits: OriginHits,
    /// Identical requests at once.
    pub connections: u32,
    /// How often each probe is made.
    pub rounds: u32,
    /// Asks with POST, too.
    pub with_post: bool,
    /// Whether the origin answers by the client's address, so that two addresses must not share an answer.
    pub by_address: bool,
    /// Whether the origin goes by `Forwarded` and `X-Forwarded-…`, which the proxy passes on: then one hit must not serve two
    /// values of them. Otherwise that is well, as the proxy may drop them.
    pub by_forwarded: bool,
    /// Headers of every request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The certificates to trust, for a target with TLS.
    pub trust: Trust,
    /// Writes URLs in findings and errors.
    pub shown: ShowUrl,
}

/// The source of the number of requests that reach the origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginHits {
    /// A page with a number on it that grows by one with each request.
    Page(Uri),
    /// A header that differs in each answer of the origin.
    Header(HeaderName),
    /// None: it cannot be known then whether answers are shared.
    Unknown,
}

/// A check of a target that answers.
pub struct Check {
    client: Client,
    asked: CheckOptions,
    meter: Meter,
    /// Makes URLs and secrets that were never used before.
    seed: u64,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Check {
    /// Sends one request, so that a target that does not answer is known before anything else.
    ///
    /// # Errors
    /// [`CheckError::NoAnswer`] for such a target; authorities and pages of counts that cannot be read.
    pub async fn begin(asked: CheckOptions) -> Result<Self, CheckError> {
        let client = Client::new(&asked)?;
        let first = client.ask(&Probe::get(&asked.url)).await;
        first.map_err(|error| CheckError::NoAnswer(Box::new(error)))?;
        let meter = Meter::calibrate(&asked.origin_hits, &client).await?;
        Ok(Self { client, asked, meter, seed: RandomState::new().hash_one(std::process::id()) })
    }
}

/// Everything that a check found; displayed, a report for people.
#[derive(Debug)]
pub struct Findings {
    identical: Identical,
    pairs: Vec<PairFinding>,
    rounds: u32,
}

impl Findings {
    /// Whether a client got another client's answer.
    pub fn is_unsafe(&self) -> bool {
        self.pairs.iter().any(|pair| matches!(pair.verdict, PairVerdict::Shared(_)))
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::findings(self))
    }
}

/// The result of identical requests at once.
#[derive(Debug)]
pub(crate) struct Identical {
    pub(crate) requests: u64,
    /// The number of them that reached the origin, if it is counted.
    pub(crate) origin_hits: Option<u64>,
    /// The numbers of answers that reported that they led, and that they followed.
    pub(crate) said: (u64, u64),
    /// The durations of the requests that were sent first.
    pub(crate) first: Vec<Duration>,
    /// The durations of the others.
    pub(crate) others: Vec<Duration>,
}

/// The finding on one kind of pair.
#[derive(Debug)]
pub(crate) struct PairFinding {
    pub(crate) kind: Cow<'static, str>,
    pub(crate) verdict: PairVerdict,
}

/// Whether two different requests were told apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PairVerdict {
    /// Each had an answer of its own.
    Apart,
    /// One hit of the origin served both, and each got its own answer.
    OneHitTwoAnswers,
    /// One hit of the origin served both, and nothing shows its request.
    OneHitUnseen,
    /// One hit of the origin served both: a proxy dropped what they differ in, or told them not apart.
    DroppedOrShared,
    /// One hit of the origin served clients at two addresses, by which the origin is not said to go.
    AddressesShare,
    /// One got the other's answer.
    Shared(Box<Offence>),
    /// Nothing shows it.
    Unknown,
}

/// A pair of requests in which an answer went to the wrong one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Offence {
    /// The requests, as they were sent.
    pub(crate) requests: [String; 2],
    /// The proof.
    pub(crate) proof: String,
}
