//! What strangers say on the bus, and another agent's account: things that were said before, noise, and forgeries.

use bytes::Bytes;

use super::bus::Message;
use super::dice::Dice;
use crate::CLUSTER_VERSION;
use crate::frame::{Frame, Kind};
use crate::messages::{Announcement, FromAgent, Note};
use brunt_record::bytes::to_bytes;

/// An agent's account that is not in the run.
const MALLORY: &str = "mallory";

/// Something to say, with the subject that it is said on. Permissions let an agent's account speak on its own subjects alone.
pub(super) fn say(heard: &[Message], controller: &str, dice: &mut Dice) -> Vec<(String, Bytes)> {
    let own = format!("brunt.from.{MALLORY}.{controller}");
    let here = format!("brunt.from.{MALLORY}.here");
    let again = |dice: &mut Dice| heard.get(dice.below(heard.len().max(1) as u64) as usize).cloned();
    let guessed = u128::from(dice.next()) << 64 | u128::from(dice.next());
    match dice.below(7) {
        // As a bus that doubles what it carries.
        0 => {
            let message = again(dice).filter(|message| !message.subject.starts_with("brunt.to."));
            message.map(|message| (message.subject, message.payload)).into_iter().collect()
        }
        // What another agent has said, in its own name.
        1 => again(dice).map(|message| (own, message.payload)).into_iter().collect(),
        // The same with some bytes of it changed.
        2 => again(dice).map(|message| (own, fuzzed(&message.payload, dice))).into_iter().collect(),
        3 => {
            let noise: Vec<u8> = (0..dice.below(200)).map(|_| dice.next() as u8).collect();
            vec![(own, noise.clone().into()), (here, noise.into())]
        }
        4 => {
            let name = dice.pick(&["a1", MALLORY, "\u{1b}[2J", "", "a.b"]);
            let version = dice.pick(&[CLUSTER_VERSION, 1, u16::MAX]);
            vec![(here, announcement(name, dice.next(), version))]
        }
        5 => {
            let words = dice.pick(&[0, 1, 2]);
            let words = match words {
                0 => FromAgent::Claimed,
                1 => FromAgent::Leaving { reason: "because".to_owned() },
                _ => FromAgent::Ready { run: 1 },
            };
            let (session, payload) = (guessed | 1 << 64, piece(&to_bytes(&words)));
            let frame = Frame { kind: Kind::Piece, session, offset: 0, arrived: u64::MAX, payload };
            vec![(own, frame.to_bytes())]
        }
        _ => vec![("brunt.hello".to_owned(), Bytes::from_static(b"what"))],
    }
}

/// A message as a piece of a session has it.
pub(super) fn piece(message: &[u8]) -> Bytes {
    let mut bytes = (message.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(message);
    bytes.into()
}

fn announcement(name: &str, instance: u64, cluster_version: u16) -> Bytes {
    let agent = Announcement {
        name: name.to_owned(),
        instance,
        version: "\u{1b}[31m9.9".to_owned(),
        cluster_version,
        cores: 1,
        connections: 1,
        tags: [("zone".to_owned(), "\u{7}".to_owned())].into(),
        busy: None,
        load: None,
        is_private: true,
        server: String::new(),
    };
    Frame::note(0, to_bytes(&Note::Here(agent))).to_bytes()
}

pub(super) fn fuzzed(payload: &Bytes, dice: &mut Dice) -> Bytes {
    let mut bytes = payload.to_vec();
    for _ in 0..dice.between(1, 8) {
        if !bytes.is_empty() {
            let place = dice.below(bytes.len() as u64) as usize;
            bytes[place] = dice.next() as u8;
        }
    }
    bytes.truncate(dice.between(0, bytes.len() as u64) as usize);
    bytes.into()
}
