//! The calls of a flood: one message over and over. The connection holds the message, so a user need not supply it.

use super::options::Options;

/// The message that every call sends, and must get back.
#[derive(Debug)]
pub(super) struct Echo {
    pub(super) message: Vec<u8>,
    pub(super) text: bool,
    /// The compressed message, where permessage-deflate is offered.
    pub(super) compressed: Option<Vec<u8>>,
}

impl Echo {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            message: options.message.0.clone(),
            text: !options.binary,
            compressed: options.deflate.then(|| super::deflate::compress(&options.message.0)),
        }
    }

    /// How a received message differs from the sent one; `None` if it does not.
    #[inline]
    pub(super) fn difference(&self, text: bool, body: &[u8]) -> Option<&'static str> {
        if body == self.message && text == self.text {
            None
        } else if text != self.text {
            Some(if text { "text came back for binary" } else { "binary came back for text" })
        } else if body.len() != self.message.len() {
            Some("a message of another length came back")
        } else {
            Some("a message with other content came back")
        }
    }
}
