//! What the service answers as it is called, before anybody could wait for it.

use std::sync::{Arc, Mutex};

use brunt_coalesce::CoalesceLayer;

use crate::origin::{Call, Client, Origin, Refused, request};

/// A client whose request comes while the service is being called for another, and the one it is called for.
fn two_at_once(origin: &mut Origin, then: impl FnOnce(Call) + Send + 'static) -> (Client, Client) {
    let (mut service, second) = (origin.service.clone(), Arc::new(Mutex::new(None)));
    let place = Arc::clone(&second);
    origin.at_once(move |call| {
        let mut client = Client::new(&mut service, request("GET", "/", &[]));
        assert!(!client.poll());
        *place.lock().unwrap() = Some(client);
        then(call);
    });
    let mut first = origin.send(request("GET", "/", &[]));
    let _ = first.poll_panics();
    let second = second.lock().unwrap().take().unwrap();
    (first, second)
}

#[test]
fn it_is_an_answer_like_others() {
    let mut origin = Origin::new();
    for text in ["first", "second"] {
        origin.at_once(move |call| call.begin(200, &[], Some(text.len() as u64)).send_last(text));
        let mut client = origin.get("/", &[("x-coalesced", "?")]);
        assert_eq!(client.header("x-coalesced"), "leader");
        client.has_all(text);
    }
    assert_eq!(origin.counters().ended, 2);
    origin.at_once(|call| call.answer_with(&[("set-cookie", "a=b")], ""));
    origin.get("/", &[]).head();
    assert_eq!(origin.counters().unshared, 1);
    origin.at_once(|call| call.fail(7));
    assert_eq!(origin.get("/fails", &[]).error(), Refused(7));
    origin.at_once(Call::panic);
    assert!(origin.send(request("GET", "/panics", &[])).poll_panics());
    assert_eq!(origin.counters().failed, 2);
    origin.is_empty(5);
}

#[test]
fn who_comes_as_the_service_is_called_waits_for_it() {
    for length in [None, Some(4)] {
        let mut origin = Origin::new();
        let (mut first, mut second) =
            two_at_once(&mut origin, move |call| call.begin(200, &[], length).send_last("once"));
        first.has_all("once");
        second.has_all("once");
        assert_eq!((origin.calls(), origin.counters().shared), (0, 1));
        drop((first, second));
        origin.is_empty(2);
    }
}

#[test]
fn who_comes_as_the_service_is_called_leads_if_that_fails() {
    for panics in [false, true] {
        let mut origin = Origin::new();
        let (mut first, mut second) =
            two_at_once(&mut origin, move |call| if panics { call.panic() } else { call.fail(1) });
        if !panics {
            assert_eq!(first.error(), Refused(1));
        }
        assert!(!second.poll());
        origin.call().answer("second");
        second.has_all("second");
        assert_eq!(origin.counters().promoted, 1);
        drop((first, second));
        origin.is_empty(2);
    }
}

#[test]
fn who_comes_as_the_service_is_called_goes_alone_if_the_answer_is_private() {
    let mut origin = Origin::new();
    let (mut first, mut second) =
        two_at_once(&mut origin, |call| call.answer_with(&[("cache-control", "private")], "the first's"));
    first.has_all("the first's");
    assert!(!second.poll());
    origin.call().answer("its own");
    second.has_all("its own");
    drop((first, second));
    origin.is_empty(2);
}

#[test]
fn waiters_are_bounded_from_the_first_on() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_members(1));
    let (mut first, mut second) = two_at_once(&mut origin, |call| call.answer("once"));
    first.has_all("once");
    origin.call().answer("its own");
    second.has_all("its own");
    assert_eq!(origin.counters().refused, 1);
    drop((first, second));
    origin.is_empty(2);
}

#[test]
fn a_joiner_may_come_while_the_body_is_made() {
    for length in [None, Some(100_000)] {
        let mut origin = Origin::new();
        let source = Arc::new(Mutex::new(None));
        let place = Arc::clone(&source);
        origin.at_once(move |call| *place.lock().unwrap() = Some(call.begin(200, &[], length)));
        let mut first = origin.get("/", &[]);
        first.head();
        let mut late = origin.get("/", &[]);
        let source = source.lock().unwrap().take().unwrap();
        source.send("piece");
        late.reads("piece");
        first.reads("piece");
        assert_eq!(origin.calls(), 0);
        drop((first, late, source));
        origin.is_empty(2);
    }
}
