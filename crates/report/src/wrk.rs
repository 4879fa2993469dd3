//! The layout that wrk 4.1 prints, for scripts that read it.
//!
//! What differs from wrk is where the figures come from, not how they are laid out:
//!
//! - Latency is the response time of every call, failed ones and lower bounds too; wrk keeps only answered ones. The
//!   distribution is printed only on demand ([`Style::wrk_latency`]), as wrk prints it with `--latency`.
//! - `Req/Sec` is, as wrk's, a distribution of one thread's requests a second: wrk takes a value from each thread every
//!   100 ms, here each second of the run gives one, its rate over the number of workers. So the average means the same,
//!   the deviation is smaller.
//! - Requests and bytes are those of the measured part. Bytes are clear ones, as wrk counts them above TLS.
//! - Failures fall under wrk's four socket errors: what happened before a connection was ready under `connect`;
//!   `read`, `closed` and `protocol` under `read`.
//!
//! A verdict that spoils figures, and calls whose latency is known only from below, stand after wrk's last line, where
//! wrk's own scripts print what they have to say.

use std::io::{self, Write};

use brunt_judge::distribution::Distribution;
use brunt_judge::summary::Summary;
use brunt_plan::connections::Connections;
use brunt_record::catalogue::Counter;
use brunt_record::histogram::{AtLeast, Percentile};
use brunt_record::outcome::Failure;

use crate::numbers::{clean, counted};
use crate::style::Style;

/// The quantiles that wrk prints.
const PRINTED: [(&str, Percentile); 4] =
    [("50", Percentile::P50), ("75", Percentile::P75), ("90", Percentile::P90), ("99", Percentile::P99)];

/// Writes `summary` as wrk would.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary, style: Style) -> io::Result<()> {
    let (plan, run) = (&summary.plan, &summary.run);
    let duration_ns = plan.duration_ns().unwrap_or(run.measured_ns);
    writeln!(out, "Running {} test @ {}", whole_seconds(duration_ns), clean(&plan.target.url()))?;
    let connections = match plan.connections {
        Connections::Fixed(number) => number.into(),
        Connections::UpTo(_) => summary.total.numbers.get(Counter::ConnectionsMade),
    };
    writeln!(out, "  {} threads and {connections} connections", plan.workers)?;
    writeln!(out, "  Thread Stats   Avg      Stdev     Max   +/- Stdev")?;
    write_row(out, "Latency", &latency(summary), microseconds)?;
    write_row(out, "Req/Sec", &thread_rate(summary), metric)?;
    if style.wrk_latency {
        // As in wrk: each answer with its duration, whatever its status.
        let times = Distribution::from_durations(&summary.total.response_times().pooled());
        write_latency(out, times.as_ref())?;
    }
    write_totals(out, summary)?;
    write_verdict(out, summary)
}

/// One line of wrk's "Thread Stats".
struct Row {
    mean: f64,
    stdev: f64,
    max: f64,
    /// In percent; not a number without values.
    within_stdev: f64,
}

impl Row {
    const EMPTY: Self = Self { mean: 0.0, stdev: 0.0, max: 0.0, within_stdev: f64::NAN };
}

/// Response times in microseconds.
fn latency(summary: &Summary) -> Row {
    let Some(response) = &summary.times.response else { return Row::EMPTY };
    let within = summary.total.response_times().lower().share_within_stdev(1.0);
    if summary.total.response_times().pooled().count() == 1 {
        // A bucket has a width, and one call no deviation.
        let (mean, max) = (response.mean.value / 1e3, response.max.value as f64 / 1e3);
        return Row { mean, stdev: 0.0, max, within_stdev: 100.0 };
    }
    Row {
        mean: response.mean.value / 1e3,
        stdev: response.stdev.value / 1e3,
        max: response.max.value as f64 / 1e3,
        within_stdev: within.map_or(f64::NAN, |share| share * 100.0),
    }
}

/// Requests a second of one thread, a value from each point of the series; whole numbers, as in wrk.
fn thread_rate(summary: &Summary) -> Row {
    let workers = f64::from(summary.plan.workers.max(1));
    let rates: Vec<_> =
        summary.run.series.points().iter().map(|point| (point.answered_per_s() / workers).floor()).collect();
    if summary.total.numbers.get(Counter::EndedAnswered) == 0 || rates.is_empty() {
        return Row::EMPTY;
    }
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    // The deviation of a sample, as in wrk.
    let stdev = if rates.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
    let within = rates.iter().filter(|rate| (**rate - mean).abs() <= stdev).count();
    Row { mean, stdev, max: rates.iter().copied().fold(0.0, f64::max), within_stdev: within as f64 / n * 100.0 }
}

fn write_row(out: &mut impl Write, name: &str, row: &Row, unit: fn(f64) -> String) -> io::Result<()> {
    let within = if row.within_stdev.is_nan() { format!("{:>8}", "-nan") } else { format!("{:8.2}", row.within_stdev) };
    writeln!(
        out,
        "    {name:<10}{}{}{}{within}%",
        cell(&unit(row.mean), 8),
        cell(&unit(row.stdev), 10),
        cell(&unit(row.max), 9),
    )
}

fn write_latency(out: &mut impl Write, response: Option<&Distribution>) -> io::Result<()> {
    writeln!(out, "  Latency Distribution")?;
    for (percent, percentile) in PRINTED {
        let value = response.and_then(|times| times.quantile(percentile)).unwrap_or(AtLeast::exactly(0));
        writeln!(out, "{percent:>7}%{}", cell(&microseconds(value.value as f64 / 1e3), 10))?;
    }
    Ok(())
}

fn write_totals(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let measured = &summary.run.measured;
    let took = microseconds(summary.run.measured_ns as f64 / 1e3);
    let read = binary(measured.numbers.get(Counter::ClearIn) as f64);
    writeln!(out, "  {} requests in {took}, {read}B read", summary.total.numbers.get(Counter::EndedAnswered))?;
    let errors = SocketErrors::from_summary(summary);
    if errors != SocketErrors::default() {
        let SocketErrors { connect, read, write, timeout } = errors;
        writeln!(out, "  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}")?;
    }
    let bad: u64 = measured.statuses.sorted().iter().filter(|(status, _)| *status > 399).map(|(_, n)| n).sum();
    if bad > 0 {
        writeln!(out, "  Non-2xx or 3xx responses: {bad}")?;
    }
    writeln!(out, "Requests/sec: {:9.2}", summary.rates.answered_per_s)?;
    writeln!(out, "Transfer/sec: {:>10}B", binary(summary.rates.clear_in_per_s))
}

fn write_verdict(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    if !summary.verdict.is_trustworthy() {
        writeln!(out, "Verdict: {}", summary.verdict.sentence)?;
    }
    let (unfinished, unsent) =
        (summary.total.numbers.get(Counter::Unfinished), summary.total.numbers.get(Counter::Unsent));
    if unfinished + unsent > 0 {
        let calls = counted(unfinished + unsent, "call");
        writeln!(out, "Lower bounds: {calls} had not ended ({unfinished} unfinished, {unsent} unsent)")?;
    }
    Ok(())
}

/// wrk's names for failures.
#[derive(Default, PartialEq)]
struct SocketErrors {
    connect: u64,
    read: u64,
    write: u64,
    timeout: u64,
}

impl SocketErrors {
    fn from_summary(summary: &Summary) -> Self {
        let mut errors = Self::default();
        for (failure, n) in summary.total.failures.counted() {
            *match failure {
                Failure::Blocked
                | Failure::Resolve
                | Failure::Connect
                | Failure::ConnectTimeout
                | Failure::Ports
                | Failure::Descriptors
                | Failure::Tls
                | Failure::Handshake => &mut errors.connect,
                Failure::Read
                | Failure::Closed
                | Failure::Protocol
                | Failure::Oversize
                | Failure::Sequence
                | Failure::Mismatch
                | Failure::Exception
                | Failure::EndedEarly => &mut errors.read,
                Failure::Write => &mut errors.write,
                Failure::Timeout | Failure::Stalled => &mut errors.timeout,
            } += n;
        }
        errors
    }
}

/// `text` right-aligned so that the numbers of a column line up: its unit extends up to two characters beyond them. Cut
/// if it is longer, as wrk's is.
fn cell(text: &str, width: usize) -> String {
    let mut last = text.chars().rev();
    let unit = [last.next(), last.next()].into_iter().flatten().filter(char::is_ascii_alphabetic).count();
    let pad = 2 - unit;
    let width = width - pad;
    format!("{text:>width$.width$}{:pad$}", "")
}

/// `amount` in the largest of `units` (each `scale` times the last) that it reaches 85% of.
fn scaled(mut amount: f64, scale: f64, base: &str, units: &[&str], decimals: usize) -> String {
    let mut unit = base;
    for larger in units {
        if amount < scale * 0.85 {
            break;
        }
        amount /= scale;
        unit = larger;
    }
    format!("{amount:.decimals$}{unit}")
}

fn binary(bytes: f64) -> String {
    scaled(bytes, 1024.0, "", &["K", "M", "G", "T"], 2)
}

fn metric(n: f64) -> String {
    scaled(n, 1000.0, "", &["k", "M", "G", "T"], 2)
}

/// A time given in microseconds. wrk knows no hours here.
fn microseconds(us: f64) -> String {
    if us >= 1e6 { scaled(us / 1e6, 60.0, "s", &["m"], 2) } else { scaled(us, 1000.0, "us", &["ms"], 2) }
}

/// A length given in nanoseconds, in whole seconds or minutes.
fn whole_seconds(ns: u64) -> String {
    scaled((ns as f64 / 1e9).floor(), 60.0, "s", &["m"], 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As wrk 4.1 prints them.
    #[test]
    fn units_are_wrks() {
        for (us, text) in [
            (0.0, "0.00us"),
            (335.82, "335.82us"),
            (849.0, "849.00us"),
            (880.0, "0.88ms"),
            (12_090.0, "12.09ms"),
            (999_000.0, "999.00ms"),
            (1_010_000.0, "1.01s"),
            (51e6, "0.85m"),
            (7200e6, "120.00m"),
        ] {
            assert_eq!(microseconds(us), text);
        }
        assert_eq!(metric(39_520.0), "39.52k");
        assert_eq!(metric(0.0), "0.00");
        assert_eq!(binary(12_048_138.0), "11.49M");
        assert_eq!(binary(900.0), "0.88K");
        assert_eq!(whole_seconds(10_000_000_000), "10s");
        assert_eq!(whole_seconds(60_000_000_000), "1m");
    }

    /// Rows that wrk 4.1 printed.
    #[test]
    fn columns_are_wrks() {
        let row = |name, row: &Row, unit| {
            let mut line = Vec::new();
            write_row(&mut line, name, row, unit).unwrap();
            String::from_utf8(line).unwrap()
        };
        let latency = Row { mean: 335.82, stdev: 880.0, max: 12_090.0, within_stdev: 92.16 };
        assert_eq!(row("Latency", &latency, microseconds), "    Latency   335.82us    0.88ms  12.09ms   92.16%\n");
        let rate = Row { mean: 39_520.0, stdev: 10_310.0, max: 57_740.0, within_stdev: 60.0 };
        assert_eq!(row("Req/Sec", &rate, metric), "    Req/Sec    39.52k    10.31k   57.74k    60.00%\n");
        assert_eq!(row("Latency", &Row::EMPTY, microseconds), "    Latency     0.00us    0.00us   0.00us    -nan%\n");
        assert_eq!(row("Req/Sec", &Row::EMPTY, metric), "    Req/Sec     0.00      0.00     0.00      -nan%\n");
        assert_eq!(cell("102.00us", 10), "  102.00us");
        assert_eq!(cell("3.26ms", 10), "    3.26ms");
    }
}
