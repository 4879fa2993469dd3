//! Selections of calls by several conditions at once: `{scenario=shop,status=5xx}`.
//!
//! A run keeps figures for the selections of its thresholds, and for no others: a plan names them before the load, so
//! that a script cannot make up any number of them.

use std::fmt;

use brunt_record::outcome::OkStatus;

use super::Threshold;

/// The properties by which a call is selected.
#[derive(Debug, Clone, Copy)]
pub struct Traits<'a> {
    /// The name that it counts under.
    pub name: &'a str,
    /// Its tags, each `key=value`.
    pub tags: &'a [String],
    /// The scenario of its user; empty where the script does not say.
    pub scenario: &'a str,
    /// The path of the group that its user is in, such as `cart/pay`; empty outside of groups.
    pub group: &'a str,
}

/// Conditions on calls, all of which must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Keys and values, sorted, without the status.
    conditions: Vec<(String, String)>,
    /// Its statuses, as written and as parsed.
    status: Option<(String, OkStatus)>,
}

/// The keys that need no tag: name, scenario, group and status of a call.
const BUILT_IN: [&str; 4] = ["name", "scenario", "group", "status"];

impl Selection {
    /// Parses conditions in braces; a value with a comma or a brace in it stands in quotes.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let usage = "conditions such as {scenario=shop,status=5xx}";
        let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let inner = inner.ok_or_else(|| format!("expected {usage}, got '{text}'"))?;
        let (mut conditions, mut status) = (Vec::new(), None);
        for part in parts(inner) {
            let (key, value) = part.split_once('=').map(|(key, value)| (key.trim(), value.trim())).unzip();
            let value = value.map(super::unquoted);
            let (Some(key), Some(value)) = (key.filter(|key| !key.is_empty()), value.filter(|value| !value.is_empty()))
            else {
                let meant = part.split_once(':').map_or_else(String::new, |(key, value)| {
                    format!("; did you mean {{{}={}}}?", key.trim(), value.trim())
                });
                return Err(format!("expected {usage}, got '{}' in {text}{meant}", part.trim()));
            };
            if key != "status" {
                conditions.push((key.to_owned(), value));
                continue;
            }
            let read =
                value.parse().map_err(|_| format!("expected a status such as 404, 5xx or 400-499, got '{value}'"))?;
            if status.replace((value, read)).is_some() {
                return Err(format!("{text} has two statuses; a range such as 400-499 or a class such as 5xx is one"));
            }
        }
        conditions.sort();
        conditions.dedup();
        Ok(Self { conditions, status })
    }

    /// The selections of thresholds, each once. One with a status comes together with the same one without, which tells
    /// whether there were such calls at all.
    pub fn all<'a>(thresholds: impl IntoIterator<Item = &'a Threshold>) -> Vec<Self> {
        let mut all = Vec::new();
        for selection in thresholds.into_iter().filter_map(Threshold::selection) {
            let rest = selection.whatever_status().filter(|rest| !rest.conditions.is_empty());
            for one in rest.into_iter().chain([selection]) {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        all
    }

    /// The same selection for all statuses; `None` if it has no condition on the status.
    pub fn whatever_status(&self) -> Option<Self> {
        self.status.as_ref().map(|_| Self { conditions: self.conditions.clone(), status: None })
    }

    /// Keys and values, without the status.
    pub fn conditions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.conditions.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Its statuses, if it has a condition on them.
    pub fn statuses(&self) -> Option<&OkStatus> {
        self.status.as_ref().map(|(_, read)| read)
    }

    /// Whether it has a condition on a call's scenario or group.
    pub fn asks_for_place(&self) -> bool {
        self.conditions().any(|(key, _)| key == "scenario" || key == "group")
    }

    /// Whether it selects such calls, leaving aside their status. A group includes the calls of the groups in it; a
    /// script's own tag with the name of a built-in key comes before that key.
    pub fn takes(&self, call: &Traits<'_>) -> bool {
        self.conditions().all(|(key, value)| {
            let mut tags = call.tags.iter().filter_map(|tag| tag.split_once('='));
            let is_in = |group: &str| {
                call.group.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            match tags.find(|(known, _)| *known == key) {
                Some((_, tagged)) => tagged == value,
                None => match key {
                    "name" => call.name == value,
                    "scenario" => call.scenario == value,
                    "group" => is_in(value),
                    _ => false,
                },
            }
        })
    }

    /// The built-in key that `key` most likely means.
    pub fn nearest_key(key: &str) -> Option<&'static str> {
        super::nearest(key, BUILT_IN).filter(|near| *near != key)
    }
}

/// The parts between commas outside of quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut is_quoted) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                parts.push(text.get(from..at).unwrap_or(""));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(from..).unwrap_or(""));
    parts
}

/// As thresholds write it, with the conditions in order.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status.as_ref().map(|(written, _)| ("status", written.as_str()));
        f.write_str("{")?;
        for (number, (key, value)) in self.conditions().chain(status).enumerate() {
            let comma = if number > 0 { "," } else { "" };
            let quote = if value.contains([',', '{', '}', '"', ' ']) { "\"" } else { "" };
            write!(f, "{comma}{key}={quote}{value}{quote}")?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(text: &str) -> Selection {
        Selection::parse(text).unwrap()
    }

    #[test]
    fn a_selection_takes_calls_that_meet_all_of_its_conditions() {
        let tags = ["plan=pro".to_owned(), "scenario=mine".to_owned()];
        let tagged = Traits { name: "pay, now", tags: &tags, scenario: "shop", group: "cart/pay" };
        let plain = Traits { tags: &[], ..tagged };
        for (text, of_tagged, of_plain) in [
            ("{plan=pro}", true, false),
            ("{scenario=shop}", false, true),
            ("{scenario=mine}", true, false),
            ("{group=cart}", true, true),
            ("{group=cart/pay}", true, true),
            ("{group=car}", false, false),
            ("{group=pay}", false, false),
            ("{name=\"pay, now\", group=cart}", true, true),
            ("{plan=pro,group=shop}", false, false),
            ("{status=5xx}", true, true),
        ] {
            assert_eq!(
                (selection(text).takes(&tagged), selection(text).takes(&plain)),
                (of_tagged, of_plain),
                "{text}"
            );
        }
    }

    #[test]
    fn a_selection_is_written_in_one_way() {
        for (text, written) in [
            ("{status=5xx, scenario=shop}", "{scenario=shop,status=5xx}"),
            ("{ b = 2 ,a=1,a=1}", "{a=1,b=2}"),
            ("{name=\"pay, now\"}", "{name=\"pay, now\"}"),
        ] {
            assert_eq!(selection(text).to_string(), written);
            assert_eq!(selection(written), selection(text));
        }
        let statuses = selection("{status=400-499}");
        assert!(statuses.statuses().is_some_and(|statuses| statuses.holds(404) && !statuses.holds(500)));
    }

    #[test]
    fn what_is_no_selection_is_refused() {
        for (text, expected) in [
            ("{}", "expected conditions such as {scenario=shop,status=5xx}, got ''"),
            ("{scenario:shop}", "did you mean {scenario=shop}?"),
            ("{scenario}", "got 'scenario' in {scenario}"),
            ("{a=1,}", "got ''"),
            ("{=1}", "got '=1'"),
            ("{status=bad}", "expected a status such as 404, 5xx or 400-499, got 'bad'"),
            ("{status=404,status=500}", "has two statuses"),
            ("{a=1", "expected conditions"),
        ] {
            let problem = Selection::parse(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn thresholds_ask_for_each_selection_once_and_for_the_one_without_its_status() {
        let thresholds =
            ["{status=5xx}:due<3", "{group=a,status=5xx}:due<3", "{status=5xx,group=a}:p95<1s", "home:p95<1s"];
        let all = Selection::all(&thresholds.map(|text| text.parse().unwrap()));
        let all: Vec<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(all, ["{status=5xx}", "{group=a}", "{group=a,status=5xx}"]);
    }
}
