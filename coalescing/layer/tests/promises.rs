//! What the crate promises those who use it, held by the compiler: each public name with its type. A change here that is no
//! addition is one that breaks users (docs/reference.md).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
#![allow(clippy::match_same_arms, reason = "what an arm names is what is promised")]

use std::any::Any;
use std::error::Error;
use std::fmt::Debug;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use brunt_coalesce::{
    BodyError, BoxError, Coalesce, CoalesceBody, CoalesceLayer, Counters, CutOff, Event, Failure, FollowerExtensions,
    JOIN_LATE, JOIN_LATE_BYTES, LeaderFailed, Mark, Observer, ResponseFuture, SharedFailure, WaitAtMost,
};
use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, HeaderName, Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower::{Layer, Service, service_fn};

type Ask = Request<Full<Bytes>>;
type Answer = Result<Response<Full<Bytes>>, BoxError>;
type Function = fn(Ask) -> Ready<Answer>;
type Within = tower::util::ServiceFn<Function>;

/// Whether a value has this type.
fn is<T>(_: T) {}

/// A value that may go to other threads, and says what it is.
fn goes_everywhere<T: Debug + Send + Sync + 'static>() {}

/// The same, of a value that may be made twice.
fn is_copied<T: Clone + Debug + Send + Sync + 'static>() {}

fn are_defaults<T: Default>() {}

fn are_errors<T: Error + Clone + Send + Sync + 'static>() {}

fn is_sent<T: Send + Debug>() {}

fn is_body<B: Body<Data = Bytes, Error = BodyError>>(_: &B) {}

fn of_tower<S>(_: &S)
where
    S: Service<
            Ask,
            Response = Response<CoalesceBody<Full<Bytes>>>,
            Error = BoxError,
            Future = ResponseFuture<Within, Full<Bytes>>,
        > + Clone,
{
}

#[cfg(feature = "hyper")]
fn of_hyper<S>(_: &S)
where
    S: hyper::service::Service<Ask, Response = Response<CoalesceBody<Full<Bytes>>>, Error = BoxError>,
{
}

#[test]
fn types_have_the_traits_that_users_build_on() {
    is_copied::<CoalesceLayer>();
    is_copied::<Counters>();
    is_copied::<Event>();
    is_copied::<Failure>();
    is_copied::<FollowerExtensions>();
    is_copied::<LeaderFailed>();
    is_copied::<Mark>();
    is_copied::<SharedFailure>();
    is_copied::<WaitAtMost>();
    is_copied::<BodyError>();
    is_copied::<CutOff>();
    is_copied::<Coalesce<String>>();
    are_defaults::<CoalesceLayer>();
    are_defaults::<Counters>();
    are_defaults::<FollowerExtensions>();
    are_defaults::<Mark>();
    are_defaults::<CutOff>();
    are_errors::<BodyError>();
    are_errors::<LeaderFailed>();
    are_errors::<Failure>();
    goes_everywhere::<ResponseFuture<Within, Full<Bytes>>>();
    is_sent::<CoalesceBody<Full<Bytes>>>();
}

#[test]
fn the_layer_has_these_settings() {
    let by = |parts: &Parts| Some(Bytes::copy_from_slice(parts.method.as_str().as_bytes()));
    let name = HeaderName::from_static("x-own");
    let layer: CoalesceLayer = CoalesceLayer::new()
        .key_header(name.clone())
        .key_by(by)
        .ignore_header(name)
        .ignore_cookie("_ga")
        .ignore_cookie(String::from("_gid"))
        .key_only_by(by)
        .all_safe_methods(true)
        .share_no_cache(true)
        .max_members(7_usize)
        .max_wait(Duration::from_secs(1))
        .max_wait(None)
        .max_bytes_per_flight(7_usize)
        .max_bytes(7_usize)
        .join_late(JOIN_LATE, JOIN_LATE_BYTES)
        .max_promotions(2_u32)
        .share_failures(false)
        .hold(Duration::ZERO)
        .mark(Mark::Always)
        .observer(is::<Event>)
        .shared()
        .separate();
    let (_, _): (Counters, usize) = (layer.counters(), layer.held_bytes());
    let _: (Duration, usize) = (JOIN_LATE, JOIN_LATE_BYTES);
    let _ = [Mark::WhenAsked, Mark::Always, Mark::Never];
}

#[tokio::test]
async fn the_service_is_towers_and_hypers_and_gives_back_the_one_within() {
    let function: Function = |_| ready(Ok(Response::new(Full::from("ok"))));
    let mut service: Coalesce<Within> = CoalesceLayer::new().layer(service_fn(function));
    let _: (&Within, &mut Within) = (&service.get_ref().clone(), service.get_mut());
    of_tower(&service);
    #[cfg(feature = "hyper")]
    of_hyper(&service);
    let answer: Response<CoalesceBody<Full<Bytes>>> = service.call(Request::new(Full::default())).await.unwrap();
    let body = answer.into_body();
    is_body(&body);
    let cut_off: Option<CutOff> = body.cut_off();
    assert!(cut_off.is_none_or(|cut_off| cut_off.error().is_none()));
    let _: Within = service.into_inner();
}

/// More may be added to each of these without breaking anybody: all are `non_exhaustive`.
#[test]
fn events_counters_and_errors_have_these_parts() {
    struct Watches;
    impl Observer for Watches {
        fn observe(&self, event: Event) {
            match event {
                Event::ServiceMade
                | Event::Passed
                | Event::Refused
                | Event::Remembered
                | Event::FlightStarted
                | Event::Joined
                | Event::FlightEnded
                | Event::FlightUnshared
                | Event::FlightFailed
                | Event::FlightCancelled
                | Event::Shared
                | Event::Promoted
                | Event::SharedFailure
                | Event::WentAlone
                | Event::Vanished
                | Event::Regrouped
                | Event::CutOff => {}
                Event::Waited(time) => is::<Duration>(time),
                Event::Saved(bytes) => is::<u64>(bytes),
                _ => {}
            }
        }
    }
    let _: Arc<dyn Observer> = Arc::new(Watches);
    let Counters {
        services,
        passed,
        refused,
        remembered,
        flights,
        followers,
        ended,
        unshared,
        failed,
        cancelled,
        shared,
        promoted,
        shared_failures,
        went_alone,
        vanished,
        regrouped,
        cut_off,
        bytes_saved,
        ..
    } = Counters::default();
    let all: [u64; 18] = [
        services,
        passed,
        refused,
        remembered,
        flights,
        followers,
        ended,
        unshared,
        failed,
        cancelled,
        shared,
        promoted,
        shared_failures,
        went_alone,
        vanished,
        regrouped,
        cut_off,
        bytes_saved,
    ];
    let named: Vec<(&'static str, u64)> = Counters::default().each().collect();
    assert_eq!(named.len(), all.len());
    let told = |error: BodyError| match error {
        BodyError::Inner(error) => is::<Arc<dyn Error + Send + Sync>>(error),
        BodyError::SlowReader { least, within } => is::<(usize, Duration)>((least, within)),
        BodyError::Panicked => {}
        _ => {}
    };
    told(BodyError::Panicked);
    let leaders = |failed: LeaderFailed| match failed.failure {
        Failure::Error => is::<u32>(failed.leaders),
        Failure::Panic => {}
        _ => {}
    };
    let _: fn(LeaderFailed) = leaders;
    let mut extensions = Extensions::new();
    extensions.insert(WaitAtMost(Duration::ZERO));
    extensions.insert(SharedFailure);
    extensions.insert(FollowerExtensions(Extensions::new()));
    let _: &dyn Any = &WaitAtMost(Duration::ZERO).0;
}

/// Each public function and each exported name stands in this file, so that none is promised that nothing holds.
#[test]
fn all_that_is_public_stands_here() {
    let here = include_str!("promises.rs");
    let source = concat!(
        include_str!("../src/answer.rs"),
        include_str!("../src/body.rs"),
        include_str!("../src/counters.rs"),
        include_str!("../src/failed.rs"),
        include_str!("../src/layer.rs"),
        include_str!("../src/service.rs"),
    );
    let functions = source.lines().filter_map(|line| line.trim().strip_prefix("pub fn ")?.split(['(', '<']).next());
    let exports = include_str!("../src/lib.rs").lines().filter_map(|line| line.strip_prefix("pub use "));
    let exports = exports.flat_map(|line| {
        let (_, names) = line.trim_end_matches(';').rsplit_once("::").unwrap();
        names.trim_matches(['{', '}']).split(", ")
    });
    let mut seen = 0;
    for name in functions.chain(exports) {
        let stands =
            here.split(|character: char| !character.is_alphanumeric() && character != '_').any(|word| word == name);
        assert!(stands, "{name} is public, and nothing here holds its type");
        seen += 1;
    }
    assert!(seen > 40, "{seen}");
}
