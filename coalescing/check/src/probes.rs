//! The probes: identical requests at once, and pairs of requests that differ in one thing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, COOKIE, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, RANGE,
};
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};

use crate::client::{Answer, Client, Probe};
use crate::error::CheckError;
use crate::{Check, Findings, Identical, Offence, OriginHits, PairFinding, PairVerdict};

const COALESCED: HeaderName = HeaderName::from_static("x-coalesced");

/// Counts the requests that reached the origin.
#[derive(Debug, Clone)]
pub(crate) enum Meter {
    /// The number on this page, and its growth by being requested.
    Page { page: Uri, itself: u64 },
    /// A header that differs in each answer.
    Header(HeaderName),
    /// Unknown.
    None,
}

impl Meter {
    pub(crate) async fn calibrate(hits: &OriginHits, client: &Client) -> Result<Self, CheckError> {
        Ok(match hits {
            OriginHits::Page(page) => {
                let (one, two) = (client.count(page).await?, client.count(page).await?);
                let itself = two.checked_sub(one).ok_or(CheckError::CountWentDown)?;
                Self::Page { page: page.clone(), itself }
            }
            OriginHits::Header(name) => Self::Header(name.clone()),
            OriginHits::Unknown => Self::None,
        })
    }
}

impl Check {
    /// Makes every probe, as often as asked for.
    ///
    /// # Errors
    /// A request that fails or takes too long, and a page whose number cannot be read.
    pub async fn run(&self) -> Result<Findings, CheckError> {
        let identical = self.identical().await?;
        let mut pairs = Vec::new();
        for kind in KINDS.iter().filter(|kind| kind.method != "POST" || self.asked.with_post) {
            pairs.push(PairFinding { kind: kind.name.clone(), verdict: self.pair(kind, self.asked.rounds).await? });
        }
        for kind in self.field_kinds() {
            let verdict = self.pair(&kind, self.asked.rounds.min(FIELD_ROUNDS)).await?;
            pairs.push(PairFinding { kind: kind.name, verdict });
        }
        pairs.extend(self.hostile(identical.longest()).await?);
        Ok(Findings { identical, pairs, rounds: self.asked.rounds })
    }

    /// Many identical requests at once.
    async fn identical(&self) -> Result<Identical, CheckError> {
        let (mut first, mut others) = (Vec::new(), Vec::new());
        let (mut origin_hits, mut said) = (Some(0), (0, 0));
        for round in 0..self.asked.rounds {
            let probe = self.probe(Method::GET, &format!("identical-{round}"), vec![ask_for_role()]);
            let probes = vec![probe; self.asked.connections as usize];
            let (answers, hits) = self.metered_by(self.client.ask_at_once(&probes)).await?;
            origin_hits = origin_hits.zip(hits).map(|(all, hits)| all + hits);
            for answer in &answers {
                match answer.headers.get(&COALESCED).map(HeaderValue::as_bytes) {
                    Some(b"leader") => said.0 += 1,
                    Some(b"follower") => said.1 += 1,
                    _ => {}
                }
            }
            let mut took = answers.iter().map(|answer| answer.took);
            first.extend(took.next());
            others.extend(took);
        }
        let requests = u64::from(self.asked.rounds) * u64::from(self.asked.connections);
        others.sort_unstable();
        first.sort_unstable();
        Ok(Identical { requests, origin_hits, said, first, others })
    }

    /// Two that differ, again and again, each time the other way round.
    async fn pair(&self, kind: &Kind, rounds: u32) -> Result<PairVerdict, CheckError> {
        let mut worst = PairVerdict::Apart;
        for round in 0..rounds {
            let mut probes = self.both(kind, round);
            if round % 2 == 1 {
                probes.reverse();
            }
            match self.one_pair(kind, &probes).await? {
                shared @ PairVerdict::Shared(_) => return Ok(shared),
                PairVerdict::Apart => {}
                other => worst = other,
            }
        }
        Ok(worst)
    }

    async fn one_pair(&self, kind: &Kind, probes: &[Probe; 2]) -> Result<PairVerdict, CheckError> {
        let asking = async {
            let [one, two] = probes.each_ref().map(|probe| self.client.starts(probe));
            Ok([one.answer().await?, two.answer().await?])
        };
        let (answers, hits) = self.metered_by(asking).await?;
        let [one, two] = &answers;
        let shared = |proof: String| {
            let requests = probes.each_ref().map(|probe| self.client.shown(probe));
            PairVerdict::Shared(Box::new(Offence { requests, proof }))
        };
        // Text that only the other request had, although this one had another.
        for (answer, others) in [(one, kind.said_by(probes, 1)), (two, kind.said_by(probes, 0))] {
            if others.is_some_and(|text| answer.contains(&text)) {
                return Ok(shared("an answer repeats what only the other request said".to_owned()));
            }
        }
        Ok(match hits {
            Some(0 | 1) if kind.is_range && are_each_their_own(probes, [one, two]) => PairVerdict::OneHitTwoAnswers,
            Some(0 | 1)
                if kind.may_be_dropped && !self.asked.by_forwarded && !kind.reflected_by_one(probes, [one, two]) =>
            {
                PairVerdict::DroppedOrShared
            }
            Some(0 | 1) if matches!(kind.differs_in, Difference::Address) && !self.asked.by_address => {
                PairVerdict::AddressesShare
            }
            Some(0 | 1) => shared(match &self.meter {
                Meter::Header(name) => {
                    let value = one.headers.get(name).map_or("nothing", |value| value.to_str().unwrap_or("the same"));
                    format!("both answers say {name}: {value}")
                }
                _ => "one request reached the origin, and both were answered".to_owned(),
            }),
            Some(_) => PairVerdict::Apart,
            None if kind.reflected(probes, [one, two]) => PairVerdict::Apart,
            None => PairVerdict::Unknown,
        })
    }

    /// Asks; with the answers, how many requests reached the origin.
    pub(crate) async fn metered_by<A: AsRef<[Answer]>>(
        &self,
        asking: impl Future<Output = Result<A, CheckError>>,
    ) -> Result<(A, Option<u64>), CheckError> {
        match &self.meter {
            Meter::None => Ok((asking.await?, None)),
            Meter::Header(name) => {
                let answers = asking.await?;
                let values = answers.as_ref().iter().map(|answer| answer.headers.get(name));
                // Hits cannot be counted by a header that some answers lack.
                let values: Option<BTreeSet<_>> = values.map(|value| value.map(HeaderValue::as_bytes)).collect();
                let hits = values.map(|values| values.len() as u64);
                Ok((answers, hits))
            }
            Meter::Page { page, itself } => {
                let before = self.client.count(page).await?;
                let answers = asking.await?;
                let after = self.client.count(page).await?;
                let grown = after.checked_sub(before).ok_or(CheckError::CountWentDown)?;
                Ok((answers, Some(grown.saturating_sub(*itself))))
            }
        }
    }

    /// A request for a URL that was never requested before.
    pub(crate) fn probe(&self, method: Method, name: &str, headers: Vec<(HeaderName, HeaderValue)>) -> Probe {
        Probe { method, uri: self.uri(&format!("brunt-check={:x}-{name}", self.seed)), headers, from_elsewhere: false }
    }

    fn uri(&self, query: &str) -> Uri {
        self.uri_at(self.asked.url.path(), query)
    }

    fn uri_at(&self, path: &str, query: &str) -> Uri {
        let target = match self.asked.url.query() {
            Some(own) => format!("{path}?{own}&{query}"),
            None => format!("{path}?{query}"),
        };
        let mut parts = self.asked.url.clone().into_parts();
        parts.path_and_query = target.parse().ok();
        Uri::from_parts(parts).unwrap_or_else(|_| self.asked.url.clone())
    }

    fn both(&self, kind: &Kind, round: u32) -> [Probe; 2] {
        let name = format!("{}-{round}", kind.name.replace([' ', ','], "-").to_lowercase());
        let method = Method::from_bytes(kind.method.as_bytes()).unwrap_or_default();
        let mut probes = [0, 1].map(|_| self.probe(method.clone(), &name, Vec::new()));
        for (probe, which) in probes.iter_mut().zip([0, 1]) {
            let secret = self.secret(which);
            match kind.differs_in {
                Difference::Query => {
                    probe.uri = self.uri(&format!("brunt-check={:x}-{name}&who={secret}", self.seed));
                }
                Difference::Spelling => {
                    // One of two spellings of a letter: a server may treat them as the same, a key must not.
                    let letter = if which == 0 { "a" } else { "%61" };
                    probe.uri = self.uri(&format!("brunt-check={:x}-{name}&who={letter}{}", self.seed, self.secret(0)));
                }
                Difference::Path => {
                    if which == 1 {
                        let path = format!("/.{}", self.asked.url.path());
                        probe.uri = self.uri_at(&path, &format!("brunt-check={:x}-{name}", self.seed));
                    }
                }
                Difference::Address if self.client.has_another_address() => probe.from_elsewhere = which == 1,
                Difference::Address => {
                    let address = value(if which == 0 { "192.0.2.1" } else { "192.0.2.2" });
                    probe.headers.extend(address.map(|address| (FORWARDED_FOR, address)));
                }
                Difference::Host => {
                    let host = value(&format!("{secret}.invalid"));
                    probe.headers.extend(host.map(|host| (HOST, host)));
                }
                Difference::Secret(ref header, before) => {
                    probe.headers.extend(value(&format!("{before}{secret}")).map(|value| (header.clone(), value)));
                }
                Difference::Values(ref header, values) => {
                    let text = values.get(which).copied().flatten();
                    probe.headers.extend(text.and_then(value).map(|value| (header.clone(), value)));
                }
                Difference::Method(other) => {
                    if which == 1 {
                        probe.method = Method::from_bytes(other.as_bytes()).unwrap_or_default();
                    }
                }
                Difference::Nothing => {}
            }
        }
        probes
    }

    /// A text that only the request with it has.
    pub(crate) fn secret(&self, which: usize) -> String {
        format!("{:x}{}", self.seed, ["alice", "bob"].get(which).unwrap_or(&"carol"))
    }
}

pub(crate) fn value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}

fn ask_for_role() -> (HeaderName, HeaderValue) {
    (COALESCED, HeaderValue::from_static("?"))
}

/// The difference between two requests.
enum Difference {
    Query,
    /// Spellings of the query that mean the same to some.
    Spelling,
    /// Spellings of the path that mean the same to some.
    Path,
    /// The client's address; as a proxy would forward it, if this machine has one address alone.
    Address,
    /// The host, each with a name of its own.
    Host,
    /// A header with a text that is in no other request, behind this prefix.
    Secret(HeaderName, &'static str),
    /// In the values of a header.
    Values(HeaderName, [Option<&'static str>; 2]),
    /// The method of the second.
    Method(&'static str),
    /// None: neither may stand for the other.
    Nothing,
}

/// A kind of pair.
struct Kind {
    name: Cow<'static, str>,
    method: &'static str,
    differs_in: Difference,
    /// One hit may serve both, if each gets its own answer.
    is_range: bool,
    /// Whether a proxy does well to drop the field: then the origin is asked the same by both.
    may_be_dropped: bool,
}

const fn kind(name: &'static str, differs_in: Difference) -> Kind {
    Kind { name: Cow::Borrowed(name), method: "GET", differs_in, is_range: false, may_be_dropped: false }
}

const fn range(name: &'static str, values: [Option<&'static str>; 2]) -> Kind {
    let differs_in = Difference::Values(RANGE, values);
    Kind { name: Cow::Borrowed(name), method: "GET", differs_in, is_range: true, may_be_dropped: false }
}

static KINDS: [Kind; 19] = [
    kind("query", Difference::Query),
    kind("Authorization", Difference::Secret(AUTHORIZATION, "Bearer ")),
    kind("Authorization or none", Difference::Values(AUTHORIZATION, [Some("Bearer brunt-check"), None])),
    kind("Cookie", Difference::Secret(COOKIE, "session=")),
    kind("Cookie or none", Difference::Values(COOKIE, [Some("session=brunt-check"), None])),
    kind("Accept-Encoding", Difference::Values(ACCEPT_ENCODING, [Some("gzip"), Some("identity")])),
    kind("Accept-Language", Difference::Values(ACCEPT_LANGUAGE, [Some("de"), Some("fr")])),
    kind("GET and HEAD", Difference::Method("HEAD")),
    kind("GET and OPTIONS", Difference::Method("OPTIONS")),
    range("Range or none", [Some("bytes=0-0"), None]),
    range("two Ranges", [Some("bytes=0-0"), Some("bytes=1-1")]),
    kind("Host", Difference::Host),
    kind("spelling of the query", Difference::Spelling),
    Kind {
        name: Cow::Borrowed("spelling of the path"),
        method: "GET",
        differs_in: Difference::Path,
        is_range: false,
        may_be_dropped: true,
    },
    kind("client's address", Difference::Address),
    kind("If-None-Match or none", Difference::Values(IF_NONE_MATCH, [Some("\"brunt-check\""), None])),
    kind(
        "If-Modified-Since or none",
        Difference::Values(IF_MODIFIED_SINCE, [Some("Sat, 28 Nov 2026 00:00:00 GMT"), None]),
    ),
    kind("method override", Difference::Values(METHOD_OVERRIDE, [Some("OPTIONS"), None])),
    Kind {
        name: Cow::Borrowed("two POSTs"),
        method: "POST",
        differs_in: Difference::Nothing,
        is_range: false,
        may_be_dropped: false,
    },
];

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

const METHOD_OVERRIDE: HeaderName = HeaderName::from_static("x-http-method-override");

/// Fields by which services tell users, hosts, paths and kinds of answers apart: of each sort some that are in use.
const FIELDS: [&str; 40] = [
    // Credentials.
    "X-Api-Key",
    "Apikey",
    "Private-Token",
    "X-Auth-Token",
    "X-Auth-Key",
    "X-Vault-Token",
    "X-Access-Token",
    "X-Session-Token",
    "X-Amz-Security-Token",
    "X-CSRF-Token",
    "DPoP",
    // Users, as gateways name them.
    "Remote-User",
    "X-User-Id",
    "X-Auth-Request-User",
    "X-Forwarded-User",
    "X-Goog-Authenticated-User-Email",
    "Cf-Access-Jwt-Assertion",
    "X-Forwarded-Client-Cert",
    // Other hosts, schemes and paths than the request's.
    "Forwarded",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Prefix",
    "X-Original-Host",
    "X-HTTP-Host-Override",
    "X-Original-URL",
    "X-Original-Path",
    "X-Rewrite-URL",
    "X-Envoy-Original-Path",
    "X-Script-Name",
    "X-Request-Uri",
    "X-Scheme",
    // Other answers.
    "Accept-Profile",
    "Accept-Charset",
    "Accept-Version",
    "X-Tenant",
    "X-Requested-With",
    "HX-Request",
    "Turbo-Frame",
    "RSC",
    "Origin",
];

/// How often each field is tried at most.
const FIELD_ROUNDS: u32 = 2;

/// How many fields with made-up names are tried.
const MADE_UP: u32 = 6;

impl Check {
    /// Pairs that differ in a field's value, and pairs of which one has no such field.
    fn field_kinds(&self) -> Vec<Kind> {
        let kind = |name: Cow<'static, str>, differs_in| {
            let may_be_dropped = name.contains("Forwarded");
            Kind { name, method: "GET", differs_in, is_range: false, may_be_dropped }
        };
        let named = FIELDS.iter().filter_map(|name| {
            let header = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let before = if *name == "Forwarded" { "host=" } else { "" };
            Some(kind(Cow::Borrowed(name), Difference::Secret(header, before)))
        });
        let made_up = (0..MADE_UP).filter_map(|number| {
            // No list of names holds these, so only a key of all fields tells them apart.
            let header =
                HeaderName::from_bytes(format!("x-{:x}", self.seed.rotate_left(number * 7)).as_bytes()).ok()?;
            let differs_in = match number % 2 {
                0 => Difference::Secret(header, ""),
                _ => Difference::Values(header, [Some("brunt-check"), None]),
            };
            Some(kind(Cow::Owned(format!("made-up field {}", number + 1)), differs_in))
        });
        named.chain(made_up).collect()
    }
}

impl Kind {
    /// The text that only this one of two requests has.
    fn said_by(&self, probes: &[Probe; 2], which: usize) -> Option<String> {
        let probe = probes.get(which)?;
        match &self.differs_in {
            Difference::Query => Some(probe.uri.query()?.rsplit('=').next()?.to_owned()),
            Difference::Host => {
                let (_, host) = probe.headers.iter().find(|(name, _)| *name == HOST)?;
                Some(host.to_str().ok()?.strip_suffix(".invalid")?.to_owned())
            }
            Difference::Secret(header, before) => {
                let (_, value) = probe.headers.iter().find(|(name, _)| name == header)?;
                Some(value.to_str().ok()?.strip_prefix(before)?.to_owned())
            }
            _ => None,
        }
    }

    /// Whether an answer echoes its own request, so that what differs has reached the origin.
    fn reflected_by_one(&self, probes: &[Probe; 2], answers: [&Answer; 2]) -> bool {
        answers.iter().enumerate().any(|(at, answer)| self.said_by(probes, at).is_some_and(|own| answer.contains(&own)))
    }

    /// Whether each answer echoes its own request.
    fn reflected(&self, probes: &[Probe; 2], answers: [&Answer; 2]) -> bool {
        answers.iter().enumerate().all(|(at, answer)| self.said_by(probes, at).is_some_and(|own| answer.contains(&own)))
    }
}

/// Whether requests for a range got theirs, and those without got everything.
fn are_each_their_own(probes: &[Probe; 2], answers: [&Answer; 2]) -> bool {
    probes.iter().zip(answers).all(|(probe, answer)| {
        let Some((_, asked)) = probe.headers.iter().find(|(name, _)| *name == RANGE) else {
            return answer.status != StatusCode::PARTIAL_CONTENT;
        };
        let wanted = asked.to_str().unwrap_or("").replace("bytes=", "bytes ");
        let got = answer.headers.get(http::header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
        answer.status == StatusCode::PARTIAL_CONTENT && got.is_some_and(|got| got.starts_with(&format!("{wanted}/")))
    })
}
