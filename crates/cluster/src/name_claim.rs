//! Whether a new agent is the only one with its name: it asks the living ones.

use std::time::Duration;

use async_nats::{Client, Subject, Subscriber};
use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use crate::frame::Frame;
use crate::messages::Note;
use brunt_record::bytes::to_bytes;

/// How long an agent of the same name may take to answer.
const ASKING: Duration = Duration::from_millis(500);

/// Whether a living agent has this subject's name. Of two that ask at once, the one with the lower number gets it.
pub(crate) async fn is_name_taken(client: &Client, names: &mut Subscriber, subject: &Subject, instance: u64) -> bool {
    let say = |note: Note| client.publish(subject.clone(), Frame::note(0, to_bytes(&note)).to_bytes());
    // An agent without the permission to ask gets no answer.
    let _ = say(Note::Asks { instance }).await;
    let until = Instant::now() + ASKING;
    loop {
        tokio::select! {
            Some(message) = names.next() => match Note::read(&message.payload) {
                Some(Note::Taken { instance: other }) if other != instance => return true,
                Some(Note::Asks { instance: other }) if other < instance => return true,
                Some(Note::Asks { instance: other }) if other > instance => drop(say(Note::Taken { instance }).await),
                _ => {}
            },
            () = sleep_until(until) => return false,
        }
    }
}
