//! The expression that a watch takes from a page of metrics: `name`, `name{label="value",other!="value"}`, with
//! `rate(…)` and `sum(…)` around it.
//!
//! A figure is one number: matching series are added up, with `sum` or without. `rate` is the growth of counters since
//! the last page, per second. Anything more takes a Prometheus.

use std::fmt;
use std::str::FromStr;

use brunt_record::watched::WatchedUnit;

/// The longest expression, in bytes.
const LONGEST: usize = 1000;
/// The most matchers.
const MOST_MATCHERS: usize = 20;

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// Whether `sum` is written, which is the default.
    pub is_sum: bool,
    /// Whether it is the growth of the series per second.
    pub is_rate: bool,
    /// The name of the metric.
    pub metric: String,
    /// Conditions on labels.
    pub matchers: Vec<Matcher>,
}

/// A condition on a label; one that a series does not have is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    /// The label's name.
    pub label: String,
    /// Whether its value must be equal, rather than different.
    pub is_equal: bool,
    /// The value.
    pub value: String,
}

/// An expression that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}', column {column}: {problem}")]
pub struct ExpressionError {
    /// The text as written.
    pub text: String,
    /// The column of the mistake, in characters from 1.
    pub column: usize,
    /// The text expected there.
    pub problem: String,
}

impl Expression {
    /// The unit of its values, by the naming conventions of Prometheus.
    pub fn unit(&self) -> WatchedUnit {
        unit_of_metric(&self.metric, self.is_rate)
    }

    /// Whether a series with the labels that `label` finds is one of those added up.
    pub fn takes<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.matchers
            .iter()
            .all(|matcher| (label(&matcher.label).unwrap_or_default() == matcher.value) == matcher.is_equal)
    }
}

/// The unit of a metric's values, or of its rate, by its name (<https://prometheus.io/docs/practices/naming/>).
pub fn unit_of_metric(metric: &str, is_rate: bool) -> WatchedUnit {
    let base = metric.strip_suffix("_total").unwrap_or(metric);
    let is_of_cpu = base.split('_').any(|word| word == "cpu");
    match (base.rsplit('_').next(), is_rate) {
        (Some("bytes"), false) => WatchedUnit::Bytes,
        (Some("bytes"), true) => WatchedUnit::BytesPerS,
        (Some("seconds"), false) => WatchedUnit::Seconds,
        (Some("seconds"), true) if is_of_cpu => WatchedUnit::Cores,
        // Seconds per second are a number of concurrent ones.
        (Some("seconds"), true) | (_, false) => WatchedUnit::Number,
        (_, true) => WatchedUnit::PerS,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn error<T>(&self, problem: impl Into<String>) -> Result<T, ExpressionError> {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        Err(ExpressionError { text: self.text.to_owned(), column: before.chars().count() + 1, problem: problem.into() })
    }

    /// Takes `token`, if it comes next.
    fn take(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let comes = self.rest().starts_with(token);
        self.at += if comes { token.len() } else { 0 };
        comes
    }

    fn expect(&mut self, token: &str) -> Result<(), ExpressionError> {
        if self.take(token) { Ok(()) } else { self.error(format!("expected {token}")) }
    }

    fn word(&mut self, what: &str, has_colons: bool) -> Result<&'a str, ExpressionError> {
        self.skip_spaces();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || has_colons && c == ':';
        let word = rest.get(..rest.find(|c| !is_part(c)).unwrap_or(rest.len())).unwrap_or_default();
        if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
            return self.error(format!("expected the name of {what}"));
        }
        self.at += word.len();
        Ok(word)
    }

    fn expression(&mut self) -> Result<Expression, ExpressionError> {
        let (mut is_sum, mut is_rate) = (false, false);
        let metric = loop {
            let from = self.at;
            let word = self.word("a metric", true)?;
            if !self.take("(") {
                break word;
            }
            match word {
                "sum" if !is_sum && !is_rate => is_sum = true,
                "rate" if !is_rate => is_rate = true,
                "sum" | "rate" => {
                    self.at = from;
                    return self.error("expected sum(rate(…)) at most: each of them once, in this order");
                }
                _ => {
                    self.at = from;
                    return self.error(format!(
                        "there is no function {word}, only rate and sum; a Prometheus has more: NAME=prometheus:URL#QUERY"
                    ));
                }
            }
        };
        let matchers = if self.take("{") { self.matchers()? } else { Vec::new() };
        if self.take("[") {
            return self.error("expected no range: a rate is that of each second; leave [ ] out");
        }
        for _ in 0..u8::from(is_sum) + u8::from(is_rate) {
            self.expect(")")?;
        }
        self.skip_spaces();
        if !self.rest().is_empty() {
            return self.error("expected nothing more; a Prometheus has more: NAME=prometheus:URL#QUERY");
        }
        Ok(Expression { is_sum, is_rate, metric: metric.to_owned(), matchers })
    }

    fn matchers(&mut self) -> Result<Vec<Matcher>, ExpressionError> {
        let mut matchers = Vec::new();
        while !self.take("}") {
            if !matchers.is_empty() {
                self.expect(",")?;
                if self.take("}") {
                    break;
                }
            }
            if matchers.len() == MOST_MATCHERS {
                return self.error(format!("expected at most {MOST_MATCHERS} conditions"));
            }
            let label = self.word("a label", false)?.to_owned();
            if self.take("=~") || self.take("!~") {
                return self.error("expected = or !=; a Prometheus has patterns: NAME=prometheus:URL#QUERY");
            }
            let is_equal = if self.take("!=") {
                false
            } else {
                self.expect("=")?;
                true
            };
            matchers.push(Matcher { label, is_equal, value: self.quoted()? });
        }
        Ok(matchers)
    }

    fn quoted(&mut self) -> Result<String, ExpressionError> {
        self.expect("\"")?;
        let (mut value, mut is_escaped) = (String::new(), false);
        for (place, c) in self.rest().char_indices() {
            match (c, is_escaped) {
                ('\\', false) => is_escaped = true,
                ('"', false) => {
                    self.at += place + 1;
                    return Ok(value);
                }
                (c, false) => value.push(c),
                ('n', true) => {
                    value.push('\n');
                    is_escaped = false;
                }
                (c, true) => {
                    value.push(c);
                    is_escaped = false;
                }
            }
        }
        self.at = self.text.len();
        self.error("expected \" at the end of a value")
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > LONGEST {
            let problem = format!("expected at most {LONGEST} bytes");
            return Err(ExpressionError { text: "…".to_owned(), column: LONGEST, problem });
        }
        Parser { text, at: 0 }.expression()
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sum, rate) = (if self.is_sum { "sum(" } else { "" }, if self.is_rate { "rate(" } else { "" });
        write!(f, "{sum}{rate}{}", self.metric)?;
        for (place, Matcher { label, is_equal, value }) in self.matchers.iter().enumerate() {
            let (before, sign) = (if place == 0 { "{" } else { "," }, if *is_equal { "=" } else { "!=" });
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(f, "{before}{label}{sign}\"{value}\"")?;
        }
        let brace = if self.matchers.is_empty() { "" } else { "}" };
        let ends = ")".repeat(usize::from(self.is_sum) + usize::from(self.is_rate));
        write!(f, "{brace}{ends}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matcher() -> impl Strategy<Value = Matcher> {
        let parts = ("[a-zA-Z_][a-zA-Z0-9_]{0,9}", any::<bool>(), ".{0,9}\n?");
        parts.prop_map(|(label, is_equal, value)| Matcher { label, is_equal, value })
    }

    fn expression() -> impl Strategy<Value = Expression> {
        let metric = "[a-zA-Z_:][a-zA-Z0-9_:]{0,20}";
        (any::<bool>(), any::<bool>(), metric, prop::collection::vec(matcher(), 0..4))
            .prop_map(|(is_sum, is_rate, metric, matchers)| Expression { is_sum, is_rate, metric, matchers })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(expression in expression()) {
            prop_assert_eq!(expression.to_string().parse::<Expression>(), Ok(expression));
        }

        #[test]
        fn whatever_is_read_is_read_or_refused_where_it_is_wrong(text in "\\PC{0,60}|[a-z_{}()\",=!~\\\\ ]{0,60}") {
            match text.parse::<Expression>() {
                Ok(expression) => prop_assert_eq!(expression.to_string().parse::<Expression>(), Ok(expression)),
                Err(error) => prop_assert!(error.column <= text.chars().count() + 1, "{}", error),
            }
        }

        #[test]
        fn cut_short_it_is_refused_or_another(expression in expression(), at in 0_usize..200) {
            let whole = expression.to_string();
            if let Some(part) = whole.get(..at).filter(|part| part.len() < whole.len()) {
                prop_assert_ne!(part.parse::<Expression>(), Ok(expression));
            }
        }
    }

    #[test]
    fn spaces_and_a_last_comma_are_taken() {
        let text = " sum ( rate( a:b { c = \"d\" , e != \"\", } ) ) ";
        let read = text.parse::<Expression>().unwrap();
        assert_eq!(read.to_string(), "sum(rate(a:b{c=\"d\",e!=\"\"}))");
    }

    #[test]
    fn what_is_wrong_is_said_where_it_is() {
        for (text, column, problem) in [
            ("", 1, "expected the name of a metric"),
            ("rate(", 6, "expected the name of a metric"),
            ("rate(a", 7, "expected )"),
            ("a)", 2, "expected nothing more"),
            ("a + b", 3, "expected nothing more"),
            ("avg(a)", 1, "there is no function avg, only rate and sum"),
            ("rate(sum(a))", 6, "sum(rate(…)) at most"),
            ("rate(a[5m])", 8, "leave [ ] out"),
            ("a{b=~\"c\"}", 6, "expected = or !="),
            ("a{b=c}", 5, "expected \""),
            ("a{b=\"c}", 8, "expected \" at the end"),
            ("a{b=\"c\" d=\"e\"}", 9, "expected ,"),
            ("a{1=\"c\"}", 3, "expected the name of a label"),
        ] {
            let error = text.parse::<Expression>().unwrap_err();
            assert_eq!((error.column, error.problem.contains(problem)), (column, true), "{text}: {error}");
        }
        assert!("a".repeat(LONGEST + 1).parse::<Expression>().is_err());
    }

    #[test]
    fn a_label_that_is_missing_is_empty() {
        let takes = |text: &str, labels: &[(&str, &'static str)]| {
            let of = |label: &str| labels.iter().find(|(known, _)| *known == label).map(|(_, value)| *value);
            text.parse::<Expression>().unwrap().takes(of)
        };
        assert!(takes("a", &[("mode", "idle")]));
        assert!(takes("a{mode!=\"idle\"}", &[("mode", "user")]) && !takes("a{mode!=\"idle\"}", &[("mode", "idle")]));
        assert!(takes("a{mode!=\"idle\"}", &[]) && takes("a{mode=\"\"}", &[]) && !takes("a{mode=\"user\"}", &[]));
    }

    #[test]
    fn names_say_what_values_are_counted_in() {
        for (text, unit) in [
            ("rate(node_cpu_seconds_total)", WatchedUnit::Cores),
            ("rate(process_cpu_seconds_total)", WatchedUnit::Cores),
            ("rate(http_request_duration_seconds)", WatchedUnit::Number),
            ("process_resident_memory_bytes", WatchedUnit::Bytes),
            ("rate(node_network_receive_bytes_total)", WatchedUnit::BytesPerS),
            ("go_gc_pause_seconds", WatchedUnit::Seconds),
            ("rate(http_requests_total)", WatchedUnit::PerS),
            ("go_goroutines", WatchedUnit::Number),
        ] {
            assert_eq!(text.parse::<Expression>().unwrap().unit(), unit, "{text}");
        }
    }
}
