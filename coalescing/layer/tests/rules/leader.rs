//! Rule 4: the leader may die.

use brunt_coalesce::{CoalesceLayer, Failure, LeaderFailed};

use crate::origin::{Origin, Refused};

#[test]
fn the_call_goes_on_for_those_who_wait_when_the_leader_goes_away() {
    let mut origin = Origin::new();
    let leader = origin.get("/", &[]);
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    let call = origin.call();
    drop(leader);
    assert!(!call.is_dropped());
    call.answer("still");
    one.has_all("still");
    two.has_all("still");
    assert_eq!(origin.calls(), 0);
    drop((one, two));
    origin.is_empty(3);
}

#[test]
fn nobody_waits_for_one_that_is_not_polled() {
    let mut origin = Origin::new();
    let mut asleep = origin.send(crate::origin::request("GET", "/", &[]));
    let dropped = origin.send(crate::origin::request("GET", "/", &[]));
    let mut leader = origin.get("/", &[]);
    drop(dropped);
    let call = origin.call();
    assert!(!asleep.poll());
    call.answer("once");
    leader.has_all("once");
    asleep.has_all("once");
    assert_eq!(origin.calls(), 0);
    origin.is_empty(2);
}

#[test]
fn the_call_is_cancelled_when_nobody_waits() {
    let mut origin = Origin::new();
    let (leader, follower) = (origin.get("/", &[]), origin.get("/", &[]));
    let call = origin.call();
    drop(leader);
    assert!(!call.is_dropped());
    drop(follower);
    assert!(call.is_dropped());
    assert_eq!((origin.counters().cancelled, origin.counters().vanished), (1, 1));
    origin.is_empty(2);
    // And the next starts anew.
    let mut next = origin.get("/", &[]);
    origin.call().answer("anew");
    next.has_all("anew");
}

#[test]
fn the_call_is_cancelled_when_nobody_waits_but_who_is_owed_its_own_failure() {
    let mut origin = Origin::new();
    let (mut leader, mut follower) = (origin.get("/", &[]), origin.get("/", &[]));
    origin.call().fail(1);
    assert!(!follower.poll());
    let second = origin.call();
    drop(follower);
    assert_eq!(leader.error(), Refused(1));
    assert!(second.is_dropped());
    origin.is_empty(2);
    // And the next starts anew.
    let mut next = origin.get("/", &[]);
    origin.call().answer("anew");
    next.has_all("anew");
}

#[test]
fn a_follower_leads_when_the_handler_fails() {
    let mut origin = Origin::new();
    let mut leader = origin.get("/", &[]);
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    origin.call().fail(1);
    assert_eq!(leader.error(), Refused(1));
    assert!(!one.poll() && !two.poll());
    let second = origin.call();
    assert_eq!(origin.calls(), 0, "only one of them calls");
    second.answer("second");
    one.has_all("second");
    two.has_all("second");
    assert_eq!(origin.counters().promoted, 1);
    origin.is_empty(3);
}

#[test]
fn a_follower_leads_when_the_handler_panics() {
    let mut origin = Origin::new();
    let mut leader = origin.get("/", &[]);
    let mut follower = origin.get("/", &[]);
    origin.call().panic();
    // Whoever is polled first: the panic is the leader's.
    assert!(!follower.poll());
    assert!(leader.poll_panics());
    origin.call().answer("second");
    follower.has_all("second");
    drop(leader);
    origin.is_empty(2);
}

#[test]
fn promotions_are_bounded_and_then_all_are_told_of_the_failure() {
    for panics in [false, true] {
        let mut origin = Origin::behind(CoalesceLayer::new().max_promotions(1));
        let mut clients: Vec<_> = (0..6).map(|_| origin.get("/", &[])).collect();
        for _ in 0..2 {
            let call = origin.call();
            if panics {
                call.panic();
            } else {
                call.fail(0);
            }
            for client in &mut clients {
                let _ = client.poll_panics();
            }
        }
        assert_eq!(origin.calls(), 0, "the failure is not multiplied");
        let mut told = 0;
        for mut client in clients {
            if client.poll_panics() || !client.poll() {
                continue;
            }
            if let Some(Ok(answer)) = &client.answer {
                assert_eq!(answer.status(), 500, "never an empty 200");
                let failed = answer.extensions().get::<LeaderFailed>().expect("the failure is typed");
                let failure = if panics { Failure::Panic } else { Failure::Error };
                assert_eq!((failed.failure, failed.leaders), (failure, 2));
                client.reads("the request that this one waited for failed\n");
                told += 1;
            }
        }
        assert_eq!(told, 4);
        assert_eq!(origin.counters().failed, 1);
        origin.is_empty(6);
    }
}

#[test]
fn a_failure_nobody_waits_for_is_the_leaders_alone() {
    let mut origin = Origin::new();
    let mut leader = origin.get("/", &[]);
    origin.call().fail(7);
    assert_eq!(leader.error(), Refused(7));
    origin.is_empty(1);
}

#[test]
fn a_promoted_leader_may_go_away_too() {
    let mut origin = Origin::new();
    let mut clients: Vec<_> = (0..3).map(|_| origin.get("/", &[])).collect();
    origin.call().fail(0);
    clients.remove(0).error();
    clients[0].poll();
    let call = origin.call();
    drop(clients.remove(0));
    call.answer("still");
    clients[0].has_all("still");
    drop(clients);
    origin.is_empty(3);
}

#[test]
fn a_private_answer_is_nobodys_when_its_leader_is_gone() {
    let mut origin = Origin::new();
    let leader = origin.get("/", &[]);
    let mut follower = origin.get("/", &[]);
    drop(leader);
    origin.call().answer_with(&[("cache-control", "private")], "the leader's");
    assert!(!follower.poll());
    origin.call().answer("its own");
    follower.has_all("its own");
    drop(follower);
    origin.is_empty(2);
}

#[test]
fn an_error_answer_is_an_answer() {
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    drop(origin.call().begin(404, &[], None));
    assert_eq!((one.head().status().as_u16(), two.head().status().as_u16()), (404, 404));
    assert_eq!(origin.calls(), 0);
}
