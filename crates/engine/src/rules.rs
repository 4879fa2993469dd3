//! Rules of the network that a test breaks on purpose, one at a time, to see that the simulation finds it.
//!
//! Without the feature `simulation` no rule can be broken, and [`is_broken`] costs nothing.

/// A rule, at the place where it can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Rule {
    /// A GOAWAY takes a place out once.
    LeavesOnce = 1,
    /// The peer's limit on calls in flight holds.
    PeersLimit,
    /// Nothing is composed while bytes wait for the socket.
    NothingBehindWaitingBytes,
    /// Waiting calls are sent once the socket has taken what waited.
    WaitingCallsAreSent,
    /// A peer that reads nothing is hung up on.
    StallsEnd,
    /// A call that waits for room on a connection has a deadline.
    WaitsEnd,
    /// A flood replaces a connection that leaves only where there is a place.
    LeavingIsOwed,
    /// Connections that leave take places, beyond as many as are kept up.
    LeavingTakesPlaces,
    /// What was turned away is sent again.
    TurnedAwayIsSentAgain,
    /// A lost connection leaves the lists of its load.
    LostLeavesLists,
    /// The deadline of a place that waits before it connects again is watched.
    BackoffIsWatched,
    /// A call that was processed is not sent again.
    ProcessedIsNotSentAgain,
    /// What came together with a connection is read.
    WhatComesWithAConnectionIsRead,
    /// What has come is read before anything expires.
    ReadsBeforeExpiring,
    /// What came after a deadline saves no call.
    LateIsLate,
    /// Time in which the worker stood still is no wait for its peer.
    OwnStopsAreNoWait,
    /// Calls in a pipeline behind a last answer are sent again.
    BehindALastAnswer,
    /// Calls that have a place are sent though the run is interrupted.
    InterruptedCallsAreSent,
    /// A place whose calls timed out before its connection was made again is given back.
    IdlePlacesAreGivenBack,
    /// A user's call that waits for a connection gets another once the peer takes no more on that one.
    UsersGetAnother,
    /// A session's call waits for the session's connection where that has no room, and leaves it to nobody.
    SessionsKeepTheirConnection,
}

#[cfg(feature = "simulation")]
impl Rule {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::LeavesOnce,
        Self::PeersLimit,
        Self::NothingBehindWaitingBytes,
        Self::WaitingCallsAreSent,
        Self::StallsEnd,
        Self::WaitsEnd,
        Self::LeavingIsOwed,
        Self::LeavingTakesPlaces,
        Self::TurnedAwayIsSentAgain,
        Self::LostLeavesLists,
        Self::BackoffIsWatched,
        Self::ProcessedIsNotSentAgain,
        Self::WhatComesWithAConnectionIsRead,
        Self::ReadsBeforeExpiring,
        Self::LateIsLate,
        Self::OwnStopsAreNoWait,
        Self::BehindALastAnswer,
        Self::InterruptedCallsAreSent,
        Self::IdlePlacesAreGivenBack,
        Self::UsersGetAnother,
        Self::SessionsKeepTheirConnection,
    ];
}

/// The rule that is broken in this process; 0 for none.
#[cfg(feature = "simulation")]
static BROKEN: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Breaks a rule in this process from now on.
#[cfg(feature = "simulation")]
pub fn break_rule(rule: Rule) {
    BROKEN.store(rule as u8, std::sync::atomic::Ordering::Relaxed);
}

/// Whether the rule is broken.
#[cfg(feature = "simulation")]
#[inline]
pub(crate) fn is_broken(rule: Rule) -> bool {
    BROKEN.load(std::sync::atomic::Ordering::Relaxed) == rule as u8
}

/// Whether the rule is broken: never.
#[cfg(not(feature = "simulation"))]
#[inline]
pub(crate) const fn is_broken(_rule: Rule) -> bool {
    false
}
