//! What every protocol of the target answers by: its configuration, and what all connections of one worker share, which is
//! the clock, chance, the queue and the counters.

mod config;
mod delay;
mod error;
mod listen;
mod servers;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use config::{Delay, Queue, ServedProtocol, ServerConfig, Stall, Tokens};
pub use error::StartError;
pub use listen::{Listen, ListenError};

pub(crate) use config::MAX_DELAY;
pub(crate) use servers::Servers;

pub(crate) use delay::Random;

/// How much output is made at a time for one connection, in bytes: what it may hold back for a
/// peer that does not read is this plus one indivisible piece.
pub(crate) const OUTPUT: usize = 64 * 1024;

/// Which of the answers rendered at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 200 with the default body.
    Default,
    /// 503, the error that `error_rate` asks for.
    Unavailable,
}

/// Who ended the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The client asked for it, and sends nothing more.
    Asked,
    /// This server: the client may be sending still.
    Ours,
}

/// One worker's counters. Only that worker writes them, and each has its cache line to itself, so
/// counting costs what a plain store does.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) answered: AtomicU64,
    pub(crate) accepted: AtomicU64,
}

/// When a worker answers, whether well, and how often it has.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) speaks: ServedProtocol,
    /// How often a WebSocket client gets a message that it did not ask for.
    pub(crate) push: Option<Duration>,
    pub(crate) stall: Option<Stall>,
    pub(crate) tokens: Tokens,
    /// Answers after which a connection closes; `u64::MAX` for never.
    pub(crate) close_after: u64,
    /// Answers given by this worker.
    pub(crate) answered: u64,
    started: Instant,
    delay: Delay,
    /// Shared by all workers; with it how long a request takes one of the servers.
    queue: Option<(Arc<Mutex<Servers>>, Delay)>,
    error_rate: f64,
    random: Random,
    all: Arc<[Counters]>,
    worker: usize,
}

impl Service {
    pub(crate) fn new(
        config: &ServerConfig,
        started: Instant,
        all: Arc<[Counters]>,
        servers: Option<Arc<Mutex<Servers>>>,
        worker: usize,
    ) -> Self {
        Self {
            speaks: config.speaks,
            push: config.push,
            stall: config.stall,
            tokens: config.tokens,
            close_after: config.close_after.unwrap_or(u64::MAX),
            answered: 0,
            started,
            delay: config.delay,
            queue: servers.zip(config.queue.map(|queue| queue.service_time)),
            error_rate: config.error_rate,
            random: Random::new(config.seed, worker),
            all,
            worker,
        }
    }

    /// Time since the server's start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// When an answer decided on now is due; zero, without a look at the clock, for at once.
    #[inline]
    pub(crate) fn due(&mut self) -> Duration {
        if self.delay == Delay::None && self.queue.is_none() {
            return Duration::ZERO;
        }
        let served = self.served();
        served + self.delay.draw(&mut self.random)
    }

    /// The length of a delay.
    pub(crate) fn draw(&mut self, delay: Delay) -> Duration {
        delay.draw(&mut self.random)
    }

    /// When one of the servers is done with a request that arrives now; now without a queue.
    fn served(&mut self) -> Duration {
        let Some((servers, service_time)) = &self.queue else { return self.now() };
        let service_time = service_time.draw(&mut self.random);
        let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that workers take their turns in the order of time.
        servers.take_on(self.now(), service_time)
    }

    #[inline]
    pub(crate) fn is_due(&self, due: Duration) -> bool {
        due.is_zero() || due <= self.now()
    }

    /// Which default answer is next.
    #[inline]
    pub(crate) fn kind(&mut self) -> Kind {
        if self.error_rate > 0.0 && self.random.uniform() < self.error_rate { Kind::Unavailable } else { Kind::Default }
    }

    /// Makes the count visible to others. Called before the bytes go out, so that a client that has
    /// its answer finds it counted.
    #[inline]
    pub(crate) fn publish(&self) {
        if let Some(own) = self.all.get(self.worker) {
            own.answered.store(self.answered, Ordering::Relaxed);
        }
    }

    pub(crate) fn accepted(&self) {
        if let Some(own) = self.all.get(self.worker) {
            own.accepted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers given by all workers, up to this moment.
    pub(crate) fn count(&self) -> u64 {
        self.publish();
        self.all.iter().map(|worker| worker.answered.load(Ordering::Relaxed)).sum()
    }
}
