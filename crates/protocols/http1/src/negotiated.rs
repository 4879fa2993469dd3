//! The version of HTTP on a connection: as asked for, or as the TLS handshake chose.

use std::sync::{Arc, OnceLock};

use brunt_protocol::source::Message;
use brunt_protocol::{
    Answer, AnswerParts, Client, FailedCall, KeptAnswer, Malformed, Opening, Pending, Progress, Started,
};
use brunt_record::kinds::AnswerSample;

use super::client::Http1Client;
use super::hints::Streaming;
use super::http2::{Http2, Http2Client, Http3Client};
use super::options::Version;

impl Version {
    /// The state of a connection to a target with TLS or without, which is `one` where it speaks HTTP/1.1. With `keep`
    /// it keeps answers, of which some come as messages; the location of the first redirect is noted in `redirect`.
    pub(super) fn client(
        self,
        one: Http1Client,
        keep: bool,
        is_secure: bool,
        streaming: Streaming,
        redirect: Option<&Arc<OnceLock<String>>>,
    ) -> Box<dyn Client> {
        let one = one.streaming(streaming.clone());
        let expected = one.expected();
        let calls = || Http2::new(keep, is_secure, streaming).noting(redirect.cloned()).expecting(expected);
        match self {
            Self::One => Box::new(one),
            Self::Two => Box::new(Http2Client::new(calls())),
            Self::Three => Box::new(Http3Client::http3(calls().over_quic())),
            Self::Auto => Box::new(Negotiated { one, two: Some(Box::new(Http2Client::new(calls()))), chosen: None }),
        }
    }

    /// The names offered in the TLS handshake.
    pub(super) fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::One => &[b"http/1.1"],
            Self::Two => &[b"h2"],
            Self::Three => &[b"h3"],
            Self::Auto => &[b"h2", b"http/1.1"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// A connection whose TLS handshake decides.
struct Negotiated {
    one: Http1Client,
    /// `None` once HTTP/1.1 was chosen.
    two: Option<Box<Http2Client>>,
    /// The event of the choice, until it is reported.
    chosen: Option<&'static str>,
}

impl Negotiated {
    fn chosen(&self) -> &dyn Client {
        match &self.two {
            Some(two) => &**two,
            None => &self.one,
        }
    }

    fn chosen_mut(&mut self) -> &mut dyn Client {
        match &mut self.two {
            Some(two) => &mut **two,
            None => &mut self.one,
        }
    }
}

impl Client for Negotiated {
    fn open(&mut self, alpn: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        if alpn != Some(b"h2") {
            self.two = None;
        }
        self.chosen = Some(if self.two.is_some() { "HTTP/2 chosen" } else { "HTTP/1.1 chosen" });
        self.chosen_mut().open(alpn, out)
    }

    /// HTTP/1.1 has no streams, even if they were asked for: a request waits for the answer before it.
    fn capacity(&self) -> usize {
        self.two.as_ref().map_or(1, |two| two.capacity())
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        self.chosen_mut().start(message, out)
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        self.chosen_mut().receive(bytes, out)
    }

    fn has_asked_to_close(&self) -> bool {
        self.chosen().has_asked_to_close()
    }

    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        self.chosen_mut().closed()
    }

    fn excerpt<'a>(&self, came: &'a [u8]) -> &'a [u8] {
        self.chosen().excerpt(came)
    }

    fn request_sample(&mut self) -> bool {
        self.chosen_mut().request_sample()
    }

    fn take_sample(&self) -> Option<AnswerSample<'_>> {
        self.chosen().take_sample()
    }

    fn cancel(&mut self, position: usize, out: &mut Vec<u8>) -> bool {
        self.chosen_mut().cancel(position, out)
    }

    fn is_framed(&self) -> bool {
        self.chosen().is_framed()
    }

    fn pending(&self) -> Pending {
        self.chosen().pending()
    }

    fn more(&mut self, out: &mut Vec<u8>) {
        self.chosen_mut().more(out);
    }

    fn stalled(&mut self) {
        self.chosen_mut().stalled();
    }

    fn resumed(&mut self, out: &mut Vec<u8>) {
        self.chosen_mut().resumed(out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.chosen_mut().close(out);
    }

    fn take_events(&mut self, note: &mut dyn FnMut(&str, u64)) {
        if let Some(chosen) = self.chosen.take() {
            note(chosen, 1);
        }
        self.chosen_mut().take_events(note);
    }

    fn parts(&self) -> AnswerParts<'_> {
        self.chosen().parts()
    }

    fn take_answer(&mut self, kept: &mut KeptAnswer) {
        self.chosen_mut().take_answer(kept);
    }
}
