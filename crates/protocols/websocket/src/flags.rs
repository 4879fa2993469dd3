//! The flags of WebSocket.

use brunt_plan::content::Content;
use brunt_plan::units;

use super::message::MOST_MESSAGE_BYTES;
use super::options::Options;
use brunt_protocol::OptionsError;
use brunt_protocol::flags::{Flag, FlagValues, ValueKind};
use brunt_protocol::headers::{BASIC, HEADER, basic, headers};
use brunt_protocol::lines::Lines;

/// The flags of WebSocket.
pub(super) const FLAGS: [Flag; 8] = [
    HEADER,
    BASIC,
    Flag::new(
        "message",
        ValueKind::TextOrFile("TEXT|@FILE|SIZE"),
        "The message to send, which must come back: a text, the content of a file, or this many bytes (125B, 16KB) \
         [default: hello]",
    )
    .conflicts_with(&["body-lines"]),
    Flag::new(
        "url-lines",
        ValueKind::File("F"),
        "A URL for each connection: the lines of a file, or of standard input for - (a path, or a whole URL of the same host), in turn over \
         all workers",
    ),
    Flag::new(
        "body-lines",
        ValueKind::File("F"),
        "A message for each connection, which sends it over and over: the lines of a file, in turn over all workers",
    ),
    Flag::new("binary", ValueKind::Nothing, "Send it as a binary message"),
    Flag::new("subprotocol", ValueKind::Texts("NAME"), "Offer this subprotocol, repeatable, by preference"),
    Flag::new("deflate", ValueKind::Nothing, "Offer permessage-deflate: messages are compressed if the server agrees"),
];

/// The options that the flags ask for.
pub(super) fn options(given: &FlagValues) -> Result<Options, OptionsError> {
    let binary = given.has("binary");
    let message = match given.text("message").and_then(size) {
        Some(bytes) if bytes > MOST_MESSAGE_BYTES as u64 => {
            return Err(OptionsError(format!(
                "--message: expected at most {} MB, the most that is taken back",
                MOST_MESSAGE_BYTES >> 20
            )));
        }
        Some(bytes) => pattern(bytes as usize),
        None => given.bytes("message").unwrap_or_else(|| b"hello".to_vec()),
    };
    Ok(Options {
        message: Content(message),
        url_lines: Lines::given(given, "url-lines"),
        body_lines: Lines::given(given, "body-lines"),
        binary,
        headers: headers(given)?,
        basic: basic(given)?,
        subprotocols: given.texts("subprotocol").map(str::to_owned).collect(),
        deflate: given.has("deflate"),
    })
}

/// The size in bytes that the text names (digits and a unit of bytes, such as `64KiB`); `None` for any other text.
fn size(text: &str) -> Option<u64> {
    let is_size = text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with('B');
    if is_size { units::parse_size(text).ok() } else { None }
}

/// A text of `length` bytes.
fn pattern(length: usize) -> Vec<u8> {
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".iter().copied().cycle().take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_protocol::flags::FlagValue;

    #[test]
    fn a_message_is_a_text_a_file_or_a_size() {
        let message = |value: FlagValue| {
            let mut given = FlagValues::default();
            given.push("message", value);
            options(&given).map(|options| options.message.0).map_err(|error| error.0)
        };
        let text = |text: &str| message(FlagValue::Text(text.to_owned()));
        assert_eq!(text("125"), Ok(b"125".to_vec()), "a number is a text");
        assert_eq!(text("3B"), Ok(b"abc".to_vec()));
        assert_eq!(["1KB", "1KiB"].map(|size| text(size).map(|bytes| bytes.len())), [Ok(1000), Ok(1024)]);
        assert_eq!(text("JOB"), Ok(b"JOB".to_vec()));
        assert_eq!(text("1 JOB"), Ok(b"1 JOB".to_vec()));
        assert!(text("17MB").unwrap_err().contains("at most 16 MB"));
        let file = FlagValue::File { name: "m".to_owned(), content: Content(vec![0, 255]) };
        assert_eq!(message(file), Ok(vec![0, 255]));
        assert_eq!(options(&FlagValues::default()).unwrap(), Options::default());
    }
}
