//! Limits of a message, looked at before it is read: how long its texts are, how many values it has, and how deep they
//! nest. A sender may say anything.

use brunt_record::bytes::{self, Limits, Unreadable};

use crate::messages::FromAgent;

/// The most values in a message: a second of 500 names, each with a distribution of 1,000 different times.
const MOST_VALUES: u64 = 4 << 20;
/// The longest text in bytes: a script's error with its place and its traceback.
const LONGEST_TEXT: usize = 16 << 10;
/// The longest text in a second, in bytes: names, excerpts and reasons are some hundred bytes long.
const LONGEST_IN_SECOND: usize = 4 << 10;

/// What an agent says.
///
/// # Errors
/// When it is more than an agent sends, ends early, or is of another version.
pub(crate) fn read(message: &[u8]) -> Result<FromAgent, Unreadable> {
    let text = if bytes::variant(message) == Some("Second") { LONGEST_IN_SECOND } else { LONGEST_TEXT };
    bytes::from_bytes_within(message, &Limits { values: MOST_VALUES, text, ..Limits::WIDEST })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use brunt_record::bytes::to_bytes;
    use brunt_record::interval::Interval;
    use brunt_record::snapshot::{Phase, Snapshot};

    fn second(name: &str) -> Vec<u8> {
        let mut snapshot = Snapshot::default();
        snapshot.figures.requests.named("request").answered(200, 5, 4);
        snapshot.events.add(name, 1);
        let (phase, second, length_ns) = (Phase::Measured, 0, 1);
        let interval =
            Interval { worker: 0, phase, second, length_ns, snapshot, open_connections: 0, in_flight: 0, oldest_ns: 0 };
        to_bytes(&FromAgent::Second { run: 1, interval: Box::new(interval) })
    }

    #[test]
    fn what_agents_say_is_within_the_limits() {
        assert!(read(&second("GOAWAY")).is_ok());
        let reason = "x".repeat(LONGEST_TEXT);
        assert!(read(&to_bytes(&FromAgent::Leaving { reason })).is_ok());
    }

    #[test]
    fn what_no_agent_says_is_not_read() {
        let (got, most) = (LONGEST_IN_SECOND + 1, LONGEST_IN_SECOND);
        assert_eq!(read(&second(&"x".repeat(got))), Err(Unreadable::Text { got, most }));
        let (got, most) = (LONGEST_TEXT + 1, LONGEST_TEXT);
        let reason = "x".repeat(got);
        assert_eq!(read(&to_bytes(&FromAgent::Leaving { reason })), Err(Unreadable::Text { got, most }));
        let many = [&[0x9a, 0xff, 0xff, 0xff, 0xff][..], &vec![0xf6; MOST_VALUES as usize + 1]].concat();
        assert_eq!(read(&many), Err(Unreadable::Values(MOST_VALUES)));
    }

    proptest! {
        #[test]
        fn no_part_of_a_message_is_one(cut in 0_usize..200, bytes: Vec<u8>) {
            let whole = second("event");
            prop_assert!(read(&whole[..cut.min(whole.len() - 1)]).is_err());
            let _ = read(&bytes);
        }
    }
}
