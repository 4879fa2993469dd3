//! Conditions that must hold at the end of a run: `[[kind ]name:]figure op value[ abort]`, for example `p99 < 50ms`.
//!
//! Figures: `p50` … `p99.99` (any `p` with a number under 100), `mean`, `stdev`, `min`, `max` of the response time, or
//! with `service.`, `first_byte.`, `connect.`, `tls.`, `handshake.`, `lag.`, `failed.`, `first_message.`, `message_gap.`, `each_message.` or
//! `last_message.` before them of another time; `error_rate`;
//! `rate` (answers a second); `due_rate`, `message_rate`, `bytes_in`, `bytes_out` (a second); `due`, `unsent`, `unfinished`, `messages`; and each failure by its
//! name. Operators: `<`, `<=`, `>`, `>=`, `==`. Of scenarios: `checks` (the share of checks that held), `passes` and
//! `fails` (how many did and did not), `users` (the most alive at any time), `users_started`, `not_admitted`, `iterations`,
//! `failed_iterations`, `script_errors`, `script_error_rate`, and `iteration.` for how long iterations took. Of a figure of the script's own, in its unit: `sum` and `rate` of a
//! counter, `share` of a rate, `p50` … `mean`, `stdev`, `min`, `max` of a trend, `last`, `min`, `max` of a gauge, `count` of any.
//!
//! A name that would be read otherwise (`request token`, `a:b`) stands in quotes: `"request token":p95`.
//!
//! A name is that of a request, a tag (`plan=pro`), a group, a check (`home: 200`), a scenario or a figure of the script's own, looked up in
//! this order; `request`, `tag`, `group`, `check`, `scenario` or `figure` before it says which. A request or tag has the times `response`,
//! `service` and `failed`; a group `without_pauses` (its usual one) and `with_pauses`, a scenario `iteration`; `duration` is either's own.
//!
//! `within(ttft<500ms,tpot<50ms) > 90%` is the share of calls that met all these objectives, where the protocol measures them of each call.
//!
//! Braces hold conditions on calls; a call has to meet all of them: `{scenario=shop,status=5xx}:due < 5`. See [`Selection`].
//!
//! `abort` at its end lets it end the run as soon as the threshold can no longer pass, `abort-now` after the first second in which it does
//! not hold.
//!
//! `watch.NAME` is a figure watched beside the run ([`crate::watch`]): `watch.cpu:max < 90%`, with `mean` (the
//! default), `min`, `max` or `last`.
//!
//! This is the grammar only: a text and its meaning. Judging takes a record of the run.

mod figure;
mod guard;
mod selection;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use brunt_record::catalogue::Timing;
use brunt_record::figures::time_unit_ns;
use brunt_record::histogram::{AtLeast, fewest_calls};

use crate::scenario::DeclaredFigure;
use crate::units::parse_duration;

pub use self::figure::{Count, Figure, FigureUnit, OfOwn, OfWatched, Statistic, Time};
pub use self::guard::{Guard, GuardAction, GuardError};
pub use self::selection::{Selection, Traits};

/// What stands before the limit of `within(200ms)`, and before objectives of a call.
const WITHIN: &str = "within(";

/// The comparison of a figure with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
}

/// The kinds of things that have names, in the order in which a name is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// Calls with one name.
    Request,
    /// Calls with one tag, `key=value`.
    Tag,
    /// A group of calls.
    Group,
    /// A check.
    Check,
    /// A scenario.
    Scenario,
    /// A figure of the script's own.
    Own,
    /// Calls that meet conditions: a [`Selection`].
    Calls,
    /// A figure that is watched, written `watch.NAME`.
    Watched,
}

/// The prefix of a watched figure's name.
const WATCHED: &str = "watch.";

impl NameKind {
    /// The kinds that a word before a name can choose, each with its word.
    pub const NAMED: [(&'static str, Self); 6] = [
        ("request", Self::Request),
        ("tag", Self::Tag),
        ("group", Self::Group),
        ("check", Self::Check),
        ("scenario", Self::Scenario),
        ("figure", Self::Own),
    ];

    /// The word for it before a name.
    pub fn word(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| *word)
    }
}

impl Operator {
    const WRITTEN: [(&'static str, Self); 5] =
        [("<=", Self::AtMost), (">=", Self::AtLeast), ("==", Self::Equal), ("<", Self::Below), (">", Self::Above)];

    /// As it is written.
    fn sign(self) -> &'static str {
        Self::WRITTEN.iter().find(|(_, operator)| *operator == self).map_or("", |(sign, _)| *sign)
    }

    /// The last operator in `text`, and its position: names may contain some, too.
    fn find(text: &str) -> Option<(usize, &'static (&'static str, Self))> {
        let found = Self::WRITTEN.iter().filter_map(|entry| Some((text.rfind(entry.0)?, entry)));
        found.max_by_key(|(at, (sign, _))| (at + sign.len(), sign.len()))
    }

    /// Whether it holds for a known value.
    pub fn holds_for(self, got: f64, limit: f64) -> bool {
        self.holds(AtLeast::exactly(got), limit)
    }

    /// Whether it surely holds for a value that may be a lower bound.
    pub fn holds(self, got: AtLeast<f64>, limit: f64) -> bool {
        match self {
            Self::Below => !got.at_least && got.value < limit,
            Self::AtMost => !got.at_least && got.value <= limit,
            Self::Above => got.value > limit,
            Self::AtLeast => got.value >= limit,
            Self::Equal => !got.at_least && got.value.total_cmp(&limit).is_eq(),
        }
    }
}

/// `value` for people, in the unit of the figure `figure`: `5.16ms` for `p99`; `None` for an unknown figure.
pub fn shown(figure: &str, value: f64) -> Option<String> {
    if figure.trim().starts_with(WATCHED) {
        return Some(FigureUnit::Watched.show(value));
    }
    let figure = figure.rsplit_once(':').map_or(figure, |(_, figure)| figure);
    Figure::parse(figure.trim()).map(|figure| figure.unit().show(value))
}

/// One condition on a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Written", into = "Written")]
pub struct Threshold {
    /// As written.
    text: String,
    /// As its author wrote it in another tool's words.
    words: Option<ForeignCondition>,
    /// Its subject, with the kind if the text names one; `None` for all calls.
    name: Option<(Option<NameKind>, String)>,
    /// Whether it ends the run as soon as it can no longer pass.
    abort: Option<Abort>,
    figure: Figure,
    operator: Operator,
    limit: f64,
}

/// A threshold that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a threshold such as 'p99<50ms', 'error_rate<0.1%' or 'rate>10k', got '{text}': {problem}")]
pub struct ThresholdError {
    /// The text as written.
    pub text: String,
    /// The problem.
    pub problem: String,
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let error = |problem: String| ThresholdError { text: text.to_owned(), problem };
        let (at, (sign, operator)) =
            Operator::find(text).ok_or_else(|| error("a comparison is missing: <, <=, >, >= or ==".to_owned()))?;
        let (left, right) = (text.get(..at).unwrap_or(""), text.get(at + sign.len()..).unwrap_or(""));
        let (right, abort) = without_abort(right);
        if let Some(watched) = left.trim().strip_prefix(WATCHED) {
            let (name, figure, limit) = watched_of(watched, right).map_err(error)?;
            let name = Some((Some(NameKind::Watched), name));
            return Ok(Self { text: text.to_owned(), words: None, name, abort, figure, operator: *operator, limit });
        }
        if let Some(name) = within_objectives(left) {
            let figure = Figure::Own(OfOwn::Share);
            let limit = figure.unit().parse(right).map_err(|problem| error(problem.to_string()))?;
            let name = Some((Some(NameKind::Own), name));
            return Ok(Self { text: text.to_owned(), words: None, name, abort, figure, operator: *operator, limit });
        }
        let (name, figure) = match left.rsplit_once(':') {
            Some((name, figure)) => (Some(name_of(name).map_err(error)?), figure),
            None => (None, left),
        };
        let figure = figure.trim();
        let (figure, limit) = match (of_own(name.as_ref(), figure, right), Figure::parse(figure)) {
            (Some(own), None) => own,
            (own, Some(known)) => match (known.unit().parse(right), own) {
                (Ok(limit), _) if !matches!(name, Some((Some(NameKind::Own), _))) => (known, limit),
                (_, Some(own)) => own,
                (Ok(limit), None) => (known, limit),
                (Err(problem), None) => return Err(error(problem.to_string())),
            },
            (None, None) => {
                let own = OfOwn::parse(figure).filter(|_| name.is_some());
                let problem = own.and_then(|own| Figure::Own(own).unit().parse(right).err());
                let unknown = || {
                    let meant = Figure::meant(figure);
                    let others = if name.is_some() && meant.starts_with("did") { Figure::OF_NAMES } else { "" };
                    format!("'{figure}' is not a figure; {meant}{others}")
                };
                return Err(error(problem.map_or_else(unknown, |problem| problem.to_string())));
            }
        };
        Ok(Self { text: text.to_owned(), words: None, name, abort, figure, operator: *operator, limit })
    }
}

/// When a threshold ends its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abort {
    /// As soon as it can no longer pass: `abort`.
    BeyondRepair,
    /// After the first second in which it does not hold, but for those before this time of the measured part, in nanoseconds: `abort-now`,
    /// `abort-now after 10s`.
    AtOnce {
        /// The time.
        after_ns: u64,
    },
}

/// The right side of a condition without the word by which it ends the run.
fn without_abort(right: &str) -> (&str, Option<Abort>) {
    let right = right.trim();
    if let Some((before, after)) = right.rsplit_once("abort-now after ")
        && let Ok(after_ns) = parse_duration(after.trim())
    {
        return (before.trim_end(), Some(Abort::AtOnce { after_ns }));
    }
    let words = [("abort-now", Abort::AtOnce { after_ns: 0 }), ("abort", Abort::BeyondRepair)];
    let said = words.into_iter().find_map(|(word, abort)| Some((right.strip_suffix(word)?.trim_end(), Some(abort))));
    said.unwrap_or((right, None))
}

/// `within(ttft<500ms,tpot<50ms)`, without blanks: the share of calls that met all these objectives, which only the protocol knows.
fn within_objectives(text: &str) -> Option<String> {
    let limits = text.trim().strip_prefix(WITHIN)?.strip_suffix(')').filter(|limits| limits.contains('<'))?;
    Some(format!("{WITHIN}{})", limits.replace(char::is_whitespace, "")))
}

/// A condition on a script's own figure, which is not known by name here: it has a name that may be one, and a plain
/// number as its limit.
fn of_own(name: Option<&(Option<NameKind>, String)>, figure: &str, limit: &str) -> Option<(Figure, f64)> {
    let may_be = matches!(name, Some((None | Some(NameKind::Own), _)));
    let figure = OfOwn::parse(figure).filter(|_| may_be).map(Figure::Own)?;
    Some((figure, figure.unit().parse(limit).ok()?))
}

/// The name of a watched figure, its statistic and the limit: `cpu:max` or `cpu`.
fn watched_of(text: &str, limit: &str) -> Result<(String, Figure, f64), String> {
    let (name, statistic) = text.rsplit_once(':').unwrap_or((text, "mean"));
    let (name, statistic) = (name.trim(), statistic.trim());
    if name.is_empty() {
        return Err(format!("expected a name behind {WATCHED}"));
    }
    let of = OfWatched::parse(statistic).ok_or_else(|| {
        format!("'{statistic}' is not a figure of what is watched; there are mean, min, max and last")
    })?;
    let figure = Figure::Watched(of);
    let limit = figure.unit().parse(limit).map_err(|problem| problem.to_string())?;
    Ok((name.to_owned(), figure, limit))
}

/// `group cart` is the group, `cart` anything of that name, `"group cart"` anything of this longer name; `{a=b}` are
/// conditions.
fn name_of(text: &str) -> Result<(Option<NameKind>, String), String> {
    let text = text.trim();
    if text.starts_with('{') {
        return Ok((Some(NameKind::Calls), Selection::parse(text)?.to_string()));
    }
    let kind = text.split_once(' ').and_then(|(kind, name)| {
        let (_, kind) = NameKind::NAMED.into_iter().find(|(known, _)| *known == kind)?;
        Some((Some(kind), unquoted(name)))
    });
    Ok(kind.unwrap_or_else(|| (None, unquoted(text))))
}

/// A name without the quotes around it.
fn unquoted(name: &str) -> String {
    let name = name.trim();
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name).to_owned()
}

/// The one of these names that `name` most likely means: it differs by a few slips, or only in the case of its letters.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let most = (wanted.chars().count() / 3).clamp(1, 3);
    let slips = known.into_iter().map(|known| (strsim::damerau_levenshtein(&wanted, &known.to_lowercase()), known));
    slips.filter(|(slips, _)| *slips <= most).min().map(|(_, known)| known)
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.words {
            Some(words) => write!(f, "{}{}", words.figure, words.condition),
            None => f.write_str(&self.text),
        }
    }
}

impl TryFrom<String> for Threshold {
    type Error = ThresholdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// A condition in another tool's words: its left side, and its right side with the operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForeignCondition {
    /// Such as `http_req_duration: p(95)`.
    pub figure: String,
    /// Such as `<500`.
    pub condition: String,
}

/// A threshold as JSON has it.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Threshold"))]
#[serde(untagged)]
enum Written {
    /// A condition.
    Text(String),
    /// A condition, and the words in which a script has it.
    Worded {
        /// The condition.
        threshold: String,
        /// The words.
        words: ForeignCondition,
    },
}

impl From<Threshold> for Written {
    fn from(threshold: Threshold) -> Self {
        match threshold.words {
            None => Self::Text(threshold.text),
            Some(words) => Self::Worded { threshold: threshold.text, words },
        }
    }
}

impl TryFrom<Written> for Threshold {
    type Error = ThresholdError;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Text(text) => text.parse(),
            Written::Worded { threshold, words } => Ok(threshold.parse::<Self>()?.in_words(words)),
        }
    }
}

impl Threshold {
    /// Shows it in these words.
    #[must_use]
    pub fn in_words(self, words: ForeignCondition) -> Self {
        Self { words: Some(words), ..self }
    }

    /// As it is shown, without the word by which it ends the run: `p99<50ms` of `p99<50ms abort`.
    pub fn without_abort(&self) -> String {
        without_abort(&self.to_string()).0.to_owned()
    }

    /// The condition as brunt judges it, where it is shown in other words.
    pub fn judged(&self) -> Option<&str> {
        self.words.as_ref().map(|_| self.text.as_str())
    }

    /// A condition as a script writes it: `condition` follows the figure, such as `< 50ms`. It ends the run when it can
    /// no longer pass if `abort` is set, or if the condition says so.
    ///
    /// # Errors
    /// Names the part that cannot be read.
    pub fn expected(figure: &str, condition: &str, abort: bool) -> Result<Self, ThresholdError> {
        let (figure, condition) = (figure.trim(), condition.trim());
        let said = without_abort(condition).1.is_some();
        format!("{figure} {condition}{}", if abort && !said { " abort" } else { "" }).parse()
    }

    /// Checks that its figure, if it can only be a script's own, is one that the script declares, and has.
    ///
    /// # Errors
    /// Names the limit that another figure of this name would need, or the figures that there are.
    pub fn check_own(&self, declared: &[&DeclaredFigure]) -> Result<(), ThresholdError> {
        let Some((kind, name)) = self.subject() else { return Ok(()) };
        if self.objectives().is_some() {
            let problem = "the target's protocol measures no such objectives of a call".to_owned();
            let is_declared = declared.iter().any(|figure| figure.name == name);
            return if is_declared { Ok(()) } else { Err(ThresholdError { text: self.text.clone(), problem }) };
        }
        if let Some(own) = declared.iter().find(|figure| figure.is_called(name)) {
            return match kind {
                None | Some(NameKind::Own) => self.check_declared(own),
                Some(_) => Ok(()),
            };
        }
        if !matches!(self.figure, Figure::Own(_)) && kind != Some(NameKind::Own) {
            return Ok(());
        }
        let (figure, limit) = self.sides();
        let figure = figure.rsplit_once(':').map_or("", |(_, figure)| figure).trim();
        let limit = limit.trim_start_matches(['<', '>', '=']);
        let limit = without_abort(limit).0;
        let of_calls = Figure::parse(figure).filter(|_| kind.is_none());
        let problem = of_calls.and_then(|known| known.unit().parse(limit).err()).map_or_else(
            || {
                let names: Vec<_> = declared.iter().map(|figure| format!("'{}'", figure.name)).collect();
                if names.is_empty() {
                    return format!("no script declares a figure '{name}'");
                }
                format!("the script declares no figure '{name}'; it declares {}", names.join(", "))
            },
            |problem| problem.to_string(),
        );
        Err(ThresholdError { text: self.text.clone(), problem })
    }

    /// Checks that its figure is one of `own`, a script's own figure of its name.
    fn check_declared(&self, own: &DeclaredFigure) -> Result<(), ThresholdError> {
        let (kind, names) = (own.kind.name(), OfOwn::names(own.kind));
        let wanted = self.sides().0.rsplit_once(':').map_or("", |(_, figure)| figure).trim();
        let problem = match (self.figure, OfOwn::parse(wanted)) {
            (Figure::Own(_) | Figure::Rate, Some(of)) if of.is_of(own.kind) => return Ok(()),
            (Figure::Time(..), Some(of)) if of.is_of(own.kind) && time_unit_ns(&own.unit).is_some() => return Ok(()),
            (_, Some(of)) if of.is_of(own.kind) => {
                format!("'{}' is a {kind} of the script: its limit is a plain number, in the script's unit", own.name)
            }
            _ => format!("'{}' is a {kind} of the script, which has {names}, and no {wanted}", own.name),
        };
        Err(ThresholdError { text: self.text.clone(), problem })
    }

    /// Checks that the scenario that it names is one that the script declares.
    ///
    /// # Errors
    /// Suggests a scenario, or lists them.
    pub fn check_scenario(&self, declared: &[String]) -> Result<(), ThresholdError> {
        let named = match self.subject() {
            Some((Some(NameKind::Scenario), name)) => Some(name.to_owned()),
            _ => self.selection().and_then(|selection| {
                let (_, name) = selection.conditions().find(|(key, _)| *key == "scenario")?;
                Some(name.to_owned())
            }),
        };
        let Some(name) = named.filter(|name| !declared.contains(name)) else { return Ok(()) };
        let problem = match nearest(&name, declared.iter().map(String::as_str)) {
            Some(near) => format!("the script has no scenario '{name}'; did you mean '{near}'?"),
            None => format!("the script has no scenario '{name}'; it has '{}'", declared.join("', '")),
        };
        Err(ThresholdError { text: self.text.clone(), problem })
    }

    /// Checks that the watched figure that it is about is one of `names`.
    ///
    /// # Errors
    /// Suggests a figure, or lists them.
    pub fn check_watched(&self, names: &[String]) -> Result<(), ThresholdError> {
        let Some((Some(NameKind::Watched), name)) = self.subject() else { return Ok(()) };
        if names.iter().any(|known| known == name) {
            return Ok(());
        }
        let all = || names.iter().map(|name| format!("{WATCHED}{name}")).collect::<Vec<_>>().join(", ");
        let problem = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("nothing is watched as '{name}'; did you mean {WATCHED}{near}?"),
            None if names.is_empty() => format!("nothing is watched as '{name}': give --watch"),
            None => format!("nothing is watched as '{name}'; there is {}", all()),
        };
        Err(ThresholdError { text: self.text.clone(), problem })
    }

    /// An implicit threshold, on all calls or on a named subject.
    pub fn implicit(subject: Option<(NameKind, &str)>, figure: Figure, operator: Operator, limit: f64) -> Self {
        let name = subject.map(|(kind, name)| (Some(kind), name.to_owned()));
        let before = subject.map_or_else(String::new, |(kind, name)| format!("{} {name}:", kind.word()));
        let text = format!("{before}{}{}{}", figure.share_name(), operator.sign(), figure.unit().show(limit));
        Self { text, words: None, name, abort: None, figure, operator, limit }
    }

    /// Whether it limits the share of calls or iterations that are not ok.
    pub fn is_about_errors(&self) -> bool {
        matches!(self.figure, Figure::ErrorRate)
    }

    /// Whether it limits the time for which connections had no server.
    pub fn is_about_availability(&self) -> bool {
        matches!(self.figure, Figure::Availability)
    }

    /// Whether it limits iterations that an error ended.
    pub fn is_about_script_errors(&self) -> bool {
        matches!(self.figure, Figure::ScriptErrorRate | Figure::Count(Count::ScriptErrors))
    }

    /// Whether it limits the share of checks that must hold.
    pub fn is_about_checks(&self) -> bool {
        matches!(self.figure, Figure::Checks | Figure::Count(Count::Passes | Count::Fails))
    }

    /// When it ends the run, if it does.
    pub fn aborts(&self) -> Option<Abort> {
        self.abort
    }

    /// Its subject, with the kind if the text names one; `None` for all calls.
    pub fn subject(&self) -> Option<(Option<NameKind>, &str)> {
        self.name.as_ref().map(|(kind, name)| (*kind, name.as_str()))
    }

    /// Its conditions on calls, if it has some.
    pub fn selection(&self) -> Option<Selection> {
        let (kind, name) = self.subject()?;
        kind.filter(|kind| *kind == NameKind::Calls).and_then(|_| Selection::parse(name).ok())
    }

    /// The objectives of a call whose share of calls it limits: `ttft<500ms,tpot<50ms` of `within(ttft<500ms,tpot<50ms)>90%`.
    pub fn objectives(&self) -> Option<&str> {
        match self.subject() {
            Some((Some(NameKind::Own), name)) => name.strip_prefix(WITHIN)?.strip_suffix(')'),
            _ => None,
        }
    }

    /// The figure that it limits.
    pub fn measure(&self) -> Figure {
        self.figure
    }

    /// How many calls a percentile of the response or service time of all calls takes, to be bounded from above; `None` of
    /// other figures.
    pub fn fewest_calls(&self) -> Option<u64> {
        let is_of_calls = |time| matches!(time, Time::Usual | Time::Recorded(Timing::Response | Timing::Service));
        match self.figure {
            Figure::Time(time, Statistic::Quantile(q)) if self.name.is_none() && is_of_calls(time) => {
                Some(fewest_calls(q))
            }
            _ => None,
        }
    }

    /// How the figure is compared with [`Threshold::limit`].
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The sides of the condition as brunt judges it, the right one with the operator.
    fn sides(&self) -> (&str, &str) {
        let end = Operator::find(&self.text).map_or(0, |(at, _)| at);
        self.text.split_at_checked(end).unwrap_or((&self.text, ""))
    }

    /// Its left side as written: `p99`, `home:p95`.
    pub fn figure(&self) -> &str {
        self.words.as_ref().map_or_else(|| self.sides().0.trim(), |words| &words.figure)
    }

    /// Its right side as written, with the operator and without `abort`: `<50ms`.
    pub fn condition(&self) -> &str {
        self.words.as_ref().map_or_else(|| without_abort(self.sides().1).0, |words| &words.condition)
    }

    /// The limit, in the figure's base unit: nanoseconds, a share from 0 to 1, bytes or a number.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// The quantile (0 to 1) of the response time of all calls, if it limits one.
    pub fn response_quantile(&self) -> Option<f64> {
        match self.figure {
            Figure::Time(Time::Usual | Time::Recorded(Timing::Response), Statistic::Quantile(q))
                if self.name.is_none() =>
            {
                Some(q)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
