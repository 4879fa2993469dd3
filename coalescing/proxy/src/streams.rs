//! Requests of HTTP/2. hyper runs each in a separate task: if a client accepts none of one answer, that stream alone
//! ends, and the others on its connection go on.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brunt_coalesce::CutOff;
use hyper::rt::Executor;
use tokio::time::sleep;

use crate::metrics::Metrics;
use crate::patience::WaitClock;

tokio::task_local! {
    /// The client of this task's stream.
    static CLIENT: Arc<Client>;
}

/// A stream's client.
#[derive(Default)]
struct Client {
    /// Since when it is waited for.
    waits: WaitClock,
    cut_off: OnceLock<CutOff>,
}

/// How often it is looked at.
const LOOK: Duration = Duration::from_secs(1);

impl Client {
    /// Returns once it has kept its stream waiting for this long, or longer than those bear that share the answer.
    async fn is_too_slow(&self, most: Duration) {
        while let Some(left) = self.waits.left(most) {
            sleep(left.min(LOOK)).await;
            if self.cut_off.get().is_some_and(|cut_off| cut_off.error().is_some()) {
                return;
            }
        }
    }
}

/// The client has been given a piece of its answer: from now on the proxy waits for it to ask for more.
pub(crate) fn client_begins() {
    // HTTP/1 has no streams: the connection itself is watched.
    let _ = CLIENT.try_with(|client| client.waits.begins());
}

/// The client has asked for more.
pub(crate) fn client_ends() {
    let _ = CLIENT.try_with(|client| client.waits.ends());
}

/// Ends this task's stream if its client is cut off.
pub(crate) fn ends_with(cut_off: CutOff) {
    let _ = CLIENT.try_with(|client| client.cut_off.set(cut_off));
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
        let (client, most, metrics) = (Arc::new(Client::default()), self.client_timeout, Arc::clone(&self.metrics));
        let task = CLIENT.scope(Arc::clone(&client), task);
        tokio::spawn(async move {
            tokio::select! {
                _ = task => {}
                () = client.is_too_slow(most) => metrics.timed_out(),
            }
        });
    }
}
