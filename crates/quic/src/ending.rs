//! Why a connection has ended.

use std::borrow::Cow;

use quinn_proto::{ConnectionError, TransportErrorCode};

/// Who or what ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The peer speaks no version of QUIC that we do.
    Version,
    /// The peer refused the connection (`CONNECTION_REFUSED`).
    Refused,
    /// The TLS handshake failed, on either side (`CRYPTO_ERROR`, RFC 9000, section 20.1).
    Tls,
    /// A peer broke a rule of QUIC: that is ours to say, or it says so of us.
    Transport,
    /// The peer's protocol closed the connection, with this error code.
    Application(u64),
    /// The peer has forgotten the connection (stateless reset, RFC 9000, section 10.3).
    Forgotten,
    /// Nothing came within the idle timeout.
    Idle,
    /// We closed it.
    Local,
}

/// The end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Who or what ended it.
    pub cause: Cause,
    /// The reason in words: the same for the same cause, but for what the peer itself said.
    pub reason: Cow<'static, str>,
}

/// The longest text of a peer that is repeated, in bytes.
const LONGEST_SAID: usize = 100;

/// What a peer said in words, if it said something that can be shown.
fn words(text: &[u8]) -> Option<&str> {
    let is_shown =
        !text.is_empty() && text.len() <= LONGEST_SAID && text.iter().all(|byte| matches!(byte, b' '..=b'~'));
    std::str::from_utf8(text).ok().filter(|_| is_shown)
}

/// The same behind a colon.
fn said(text: &[u8]) -> String {
    words(text).map(|words| format!(": {words}")).unwrap_or_default()
}

/// What the peer said in words as its protocol closed the connection.
pub(crate) fn parting_words(error: &ConnectionError) -> Option<Box<str>> {
    let ConnectionError::ApplicationClosed(close) = error else { return None };
    words(&close.reason).map(Box::from)
}

/// A code of QUIC by its name, or that of a TLS alert.
fn named(code: TransportErrorCode) -> String {
    let number = u64::from(code);
    if (0x100..0x200).contains(&number) {
        let alert = rustls::AlertDescription::from((number & 0xff) as u8);
        format!("TLS alert {alert:?}")
    } else {
        format!("{code:?}")
    }
}

fn is_tls(code: TransportErrorCode) -> bool {
    (0x100..0x200).contains(&u64::from(code))
}

impl Ending {
    pub(crate) fn of(error: &ConnectionError) -> Self {
        let (cause, reason) = match error {
            ConnectionError::VersionMismatch => {
                (Cause::Version, "the target speaks no version of QUIC that brunt does".into())
            }
            ConnectionError::TransportError(error) if is_tls(error.code) => (Cause::Tls, error.reason.clone().into()),
            ConnectionError::TransportError(error) => {
                let reason = said(error.reason.as_bytes());
                (Cause::Transport, format!("the peer broke a rule of QUIC, {}{reason}", named(error.code)).into())
            }
            ConnectionError::ConnectionClosed(close) => {
                let code = close.error_code;
                let (cause, what) = if code == TransportErrorCode::CONNECTION_REFUSED {
                    (Cause::Refused, "refused the connection")
                } else if is_tls(code) {
                    (Cause::Tls, "ended the handshake")
                } else {
                    (Cause::Transport, "closed the connection")
                };
                (cause, format!("the peer {what}, {}{}", named(code), said(&close.reason)).into())
            }
            ConnectionError::ApplicationClosed(close) => {
                // Its record tells the protocol.
                (Cause::Application(close.error_code.into_inner()), "closed by the peer".into())
            }
            ConnectionError::Reset => {
                (Cause::Forgotten, "the peer has forgotten the connection (stateless reset)".into())
            }
            ConnectionError::TimedOut => (Cause::Idle, "nothing came within the idle timeout".into()),
            ConnectionError::LocallyClosed => (Cause::Local, "closed".into()),
            ConnectionError::CidsExhausted => (Cause::Transport, "no connection ids are left".into()),
        };
        Self { cause, reason }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quinn_proto::{ApplicationClose, ConnectionClose, VarInt};

    use super::*;

    fn closed(code: TransportErrorCode, reason: &'static str) -> (Cause, String) {
        let close =
            ConnectionClose { error_code: code, frame_type: None, reason: Bytes::from_static(reason.as_bytes()) };
        let Ending { cause, reason } = Ending::of(&ConnectionError::ConnectionClosed(close));
        (cause, reason.into_owned())
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(
            closed(TransportErrorCode::CONNECTION_REFUSED, ""),
            (Cause::Refused, "the peer refused the connection, CONNECTION_REFUSED".to_owned())
        );
        assert_eq!(
            closed(TransportErrorCode::crypto(48), "no root"),
            (Cause::Tls, "the peer ended the handshake, TLS alert UnknownCA: no root".to_owned())
        );
        assert_eq!(
            closed(TransportErrorCode::FLOW_CONTROL_ERROR, "bad\n"),
            (Cause::Transport, "the peer closed the connection, FLOW_CONTROL_ERROR".to_owned())
        );
        let close = ApplicationClose { error_code: VarInt::from_u32(0x102), reason: Bytes::new() };
        assert_eq!(Ending::of(&ConnectionError::ApplicationClosed(close)).cause, Cause::Application(0x102));
        let said = |reason: &'static str| {
            let close =
                ApplicationClose { error_code: VarInt::from_u32(0x100), reason: Bytes::from_static(reason.as_bytes()) };
            parting_words(&ConnectionError::ApplicationClosed(close))
        };
        assert_eq!(said("going down").as_deref(), Some("going down"));
        assert_eq!([said(""), said("a\nb")], [None, None]);
        assert_eq!(parting_words(&ConnectionError::Reset), None);
        assert_eq!(Ending::of(&ConnectionError::Reset).cause, Cause::Forgotten);
        assert_eq!(Ending::of(&ConnectionError::TimedOut).cause, Cause::Idle);
        assert_eq!(Ending::of(&ConnectionError::VersionMismatch).cause, Cause::Version);
    }
}
