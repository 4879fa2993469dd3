//! Distributions of times that are recorded: the declaration of each.

use super::counter::Shown;

/// Declares distributions of times: a sentence, the identifier and the key, then `threshold` where thresholds know it
/// by its key, `named` where it is also recorded by name and tag, `bounded` where it has lower bounds.
macro_rules! timings {
    ($($(#[doc = $sentence:literal])+ $name:ident = $key:literal $($shown:ident)*;)+) => {
        /// A distribution of times that is recorded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Timing {
            $($(#[doc = $sentence])+ $name,)+
        }

        impl Timing {
            /// All of them, in the order in which they are written.
            pub const ALL: [Self; [$($key),+].len()] = [$(Self::$name),+];

            /// Its key: on the wire, in stores and results, and its name in thresholds where they know it.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$name => $key),+ }
            }

            /// Its meaning, in a sentence or two.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$name => concat!($($sentence),+).trim()),+ }
            }

            const fn shown(self) -> &'static [Shown] {
                match self { $(Self::$name => &[$(Shown::$shown),*]),+ }
            }
        }
    };
}

timings! {
    /// From when a call was due to its end as this program read it, the generator's own delays included. Lower bounds of calls that never ended.
    Response = "response" threshold named bounded;
    /// From when a call was sent to its end as this program read it. Lower bounds of calls that never ended.
    Service = "service" threshold named bounded;
    /// The response times, among all those, of calls that failed.
    Failed = "failed" threshold named;
    /// The response times, among all those, of answers whose status is not ok.
    Refused = "refused" named;
    /// From when a call was sent to the first byte of its answer.
    FirstByte = "first_byte" threshold;
    /// Making a connection, without TLS.
    Connect = "connect" threshold;
    /// TLS handshakes.
    Tls = "tls" threshold;
    /// The protocol's own opening exchanges.
    Handshake = "handshake" threshold;
    /// From when a call was sent to its first message. Lower bounds where none came in time.
    FirstMessage = "first_message" threshold named bounded;
    /// From one message of a call to the next. Lower bounds where the next did not come in time.
    MessageGap = "message_gap" threshold named bounded;
    /// From when a call was sent to its last message, of calls that were answered.
    LastMessage = "last_message" threshold named;
    /// The mean time for a message after the first, a value for each answered call with two messages or more.
    EachMessage = "each_message" threshold named;
    /// Generator lag: from when a call was due and had a connection ready, to when it was sent. Open model only.
    Lag = "lag" threshold;
    /// The generator's own delay in receiving, of calls whose time of arrival the kernel reported; by weight.
    Receiving = "receiving";
    /// The least that the target's part of response times can be.
    ResponseLow = "response_low";
    /// The target's part of response times: without the generator's own delays.
    ResponseValue = "response_value";
    /// The most that the target's part of response times can be.
    ResponseHigh = "response_high";
    /// Calls without success: the least that the target's part of their response times can be.
    NotOkLow = "not_ok_low";
    /// Calls without success: the target's part of their response times.
    NotOkValue = "not_ok_value";
    /// Calls without success: the most that the target's part of their response times can be.
    NotOkHigh = "not_ok_high";
    /// The least that the target's part of service times can be.
    ServiceLow = "service_low";
    /// The target's part of service times: without the generator's own delays.
    ServiceValue = "service_value";
    /// The most that the target's part of service times can be.
    ServiceHigh = "service_high";
    /// From sent to the first byte's arrival, without the generator's own delays.
    FirstByteValue = "first_byte_value";
}

impl Timing {
    /// Whether thresholds know it by its key.
    pub fn has_threshold(self) -> bool {
        self.shown().contains(&Shown::threshold)
    }

    /// Whether it is also recorded by name and tag.
    pub fn is_named(self) -> bool {
        self.shown().contains(&Shown::named)
    }

    /// Whether it has lower bounds, of calls that never ended or messages that never came.
    pub fn has_bounds(self) -> bool {
        self.shown().contains(&Shown::bounded)
    }

    /// The key of its lower bounds.
    pub fn bounds_key(self) -> String {
        format!("{}{BOUNDS}", self.key())
    }

    /// The timing of this key.
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|timing| timing.key() == key)
    }
}

/// The end of the key of a distribution's lower bounds.
pub(super) const BOUNDS: &str = "_bounds";
