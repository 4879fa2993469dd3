//! What conversations are asked to be.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use crate::length::Length;
use crate::think::Think;

/// How conversations go on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// How many a conversation has; at most as many as in its file.
    pub turns: Length,
    /// The time between an answer and the next turn.
    pub think: Think,
}

/// Turns of the measured part that were never asked: an earlier turn failed or was answered without text, or their conversation became too
/// long. What the end of the run, or its number of requests, cuts off is not lost.
pub type Lost = Arc<AtomicU64>;

/// The hint of a turn after the first, to a client.
pub const LATER: u32 = 1 << 31;
