//! A link: messages between a controller and an agent, each once and in order, over a bus that may lose, double and reorder.
//!
//! Core NATS delivers a message at most once, and none while it is being restarted. So each side cuts its messages into numbered
//! parts, keeps a part until the other side has acknowledged it, and sends it again after a while. No I/O happens here, and no
//! clock is read.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::frame::{Frame, Kind};

/// The most bytes of a message in one frame; a NATS server's default limit is 1 MiB.
const PART_BYTES: usize = 192 << 10;
/// Parts on their way at most. A subscriber that stops reading for a while is then far from what the server cuts it off for.
const WINDOW: usize = 32;
/// How long to wait for an acknowledgement before a part is sent again, in nanoseconds.
pub(crate) const RESEND_NS: u64 = 500_000_000;

/// A part that was not acknowledged yet.
#[derive(Debug)]
struct Outgoing {
    number: u64,
    is_last: bool,
    payload: Bytes,
    /// When it was last sent; none if it never was.
    sent_ns: Option<u64>,
}

impl Outgoing {
    /// Whether it is to be sent, or sent again.
    fn is_due(&self, now_ns: u64) -> bool {
        self.sent_ns.is_none_or(|sent_ns| now_ns >= sent_ns.saturating_add(RESEND_NS))
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
    next: u64,
    outgoing: VecDeque<Outgoing>,
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
            next: 1,
            outgoing: VecDeque::new(),
            arrived: 0,
            early: BTreeMap::new(),
            message: Vec::new(),
            owes_acknowledgement: false,
        }
    }

    pub(crate) fn session(&self) -> u64 {
        self.session
    }

    /// Whether the peer has everything that was sent.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Sends a message, as soon as [`Link::poll`] is asked.
    pub(crate) fn send(&mut self, message: impl Into<Bytes>) {
        let mut rest = message.into();
        loop {
            let payload = rest.split_to(rest.len().min(PART_BYTES));
            let is_last = rest.is_empty();
            self.outgoing.push_back(Outgoing { number: self.next, is_last, payload, sent_ns: None });
            self.next += 1;
            if is_last {
                return;
            }
        }
    }

    /// Whether the peer waits for an acknowledgement, which nothing carries that is to be sent.
    pub(crate) fn only_acknowledges(&self, now_ns: u64) -> bool {
        self.owes_acknowledgement && !self.outgoing.iter().take(WINDOW).any(|part| part.is_due(now_ns))
    }

    /// A note of this session, which acknowledges what has come.
    pub(crate) fn note(&mut self, payload: Vec<u8>) -> Frame {
        self.owes_acknowledgement = false;
        Frame { arrived: self.arrived, ..Frame::note(self.session, payload) }
    }

    /// Takes a frame in, a note as well; gives the messages that it completes, in order.
    ///
    /// # Errors
    /// When a message is longer than it may be. The link is of no use then.
    pub(crate) fn receive(&mut self, frame: Frame) -> Result<Vec<Vec<u8>>, TooLong> {
        while self.outgoing.front().is_some_and(|part| part.number <= frame.arrived && part.sent_ns.is_some()) {
            self.outgoing.pop_front();
        }
        let is_last = match frame.kind {
            Kind::Nothing | Kind::Note => return Ok(Vec::new()),
            Kind::Part => false,
            Kind::Last => true,
        };
        // What came twice is acknowledged once more: the acknowledgement may have been lost.
        self.owes_acknowledgement = true;
        if frame.number > self.arrived && frame.number <= self.arrived + WINDOW as u64 {
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

    /// The frames to be sent now: new parts, those that were not acknowledged in time, or an acknowledgement alone.
    pub(crate) fn poll(&mut self, now_ns: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        for part in self.outgoing.iter_mut().take(WINDOW) {
            if part.is_due(now_ns) {
                part.sent_ns = Some(now_ns);
                frames.push(Frame {
                    kind: if part.is_last { Kind::Last } else { Kind::Part },
                    session: self.session,
                    number: part.number,
                    arrived: self.arrived,
                    payload: part.payload.clone(),
                });
            }
        }
        if frames.is_empty() && self.owes_acknowledgement {
            frames.push(Frame {
                kind: Kind::Nothing,
                session: self.session,
                number: 0,
                arrived: self.arrived,
                payload: Bytes::new(),
            });
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
            there in prop::collection::vec(0_usize..3 * PART_BYTES, 0..12),
            back in prop::collection::vec(0_usize..100, 0..60),
            fates in fates(),
        ) {
            // 3,000 turns hold 750 resends of a part: more than the losses.
            let mut fates = fates.into_iter().cycle().take(600);
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
            for turn in 0..3000 {
                let now = turn * RESEND_NS / 4;
                bus.take(one.poll(now), &mut fates);
                bus_back.take(other.poll(now), &mut fates);
                for frame in bus.deliver() {
                    got.extend(other.receive(frame).unwrap());
                }
                for frame in bus_back.deliver() {
                    got_back.extend(one.receive(frame).unwrap());
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
        assert!(link.receive(part(1)).is_ok() && link.receive(part(2)).is_ok());
        assert_eq!(link.receive(part(3)), Err(TooLong { most: 1000 }));
    }

    #[test]
    fn parts_from_far_ahead_take_no_memory() {
        let mut link = Link::new(1, 1000);
        for number in 2..100_000 {
            let frame = Frame { kind: Kind::Last, session: 1, number, arrived: u64::MAX, payload: Bytes::new() };
            assert_eq!(link.receive(frame), Ok(Vec::new()));
        }
        assert!(link.early.len() < WINDOW);
    }
}
