//! The layer: how identical requests are coalesced, and its settings.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use http::request::Parts;
use tower_layer::Layer;

use crate::counters::{Counters, Observer, Tally};
use crate::flight::Limits;
use crate::mark::Mark;
use crate::request::Eligible;
use crate::service::Coalesce;
use crate::shared::{Realm, Settings};

/// Coalesces identical requests in flight: see [the crate](crate).
///
/// # Flights
///
/// Flights belong to a service and its clones: each use of the layer makes a service with flights of its own, so that two
/// routers never answer for each other. Some servers use the layer anew for each connection or request: then nothing is
/// coalesced, and [`Counters::services`] grows. For these there is [`shared`](Self::shared).
#[derive(Clone)]
pub struct CoalesceLayer {
    settings: Settings,
    /// What services of a shared layer have in common; `None` if each has flights of its own.
    common: Option<Arc<Realm>>,
}

/// The bytes of its body up to which a flight may be joined, by default.
pub const JOIN_LATE_BYTES: usize = 256 * 1024;

/// How long after its head a flight may be joined, by default.
pub const JOIN_LATE: Duration = Duration::from_secs(1);

impl CoalesceLayer {
    /// The layer with the settings that are each method's default. A change of settings [separates](Self::separate) a layer
    /// from those that it was cloned from.
    pub fn new() -> Self {
        let limits = Limits {
            members: 16 * 1024,
            flight_bytes: 8 * 1024 * 1024,
            total_bytes: 256 * 1024 * 1024,
            replay_bytes: JOIN_LATE_BYTES,
            late: JOIN_LATE,
            promotions: 2,
            share_failures: true,
            hold: Duration::ZERO,
        };
        let settings = Settings {
            limits,
            eligible: Eligible::default(),
            no_cache: false,
            mark: Mark::default(),
            max_wait: Some(Duration::from_secs(30)),
            tally: Tally::default(),
            held: Arc::default(),
        };
        Self { settings, common: None }
    }

    /// Changes the settings. A shared layer gets flights of its own: those of other settings may not be joined.
    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.separate()
    }

    /// Tells requests apart by this header, too. A header that would otherwise exclude a request (`Authorization`,
    /// `Cookie`, `Range`, …) no longer does: requests with the same value of it are coalesced.
    #[must_use]
    pub fn key_header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.eligible.key_headers.push(name))
    }

    /// Tells requests apart by the result of this function, in addition to the usual parts; requests for which it
    /// returns `None` are
    /// not coalesced. The function identifies the client: requests with `Authorization`, `Cookie` and the like are
    /// coalesced
    /// if it returns a value, so it must return another value for each identity.
    ///
    /// It does not decide on methods and bodies: unsafe methods and requests with a body are never coalesced.
    #[must_use]
    pub fn key_by(self, key: impl Fn(&Parts) -> Option<Bytes> + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.eligible.key_function = Some(Arc::new(key)))
    }

    /// Takes this header for harmless: it neither tells requests apart nor excludes them. A follower gets the answer that was
    /// made for its leader's value.
    #[must_use]
    pub fn ignore_header(self, name: HeaderName) -> Self {
        self.with(|settings| settings.eligible.ignored_headers.push(name))
    }

    /// Takes cookies of this name for harmless; `_ga_*` stands for all whose names begin with `_ga_`. Requests all of whose
    /// cookies are harmless are coalesced. The service still gets them: those of the leader.
    #[must_use]
    pub fn ignore_cookie(self, name: impl Into<String>) -> Self {
        self.with(|settings| settings.eligible.ignored_cookies.0.push(name.into()))
    }

    /// Replaces the rule about headers by this function: requests are told apart by method, URI, host and its result alone.
    /// Those for which it returns `None` are not coalesced. The result must differ wherever the answer does: for each
    /// user, language, encoding, and so on.
    #[must_use]
    pub fn key_only_by(self, key: impl Fn(&Parts) -> Option<Bytes> + Send + Sync + 'static) -> Self {
        self.key_by(key).with(|settings| settings.eligible.only_key_function = true)
    }

    /// Coalesces OPTIONS and TRACE as well as GET and HEAD: all safe methods (RFC 9110, section 9.2.1) without a body.
    /// Other methods cannot be coalesced. Default: false.
    #[must_use]
    pub fn all_safe_methods(self, yes: bool) -> Self {
        self.with(|settings| settings.eligible.all_safe_methods = yes)
    }

    /// Shares answers with `Cache-Control: no-cache`, too. Strictly they may answer no other request (RFC 9111, section
    /// 5.2.2.4), though an answer that was never stored is fresh for all that wait for it. Default: false.
    #[must_use]
    pub fn share_no_cache(self, yes: bool) -> Self {
        self.with(|settings| settings.no_cache = yes)
    }

    /// How many may take part in a flight; further requests go to the service themselves. Default: 16,384.
    #[must_use]
    pub fn max_members(self, members: usize) -> Self {
        self.with(|settings| settings.limits.members = members.max(1))
    }

    /// How long a follower waits for headers; then it goes to the service itself. A request may have a [`WaitAtMost`] of
    /// its own. Default: 30 s. With `None`, and without [`WaitAtMost`], no timer of tokio's is used.
    ///
    /// [`WaitAtMost`]: crate::WaitAtMost
    #[must_use]
    pub fn max_wait(self, wait: impl Into<Option<Duration>>) -> Self {
        self.with(|settings| settings.max_wait = wait.into())
    }

    /// The bytes of a body that one flight holds for readers slower than the fastest. Once that much is held, the fast ones
    /// wait for the slowest that takes at least 64 KiB a second. A slower one is cut off after 5 s: it goes to the service
    /// itself if nothing has been sent to it yet, else its body ends with [`BodyError::SlowReader`]. A body that is known to
    /// be longer is not shared. Default: 8 MiB.
    ///
    /// [`BodyError::SlowReader`]: crate::BodyError::SlowReader
    #[must_use]
    pub fn max_bytes_per_flight(self, bytes: usize) -> Self {
        self.with(|settings| settings.limits.flight_bytes = bytes)
    }

    /// The most bytes that all flights hold together, including keys and heads. Once half of it is held, new requests
    /// go to the service themselves, and flights that hold more than their share of that half wait for their slow readers;
    /// a flight within its share is not slowed because of others. Default: 256 MiB.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        self.with(|settings| settings.limits.total_bytes = bytes)
    }

    /// A request may join a flight until this long after its headers were sent, if its body so far has at most this
    /// many bytes. Default: 1 s, 256 KiB; if either is zero, no request joins that late.
    #[must_use]
    pub fn join_late(self, within: Duration, bytes: usize) -> Self {
        let late = if bytes == 0 { Duration::ZERO } else { within };
        self.with(|settings| (settings.limits.late, settings.limits.replay_bytes) = (late, bytes))
    }

    /// How often a follower replaces a leader that failed, or whose status may be due to its own request. After that,
    /// all that wait are answered with 500, or call the service themselves. Without [`share_failures`](Self::share_failures)
    /// this concerns statuses alone. Default: 2.
    #[must_use]
    pub fn max_promotions(self, promotions: u32) -> Self {
        self.with(|settings| settings.limits.promotions = promotions)
    }

    /// Whether requests that wait are answered with 500 once the last leader has failed. If not, they call the service
    /// themselves, for services that one client's request can make fail: one of them, then two at a time, four, and so on,
    /// until an answer can be shared. Answers of 5xx and 429 are such failures always. Default: true.
    #[must_use]
    pub fn share_failures(self, yes: bool) -> Self {
        self.with(|settings| settings.limits.share_failures = yes)
    }

    /// Keeps a complete answer for requests that come up to this long after its end: some milliseconds smooth a
    /// thundering herd. Default: zero, which keeps none.
    ///
    /// Kept answers are bounded by [`max_bytes`](Self::max_bytes), and are dropped as requests come.
    #[must_use]
    pub fn hold(self, hold: Duration) -> Self {
        self.with(|settings| settings.limits.hold = hold)
    }

    /// Whether answers say which request led and which followed. Default: when asked.
    #[must_use]
    pub fn mark(self, mark: Mark) -> Self {
        self.with(|settings| settings.mark = mark)
    }

    /// Receives every event.
    #[must_use]
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        self.with(|settings| settings.tally.observed_by(Arc::new(observer)))
    }

    /// Shares flights among all services (of the same type) that this layer and its clones are put around. A request to one
    /// of them may be answered by another if it looks the same where the layer sees it. So services that answer the same
    /// request differently need layers of their own: two apps, or two routers that are nested below different paths, as they
    /// do not see these.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { common: Some(Arc::new(self.settings.realm())), ..self }
    }

    /// A layer with the same settings, and flights of its own. It shares counters and the limit of bytes with this one.
    #[must_use]
    pub fn separate(&self) -> Self {
        let settings = self.settings.clone();
        Self { common: self.common.as_ref().map(|_| Arc::new(settings.realm())), settings }
    }

    /// The counters so far, over all clones of this layer and the layers separated from it.
    pub fn counters(&self) -> Counters {
        self.settings.tally.read()
    }

    /// About how many bytes of bodies, keys and heads are held now.
    pub fn held_bytes(&self) -> usize {
        self.settings.held.bytes()
    }
}

impl Default for CoalesceLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for CoalesceLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoalesceLayer")
            .field("limits", &self.settings.limits)
            .field("is_shared", &self.common.is_some())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for CoalesceLayer {
    type Service = Coalesce<S>;

    fn layer(&self, inner: S) -> Coalesce<S> {
        let common = self.common.clone();
        Coalesce::new(inner, common.unwrap_or_else(|| Arc::new(self.settings.realm())))
    }
}
