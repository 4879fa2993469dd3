//! The way to the bus: a NATS server, how to log in to it, and the subjects that brunt uses there.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Auth, AuthError, Client, ConnectErrorKind, ConnectOptions, Event, PublishErrorKind, ServerAddr};
use brunt_plan::percent::percent_decoded;
use tokio::sync::mpsc::UnboundedSender;

use crate::frame::Kind;
use crate::post::{BusEvent, Posted, Server};
use crate::random_number;

/// How long connecting may take: several round trips over a slow link, and less than a run waits for its bus.
const CONNECTING: Duration = Duration::from_secs(3);
/// How often a server is asked whether it lives. One that has answered none of three questions is left for another.
const PINGS: Duration = Duration::from_secs(1);
/// How long to wait between attempts to connect again, on average.
const AGAIN: Duration = Duration::from_millis(300);
/// Messages that may wait to be taken: twice as many as all agents of a large run send at once.
const ROOM: usize = 1 << 16;

/// The shortest message limit of a server that suffices, in bytes.
pub(crate) const LEAST_PAYLOAD: usize = 4 << 10;

/// A NATS server and how to log in to it.
#[derive(Clone, Default)]
pub struct Bus {
    /// Its address: `nats://host:4222`, `tls://host:4222`; several are separated by commas.
    pub url: String,
    /// A file with a JWT and its key, as `nsc` makes them.
    pub credentials: Option<PathBuf>,
    /// A file with the seed of an nkey.
    pub nkey: Option<PathBuf>,
    /// Certificates to trust besides the system's, in PEM.
    pub trusted: Option<PathBuf>,
    /// Our own certificate and key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The beginning of all subjects.
    pub prefix: String,
}

/// The reason for which the bus cannot be used. No message includes a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The URL names no NATS server.
    #[error("'{url}' is not a NATS server: write nats://HOST:4222, or tls://HOST:4222")]
    Url {
        /// As given, without credentials.
        url: String,
    },
    /// A subject cannot begin with this.
    #[error("'{prefix}' cannot begin a subject: use letters, digits, '-', '_' and dots between them")]
    Prefix {
        /// As given.
        prefix: String,
    },
    /// A file cannot be read.
    #[error("{file}: {problem}")]
    File {
        /// Its path.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The server refuses the login.
    #[error("the NATS server at {url} refuses these credentials")]
    Refused {
        /// The server, without credentials.
        url: String,
    },
    /// There is no connection.
    #[error("no connection to the NATS server at {url}: {problem}")]
    Unreachable {
        /// The server, without credentials.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// The server does not let us use a subject.
    #[error(
        "the NATS server does not let us use its subjects ({problem}): docs/machines.md has the permissions that agents and \
         controllers need"
    )]
    Permission {
        /// The server's words.
        problem: String,
    },
    /// Another agent has the name.
    #[error(
        "an agent called '{name}' is on this bus already: give this one a --name of its own, or end the other one first"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The server takes too short messages.
    #[error(
        "the NATS server at {url} takes messages of {got} bytes at most, and brunt needs {least}: raise max_payload in its configuration"
    )]
    Payload {
        /// The server, without credentials.
        url: String,
        /// Its limit.
        got: usize,
        /// The limit needed.
        least: usize,
    },
    /// The connection was closed for good.
    #[error("the connection to the NATS server has ended: {problem}")]
    Ended {
        /// Why.
        problem: String,
    },
}

/// The server that a client is connected to.
pub(crate) fn server_of(client: &Client) -> Server {
    let info = client.server_info();
    Server { id: info.server_id, most_payload: info.max_payload }
}

/// The library's event of a connection, if it matters.
pub(crate) fn event_of(event: Event, client: &Client) -> Option<BusEvent> {
    match event {
        Event::Disconnected => Some(BusEvent::Away),
        Event::Connected => Some(back(server_of(client))),
        Event::ServerError(error) => Some(BusEvent::Says(error.to_string())),
        Event::SlowConsumer(_) => Some(BusEvent::TooSlow),
        Event::ClientError(error) => refused_login(&error.to_string()).map(BusEvent::Unusable),
        _ => None,
    }
}

/// What to say of a connection that could not be made, if the reason is a refused login. No error has a password.
fn refused_login(error: &str) -> Option<String> {
    let error = error.to_lowercase();
    let is_refused =
        ["authorization violation", "authentication", "expired", "revoked"].iter().any(|of| error.contains(of));
    let problem = "the NATS server refuses the login; trying again, with the files of credentials read anew";
    is_refused.then(|| problem.to_owned())
}

/// The connection is back, to this server, if that can be used.
pub(crate) fn back(server: Server) -> BusEvent {
    let got = server.most_payload;
    if got >= LEAST_PAYLOAD {
        return BusEvent::Back(server);
    }
    BusEvent::Unusable(format!(
        "the NATS server takes messages of {got} bytes at most, and brunt needs {LEAST_PAYLOAD}: raise max_payload in its configuration, and \
         start it again"
    ))
}

/// A random time between half of `usual` and one and a half of it, so that many clients of one server do not all come
/// at once.
pub(crate) fn jittered(usual: Duration) -> Duration {
    spread(usual, random_number())
}

fn spread(usual: Duration, random: u64) -> Duration {
    usual / 2 + usual.mul_f64(random as f64 / u64::MAX as f64)
}

/// Publishes the frames of a state machine. Returns those that the connection refused.
pub(crate) async fn publish(client: &Client, posted: Vec<Posted>) -> Vec<BusEvent> {
    let mut refused = Vec::new();
    for Posted { subject, frame } in posted {
        let (kind, payload) = (frame.kind, frame.to_bytes());
        let bytes = payload.len();
        let Err(error) = client.publish(subject, payload).await else { continue };
        refused.push(match error.kind() {
            // The server's message limit is lower than before.
            PublishErrorKind::MaxPayloadExceeded if kind == Kind::Piece => BusEvent::Refused(server_of(client)),
            // A complaint of the bus is shown only in part.
            PublishErrorKind::MaxPayloadExceeded => BusEvent::Says(format!(
                "the NATS server takes {} bytes at most, not {bytes}: raise max_payload, or give shorter --tag",
                server_of(client).most_payload
            )),
            PublishErrorKind::Send => BusEvent::Gone(error.to_string()),
            PublishErrorKind::InvalidSubject => BusEvent::Says(format!("the NATS server was not told: {error}")),
        });
    }
    refused
}

/// Whether the server's complaint is that a subject must not be listened to: nothing can be heard then.
pub(crate) fn refuses_subscription(problem: &str) -> bool {
    problem.to_lowercase().contains("permissions violation for subscription")
}

/// Whether the server's complaint is about a permission.
pub(crate) fn refuses(problem: &str) -> bool {
    problem.to_lowercase().contains("permissions violation")
}

impl Bus {
    /// The server, without credentials.
    pub fn shown_url(&self) -> String {
        let without = |url: &str| match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            (None, Some((_, host))) => host.to_owned(),
            (_, None) => url.to_owned(),
        };
        self.url.split(',').map(|url| without(url.trim())).collect::<Vec<_>>().join(",")
    }

    /// Whether messages are private on their way: by TLS, or because they do not leave this machine.
    pub fn is_private(&self) -> bool {
        self.servers().is_ok_and(|servers| {
            servers.iter().all(|server| {
                let host = server.host();
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let is_here = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
                is_here || self.wants_tls(server)
            })
        })
    }

    fn wants_tls(&self, server: &ServerAddr) -> bool {
        server.tls_required() || self.trusted.is_some() || self.identity.is_some()
    }

    fn servers(&self) -> Result<Vec<ServerAddr>, BusError> {
        let servers = self.url.split(',').map(|url| url.trim().parse::<ServerAddr>());
        servers.collect::<Result<_, _>>().map_err(|_| BusError::Url { url: self.shown_url() })
    }

    /// The subject of a kind below the prefix.
    pub(crate) fn subject(&self, below: &str) -> String {
        format!("{}.{below}", self.prefix)
    }

    /// Whether all files are there.
    fn check_files(&self) -> Result<(), BusError> {
        let of_identity = self.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        for file in self.trusted.iter().chain(of_identity) {
            read(file)?;
        }
        Ok(())
    }

    fn check_prefix(&self) -> Result<(), BusError> {
        if self.prefix.split('.').all(is_token) {
            Ok(())
        } else {
            Err(BusError::Prefix { prefix: self.prefix.clone() })
        }
    }

    /// Connects as `name`. `events` gets events of the connection.
    pub(crate) async fn connect(&self, name: &str, events: UnboundedSender<Event>) -> Result<Client, BusError> {
        self.check_prefix()?;
        let servers = self.servers()?;
        let is_first = AtomicBool::new(true);
        self.check_files()?;
        let login = Login::new(self, &servers);
        login.auth(&[])?;
        // Files are read again for each connection: credentials may be renewed meanwhile.
        let auth = move |nonce: Vec<u8>| {
            let auth = login.auth(&nonce).map_err(|error| AuthError::new(error.to_string()));
            std::future::ready(auth)
        };
        let mut options = ConnectOptions::with_auth_callback(auth)
            .name(name)
            .connection_timeout(CONNECTING)
            .reconnect_delay_callback(move |_| {
                let is_first = is_first.swap(false, Ordering::Relaxed);
                if is_first { Duration::ZERO } else { jittered(AGAIN) }
            })
            .max_reconnects(None)
            .subscription_capacity(ROOM)
            .ping_interval(PINGS)
            .require_tls(servers.iter().any(|server| self.wants_tls(server)))
            .event_callback(move |event| {
                // Whoever listened is gone when the connection is given up.
                let _ = events.send(event);
                std::future::ready(())
            });
        if let Some(file) = &self.trusted {
            options = options.add_root_certificates(file.clone());
        }
        if let Some((certificate, key)) = &self.identity {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let client = options.connect(servers).await.map_err(|error| match error.kind() {
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                BusError::Refused { url: self.shown_url() }
            }
            _ => BusError::Unreachable { url: self.shown_url(), problem: error.to_string() },
        })?;
        let got = client.server_info().max_payload;
        if got < LEAST_PAYLOAD {
            return Err(BusError::Payload { url: self.shown_url(), got, least: LEAST_PAYLOAD });
        }
        Ok(client)
    }
}

/// How to log in.
struct Login {
    credentials: Option<PathBuf>,
    nkey: Option<PathBuf>,
    /// The user and the password of the URL, or a token.
    of_url: Option<(String, Option<String>)>,
}

impl Login {
    fn new(bus: &Bus, servers: &[ServerAddr]) -> Self {
        // The library takes no credentials from URLs.
        let server = servers.iter().find(|server| server.has_user_pass());
        let of_url = server.map(|server| {
            let user = percent_decoded(server.username().unwrap_or_default());
            (user, server.password().map(percent_decoded))
        });
        Self { credentials: bus.credentials.clone(), nkey: bus.nkey.clone(), of_url }
    }

    /// The answer to a server's `nonce`, from the files as they are now.
    fn auth(&self, nonce: &[u8]) -> Result<Auth, BusError> {
        let mut auth = Auth::new();
        match &self.of_url {
            Some((user, Some(password))) => {
                (auth.username, auth.password) = (Some(user.clone()), Some(password.clone()));
            }
            Some((token, None)) => auth.token = Some(token.clone()),
            None => {}
        }
        if let Some(file) = &self.credentials {
            let text = read(file)?;
            let (jwt, seed) = (decorated(&text, "USER JWT"), decorated(&text, "USER NKEY SEED"));
            let (Some(jwt), Some(seed)) = (jwt, seed) else {
                let problem = "expected a JWT and a seed between their lines, as nsc writes them".to_owned();
                return Err(BusError::File { file: file.clone(), problem });
            };
            auth.jwt = Some(jwt);
            auth.signature = Some(signed(&seed, nonce, file)?.0);
        }
        if let Some(file) = &self.nkey {
            let (signature, public) = signed(read(file)?.trim(), nonce, file)?;
            (auth.signature, auth.nkey) = (Some(signature), Some(public));
        }
        Ok(auth)
    }
}

fn read(file: &Path) -> Result<String, BusError> {
    let wrong = |error: std::io::Error| BusError::File { file: file.to_owned(), problem: error.to_string() };
    std::fs::read_to_string(file).map_err(wrong)
}

/// The line of a credentials file between `-----BEGIN … WHAT-----` and `------END … WHAT------`.
fn decorated(text: &str, what: &str) -> Option<String> {
    let marks = |line: &str, word: &str| line.starts_with("---") && line.contains(word) && line.contains(what);
    let inner = text.lines().skip_while(|line| !marks(line, "BEGIN")).skip(1).take_while(|line| !marks(line, "END"));
    Some(inner.map(str::trim).collect::<String>()).filter(|inner| !inner.is_empty())
}

/// The signature of `nonce` by a seed, and the seed's public key.
fn signed(seed: &str, nonce: &[u8], file: &Path) -> Result<(Vec<u8>, String), BusError> {
    let wrong = |error: nkeys::error::Error| {
        let problem = format!("no seed of an nkey ({error})");
        BusError::File { file: file.to_owned(), problem }
    };
    let pair = nkeys::KeyPair::from_seed(seed).map_err(wrong)?;
    Ok((pair.sign(nonce).map_err(wrong)?, pair.public_key()))
}

/// Whether this may stand between two dots of a subject.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// A name in a form that can stand between two dots of a subject.
pub fn token_of(name: &str) -> String {
    let token: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    if token.is_empty() { "-".to_owned() } else { token }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(url: &str) -> Bus {
        Bus { url: url.to_owned(), prefix: "brunt".to_owned(), ..Bus::default() }
    }

    #[test]
    fn who_waits_for_a_server_comes_at_a_time_of_its_own() {
        let ms = Duration::from_millis;
        assert_eq!((spread(ms(300), 0), spread(ms(300), u64::MAX)), (ms(150), ms(450)));
        // No tenth of the interval holds 250 of 1,000 samples.
        let mut parts = [0; 10];
        for _ in 0..1000 {
            let at = jittered(ms(300)).saturating_sub(ms(150));
            parts[(at.as_micros() / 30_001) as usize] += 1;
        }
        assert!(parts.iter().all(|comes| *comes < 250), "{parts:?}");
    }

    #[test]
    fn a_server_of_short_messages_is_refused_in_words() {
        let server = |most_payload| Server { id: "s".to_owned(), most_payload };
        assert_eq!(back(server(4096)), BusEvent::Back(server(4096)));
        let BusEvent::Unusable(text) = back(server(4095)) else { panic!("it is used") };
        assert!(text.contains("4095") && text.contains("4096") && text.contains("max_payload"), "{text}");
    }

    #[test]
    fn credentials_are_read_as_they_are_now() {
        let dir = std::env::temp_dir().join(format!("brunt-bus-{}", random_number()));
        std::fs::create_dir(&dir).unwrap();
        let (creds, nkey) = (dir.join("agent.creds"), dir.join("agent.nk"));
        let login = |credentials: Option<&Path>, nkey: Option<&Path>| {
            let bus =
                Bus { credentials: credentials.map(Path::to_owned), nkey: nkey.map(Path::to_owned), ..bus("bus") };
            Login::new(&bus, &bus.servers().unwrap())
        };
        let (by_creds, by_nkey) = (login(Some(&creds), None), login(None, Some(&nkey)));
        assert!(matches!(by_creds.auth(b"nonce"), Err(BusError::File { file, .. }) if file == creds));
        for jwt in ["the.first.jwt", "the.second.jwt"] {
            let pair = nkeys::KeyPair::new_user();
            let seed = pair.seed().unwrap();
            let text = format!(
                "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
                 -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
            );
            std::fs::write(&creds, text).unwrap();
            std::fs::write(&nkey, format!("{seed}\n")).unwrap();
            let of_creds = by_creds.auth(b"nonce").unwrap();
            assert_eq!(of_creds.jwt.as_deref(), Some(jwt));
            pair.verify(b"nonce", &of_creds.signature.unwrap()).unwrap();
            let of_nkey = by_nkey.auth(b"other").unwrap();
            assert_eq!(of_nkey.nkey, Some(pair.public_key()));
            pair.verify(b"other", &of_nkey.signature.unwrap()).unwrap();
        }
        for wrong in ["", "-----BEGIN NATS USER JWT-----\njwt\n", "no seed"] {
            std::fs::write(&creds, wrong).unwrap();
            std::fs::write(&nkey, wrong).unwrap();
            assert!(by_creds.auth(b"").is_err() && by_nkey.auth(b"").is_err(), "{wrong}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_logs_in_is_not_shown() {
        let shown = bus("nats://me:hunter2@bus:4222,tls://t0ken@[::1]:4222, bus").shown_url();
        assert_eq!(shown, "nats://bus:4222,tls://[::1]:4222,bus");
    }

    #[test]
    fn what_others_could_read_is_told_apart() {
        for private in ["nats://127.0.0.1:4222", "localhost", "nats://[::1]:4222", "tls://bus:4222", "tls://u:p@bus"] {
            assert!(bus(private).is_private(), "{private}");
        }
        for open in ["nats://bus:4222", "nats://10.0.0.1", "nats://127.0.0.1:4222,nats://bus"] {
            assert!(!bus(open).is_private(), "{open}");
        }
        assert!(Bus { trusted: Some("ca.pem".into()), ..bus("nats://bus") }.is_private());
    }

    #[test]
    fn names_become_parts_of_subjects() {
        assert_eq!(
            (token_of("host.example.org"), token_of(""), token_of("ä_1")),
            ("host-example-org".into(), "-".into(), "-_1".into())
        );
        for wrong in ["", "a..b", "a.*", "a b", ".a"] {
            assert!(Bus { prefix: wrong.to_owned(), ..bus("nats://a") }.check_prefix().is_err(), "{wrong}");
        }
    }
}
