//! Where a worker's connections go: the targets of a flood, as many origins as a script's users call for.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

use brunt_plan::share::Share;
use brunt_plan::target::Target;
use brunt_record::SECOND_NS;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use crate::transport::Address;
use crate::transport::route::{Route, RouteError};
use brunt_protocol::source::Message;
use brunt_protocol::{Answer, Client, FailedCall, Malformed, Progress, Started};
use brunt_script::{KeepAlive, ScriptClient};

/// The most hosts that the users of a run may call, by scheme, name and port.
const MOST_ORIGINS: usize = 1000;

/// Finds the way to a target: its addresses, and TLS if its scheme wants it. May block.
pub(crate) type Find = dyn Fn(&Target, &ScriptClient) -> Result<Route, RouteError> + Send + Sync;

/// Makes the state of a new connection, given its number among those that the worker began to make, from 0.
pub(crate) type MakeClient = dyn Fn(u64) -> Box<dyn Client> + Send + Sync;

/// How an origin can be reached.
enum Reachability {
    Known(Route),
    /// The way to it is being sought.
    Sought,
    /// No origin.
    None(Failure, String),
}

/// A scheme, a host and a port, for the calls of one client of a script, or of a flood.
struct Origin {
    /// The script's client, by its index.
    client: usize,
    scheme: String,
    authority: String,
    reach: Reachability,
    /// The most calls in flight on one of its connections.
    pipeline: usize,
    /// Makes the protocol's state for its connections.
    clients: Arc<MakeClient>,
    /// How many connections all users share, if they do; and whether another is made only once all are full.
    shared: Option<(usize, bool)>,
    /// How many connections each user has, if they do not.
    per_user: usize,
    keep_alive: KeepAlive,
    renewal: Renewal,
}

/// Further lookups of an origin's name: since none of its known addresses took a connection, or by the clock.
#[derive(Debug, Default)]
struct Renewal {
    /// The next lookup happens at this time or later.
    not_before: Tick,
    /// The first connection at this time or later asks for one by the clock.
    next: Option<Tick>,
    /// Receives the addresses being looked up.
    coming: Option<Receiver<Vec<Address>>>,
    /// Whether a lookup found other addresses.
    has_moved: bool,
}

impl Renewal {
    /// Replaces `known` addresses by those that were found, if they are others. Returns whether they are.
    #[cold]
    fn take(&mut self, known: &mut Vec<Address>) -> bool {
        let found = match self.coming.as_ref().map(Receiver::try_recv) {
            None | Some(Err(TryRecvError::Empty)) => return false,
            Some(Err(TryRecvError::Disconnected)) => None,
            Some(Ok(addresses)) => Some(addresses),
        };
        self.coming = None;
        // A name with several addresses may have them in another order each time.
        let are_others =
            |found: &Vec<Address>| found.len() != known.len() || found.iter().any(|address| !known.contains(address));
        let Some(found) = found.filter(are_others) else { return false };
        *known = found;
        self.has_moved = true;
        true
    }
}

/// A worker's own number for an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub(crate) struct OriginId(usize);

impl OriginId {
    /// The first origin: a flood's first target.
    pub(crate) const FIRST: Self = Self(0);

    /// The origin at this place in the plan.
    pub(crate) const fn at(place: usize) -> Self {
        Self(place)
    }

    /// Its place.
    pub(crate) const fn place(self) -> usize {
        self.0
    }
}

/// A way that was found, or not.
type LookupResult = (OriginId, Result<Route, RouteError>);

/// The origins of a worker.
pub(crate) struct Origins {
    list: Vec<Origin>,
    find: Option<Arc<Find>>,
    finding: (Sender<LookupResult>, Receiver<LookupResult>),
    /// How many are being looked for.
    sought: usize,
    share: Share,
}

impl Origins {
    /// The origins of a flood, by its targets; `pipeline` is the most calls in flight on a connection.
    pub(crate) fn of_flood(
        routes: impl IntoIterator<Item = Route>,
        clients: &Arc<MakeClient>,
        pipeline: usize,
    ) -> Self {
        let origin = |route| Origin {
            client: 0,
            scheme: String::new(),
            authority: String::new(),
            reach: Reachability::Known(route),
            pipeline,
            clients: Arc::clone(clients),
            shared: None,
            per_user: 1,
            keep_alive: KeepAlive::Kept,
            renewal: Renewal::default(),
        };
        Self {
            list: routes.into_iter().map(origin).collect(),
            find: None,
            finding: channel(),
            sought: 0,
            share: Share::WHOLE,
        }
    }

    /// No origins at first; `find` finds the way to each one that users call.
    pub(crate) fn of_users(find: Arc<Find>, share: Share) -> Self {
        Self { list: Vec::new(), find: Some(find), finding: channel(), sought: 0, share }
    }

    /// Gives each worker TLS sessions of its own to resume: workers share nothing per call.
    pub(crate) fn keep_own_sessions(&mut self) {
        for origin in &mut self.list {
            if let Reachability::Known(route) = &mut origin.reach {
                route.tls = route.tls.take().map(|tls| tls.for_worker());
            }
        }
    }

    /// The way to an origin, if it is known.
    pub(crate) fn route(&self, origin: OriginId) -> Option<&Route> {
        match &self.list.get(origin.0)?.reach {
            Reachability::Known(route) => Some(route),
            Reachability::Sought | Reachability::None(..) => None,
        }
    }

    /// None of the origin's addresses took a connection: looks its name up again, if it has one, at most once a second.
    pub(crate) fn seek_addresses(&mut self, origin: OriginId, now: Tick) {
        let Some(Origin { reach: Reachability::Known(route), renewal, .. }) = self.list.get_mut(origin.0) else {
            return;
        };
        let Some(again) = &route.again else { return };
        if now < renewal.not_before || renewal.coming.is_some() {
            return;
        }
        let (again, (sender, receiver)) = (again.clone(), channel());
        // Names are looked up by the C library, which blocks.
        let spawned = thread::Builder::new().name("resolver".to_owned()).spawn(move || {
            // If nothing is found, the known addresses stay. Nobody listens once the run is over.
            let _ = again.find().map(|addresses| sender.send(addresses));
        });
        renewal.not_before = now.saturating_add(SECOND_NS);
        renewal.coming = spawned.is_ok().then_some(receiver);
    }

    /// A connection is about to be made at `now`. It and later ones go to the origin's new addresses, if some were found
    /// since the last one; returns whether they differ from those before. Looks the name up again if it is time to.
    #[inline]
    pub(crate) fn renew_addresses(&mut self, origin: OriginId, now: Tick) -> bool {
        let Some(Origin { reach: Reachability::Known(route), renewal, .. }) = self.list.get_mut(origin.0) else {
            return false;
        };
        let every_ns = route.again.as_ref().map_or(0, |again| again.every_ns);
        let next = renewal.next.get_or_insert(now.saturating_add(every_ns));
        let is_due = every_ns > 0 && *next <= now;
        if is_due {
            *next = now.saturating_add(every_ns);
        }
        let has_moved = renewal.coming.is_some() && renewal.take(&mut route.addresses);
        if is_due {
            self.seek_addresses(origin, now);
        }
        has_moved
    }

    /// Whether a lookup has found other addresses of the origin than the first.
    pub(crate) fn has_moved(&self, origin: OriginId) -> bool {
        self.list.get(origin.0).is_some_and(|origin| origin.renewal.has_moved)
    }

    /// Why it cannot be reached; `None` if it can.
    pub(crate) fn lost(&self, origin: OriginId) -> Option<(Failure, String)> {
        match &self.list.get(origin.0)?.reach {
            Reachability::None(failure, reason) => Some((*failure, reason.clone())),
            Reachability::Known(_) | Reachability::Sought => None,
        }
    }

    /// The state of a new connection, the worker's one with this number from 0.
    pub(crate) fn client(&self, origin: OriginId, number: u64) -> Box<dyn Client> {
        match self.list.get(origin.0) {
            Some(origin) => (origin.clients)(number),
            None => Box::new(NoClient),
        }
    }

    /// The most calls in flight on one connection to it.
    pub(crate) fn pipeline(&self, origin: OriginId) -> usize {
        self.list.get(origin.0).map_or(1, |origin| origin.pipeline)
    }

    /// How long its connections carry calls.
    pub(crate) fn keep_alive(&self, origin: OriginId) -> KeepAlive {
        self.list.get(origin.0).map_or(KeepAlive::Kept, |origin| origin.keep_alive)
    }

    /// How many connections to it all users share, if they do; and whether another is made only once all are full.
    pub(super) fn shared(&self, origin: OriginId) -> Option<(usize, bool)> {
        self.list.get(origin.0)?.shared
    }

    /// How many connections to it each user has, where they share none.
    pub(super) fn per_user(&self, origin: OriginId) -> usize {
        self.list.get(origin.0).map_or(1, |origin| origin.per_user)
    }

    /// How many calls a connection to it should carry at once. Where another is made once one is full, no more than one
    /// can carry.
    pub(crate) fn asked_of(&self, origin: OriginId) -> usize {
        let grows = self.shared(origin).is_some_and(|(_, grows)| grows);
        if grows { 1 } else { self.pipeline(origin) }
    }

    /// The number of an origin that a client knows already.
    pub(crate) fn place(&self, client: usize, target: &Target) -> Option<OriginId> {
        let is_it = |origin: &Origin| {
            origin.client == client && origin.scheme == target.scheme && origin.authority == target.place()
        };
        self.list.iter().position(is_it).map(OriginId)
    }

    /// Adds an origin whose way is known.
    pub(crate) fn add_known(&mut self, client: usize, target: &Target, of: &ScriptClient, route: Route) -> OriginId {
        let tls = route.tls.as_ref().map(crate::transport::tls::TlsRoute::for_worker);
        self.add(client, target, of, Reachability::Known(Route { tls, ..route }))
    }

    /// Adds an origin to which no way leads, for this reason.
    pub(crate) fn add_lost(
        &mut self,
        client: usize,
        target: &Target,
        of: &ScriptClient,
        (failure, reason): (Failure, String),
    ) {
        self.add(client, target, of, Reachability::None(failure, reason));
    }

    fn add(&mut self, client: usize, target: &Target, of: &ScriptClient, reach: Reachability) -> OriginId {
        let most = |connections| self.share.part_of(u64::from(connections)).max(1) as usize;
        let shared = of.pool.map(|connections| (most(connections), of.grows));
        let caller = Arc::clone(&of.caller);
        self.list.push(Origin {
            client,
            scheme: target.scheme.clone(),
            authority: target.place(),
            reach,
            pipeline: if of.keep_alive == KeepAlive::Call { 1 } else { of.pipeline as usize },
            clients: Arc::new(move |_| caller.connection()),
            shared,
            per_user: of.per_user as usize,
            keep_alive: of.keep_alive,
            renewal: Renewal::default(),
        });
        OriginId(self.list.len() - 1)
    }

    /// Adds an origin and begins to seek the way to it.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn seek(&mut self, client: usize, target: &Target, of: &ScriptClient) -> Result<OriginId, String> {
        if self.list.len() >= MOST_ORIGINS {
            return Err(format!("more than {MOST_ORIGINS} hosts were called: a run keeps connections to no more"));
        }
        let origin = self.add(client, target, of, Reachability::Sought);
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
                let reach =
                    Reachability::None(Failure::Resolve, format!("a thread to look it up cannot be started ({error})"));
                if let Some(origin) = self.list.get_mut(origin.0) {
                    origin.reach = reach;
                }
            }
        }
        Ok(origin)
    }

    /// Whether the way to any of them is being sought.
    pub(crate) fn are_sought(&self) -> bool {
        self.sought > 0
    }

    /// An origin whose way was found since the last time, or found not to exist.
    pub(crate) fn found(&mut self) -> Option<OriginId> {
        if self.sought == 0 {
            return None;
        }
        let (place, found) = self.finding.1.try_recv().ok()?;
        self.sought -= 1;
        let origin = self.list.get_mut(place.0)?;
        origin.reach = match found {
            Ok(route) => Reachability::Known(Route { tls: route.tls.map(|tls| tls.for_worker()), ..route }),
            Err(error) => Reachability::None(error.failure(), error.to_string()),
        };
        Some(place)
    }
}

/// Placeholder client of a closed connection.
pub(crate) struct NoClient;

impl Client for NoClient {
    fn start(&mut self, _message: &Message<'_>, _out: &mut Vec<u8>) -> Started {
        Started::Awaited
    }

    fn receive(&mut self, _bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        Err(Malformed::because("bytes on a connection that is closed"))
    }

    fn closed(&mut self) -> Option<Result<Answer, FailedCall>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::transport::route::Again;

    #[test]
    fn a_name_is_asked_again_by_the_clock_and_another_order_is_no_move() {
        let at = |port: u16| Address::Tcp(([127, 0, 0, 1], port).into());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let find =
            move || Ok(if counted.fetch_add(1, Ordering::SeqCst) == 0 { vec![at(2), at(1)] } else { vec![at(3)] });
        let again = Some(Again::new(find, SECOND_NS));
        let route = Route { addresses: vec![at(1), at(2)], sources: Vec::new(), tunnel: None, tls: None, again };
        let clients: Arc<MakeClient> = Arc::new(|_| Box::new(NoClient));
        let mut origins = Origins::of_flood([route], &clients, 1);
        let mut renew = |seconds: u64| origins.renew_addresses(OriginId::FIRST, Tick::from_ns(seconds * SECOND_NS));
        assert!(!renew(5) && !renew(5));
        assert_eq!(asked.load(Ordering::SeqCst), 0, "it was looked up when the run began");
        let mut moved_at = None;
        for second in 6..5_000 {
            moved_at = moved_at.or(renew(second).then_some(asked.load(Ordering::SeqCst)));
            if moved_at.is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        assert!(moved_at >= Some(2), "{moved_at:?}: the first lookup has the same addresses in another order");
        assert!(origins.has_moved(OriginId::FIRST));
        assert_eq!(origins.route(OriginId::FIRST).map(|route| &route.addresses), Some(&vec![at(3)]));
    }
}
