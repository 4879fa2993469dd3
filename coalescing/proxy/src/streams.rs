//! Requests of HTTP/2. hyper runs each in a separate task: if a client accepts none of one answer, that stream alone
//! ends, and the others on its connection go on.

use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;

use crate::metrics::Metrics;
use crate::patience::WaitClock;

tokio::task_local! {
    /// Since when the client of this task's stream is waited for.
    static CLIENT: Arc<WaitClock>;
}

/// The client has been given a piece of its answer: from now on the proxy waits for it to ask for more.
pub(crate) fn client_begins() {
    // HTTP/1 has no streams: the connection itself is watched.
    let _ = CLIENT.try_with(|client| client.begins());
}

/// The client has asked for more.
pub(crate) fn client_ends() {
    let _ = CLIENT.try_with(|client| client.ends());
}

/// Runs the tasks of HTTP/2 streams. If a client keeps its stream waiting longer than this, the task is dropped, upon
/// which hyper resets the stream.
#[derive(Clone)]
pub(crate) struct Streams {
    pub(crate) client_timeout: Duration,
    pub(crate) metrics: Arc<Metrics>,
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        let (client, most, metrics) = (Arc::new(WaitClock::default()), self.client_timeout, Arc::clone(&self.metrics));
        let task = CLIENT.scope(Arc::clone(&client), task);
        tokio::spawn(async move {
            tokio::select! {
                _ = task => {}
                () = client.exceeds(most) => metrics.timed_out(),
            }
        });
    }
}
