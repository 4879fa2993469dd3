//! The metrics in Prometheus's text format (version 0.0.4).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brunt_coalesce::Counters;
use http::StatusCode;

/// Upper bounds of how long answers took, in seconds.
const BOUNDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// How the upstream failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpstreamFailure {
    Connect,
    Timeout,
    Protocol,
    /// In the middle of a body.
    Body,
}

/// Counters of a proxy.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by status: at most 900 of them.
    answered: Mutex<BTreeMap<u16, u64>>,
    took: Durations,
    waits: Durations,
    body_bytes: AtomicU64,
    connections: AtomicU64,
    open: AtomicI64,
    in_flight: AtomicI64,
    tunnels: AtomicI64,
    failures: [AtomicU64; 4],
    lost_lines: AtomicU64,
    timed_out: AtomicU64,
}

/// A histogram of times.
#[derive(Debug, Default)]
struct Durations {
    seconds: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Durations {
    fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let at = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(bucket) = self.seconds.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    fn write(&self, page: &mut Page, name: &str, help: &str) {
        page.about(name, "histogram", help);
        let mut sum = 0;
        let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(&self.seconds) {
            sum += count.load(Ordering::Relaxed);
            page.line(&format!("{name}_bucket{{le=\"{bound}\"}}"), sum);
        }
        let total = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed));
        page.line(&format!("{name}_sum"), total.as_secs_f64());
        page.line(&format!("{name}_count"), sum);
    }
}

/// Counts one as open until it is dropped.
pub(crate) struct Open {
    metrics: Arc<Metrics>,
    gauge: fn(&Metrics) -> &AtomicI64,
}

impl Drop for Open {
    fn drop(&mut self) {
        (self.gauge)(&self.metrics).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    fn open(self: &Arc<Self>, gauge: fn(&Self) -> &AtomicI64) -> Open {
        gauge(self).fetch_add(1, Ordering::Relaxed);
        Open { metrics: Arc::clone(self), gauge }
    }

    pub(crate) fn connection(self: &Arc<Self>) -> Open {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.open(|metrics| &metrics.open)
    }

    pub(crate) fn request(self: &Arc<Self>) -> Open {
        self.open(|metrics| &metrics.in_flight)
    }

    pub(crate) fn tunnel(self: &Arc<Self>) -> Open {
        self.open(|metrics| &metrics.tunnels)
    }

    pub(crate) fn answered(&self, status: StatusCode, took: Duration, body_bytes: u64) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner).entry(status.as_u16()).or_default() += 1;
        self.took.add(took);
        self.body_bytes.fetch_add(body_bytes, Ordering::Relaxed);
    }

    pub(crate) fn upstream_failed(&self, how: UpstreamFailure) {
        if let Some(counter) = self.failures.get(how as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a connection or stream that was ended because its client took too long.
    pub(crate) fn timed_out(&self) {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn lines_lost(&self, lines: u64) {
        self.lost_lines.fetch_add(lines, Ordering::Relaxed);
    }

    /// Counts a request that waited this long for the head of another's answer.
    pub(crate) fn waited(&self, time: Duration) {
        self.waits.add(time);
    }

    /// Requests that were answered.
    pub(crate) fn requests(&self) -> u64 {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    /// Everything in Prometheus' text format.
    pub(crate) fn text(&self, coalesce: Option<(Counters, usize)>) -> String {
        let mut page = Page(String::new());
        page.about("requests_total", "counter", "Requests answered, by status.");
        for (status, count) in self.answered.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            page.line(&format!("requests_total{{status=\"{status}\"}}"), count);
        }
        self.took.write(&mut page, "request_duration_seconds", "From a request's head to the end of its answer.");
        let counter = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let gauge = |gauge: &AtomicI64| gauge.load(Ordering::Relaxed);
        page.one("response_body_bytes_total", "counter", "Bytes of bodies sent to clients.", counter(&self.body_bytes));
        page.one("connections_total", "counter", "Connections accepted.", counter(&self.connections));
        page.one("connections_open", "gauge", "Connections of clients that are open.", gauge(&self.open));
        page.one("requests_in_flight", "gauge", "Requests that are being answered.", gauge(&self.in_flight));
        page.one("upgraded_open", "gauge", "Upgraded connections that are open.", gauge(&self.tunnels));
        page.about("upstream_failures_total", "counter", "Requests that the upstream did not answer to the end.");
        for (how, count) in ["connect", "timeout", "protocol", "body"].iter().zip(&self.failures) {
            page.line(&format!("upstream_failures_total{{how=\"{how}\"}}"), counter(count));
        }
        let timed_out = counter(&self.timed_out);
        let help = "Connections and streams that were ended because their clients took too long.";
        page.one("timed_out_total", "counter", help, timed_out);
        let lost = counter(&self.lost_lines);
        page.one("access_log_lost_total", "counter", "Lines of the access log that could not be written.", lost);
        if let Some((counters, held)) = coalesce {
            for (name, value) in counters.each() {
                page.one(
                    &format!("coalesce_{name}_total"),
                    "counter",
                    "See the documentation of brunt-coalesce.",
                    value,
                );
            }
            let help = "How long a request waited for the head of another's answer.";
            self.waits.write(&mut page, "coalesce_wait_seconds", help);
            page.one("coalesce_held_bytes", "gauge", "Bytes of bodies held for followers.", held);
        }
        page.0
    }
}

/// A page in the making.
struct Page(String);

impl Page {
    fn about(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "# HELP brunt_proxy_{name} {help}\n# TYPE brunt_proxy_{name} {kind}\n");
    }

    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "brunt_proxy_{name} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.about(name, kind, help);
        self.line(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_prometheus_reads() {
        let metrics = Arc::new(Metrics::default());
        metrics.answered(StatusCode::OK, Duration::from_millis(2), 10);
        metrics.answered(StatusCode::OK, Duration::from_secs(60), 10);
        metrics.upstream_failed(UpstreamFailure::Timeout);
        let open = metrics.connection();
        let text = metrics.text(Some((Counters::default(), 7)));
        drop(open);
        for line in [
            "brunt_proxy_requests_total{status=\"200\"} 2",
            "brunt_proxy_request_duration_seconds_bucket{le=\"0.001\"} 0",
            "brunt_proxy_request_duration_seconds_bucket{le=\"0.0025\"} 1",
            "brunt_proxy_request_duration_seconds_bucket{le=\"+Inf\"} 2",
            "brunt_proxy_request_duration_seconds_sum 60.002",
            "brunt_proxy_connections_open 1",
            "brunt_proxy_upstream_failures_total{how=\"timeout\"} 1",
            "brunt_proxy_coalesce_flights_total 0",
            "brunt_proxy_coalesce_wait_seconds_count 0",
            "brunt_proxy_coalesce_held_bytes 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
        assert!(metrics.text(None).contains("connections_open 0\n"));
    }
}
