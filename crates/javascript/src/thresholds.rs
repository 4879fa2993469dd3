//! Thresholds of k6, as conditions on figures that are recorded by k6's own definitions.

use brunt_plan::threshold::{ForeignCondition, Threshold};
use brunt_record::figures::OwnKind;
use serde_json::Value;

use crate::duration::nanoseconds;
use crate::wrong_option::WrongOption;

/// One condition of a metric, or of the part of it with some tags.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) metric: String,
    /// Tags with their values.
    pub(crate) filter: Vec<(String, String)>,
    /// The condition: `p(95)<500`.
    pub(crate) text: String,
    /// How long the run goes on at least before a condition that does not hold ends it; `None` where it never does.
    aborts_after_ns: Option<u64>,
}

/// The conditions of `options.thresholds`.
///
/// # Errors
/// Says which entry is not a condition.
pub(crate) fn asked(thresholds: Option<&Value>) -> Result<Vec<Asked>, WrongOption> {
    let mut all = Vec::new();
    for (name, conditions) in thresholds.and_then(Value::as_object).into_iter().flatten() {
        let wrong = |what: &str| WrongOption::new(&[name, "thresholds"], format!("options.thresholds: {name}: {what}"));
        let (metric, filter) =
            subject(name).ok_or_else(|| wrong("expected a metric, or one with tags such as checks{group:::login}"))?;
        let one = std::slice::from_ref(conditions);
        for condition in conditions.as_array().map_or(one, Vec::as_slice) {
            let text = condition.as_str().or_else(|| condition.get("threshold")?.as_str());
            let text =
                text.ok_or_else(|| wrong(&format!("expected a condition such as \"p(95)<500\", got {condition}")))?;
            let delay = condition.get("delayAbortEval").map_or(Ok(0), nanoseconds);
            let delay_ns = delay.map_err(|problem| wrong(&format!("delayAbortEval: {problem}")))?;
            let aborts_after_ns = (condition.get("abortOnFail") == Some(&Value::Bool(true))).then_some(delay_ns);
            all.push(Asked { metric: metric.clone(), filter: filter.clone(), text: text.to_owned(), aborts_after_ns });
        }
    }
    Ok(all)
}

/// `http_req_duration{name:a,status:200}`: the metric and its tags.
fn subject(text: &str) -> Option<(String, Vec<(String, String)>)> {
    let text = text.trim();
    let Some((metric, rest)) = text.split_once('{') else { return Some((text.to_owned(), Vec::new())) };
    let tags = rest.trim_end().strip_suffix('}')?;
    let unquoted = |text: &str| {
        let text = text.trim();
        let inner = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
        inner.unwrap_or(text).to_owned()
    };
    let one = |tag: &str| tag.split_once(':').map(|(key, value)| (unquoted(key), unquoted(value)));
    let tags = tags.split(',').filter(|tag| !tag.trim().is_empty()).map(one).collect::<Option<Vec<_>>>()?;
    Some((metric.trim().to_owned(), tags))
}

impl Asked {
    /// The name of the figure: the metric's, with its tags.
    pub(crate) fn name(&self) -> String {
        self.name_with('=')
    }

    /// The same, with this sign between a tag and its value.
    fn name_with(&self, sign: char) -> String {
        if self.filter.is_empty() {
            return self.metric.clone();
        }
        let tags: Vec<_> = self.filter.iter().map(|(tag, value)| format!("{tag}{sign}{value}")).collect();
        format!("{}{{{}}}", self.metric, tags.join(","))
    }

    /// Whether the engine counts it: users, and those that were not admitted.
    pub(crate) fn is_engines(&self) -> bool {
        matches!(self.metric.as_str(), "vus" | "vus_max" | "dropped_iterations")
    }

    /// The condition, of a metric of this kind.
    ///
    /// # Errors
    /// Says why it cannot be judged.
    pub(crate) fn condition(&self, kind: Option<OwnKind>) -> Result<Threshold, String> {
        let wrong = |why: &str| format!("options.thresholds: {}: {}: {why}", self.name_with(':'), self.text);
        let (what, sign, value) =
            read(&self.text).ok_or_else(|| wrong("expected a condition such as \"p(95)<500\""))?;
        let (subject, figure, limit) = if self.is_engines() {
            let figure = if self.metric == "dropped_iterations" { "not_admitted" } else { "users" };
            if figure == "not_admitted" && what != "count" {
                return Err(wrong("brunt judges the count of dropped iterations"));
            }
            let scenario = self.filter.iter().find(|(tag, _)| tag == "scenario");
            (
                scenario.map_or_else(String::new, |(_, name)| format!("scenario {name}:")),
                figure.to_owned(),
                value.to_string(),
            )
        } else {
            let kind =
                kind.ok_or_else(|| wrong(&format!("neither k6 nor the script has a metric '{}'", self.metric)))?;
            let (figure, limit) =
                figure(kind, what, value).ok_or_else(|| wrong(&format!("a {} has no {what}", kind.name())))?;
            (format!("figure {}:", self.name()), figure, limit)
        };
        let abort = match self.aborts_after_ns {
            None => String::new(),
            Some(0) => " abort-now".to_owned(),
            Some(after_ns) => format!(" abort-now after {after_ns}ns"),
        };
        let text = format!("{subject}{figure} {sign} {limit}{abort}");
        let threshold = text.parse::<Threshold>().map_err(|error| wrong(&error.problem))?;
        let condition = self.text.get(self.text.find(sign).unwrap_or(0)..).unwrap_or_default().trim();
        let words = ForeignCondition {
            figure: format!("{}: {what}", self.name_with(':')),
            condition: condition.replace("===", "=="),
        };
        Ok(threshold.in_words(words))
    }
}

/// `p(95)<500`: what, sign and value.
fn read(text: &str) -> Option<(&str, &'static str, f64)> {
    let at = text.find(['<', '>', '='])?;
    let (what, rest) = text.split_at_checked(at)?;
    let signs = [("<=", "<="), (">=", ">="), ("===", "=="), ("==", "=="), ("<", "<"), (">", ">")];
    let (written, sign) = signs.into_iter().find(|(written, _)| rest.starts_with(written))?;
    let value = rest.get(written.len()..)?.trim().parse().ok()?;
    Some((what.trim(), sign, value))
}

/// The figure of a kind by k6's word, and its limit as a text.
fn figure(kind: OwnKind, what: &str, value: f64) -> Option<(String, String)> {
    let plain = |figure: &str| Some((figure.to_owned(), value.to_string()));
    let percentile = what.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
    match (kind, what) {
        (OwnKind::Counter, "count") => plain("sum"),
        (OwnKind::Counter, "rate") => plain("rate"),
        (OwnKind::Rate, "rate") => Some(("share".to_owned(), format!("{}%", (value * 1e8).round() / 1e6))),
        (OwnKind::Gauge, "value") => plain("last"),
        (OwnKind::Trend, "avg") => plain("mean"),
        (OwnKind::Trend, "med") => plain("p50"),
        (OwnKind::Trend, "min" | "max") => plain(what),
        (OwnKind::Trend, _) => match percentile?.trim().parse::<f64>().ok()? {
            100.0 => plain("max"),
            0.0 => plain("min"),
            q if (0.0..100.0).contains(&q) => plain(&format!("p{q}")),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<String>, String> {
        let asked = asked(Some(&serde_json::from_str(text).unwrap())).map_err(|wrong| wrong.problem)?;
        let kind = |asked: &Asked| {
            crate::options::METRICS.iter().find(|(name, ..)| *name == asked.metric).map(|(_, kind, _)| *kind)
        };
        let text = |threshold: Threshold| format!("{} shown as {threshold}", threshold.judged().unwrap());
        asked.iter().map(|one| one.condition(kind(one)).map(text)).collect()
    }

    #[test]
    fn conditions_are_those_of_figures() {
        let texts = all(
            r#"{"http_req_duration":["p(95)<500","max<1000","p(99.9) <= 2e3"],"http_req_failed{scenario:a}":[{"threshold":"rate<0.01","abortOnFail":true,"delayAbortEval":"2s"}],
                "dropped_iterations":["count<5"],"http_reqs":"count>=10"}"#,
        );
        let texts = texts.unwrap();
        let has = |text: &str| assert!(texts.iter().any(|known| known == text), "{text}: {texts:?}");
        has("figure http_req_duration:p95 < 500 shown as http_req_duration: p(95)<500");
        has(
            "figure http_req_failed{scenario=a}:share < 1% abort-now after 2000000000ns shown as http_req_failed{scenario:a}: rate<0.01",
        );
        has("not_admitted < 5 shown as dropped_iterations: count<5");
        has("figure http_reqs:sum >= 10 shown as http_reqs: count>=10");
    }

    #[test]
    fn what_cannot_be_judged_is_named() {
        assert!(all(r#"{"http_req_failed":["p(95)<1"]}"#).unwrap_err().contains("a rate has no p(95)"));
        assert!(all(r#"{"nothing":["rate<1"]}"#).unwrap_err().contains("'nothing'"));
        assert!(all(r#"{"checks":["rate"]}"#).unwrap_err().contains("expected a condition"));
        assert!(all(r#"{"checks{a":["rate<1"]}"#).is_err());
    }
}
