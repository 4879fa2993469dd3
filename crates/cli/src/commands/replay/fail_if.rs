//! `--fail-if` of a replay: how different it must not be from its log.

use brunt_record::replayed::{AgainstLog, ReplayCondition, Replayed};

/// A condition under which a replay fails.
#[derive(Debug, Clone, PartialEq)]
pub struct FailIf {
    text: String,
    /// The template that it is about; everything without one.
    template: Option<String>,
    figure: Figure,
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    OtherStatus,
    OtherSize,
    Unanswered,
    P50,
    P95,
}

impl Figure {
    const NAMES: [(&str, Self); 5] = [
        ("other_status", Self::OtherStatus),
        ("other_size", Self::OtherSize),
        ("unanswered", Self::Unanswered),
        ("p50", Self::P50),
        ("p95", Self::P95),
    ];

    fn is_share(self) -> bool {
        matches!(self, Self::OtherStatus | Self::OtherSize | Self::Unanswered)
    }

    /// Its value; none where the log has nothing to compare with.
    fn of(self, row: &AgainstLog) -> Option<f64> {
        let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
        let ratio = |came: Option<u64>, logged: Option<u64>| Some(came? as f64 / logged?.max(1) as f64);
        match self {
            Self::OtherStatus => share(row.other_status, row.compared_status),
            Self::OtherSize => share(row.other_size, row.compared_size),
            Self::Unanswered => share(row.calls - row.answered, row.calls),
            Self::P50 => ratio(row.came_p50_ns, row.logged_p50_ns),
            Self::P95 => ratio(row.came_p95_ns, row.logged_p95_ns),
        }
    }
}

impl FailIf {
    /// Reads `other_status>1%`, `p95>2x`, or either of one template: `GET /users/{n}: p95>2x`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (template, condition) = match text.rsplit_once(':') {
            Some((template, condition)) => (Some(template.trim().to_owned()), condition),
            None => (None, text),
        };
        let wrong = || {
            "expected FIGURE>VALUE: other_status>1%, other_size>5%, unanswered>0%, p50>1.5x or p95>2x; a template and a \
             colon may stand before it"
                .to_owned()
        };
        let (name, limit) = condition.split_once('>').ok_or_else(wrong)?;
        let (name, limit) = (name.trim(), limit.trim());
        let (_, figure) = Figure::NAMES.into_iter().find(|(known, _)| *known == name).ok_or_else(wrong)?;
        let limit = if figure.is_share() {
            limit.strip_suffix('%').and_then(|number| number.parse::<f64>().ok()).map(|percent| percent / 100.0)
        } else {
            limit.strip_suffix('x').and_then(|number| number.parse().ok())
        };
        let limit = limit.filter(|limit| limit.is_finite() && *limit >= 0.0).ok_or_else(wrong)?;
        Ok(Self { text: text.to_owned(), template, figure, limit })
    }

    /// Whether it holds. Where nothing can be compared, it does: what was asked is not known.
    pub fn judge(&self, replayed: &Replayed) -> ReplayCondition {
        let row = match &self.template {
            None => Some(&replayed.all),
            Some(name) => replayed.templates.iter().find(|row| row.name == *name),
        };
        let value = row.and_then(|row| self.figure.of(row));
        let got = match value {
            Some(value) if self.figure.is_share() => format!("{:.2}%", value * 100.0),
            Some(value) => format!("{value:.2}x"),
            None if row.is_none() => "no request of this template ended".to_owned(),
            None => "the log has nothing to compare with".to_owned(),
        };
        ReplayCondition { condition: self.text.clone(), holds: value.is_none_or(|value| value > self.limit), got }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_about_everything_or_a_template() {
        let row = |name: &str, other: u64| AgainstLog {
            name: name.to_owned(),
            calls: 100,
            answered: 100,
            compared_status: 100,
            other_status: other,
            logged_p95_ns: Some(1000),
            came_p95_ns: Some(2500),
            ..AgainstLog::default()
        };
        let replayed = Replayed { all: row("(all)", 1), templates: vec![row("GET /a:b", 30)], ..Replayed::default() };
        for (text, holds, got) in [
            ("other_status>1%", false, "1.00%"),
            ("other_status > 0.5%", true, "1.00%"),
            ("GET /a:b: other_status>10%", true, "30.00%"),
            ("p95>2x", true, "2.50x"),
            ("p95>3x", false, "2.50x"),
            ("unanswered>0%", false, "0.00%"),
            ("other_size>1%", true, "the log has nothing to compare with"),
            ("GET /none: p95>2x", true, "no request of this template ended"),
        ] {
            let condition = FailIf::parse(text).unwrap().judge(&replayed);
            assert_eq!((condition.holds, condition.got.as_str()), (holds, got), "{text}");
        }
        for wrong in ["", "p95", "p95>2", "other_status>1", "p99>2x", "other_status>-1%", "p95>infx"] {
            assert!(FailIf::parse(wrong).is_err(), "{wrong}");
        }
    }
}
