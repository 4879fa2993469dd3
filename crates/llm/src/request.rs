//! Requests: a prompt's body, and HTTP around it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use brunt_plan::random::{Random, mix};
use brunt_protocol::OptionsError;
use brunt_protocol::source::RequestSource;

use crate::dialect::{ApiDialect, Body};
use crate::length::Length;
use crate::prompt::PromptSource;

/// The field that says how long a body is, as HTTP writes that of the empty object.
const LENGTH: &[u8] = b"Content-Length: 2\r\n";

/// A request of HTTP without its body.
#[derive(Debug)]
pub(crate) struct Request {
    /// Up to the length of its body, and what stands behind it.
    before: Vec<u8>,
    behind: Vec<u8>,
    hint: u32,
}

impl Request {
    /// The request around the body of HTTP's own calls.
    ///
    /// # Errors
    /// When a header field of the user's is in the way.
    pub fn around(user: &mut dyn RequestSource) -> Result<Self, OptionsError> {
        let unusable = || OptionsError("a header field takes the place of Content-Length: leave it out".to_owned());
        let call = user.request(0).map_err(|_| unusable())?;
        let place = call.bytes.windows(LENGTH.len()).position(|part| part == LENGTH).ok_or_else(unusable)?;
        let behind =
            call.bytes.get(place + LENGTH.len()..).and_then(|rest| rest.strip_suffix(b"{}")).ok_or_else(unusable)?;
        Ok(Self {
            before: call.bytes.get(..place).unwrap_or_default().to_vec(),
            behind: behind.to_vec(),
            hint: call.hint,
        })
    }
}

/// The requests of a run.
#[derive(Debug)]
pub(crate) struct Requests {
    /// What stands around each body.
    pub request: Request,
    /// What stands around each prompt.
    pub body: Body,
    /// The whole bodies of a file, in its order, with whether they have a limit of their own; empty where it has none.
    pub bodies: Vec<Option<(Body, bool)>>,
    /// Where prompts come from.
    pub source: PromptSource,
    /// The most tokens of an answer.
    pub output: Option<Length>,
    /// How the server is asked.
    pub dialect: ApiDialect,
    /// The seed of all random choices.
    pub seed: u64,
    /// How many prompts there were.
    pub serial: AtomicU64,
}

/// A number for the prompts of one run alone. Calls of a warm-up and of another run have the same numbers, and so might another process
/// with the same seed.
pub(crate) fn salt(seed: u64) -> u64 {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let run = RUNS.fetch_add(1, Ordering::Relaxed) << 32 | u64::from(std::process::id());
    mix(seed ^ mix(since_1970.as_nanos() as u64 ^ mix(run)))
}

impl Requests {
    /// Appends the prompt of a turn of the conversation with this number to `said`, and returns the most tokens of its answer. `stream`
    /// separates its random numbers from those of others.
    pub fn add(&self, number: u64, turn: u32, stream: u64, said: &mut String) -> Option<u32> {
        let mut random = Random::new(self.seed, stream);
        let most = self.output.map(|length| length.draw(&mut random));
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let of_file = self.source.write(number, turn, serial, &mut random, said);
        of_file.or(most)
    }

    /// Makes the request of this prompt of the conversation with this number in `bytes`; `body` is for its body.
    pub fn write(&self, number: u64, said: &str, most: Option<u32>, body: &mut Vec<u8>, bytes: &mut Vec<u8>) {
        body.clear();
        let whole = self.bodies.get((number % self.bodies.len().max(1) as u64) as usize);
        match whole.and_then(Option::as_ref) {
            Some((whole, has_limit)) => whole.write("", most.filter(|_| !has_limit), body),
            None => self.body.write(said, most, body),
        }
        bytes.clear();
        bytes.extend_from_slice(&self.request.before);
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(&self.request.behind);
        bytes.extend_from_slice(body);
    }

    /// The hint of each request, for HTTP.
    pub const fn hint(&self) -> u32 {
        self.request.hint
    }
}
