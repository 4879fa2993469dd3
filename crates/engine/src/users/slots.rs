//! Calls of users in their slots: what the network need not know of them, and the results left for their users.

use std::collections::VecDeque;

use brunt_plan::target::Target;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::VirtualUsers;
use crate::network::origins::OriginId;
use crate::network::{Call, CallId};
use crate::slots::Recycle;
use brunt_protocol::KeptAnswer;
use brunt_protocol::scenario::Encoded;
use brunt_protocol::traced::TraceIds;
use brunt_script::Placement;

/// Tickets name a call by its slot and the slot's generation; both fit in what a number of Lua holds exactly.
const SLOT_BITS: u32 = 24;

/// The bits of a slot's generation that fit.
const GENERATION_BITS: u32 = 0x0fff_ffff;

/// The slot of the call that a ticket names.
pub(super) fn slot_of(ticket: u64) -> u32 {
    (ticket & ((1 << SLOT_BITS) - 1)) as u32
}

/// The state of a call's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// A call that the throttle holds back, or that is about to begin.
    Throttled,
    /// A call that has begun and not ended: the network has it.
    UnderWay,
    /// The call was answered.
    Answered(u16),
    /// The call has failed.
    Failed(Failure),
}

/// A call encoded once and reused.
#[derive(Debug)]
pub(super) struct PreparedCall {
    pub(super) client: usize,
    pub(super) encoded: Encoded,
    /// Its target, if not the client's base URL.
    pub(super) target: Option<Target>,
    /// The target's origin, once it is known.
    pub(super) origin: Option<OriginId>,
}

/// The earlier requests of a call whose answers led on to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    /// When its first request was due, and sent.
    pub(super) due: Tick,
    pub(super) sent: Tick,
    /// The number of answers that have led on.
    pub(super) hops: usize,
    /// The trace ids of its first request, which the later ones share.
    pub(super) trace: Option<TraceIds>,
}

/// The messages of a stream that its user has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) messages: VecDeque<(u16, Vec<u8>)>,
    pub(super) bytes: usize,
    /// The number of the wait for the next message, and the user or task that waits; `None` if nobody waits.
    pub(super) waits: Option<(u64, u32)>,
    /// The part of the next message that its user has asked for; empty for the message itself.
    pub(super) part: String,
    /// Whether more was sent on its call than is kept, so that it cannot be sent again.
    pub(super) is_partial: bool,
}

/// A call of a user: what the network need not know of it, and the result left for its user.
#[derive(Debug)]
pub(super) struct UserCall {
    pub(super) state: State,
    /// Its id in the network while it is under way.
    pub(super) id: Option<CallId>,
    /// When it was due.
    pub(super) due: Tick,
    pub(super) user: u32,
    pub(super) client: usize,
    pub(super) origin: OriginId,
    pub(super) label: u32,
    /// Whether its user waits for this call, and not for all that it has begun.
    pub(super) awaited: bool,
    pub(super) timeout_ns: Option<u64>,
    /// The connection that it goes on.
    pub(super) way: Placement,
    /// Whether the script is shown each answer, and decides whether it is the last.
    pub(super) judged: bool,
    /// Whether it is not counted if no answer comes in time.
    pub(super) optional: bool,
    /// The earlier requests, if it continues a call whose answer led on.
    pub(super) chain: Option<Chain>,
    /// Its trace ids, if it is traced.
    pub(super) trace: Option<TraceIds>,
    pub(super) encoded: Encoded,
    /// The request to send after an answer that was not the last.
    pub(super) next: Encoded,
    /// The answers before the last, where they are to be shown.
    pub(super) before: Vec<u8>,
    /// The number of the prepared call that it sends instead, if it was prepared.
    pub(super) prepared: Option<u32>,
    /// Messages that its user has not taken, if it takes them one by one.
    pub(super) inbox: Option<Box<Inbox>>,
    /// Its times, and when it ended.
    pub(super) ended: Option<(Call<u32>, Tick)>,
    pub(super) kept: KeptAnswer,
    pub(super) reason: String,
    /// Bytes that its connection had received when it was sent.
    pub(super) bytes_before: u64,
}

impl VirtualUsers {
    /// The call that a ticket names, if its answer is still there.
    pub(super) fn ticketed(&self, ticket: u64) -> Option<&UserCall> {
        let (slot, generation) = (slot_of(ticket), (ticket >> SLOT_BITS) as u32);
        self.calls.get(slot).filter(|_| self.calls.generation(slot) & GENERATION_BITS == generation)
    }

    /// The ticket of the call in this slot.
    pub(super) fn ticket(&self, slot: u32) -> f64 {
        (u64::from(self.calls.generation(slot) & GENERATION_BITS) << SLOT_BITS | u64::from(slot)) as f64
    }
}

impl UserCall {
    /// A call of which nothing is known.
    pub(super) fn new() -> Self {
        Self {
            state: State::Throttled,
            id: None,
            due: Tick::EPOCH,
            user: 0,
            client: 0,
            origin: OriginId::FIRST,
            label: 0,
            awaited: true,
            timeout_ns: None,
            way: Placement::Any,
            judged: false,
            optional: false,
            chain: None,
            trace: None,
            encoded: Encoded::default(),
            next: Encoded::default(),
            before: Vec::new(),
            prepared: None,
            inbox: None,
            ended: None,
            kept: KeptAnswer::default(),
            reason: String::new(),
            bytes_before: 0,
        }
    }
}

impl Recycle for UserCall {
    /// Forgets the call with its answer. `make_call` writes what it has been asked for.
    fn recycle(&mut self) {
        // Whoever adds a field decides here what becomes of it.
        let Self {
            state,
            id,
            chain,
            trace,
            encoded,
            next,
            before,
            prepared,
            inbox,
            ended,
            kept,
            reason,
            due: _,
            user: _,
            client: _,
            origin: _,
            label: _,
            awaited: _,
            timeout_ns: _,
            way: _,
            judged: _,
            optional: _,
            bytes_before: _,
        } = self;
        *state = State::Throttled;
        (*id, *chain, *trace, *inbox, *ended) = (None, None, None, None, None);
        if prepared.take().is_none() {
            encoded.clear();
        }
        next.clear();
        *before = Vec::new();
        // The memory of one large answer is not held for ever.
        kept.head.clear();
        kept.head.shrink_to(4 * 1024);
        kept.body.clear();
        kept.body.shrink_to(64 * 1024);
        reason.clear();
    }
}
