//! A client, a server and the network between them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use brunt_http3::{Http3Connection, Http3Event, qpack};
use brunt_quic::{Client, ClientSetup, Ending, Limits, QuicServer, Read, Received, ServerSetup, SessionId};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What the network and the server do wrong.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// Of 100 datagrams, how many are lost, and how many come twice.
    pub loss: u32,
    pub doubled: u32,
    /// How much longer than 10 ms a datagram takes at most.
    pub jitter_ns: u64,
    /// From when on, and for how long nothing arrives.
    pub cut: Option<(u64, u64)>,
    pub seed: u64,
    pub streams: u32,
    pub window: u32,
    pub idle_ns: u64,
    pub retries: bool,
    pub refuses: bool,
    pub distrusts: bool,
    pub alpn: &'static str,
    /// After how many requests the server takes no more.
    pub leaves_after: Option<u64>,
    /// After how many requests the server is another one.
    pub forgets_after: Option<u64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            loss: 0,
            doubled: 0,
            jitter_ns: 0,
            cut: None,
            seed: 1,
            streams: 100,
            window: 1 << 24,
            idle_ns: 30_000_000_000,
            retries: false,
            refuses: false,
            distrusts: false,
            alpn: "h3",
            leaves_after: None,
            forgets_after: None,
        }
    }
}

/// The sizes of a request's body and of its answer's.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub up: usize,
    pub down: usize,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Answered,
    Unprocessed,
    Reset,
    Lost,
}

/// What the client knows of a request.
#[derive(Debug, Default)]
struct Asked {
    number: usize,
    received: usize,
}

/// What the server knows of one.
#[derive(Debug, Default)]
struct Served {
    received: usize,
    up: usize,
    down: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Client,
    Server,
}

pub struct World {
    faults: Faults,
    now: u64,
    random: u64,
    sent: u64,
    /// Datagrams on their way, by when they arrive.
    way: BTreeMap<(u64, u64), (To, Vec<u8>)>,
    client: Client,
    asking: Http3Connection<Asked>,
    requests: Vec<Request>,
    begun: usize,
    is_opened: bool,
    server: QuicServer,
    answering: BTreeMap<SessionId, Http3Connection<Served>>,
    setup: ServerSetup,
    client_setup: ClientSetup,
    /// How each request ended.
    pub fates: Vec<Option<Fate>>,
    /// How many the server has answered whole, as far as it knows.
    pub served: u64,
    seen: u64,
    pub most_at_once: usize,
    pub last_answer: u64,
    pub was_held_back: bool,
    pub ending: Option<Ending>,
}

/// The addresses of both.
fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

/// A certificate for `a.example`, made once.
fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    static MADE: std::sync::OnceLock<(Vec<u8>, Vec<u8>)> = std::sync::OnceLock::new();
    let (certificate, key) = MADE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        (made.cert.der().to_vec(), made.signing_key.serialize_der())
    });
    (certificate.clone().into(), PrivateKeyDer::Pkcs8(key.clone().into()))
}

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    qpack::SectionEncoder.begin(&mut out);
    for (name, value) in fields {
        qpack::SectionEncoder.field(name.as_bytes(), value.as_bytes(), &mut out);
    }
    out
}

/// The byte of a body at this place.
fn byte(at: usize) -> u8 {
    (at * 7 + at / 251) as u8
}

fn body(from: usize, to: usize) -> Vec<u8> {
    (from..to).map(byte).collect()
}

/// A server that remembers sessions, and takes early data for them.
fn server_setup(faults: &Faults) -> ServerSetup {
    let (certificate, key) = certificate();
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let mut tls = tls.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    tls.alpn_protocols = vec![faults.alpn.as_bytes().to_vec()];
    tls.max_early_data_size = u32::MAX;
    let Faults { streams, window, idle_ns, .. } = *faults;
    let limits = Limits { streams, stream_window: window, idle_ns, ..Limits::SERVER };
    ServerSetup::new(Arc::new(tls), limits).unwrap()
}

impl World {
    pub fn new(faults: Faults) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (certificate, _) = certificate();
        let mut roots = rustls::RootCertStore::empty();
        if !faults.distrusts {
            roots.add(certificate).unwrap();
        }
        let tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap();
        let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        tls.enable_early_data = true;
        let limits = Limits { idle_ns: faults.idle_ns, ..Limits::CLIENT };
        let client_setup = ClientSetup::new(Arc::new(tls), limits).unwrap();
        let client = client_setup.connect(address(443), "a.example", 100, None, 0).unwrap();
        let setup = server_setup(&faults);
        let mut server = QuicServer::new(&setup).retrying(faults.retries);
        server.refuse(faults.refuses);
        Self {
            faults,
            now: 0,
            random: faults.seed | 1,
            sent: 0,
            way: BTreeMap::new(),
            client,
            asking: Http3Connection::client(),
            requests: Vec::new(),
            begun: 0,
            is_opened: false,
            server,
            answering: BTreeMap::new(),
            setup,
            client_setup,
            fates: Vec::new(),
            served: 0,
            seen: 0,
            most_at_once: 0,
            last_answer: 0,
            was_held_back: false,
            ending: None,
        }
    }

    /// The client connects again. With a number of streams the server is another one, which knows no session and allows so many.
    pub fn again(&mut self, another: Option<u32>) {
        if let Some(streams) = another {
            self.faults.streams = streams;
            self.setup = server_setup(&self.faults);
            self.server = QuicServer::new(&self.setup);
            self.answering.clear();
        }
        self.way.clear();
        self.client = self.client_setup.connect(address(443), "a.example", 100, None, self.now).unwrap();
        self.asking = Http3Connection::client();
        (self.begun, self.is_opened, self.ending) = (0, false, None);
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn ask(&mut self, requests: &[Request]) {
        self.requests = requests.to_vec();
        self.fates = vec![None; requests.len()];
    }

    /// Until each request has ended, or for two minutes.
    pub fn run(&mut self) {
        self.turn_of_client();
        while self.now < 120_000_000_000 && self.fates.iter().any(Option::is_none) {
            let arrives = self.way.keys().next().map(|(at, _)| *at);
            let times_out = if self.ending.is_none() { self.client.timeout() } else { None };
            let mut next = arrives.into_iter().chain(times_out).min();
            for id in self.server.ids().collect::<Vec<_>>() {
                let timeout = self.server.session(id).and_then(brunt_quic::Session::timeout);
                next = next.into_iter().chain(timeout).min();
            }
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            while let Some(((at, number), _)) = self.way.first_key_value()
                && *at <= self.now
            {
                let key = (*at, *number);
                let Some((to, datagram)) = self.way.remove(&key) else { break };
                match to {
                    To::Client => {
                        self.client.receive(&datagram, self.now);
                    }
                    To::Server => {
                        let mut out = Vec::new();
                        match self.server.receive(&datagram, address(5000), self.now, &mut out) {
                            Received::Session(id) => self.turn_of_server(id),
                            Received::Response(_) => self.send(To::Client, &out),
                            Received::Nothing => {}
                        }
                    }
                }
            }
            self.client.tick(self.now);
            self.turn_of_client();
            for id in self.server.ids().collect::<Vec<_>>() {
                if let Some(session) = self.server.session(id) {
                    session.tick(self.now);
                }
                self.turn_of_server(id);
            }
        }
    }

    fn chance(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn send(&mut self, to: To, datagram: &[u8]) {
        assert!(datagram.len() <= 1500, "a datagram of {} bytes", datagram.len());
        let is_cut = self.faults.cut.is_some_and(|(from, for_ns)| self.now >= from && self.now - from < for_ns);
        if is_cut || self.chance() % 100 < u64::from(self.faults.loss) {
            return;
        }
        let copies = 1 + usize::from(self.chance() % 100 < u64::from(self.faults.doubled));
        for _ in 0..copies {
            let more = if self.faults.jitter_ns > 0 { self.chance() % self.faults.jitter_ns } else { 0 };
            self.sent += 1;
            self.way.insert((self.now + 10_000_000 + more, self.sent), (to, datagram.to_vec()));
        }
    }

    fn turn_of_client(&mut self) {
        if self.ending.is_some() {
            return;
        }
        let mut buffer = [0; 500];
        let mut out = Vec::new();
        loop {
            match self.client.read(&mut buffer) {
                Read::Nothing => break,
                Read::End(ending) => {
                    self.ending = Some(ending);
                    self.fates.iter_mut().for_each(|fate| *fate = fate.or(Some(Fate::Lost)));
                    return;
                }
                Read::Bytes(count) => self.hear(&buffer[..count], &mut out),
            }
        }
        if self.client.is_established() || self.client.is_early() {
            if !std::mem::replace(&mut self.is_opened, true) {
                if !self.client.is_early() {
                    assert_eq!(self.client.alpn().as_deref(), Some(b"h3".as_slice()));
                }
                self.asking.open(&mut out);
            }
            while self.begun < self.requests.len() && self.asking.len() < self.asking.capacity() {
                let Request { up, down } = self.requests[self.begun];
                let (up_text, down_text) = (up.to_string(), down.to_string());
                let fields = [(":method", "POST"), (":scheme", "https"), (":path", "/a"), (":authority", "a.example")];
                let own = [("content-length", up_text.as_str()), ("x-down", down_text.as_str())];
                let head = section(&[fields.as_slice(), &own].concat());
                let asked = Asked { number: self.begun, received: 0 };
                self.asking.start(&head, up == 0, false, asked, &mut out);
                if up > 0 {
                    self.asking.send(self.asking.len() - 1, &body(0, up), true, &mut out);
                }
                self.begun += 1;
            }
        }
        self.client.write(&out, self.now);
        while self.asking.has_more() {
            out.clear();
            self.asking.more(&mut out);
            self.client.write(&out, self.now);
            self.hear_blocks();
        }
        self.was_held_back |= self.asking.is_blocked();
        let mut datagram = Vec::new();
        while self.client.transmit(self.now, 1, &mut datagram).is_some() {
            self.send(To::Server, &datagram);
            datagram.clear();
        }
    }

    /// Lets the client hear what waits.
    fn hear_blocks(&mut self) {
        let (mut buffer, mut out) = ([0; 500], Vec::new());
        while let Read::Bytes(count) = self.client.read(&mut buffer) {
            self.hear(&buffer[..count], &mut out);
        }
        self.client.write(&out, self.now);
    }

    fn hear(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let (taken, event) = self.asking.receive(bytes, out).unwrap();
            bytes = &bytes[taken..];
            let (position, fate) = match event {
                Http3Event::Data { position, bytes, end, .. } => {
                    let asked = self.asking.data_mut(position).unwrap();
                    assert!(bytes.iter().zip(asked.received..).all(|(got, at)| *got == byte(at)));
                    asked.received += bytes.len();
                    (position, end.then_some(Fate::Answered))
                }
                Http3Event::Head { position, end, status } => {
                    assert_eq!(status, 200);
                    (position, end.then_some(Fate::Answered))
                }
                Http3Event::Reset { position, .. } => (position, Some(Fate::Reset)),
                Http3Event::GoAway { .. } => {
                    let left: Vec<_> = (0..self.asking.len())
                        .filter_map(|at| self.asking.data(at))
                        .map(|asked| asked.number)
                        .collect();
                    for number in 0..self.requests.len() {
                        let fate = &mut self.fates[number];
                        if fate.is_none() && !left.contains(&number) {
                            *fate = Some(Fate::Unprocessed);
                        }
                    }
                    continue;
                }
                Http3Event::Aside | Http3Event::Opened | Http3Event::Ready => continue,
                other => panic!("{other:?}"),
            };
            if let Some(fate) = fate {
                let asked = self.asking.take(position, out).unwrap();
                assert_eq!(self.fates[asked.number], None, "a request ends once");
                self.fates[asked.number] = Some(fate);
                if fate == Fate::Answered {
                    assert_eq!(asked.received, self.requests[asked.number].down);
                    self.last_answer = self.now;
                }
            }
        }
    }

    fn turn_of_server(&mut self, id: SessionId) {
        let mut buffer = [0; 777];
        let mut out = Vec::new();
        while let Some(session) = self.server.session(id) {
            match session.read(&mut buffer) {
                Read::Nothing => break,
                Read::End(_) => {
                    self.answering.remove(&id);
                    break;
                }
                Read::Bytes(count) => self.serve(id, &buffer[..count], &mut out),
            }
        }
        if let Some(session) = self.server.session(id) {
            session.write(&out, self.now);
        }
        while let Some(answering) = self.answering.get_mut(&id) {
            let Some(session) = self.server.session(id) else { break };
            if !answering.has_more() {
                break;
            }
            out.clear();
            answering.more(&mut out);
            session.write(&out, self.now);
            while let Read::Bytes(count) = session.read(&mut buffer) {
                out.clear();
                answering.receive(&buffer[..count], &mut out).unwrap();
            }
        }
        self.done(id);
        let mut datagram = Vec::new();
        while self.server.transmit(id, self.now, &mut datagram).is_some() {
            self.send(To::Client, &datagram);
            datagram.clear();
        }
        if self.faults.forgets_after.is_some_and(|after| self.seen >= after) {
            self.faults.forgets_after = None;
            self.server = QuicServer::new(&self.setup);
            self.answering.clear();
        }
    }

    fn serve(&mut self, id: SessionId, mut bytes: &[u8], out: &mut Vec<u8>) {
        let answering = self.answering.entry(id).or_insert_with(|| {
            let mut connection = Http3Connection::server();
            connection.open(out);
            connection
        });
        while !bytes.is_empty() {
            let (taken, event) = answering.receive(bytes, out).unwrap();
            bytes = &bytes[taken..];
            self.most_at_once = self.most_at_once.max(answering.len());
            let (position, end) = match event {
                Http3Event::Request { position, end } => {
                    let number =
                        |name| std::str::from_utf8(answering.fields().get(name).unwrap()).unwrap().parse::<usize>();
                    let (up, down) = (number("content-length").unwrap(), number("x-down").unwrap());
                    *answering.data_mut(position).unwrap() = Served { received: 0, up, down };
                    self.seen += 1;
                    if self.faults.leaves_after == Some(self.seen) {
                        answering.leave(out);
                    }
                    (position, end)
                }
                Http3Event::Data { position, bytes, end, .. } => {
                    let served = answering.data_mut(position).unwrap();
                    assert!(bytes.iter().zip(served.received..).all(|(got, at)| *got == byte(at)));
                    served.received += bytes.len();
                    (position, end)
                }
                Http3Event::Reset { position, .. } => {
                    answering.take(position, out);
                    continue;
                }
                Http3Event::Aside | Http3Event::Opened | Http3Event::Ready => continue,
                other => panic!("{other:?}"),
            };
            if end {
                let served = answering.data(position).unwrap();
                assert_eq!(served.received, served.up);
                let down = served.down;
                let length = down.to_string();
                answering.respond(position, &section(&[(":status", "103")]), false, out);
                answering.respond(
                    position,
                    &section(&[(":status", "200"), ("content-length", &length)]),
                    down == 0,
                    out,
                );
                if down > 0 {
                    answering.send(position, &body(0, down), true, out);
                }
            }
        }
    }

    /// Takes the streams that are answered whole.
    fn done(&mut self, id: SessionId) {
        let Some(answering) = self.answering.get_mut(&id) else { return };
        let mut out = Vec::new();
        for position in (0..answering.len()).rev() {
            if answering.is_answered(position) {
                answering.take(position, &mut out);
                self.served += 1;
            }
        }
        if let Some(session) = self.server.session(id) {
            session.write(&out, self.now);
        }
    }
}
