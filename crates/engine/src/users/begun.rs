//! The calls that a user has begun: those that go on, those whose answers it may read, and those that it may continue.

use super::call::RedirectHistory;

/// The most streams that a user may have open at once.
const MOST_STREAMS: usize = 100;
/// The most calls of a user whose answers led on and that it has not continued.
const MOST_CHAINS: usize = 1000;

/// Calls of a user, by their slots, but for the one that it waits for.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// Calls that it has begun and will wait for together, in their order.
    started: Vec<u32>,
    /// How many of them have not ended.
    pending: usize,
    /// Streams that it has not read to the end.
    streams: Vec<u32>,
    /// Calls whose answers it may read.
    delivered: Vec<u32>,
    /// Redirect histories of answered calls, by their tickets; and the one that the next call continues.
    chains: Vec<(u64, RedirectHistory)>,
    continues: Option<RedirectHistory>,
}

impl Begun {
    /// A call is about to begin for which it will wait later. The call may end at once.
    pub(super) fn starts(&mut self) {
        self.pending += 1;
    }

    /// Such a call has begun.
    pub(super) fn started(&mut self, slot: u32) {
        self.started.push(slot);
    }

    /// Such a call has ended, or could not begin.
    pub(super) fn ended_one(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }

    /// Whether such a call is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.pending > 0
    }

    /// Whether it has begun nothing that its iteration would leave behind.
    pub(super) fn is_nothing(&self) -> bool {
        self.pending == 0 && self.started.is_empty() && self.streams.is_empty()
    }

    /// All calls that it will wait for no more.
    pub(super) fn take_started(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.started)
    }

    /// Takes back those that never began after all.
    pub(super) fn drop_started(&mut self, never_began: impl Fn(u32) -> bool) -> Vec<u32> {
        let (dropped, begun): (Vec<u32>, Vec<u32>) = self.started.iter().partition(|slot| never_began(**slot));
        self.started = begun;
        self.pending = self.pending.saturating_sub(dropped.len());
        dropped
    }

    /// Checks that it may have one more stream.
    ///
    /// # Errors
    /// When it has as many as it may.
    pub(super) fn may_stream(&self) -> Result<(), String> {
        if self.streams.len() < MOST_STREAMS {
            return Ok(());
        }
        Err(format!(
            "this user has {MOST_STREAMS} streams open, and may have no more: read them to their end, or close them"
        ))
    }

    pub(super) fn open_stream(&mut self, slot: u32) {
        self.streams.push(slot);
    }

    pub(super) fn has_stream(&self, slot: u32) -> bool {
        self.streams.contains(&slot)
    }

    pub(super) fn close_stream(&mut self, slot: u32) {
        self.streams.retain(|known| *known != slot);
    }

    pub(super) fn take_streams(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.streams)
    }

    /// It may read the answers of these calls.
    pub(super) fn deliver(&mut self, slots: impl IntoIterator<Item = u32>) {
        self.delivered.extend(slots);
    }

    /// A call whose answer it may read no more.
    pub(super) fn take_delivered(&mut self) -> Option<u32> {
        self.delivered.pop()
    }

    /// The answer with this ticket led on.
    pub(super) fn led_on(&mut self, ticket: u64, chain: RedirectHistory) {
        if self.chains.len() >= MOST_CHAINS {
            self.chains.remove(0);
        }
        self.chains.push((ticket, chain));
    }

    /// Lets the next call continue the one whose answer has this ticket.
    pub(super) fn go_on_with(&mut self, ticket: u64) {
        let place = self.chains.iter().position(|(known, _)| *known == ticket);
        self.continues = place.map(|place| self.chains.swap_remove(place).1);
    }

    /// What the next call continues.
    pub(super) fn take_continued(&mut self) -> Option<RedirectHistory> {
        self.continues.take()
    }

    /// Another iteration begins at once, which continues no call of this one.
    pub(super) fn forget_chains(&mut self) {
        self.chains.clear();
    }

    /// The iteration is over: no call continues one of it.
    pub(super) fn forget_all_chains(&mut self) {
        self.chains.clear();
        self.continues = None;
    }

    /// Forgets all of it, and keeps its memory.
    pub(super) fn clear(&mut self) {
        let Self { started, pending, streams, delivered, chains, continues } = self;
        started.clear();
        streams.clear();
        delivered.clear();
        chains.clear();
        (*pending, *continues) = (0, None);
    }
}
