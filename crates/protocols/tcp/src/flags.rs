//! The flags of plain TCP.

use brunt_plan::content::Content;
use brunt_plan::units;

use super::answer::MOST_ANSWER_BYTES;
use super::escapes::unescape;
use super::options::{AnswerFraming, LengthPrefix, Options};
use brunt_protocol::OptionsError;
use brunt_protocol::flags::{Flag, FlagValue, FlagValues, ValueKind};

/// The flags of TCP.
pub(super) const FLAGS: [Flag; 6] = [
    Flag::new(
        "send",
        ValueKind::TextOrFile("TEXT|@FILE"),
        "The bytes of each call: a text with \\r \\n \\t \\0 \\\\ \\xHH in it, or the content of a file as it is",
    )
    .checked(is_escaped),
    Flag::new("until", ValueKind::Text("TEXT"), "The answer ends with this text, such as '\\r\\n'")
        .checked(is_escaped)
        .conflicts_with(&["bytes", "length-prefix"]),
    Flag::new("bytes", ValueKind::Text("N"), "The answer has this many bytes").conflicts_with(&["length-prefix"]),
    Flag::new(
        "length-prefix",
        ValueKind::OneOf("BYTES", &["1", "2", "4", "2le", "4le"]),
        "The answer begins with its length in this many bytes, big-endian (or little-endian: le)",
    ),
    Flag::new(
        "expect",
        ValueKind::TextOrFile("TEXT|@FILE"),
        "The expected answer, without its --until or --length-prefix; a call with another fails as mismatch",
    )
    .checked(is_escaped),
    Flag::new(
        "greeting",
        ValueKind::Text("TEXT"),
        "The server speaks first, up to this text, such as '\\r\\n': calls begin behind it, and it is no answer",
    )
    .checked(is_escaped),
];

fn is_escaped(text: &str) -> Result<(), String> {
    // The name of a file has no escapes.
    if text.starts_with('@') { Ok(()) } else { unescape(text).map(drop) }
}

/// The options that the flags ask for.
pub(super) fn options(given: &FlagValues) -> Result<Options, OptionsError> {
    given.refuse_user("tcp")?;
    let Some(send) = bytes(given, "send")? else {
        return Err(OptionsError(
            "nothing says what to send: give --send, such as --send 'PING\\r\\n' --until '\\n'".to_owned(),
        ));
    };
    let framing = framing(given)?;
    let expect = bytes(given, "expect")?;
    if expect.is_some() && framing == AnswerFraming::None {
        return Err(OptionsError(
            "--expect says what the answer must be, and nothing says where it ends: give --until, --bytes or \
             --length-prefix"
                .to_owned(),
        ));
    }
    let greeting = bytes(given, "greeting")?;
    if greeting.as_ref().is_some_and(Vec::is_empty) {
        return Err(OptionsError("--greeting: expected the bytes that end the greeting, got none".to_owned()));
    }
    let (expect, greeting) = (expect.map(Content), greeting.map(Content));
    Ok(Options { send: Content(send), framing, expect, greeting })
}

fn framing(given: &FlagValues) -> Result<AnswerFraming, OptionsError> {
    if let Some(until) = bytes(given, "until")? {
        if until.is_empty() {
            return Err(OptionsError("--until: expected the bytes that end an answer, got none".to_owned()));
        }
        return Ok(AnswerFraming::Until(Content(until)));
    }
    if let Some(text) = given.text("bytes") {
        let count = units::parse_count(text).ok().and_then(|count| u32::try_from(count).ok());
        return match count.filter(|count| (1..=MOST_ANSWER_BYTES as u32).contains(count)) {
            Some(count) => Ok(AnswerFraming::Bytes(count)),
            None => {
                Err(OptionsError(format!("--bytes: expected a number from 1 to {MOST_ANSWER_BYTES}, got '{text}'")))
            }
        };
    }
    Ok(given
        .text("length-prefix")
        .and_then(LengthPrefix::parse)
        .map_or(AnswerFraming::None, AnswerFraming::LengthPrefix))
}

/// A text without its escapes, or a file as it is.
fn bytes(given: &FlagValues, name: &str) -> Result<Option<Vec<u8>>, OptionsError> {
    match given.last(name) {
        Some(FlagValue::Text(text)) => {
            unescape(text).map(Some).map_err(|problem| OptionsError(format!("--{name}: {problem}")))
        }
        Some(FlagValue::File { content, .. }) => Ok(Some(content.0.clone())),
        Some(FlagValue::Set) | None => Ok(None),
    }
}
