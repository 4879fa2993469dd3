//! Where a worker's connections go: one origin for a flood, as many as a script's users call for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use brunt_model::arrivals::share_of;
use brunt_model::outcome::Failure;
use brunt_model::target::Target;

use crate::protocol::scenario::Caller;
use crate::protocol::{Answer, Client, Malformed, Progress, Started};
use crate::script::scenario::ScriptClient;
use crate::transport::route::Route;
use crate::user::Message;

/// The most hosts that the users of a run may call, by scheme, name and port.
const MOST_ORIGINS: usize = 1000;

/// Finds the way to a target: its addresses, and TLS if its scheme wants it. May block.
pub(crate) type Find = dyn Fn(&Target, &ScriptClient) -> Result<Route, (Failure, String)> + Send + Sync;

/// How an origin can be reached.
enum Way {
    Known(Route),
    /// It is being looked for.
    Sought,
    /// There is none.
    None(Failure, String),
}

/// A scheme, a host and a port, for the calls of one client of a script, or of a flood.
pub(crate) struct Origin {
    /// The client of the script, by its place.
    client: usize,
    scheme: String,
    authority: String,
    way: Way,
    /// Makes the state of connections; a flood's are made by its protocol.
    caller: Option<Arc<dyn Caller>>,
    /// Connections that all users share, if they share them.
    pub(super) pool: Option<Pool>,
    /// Calls that wait for the way to be found, or for a connection of the pool.
    pub(super) waiting: VecDeque<u32>,
}

/// Connections of one worker that all its users share.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The most there may be.
    pub(super) most: usize,
    /// How many there are.
    pub(super) count: usize,
    /// Those that may be free; some may have gone since.
    pub(super) free: Vec<usize>,
}

/// A way that was found, or not.
type Found = (usize, Result<Route, (Failure, String)>);

/// The origins of a worker.
pub(crate) struct Origins {
    list: Vec<Origin>,
    find: Option<Arc<Find>>,
    finding: (Sender<Found>, Receiver<Found>),
    /// How many are being looked for.
    pub(super) sought: usize,
    worker: u32,
    workers: u32,
}

impl Origins {
    /// The one of a flood.
    pub(crate) fn of_flood(route: Route) -> Self {
        let origin = Origin {
            client: 0,
            scheme: String::new(),
            authority: String::new(),
            way: Way::Known(route),
            caller: None,
            pool: None,
            waiting: VecDeque::new(),
        };
        Self { list: vec![origin], find: None, finding: channel(), sought: 0, worker: 0, workers: 1 }
    }

    /// None at first; the ways to those that are called are found by `find`.
    pub(crate) fn of_users(find: Arc<Find>, worker: u32, workers: u32) -> Self {
        Self { list: Vec::new(), find: Some(find), finding: channel(), sought: 0, worker, workers }
    }

    /// Has TLS sessions of its own to resume: workers share nothing per call.
    pub(super) fn keep_own_sessions(&mut self) {
        for origin in &mut self.list {
            if let Way::Known(route) = &mut origin.way {
                route.tls = route.tls.take().map(|tls| tls.for_worker());
            }
        }
    }

    /// The way to an origin, if it is known.
    pub(super) fn route(&self, origin: usize) -> Option<&Route> {
        match &self.list.get(origin)?.way {
            Way::Known(route) => Some(route),
            Way::Sought | Way::None(..) => None,
        }
    }

    /// Why there is no way to it, if that is so.
    pub(super) fn lost(&self, origin: usize) -> Option<(Failure, String)> {
        match &self.list.get(origin)?.way {
            Way::None(failure, reason) => Some((*failure, reason.clone())),
            Way::Known(_) | Way::Sought => None,
        }
    }

    /// The origin with this number.
    pub(super) fn get(&mut self, origin: usize) -> Option<&mut Origin> {
        self.list.get_mut(origin)
    }

    /// All of them.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Origin> {
        self.list.iter_mut()
    }

    /// The state of a new connection.
    pub(super) fn client(&self, origin: usize) -> Box<dyn Client> {
        let caller = self.list.get(origin).and_then(|origin| origin.caller.as_ref());
        caller.map_or_else(|| Box::new(NoClient) as Box<dyn Client>, |caller| caller.connection())
    }

    /// The number of an origin that is known to a client already.
    pub(super) fn place(&self, client: usize, target: &Target) -> Option<usize> {
        self.list.iter().position(|origin| {
            origin.client == client && origin.scheme == target.scheme && origin.authority == target.authority()
        })
    }

    /// Adds an origin whose way is known.
    pub(crate) fn add_known(&mut self, client: usize, target: &Target, of: &ScriptClient, route: Route) -> usize {
        let tls = route.tls.as_ref().map(crate::transport::tls::TlsRoute::for_worker);
        self.add(client, target, of, Way::Known(Route { tls, ..route }))
    }

    fn add(&mut self, client: usize, target: &Target, of: &ScriptClient, way: Way) -> usize {
        let (worker, workers) = (u64::from(self.worker), u64::from(self.workers));
        let pool = of.pool.map(|connections| Pool {
            most: share_of(u64::from(connections), worker, workers).max(1) as usize,
            ..Pool::default()
        });
        self.list.push(Origin {
            client,
            scheme: target.scheme.clone(),
            authority: target.authority(),
            way,
            caller: Some(Arc::clone(&of.caller)),
            pool,
            waiting: VecDeque::new(),
        });
        self.list.len() - 1
    }

    /// Adds an origin and begins to look for the way to it.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn seek(&mut self, client: usize, target: &Target, of: &ScriptClient) -> Result<usize, String> {
        if self.list.len() >= MOST_ORIGINS {
            return Err(format!("more than {MOST_ORIGINS} hosts were called: a run keeps connections to no more"));
        }
        let origin = self.add(client, target, of, Way::Sought);
        let Some(find) = self.find.clone() else { return Ok(origin) };
        let (sender, target, of) = (self.finding.0.clone(), target.clone(), of.clone());
        // Names are looked up by the C library, which blocks.
        let spawned = thread::Builder::new().name("resolver".to_owned()).spawn(move || {
            // Nobody listens once the run is over.
            let _ = sender.send((origin, find(&target, &of)));
        });
        match spawned {
            Ok(_) => self.sought += 1,
            Err(error) => {
                let way = Way::None(Failure::Resolve, format!("a thread to look it up cannot be started ({error})"));
                if let Some(origin) = self.list.get_mut(origin) {
                    origin.way = way;
                }
            }
        }
        Ok(origin)
    }

    /// An origin that was looked for since this was last asked, if one was; its way is known now, or that it has none.
    pub(super) fn found(&mut self) -> Option<usize> {
        if self.sought == 0 {
            return None;
        }
        let (place, found) = self.finding.1.try_recv().ok()?;
        self.sought -= 1;
        let origin = self.list.get_mut(place)?;
        origin.way = match found {
            Ok(route) => Way::Known(Route { tls: route.tls.map(|tls| tls.for_worker()), ..route }),
            Err((failure, reason)) => Way::None(failure, reason),
        };
        Some(place)
    }
}

/// The state of a connection that there is not.
pub(crate) struct NoClient;

impl Client for NoClient {
    fn start(&mut self, _message: &Message<'_>, _out: &mut Vec<u8>) -> Started {
        Started::Awaited
    }

    fn receive(&mut self, _bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        Err(Malformed::because("bytes on a connection that is closed"))
    }

    fn closed(&mut self) -> Option<Answer> {
        None
    }
}
