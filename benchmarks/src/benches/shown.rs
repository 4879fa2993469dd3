//! brunt's statements about its own figures: intervals, distributions and the verdict.

use anyhow::Context as _;
use serde_json::Value;

/// The two ends of a time's interval, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) low: u64,
    /// The upper end; `None` for an interval that is open upwards.
    pub(super) high: Option<u64>,
}

impl Ends {
    pub(super) fn hold(self, time: u64) -> bool {
        self.low <= time && self.high.is_none_or(|high| time <= high)
    }
}

/// A percentile of the response times, as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    /// In nanoseconds.
    pub(super) value: u64,
    /// The interval due to brunt's own delays.
    pub(super) instrument: Ends,
    /// The sampling interval; `None` for a run that is too short.
    pub(super) sampling: Option<Ends>,
    /// Both: the interval that people are shown.
    pub(super) both: Ends,
}

impl Shown {
    /// A percentile such as p99 from a result in JSON.
    pub(super) fn percentile(result: &Value, name: &str) -> anyhow::Result<Self> {
        let quantiles = result["times"]["response"]["quantiles"].as_array();
        let found = quantiles.into_iter().flatten().find(|quantile| quantile["name"] == name);
        let quantile = found.with_context(|| format!("brunt's result has no {name}"))?;
        let interval = &quantile["interval"];
        let ends =
            |low: &str, high: &str| interval[low].as_u64().map(|low| Ends { low, high: interval[high].as_u64() });
        let without = || format!("brunt's result has no interval of {name}");
        Ok(Self {
            value: quantile["value_ns"].as_u64().with_context(without)?,
            instrument: ends("instrument_low_ns", "instrument_high_ns").with_context(without)?,
            sampling: ends("sampling_low_ns", "sampling_high_ns"),
            both: ends("low_ns", "high_ns").with_context(without)?,
        })
    }
}

/// A distribution: pairs of a time in nanoseconds and the number of calls that took it, shortest first.
#[derive(Debug)]
pub(super) struct Times(Vec<(u64, u64)>);

impl Times {
    /// A histogram of a result in JSON.
    pub(super) fn from_json(histogram: &Value) -> anyhow::Result<Self> {
        let pair = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?));
        let counts = histogram["counts"].as_array().context("brunt's result has no such histogram")?;
        Ok(Self(counts.iter().map(pair).collect::<Option<_>>().context("a histogram is unreadable")?))
    }

    /// A distribution of these times.
    pub(super) fn each(times: impl Iterator<Item = u64>) -> Self {
        let mut times: Vec<_> = times.map(|time| (time, 1)).collect();
        times.sort_unstable();
        Self(times)
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|(_, n)| n).sum()
    }

    /// The least time that a share of at least `q` does not exceed; 0 for an empty distribution.
    pub(super) fn quantile(&self, q: f64) -> u64 {
        let rank = (q * self.count() as f64 - 1e-6).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.0.iter().find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        reached.or(self.0.last()).map_or(0, |(time, _)| *time)
    }
}

/// Something that was found wrong with the generator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) cause: String,
    pub(super) decisive: bool,
    /// The seconds that it spoils, as inclusive ranges.
    pub(super) seconds: Vec<(u64, u64)>,
}

impl Finding {
    /// Whether it names this second.
    pub(super) fn names(&self, second: u64) -> bool {
        self.seconds.iter().any(|(first, last)| (*first..=*last).contains(&second))
    }

    fn from_json(finding: &Value) -> Option<Self> {
        let range = |range: &Value| Some((range["first"].as_u64()?, range["last"].as_u64()?));
        Some(Self {
            cause: finding["cause"].as_str()?.to_owned(),
            decisive: finding["decisive"].as_bool()?,
            seconds: finding["seconds"].as_array()?.iter().map(range).collect::<Option<_>>()?,
        })
    }
}

/// The generator's faults, by the verdict of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) judgement: String,
    /// In people's words.
    pub(super) sentence: String,
    pub(super) findings: Vec<Finding>,
}

impl Verdict {
    pub(super) fn from_result(result: &Value) -> anyhow::Result<Self> {
        let verdict = &result["verdict"];
        let text = |value: &Value| value.as_str().map(str::to_owned).context("brunt's result has no verdict");
        let findings = verdict["findings"].as_array().context("brunt's result has no findings")?;
        let unreadable = "a finding of brunt's is unreadable";
        Ok(Self {
            judgement: text(&verdict["judgement"])?,
            sentence: text(&verdict["sentence"])?,
            findings: findings.iter().map(Finding::from_json).collect::<Option<_>>().context(unreadable)?,
        })
    }

    pub(super) fn is_trustworthy(&self) -> bool {
        self.judgement == "trustworthy"
    }

    /// The findings that decide the verdict.
    pub(super) fn decisive(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.decisive)
    }

    /// The causes that decide.
    pub(super) fn causes(&self) -> Vec<&str> {
        self.decisive().map(|finding| finding.cause.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn intervals_are_read() {
        let interval = json!({
            "instrument_low_ns": 5, "instrument_high_ns": 9, "low_ns": 4, "high_ns": null, "spoiled": false
        });
        let quantile = json!({ "name": "p99", "value_ns": 7, "interval": interval });
        let result = json!({ "times": { "response": { "quantiles": [quantile] } } });
        let shown = Shown::percentile(&result, "p99").unwrap();
        assert_eq!((shown.value, shown.instrument, shown.sampling), (7, Ends { low: 5, high: Some(9) }, None));
        assert!(shown.both.hold(1000) && !shown.both.hold(3) && !shown.instrument.hold(10));
        assert!(Shown::percentile(&result, "p50").is_err());
    }

    #[test]
    fn quantiles_of_counted_times() {
        let times = Times(vec![(10, 80), (20, 10), (30, 10)]);
        assert_eq!([0.5, 0.8, 0.81, 0.9, 0.91, 1.0].map(|q| times.quantile(q)), [10, 10, 20, 20, 30, 30]);
        assert_eq!(Times::each([3, 1, 2].into_iter()).quantile(0.5), 2);
    }

    #[test]
    fn a_verdict_tells_what_decides() {
        let seconds = json!([{ "first": 2, "last": 3 }]);
        let finding = |cause: &str, decisive: bool| json!({ "cause": cause, "decisive": decisive, "seconds": seconds });
        let findings = [finding("lag", true), finding("own_delays", false)];
        let verdict = json!({ "judgement": "latency_unreliable", "sentence": "…", "findings": findings });
        let verdict = Verdict::from_result(&json!({ "verdict": verdict })).unwrap();
        assert_eq!((verdict.causes(), verdict.is_trustworthy()), (vec!["lag"], false));
        assert_eq!([1, 2, 3, 4].map(|second| verdict.findings[0].names(second)), [false, true, true, false]);
    }
}
