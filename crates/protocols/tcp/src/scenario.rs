//! Plain TCP in scenarios: `brunt.tcp`. Its library is `scenario.lua`.

use std::borrow::Cow;

use brunt_plan::content::Content;

use super::answer::MOST_ANSWER_BYTES;
use super::client::TcpClient;
use super::options::{AnswerFraming, LengthPrefix};
use super::piece::Piece;
use brunt_protocol::scenario::{Caller, ClientSetting, CompleteAnswer, Dialect, Encoded, Fields, Value};
use brunt_protocol::{Client, OptionsError};

/// The longest text that ends a piece, in bytes.
const MOST_END_BYTES: usize = 1024;

/// `brunt.tcp`.
pub(super) struct TcpDialect;

impl Dialect for TcpDialect {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn library(&self) -> &'static str {
        include_str!("scenario.lua")
    }

    fn types(&self) -> &'static str {
        include_str!("types.lua")
    }

    fn client(&self, options: &Value<'_>, setting: &ClientSetting<'_>) -> Result<Box<dyn Caller>, OptionsError> {
        // The other options of `brunt.tcp` are the engine's.
        let fields = Fields::parse("brunt.tcp", options, &["greeting"])?;
        let greeting = match fields.value("greeting") {
            Value::Nil => None,
            Value::Text(end) if (1..=MOST_END_BYTES).contains(&end.len()) => Some(Content(end.to_vec())),
            _ => {
                return Err(
                    fields.wrong("greeting", "the text that ends what the server says first, such as \"\\r\\n\"")
                );
            }
        };
        match setting.base {
            None => {
                Err(OptionsError("brunt.tcp needs an address: brunt.tcp{ address = \"127.0.0.1:6379\" }".to_owned()))
            }
            Some(base) if base.path != "/" => Err(OptionsError(format!(
                "brunt.tcp: there are no paths over TCP: leave '{}' out of the address",
                base.path
            ))),
            Some(_) => Ok(Box::new(TcpCaller { greeting })),
        }
    }
}

/// The caller of a `brunt.tcp{…}`.
struct TcpCaller {
    /// The end of what the peer says first on each connection.
    greeting: Option<Content>,
}

/// The piece that a call waits for: the way to find its end, and the parameter of that.
fn piece(how: &Value<'_>, by: &Value<'_>) -> Result<Piece, OptionsError> {
    let wrong = |expected: &str| {
        let got = by.as_number().map_or_else(|| by.kind().to_owned(), |number| number.to_string());
        OptionsError(format!("expected {expected}, not {got}"))
    };
    Ok(match how.as_str().unwrap_or_default() {
        "until" => {
            let end = by.as_bytes().ok_or_else(|| wrong("the text that ends what is received"))?;
            if end.is_empty() || end.len() > MOST_END_BYTES {
                return Err(OptionsError(format!(
                    "the text that ends what is received has 1 to {MOST_END_BYTES} bytes"
                )));
            }
            Piece::Framed(AnswerFraming::Until(Content(end.to_vec())))
        }
        "exactly" => {
            let count = by.as_number().filter(|n| n.fract() == 0.0 && (0.0..=MOST_ANSWER_BYTES as f64).contains(n));
            let expected = format!("a number of bytes from 0 to {MOST_ANSWER_BYTES}");
            Piece::Framed(AnswerFraming::Bytes(count.ok_or_else(|| wrong(&expected))? as u32))
        }
        "framed" => {
            let number = by.as_number().map(|number| number.to_string());
            let text = number.as_deref().or(by.as_str());
            let prefix = text.and_then(LengthPrefix::parse);
            let expected = "the length before a frame: 1, 2 or 4 bytes, \"2le\" or \"4le\"";
            Piece::Framed(AnswerFraming::LengthPrefix(prefix.ok_or_else(|| wrong(expected))?))
        }
        "rest" => Piece::Rest,
        "finish" => Piece::Finish,
        _ => Piece::None,
    })
}

impl Caller for TcpCaller {
    fn connection(&self) -> Box<dyn Client> {
        Box::new(TcpClient::conversation(self.greeting.clone()))
    }

    /// The values: the bytes to send or nil, the way to find the end of the input or nil, and its parameter.
    fn encode(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
        let value = |at: usize| values.get(at).unwrap_or(&Value::Nil);
        match value(0) {
            Value::Nil => {}
            Value::Text(bytes) => out.bytes.extend_from_slice(bytes),
            other => return Err(OptionsError(format!("what is sent must be a string, not {}", other.kind()))),
        }
        out.hint = piece(value(1), value(2))?.pack(&mut out.bytes);
        Ok(())
    }

    fn read<'a>(&self, what: &str, answer: &CompleteAnswer<'a>) -> Result<Value<'a>, OptionsError> {
        match what {
            "body" => Ok(Value::Text(Cow::Borrowed(answer.parts.body))),
            _ => Err(OptionsError(format!("an answer over TCP has no '{what}'"))),
        }
    }

    fn shown_call<'a>(&self, call: &'a Encoded) -> Cow<'a, [u8]> {
        Cow::Borrowed(Piece::unpack(call.hint, &call.bytes).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_checked() {
        let of = |how: &'static str, by: Value<'static>| piece(&Value::text(how), &by).map_err(|e| e.0);
        let framed = |framing| Ok(Piece::Framed(framing));
        assert_eq!(of("until", Value::text("\n")), framed(AnswerFraming::Until(Content(b"\n".to_vec()))));
        assert_eq!(of("exactly", Value::Number(5.0)), framed(AnswerFraming::Bytes(5)));
        let prefix = LengthPrefix { bytes: 4, little_endian: false };
        assert_eq!(of("framed", Value::Number(4.0)), framed(AnswerFraming::LengthPrefix(prefix)));
        assert!(of("until", Value::text("")).unwrap_err().contains("1 to 1024 bytes"));
        assert!(of("exactly", Value::Number(-1.0)).unwrap_err().contains("not -1"));
        assert!(of("exactly", Value::Number(1e9)).is_err() && of("exactly", Value::Nil).is_err());
        assert!(of("framed", Value::Number(3.0)).unwrap_err().contains("1, 2 or 4 bytes"));
    }
}
