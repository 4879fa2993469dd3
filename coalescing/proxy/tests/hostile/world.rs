//! A proxy between clients and an upstream that are the test's own, byte by byte, on made-up time.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brunt_proxy::in_process::InProcess;
use brunt_proxy::{Coalescing, Config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::wire::{self, Message, Reading};

/// What a connection holds that nobody reads, in bytes.
const PIPE: usize = 16 * 1024;

/// Longer than anything may take.
pub const AGES: Duration = Duration::from_secs(24 * 3600);

pub const SECOND: Duration = Duration::from_secs(1);

/// A proxy, and the connections that it makes.
pub struct World {
    pub proxy: Arc<InProcess>,
    upstream: mpsc::UnboundedReceiver<DuplexStream>,
}

/// A configuration with limits that are easy to tell apart.
pub fn config() -> Config {
    let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut config = Config::new("upstream:81".parse().unwrap(), listen);
    config.coalesce = Some(Coalescing::default());
    config.header_timeout = 10 * SECOND;
    config.client_timeout = 20 * SECOND;
    config.response_timeout = 40 * SECOND;
    config.keep_alive_timeout = 80 * SECOND;
    config.tunnel_timeout = 160 * SECOND;
    config.idle_timeout = AGES;
    config
}

/// A client's connection.
pub struct Client {
    pub stream: DuplexStream,
    pub served: JoinHandle<bool>,
}

impl World {
    pub fn new() -> Self {
        Self::with_config(&config())
    }

    pub fn with_config(config: &Config) -> Self {
        let (sender, upstream) = mpsc::unbounded_channel();
        let dial = move || {
            let (proxys, ours) = duplex(PIPE);
            sender.send(ours).map_err(|_| std::io::ErrorKind::ConnectionRefused)?;
            Ok(proxys)
        };
        Self { proxy: Arc::new(InProcess::new(config, dial).unwrap()), upstream }
    }

    pub fn connect(&self) -> Client {
        let (stream, proxys) = duplex(PIPE);
        let proxy = Arc::clone(&self.proxy);
        let peer = Some("192.0.2.7:1".parse().unwrap());
        let served = tokio::spawn(async move { proxy.serve(proxys, peer).await });
        Client { stream, served }
    }

    /// A client that has sent this.
    pub async fn sends(&self, bytes: &[u8]) -> Client {
        let mut client = self.connect();
        client.stream.write_all(bytes).await.unwrap();
        client
    }

    /// The next connection to the upstream.
    pub async fn accept(&mut self) -> Upstream {
        let stream = timeout(AGES, self.upstream.recv()).await.expect("no connection is made").unwrap();
        Upstream { stream }
    }

    /// The next connection, if one is made without any time going by.
    pub async fn accepts_now(&mut self) -> Option<Upstream> {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.upstream.try_recv().ok().map(|stream| Upstream { stream })
    }

    /// What an upstream that answers everything gets from now on: what came on each connection.
    pub fn upstream_answers(&mut self) -> Arc<Mutex<Vec<Vec<u8>>>> {
        let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let (nobody, all) = (mpsc::unbounded_channel().1, Arc::clone(&seen));
        let mut upstream = std::mem::replace(&mut self.upstream, nobody);
        tokio::spawn(async move {
            while let Some(stream) = upstream.recv().await {
                let at = {
                    let mut all = all.lock().unwrap();
                    all.push(Vec::new());
                    all.len() - 1
                };
                tokio::spawn(answer_all(stream, Arc::clone(&all), at));
            }
        });
        seen
    }

    /// What Prometheus would be told by this name.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.proxy.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("brunt_proxy_{name} ")));
        line.map_or(0, |value| value.parse().unwrap())
    }
}

/// Answers each request of a connection, and notes all that comes.
async fn answer_all(mut stream: DuplexStream, seen: Arc<Mutex<Vec<Vec<u8>>>>, at: usize) {
    let mut answered = 0;
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let reading = {
            let mut seen = seen.lock().unwrap();
            seen[at].extend_from_slice(&buffer[..count]);
            wire::requests(&seen[at])
        };
        // What is wrong is for the test to say.
        let Ok(Reading { messages, .. }) = reading else { return };
        for _ in answered..messages.len() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        }
        answered = messages.len();
    }
}

impl Client {
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// All that comes until the proxy ends the connection.
    pub async fn all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let _ = timeout(AGES, self.stream.read_to_end(&mut all)).await.expect("the connection does not end");
        all
    }

    /// The answers that come until the proxy ends the connection.
    pub async fn answers(&mut self) -> Reading {
        let all = self.all().await;
        wire::answers(&all, &[]).unwrap_or_else(|wrong| panic!("{wrong} in {}", String::from_utf8_lossy(&all)))
    }

    /// The next answer, which has a length.
    pub async fn answer(&mut self) -> Message {
        let mut came = Vec::new();
        loop {
            let mut byte = [0];
            let read = timeout(AGES, self.stream.read_exact(&mut byte)).await.expect("nothing comes");
            read.unwrap_or_else(|error| panic!("{error} after {}", String::from_utf8_lossy(&came)));
            came.push(byte[0]);
            let Some(length) = content_length(&came) else { continue };
            let mut body = vec![0; length];
            timeout(AGES, self.stream.read_exact(&mut body)).await.expect("nothing comes").unwrap();
            came.extend(body);
            return wire::answers(&came, &[]).unwrap().messages.remove(0);
        }
    }

    /// How long the proxy keeps the connection from now on.
    pub async fn lasts(&mut self) -> Duration {
        let began = tokio::time::Instant::now();
        timeout(AGES, &mut self.served).await.expect("the connection does not end").unwrap();
        began.elapsed()
    }
}

/// The length that a whole head says.
fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head.strip_suffix(b"\r\n\r\n")?).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    Some(length.map_or(0, |length| length.parse().unwrap()))
}

/// A connection to the upstream.
pub struct Upstream {
    pub stream: DuplexStream,
}

impl Upstream {
    /// The head of the next request.
    pub async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            timeout(AGES, self.stream.read_exact(&mut byte)).await.expect("no request comes").expect("no request");
            head.push(byte[0]);
        }
        String::from_utf8(head).unwrap()
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Reads a request and answers it.
    pub async fn answers(&mut self, body: &str) -> String {
        let head = self.head().await;
        self.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
        head
    }
}
