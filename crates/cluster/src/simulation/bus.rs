//! The simulated bus: loses, doubles, delays and reorders, is slow, stands still, and is away.

use bytes::Bytes;

use super::dice::Dice;

const MS: u64 = 1_000_000;

/// What a bus does to messages.
#[derive(Debug, Clone)]
pub(super) struct Weather {
    /// How many of a thousand messages are lost, and come twice.
    pub(super) loses: u64,
    pub(super) doubles: u64,
    /// How long a message is on its way, in nanoseconds: at least, and how much more by chance.
    pub(super) delay_ns: u64,
    pub(super) jitter_ns: u64,
    /// Bytes a second that each side can send.
    pub(super) bytes_per_s: u64,
}

impl Weather {
    pub(super) const FAIR: Self =
        Self { loses: 0, doubles: 0, delay_ns: MS / 5, jitter_ns: MS / 5, bytes_per_s: 100_000_000 };
}

/// A message on its way.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) subject: String,
    pub(super) payload: Bytes,
    /// Which life of the bus it was given to: what is on its way is lost with it.
    life: u64,
}

pub(super) struct Bus {
    pub(super) weather: Weather,
    /// Until when it is away, and until when it stands still.
    pub(super) away_until: u64,
    pub(super) still_until: u64,
    life: u64,
    /// When what a side has sent will have left it.
    free_at: Vec<u64>,
    /// The latest messages, which strangers say again.
    pub(super) heard: Vec<Message>,
    /// How many messages it was given, and whether one of them had these bytes.
    pub(super) count: u64,
    pub(super) secret: &'static [u8],
    pub(super) has_seen_it: bool,
}

impl Bus {
    pub(super) fn new(weather: Weather, sides: usize) -> Self {
        Self {
            weather,
            away_until: 0,
            still_until: 0,
            life: 0,
            free_at: vec![0; sides],
            heard: Vec::new(),
            count: 0,
            secret: b"hunter2",
            has_seen_it: false,
        }
    }

    /// It is away until then, with all that is on its way.
    pub(super) fn go_away(&mut self, until: u64) {
        self.away_until = until;
        self.still_until = 0;
        self.life += 1;
    }

    pub(super) fn is_away(&self, now: u64) -> bool {
        now < self.away_until
    }

    /// Whether this has not been lost on its way.
    pub(super) fn has(&self, message: &Message) -> bool {
        message.life == self.life
    }

    /// Takes a message of a side at `now`. When it arrives, each time that it does.
    pub(super) fn carry(
        &mut self,
        side: usize,
        subject: &str,
        payload: &Bytes,
        now: u64,
        dice: &mut Dice,
    ) -> Vec<(u64, Message)> {
        if self.is_away(now) {
            return Vec::new();
        }
        let message = Message { subject: subject.to_owned(), payload: payload.clone(), life: self.life };
        self.count += 1;
        self.has_seen_it |= payload.windows(self.secret.len()).any(|bytes| bytes == self.secret);
        if self.heard.len() == 300 {
            self.heard.remove(0);
        }
        self.heard.push(message.clone());
        let Weather { loses, doubles, delay_ns, jitter_ns, bytes_per_s } = self.weather;
        let takes = payload.len() as u64 * 1_000_000_000 / bytes_per_s;
        let left = self.free_at[side].max(now) + takes;
        self.free_at[side] = left;
        let mut arrivals = Vec::new();
        let copies = 1 + u64::from(dice.in_thousand(doubles));
        for _ in 0..copies {
            if !dice.in_thousand(loses) {
                let at = left.max(self.still_until) + delay_ns + dice.below(jitter_ns + 1);
                arrivals.push((at, message.clone()));
            }
        }
        arrivals
    }
}
