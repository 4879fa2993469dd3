//! A proxy without sockets, for tests and fuzzing. Its connections, to clients and to the upstream, are pipes within
//! the process; its clock is that of the runtime that polls it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::DuplexStream;
use tokio::sync::{Semaphore, watch};

use crate::config::Config;
use crate::connection::Seat;
use crate::error::StartError;
use crate::forward::Forward;
use crate::listen::Connections;
use crate::metrics::Metrics;
use crate::notice::Notices;
use crate::service::Frontend;

/// A proxy that is given its connections.
pub struct InProcess {
    connections: Connections,
    room: Arc<Semaphore>,
    ends: watch::Receiver<bool>,
    _end: watch::Sender<bool>,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

impl InProcess {
    /// A proxy to an upstream to which `dial` makes connections. The configuration's addresses, metrics, access log
    /// and TLS are ignored.
    ///
    /// # Errors
    /// As of [`Proxy::start`](crate::Proxy::start).
    pub fn new(
        config: &Config,
        dial: impl Fn() -> io::Result<DuplexStream> + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let metrics = Arc::new(Metrics::default());
        let forward = Forward::new(config, Arc::clone(&metrics), Some(Arc::new(dial)))?;
        let frontend = Arc::new(Frontend::new(config, forward, metrics, None, Arc::new(Notices::new(config.notify))));
        let (end, ends) = watch::channel(false);
        let room = Arc::new(Semaphore::new(config.max_connections.min(Semaphore::MAX_PERMITS)));
        Ok(Self { connections: Connections::new(config, frontend, None), room, ends, _end: end })
    }

    /// Serves a client's connection to its end; returns false at once if the limit of connections is reached.
    pub async fn serve(&self, client: DuplexStream, peer: Option<SocketAddr>) -> bool {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else { return false };
        let seat = Seat::new(permit, None, self.ends.clone());
        self.connections.clone().serve(Box::new(client), peer, Some(seat), self.ends.clone()).await;
        true
    }

    /// How many more connections there may be.
    pub fn room(&self) -> usize {
        self.room.available_permits()
    }

    /// The text for Prometheus.
    pub fn metrics(&self) -> String {
        let frontend = &self.connections.frontend;
        frontend.metrics.text(frontend.layer.as_ref().map(|layer| (layer.counters(), layer.held_bytes())))
    }
}
