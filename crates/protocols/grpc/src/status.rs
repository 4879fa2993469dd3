//! The status of a call (gRPC over HTTP/2, "Responses"): its number, its name, the server's message and details.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use prost::Message as _;

/// The base64 of `-bin` metadata, which comes with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// The names of the statuses, by their numbers.
pub const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The number in `grpc-status`; `None` unless it has one to three digits.
pub fn number(value: &[u8]) -> Option<u16> {
    if value.is_empty() || value.len() > 3 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |number, digit| number * 10 + u16::from(*digit - b'0')))
}

/// A status's name; `None` for an unknown number.
pub fn name(status: u16) -> Option<&'static str> {
    NAMES.get(usize::from(status)).copied()
}

/// The text in `grpc-message`, which is percent-encoded; invalid escapes stay as they are.
pub fn message(value: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((first, after)) = rest.split_first() {
        let decoded = match after {
            [high, low, ..] if *first == b'%' => digit(*high).zip(digit(*low)),
            _ => None,
        };
        if let Some((high, low)) = decoded {
            bytes.push(high << 4 | low);
            rest = after.get(2..).unwrap_or(&[]);
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// The bytes of a metadata value whose name ends in `-bin`.
pub fn binary(value: &[u8]) -> Option<Vec<u8>> {
    LENIENT.decode(value).ok()
}

/// The content of `grpc-status-details-bin`: a `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Details {
    /// The status again.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// Its message again.
    #[prost(string, tag = "2")]
    pub message: String,
    /// The details, each a message of its own type.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Detail>,
}

/// A message of a type that its URL names: a `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Detail {
    /// The URL that ends with its type's name, behind the last `/`.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

impl Detail {
    /// The full name of the message's type.
    pub fn type_name(&self) -> &str {
        self.type_url.rsplit('/').next().unwrap_or_default()
    }
}

/// Decodes a value of `grpc-status-details-bin`.
pub fn details(value: &[u8]) -> Option<Details> {
    Details::decode(binary(value)?.as_slice()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statuses_are_numbers_with_names() {
        assert_eq!((number(b"0"), number(b"16"), number(b"099")), (Some(0), Some(16), Some(99)));
        assert_eq!((number(b""), number(b"-1"), number(b"1000"), number(b"1 ")), (None, None, None, None));
        assert_eq!((name(5), name(17)), (Some("NOT_FOUND"), None));
    }

    #[test]
    fn messages_are_percent_decoded() {
        assert_eq!(message(b"no%20sku%3A %C3%BC"), "no sku: ü");
        assert_eq!(message(b"100%"), "100%");
        assert_eq!(message(b"%zz%4"), "%zz%4");
        assert_eq!(message(b"%ff"), "\u{fffd}");
    }

    #[test]
    fn details_are_read_with_padding_and_without() {
        let detail = Detail { type_url: "type.googleapis.com/google.rpc.RetryInfo".into(), value: vec![10, 0] };
        let sent = Details { code: 14, message: "later".into(), details: vec![detail] };
        let padded = base64::engine::general_purpose::STANDARD.encode(sent.encode_to_vec());
        assert_eq!(details(padded.as_bytes()), Some(sent.clone()));
        assert_eq!(details(padded.trim_end_matches('=').as_bytes()), Some(sent.clone()));
        assert_eq!(sent.details[0].type_name(), "google.rpc.RetryInfo");
        assert_eq!(details(b"*"), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (number(&bytes), message(&bytes), details(&bytes));
        }
    }
}
