//! What the server is asked to be: addresses, and how well or badly it shall behave.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::error::StartError;
use super::listen::Listen;
use crate::tls::Tls;

/// The longest delay (or mean of delays) that can be asked for.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(3600);

/// The most servers in a queue.
const MAX_SERVERS: usize = 65_536;

/// How long a default answer takes, counted from the arrival of its request. Every request waits
/// on its own, as if there were a server for each; answers on one connection keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delay {
    /// No time at all: the fast path.
    #[default]
    None,
    /// Always the same.
    Fixed(Duration),
    /// Evenly spread from `min` (included) to `max` (excluded).
    Uniform {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// Exponentially distributed: most short, a few long.
    Exponential {
        /// The mean.
        mean: Duration,
    },
}

impl Delay {
    /// The mean over many.
    pub fn mean(&self) -> Duration {
        match *self {
            Self::None => Duration::ZERO,
            Self::Fixed(length) | Self::Exponential { mean: length } => length,
            Self::Uniform { min, max } => (min + max) / 2,
        }
    }

    fn validate(&self, field: &'static str) -> Result<(), StartError> {
        let wrong = |expected, got: String| Err(StartError::Config { field, expected, got });
        match *self {
            Self::Fixed(longest) | Self::Uniform { max: longest, .. } | Self::Exponential { mean: longest }
                if longest > MAX_DELAY =>
            {
                wrong("at most 1 hour", format!("{longest:?}"))
            }
            Self::Uniform { min, max } if min > max => wrong("min not above max", format!("{min:?} to {max:?}")),
            _ => Ok(()),
        }
    }
}

/// Servers that default answers come from, first come, first served over all connections and workers: with
/// `count` servers and a mean service time T, the target's capacity is `count` / T. What waits for a server waits
/// in line; a client that goes away meanwhile leaves its place in it taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// How many there are; 1 to 65,536.
    pub count: usize,
    /// How long each request takes one of them.
    pub service_time: Delay,
}

/// The tokens that a made-up language model answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tokens {
    /// How long the first takes.
    pub first: Delay,
    /// How long after one the next comes.
    pub gap: Delay,
    /// How many there are where a request does not say; 1 to 1,000,000.
    pub count: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        let fixed = |ms| Delay::Fixed(Duration::from_millis(ms));
        Self { first: fixed(200), gap: fixed(20), count: 50 }
    }
}

/// A server that freezes at fixed times: during the last `length` of every `period`, counted from
/// the server's start ([`Server::started`](crate::server::Server::started)), it reads and answers nothing,
/// then carries on with all that has queued up. So a run that starts with the server is served
/// first.
///
/// With a length of 300 ms and a period of 1 s it is frozen in 0.7..1.0 s, 1.7..2.0 s, and so on. A
/// request that arrives 0.8 s after the start is answered at 1.0 s: 200 ms later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// How long one stall lasts; shorter than the period, more than zero.
    pub length: Duration,
    /// From the end of one stall to the end of the next.
    pub period: Duration,
}

impl Stall {
    /// How much longer nothing is answered, at this time since the server's start; `None` while it
    /// serves.
    pub fn remaining(&self, since_start: Duration) -> Option<Duration> {
        let period = self.period.as_nanos().max(1);
        let position = since_start.as_nanos() % period;
        let frozen_from = period.saturating_sub(self.length.as_nanos());
        (position >= frozen_from).then(|| {
            let left = period - position;
            Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX))
        })
    }
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServedProtocol {
    /// HTTP/1.1.
    #[default]
    Http,
    /// WebSocket, on any path: every message comes back. An answer is an echo; a wrong one, at the share
    /// `error_rate`, is a message whose last byte differs.
    WebSocket,
    /// Thrift, binary or compact, framed or unframed: every method returns its first argument. A wrong answer is a
    /// `TApplicationException`.
    Thrift,
}

/// What a server listens on and how it behaves. [`ServerConfig::default`] is the fastest: one worker, a
/// 13-byte body, no delay, no faults.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen; 127.0.0.1 on a free port by default.
    pub address: Listen,
    /// Threads, each with its own event loop, and on TCP its own listening socket. At least 1. The
    /// kernel spreads connections over them by a hash of their addresses, so unevenly when few.
    pub workers: usize,
    /// What it speaks.
    pub speaks: ServedProtocol,
    /// With WebSocket: how often each client gets a message (`push`) that it did not ask for.
    pub push: Option<Duration>,
    /// With HTTP: what a language model's tokens are.
    pub tokens: Tokens,
    /// Length of the default answer's body, in bytes.
    pub body_bytes: u64,
    /// How long a default answer takes.
    pub delay: Delay,
    /// What default answers wait in line for; any [`delay`](Self::delay) comes after it.
    pub queue: Option<Queue>,
    /// The share of default answers, 0 to 1, that are `503 Service Unavailable` instead of 200.
    pub error_rate: f64,
    /// When the server as a whole freezes.
    pub stall: Option<Stall>,
    /// Close each connection with its N-th answer, which says so (`Connection: close`).
    pub close_after: Option<u64>,
    /// Speak TLS.
    pub tls: Option<Tls>,
    /// Whether HTTP/3 is spoken as well, on the UDP port of the same number; needs TLS, and [`ServedProtocol::Http`].
    pub http3: bool,
    /// Where the randomness of delays and errors starts: the same seed, the same sequence in each
    /// worker.
    pub seed: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            address: Listen::Tcp((Ipv4Addr::LOCALHOST, 0).into()),
            workers: 1,
            speaks: ServedProtocol::Http,
            push: None,
            tokens: Tokens::default(),
            body_bytes: 13,
            delay: Delay::None,
            queue: None,
            error_rate: 0.0,
            stall: None,
            close_after: None,
            tls: None,
            http3: false,
            seed: 0,
        }
    }
}

impl ServerConfig {
    /// Whether all figures make sense, on their own and together.
    pub(crate) fn validate(&self) -> Result<(), StartError> {
        let wrong = |field, expected, got: String| Err(StartError::Config { field, expected, got });
        if !(1..=1024).contains(&self.workers) {
            return wrong("workers", "1 to 1024", self.workers.to_string());
        }
        if !(0.0..=1.0).contains(&self.error_rate) {
            return wrong("error rate", "a number from 0 to 1", self.error_rate.to_string());
        }
        if self.close_after == Some(0) {
            return wrong("close after", "at least 1 answer", "0".to_owned());
        }
        if self.http3 && (self.tls.is_none() || !matches!(self.address, Listen::Tcp(_))) {
            return wrong("http3", "TLS and a TCP address", self.address.to_string());
        }
        self.delay.validate("delay")?;
        self.tokens.first.validate("first token")?;
        self.tokens.gap.validate("token gap")?;
        if !(1..=1_000_000).contains(&self.tokens.count) {
            return wrong("tokens", "1 to 1000000", self.tokens.count.to_string());
        }
        self.validate_queue()?;
        self.validate_stall()
    }

    fn validate_queue(&self) -> Result<(), StartError> {
        let Some(Queue { count, service_time }) = self.queue else { return Ok(()) };
        service_time.validate("service time")?;
        let wrong = |field, expected, got: String| Err(StartError::Config { field, expected, got });
        if !(1..=MAX_SERVERS).contains(&count) {
            return wrong("servers", "1 to 65536", count.to_string());
        }
        if service_time.mean().is_zero() {
            return wrong("service time", "a time above zero", "0s".to_owned());
        }
        Ok(())
    }

    fn validate_stall(&self) -> Result<(), StartError> {
        match self.stall {
            Some(Stall { length, period }) if length.is_zero() || length >= period => Err(StartError::Config {
                field: "stall",
                expected: "a length above zero and below its period",
                got: format!("{length:?} every {period:?}"),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_stall_is_the_last_part_of_each_period() {
        let stall = Stall { length: MS(300), period: MS(1000) };
        assert_eq!(stall.remaining(MS(0)), None);
        assert_eq!(stall.remaining(Duration::from_nanos(699_999_999)), None);
        assert_eq!(stall.remaining(MS(700)), Some(MS(300)));
        assert_eq!(stall.remaining(MS(800)), Some(MS(200)));
        assert_eq!(stall.remaining(MS(1000)), None);
        assert_eq!(stall.remaining(MS(7999)), Some(MS(1)));
    }

    proptest! {
        #[test]
        fn every_stall_ends_when_it_says(length in 1_u64..1000, more in 1_u64..1000, at in 0_u64..1_000_000) {
            let stall = Stall { length: MS(length), period: MS(length + more) };
            if let Some(left) = stall.remaining(MS(at)) {
                prop_assert!(left > Duration::ZERO && left <= stall.length);
                prop_assert_eq!(stall.remaining(MS(at) + left), None);
            }
        }
    }

    #[test]
    fn figures_that_make_no_sense_are_refused_with_their_name() {
        let ok = ServerConfig::default;
        let delay = |delay| ServerConfig { delay, ..ok() };
        let queue = |count, service_time| ServerConfig { queue: Some(Queue { count, service_time }), ..ok() };
        let stall = |length, period| ServerConfig { stall: Some(Stall { length, period }), ..ok() };
        let wrong = [
            (ServerConfig { workers: 0, ..ok() }, "workers: expected 1 to 1024, got 0"),
            (ServerConfig { error_rate: 1.5, ..ok() }, "error rate: expected a number from 0 to 1, got 1.5"),
            (ServerConfig { error_rate: f64::NAN, ..ok() }, "error rate: expected a number from 0 to 1, got NaN"),
            (ServerConfig { close_after: Some(0), ..ok() }, "close after: expected at least 1 answer, got 0"),
            (delay(Delay::Fixed(Duration::MAX)), "delay: expected at most 1 hour"),
            (delay(Delay::Exponential { mean: MS(3_600_001) }), "delay: expected at most 1 hour"),
            (delay(Delay::Uniform { min: MS(2), max: MS(1) }), "delay: expected min not above max, got 2ms to 1ms"),
            (queue(0, Delay::Fixed(MS(1))), "servers: expected 1 to 65536, got 0"),
            (queue(1, Delay::None), "service time: expected a time above zero, got 0s"),
            (queue(1, Delay::Fixed(Duration::MAX)), "service time: expected at most 1 hour"),
            (stall(MS(5), MS(5)), "stall: expected a length above zero and below its period, got 5ms every 5ms"),
            (stall(MS(0), MS(5)), "stall: expected"),
        ];
        for (config, message) in wrong {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        assert!(ok().validate().is_ok());
    }
}
