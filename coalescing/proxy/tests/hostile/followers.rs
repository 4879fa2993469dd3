//! Clients that share an answer, and one of them, or the upstream, is not as the others are: old, slow, gone, or stopped in the
//! middle.

use tokio::io::AsyncReadExt as _;
use tokio::time::sleep;

use crate::wire;
use crate::world::{Client, SECOND, Upstream, World, config};

const CLOSES: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A leader and followers that ask this, and the leader's call, whose head has been read.
async fn flight(world: &mut World, requests: &[&[u8]]) -> (Vec<Client>, Upstream) {
    let mut clients = vec![world.sends(requests[0]).await];
    let mut upstream = world.accept().await;
    upstream.head().await;
    for request in &requests[1..] {
        clients.push(world.sends(request).await);
    }
    assert!(world.accepts_now().await.is_none(), "they do not share a call");
    (clients, upstream)
}

/// Reads this much of an answer.
async fn reads(client: &mut Client, text: &str) -> String {
    let mut came = String::new();
    while !came.contains(text) {
        let mut piece = [0; 1024];
        let count = client.stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "it ended after {came:?}");
        came.push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
    came
}

#[tokio::test(start_paused = true)]
async fn the_first_client_may_leave_at_any_stage() {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n";
    for stage in 0..4 {
        let mut world = World::new();
        let mut first = world.sends(CLOSES).await;
        if stage == 0 {
            // Its call is made, and nobody else waits for it yet.
            let upstream = world.accept().await;
            drop(first);
            let mut late = world.sends(CLOSES).await;
            let mut again = match world.accepts_now().await {
                Some(again) => again,
                None => upstream,
            };
            again.answers("answer").await;
            assert_eq!(late.answers().await.messages[0].body, b"answer");
            continue;
        }
        let mut upstream = world.accept().await;
        upstream.head().await;
        let mut others = [world.sends(CLOSES).await, world.sends(CLOSES).await];
        assert!(world.accepts_now().await.is_none());
        if stage > 1 {
            upstream.send(HEAD).await;
            reads(&mut first, "\r\n\r\n").await;
        }
        if stage > 2 {
            upstream.send(b"ans").await;
            reads(&mut first, "ans").await;
        }
        drop(first);
        sleep(SECOND).await;
        match stage {
            1 => upstream.send(&[HEAD, b"answer"].concat()).await,
            2 => upstream.send(b"answer").await,
            _ => upstream.send(b"wer").await,
        }
        for other in &mut others {
            assert_eq!(other.answers().await.messages[0].body, b"answer", "stage {stage}");
        }
        assert!(world.accepts_now().await.is_none(), "stage {stage}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_all_have_left_the_call_is_dropped_and_the_next_client_has_its_own() {
    let mut world = World::new();
    let (clients, mut upstream) = flight(&mut world, &[CLOSES, CLOSES, CLOSES]).await;
    drop(clients);
    // The upstream learns of it.
    assert_eq!(upstream.stream.read(&mut [0]).await.unwrap(), 0);
    let mut next = world.sends(CLOSES).await;
    world.accept().await.answers("own").await;
    assert_eq!(next.answers().await.messages[0].body, b"own");
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_a_body_that_stops_or_breaks_off_for_a_whole_one() {
    for (hangs, head) in [
        (true, "Content-Length: 6\r\n\r\nans"),
        (false, "Content-Length: 6\r\n\r\nans"),
        (true, "Transfer-Encoding: chunked\r\n\r\n3\r\nans\r\n"),
        (false, "Transfer-Encoding: chunked\r\n\r\n3\r\nans\r\n"),
    ] {
        let mut world = World::new();
        let (mut clients, mut upstream) = flight(&mut world, &[CLOSES, CLOSES, CLOSES]).await;
        upstream.send(format!("HTTP/1.1 200 OK\r\n{head}").as_bytes()).await;
        for client in &mut clients {
            reads(client, "ans").await;
        }
        let began = tokio::time::Instant::now();
        // Held until all have ended, or let go of at once.
        let held = hangs.then_some(upstream);
        for client in &mut clients {
            let rest = client.all().await;
            assert!(!rest.ends_with(b"0\r\n\r\n"), "{head:?}: {:?}", String::from_utf8_lossy(&rest));
        }
        let (lasted, limit) = (began.elapsed(), config().response_timeout);
        assert!(
            if hangs { lasted >= limit && lasted < 2 * limit } else { lasted < 5 * SECOND },
            "{head:?}: {lasted:?}"
        );
        drop(held);
        // And who comes then is not given it.
        let mut next = world.sends(CLOSES).await;
        world.accept().await.answers("whole").await;
        assert_eq!(next.answers().await.messages[0].body, b"whole");
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_long_after_the_head_of_an_answer_that_hangs_has_a_call_of_its_own() {
    let mut world = World::new();
    let (_clients, mut upstream) = flight(&mut world, &[CLOSES, CLOSES]).await;
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nans").await;
    sleep(2 * SECOND).await;
    let mut late = world.sends(CLOSES).await;
    world.accept().await.answers("own").await;
    assert_eq!(late.answers().await.messages[0].body, b"own");
}

#[tokio::test(start_paused = true)]
async fn an_old_client_shares_an_answer_in_pieces_with_new_ones() {
    const OLD: &[u8] = b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
    const NEW: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
    for old_leads in [true, false] {
        let mut world = World::new();
        let requests = if old_leads { [OLD, NEW, OLD] } else { [NEW, OLD, NEW] };
        let (clients, mut upstream) = flight(&mut world, &requests).await;
        upstream.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nans\r\n3\r\nwer\r\n0\r\n\r\n").await;
        for (mut client, request) in clients.into_iter().zip(requests) {
            if request == OLD {
                // Chunks are not known to it, so the end of the connection is that of the body.
                let answer = client.answers().await.messages.remove(0);
                assert_eq!(answer.values("transfer-encoding").count(), 0, "{answer:?}");
                assert_eq!(answer.body, b"answer");
            } else {
                let came = reads(&mut client, "0\r\n\r\n").await;
                assert_eq!(wire::answers(came.as_bytes(), &[]).unwrap().messages[0].body, b"answer");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answers_to_head_have_their_length_and_no_body_for_all() {
    const HEAD: &[u8] = b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut world = World::new();
    let (mut heads, mut upstream) = flight(&mut world, &[HEAD, HEAD]).await;
    // A GET has a call of its own.
    let mut get = world.sends(CLOSES).await;
    world.accept().await.answers("answer").await;
    assert_eq!(get.answers().await.messages[0].body, b"answer");
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n").await;
    for head in &mut heads {
        let all = head.all().await;
        let answer = wire::answers(&all, &[true]).unwrap().messages.remove(0);
        assert_eq!(answer.values("content-length").collect::<Vec<_>>(), ["6"]);
        assert!(all.ends_with(b"\r\n\r\n"), "{:?}", String::from_utf8_lossy(&all));
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_the_answer_already_is_told_so_with_others_like_it() {
    let conditional = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIf-None-Match: \"1\"\r\n\r\n";
    let mut world = World::new();
    let (mut clients, mut upstream) = flight(&mut world, &[conditional, conditional]).await;
    let mut plain = world.sends(CLOSES).await;
    world.accept().await.answers("answer").await;
    assert_eq!(plain.answers().await.messages[0].status(), 200);
    upstream.send(b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nContent-Length: 6\r\n\r\n").await;
    for client in &mut clients {
        let all = client.all().await;
        assert!(all.starts_with(b"HTTP/1.1 304") && all.ends_with(b"\r\n\r\n"), "{:?}", String::from_utf8_lossy(&all));
    }
    // What was asked for in part is nobody else's.
    let ranges = b"GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n";
    let mut world = World::new();
    let _ranges = [world.sends(ranges).await, world.sends(ranges).await];
    assert!(world.accepts_now().await.is_some() && world.accepts_now().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn trailers_and_a_head_of_many_fields_reach_everyone() {
    let mut world = World::new();
    let te = b"GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n";
    let (mut clients, mut upstream) = flight(&mut world, &[te, te]).await;
    let fields =
        (0..150).map(|number| format!("X-Field-{number}: {}\r\n", "v".repeat(60))).collect::<Vec<_>>().concat();
    let head = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: x-hop\r\nX-Hop: 1\r\n{fields}\r\n"
    );
    upstream.send(head.as_bytes()).await;
    upstream.send(b"6\r\nanswer\r\n0\r\nX-Sum: 7\r\n\r\n").await;
    for client in &mut clients {
        let all = client.all().await;
        let text = String::from_utf8_lossy(&all).to_ascii_lowercase();
        let answer = wire::answers(&all, &[]).unwrap().messages.remove(0);
        assert_eq!(answer.body, b"answer");
        assert_eq!(answer.fields.iter().filter(|(name, _)| name.starts_with("x-field-")).count(), 150);
        assert!(text.ends_with("0\r\nx-sum: 7\r\n\r\n") && !text.contains("x-hop"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_slow_readers_have_all_of_a_long_answer() {
    const LENGTH: usize = 400_000;
    let mut world = World::new();
    let requests = [CLOSES; 100];
    let (clients, mut upstream) = flight(&mut world, &requests).await;
    let sending = tokio::spawn(async move {
        upstream.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").as_bytes()).await;
        upstream.send(&vec![b'x'; LENGTH]).await;
    });
    let mut reading = Vec::new();
    for (number, mut client) in clients.into_iter().enumerate() {
        reading.push(tokio::spawn(async move {
            let mut all = 0;
            let mut piece = vec![0; 32 * 1024];
            loop {
                // Of unlike paces, each above what must be taken.
                sleep(SECOND * (number as u32 % 10) / 50).await;
                match client.stream.read(&mut piece).await.unwrap() {
                    0 => return all,
                    count => all += count,
                }
            }
        }));
    }
    sending.await.unwrap();
    for reader in reading {
        assert!(reader.await.unwrap() > LENGTH);
    }
    assert_eq!(world.metric("coalesce_flights_total"), 1);
    assert_eq!(world.metric("coalesce_cut_off_total"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_its_length_told_twice_is_one_length_or_none() {
    for (fields, status) in [
        ("Content-Length: 2\r\nContent-Length: 2\r\n", 200),
        ("Content-Length: 2, 2\r\n", 200),
        ("Content-Length: 2\r\nContent-Length: 3\r\n", 502),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", 502),
    ] {
        let mut world = World::new();
        let (mut clients, mut upstream) = flight(&mut world, &[CLOSES, CLOSES]).await;
        let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{fields}\r\nok");
        upstream.send(answer.as_bytes()).await;
        drop(upstream);
        // After a failure each has its own call.
        if status != 200 {
            let mut again = world.accept().await;
            again.head().await;
            again.send(answer.as_bytes()).await;
        }
        for client in &mut clients {
            let answer = client.answers().await.messages.remove(0);
            assert_eq!(answer.status(), status, "{fields}");
            assert_eq!(answer.values("content-length").count(), 1, "{fields}");
        }
    }
}
