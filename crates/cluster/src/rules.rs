//! Rules of agents and their controller that a test breaks on purpose, one at a time, to see that the other tests find
//! it. In the program no rule can be broken.

/// A rule, at the place where it can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Rule {
    /// An agent is granted no more than its controller remembers.
    GrantIsRemembered = 1,
    /// What is due before the horizon and unreported is unknown.
    BeforeTheHorizonIsUnknown,
    /// What is due before the horizon and after the run's end is unknown.
    AfterTheEndIsUnknown,
    /// A late report of a second beyond the horizon does not count.
    LateBeyondTheHorizonIsNothing,
    /// What is reported late is not unknown as well.
    ReportedLateIsKnown,
    /// Calls under way at a loss are unfinished.
    LeftUnderWayIsUnfinished,
    /// A bus that stands still makes no agent silent.
    StillBusMakesNobodySilent,
    /// Agents that are all silent are waited for longer than one that is silent alone.
    SilenceOfAllIsACut,
    /// Whoever answers, and misses a limit, is lost.
    WaitsEnd,
    /// A part that an agent ends by itself is lost.
    LeftPartIsLost,
    /// An agent without a word of its controller is free again.
    UnheardAgentIsFree,
    /// Who speaks is known by the subject.
    SenderIsItsSubject,
    /// What setup returned is torn down where the run does not begin.
    SetUpIsTornDown,
    /// What setup has counted is in the result.
    SetupCounts,
    /// What teardown has counted is in the result.
    TeardownCounts,
    /// An agent says that it knows nothing of a session.
    UnknownSessionIsSaid,
    /// An acknowledgement is for whole pieces.
    WholePiecesAreAcknowledged,
    /// What comes twice is taken in once.
    TwiceIsOnce,
    /// A lost piece is sent again.
    LostPiecesAreSentAgain,
    /// Pieces are cut anew for a bus that takes shorter messages.
    PiecesFitTheServer,
    /// Requests that nobody makes are due.
    UnmadeIsDue,
    /// What of a log was due before the horizon is unknown.
    LoggedBeforeTheHorizonIsUnknown,
    /// What of a log was not reported is due.
    LoggedIsDue,
    /// A number of requests of a rate ends with the last of them.
    NumberedRateEndsWithItsLast,
    /// Seconds that an agent leaves out are unknown.
    LeftOutIsUnknown,
    /// Where no number bounds what a lost agent did, its connections and its time are said.
    UnboundedIsSaid,
    /// Requests that an agent gave back are made by others.
    GivenBackIsDealtAgain,
    /// Whoever waits for requests is told that none come.
    LastNumbersAreSaid,
    /// Requests that nobody was dealt are unsent.
    UndealtIsUnsent,
}

#[cfg(test)]
impl Rule {
    /// All of them.
    pub(crate) const ALL: [Self; 29] = [
        Self::GrantIsRemembered,
        Self::BeforeTheHorizonIsUnknown,
        Self::AfterTheEndIsUnknown,
        Self::LateBeyondTheHorizonIsNothing,
        Self::ReportedLateIsKnown,
        Self::LeftUnderWayIsUnfinished,
        Self::StillBusMakesNobodySilent,
        Self::SilenceOfAllIsACut,
        Self::WaitsEnd,
        Self::LeftPartIsLost,
        Self::UnheardAgentIsFree,
        Self::SenderIsItsSubject,
        Self::SetUpIsTornDown,
        Self::SetupCounts,
        Self::TeardownCounts,
        Self::UnknownSessionIsSaid,
        Self::WholePiecesAreAcknowledged,
        Self::TwiceIsOnce,
        Self::LostPiecesAreSentAgain,
        Self::PiecesFitTheServer,
        Self::UnmadeIsDue,
        Self::LoggedBeforeTheHorizonIsUnknown,
        Self::LoggedIsDue,
        Self::NumberedRateEndsWithItsLast,
        Self::LeftOutIsUnknown,
        Self::UnboundedIsSaid,
        Self::GivenBackIsDealtAgain,
        Self::LastNumbersAreSaid,
        Self::UndealtIsUnsent,
    ];
}

/// The variable that names the rule to be broken in a process of tests.
#[cfg(test)]
pub(crate) const BROKEN: &str = "BRUNT_BROKEN_RULE";

/// Whether the rule is broken in this process.
#[cfg(test)]
pub(crate) fn is_broken(rule: Rule) -> bool {
    static RULE: std::sync::OnceLock<Option<Rule>> = std::sync::OnceLock::new();
    let named = || {
        let name = std::env::var(BROKEN).ok()?;
        Some(Rule::ALL.into_iter().find(|rule| format!("{rule:?}") == name).expect("a rule of this name"))
    };
    *RULE.get_or_init(named) == Some(rule)
}

/// Whether the rule is broken: never.
#[cfg(not(test))]
#[inline]
pub(crate) const fn is_broken(_rule: Rule) -> bool {
    false
}
