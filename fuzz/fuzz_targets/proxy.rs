//! The whole proxy, between a client and an upstream that send whatever they like, in whatever pieces: nothing panics, what
//! either is sent can be read in one way only, and every connection ends within its limits of time, which is made up.
//!
//! See `fuzz/README.md` for what the first ten bytes of an input choose.

#![no_main]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brunt_fuzz::cut;
use brunt_proxy::in_process::InProcess;
use brunt_proxy::{Coalescing, Config};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::JoinSet;
use tokio::time::timeout;

#[path = "../../coalescing/proxy/tests/hostile/wire.rs"]
#[allow(dead_code)]
mod wire;

/// Longer than all limits of a connection together.
const AGES: Duration = Duration::from_secs(3600);

/// The pieces of what one side sends.
fn pieces(bytes: &[u8], seed: u64) -> Vec<Vec<u8>> {
    cut(bytes, seed).into_iter().map(<[u8]>::to_vec).collect()
}

/// Sends these pieces, and returns all that comes until the other side ends the connection.
async fn talk(stream: DuplexStream, pieces: Vec<Vec<u8>>, ends: bool) -> Vec<u8> {
    let (mut reads, mut writes) = tokio::io::split(stream);
    let sending = async {
        for piece in pieces {
            if writes.write_all(&piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        if ends {
            let _ = writes.shutdown().await;
        }
    };
    let mut came = Vec::new();
    tokio::join!(sending, async {
        let _ = reads.read_to_end(&mut came).await;
    });
    came
}

/// A connection of the upstream's: what it sends, once a head has come; and what came.
async fn answers(mut stream: DuplexStream, pieces: Vec<Vec<u8>>, ends: bool, seen: Arc<Mutex<Vec<Vec<u8>>>>) {
    let mut came = Vec::new();
    let mut buffer = [0; 4096];
    while !came.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => came.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    came.extend(talk(stream, pieces, ends).await);
    seen.lock().unwrap().push(came);
}

async fn run(flags: u8, seed: u64, client: &[u8], upstream: &[u8]) {
    let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut config = Config::new("upstream:81".parse().unwrap(), listen);
    config.coalesce = (flags & 1 != 0).then(Coalescing::default);
    config.max_connections = 2;
    let keeps_open = flags & 2 != 0;
    let (sender, mut dialled) = tokio::sync::mpsc::unbounded_channel();
    let dial = move || {
        let (proxys, ours) = duplex(1024);
        sender.send(ours).map_err(|_| std::io::ErrorKind::ConnectionRefused)?;
        Ok(proxys)
    };
    let proxy = Arc::new(InProcess::new(&config, dial).unwrap());
    let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let (all, answer) = (Arc::clone(&seen), pieces(upstream, seed.rotate_left(7)));
    let accepting = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Some(stream) = dialled.recv().await {
            connections.spawn(answers(stream, answer.clone(), !keeps_open, Arc::clone(&all)));
        }
        connections.join_all().await
    });
    let mut clients = JoinSet::new();
    for number in 0..if flags & 4 != 0 { 2 } else { 1 } {
        let (ours, proxys) = duplex(1024);
        let proxy = Arc::clone(&proxy);
        let pieces = pieces(client, seed.wrapping_add(number));
        clients.spawn(async move {
            let serving = proxy.serve(proxys, Some(([192, 0, 2, 7], 1).into()));
            let (served, came) = tokio::join!(serving, talk(ours, pieces, false));
            assert!(served, "there is no place");
            came
        });
    }
    let came = timeout(AGES, clients.join_all()).await.expect("a connection does not end");
    // Tunnels, and what the pool keeps, have limits of their own.
    tokio::time::sleep(AGES).await;
    assert_eq!(proxy.room(), 2, "a place is kept");
    let metrics = proxy.metrics();
    for gauge in ["requests_in_flight 0", "upgraded_open 0"] {
        assert!(metrics.contains(gauge), "{metrics}");
    }
    assert!(flags & 1 == 0 || metrics.contains("coalesce_held_bytes 0"), "{metrics}");
    drop(proxy);
    timeout(AGES, accepting).await.expect("a connection to the upstream does not end").unwrap();
    check(client, &came, &seen.lock().unwrap());
}

/// What was sent can be read in one way.
fn check(client: &[u8], came: &[Vec<u8>], seen: &[Vec<u8>]) {
    let has = |text: &[u8]| client.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text));
    for connection in seen {
        // Behind an upgrade comes another protocol.
        if !connection.windows(11).any(|window| window == b"\r\nupgrade: ") {
            let read = wire::requests(connection);
            assert!(read.is_ok(), "{read:?}: {}", String::from_utf8_lossy(connection));
        }
    }
    // Which of a client's requests ask for HEAD, only a parser could say.
    if has(b"HEAD ") || client.starts_with(b"PRI ") {
        return;
    }
    for answers in came {
        if !answers.windows(13).any(|window| window == b"HTTP/1.1 101 ") {
            let read = wire::answers(answers, &[]);
            assert!(read.is_ok(), "{read:?}: {}", String::from_utf8_lossy(answers));
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((seed, rest)) = input.split_first_chunk::<8>() else { return };
    let Some((length, rest)) = rest.split_first_chunk::<2>() else { return };
    let (client, upstream) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(seed[0], u64::from_le_bytes(*seed), client, upstream));
});
