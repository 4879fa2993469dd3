use proptest::prelude::*;

use super::*;

fn link(most_bytes: usize) -> Link {
    Link::new(1 << 64, most_bytes, 1 << 20)
}

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
        fates in fates(), shorter_at in 0_u64..60,
    ) {
        // A loss costs a wait of at most 8 s. The turns are long enough for all losses.
        let mut fates = fates.into_iter().cycle().take(150);
        let message = |length: &usize| (0..*length).map(|at| (at % 251) as u8 ^ *length as u8).collect::<Vec<u8>>();
        let (mut one, mut other) = (link(1 << 20), link(1 << 20));
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
            if turn == shorter_at {
                // The bus was started anew, and takes shorter messages.
                one.fit(4 << 10);
                other.fit(4 << 10);
            }
            bus.take(one.poll_all(now), &mut fates);
            bus_back.take(other.poll_all(now), &mut fates);
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

fn piece(offset: u64, payload: &'static [u8]) -> Frame {
    Frame { kind: Kind::Piece, session: 1, offset, arrived: u64::MAX, payload: Bytes::from_static(payload) }
}

#[test]
fn a_message_that_is_too_long_is_refused_at_once() {
    assert_eq!(link(1000).receive(piece(0, &[0, 0, 3, 233]), 0), Err(TooLong { most: 1000 }));
    assert_eq!(link(1000).receive(piece(0, &[0, 0, 3, 232]), 0), Ok(Vec::new()));
}

#[test]
fn pieces_from_far_ahead_take_no_memory() {
    let mut link = link(1000);
    for offset in 1..100_000 {
        assert_eq!(link.receive(piece(offset, &[0; 3]), 0), Ok(Vec::new()));
    }
    assert!(link.early.len() <= MOST_EARLY);
    // What is next is taken in all the same.
    assert_eq!(link.receive(piece(0, &[0, 0, 0, 1, 9]), 0).unwrap().first(), Some(&vec![9]));
}

#[test]
fn what_was_lost_with_the_bus_comes_again_within_seconds() {
    let (mut one, mut other) = (link(1 << 30), link(1 << 30));
    one.pace.window = MOST_WINDOW;
    one.send(vec![7; MOST_WINDOW * PIECE_BYTES]);
    assert!(one.poll_all(0).len() >= MOST_WINDOW);
    one.fit(4 << 10);
    let mut now = 0;
    while !one.is_acknowledged() {
        now += 10_000_000;
        for frame in one.poll_all(now) {
            assert!(frame.to_bytes().len() <= 4 << 10);
            other.receive(frame, now).unwrap();
        }
        for frame in other.poll_all(now) {
            one.receive(frame, now).unwrap();
        }
        assert!(now < 2_000_000_000, "{one:?}");
    }
}

/// Sends 20 MB over a link of so many bytes a second with this time there and back: how long it takes in seconds, and the bytes that were sent.
fn carry(bytes_per_s: u64, round_trip_ns: u64) -> (f64, usize) {
    const MS: u64 = 1_000_000;
    let (mut one, mut other) = (link(1 << 30), link(1 << 30));
    one.send(vec![7; 20_000_000]);
    let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
    let (mut sent, mut is_free_at, mut now) = (0, 0, 0);
    let mut has_come = false;
    while !has_come {
        now += MS;
        for frame in one.poll_all(now) {
            sent += frame.payload.len();
            is_free_at = now.max(is_free_at) + frame.payload.len() as u64 * 1_000_000_000 / bytes_per_s;
            there.push_back((is_free_at + round_trip_ns / 2, frame));
        }
        while let Some((_, frame)) = there.pop_front_if(|(at, _)| *at <= now) {
            has_come |= !other.receive(frame, now).unwrap().is_empty();
        }
        back.extend(other.poll_all(now).into_iter().map(|frame| (now + round_trip_ns / 2, frame)));
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
