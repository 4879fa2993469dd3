//! The arguments of `done(summary, latency, requests)`.

use brunt_record::histogram::Histogram;
use brunt_script::{Errors, Totals};
use mlua::{Lua, ObjectLike as _, Table, Value};

/// A distribution as wrk's scripts see it: `min`, `max`, `mean`, `stdev`, `percentile(p)`, `(i)`, `#`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stats {
    /// Distinct values in ascending order, each with its count.
    values: Vec<(u64, u64)>,
    min: f64,
    max: f64,
    mean: f64,
    stdev: f64,
}

impl Stats {
    /// Durations, in whole microseconds as in wrk.
    pub(super) fn microseconds(durations: &Histogram) -> Self {
        let mut values: Vec<(u64, u64)> = Vec::new();
        for (value, count) in durations.values() {
            // A slot's largest value may lie beyond the measured values.
            let value = value.min(durations.max().unwrap_or(value)) / 1000;
            match values.last_mut() {
                Some((last, known)) if *last == value => *known += count,
                _ => values.push((value, count)),
            }
        }
        let whole = |ns: Option<u64>| (ns.unwrap_or(0) / 1000) as f64;
        Self {
            values,
            min: whole(durations.min()),
            max: whole(durations.max()),
            mean: durations.mean().unwrap_or(0.0) / 1000.0,
            stdev: durations.stdev().unwrap_or(0.0) / 1000.0,
        }
    }

    /// One thread's rates in requests per second, a value from each of `samples`.
    pub(super) fn rates(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        let n = samples.len() as f64;
        let (Some(&min), Some(&max)) = (samples.first(), samples.last()) else { return Self::default() };
        let mean = samples.iter().sum::<u64>() as f64 / n;
        let squares: f64 = samples.iter().map(|rate| (*rate as f64 - mean).powi(2)).sum();
        let stdev = if samples.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
        let mut values: Vec<(u64, u64)> = Vec::new();
        for value in samples {
            match values.last_mut() {
                Some((last, known)) if *last == value => *known += 1,
                _ => values.push((value, 1)),
            }
        }
        Self { values, min: min as f64, max: max as f64, mean, stdev }
    }

    /// The value at percentile `p`, by wrk's own rule for the rank.
    fn percentile(&self, p: f64) -> f64 {
        let count: u64 = self.values.iter().map(|(_, n)| n).sum();
        let rank = (p / 100.0 * count as f64 + 0.5).round().max(1.0) as u64;
        let mut seen = 0;
        let found = self.values.iter().find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        // At 100, wrk reads beyond the last value and returns 0.
        found.or(self.values.last()).map_or(0.0, |(value, _)| (*value as f64).clamp(self.min, self.max))
    }

    fn at(&self, number: f64) -> (u64, u64) {
        let place = if number >= 1.0 { number as usize - 1 } else { usize::MAX };
        self.values.get(place).copied().unwrap_or((0, 0))
    }
}

impl Stats {
    /// The object for these statistics in `lua`.
    pub(super) fn object(self, lua: &Lua) -> mlua::Result<Value> {
        let natives = lua.create_table()?;
        let figures = [("min", self.min), ("max", self.max), ("mean", self.mean), ("stdev", self.stdev)];
        natives.set("figures", lua.create_table_from(figures)?)?;
        natives.set("length", self.values.len())?;
        let this = std::sync::Arc::new(self);
        let theirs = std::sync::Arc::clone(&this);
        natives.set("percentile", lua.create_function(move |_, p: f64| Ok(theirs.percentile(p)))?)?;
        natives.set("at", lua.create_function(move |_, place: f64| Ok(this.at(place)))?)?;
        let objects: Table = lua.named_registry_value(super::state::OBJECTS)?;
        objects.call_function("stats", natives)
    }
}

/// The table `summary`.
pub(super) fn summary(totals: &Totals, lua: &Lua) -> mlua::Result<Table> {
    let Errors { connect, read, write, status, timeout } = totals.errors;
    let errors = [("connect", connect), ("read", read), ("write", write), ("status", status), ("timeout", timeout)];
    let totals = [("duration", totals.measured_ns / 1000), ("requests", totals.answered), ("bytes", totals.bytes_in)];
    let summary = lua.create_table_from(totals)?;
    summary.set("errors", lua.create_table_from(errors)?)?;
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_see_a_distribution_as_wrk_shows_it() {
        let mut histogram = Histogram::new();
        for us in [100, 200, 200, 300, 1000] {
            histogram.record(us * 1000);
        }
        let lua = super::super::state::everything();
        super::super::state::prepare_objects(&lua).unwrap();
        lua.globals().set("latency", Stats::microseconds(&histogram).object(&lua).unwrap()).unwrap();
        let value = |code: &str| lua.load(format!("return {code}")).eval::<f64>().unwrap();
        assert_eq!((value("latency.min"), value("latency.max"), value("latency.mean")), (100.0, 1000.0, 360.0));
        assert!((value("latency.stdev") - 326.2).abs() < 1.0, "{}", value("latency.stdev"));
        assert_eq!((value("latency:percentile(50)"), value("latency:percentile(99.99)")), (200.0, 1000.0));
        assert_eq!((value("#latency"), value("(latency(2))"), value("select(2, latency(2))")), (4.0, 200.0, 2.0));
        assert_eq!((value("(latency(0))"), value("select(2, latency(5))")), (0.0, 0.0));
        assert!(lua.load("return latency.other").eval::<Value>().unwrap().is_nil());
    }

    #[test]
    fn rates_are_those_of_a_sample() {
        let rates = Stats::rates(vec![10, 30, 20, 20]);
        assert_eq!((rates.min, rates.max, rates.mean), (10.0, 30.0, 20.0));
        assert!((rates.stdev - 8.165).abs() < 0.001);
        assert_eq!(rates.values, [(10, 1), (20, 2), (30, 1)]);
        assert_eq!(Stats::rates(Vec::new()).percentile(50.0), 0.0);
    }
}
