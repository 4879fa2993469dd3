//! Probes for hostile clients: fields nominated in `Connection`, and reads that may be answered from before a write.

use std::time::Duration;

use http::header::{ACCEPT_LANGUAGE, CONNECTION, ORIGIN};
use http::{HeaderName, HeaderValue, Method};

use crate::client::Probe;
use crate::error::CheckError;
use crate::probes::{Meter, value};
use crate::{Check, Offence, PairFinding, PairVerdict};

/// How often a read after a write is tried before its result is called unknown.
const TRIES: u32 = 5;

/// How long a pair's second request is held back at most, so that it finds the first under way.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

impl Check {
    /// The results of all hostile pairs; `took` is about the time of an answer.
    pub(crate) async fn hostile(&self, took: Duration) -> Result<Vec<PairFinding>, CheckError> {
        let mut findings = Vec::new();
        for (kind, field) in [("nominated language", ACCEPT_LANGUAGE), ("nominated Origin", ORIGIN)] {
            findings.push(PairFinding { kind: kind.into(), verdict: self.nominated(&field, took / 4).await? });
        }
        if self.asked.with_post {
            let verdict = self.read_after_write(took).await?;
            findings.push(PairFinding { kind: "read after POST".into(), verdict });
        }
        Ok(findings)
    }

    /// Two requests with the same value of a field, which one of them nominates in `Connection`. A proxy that removes
    /// the field from that one must not give its answer to the other.
    async fn nominated(&self, field: &HeaderName, pause: Duration) -> Result<PairVerdict, CheckError> {
        let secret = self.secret(0);
        let said = if *field == ORIGIN { format!("https://{secret}.invalid") } else { format!("x-{secret}") };
        let probe = |name: &str, nominates: bool| {
            let mut headers: Vec<_> = value(&said).map(|said| (field.clone(), said)).into_iter().collect();
            if nominates {
                headers.push((CONNECTION, HeaderValue::from(field.clone())));
            }
            self.probe(Method::GET, &format!("nominated-{field}-{name}"), headers)
        };
        // Whether the origin echoes its request.
        let repeats = self.client.ask(&probe("alone", false)).await?.contains(&secret);
        let mut worst = PairVerdict::Apart;
        for round in 0..self.asked.rounds {
            let name = format!("{round}");
            let probes = [probe(&name, true), probe(&name, false)];
            // The nominating request is sent first, so that the other follows it.
            let asking = async {
                let [hostile, honest] = &probes;
                let hostile = self.client.starts(hostile);
                tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
                let honest = self.client.ask(honest).await?;
                Ok([hostile.answer().await?, honest])
            };
            let ([_, honest], hits) = self.metered_by(asking).await?;
            if repeats && !honest.contains(&secret) {
                let requests = probes.each_ref().map(|probe| self.client.shown(probe));
                let proof = format!("the second was answered as if it had sent no {field}");
                return Ok(PairVerdict::Shared(Box::new(Offence { requests, proof })));
            }
            worst = match hits {
                Some(2..) => worst,
                _ if repeats => PairVerdict::OneHitTwoAnswers,
                Some(_) => PairVerdict::OneHitUnseen,
                None => PairVerdict::Unknown,
            };
        }
        Ok(worst)
    }

    /// A read that comes after a write was answered, while an earlier read is under way: it must reach the origin (RFC
    /// 9111, section 4.4).
    async fn read_after_write(&self, took: Duration) -> Result<PairVerdict, CheckError> {
        let mut verdict = PairVerdict::Unknown;
        for round in 0..self.asked.rounds {
            for attempt in 0..TRIES {
                // Before the write and, if writes take as long as reads, in the middle of it.
                let name = format!("read-after-write-{round}-{attempt}");
                let is_first = attempt % 2 == 0;
                match self.one_read_after_write(&name, is_first, took / 2).await? {
                    None => {}
                    Some(shared @ PairVerdict::Shared(_)) => return Ok(shared),
                    Some(told) => {
                        verdict = told;
                        break;
                    }
                }
            }
        }
        Ok(verdict)
    }

    /// `None` if the earlier read was over too early to tell.
    async fn one_read_after_write(
        &self,
        name: &str,
        is_first: bool,
        pause: Duration,
    ) -> Result<Option<PairVerdict>, CheckError> {
        let read = self.probe(Method::GET, name, Vec::new());
        let write = Probe { method: Method::POST, ..read.clone() };
        let mut is_under_way = false;
        let asking = async {
            let (early, written) = if is_first {
                let early = self.client.starts(&read);
                tokio::time::sleep(pause).await;
                (early, self.client.starts(&write))
            } else {
                let written = self.client.starts(&write);
                tokio::time::sleep(pause).await;
                (self.client.starts(&read), written)
            };
            let written = written.answer().await?;
            is_under_way = !early.is_over();
            let late = self.client.ask(&read).await?;
            Ok([early.answer().await?, written, late])
        };
        let ([early, _, late], hits) = self.metered_by(asking).await?;
        if !is_under_way {
            return Ok(None);
        }
        let is_stale = match &self.meter {
            Meter::Header(name) => {
                early.headers.get(name).zip(late.headers.get(name)).map(|(early, late)| early == late)
            }
            _ => hits.map(|hits| hits < 3),
        };
        Ok(Some(match is_stale {
            Some(true) => PairVerdict::Shared(Box::new(Offence {
                requests: [
                    format!("{}, answered", self.client.shown(&write)),
                    format!("{}, after that", self.client.shown(&read)),
                ],
                proof: "the read was answered by what was asked for before the write had ended".to_owned(),
            })),
            Some(false) => PairVerdict::Apart,
            None => PairVerdict::Unknown,
        }))
    }
}
