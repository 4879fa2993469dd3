//! How a call can end.

use serde::{Deserialize, Serialize};

/// The reason for which a call got no answer. Each is counted by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// A rule of the script blocks the host, and no connection was made.
    Blocked,
    /// The host name has no address.
    Resolve,
    /// The connection was refused, or no route led there.
    Connect,
    /// The connection was not made within the connect timeout.
    ConnectTimeout,
    /// The local end ran out of ports (or of addresses) to connect from.
    Ports,
    /// This process ran out of file descriptors.
    Descriptors,
    /// The TLS handshake or a TLS record failed.
    Tls,
    /// The protocol's own opening exchange failed: the peer refused it, or ended it.
    Handshake,
    /// Sending failed.
    Write,
    /// Receiving failed, for instance because the peer reset the connection.
    Read,
    /// The peer closed the connection before the answer was complete.
    Closed,
    /// The received bytes break the protocol's grammar or its limits.
    Protocol,
    /// The answer has more bytes than it may have.
    Oversize,
    /// The answer is numbered as one to a call that was not made.
    Sequence,
    /// The answer is well-formed and not the one that was expected.
    Mismatch,
    /// The peer reports, in a way that its interface does not declare, that it could not carry out the call.
    Exception,
    /// No complete answer within the timeout, counted from when the call was sent.
    Timeout,
    /// The next message of a stream did not come within the longest gap allowed.
    Stalled,
    /// A stream ended without its last message.
    EndedEarly,
}

impl Failure {
    /// Whether a call with this failure was never sent, since there was no connection for it.
    pub const fn is_of_connecting(self) -> bool {
        matches!(
            self,
            Self::Blocked
                | Self::Resolve
                | Self::Connect
                | Self::ConnectTimeout
                | Self::Ports
                | Self::Descriptors
                | Self::Tls
                | Self::Handshake
        )
    }

    /// Whether a call with this failure had no connection, or lost the one that it had: the target was not there for
    /// it.
    pub const fn is_unreached(self) -> bool {
        self.is_of_connecting() && !matches!(self, Self::Blocked | Self::Ports | Self::Descriptors)
            || matches!(self, Self::Write | Self::Read | Self::Closed)
    }

    /// Whether a call with this failure got an answer, or a part of one, and not the one that it asked for.
    pub const fn is_another_answer(self) -> bool {
        matches!(
            self,
            Self::Mismatch | Self::Exception | Self::Sequence | Self::Oversize | Self::Stalled | Self::EndedEarly
        )
    }

    /// Every failure, in the order reports list them.
    pub const ALL: [Self; 19] = [
        Self::Blocked,
        Self::Resolve,
        Self::Connect,
        Self::ConnectTimeout,
        Self::Ports,
        Self::Descriptors,
        Self::Tls,
        Self::Handshake,
        Self::Write,
        Self::Read,
        Self::Closed,
        Self::Protocol,
        Self::Oversize,
        Self::Sequence,
        Self::Mismatch,
        Self::Exception,
        Self::Timeout,
        Self::Stalled,
        Self::EndedEarly,
    ];

    /// Its name in reports, JSON and thresholds.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::Ports => "ports",
            Self::Descriptors => "descriptors",
            Self::Tls => "tls",
            Self::Handshake => "handshake",
            Self::Write => "write",
            Self::Read => "read",
            Self::Closed => "closed",
            Self::Protocol => "protocol",
            Self::Oversize => "oversize",
            Self::Sequence => "sequence",
            Self::Mismatch => "mismatch",
            Self::Exception => "exception",
            Self::Timeout => "timeout",
            Self::Stalled => "stalled",
            Self::EndedEarly => "ended_early",
        }
    }

    /// The failure with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| failure.name() == name)
    }
}

/// Which statuses count as a success: by default everything under 400.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct OkStatus(Vec<(u16, u16)>);

/// A list of statuses that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected statuses such as 200, 2xx or 200-399, separated by commas, got '{got}'")]
pub struct OkStatusError {
    /// The text in its place.
    pub got: String,
}

impl Default for OkStatus {
    fn default() -> Self {
        Self(vec![(0, 399)])
    }
}

impl OkStatus {
    /// A single status.
    pub fn only(status: u16) -> Self {
        Self(vec![(status, status)])
    }

    /// These statuses and another one.
    #[must_use]
    pub fn and(mut self, status: u16) -> Self {
        self.0.push((status, status));
        self
    }

    /// The highest status among them.
    pub fn highest(&self) -> u16 {
        self.0.iter().map(|(_, last)| *last).max().unwrap_or_default()
    }

    /// The successes where calls of several protocols meet, as in scenarios: 0, for no status or for a Thrift method
    /// that returned, and HTTP's statuses under 400. The numbers between are a Thrift method's exceptions.
    pub fn of_scenarios() -> Self {
        Self(vec![(0, 0), (100, 399)])
    }

    /// Whether an answer with this status is a success.
    pub fn holds(&self, status: u16) -> bool {
        self.0.iter().any(|&(first, last)| (first..=last).contains(&status))
    }
}

impl TryFrom<String> for OkStatus {
    type Error = OkStatusError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl std::str::FromStr for OkStatus {
    type Err = OkStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let range = |part: &str| -> Option<(u16, u16)> {
            let part = part.trim();
            if let Some(class) = part.strip_suffix("xx") {
                let first = class.parse::<u16>().ok().filter(|class| (1..=9).contains(class))? * 100;
                return Some((first, first + 99));
            }
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some((first, last))
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        ranges.map(Self).ok_or_else(|| OkStatusError { got: text.to_owned() })
    }
}

impl From<OkStatus> for String {
    fn from(ok: OkStatus) -> Self {
        let part = |(first, last): &(u16, u16)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        let parts: Vec<_> = ok.0.iter().map(part).collect();
        parts.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_found_by_its_name() {
        for failure in Failure::ALL {
            assert_eq!(Failure::from_name(failure.name()), Some(failure));
        }
    }

    #[test]
    fn ok_statuses_are_classes_ranges_and_single_codes() {
        let ok: OkStatus = "2xx, 304,400-404".parse().unwrap();
        for (status, expected) in [(200, true), (299, true), (300, false), (304, true), (404, true), (500, false)] {
            assert_eq!(ok.holds(status), expected, "{status}");
        }
        assert!("2x".parse::<OkStatus>().is_err());
        assert!("".parse::<OkStatus>().is_err());
        assert!("300-200".parse::<OkStatus>().is_err());
        assert!(OkStatus::of_scenarios().holds(0) && !OkStatus::of_scenarios().holds(1));
        assert!(OkStatus::default().holds(399) && !OkStatus::default().holds(400));
    }
}
