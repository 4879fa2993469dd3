//! Objectives of one answer: `ttft<500ms,tpot<50ms`. An answer is good that ended well and met all of them.

use std::fmt;
use std::str::FromStr;

use brunt_plan::units::{ExactDuration, parse_duration};
use serde::{Deserialize, Serialize};

/// Upper limits on the times of one answer, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Objectives {
    /// From due to the first token.
    pub ttft_ns: Option<u64>,
    /// The mean time for a token after the first.
    pub tpot_ns: Option<u64>,
    /// From due to the end.
    pub latency_ns: Option<u64>,
}

/// The times of an answer, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// From due to the first token.
    pub ttft_ns: Option<u64>,
    /// The mean time for a token after the first; `None` of an answer of one token, which meets any limit.
    pub tpot_ns: Option<u64>,
    /// From due to the end.
    pub latency_ns: u64,
}

impl Objectives {
    /// Whether an answer with these times meets them.
    pub fn are_met(&self, times: &Times) -> bool {
        let within =
            |limit: Option<u64>, time: Option<u64>| limit.is_none_or(|limit| time.is_some_and(|time| time < limit));
        within(self.ttft_ns, times.ttft_ns)
            && (times.tpot_ns.is_none() || within(self.tpot_ns, times.tpot_ns))
            && within(self.latency_ns, Some(times.latency_ns))
    }
}

impl FromStr for Objectives {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for part in text.split(',') {
            let expected =
                || format!("expected limits such as ttft<500ms,tpot<50ms,latency<10s, not '{}'", part.trim());
            let (name, limit) = part.split_once('<').ok_or_else(expected)?;
            let limit = parse_duration(limit.trim_start_matches('=').trim())
                .map_err(|error| format!("'{}': {error}", part.trim()))?;
            let place = match name.trim() {
                "ttft" => &mut all.ttft_ns,
                "tpot" => &mut all.tpot_ns,
                "latency" => &mut all.latency_ns,
                _ => return Err(expected()),
            };
            if limit == 0 || place.replace(limit).is_some() {
                return Err(expected());
            }
        }
        Ok(all)
    }
}

impl TryFrom<String> for Objectives {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Objectives> for String {
    fn from(objectives: Objectives) -> Self {
        objectives.to_string()
    }
}

impl fmt::Display for Objectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = [("ttft", self.ttft_ns), ("tpot", self.tpot_ns), ("latency", self.latency_ns)];
        let limits: Vec<_> =
            limits.iter().filter_map(|(name, limit)| Some(format!("{name}<{}", ExactDuration((*limit)?)))).collect();
        f.write_str(&limits.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_and_met() {
        let objectives: Objectives = "ttft<500ms, tpot<50ms".parse().unwrap();
        assert_eq!(objectives.to_string(), "ttft<500ms,tpot<50ms");
        assert_eq!(objectives.to_string().parse(), Ok(objectives));
        for short in ["ttft<500ns", "ttft<1500ns,latency<2us"] {
            let read: Objectives = short.parse().unwrap();
            assert_eq!(read.to_string().parse(), Ok(read), "{short}");
        }
        let times = |ttft, tpot| Times { ttft_ns: ttft, tpot_ns: tpot, latency_ns: 1 };
        for (ttft, tpot, met) in [
            (Some(499_999_999), Some(49_000_000), true),
            (Some(500_000_000), Some(1), false),
            (Some(1), Some(50_000_000), false),
            (Some(1), None, true),
            (None, None, false),
        ] {
            assert_eq!(objectives.are_met(&times(ttft, tpot)), met);
        }
        for wrong in ["", "ttft", "ttft<0ms", "x<1s", "ttft<1s,ttft<2s", "ttft>1s", "ttft<fast"] {
            assert!(wrong.parse::<Objectives>().is_err(), "{wrong}");
        }
    }
}
