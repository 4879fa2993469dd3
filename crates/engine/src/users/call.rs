//! A call of a user: what the network need not know of it, and the result left for its user.

use std::collections::VecDeque;

use brunt_protocol::KeptAnswer;
use brunt_protocol::scenario::Encoded;
use brunt_protocol::traced::TraceIds;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;
use brunt_script::Placement;

use super::ids::{UserId, WaitId};
use crate::network::origins::OriginId;
use crate::network::{Call, CallId, Peer};
use crate::slots::{Recycle, Slots};

/// Tickets name a call by its slot and the slot's generation; both fit in what a number of Lua holds exactly.
const SLOT_BITS: u32 = 24;

/// The bits of a slot's generation that fit.
const GENERATION_BITS: u32 = 0x0fff_ffff;

/// The slot of the call that a ticket names.
pub(super) fn slot_of(ticket: u64) -> u32 {
    ((ticket & ((1 << SLOT_BITS) - 1)) as u32).wrapping_sub(1)
}

/// The call that a ticket names, if its answer is still there.
pub(super) fn ticketed(calls: &Slots<UserCall>, ticket: u64) -> Option<&UserCall> {
    let (slot, generation) = (slot_of(ticket), (ticket >> SLOT_BITS) as u32);
    calls.get(slot).filter(|_| calls.generation(slot) & GENERATION_BITS == generation)
}

/// The ticket of the call in this slot: never 0, which stands for no answer.
pub(super) fn ticket(calls: &Slots<UserCall>, slot: u32) -> f64 {
    (u64::from(calls.generation(slot) & GENERATION_BITS) << SLOT_BITS | (u64::from(slot) + 1)) as f64
}

/// The state of a call, with what only this state knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The throttle holds it back, or it is about to begin.
    Throttled {
        /// When it is due.
        due: Tick,
    },
    /// It has begun and not ended: the network has it.
    UnderWay(CallId),
    /// It was answered, with this status.
    Answered(u16, Times),
    /// It has failed.
    Failed(Failure, Times),
}

/// The times of a call that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) due: Tick,
    /// [`Tick::NEVER`] if it was never sent.
    pub(super) sent: Tick,
    /// [`Tick::NEVER`] if no byte of an answer came.
    pub(super) first_byte: Tick,
    pub(super) ended: Tick,
}

impl Times {
    /// Those of a call that ended at `now`.
    pub(super) fn of(call: &Call<u32>, now: Tick) -> Self {
        Self { due: call.due, sent: call.sent, first_byte: call.first_byte, ended: now }
    }
}

/// The earlier requests of a call whose answers led on to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RedirectHistory {
    /// When its first request was due, and sent.
    pub(super) due: Tick,
    pub(super) sent: Tick,
    /// The number of answers that have led on.
    pub(super) hops: usize,
    /// The trace ids of its first request, which the later ones share.
    pub(super) trace: Option<TraceIds>,
}

/// Who hears of a call's answer.
#[derive(Debug)]
pub(super) enum AnswerReceiver {
    /// Its user, who waits for it.
    Waiting,
    /// Its user, who will wait for all calls that it has begun.
    Later,
    /// Its user, who takes the messages of the answer one by one.
    Stream(Box<Inbox>),
}

/// The messages of a stream that its user has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) messages: VecDeque<(u16, Vec<u8>)>,
    pub(super) bytes: usize,
    /// The wait for the next message, and the user or task that waits; `None` if nobody waits.
    pub(super) waits: Option<(WaitId, UserId)>,
    /// The part of the next message that its user has asked for; empty for the message itself.
    pub(super) part: String,
    /// Whether more was sent on its call than is kept, so that it cannot be sent again.
    pub(super) is_partial: bool,
}

/// What a script asked for with a call, besides its message.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallOptions {
    /// The script's client, by its index.
    pub(super) client: usize,
    pub(super) origin: OriginId,
    pub(super) label: u32,
    pub(super) timeout_ns: Option<u64>,
    /// The connection that it goes on.
    pub(super) placement: Placement,
    /// Whether the script is shown each answer, and decides whether it is the last.
    pub(super) judged: bool,
    /// Whether it is not counted if no answer comes in time.
    pub(super) optional: bool,
}

impl CallOptions {
    /// Nothing in particular.
    const NOTHING: Self = Self {
        client: 0,
        origin: OriginId::FIRST,
        label: 0,
        timeout_ns: None,
        placement: Placement::Any,
        judged: false,
        optional: false,
    };
}

/// A call of a user.
#[derive(Debug)]
pub(super) struct UserCall {
    pub(super) state: State,
    pub(super) user: UserId,
    pub(super) asked: CallOptions,
    pub(super) hears: AnswerReceiver,
    /// The earlier requests, if it continues a call whose answer led on.
    pub(super) chain: Option<RedirectHistory>,
    /// Its trace ids, if it is traced.
    pub(super) trace: Option<TraceIds>,
    /// The number of the prepared call that it sends, if it was prepared; and else what it sends.
    pub(super) prepared: Option<u32>,
    pub(super) encoded: Encoded,
    /// The request to send after an answer that was not the last.
    pub(super) next: Encoded,
    /// The answers before the last, where they are to be shown.
    pub(super) before: Vec<u8>,
    /// Its answer, or the reason for which it has failed.
    pub(super) kept: KeptAnswer,
    pub(super) reason: String,
    /// The other end of its connection, once it was answered.
    pub(super) peer: Peer,
}

impl UserCall {
    /// A call of which nothing is known.
    pub(super) fn new() -> Self {
        Self {
            state: State::Throttled { due: Tick::EPOCH },
            user: UserId::in_slot(0),
            asked: CallOptions::NOTHING,
            hears: AnswerReceiver::Waiting,
            chain: None,
            trace: None,
            prepared: None,
            encoded: Encoded::default(),
            next: Encoded::default(),
            before: Vec::new(),
            kept: KeptAnswer::default(),
            reason: String::new(),
            peer: Peer::default(),
        }
    }

    /// Its id in the network while it is under way.
    #[inline]
    pub(super) fn id(&self) -> Option<CallId> {
        if let State::UnderWay(id) = self.state { Some(id) } else { None }
    }

    /// The same, for a list of them.
    #[cfg(feature = "simulation")]
    pub(super) fn waiting_id(&self) -> Option<&CallId> {
        if let State::UnderWay(id) = &self.state { Some(id) } else { None }
    }

    pub(super) fn is_throttled(&self) -> bool {
        matches!(self.state, State::Throttled { .. })
    }

    /// Its status, if it was answered.
    pub(super) fn status(&self) -> Option<u16> {
        if let State::Answered(status, _) = self.state { Some(status) } else { None }
    }

    /// Its times, once it has ended.
    pub(super) fn times(&self) -> Option<&Times> {
        match &self.state {
            State::Answered(_, times) | State::Failed(_, times) => Some(times),
            State::Throttled { .. } | State::UnderWay(_) => None,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.times().is_some()
    }

    /// What waits for its user, if it is a stream.
    #[inline]
    pub(super) fn inbox(&self) -> Option<&Inbox> {
        if let AnswerReceiver::Stream(inbox) = &self.hears { Some(inbox) } else { None }
    }

    /// The same, to change it.
    pub(super) fn inbox_mut(&mut self) -> Option<&mut Inbox> {
        if let AnswerReceiver::Stream(inbox) = &mut self.hears { Some(inbox) } else { None }
    }
}

impl Recycle for UserCall {
    /// Forgets the call with its answer. Whoever makes the next one writes what it has been asked for.
    fn recycle(&mut self) {
        // Whoever adds a field decides here what becomes of it.
        let Self {
            state,
            hears,
            chain,
            trace,
            encoded,
            next,
            before,
            prepared,
            kept,
            reason,
            user: _,
            asked: _,
            peer: _,
        } = self;
        (*state, *hears) = (State::Throttled { due: Tick::EPOCH }, AnswerReceiver::Waiting);
        (*chain, *trace) = (None, None);
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
