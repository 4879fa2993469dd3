//! The layer: how identical requests are coalesced, and its settings.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, Request, header};
use tower_layer::Layer;

use crate::answer::Judge;
use crate::counters::{Counters, Event, Observer, Tally};
use crate::flight::{Answering, Held, Limits, Table};
use crate::mark::Mark;
use crate::oneshot::Oneshot;
use crate::request::Eligible;
use crate::service::Coalesce;

/// Coalesces identical requests in flight: see [the crate](crate).
///
/// `B` is the body of requests, which the compiler finds out.
///
/// # Flights
///
/// Flights belong to a service and its clones: each use of the layer makes a service with flights of its own, so that two
/// routers never answer for each other. Some servers use the layer anew for each connection or request, as an axum `Router`
/// does: then nothing is coalesced, and [`Counters::services`] grows. For these there is [`shared`](Self::shared).
pub struct CoalesceLayer<B> {
    limits: Limits,
    eligible: Eligible,
    no_cache: bool,
    pub(crate) mark: Mark,
    pub(crate) max_wait: Option<Duration>,
    tally: Tally,
    held: Arc<Held>,
    realm: Realm,
    is_shared: bool,
    body: PhantomData<fn(B)>,
}

/// The bytes of its body up to which a flight may be joined, by default.
pub const JOIN_LATE_BYTES: usize = 256 * 1024;

impl<B> CoalesceLayer<B> {
    /// The layer with the settings that are each method's default. A change of settings [separates](Self::separate) a layer
    /// from those that it was cloned from.
    pub fn new() -> Self {
        let limits = Limits {
            members: 16 * 1024,
            flight_bytes: 8 * 1024 * 1024,
            total_bytes: 256 * 1024 * 1024,
            replay_bytes: JOIN_LATE_BYTES,
            late: Duration::from_secs(1),
            promotions: 2,
            share_failures: true,
            hold: Duration::ZERO,
        };
        Self {
            limits,
            eligible: Eligible::default(),
            no_cache: false,
            mark: Mark::default(),
            max_wait: Some(Duration::from_secs(30)),
            tally: Tally::default(),
            held: Arc::default(),
            realm: Realm::default(),
            is_shared: false,
            body: PhantomData,
        }
    }

    /// Tells requests apart by this header, too. A header that would otherwise exclude a request (`Authorization`,
    /// `Cookie`, `Range`, …) no longer does: requests with the same value of it are coalesced.
    #[must_use]
    pub fn key_header(mut self, name: HeaderName) -> Self {
        self.realm = Realm::default();
        self.eligible.key_headers.push(name);
        self
    }

    /// Tells requests apart by the result of this function, in addition to the usual parts; requests for which it
    /// returns `None` are
    /// not coalesced. The function identifies the client: requests with `Authorization`, `Cookie` and the like are
    /// coalesced
    /// if it returns a value, so it must return another value for each identity.
    ///
    /// It does not decide on methods and bodies: unsafe methods and requests with a body are never coalesced.
    #[must_use]
    pub fn key_by(mut self, key: impl Fn(&Parts) -> Option<Bytes> + Send + Sync + 'static) -> Self {
        self.realm = Realm::default();
        self.eligible.key_function = Some(Arc::new(key));
        self
    }

    /// Takes this header for harmless: it neither tells requests apart nor excludes them. A follower gets the answer that was
    /// made for its leader's value.
    #[must_use]
    pub fn ignore_header(mut self, name: HeaderName) -> Self {
        self.realm = Realm::default();
        self.eligible.ignored_headers.push(name);
        self
    }

    /// Takes cookies of this name for harmless; `_ga_*` stands for all whose names begin with `_ga_`. Requests all of whose
    /// cookies are harmless are coalesced. The service still gets them: those of the leader.
    #[must_use]
    pub fn ignore_cookie(mut self, name: impl Into<String>) -> Self {
        self.realm = Realm::default();
        self.eligible.ignored_cookies.0.push(name.into());
        self
    }

    /// Replaces the rule about headers by this function: requests are told apart by method, URI, host and its result alone.
    /// Those for which it returns `None` are not coalesced. The result must differ wherever the answer does: for each
    /// user, language, encoding, and so on.
    #[must_use]
    pub fn key_only_by(mut self, key: impl Fn(&Parts) -> Option<Bytes> + Send + Sync + 'static) -> Self {
        self = self.key_by(key);
        self.eligible.only_key_function = true;
        self
    }

    /// Coalesces OPTIONS and TRACE as well as GET and HEAD: all safe methods (RFC 9110, section 9.2.1) without a body.
    /// Other methods cannot be coalesced. Default: false.
    #[must_use]
    pub fn all_safe_methods(mut self, yes: bool) -> Self {
        self.realm = Realm::default();
        self.eligible.all_safe_methods = yes;
        self
    }

    /// Shares answers with `Cache-Control: no-cache`, too. Strictly they may answer no other request (RFC 9111, section
    /// 5.2.2.4), though an answer that was never stored is fresh for all that wait for it. Default: false.
    #[must_use]
    pub fn share_no_cache(mut self, yes: bool) -> Self {
        self.realm = Realm::default();
        self.no_cache = yes;
        self
    }

    /// How many may take part in a flight; further requests go to the service themselves. Default: 16,384.
    #[must_use]
    pub fn max_members(mut self, members: usize) -> Self {
        self.realm = Realm::default();
        self.limits.members = members.max(1);
        self
    }

    /// How long a follower waits for headers; then it goes to the service itself. A request may have a [`WaitAtMost`] of
    /// its own. Default: 30 s. With `None`, and without [`WaitAtMost`], no timer of tokio's is used.
    ///
    /// [`WaitAtMost`]: crate::WaitAtMost
    #[must_use]
    pub fn max_wait(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.realm = Realm::default();
        self.max_wait = wait.into();
        self
    }

    /// The bytes of a body that one flight holds for readers slower than the fastest. Once that much is held, the fast ones
    /// wait for the slowest that takes at least 64 KiB a second. A slower one is cut off after 5 s: it goes to the service
    /// itself if nothing has been sent to it yet, else its body ends with [`BodyError::SlowReader`]. A body that is known to
    /// be longer is not shared. Default: 8 MiB.
    ///
    /// [`BodyError::SlowReader`]: crate::BodyError::SlowReader
    #[must_use]
    pub fn max_bytes_per_flight(mut self, bytes: usize) -> Self {
        self.realm = Realm::default();
        self.limits.flight_bytes = bytes;
        self
    }

    /// The most bytes that all flights hold together, including keys and heads. Once half of it is held, new requests
    /// go to the service themselves, and flights that hold more than their share of that half wait for their slow readers;
    /// a flight within its share is not slowed because of others. Default: 256 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.realm = Realm::default();
        self.limits.total_bytes = bytes;
        self
    }

    /// A request may join a flight until this long after its headers were sent, if its body so far has at most this
    /// many bytes. Default: 1 s, 256 KiB; if either is zero, no request joins that late.
    #[must_use]
    pub fn join_late(mut self, within: Duration, bytes: usize) -> Self {
        self.realm = Realm::default();
        (self.limits.late, self.limits.replay_bytes) = (within, bytes);
        if bytes == 0 {
            self.limits.late = Duration::ZERO;
        }
        self
    }

    /// How often a follower replaces a leader that failed, or whose status may be due to its own request. After that,
    /// all that wait are answered with 500, or call the service themselves. Without [`share_failures`](Self::share_failures)
    /// this concerns statuses alone. Default: 2.
    #[must_use]
    pub fn max_promotions(mut self, promotions: u32) -> Self {
        self.realm = Realm::default();
        self.limits.promotions = promotions;
        self
    }

    /// Whether requests that wait are answered with 500 once the last leader has failed. If not, they call the service
    /// themselves, for services that one client's request can make fail: one of them, then two at a time, four, and so on,
    /// until an answer can be shared. Answers of 5xx and 429 are such failures always. Default: true.
    #[must_use]
    pub fn share_failures(mut self, yes: bool) -> Self {
        self.realm = Realm::default();
        self.limits.share_failures = yes;
        self
    }

    /// Keeps a complete answer for requests that come up to this long after its end: some milliseconds smooth a
    /// thundering herd. Default: zero, which keeps none.
    ///
    /// Kept answers are bounded by [`max_bytes`](Self::max_bytes), and are dropped as requests come.
    #[must_use]
    pub fn hold(mut self, hold: Duration) -> Self {
        self.realm = Realm::default();
        self.limits.hold = hold;
        self
    }

    /// Whether answers say which request led and which followed. Default: when asked.
    #[must_use]
    pub fn mark(mut self, mark: Mark) -> Self {
        self.realm = Realm::default();
        self.mark = mark;
        self
    }

    /// Receives every event.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.realm = Realm::default();
        self.tally.observed_by(Arc::new(observer));
        self
    }

    /// Shares flights among all services (of the same type) that this layer and its clones are put around. A request to one
    /// of them may be answered by another if it looks the same where the layer sees it. So services that answer the same
    /// request differently need layers of their own: two apps, or two routers that are nested below different paths, as they
    /// do not see these.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.realm = Realm::default();
        self.is_shared = true;
        self
    }

    /// A layer with the same settings, and flights of its own. It shares counters and the limit of bytes with this one.
    #[must_use]
    pub fn separate(&self) -> Self {
        Self { realm: Realm::default(), ..self.clone() }
    }

    /// The counters so far, over all clones of this layer and the layers separated from it.
    pub fn counters(&self) -> Counters {
        self.tally.read()
    }

    /// About how many bytes of bodies, keys and heads are held now.
    pub fn held_bytes(&self) -> usize {
        self.held.bytes()
    }

    fn judge(&self) -> Judge {
        Judge {
            longest: self.limits.flight_bytes as u64,
            ranges: self.eligible.key_headers.contains(&header::RANGE),
            no_cache: self.no_cache,
        }
    }
}

impl<B> Default for CoalesceLayer<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B> Clone for CoalesceLayer<B> {
    fn clone(&self) -> Self {
        Self {
            limits: self.limits,
            eligible: self.eligible.clone(),
            no_cache: self.no_cache,
            mark: self.mark,
            max_wait: self.max_wait,
            tally: self.tally.clone(),
            held: Arc::clone(&self.held),
            realm: self.realm.clone(),
            is_shared: self.is_shared,
            body: PhantomData,
        }
    }
}

impl<B> std::fmt::Debug for CoalesceLayer<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoalesceLayer")
            .field("limits", &self.limits)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

impl<S, B> Layer<S> for CoalesceLayer<B>
where
    S: tower_service::Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    type Service = Coalesce<S, B>;

    fn layer(&self, inner: S) -> Self::Service {
        let new = || {
            self.tally.count(Event::ServiceMade);
            Table::new(self.limits, self.judge(), self.tally.clone(), Arc::clone(&self.held))
        };
        let table = if self.is_shared { self.realm.get_or_make(new) } else { Arc::new(new()) };
        Coalesce::new(inner, table, self.eligible.clone(), self.mark, self.max_wait)
    }
}

/// The flights of a shared layer and its clones: a table for each type of service.
#[derive(Clone, Default)]
struct Realm(Arc<Mutex<Vec<Arc<dyn Any + Send + Sync>>>>);

impl Realm {
    fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.iter().find_map(|table| Arc::clone(table).downcast().ok()) {
            return table;
        }
        let table = Arc::new(make());
        tables.push(Arc::clone(&table) as Arc<dyn Any + Send + Sync>);
        table
    }
}
