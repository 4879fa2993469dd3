//! Values of Lua, and the options in a table of them.

use std::borrow::Cow;
use std::fmt::Write as _;

use brunt_plan::units;
use serde::{Deserialize, Serialize};

use crate::OptionsError;

/// A value of Lua. It survives being written down and read back, so that it can travel to another machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value<'a> {
    /// `nil`.
    Nil,
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A string, which need not be UTF-8.
    Text(Cow<'a, [u8]>),
    /// A table, by its keys. The order of keys other than 1, 2, 3 … is arbitrary.
    Table(Vec<(Value<'a>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// A string.
    pub fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text.as_bytes()))
    }

    /// A sequence: a table with the keys 1, 2, 3 …
    pub fn list(values: impl IntoIterator<Item = Value<'a>>) -> Self {
        Self::Table(values.into_iter().enumerate().map(|(at, value)| (Value::Number((at + 1) as f64), value)).collect())
    }

    /// Its type, in Lua's words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Boolean(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Table(_) => "a table",
        }
    }

    /// Its bytes, if it is a string.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Its text, if it is a string in UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        self.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// Its number, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Its entries, if it is a table.
    pub fn entries(&self) -> &[(Value<'a>, Value<'a>)] {
        match self {
            Self::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The entry of this name; `Nil` if there is none, or if this is no table.
    pub fn get(&self, name: &str) -> &Value<'a> {
        let entry = self.entries().iter().find(|(key, _)| key.as_str() == Some(name));
        entry.map_or(&Value::Nil, |(_, value)| value)
    }

    /// Whether it is `nil`.
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// The value with strings of its own.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Nil => Value::Nil,
            Self::Boolean(value) => Value::Boolean(value),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Table(entries) => {
                Value::Table(entries.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
            }
        }
    }
}

/// Options of a table, each read by its name. Errors say what an option may be.
///
/// ```
/// use brunt_protocol::scenario::{Fields, Value};
///
/// let table = Value::Table(vec![(Value::text("until"), Value::text("\n"))]);
/// let fields = Fields::parse("brunt.tcp", &table, &["until", "expect"])?;
/// assert_eq!(fields.text("until")?, Some("\n"));
/// assert_eq!(fields.text("expect")?, None);
/// let typo = Value::Table(vec![(Value::text("untill"), Value::text("\n"))]);
/// let error = Fields::parse("brunt.tcp", &typo, &["until", "expect"]).err().map(|e| e.to_string());
/// assert_eq!(error.as_deref(), Some("brunt.tcp has no option 'untill'; did you mean 'until'?"));
/// # Ok::<(), brunt_protocol::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Fields<'v> {
    whose: &'v str,
    table: &'v Value<'v>,
}

impl<'v> Fields<'v> {
    /// The options in `table` (`Nil` for none). `whose` names their owner in errors; `known` are the names that exist.
    ///
    /// # Errors
    /// When it is no table, or has an option that is not known.
    pub fn parse(whose: &'v str, table: &'v Value<'v>, known: &[&str]) -> Result<Self, OptionsError> {
        if !matches!(table, Value::Nil | Value::Table(_)) {
            return Err(OptionsError(format!("{whose} takes a table of options, not {}", table.kind())));
        }
        for (key, _) in table.entries() {
            let Some(name) = key.as_str() else {
                return Err(OptionsError(format!("{whose}: the name of an option is a string, not {}", key.kind())));
            };
            if !known.contains(&name) {
                return Err(OptionsError(unknown(whose, name, known)));
            }
        }
        Ok(Self { whose, table })
    }

    /// The value of the option `name`.
    pub fn value(&self, name: &str) -> &'v Value<'v> {
        self.table.get(name)
    }

    /// The error that the option `name` has a wrong value.
    pub fn wrong(&self, name: &str, expected: &str) -> OptionsError {
        let value = self.value(name);
        let got = match value {
            Value::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
            Value::Number(number) => number.to_string(),
            other => other.kind().to_owned(),
        };
        OptionsError(format!("{}: {name} must be {expected}, not {got}", self.whose))
    }

    /// A string.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(&self, name: &str) -> Result<Option<&'v str>, OptionsError> {
        match self.value(name) {
            Value::Nil => Ok(None),
            value => value.as_str().map(Some).ok_or_else(|| self.wrong(name, "a string")),
        }
    }

    /// A boolean.
    ///
    /// # Errors
    /// When it is something else.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, OptionsError> {
        match self.value(name) {
            Value::Nil => Ok(None),
            Value::Boolean(value) => Ok(Some(*value)),
            _ => Err(self.wrong(name, "true or false")),
        }
    }

    /// A whole number in this range.
    ///
    /// # Errors
    /// When it is something else.
    pub fn count(&self, name: &str, range: std::ops::RangeInclusive<u32>) -> Result<Option<u32>, OptionsError> {
        match self.value(name) {
            Value::Nil => Ok(None),
            value => value
                .as_number()
                .filter(|number| number.fract() == 0.0)
                .filter(|number| (f64::from(*range.start())..=f64::from(*range.end())).contains(number))
                .map(|number| Some(number as u32))
                .ok_or_else(|| self.wrong(name, &format!("a whole number from {} to {}", range.start(), range.end()))),
        }
    }

    /// A duration above 0, in nanoseconds: seconds, or a text such as "500ms".
    ///
    /// # Errors
    /// When it is something else.
    pub fn duration_ns(&self, name: &str) -> Result<Option<u64>, OptionsError> {
        match self.value(name) {
            Value::Nil => Ok(None),
            value => duration_ns(value)
                .filter(|ns| *ns > 0)
                .map(Some)
                .ok_or_else(|| self.wrong(name, "a duration above 0 such as 2 (seconds) or \"500ms\"")),
        }
    }
}

/// A duration in nanoseconds: a number of seconds, or a text with its unit. None if it is neither.
pub fn duration_ns(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::Number(seconds) => {
            (0.0..=units::LONGEST_NS as f64 / 1e9).contains(seconds).then(|| (seconds * 1e9).round() as u64)
        }
        text => units::parse_duration(text.as_str()?).ok(),
    }
}

/// The message that `whose` has nothing called `name`, with a suggestion.
pub fn unknown(whose: &str, name: &str, known: &[&str]) -> String {
    near(format!("{whose} has no option '{name}'"), name, known)
}

/// A number in digits: a whole one with all of them, a fraction with as many as read back as the same number.
pub fn number_text(number: f64) -> String {
    let size = number.abs();
    let is_plain = size == 0.0 || (1e-7..1e21).contains(&size);
    if is_plain { format!("{number}") } else { format!("{number:e}") }
}

/// Whether a script's number may be a whole one of 64 bits whose last digits a double has lost: beyond 2^53, below 2^64, and of more digits than
/// the 15 that every double keeps. A number of fewer digits, behind which zeros stand, is as it was written.
pub fn is_rounded(number: f64) -> bool {
    const KEPT: usize = 15;

    let size = number.abs();
    let digits = || format!("{size}").trim_end_matches('0').len();
    size > 9_007_199_254_740_992.0 && size < 18_446_744_073_709_551_616.0 && digits() > KEPT
}

/// The problem with such a number, and how it is written instead.
pub fn rounded(number: f64) -> String {
    format!(
        "{number:.0} is beyond 2^53, where numbers of a script are rounded: write its digits as a text, or as an integer such as 9007199254740993LL"
    )
}

/// The error about a name that a module or an object does not have, with the nearest of those that it has.
pub fn unknown_name(whose: &str, name: &str, known: &[&str]) -> String {
    near(format!("{whose} has no '{name}'"), name, known)
}

/// Adds the nearest name to an error, or all of them where none is near.
fn near(mut text: String, name: &str, known: &[&str]) -> String {
    let by_letters = known.iter().map(|known| (strsim::osa_distance(name, known), *known)).min();
    let near: Vec<_> = match by_letters {
        // Of a short name that differs in most of its letters nothing is meant.
        Some((distance, near)) if distance <= 2 && 2 * distance <= name.chars().count() => vec![near],
        // `iterations` is a part of `iterations_each`, and `post_json` has `json` as one.
        _ => known.iter().filter(|known| is_part(name, known) || is_part(known, name)).copied().collect(),
    };
    let _ = if near.is_empty() {
        write!(text, "; it has {}", known.join(", "))
    } else {
        write!(text, "; did you mean '{}'?", near.join("' or '"))
    };
    text
}

/// Whether one name is a part of another, and long enough to say something.
fn is_part(part: &str, whole: &str) -> bool {
    part.len() >= 4 && whole.contains(part)
}
