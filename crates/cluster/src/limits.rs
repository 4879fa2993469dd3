//! Limits of a message, looked at before it is read: how long its texts are, how many values it has, and how deep they
//! nest. A sender may say anything, and a few bytes can become many times as much memory.

/// The most values in a message: a second of 500 names, each with a distribution of 1,000 different times.
const MOST_VALUES: u64 = 4 << 20;
/// The longest text in bytes: a script's error with its place and its traceback.
const LONGEST_TEXT: usize = 16 << 10;
/// The longest text in a second, in bytes: names, excerpts and reasons are some hundred bytes long.
const LONGEST_IN_SECOND: usize = 4 << 10;
/// How deep values may nest: tables of a script's setup.
const DEEPEST: usize = 100;

/// Something that no agent sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OverLimit {
    /// Too many values.
    #[error("it sent a message of more than {MOST_VALUES} values, which no agent does")]
    Values,
    /// A text that is too long.
    #[error("it sent a text of {got} bytes, and {most} are the most")]
    Text {
        /// Its length.
        got: usize,
        /// The most there.
        most: usize,
    },
    /// Values within values.
    #[error("it sent values nested more than {DEEPEST} deep, which no agent does")]
    Depth,
    /// Something else than `MessagePack`.
    #[error("what came over the bus cannot be read: run one brunt everywhere")]
    Unreadable,
}

/// Checks a message in `MessagePack`, without keeping anything of it.
///
/// # Errors
/// When it is more than an agent sends, or ends early.
pub(crate) fn check(message: &[u8]) -> Result<(), OverLimit> {
    let is_second = name_of(message) == Some(b"Second");
    let longest = if is_second { LONGEST_IN_SECOND } else { LONGEST_TEXT };
    let mut rest = message;
    let mut values = 0_u64;
    // How many values are left to read on each level.
    let mut open: Vec<u64> = vec![1];
    while let Some(left) = open.last_mut() {
        let Some(fewer) = left.checked_sub(1) else {
            open.pop();
            continue;
        };
        *left = fewer;
        values += 1;
        if values > MOST_VALUES {
            return Err(OverLimit::Values);
        }
        match head(&mut rest)? {
            Head::Done => {}
            Head::Text(got) if got > longest => return Err(OverLimit::Text { got, most: longest }),
            Head::Text(length) | Head::Bytes(length) => drop(take(&mut rest, length)?),
            Head::Values(number) if open.len() >= DEEPEST && number > 0 => return Err(OverLimit::Depth),
            Head::Values(number) => open.push(number),
        }
    }
    Ok(())
}

/// The name of a message, which is a map of one entry.
fn name_of(message: &[u8]) -> Option<&[u8]> {
    let mut rest = message;
    match (head(&mut rest).ok()?, head(&mut rest).ok()?) {
        (Head::Values(2), Head::Text(length)) => rest.get(..length),
        _ => None,
    }
}

/// The beginning of a value.
enum Head {
    /// It is the whole value.
    Done,
    /// So many bytes of text, or of something else, follow.
    Text(usize),
    Bytes(usize),
    /// So many values follow.
    Values(u64),
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], OverLimit> {
    let (taken, after) = rest.split_at_checked(length).ok_or(OverLimit::Unreadable)?;
    *rest = after;
    Ok(taken)
}

/// A number of so many bytes, big-endian.
fn number(rest: &mut &[u8], bytes: usize) -> Result<u64, OverLimit> {
    Ok(take(rest, bytes)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn head(rest: &mut &[u8]) -> Result<Head, OverLimit> {
    let length = |rest: &mut &[u8], bytes| number(rest, bytes).map(|length| length as usize);
    let [first] = *take(rest, 1)? else { return Err(OverLimit::Unreadable) };
    let skipped = |rest: &mut &[u8], bytes| take(rest, bytes).map(|_| Head::Done);
    match first {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => Ok(Head::Done),
        0x80..=0x8f => Ok(Head::Values(2 * u64::from(first & 0x0f))),
        0x90..=0x9f => Ok(Head::Values(u64::from(first & 0x0f))),
        0xa0..=0xbf => Ok(Head::Text(usize::from(first & 0x1f))),
        0xc1 => Err(OverLimit::Unreadable),
        0xc4..=0xc6 => Ok(Head::Bytes(length(rest, 1 << (first - 0xc4))?)),
        // Extensions: a length, and a kind.
        0xc7..=0xc9 => Ok(Head::Bytes(length(rest, 1 << (first - 0xc7))?.saturating_add(1))),
        0xcc..=0xcf => skipped(rest, 1 << (first - 0xcc)),
        0xca => skipped(rest, 4),
        0xcb => skipped(rest, 8),
        0xd0..=0xd3 => skipped(rest, 1 << (first - 0xd0)),
        0xd4..=0xd8 => skipped(rest, 1 + (1 << (first - 0xd4))),
        0xd9..=0xdb => Ok(Head::Text(length(rest, 1 << (first - 0xd9))?)),
        0xdc | 0xdd => Ok(Head::Values(number(rest, 2 << (first - 0xdc))?)),
        0xde | 0xdf => Ok(Head::Values(number(rest, 2 << (first - 0xde))?.saturating_mul(2))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::messages::{FromAgent, to_bytes};
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
        assert_eq!(check(&second("GOAWAY")), Ok(()));
        let reason = "x".repeat(LONGEST_TEXT);
        assert_eq!(check(&to_bytes(&FromAgent::Leaving { reason })), Ok(()));
    }

    #[test]
    fn what_no_agent_says_is_not_read() {
        let got = LONGEST_IN_SECOND + 1;
        assert_eq!(check(&second(&"x".repeat(got))), Err(OverLimit::Text { got, most: LONGEST_IN_SECOND }));
        let reason = "x".repeat(LONGEST_TEXT + 1);
        let long = check(&to_bytes(&FromAgent::Leaving { reason }));
        assert_eq!(long, Err(OverLimit::Text { got: LONGEST_TEXT + 1, most: LONGEST_TEXT }));
        let many = [&[0xdd, 0xff, 0xff, 0xff, 0xff][..], &vec![0xc0; MOST_VALUES as usize + 1]].concat();
        assert_eq!(check(&many), Err(OverLimit::Values));
        assert_eq!(check(&vec![0x91; 1_000_000]), Err(OverLimit::Depth));
        // A length alone allocates nothing.
        assert_eq!(check(&[0xdb, 0xff, 0xff]), Err(OverLimit::Unreadable));
    }

    proptest! {
        #[test]
        fn every_message_that_serde_reads_is_read_and_no_part_of_it(cut in 0_usize..200, bytes: Vec<u8>) {
            let whole = second("event");
            prop_assert_eq!(check(&whole[..cut.min(whole.len() - 1)]), Err(OverLimit::Unreadable));
            let _ = check(&bytes);
        }
    }
}
