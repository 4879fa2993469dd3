//! A link: messages between a controller and an agent, each once and in order, over a bus that may lose, double and reorder.
//!
//! Core NATS delivers a message at most once, and none while it is being restarted. So each side cuts its messages into numbered
//! parts, keeps a part until the other side has acknowledged it, and sends the oldest again after a while. No I/O happens here, and no
//! clock is read.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::frame::{Frame, HEAD_BYTES, Kind};

/// The most bytes of a message in one frame.
const PIECE_BYTES: usize = 64 << 10;
/// Parts on their way: at first, and at most. A subscriber that stops reading for a while is then far from what the server cuts it off for.
const FIRST_WINDOW: usize = 4;
const MOST_WINDOW: usize = 32;
/// The shortest and the longest time to wait for an acknowledgement before a part is sent again, in nanoseconds.
const LEAST_PATIENCE_NS: u64 = 300_000_000;
const MOST_PATIENCE_NS: u64 = 8_000_000_000;
/// For how long parts may queue on their way before fewer are sent at once, in nanoseconds.
const QUEUEING_NS: u64 = 200_000_000;

/// A part that was sent and not acknowledged yet.
#[derive(Debug)]
struct Outgoing {
    number: u64,
    is_last: bool,
    payload: Bytes,
    sent_ns: u64,
    /// Whether it was sent more than once: nobody knows which of them an acknowledgement is for.
    is_resent: bool,
}

/// How long to wait for acknowledgements, and how much to send without one: RFC 6298, with a window that keeps queues on the way short.
#[derive(Debug)]
struct Pace {
    /// The smoothed time there and back and its deviation, once there is one; in nanoseconds.
    smoothed: Option<(u64, u64)>,
    least_ns: u64,
    patience_ns: u64,
    window: usize,
    most_window: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            smoothed: None,
            least_ns: u64::MAX,
            patience_ns: LEAST_PATIENCE_NS,
            window: FIRST_WINDOW,
            most_window: MOST_WINDOW,
        }
    }
}

impl Pace {
    /// Counts acknowledged parts. `took_ns` is the round trip of the last one; none if it was sent twice, as then it is unknown which copy was acknowledged.
    fn acknowledged(&mut self, parts: usize, took_ns: Option<u64>) {
        let Some(took_ns) = took_ns else { return };
        let (mean, deviation) = match self.smoothed {
            None => (took_ns, took_ns / 2),
            Some((mean, deviation)) => ((7 * mean + took_ns) / 8, (3 * deviation + mean.abs_diff(took_ns)) / 4),
        };
        self.smoothed = Some((mean, deviation));
        self.least_ns = self.least_ns.min(took_ns);
        self.patience_ns = mean.saturating_add(4 * deviation).clamp(LEAST_PATIENCE_NS, MOST_PATIENCE_NS);
        self.window = match took_ns - self.least_ns {
            queued_ns if queued_ns < QUEUEING_NS => self.window + parts,
            _ => self.window - 1,
        };
        self.window = self.window.clamp(1, self.most_window);
    }

    /// Nothing was acknowledged for as long as there was patience for.
    fn timed_out(&mut self) {
        self.patience_ns = (2 * self.patience_ns).min(MOST_PATIENCE_NS);
        self.window = (self.window / 2).max(1);
    }
}

/// More than a message may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of more than {most} bytes came over the bus")]
pub(crate) struct TooLong {
    most: usize,
}

/// One side of a link.
#[derive(Debug)]
pub(crate) struct Link {
    session: u64,
    /// The longest message that is taken in, in bytes.
    most_bytes: usize,
    piece_bytes: usize,
    next: u64,
    /// Messages with parts that are still to be sent for the first time.
    waiting: VecDeque<Bytes>,
    outgoing: VecDeque<Outgoing>,
    pace: Pace,
    /// Since when the oldest part on its way waits for an acknowledgement, in nanoseconds.
    waits_since: u64,
    /// How many of the peer's parts have arrived without a gap.
    arrived: u64,
    /// Parts that came before others that are missing.
    early: BTreeMap<u64, (bool, Bytes)>,
    message: Vec<u8>,
    owes_acknowledgement: bool,
}

impl Link {
    pub(crate) fn new(session: u64, most_bytes: usize) -> Self {
        Self {
            session,
            most_bytes,
            piece_bytes: PIECE_BYTES,
            next: 1,
            waiting: VecDeque::new(),
            outgoing: VecDeque::new(),
            pace: Pace::default(),
            waits_since: 0,
            arrived: 0,
            early: BTreeMap::new(),
            message: Vec::new(),
            owes_acknowledgement: false,
        }
    }

    /// The same over a bus that takes messages of so many bytes, and one of so many links that have messages on their way at once.
    pub(crate) fn sharing(mut self, most_payload: usize, links: usize) -> Self {
        self.piece_bytes = most_payload.saturating_sub(HEAD_BYTES).clamp(1, PIECE_BYTES);
        self.pace.most_window = (2 * MOST_WINDOW / links.max(1)).clamp(1, MOST_WINDOW);
        self.pace.window = FIRST_WINDOW.min(self.pace.most_window);
        self
    }

    pub(crate) fn session(&self) -> u64 {
        self.session
    }

    /// Whether the peer has everything that was sent.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.outgoing.is_empty() && self.waiting.is_empty()
    }

    /// Sends a message, as soon as [`Link::poll`] is asked.
    pub(crate) fn send(&mut self, message: impl Into<Bytes>) {
        self.waiting.push_back(message.into());
    }

    fn has_timed_out(&self, now_ns: u64) -> bool {
        !self.outgoing.is_empty() && now_ns >= self.waits_since.saturating_add(self.pace.patience_ns)
    }

    fn has_room(&self) -> bool {
        self.outgoing.len() < self.pace.window
    }

    /// Whether the peer waits for an acknowledgement, which nothing carries that is to be sent.
    pub(crate) fn only_acknowledges(&self, now_ns: u64) -> bool {
        let has_more = self.has_timed_out(now_ns) || self.has_room() && !self.waiting.is_empty();
        self.owes_acknowledgement && !has_more
    }

    /// A note of this session, which acknowledges what has come.
    pub(crate) fn note(&mut self, payload: Vec<u8>) -> Frame {
        self.owes_acknowledgement = false;
        Frame { arrived: self.arrived, ..Frame::note(self.session, payload) }
    }

    /// Takes in that the peer has this many parts.
    pub(crate) fn acknowledge(&mut self, arrived: u64, now_ns: u64) {
        let (mut parts, mut took_ns) = (0, None);
        while self.outgoing.front().is_some_and(|part| part.number <= arrived)
            && let Some(part) = self.outgoing.pop_front()
        {
            parts += 1;
            took_ns = (!part.is_resent).then(|| now_ns.saturating_sub(part.sent_ns));
        }
        if parts > 0 {
            self.waits_since = now_ns;
            self.pace.acknowledged(parts, took_ns);
        }
    }

    /// Takes a frame in that came at `now_ns`, a note as well; gives the messages that it completes, in order.
    ///
    /// # Errors
    /// When a message is longer than it may be. The link is of no use then.
    pub(crate) fn receive(&mut self, frame: Frame, now_ns: u64) -> Result<Vec<Vec<u8>>, TooLong> {
        self.acknowledge(frame.arrived, now_ns);
        let is_last = match frame.kind {
            Kind::Nothing | Kind::Note => return Ok(Vec::new()),
            Kind::Part => false,
            Kind::Last => true,
        };
        // What came twice is acknowledged once more: the acknowledgement may have been lost.
        self.owes_acknowledgement = true;
        if frame.number > self.arrived && frame.number <= self.arrived + MOST_WINDOW as u64 {
            self.early.insert(frame.number, (is_last, frame.payload));
        }
        let mut messages = Vec::new();
        while let Some((is_last, payload)) = self.early.remove(&(self.arrived + 1)) {
            self.arrived += 1;
            if self.message.len() + payload.len() > self.most_bytes {
                return Err(TooLong { most: self.most_bytes });
            }
            self.message.extend_from_slice(&payload);
            if is_last {
                messages.push(std::mem::take(&mut self.message));
            }
        }
        Ok(messages)
    }

    /// Takes the next part that is to be sent for the first time; none if all were sent.
    fn next_part(&mut self, now_ns: u64) -> Option<()> {
        let message = self.waiting.front_mut()?;
        let payload = message.split_to(message.len().min(self.piece_bytes));
        let is_last = message.is_empty();
        if is_last {
            self.waiting.pop_front();
        }
        if self.outgoing.is_empty() {
            self.waits_since = now_ns;
        }
        let part = Outgoing { number: self.next, is_last, payload, sent_ns: now_ns, is_resent: false };
        self.next += 1;
        self.outgoing.push_back(part);
        Some(())
    }

    fn frame(&self, part: &Outgoing) -> Frame {
        Frame {
            kind: if part.is_last { Kind::Last } else { Kind::Part },
            session: self.session,
            number: part.number,
            arrived: self.arrived,
            payload: part.payload.clone(),
        }
    }

    /// The frames to be sent now: the oldest part if it was not acknowledged in time, new parts, or an acknowledgement alone.
    pub(crate) fn poll(&mut self, now_ns: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.has_timed_out(now_ns) {
            self.pace.timed_out();
            self.waits_since = now_ns;
            if let Some(oldest) = self.outgoing.front_mut() {
                oldest.is_resent = true;
            }
            frames.extend(self.outgoing.front().map(|oldest| self.frame(oldest)));
        }
        while self.has_room() && self.next_part(now_ns).is_some() {
            frames.extend(self.outgoing.back().map(|part| self.frame(part)));
        }
        if frames.is_empty() && self.owes_acknowledgement {
            let (session, arrived) = (self.session, self.arrived);
            frames.push(Frame { kind: Kind::Nothing, session, number: 0, arrived, payload: Bytes::new() });
        }
        self.owes_acknowledgement = false;
        frames
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a bus does to a frame.
    #[derive(Debug, Clone, Copy)]
    enum Fate {
        Arrives,
        Lost,
        Doubled,
        Late(usize),
    }

    fn fates() -> impl Strategy<Value = Vec<Fate>> {
        let fate = prop_oneof![
            4 => Just(Fate::Arrives),
            2 => Just(Fate::Lost),
            1 => Just(Fate::Doubled),
            2 => (1_usize..9).prop_map(Fate::Late),
        ];
        prop::collection::vec(fate, 1..40)
    }

    /// One direction of a bus: frames, and after how many turns they arrive.
    #[derive(Default)]
    struct Bus(Vec<(usize, Frame)>);

    impl Bus {
        fn take(&mut self, frames: Vec<Frame>, fates: &mut impl Iterator<Item = Fate>) {
            for frame in frames {
                match fates.next().unwrap_or(Fate::Arrives) {
                    Fate::Arrives => self.0.push((0, frame)),
                    Fate::Lost => {}
                    Fate::Doubled => self.0.extend([(0, frame.clone()), (3, frame)]),
                    Fate::Late(turns) => self.0.push((turns, frame)),
                }
            }
        }

        fn deliver(&mut self) -> Vec<Frame> {
            let (now, later): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.0).into_iter().partition(|(after, _)| *after == 0);
            self.0 = later.into_iter().map(|(after, frame)| (after - 1, frame)).collect();
            now.into_iter().map(|(_, frame)| frame).collect()
        }
    }

    proptest! {
        #[test]
        fn messages_arrive_once_and_in_order(
            there in prop::collection::vec(0_usize..3 * PIECE_BYTES, 0..12),
            back in prop::collection::vec(0_usize..100, 0..60),
            fates in fates(),
        ) {
            // A loss costs a wait of at most 8 s. The turns are long enough for all losses.
            let mut fates = fates.into_iter().cycle().take(150);
            let message = |length: &usize| (0..*length).map(|at| (at % 251) as u8 ^ *length as u8).collect::<Vec<u8>>();
            let (mut one, mut other) = (Link::new(1, 1 << 20), Link::new(1, 1 << 20));
            for length in &there {
                one.send(message(length));
            }
            for length in &back {
                other.send(message(length));
            }
            let (mut bus, mut bus_back) = (Bus::default(), Bus::default());
            let (mut got, mut got_back) = (Vec::new(), Vec::new());
            for turn in 0..20_000 {
                let now = turn * LEAST_PATIENCE_NS / 4;
                bus.take(one.poll(now), &mut fates);
                bus_back.take(other.poll(now), &mut fates);
                for frame in bus.deliver() {
                    got.extend(other.receive(frame, now).unwrap());
                }
                for frame in bus_back.deliver() {
                    got_back.extend(one.receive(frame, now).unwrap());
                }
                if one.is_acknowledged() && other.is_acknowledged() {
                    break;
                }
            }
            prop_assert!(one.is_acknowledged() && other.is_acknowledged());
            prop_assert!(got.iter().eq(there.iter().map(message).collect::<Vec<_>>().iter()));
            prop_assert!(got_back.iter().eq(back.iter().map(message).collect::<Vec<_>>().iter()));
        }
    }

    #[test]
    fn a_message_without_end_is_refused() {
        let mut link = Link::new(1, 1000);
        let part =
            |number| Frame { kind: Kind::Part, session: 1, number, arrived: 0, payload: Bytes::from_static(&[0; 400]) };
        assert!(link.receive(part(1), 0).is_ok() && link.receive(part(2), 0).is_ok());
        assert_eq!(link.receive(part(3), 0), Err(TooLong { most: 1000 }));
    }

    #[test]
    fn parts_from_far_ahead_take_no_memory() {
        let mut link = Link::new(1, 1000);
        for number in 2..100_000 {
            let frame = Frame { kind: Kind::Last, session: 1, number, arrived: u64::MAX, payload: Bytes::new() };
            assert_eq!(link.receive(frame, 0), Ok(Vec::new()));
        }
        assert!(link.early.len() < MOST_WINDOW);
    }

    /// Sends 20 MB over a link of so many bytes a second with this time there and back: how long it takes in seconds, and the bytes that were sent.
    fn carry(bytes_per_s: u64, round_trip_ns: u64) -> (f64, usize) {
        const MS: u64 = 1_000_000;
        let (mut one, mut other) = (Link::new(1, 1 << 30).sharing(1 << 20, 1), Link::new(1, 1 << 30));
        one.send(vec![7; 20_000_000]);
        let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
        let (mut sent, mut is_free_at, mut now) = (0, 0, 0);
        let mut has_come = false;
        while !has_come {
            now += MS;
            for frame in one.poll(now) {
                sent += frame.payload.len();
                is_free_at = now.max(is_free_at) + frame.payload.len() as u64 * 1_000_000_000 / bytes_per_s;
                there.push_back((is_free_at + round_trip_ns / 2, frame));
            }
            while let Some((_, frame)) = there.pop_front_if(|(at, _)| *at <= now) {
                has_come |= !other.receive(frame, now).unwrap().is_empty();
            }
            back.extend(other.poll(now).into_iter().map(|frame| (now + round_trip_ns / 2, frame)));
            while let Some((_, frame)) = back.pop_front_if(|(at, _)| *at <= now) {
                one.receive(frame, now).unwrap();
            }
            assert!(now < 600_000 * MS, "it never ends: {one:?}");
        }
        (now as f64 / 1e9, sent)
    }

    #[test]
    fn a_slow_link_carries_everything_about_once() {
        for (bytes_per_s, round_trip_ns, most_s) in [
            (2_000_000, 1_000_000, 13.0),
            (2_000_000, 100_000_000, 13.0),
            (1_000_000, 100_000_000, 25.0),
            (100_000_000, 100_000_000, 2.0),
        ] {
            let (took_s, sent) = carry(bytes_per_s, round_trip_ns);
            assert!(took_s <= most_s && sent <= 24_000_000, "{bytes_per_s} B/s: {took_s} s, {sent} bytes");
        }
    }
}
