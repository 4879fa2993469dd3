//! Figures watched beside a run: `[NAME=]pid:PID`, `NAME=URL#EXPRESSION` or `NAME=prometheus:URL#QUERY`.

mod expression;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use brunt_record::watched::WatchedUnit;
use serde::{Deserialize, Serialize, Serializer};

pub use self::expression::{Expression, ExpressionError, Matcher, unit_of_metric};
use crate::secret::{REDACTED, shown_url};
use crate::target::Url;
use crate::units::{Duration, Number, Size};

/// The most that one run may watch.
pub const MOST_WATCHES: usize = 50;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 60;
/// The figures of a watched process, with their units.
const OF_PROCESS: [(&str, WatchedUnit); 3] =
    [("cpu", WatchedUnit::Cores), ("memory", WatchedUnit::Bytes), ("descriptors", WatchedUnit::Number)];

/// One watch, as its user wrote it.
///
/// Its URL may hold credentials. `Debug`, `Display` and `Serialize` leave them out; [`Watch::source`] has them.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct Watch {
    text: String,
    name: Option<String>,
    source: Source,
}

/// The source of a watch's values.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// A process of this machine: its CPU, memory and descriptors.
    Process(u32),
    /// A page of metrics in Prometheus' text format.
    Metrics {
        /// Its URL, with any credentials.
        url: String,
        /// The expression that selects the value.
        expression: Expression,
    },
    /// A Prometheus that answers queries.
    Prometheus {
        /// Its URL, with any credentials.
        url: String,
        /// The query, in Prometheus' language.
        query: String,
    },
}

/// A watch that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected pid:PID, NAME=URL#EXPRESSION or NAME=prometheus:URL#QUERY, got '{text}': {problem}")]
pub struct WatchError {
    /// The text as written, without secrets.
    pub text: String,
    /// The problem.
    pub problem: String,
}

/// A figure that a watch gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedName {
    /// Its name in results, and in thresholds behind `watch.`.
    pub name: String,
    /// The unit of its values.
    pub unit: WatchedUnit,
}

impl FromStr for Watch {
    type Err = WatchError;

    fn from_str(text: &str) -> Result<Self, WatchError> {
        let text = text.trim();
        read(text).map_err(|problem| WatchError { text: shown(text).into_owned(), problem })
    }
}

fn read(text: &str) -> Result<Watch, String> {
    let named = text.split_once('=').filter(|(name, _)| is_name(name));
    let (name, source) = named.map_or((None, text), |(name, source)| (Some(name), source));
    let source = if let Some(number) = source.strip_prefix("pid:") {
        let pid = number.parse::<u32>().ok().filter(|pid| *pid > 0);
        Source::Process(pid.ok_or_else(|| format!("'{number}' is not a process number"))?)
    } else if let Some(rest) = source.strip_prefix("prometheus:") {
        let (url, query) = located(rest, "a query, such as #go_goroutines{job=\"shop\"}")?;
        Source::Prometheus { url, query }
    } else if source.starts_with("http://") || source.starts_with("https://") {
        let (url, expression) = located(source, "an expression, such as #rate(process_cpu_seconds_total)")?;
        let expression = expression.parse::<Expression>().map_err(|error| error.to_string())?;
        Source::Metrics { url, expression }
    } else {
        let name = source.split([':', '/']).next().unwrap_or_default();
        let is_bad_name = text.contains('=') && name.contains('=') && named.is_none();
        return Err(if is_bad_name {
            format!("a name has letters, digits, _, - and ., and at most {LONGEST_NAME} of them")
        } else {
            "there is none of pid:, http://, https:// and prometheus:".to_owned()
        });
    };
    if name.is_none() && !matches!(source, Source::Process(_)) {
        return Err("it has no name: write NAME= before it".to_owned());
    }
    Ok(Watch { text: text.to_owned(), name: name.map(str::to_owned), source })
}

/// A URL, and the text behind its `#`.
fn located(text: &str, expected: &str) -> Result<(String, String), String> {
    let (url, behind) = text.split_once('#').map_or((text, ""), |(url, behind)| (url, behind.trim()));
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    if !url.contains("://") || !matches!(parsed.target.scheme.as_str(), "http" | "https") {
        return Err("its URL does not begin with http:// or https://".to_owned());
    }
    if behind.is_empty() {
        return Err(format!("expected behind its URL {expected}"));
    }
    Ok((url.to_owned(), behind.to_owned()))
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.len() <= LONGEST_NAME && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_part)
}

/// A watch as written, for display: without the credentials in its URL.
fn shown(text: &str) -> Cow<'_, str> {
    let (url, behind) = text.split_once('#').map_or((text, None), |(url, behind)| (url, Some(behind)));
    match (shown_url(url), behind) {
        (Cow::Borrowed(_), _) => Cow::Borrowed(text),
        (Cow::Owned(url), None) => Cow::Owned(url),
        (Cow::Owned(url), Some(behind)) => Cow::Owned(format!("{url}#{behind}")),
    }
}

impl Watch {
    /// Where its values come from.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Its figures, in their order.
    pub fn figures(&self) -> Vec<WatchedName> {
        let named = |name: &str, unit| WatchedName { name: name.to_owned(), unit };
        match (&self.source, &self.name) {
            (Source::Process(_), None) => OF_PROCESS.iter().map(|(name, unit)| named(name, *unit)).collect(),
            (Source::Process(_), Some(of)) => {
                OF_PROCESS.iter().map(|(name, unit)| named(&format!("{of}.{name}"), *unit)).collect()
            }
            (Source::Metrics { expression, .. }, name) => {
                vec![named(name.as_deref().unwrap_or_default(), expression.unit())]
            }
            (Source::Prometheus { query, .. }, name) => {
                // A query that is also one of our expressions has a known unit.
                let unit = query.parse::<Expression>().map_or(WatchedUnit::Number, |expression| expression.unit());
                vec![named(name.as_deref().unwrap_or_default(), unit)]
            }
        }
    }

    /// Whether its credentials were left out when its plan was stored.
    pub fn is_redacted(&self) -> bool {
        let (Source::Metrics { url, .. } | Source::Prometheus { url, .. }) = &self.source else { return false };
        url.contains(REDACTED)
    }

    /// Its form for display.
    pub fn shown(&self) -> Cow<'_, str> {
        shown(&self.text)
    }

    /// The source of its values for display: `pid:1234`, `http://10.0.0.5:9100/metrics#rate(…)`.
    pub fn shown_source(&self) -> String {
        let shown = self.shown();
        let prefix = self.name.as_ref().map_or(0, |name| name.len() + 1);
        shown.get(prefix..).unwrap_or_default().to_owned()
    }
}

/// The first name that two of these figures share.
pub fn repeated(watches: &[Watch]) -> Option<String> {
    let mut names = Vec::new();
    for WatchedName { name, .. } in watches.iter().flat_map(Watch::figures) {
        if names.contains(&name) {
            return Some(name);
        }
        names.push(name);
    }
    None
}

/// A value for people, in its unit: `93.5%` of a core, `512.0MB`.
pub fn shown_value(unit: WatchedUnit, value: f64) -> String {
    let sized = |value: f64| if value < 0.0 { format!("-{}", Size(-value)) } else { Size(value).to_string() };
    let number = |value: f64| if value < 0.0 { format!("-{}", Number(-value)) } else { Number(value).to_string() };
    match unit {
        WatchedUnit::Number => number(value),
        WatchedUnit::PerS => format!("{}/s", number(value)),
        WatchedUnit::Cores if value.abs() < 0.0995 => format!("{:.2}%", value * 100.0),
        WatchedUnit::Cores => format!("{:.1}%", value * 100.0),
        WatchedUnit::Bytes => sized(value),
        WatchedUnit::BytesPerS => format!("{}/s", sized(value)),
        WatchedUnit::Seconds if value < 0.0 => format!("-{}", Duration((-value * 1e9) as u64)),
        WatchedUnit::Seconds => Duration((value * 1e9) as u64).to_string(),
    }
}

impl TryFrom<String> for Watch {
    type Error = WatchError;

    fn try_from(text: String) -> Result<Self, WatchError> {
        text.parse()
    }
}

impl Serialize for Watch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(text: &str) -> Watch {
        text.parse().unwrap()
    }

    fn names(text: &str) -> Vec<String> {
        watch(text).figures().into_iter().map(|figure| figure.name).collect()
    }

    #[test]
    fn a_process_has_three_figures() {
        assert_eq!(names("pid:1234"), ["cpu", "memory", "descriptors"]);
        assert_eq!(names("db=pid:1"), ["db.cpu", "db.memory", "db.descriptors"]);
        assert!(matches!(watch("db=pid:7").source(), Source::Process(7)));
    }

    #[test]
    fn metrics_and_queries_have_a_name_and_a_url() {
        let cpu = watch("cpu=http://h:9100/metrics?x=1#rate(node_cpu_seconds_total{mode!=\"idle\"})");
        let Source::Metrics { url, expression } = cpu.source() else { panic!("{cpu:?}") };
        assert_eq!(url, "http://h:9100/metrics?x=1");
        assert_eq!(expression.to_string(), "rate(node_cpu_seconds_total{mode!=\"idle\"})");
        assert_eq!(cpu.figures(), [WatchedName { name: "cpu".into(), unit: WatchedUnit::Cores }]);
        let heap = watch("heap=prometheus:http://prom:9090#sum by (a) (x{b=\"#c\"})");
        let Source::Prometheus { url, query } = heap.source() else { panic!("{heap:?}") };
        assert_eq!((url.as_str(), query.as_str()), ("http://prom:9090", "sum by (a) (x{b=\"#c\"})"));
        assert_eq!(heap.shown_source(), "prometheus:http://prom:9090#sum by (a) (x{b=\"#c\"})");
    }

    #[test]
    fn what_is_no_watch_says_why() {
        for (text, problem) in [
            ("pid:", "'' is not a process number"),
            ("pid:0", "'0' is not a process number"),
            ("pid:x", "'x' is not a process number"),
            ("http://h/metrics#up", "it has no name"),
            ("cpu=http://h/metrics", "expected behind its URL an expression"),
            ("cpu=prometheus:http://h:9090#", "expected behind its URL a query"),
            ("cpu=prometheus:h:9090#up", "does not begin with http://"),
            ("cpu=ftp://h#up", "there is none of pid:"),
            ("c u=http://h#up", "a name has letters"),
            ("cpu=http://h:x/#up", "column"),
            ("cpu=http://h/#rate(up", "expected )"),
            ("", "there is none of pid:"),
        ] {
            let error = text.parse::<Watch>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn credentials_are_shown_nowhere() {
        let text = "cpu=http://me:hunter2@h:9100/metrics?token=s3cr3t#up{a=\"b\"}";
        let shown = "cpu=http://[redacted]@h:9100/metrics?token=[redacted]#up{a=\"b\"}";
        let watch = watch(text);
        assert_eq!(watch.to_string(), shown);
        assert_eq!(serde_json::to_string(&watch).unwrap(), serde_json::to_string(shown).unwrap());
        assert_eq!(format!("{watch:?}"), format!("{shown:?}"));
        assert_eq!(watch.shown_source(), &shown["cpu=".len()..]);
        for wrong in ["cpu=http://me:hunter2@h:9100/?token=s3cr3t#rate(", "http://me:hunter2@h/?token=s3cr3t#up"] {
            let error = wrong.parse::<Watch>().unwrap_err().to_string();
            assert!(!error.contains("hunter2") && !error.contains("s3cr3t"), "{error}");
        }
        let again = serde_json::from_str::<Watch>(&serde_json::to_string(&watch).unwrap()).unwrap();
        assert!(again.is_redacted() && !watch.is_redacted());
    }

    #[test]
    fn two_figures_of_one_name_are_noticed() {
        let watches = ["pid:1", "db=pid:2", "cpu=http://h#up"].map(watch);
        assert_eq!(repeated(&watches), Some("cpu".to_owned()));
        assert_eq!(repeated(&watches[..2]), None);
    }

    #[test]
    fn values_are_shown_in_their_units() {
        for (unit, value, text) in [
            (WatchedUnit::Cores, 0.935, "93.5%"),
            (WatchedUnit::Cores, 2.5, "250.0%"),
            (WatchedUnit::Cores, 0.0123, "1.23%"),
            (WatchedUnit::Number, -3.0, "-3"),
            (WatchedUnit::Seconds, 0.005, "5.00ms"),
        ] {
            assert_eq!(shown_value(unit, value), text);
        }
        assert!(shown_value(WatchedUnit::Bytes, 5e8).ends_with("MB"));
    }
}
