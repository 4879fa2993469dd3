//! Over real sockets, where a connection that ends with something unread takes back what it sent: whatever an upstream does,
//! each client gets a whole answer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::spawn;
use std::time::Duration;

use brunt_proxy::{Coalescing, Config, Proxy};

/// An upstream that does this with each connection, until it is dropped. Each has its own thread: the proxy may open a
/// connection ahead and send nothing on it, and what waits for a byte there must not keep the others waiting.
struct Upstream {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Upstream {
    fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, ends) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&ends);
        let serve = Arc::new(serve);
        let thread = spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (serve, stream) = (Arc::clone(&serve), stream.unwrap());
                spawn(move || serve(stream));
            }
        });
        Self { address, ends, thread: Some(thread) }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn proxy(upstream: &Upstream, coalesce: bool) -> (Proxy, SocketAddr) {
    let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut config = Config::new(format!("http://{}", upstream.address).parse().unwrap(), listen);
    config.threads = Some(2);
    config.coalesce = coalesce.then(Coalescing::default);
    let proxy = Proxy::start(config).unwrap();
    let address = proxy.address().unwrap();
    (proxy, address)
}

/// Everything that comes of this request, to the end of its connection.
fn exchange(address: SocketAddr, request: &[u8]) -> Result<Vec<u8>, std::io::Error> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    // The proxy may have answered before it has all.
    let _ = stream.write_all(request);
    let mut all = Vec::new();
    stream.read_to_end(&mut all)?;
    Ok(all)
}

/// How many of these requests are answered with this status, by clients at the same time.
fn answered(
    address: SocketAddr,
    request: &Arc<[u8]>,
    status: &str,
    clients: usize,
    each: usize,
) -> (usize, Vec<String>) {
    let client = || {
        let request = Arc::clone(request);
        spawn(move || (0..each).map(|_| exchange(address, &request)).collect::<Vec<_>>())
    };
    let clients: Vec<_> = (0..clients).map(|_| client()).collect();
    let all: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let begins = format!("HTTP/1.1 {status} ");
    let is_right = |answer: &Result<Vec<u8>, _>| answer.as_ref().is_ok_and(|all| all.starts_with(begins.as_bytes()));
    let wrong = all.iter().filter(|answer| !is_right(answer));
    let wrong =
        wrong.map(|answer| format!("{:?}", answer.as_ref().map(|all| String::from_utf8_lossy(all).into_owned())));
    (all.iter().filter(|answer| is_right(answer)).count(), wrong.collect())
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn an_upstream_that_breaks_off_at_once_is_a_502_for_everyone() {
    // With what came unread, and read.
    let at_once: fn(TcpStream) = drop;
    let after_a_byte = |mut stream: TcpStream| drop(stream.read(&mut [0]));
    for serve in [at_once, after_a_byte] {
        let upstream = Upstream::start(serve);
        for coalesce in [false, true] {
            let (_proxy, address) = proxy(&upstream, coalesce);
            let (right, wrong) = answered(address, &GET.into(), "502", 8, 100);
            assert_eq!((right, wrong), (800, Vec::new()), "coalesce: {coalesce}");
        }
    }
}

#[test]
fn an_upstream_that_breaks_off_in_its_body_is_seen_to_by_everyone() {
    for begins in ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"] {
        let upstream = Upstream::start(move |mut stream| {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{begins}").as_bytes());
        });
        for coalesce in [false, true] {
            let (_proxy, address) = proxy(&upstream, coalesce);
            // An empty answer is none; this one has begun, and does not end.
            let (right, wrong) = answered(address, &GET.into(), "200", 8, 500);
            assert_eq!((right, wrong), (4000, Vec::new()), "coalesce: {coalesce}");
        }
    }
}

#[test]
fn who_is_refused_in_the_middle_of_an_upload_is_told_so() {
    let upstream = Upstream::start(drop);
    let (_proxy, address) = proxy(&upstream, false);
    let long =
        [b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000000\r\n\r\n".to_vec(), vec![b'x'; 4_000_000]].concat();
    let (right, wrong) = answered(address, &long.into(), "413", 4, 10);
    assert_eq!((right, wrong), (40, Vec::new()));
    let bad = [b"POST / HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n".to_vec(), vec![b'x'; 4_000_000]].concat();
    let (right, wrong) = answered(address, &bad.into(), "400", 4, 10);
    assert_eq!((right, wrong), (40, Vec::new()));
}
