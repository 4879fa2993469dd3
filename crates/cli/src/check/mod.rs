//! Whether a server coalesces identical requests, and whether that is safe: what is asked, and what the answers prove.
//!
//! Nothing here is a load path: it asks a few hundred times, and keeps every answer.

pub mod client;
mod hostile;
pub mod probes;
pub mod text;

use std::time::Duration;

/// Everything that the check found.
#[derive(Debug)]
pub struct Findings {
    pub identical: Identical,
    pub pairs: Vec<PairFinding>,
}

/// What came of identical requests at once.
#[derive(Debug)]
pub struct Identical {
    pub requests: u64,
    /// How many of them reached the origin, if anything counts that.
    pub origin_hits: Option<u64>,
    /// How many answers said that they led, and that they followed.
    pub said: (u64, u64),
    /// What the requests that were sent first took.
    pub first: Vec<Duration>,
    /// What the others took.
    pub others: Vec<Duration>,
}

/// What is known of one kind of pair.
#[derive(Debug)]
pub struct PairFinding {
    pub kind: &'static str,
    pub verdict: PairVerdict,
}

/// Whether two requests that differ were told apart.
#[derive(Debug, PartialEq, Eq)]
pub enum PairVerdict {
    /// Each had an answer of its own.
    Apart,
    /// One hit of the origin served both, and each as it asked.
    OneHitTwoAnswers,
    /// One hit of the origin served both, and nothing shows what the origin was asked.
    OneHitUnseen,
    /// One had the other's answer.
    Shared(Box<Offence>),
    /// Nothing shows it.
    Unknown,
}

/// Two requests; one had the other's answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Offence {
    /// The requests, as they were sent.
    pub requests: [String; 2],
    /// What shows it.
    pub proof: String,
}

impl Findings {
    /// Whether somebody was given another's answer.
    pub fn is_unsafe(&self) -> bool {
        self.pairs.iter().any(|pair| matches!(pair.verdict, PairVerdict::Shared(_)))
    }
}
