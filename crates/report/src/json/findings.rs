//! What is said of a run, and the verdict on its figures, as JSON has them.

use brunt_judge::phrase::Phrase;
use brunt_judge::remarks::{About, Side, Tone};
use brunt_judge::trend::Settled;
use brunt_judge::verdict::{self, FigureVerdict, Judgement, Seconds, Spoils, VerdictCause};
use serde::Serialize;

use crate::advice::InWords;
use crate::headline::Toned;

/// A remark on a run: its outcome, or what happened to the target, the load or brunt itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenRemark {
    /// Its subject.
    pub about: About,
    /// The side that this belongs to.
    pub of: Side,
    /// How it is meant.
    pub tone: Tone,
    /// The observation, in one sentence.
    pub message: Phrase,
    /// What to do about it; missing where there is nothing to advise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// When it began, in nanoseconds of the measured part; this and the next five are missing where they do not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
    /// When it ended; missing where it does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
    /// Calls that it hit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The least duration of the worst of them, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_ns: Option<u64>,
    /// Their share of the calls that could have been hit, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_ratio: Option<f64>,
    /// Why, where failures gave a reason; missing where none is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// The name of the request that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The thresholds that it is about; missing where it is about none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<String>,
}

impl From<Toned> for WrittenRemark {
    fn from(Toned { tone, remark, thresholds }: Toned) -> Self {
        Self {
            about: remark.about,
            of: remark.about.side(),
            tone,
            message: remark.message,
            advice: remark.advice.map(|advice| InWords(&advice).to_string()),
            from_ns: remark.from_ns,
            to_ns: remark.to_ns,
            calls: remark.calls,
            worst_ns: remark.worst_ns,
            share_ratio: remark.share_ratio,
            cause: remark.cause,
            request: remark.request,
            thresholds: thresholds.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Whether a run's figures can be believed, and why not, judged from the generator alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenVerdict<'a> {
    /// The answer.
    pub judgement: Judgement,
    /// The judgement with its grounds, in a line for people.
    pub sentence: &'a Phrase,
    /// The percentiles that were asked for (p50, p90, p99 and those of thresholds), one by one.
    pub figures: &'a [FigureVerdict],
    /// Whether the target saw the load that the plan asks for: calls were sent in time, and none left out for want of ports
    /// or descriptors.
    pub is_load_as_asked: bool,
    /// Whether the calls answered a second are the target's doing and not a lower bound of it.
    pub is_rate_believed: bool,
    /// All findings about the generator, decisive or not.
    pub findings: Vec<WrittenFinding<'a>>,
    /// Whether the run had settled.
    pub settled: Settled,
}

/// One finding, with its figures and a way out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenFinding<'a> {
    /// Its cause.
    pub cause: VerdictCause,
    /// The figures that it spoils.
    pub spoils: Spoils,
    /// The observation, for people.
    pub message: &'a Phrase,
    /// What to do about it.
    pub advice: String,
    /// Whether it spoils the run as a whole.
    pub decisive: bool,
    /// The seconds of the measured part that it spoils.
    pub seconds: &'a [Seconds],
}

impl<'a> From<&'a verdict::Verdict> for WrittenVerdict<'a> {
    fn from(verdict: &'a verdict::Verdict) -> Self {
        let finding = |finding: &'a verdict::Finding| WrittenFinding {
            cause: finding.cause,
            spoils: finding.spoils,
            message: &finding.message,
            advice: InWords(&finding.advice).to_string(),
            decisive: finding.decisive,
            seconds: &finding.seconds,
        };
        Self {
            judgement: verdict.judgement,
            sentence: &verdict.sentence,
            figures: &verdict.figures,
            is_load_as_asked: verdict.is_load_as_asked,
            is_rate_believed: verdict.is_rate_believed,
            findings: verdict.findings.iter().map(finding).collect(),
            settled: verdict.settled,
        }
    }
}
