//! A proxy, and an upstream that answers with all that it was sent.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brunt_proxy::in_process::InProcess;
use brunt_proxy::{Coalescing, Config};
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{sleep, timeout};

use crate::requests::{Made, Settings};
use crate::rules::Seen;
use crate::wire;

/// What a connection holds that nobody reads, in bytes.
const PIPE: usize = 64 * 1024;

/// Longer than anything may take.
const AGES: Duration = Duration::from_secs(3600);

/// Addresses of clients: of each class one or two.
pub const PEERS: [Option<&str>; 5] = [Some("192.0.2.7"), Some("192.0.2.8"), Some("127.0.0.1"), Some("10.0.0.7"), None];

/// How the upstream answers.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    pub fields: Vec<(&'static str, &'static str)>,
    pub in_pieces: bool,
}

impl Answer {
    /// The names that it varies by.
    pub fn vary(&self) -> impl Iterator<Item = &'static str> {
        let varies = self.fields.iter().filter(|(name, _)| *name == "Vary");
        varies.flat_map(|(_, value)| value.split(',').map(str::trim))
    }

    /// The answer to a request, with all of it in a field, as an answer to HEAD has no body.
    fn bytes(&self, seen: &[u8]) -> (String, String) {
        let echo: String = seen.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut head = format!("HTTP/1.1 {} X\r\nX-Echo: {echo}\r\n", self.status);
        for (name, value) in &self.fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let is_head = seen.starts_with(b"HEAD ");
        let body = if is_head { String::new() } else { echo };
        if self.in_pieces && !is_head {
            head.push_str("Transfer-Encoding: chunked\r\n\r\n");
            (head, format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))
        } else {
            head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
            (head, body)
        }
    }
}

/// What a client was told.
#[derive(Debug, Default)]
pub struct Received {
    pub status: u16,
    /// The request that the answer is to, if the upstream answered.
    pub seen: Option<Seen>,
}

pub struct World {
    proxy: Arc<InProcess>,
    answer: Arc<Mutex<Answer>>,
}

impl World {
    pub fn new(settings: &Settings, coalesces: bool) -> Self {
        let listen: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let mut config = Config::new("upstream:81".parse().unwrap(), listen);
        let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        config.coalesce = coalesces.then(|| Coalescing {
            key_headers: names(&settings.key_headers),
            ignored_headers: names(&settings.ignored_headers),
            ignored_cookies: settings.ignored_cookies.iter().map(|&name| name.to_owned()).collect(),
            hold: Duration::from_millis(settings.hold_ms),
            all_safe_methods: settings.all_safe_methods,
            share_no_cache: settings.share_no_cache,
            max_promotions: settings.max_promotions,
            join_late_bytes: settings.join_late_bytes,
            ..Coalescing::default()
        });
        if settings.trusted {
            config.trusted_proxies = vec!["0.0.0.0/0".parse().unwrap(), "unix".parse().unwrap()];
        }
        let answer = Arc::new(Mutex::new(Answer::default()));
        let (sender, mut dialled) = tokio::sync::mpsc::unbounded_channel();
        let dial = move || {
            let (proxys, ours) = duplex(PIPE);
            sender.send(ours).map_err(|_| std::io::ErrorKind::ConnectionRefused)?;
            Ok(proxys)
        };
        let answers = Arc::clone(&answer);
        tokio::spawn(async move {
            while let Some(stream) = dialled.recv().await {
                tokio::spawn(echo(stream, Arc::clone(&answers)));
            }
        });
        Self { proxy: Arc::new(InProcess::new(&config, dial).unwrap()), answer }
    }

    pub fn answers_with(&self, answer: &Answer) {
        *self.answer.lock().unwrap() = answer.clone();
    }

    /// What a client of this address is told, that asks after a while.
    pub async fn asks(&self, request: &Made, peer: Option<&str>, after: Duration) -> Received {
        sleep(after).await;
        let (mut stream, proxys) = duplex(PIPE);
        let peer = peer.map(|peer| SocketAddr::new(peer.parse::<IpAddr>().unwrap(), 1));
        let proxy = Arc::clone(&self.proxy);
        let served = tokio::spawn(async move { proxy.serve(proxys, peer).await });
        if request.version == "HTTP/2" {
            let told = timeout(AGES, asks_http2(stream, request)).await.expect("no answer comes");
            let _ = timeout(AGES, served).await.expect("the connection does not end");
            return told.unwrap_or_default();
        }
        let _ = stream.write_all(&request.bytes()).await;
        let is_head = [request.method == "HEAD"];
        let (mut came, mut buffer) = (Vec::new(), vec![0; 4096]);
        let answer = loop {
            let read = timeout(AGES, stream.read(&mut buffer)).await.expect("no answer comes");
            let count = read.unwrap_or(0);
            came.extend_from_slice(&buffer[..count]);
            let reading = wire::answers(&came, &is_head).unwrap_or_else(|wrong| panic!("{wrong}\n{request}"));
            let last = reading.messages.into_iter().find(|message| message.status() >= 200);
            // Without a length, an answer ends with its connection.
            let is_whole = last.as_ref().is_some_and(|answer| {
                is_head[0] || answer.values("content-length").chain(answer.values("transfer-encoding")).next().is_some()
            });
            if is_whole || count == 0 {
                break last;
            }
        };
        drop(stream);
        let _ = timeout(AGES, served).await.expect("the connection does not end");
        let Some(answer) = answer else { return Received { status: 0, seen: None } };
        let echo = answer.values("x-echo").next().map(str::to_owned);
        if let Some(echo) = &echo
            && !is_head[0]
        {
            assert_eq!(answer.body, echo.as_bytes(), "the body is another's, or not whole\n{request}");
        }
        Received { status: answer.status(), seen: echo.map(|echo| seen(&echo)) }
    }
}

/// What a client is told over HTTP/2; nothing if its request cannot be one, or its stream is reset.
async fn asks_http2(stream: DuplexStream, request: &Made) -> Option<Received> {
    let (head, body) = request.http2()?;
    let (mut sender, connection) = h2::client::handshake(stream).await.ok()?;
    let driven = tokio::spawn(async move {
        let _ = connection.await;
    });
    let (answer, mut upload) = sender.send_request(head, body.is_empty()).ok()?;
    if !body.is_empty() {
        let _ = upload.send_data(Bytes::from_static(body.as_bytes()), true);
    }
    let answer = answer.await.ok()?;
    let (status, echo) = (answer.status().as_u16(), answer.headers().get("x-echo").cloned());
    let (mut pieces, mut all) = (answer.into_body(), Vec::new());
    while let Some(Ok(piece)) = pieces.data().await {
        let _ = pieces.flow_control().release_capacity(piece.len());
        all.extend_from_slice(&piece);
    }
    driven.abort();
    let echo = echo.map(|echo| echo.to_str().unwrap().to_owned());
    if let Some(echo) = &echo
        && request.method != "HEAD"
    {
        assert_eq!(all, echo.as_bytes(), "the body is another's, or not whole\n{request}");
    }
    Some(Received { status, seen: echo.map(|echo| seen(&echo)) })
}

/// The request in an answer.
fn seen(echo: &str) -> Seen {
    let digit = |at: usize| u8::from_str_radix(&echo[at..at + 2], 16).unwrap();
    let bytes: Vec<_> = (0..echo.len()).step_by(2).map(digit).collect();
    let message = wire::requests(&bytes).unwrap().messages.remove(0);
    Seen { start: message.start, fields: message.fields, body: message.body }
}

/// Answers each request of a connection with all of it, after a while.
async fn echo(mut stream: DuplexStream, answer: Arc<Mutex<Answer>>) {
    let (mut came, mut buffer) = (Vec::new(), vec![0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        came.extend_from_slice(&buffer[..count]);
        let reading = wire::requests(&came).unwrap_or_else(|wrong| panic!("{wrong}"));
        if reading.messages.is_empty() || reading.is_cut {
            continue;
        }
        assert_eq!(reading.messages.len(), 1, "more than was asked for");
        let answer = answer.lock().unwrap().clone();
        sleep(Duration::from_millis(10)).await;
        let (head, body) = answer.bytes(&came);
        came.clear();
        if stream.write_all(head.as_bytes()).await.is_err() {
            return;
        }
        if answer.in_pieces {
            sleep(Duration::from_millis(10)).await;
        }
        if stream.write_all(body.as_bytes()).await.is_err() {
            return;
        }
    }
}
