//! Figures of a run in the formats of monitoring systems: pure encoders, without I/O and clock.
//!
//! ```text
//! Live ──Second::metrics──▶ Vec<Metric> ──┬──▶ otlp::metrics     an OTLP request, of differences or of sums so far
//!                                         └──▶ Sums ──▶ prometheus::text, prometheus::protobuf
//! ```
//!
//! A [`Metric`] has the name, unit and description that all formats share; [`second`] makes metrics from a second of a
//! run, by the catalogue of figures. Distributions stay [`Histogram`](brunt_record::histogram::Histogram)s until they
//! are encoded: they merge without loss, and [`exponential`] turns them into the buckets that OpenTelemetry and
//! Prometheus know.
//!
//! The number of series is bounded: [`Names`] tells a limited number of names of a kind apart, and counts the others
//! together.

pub mod exponential;
mod model;
pub mod otlp;
pub mod prometheus;
pub mod second;
mod series_names;
mod sums;

pub use model::{Attribute, Attributes, Data, Exemplar, Metric, MetricPoint, Number, Value};
pub use second::Subject;
pub use series_names::{MOST_SERIES, Names, OTHERS};
pub use sums::Sums;
