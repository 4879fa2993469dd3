//! A script with a `traceparent` on some of its requests (`--trace`).

use brunt_protocol::AnswerParts;
use brunt_protocol::source::{Hooks, Message, RequestSource, SourceEnd};
use brunt_protocol::traced::{TraceIds, Tracing};

/// A user with HTTP/1.1 requests, a share of which is traced.
///
/// A script may write a `traceparent` itself. Once a request that would be traced has one, no other request gets one:
/// reports show only ids that brunt has sent.
pub(super) struct TracedScript<U> {
    user: U,
    /// `None` once the script has written its own `traceparent`.
    tracing: Option<Tracing>,
    /// The last traced request.
    request: Vec<u8>,
}

impl<U> TracedScript<U> {
    /// Traces the requests of `user` that `tracing` chooses.
    pub(super) fn new(user: U, tracing: Tracing) -> Self {
        Self { user, tracing: Some(tracing), request: Vec::new() }
    }
}

impl<U: RequestSource> RequestSource for TracedScript<U> {
    fn request(&mut self, index: u64) -> Result<Message<'_>, SourceEnd> {
        let message = self.user.request(index)?;
        let Some(ids) = self.tracing.and_then(|tracing| tracing.ids(index)) else { return Ok(message) };
        if ids.add_to_request(message.bytes, &mut self.request) {
            return Ok(Message { bytes: &self.request, ..message });
        }
        self.tracing = None;
        Ok(message)
    }

    fn trace(&self, index: u64) -> Option<TraceIds> {
        self.tracing?.ids(index)
    }

    fn traces(&self) -> bool {
        self.tracing.is_some()
    }

    fn target(&mut self, index: u64) -> usize {
        self.user.target(index)
    }

    fn names(&self) -> &[String] {
        self.user.names()
    }

    fn name(&self, index: u64) -> usize {
        self.user.name(index)
    }

    fn expect(&mut self, calls: usize) {
        self.user.expect(calls);
    }

    fn hooks(&self) -> Hooks {
        self.user.hooks()
    }

    fn pause(&mut self) -> Result<u64, SourceEnd> {
        self.user.pause()
    }

    fn answered(&mut self, status: u16, parts: AnswerParts<'_>) -> Result<(), SourceEnd> {
        self.user.answered(status, parts)
    }

    fn settle(&mut self) -> Result<(), SourceEnd> {
        self.user.settle()
    }

    fn take_busy_ns(&mut self) -> u64 {
        self.user.take_busy_ns()
    }
}

#[cfg(test)]
mod tests {
    use brunt_protocol::source::RepeatingSource;

    use super::*;

    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    fn sent(user: &mut impl RequestSource, index: u64) -> String {
        String::from_utf8(user.request(index).unwrap().bytes.to_vec()).unwrap()
    }

    #[test]
    fn a_share_of_requests_is_traced_and_the_others_are_the_scripts() {
        let mut user = TracedScript::new(RepeatingSource::new(REQUEST.as_bytes(), true), Tracing::of_share(0.3));
        let mut traced = 0;
        for index in 0..1000 {
            let ids = user.trace(index);
            let expected = match ids {
                None => REQUEST.to_owned(),
                Some(ids) => REQUEST.replace("Host", &format!("traceparent: {ids}\r\nHost")),
            };
            assert_eq!(sent(&mut user, index), expected);
            traced += u32::from(ids.is_some());
        }
        // Five standard deviations of a binomial distribution are 73.
        assert!((227..374).contains(&traced), "{traced}");
        assert!(user.traces() && user.request(0).unwrap().idempotent);
    }

    #[test]
    fn a_script_that_writes_the_field_itself_has_no_other() {
        let own = REQUEST.replace("Host", "Traceparent: 00-mine\r\nHost");
        let mut user = TracedScript::new(RepeatingSource::new(own.as_bytes(), true), Tracing::of_share(1.0));
        assert_eq!(sent(&mut user, 0), own);
        assert!(user.trace(0).is_none() && !user.traces());
    }
}
