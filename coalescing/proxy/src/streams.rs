//! Requests of HTTP/2. hyper gives each a task of its own: one whose client takes nothing of its answer ends alone,
//! and the others on its connection go on.

use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;

use crate::metrics::Metrics;
use crate::patience::WaitClock;

tokio::task_local! {
    /// Since when the client of this task's stream is waited for.
    static CLIENT: Arc<WaitClock>;
}

/// The client has been given a piece of its answer: that it asks for more is waited for.
pub(crate) fn client_begins() {
    // HTTP/1 has no streams: the connection itself is watched.
    let _ = CLIENT.try_with(|client| client.begins());
}

/// The client has asked for more.
pub(crate) fn client_ends() {
    let _ = CLIENT.try_with(|client| client.ends());
}

/// Runs the tasks of HTTP/2, and drops that of a stream whose client makes it wait for longer than this. With it hyper resets
/// the stream.
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
