//! Metrics, common to all formats: a name, points, and attributes that tell the points apart.

use std::borrow::Cow;

use brunt_record::histogram::Histogram;

/// A metric with its points.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name, with dots between its parts.
    pub name: Cow<'static, str>,
    /// The description, in a sentence.
    pub description: Cow<'static, str>,
    /// Its unit as UCUM writes it: `s`, `By`, `1`, or an annotation such as `{call}`.
    pub unit: Cow<'static, str>,
    /// Its points.
    pub data: Data,
}

impl Metric {
    /// A metric of this name.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        unit: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
        data: Data,
    ) -> Self {
        Self { name: name.into(), unit: unit.into(), description: description.into(), data }
    }
}

/// The points of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Sums of what happened in an interval.
    Sum {
        /// Whether the sums only grow.
        monotonic: bool,
        /// One for each set of attributes.
        points: Vec<MetricPoint<Number>>,
    },
    /// Values at the end of an interval.
    Gauge(Vec<MetricPoint<f64>>),
    /// Distributions of what happened in an interval.
    Distribution {
        /// The factor from a value of the histograms to the metric's unit: 1e-9 for nanoseconds shown in seconds.
        factor: f64,
        /// One for each set of attributes.
        points: Vec<MetricPoint<Histogram>>,
    },
}

impl Data {
    /// A sum that only grows.
    pub fn counter(points: Vec<MetricPoint<Number>>) -> Self {
        Self::Sum { monotonic: true, points }
    }

    /// Distributions of nanoseconds, shown in seconds.
    pub fn times(points: Vec<MetricPoint<Histogram>>) -> Self {
        Self::Distribution { factor: 1e-9, points }
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Sum { points, .. } => points.is_empty(),
            Self::Gauge(points) => points.is_empty(),
            Self::Distribution { points, .. } => points.is_empty(),
        }
    }
}

/// A value with the attributes that tell it from the others of its metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPoint<T> {
    /// The attributes, in a fixed order for each metric.
    pub attributes: Attributes,
    /// The value.
    pub value: T,
    /// Calls among the counted ones, by which traces are found.
    pub exemplars: Vec<Exemplar>,
}

impl<T> MetricPoint<T> {
    /// A point.
    pub const fn new(attributes: Attributes, value: T) -> Self {
        Self { attributes, value, exemplars: Vec::new() }
    }
}

/// A call of a distribution, with its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemplar {
    /// The value as in the histogram.
    pub value: u64,
    /// The time of the call's end, in nanoseconds since 1970-01-01 UTC.
    pub at_unix_ns: u64,
    /// The id of its trace: 32 hexadecimal digits.
    pub trace_id: String,
}

/// A number that can be added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole number.
    Whole(u64),
    /// A real number.
    Real(f64),
}

impl Number {
    /// The number as a floating-point number.
    pub const fn real(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Real(x) => x,
        }
    }

    /// The sum of two numbers; whole as long as both are.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Self::Whole(one.saturating_add(other)),
            (one, other) => Self::Real(one.real() + other.real()),
        }
    }
}

/// A name and a value.
pub type Attribute = (Cow<'static, str>, Value);
/// Names and values.
pub type Attributes = Vec<Attribute>;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A whole number.
    Whole(i64),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Whole(number.into())
    }
}
