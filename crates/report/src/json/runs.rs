//! What a document says of its run to those who decide over several.

use brunt_model::compare::{Figures, MessageFigures};
use brunt_model::evidence::{Evidence, falls_behind};
use brunt_model::histogram::{AtLeast, Censored};
use brunt_model::outline::Outline;
use brunt_model::series::Point;
use brunt_model::snapshot;
use brunt_model::summary::Ending;
use brunt_model::threshold::ThresholdResult;

use super::{Document, SeriesPoint};

impl Document {
    /// The figures that are compared.
    pub fn figures(&self) -> Figures {
        let response =
            Censored { known: self.histograms.response.clone(), bounds: self.histograms.response_bounds.clone() };
        let figures =
            Figures::new(self.rates.answered_per_s, self.outcomes.answered, self.outcomes.error_ratio, &response);
        let messages = MessageFigures::new(&self.messages(), self.rates.messages_per_s);
        Figures { messages, ..figures }.but_for(&self.evidence())
    }

    /// The measured part over time.
    pub fn points(&self) -> Vec<Point> {
        self.series.iter().map(SeriesPoint::point).collect()
    }

    /// The figures that a decision rests on.
    pub fn evidence(&self) -> Evidence {
        let answered = self.outcomes.answered > 0;
        let response = self.times.response.as_ref().filter(|_| answered);
        let service = self.times.service.as_ref().filter(|_| answered);
        let quantile = |times: Option<&super::Distribution>, name: &str| {
            let found = times?.quantiles.iter().find(|quantile| quantile.name == name)?;
            Some(AtLeast { value: found.value_ns, at_least: found.at_least })
        };
        let failure = self.outcomes.failures.iter().max_by_key(|failure| failure.count);
        Evidence {
            started_unix_ms: self.started_unix_ms,
            measured_ns: self.measured.length_ns,
            due: self.outcomes.due,
            answered: self.outcomes.answered,
            ok: self.outcomes.due.saturating_sub(self.outcomes.not_ok),
            failed: self.outcomes.not_ok,
            error_ratio: self.outcomes.error_ratio,
            answered_per_s: self.rates.answered_per_s,
            mean_ns: response.map(|times| times.mean_ns),
            p50_ns: quantile(response, "p50"),
            p90_ns: quantile(response, "p90"),
            p99_ns: quantile(response, "p99"),
            p99_9_ns: quantile(response, "p99.9"),
            service_p50_ns: quantile(service, "p50"),
            waited_for_connection: self.outcomes.waited_for_connection,
            behind_ratio: falls_behind(&self.plan, &self.points()),
            unreliable: response.map_or_else(Vec::new, unreliable),
            is_mean_reliable: response.and_then(|times| times.mean_interval).is_none_or(|interval| !interval.spoiled),
            is_load_as_asked: self.verdict.is_load_as_asked,
            is_rate_believed: self.verdict.is_rate_believed,
            judgement: self.verdict.judgement,
            verdict: self.verdict.sentence.clone(),
            thresholds: self
                .thresholds
                .iter()
                .map(|t| ThresholdResult {
                    threshold: t.threshold.clone(),
                    got: t.got.clone(),
                    held: t.held,
                    sure: t.sure,
                })
                .collect(),
            failure: failure.map_or(String::new(), |failure| failure.failure.clone()),
            interrupted: self.ending == Ending::Interrupted,
            outline: Outline::of(
                &Censored { known: self.histograms.response.clone(), bounds: self.histograms.response_bounds.clone() },
                &self.points(),
            ),
        }
    }
}

/// Percentiles that own delays spoil.
fn unreliable(times: &super::Distribution) -> Vec<String> {
    let spoiled = times.quantiles.iter().filter(|quantile| quantile.interval.is_some_and(|interval| interval.spoiled));
    spoiled.map(|quantile| quantile.name.clone()).collect()
}

impl SeriesPoint {
    fn point(&self) -> Point {
        Point {
            start_ns: self.start_ns,
            length_ns: self.length_ns,
            due: self.due,
            answered: self.answered,
            not_ok: self.not_ok,
            messages: self.messages.unwrap_or(0),
            bytes: snapshot::Bytes {
                wire_in: self.bytes.wire_in_bytes,
                wire_out: self.bytes.wire_out_bytes,
                clear_in: self.bytes.clear_in_bytes,
                clear_out: self.bytes.clear_out_bytes,
            },
            waited_for_connection: self.waited_for_connection,
            health: self.health.restored(),
            ended: self.ended,
            is_target_part: self.is_target_part,
            response: self.response.clone(),
            response_low: self.response_low.clone(),
            response_high: self.response_high.clone(),
            response_bounds: self.response_bounds.clone(),
            service: self.service.clone(),
            lag: self.lag.clone(),
            users: self.users.unwrap_or(0),
            open_connections: self.open_connections,
        }
    }
}
