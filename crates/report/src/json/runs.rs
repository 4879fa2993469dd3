//! The figures of a document's run, for decisions over several runs.

use brunt_decide::compare::{Figures, MessageFigures, rate_to_compare};
use brunt_decide::evidence::{Evidence, falls_behind};
use brunt_decide::outline::Outline;
use brunt_judge::distribution::Distribution;
use brunt_record::catalogue::{Counter, Numbers};
use brunt_record::histogram::Censored;
use brunt_record::messages::Messages;
use brunt_record::outcome::Failure;
use brunt_record::recording::Ending;
use brunt_record::series::Point;
use brunt_record::snapshot::Snapshot;

use super::{Document, SeriesPoint};

impl Document {
    /// The figures that are compared.
    pub fn figures(&self) -> Figures {
        let (answered, error_ratio) = (self.outcomes.answered, self.outcomes.error_ratio);
        let rate = rate_to_compare(self.plan.load.is_open(), &self.rates, error_ratio);
        let figures = Figures::new(rate, answered, error_ratio, &self.response_times());
        let numbers = self.numbers();
        let messages = MessageFigures::new(Messages::new(&numbers, &self.histograms.times), self.rates.messages_per_s);
        Figures { messages, ..figures }.but_for(&self.evidence())
    }

    /// Response times, with calls without success apart.
    pub fn response_times(&self) -> Censored {
        Snapshot { times: self.times_as_read(), ..Snapshot::default() }.response_times()
    }

    /// The measured part over time.
    pub fn points(&self) -> Vec<Point> {
        self.series.iter().map(SeriesPoint::point).collect()
    }

    /// The figures that a decision rests on.
    pub fn evidence(&self) -> Evidence {
        let of_kind = self.outcomes.failures.iter().filter(|failure| failure.failure == Failure::Mismatch.name());
        let mismatched = of_kind.map(|failure| failure.count).sum();
        let answered = self.outcomes.answered + mismatched > 0;
        let response = self.times.response.as_ref().filter(|_| answered);
        let service = self.times.service.as_ref().filter(|_| answered);
        let quantile = |name: &str| response?.quantile(name);
        let failure = self.outcomes.failures.iter().max_by_key(|failure| failure.count);
        Evidence {
            started_unix_ms: self.started_unix_ms,
            measured_ns: self.measured.length_ns,
            due: self.outcomes.numbers.get(Counter::Due),
            answered: self.outcomes.answered,
            mismatched,
            ok: self.outcomes.numbers.get(Counter::Due).saturating_sub(self.outcomes.not_ok),
            failed: self.outcomes.not_ok,
            error_ratio: self.outcomes.error_ratio,
            answered_per_s: self.rates.answered_per_s,
            ok_per_s: self.rates.ok_per_s,
            mean_ns: response.map(|times| times.mean),
            p50_ns: quantile("p50"),
            p90_ns: quantile("p90"),
            p99_ns: quantile("p99"),
            p99_9_ns: quantile("p99.9"),
            service_p50_ns: service.and_then(|times| times.quantile("p50")),
            waited_for_connection: self.outcomes.numbers.get(Counter::WaitedForConnection),
            behind_ratio: falls_behind(&self.plan, &self.points()),
            unreliable: response.map_or_else(Vec::new, unreliable),
            is_mean_reliable: response
                .and_then(|times| times.mean_interval)
                .is_none_or(|interval| !interval.is_spoiled),
            is_load_as_asked: self.verdict.is_load_as_asked,
            is_rate_believed: self.verdict.is_rate_believed,
            judgement: self.verdict.judgement,
            verdict: self.verdict.sentence.clone(),
            thresholds: self.thresholds.clone(),
            failure: failure.map_or(String::new(), |failure| failure.failure.clone()),
            interrupted: self.ending == Ending::Interrupted,
            watched: self.watched.clone(),
            outline: Outline::new(&self.response_times(), &self.points()),
        }
    }
}

/// Percentiles that own delays spoil.
fn unreliable(times: &Distribution) -> Vec<String> {
    let spoiled = times.quantiles.iter().filter(|quantile| quantile.is_spoiled());
    spoiled.map(|quantile| quantile.name.to_string()).collect()
}

impl SeriesPoint {
    fn point(&self) -> Point {
        let mut numbers = Numbers::from_values([
            (Counter::Due, self.due),
            (Counter::Messages, self.messages.unwrap_or(0)),
            (Counter::WaitedForConnection, self.waited_for_connection),
        ]);
        for group in [self.bytes.numbers(), self.health.numbers(), self.throughput.numbers(), &self.numbers] {
            numbers.merge(group);
        }
        // A result from before ends were counted.
        if self.throughput.is_nothing() && self.answered > 0 {
            numbers.set(Counter::EndedAnswered, self.answered);
            numbers.set(Counter::EndedOk, self.answered.saturating_sub(self.not_ok));
        }
        Point {
            start_ns: self.start_ns,
            length_ns: self.length_ns,
            numbers,
            answered: self.answered,
            not_ok: self.not_ok,
            ended: self.ended,
            is_target_part: self.is_target_part,
            response: self.response.clone(),
            response_low: self.response_low.clone(),
            response_high: self.response_high.clone(),
            failing: self.failing.clone(),
            response_bounds: self.response_bounds.clone(),
            service: self.service.clone(),
            lag: self.lag.clone(),
            users: self.users.unwrap_or(0),
            open_connections: self.open_connections,
            watched: self.watched.clone(),
        }
    }
}
