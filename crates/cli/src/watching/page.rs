//! An expression over pages of metrics that follow each other.

use std::collections::BTreeMap;
use std::time::Duration;

use brunt_metrics::prometheus::read;
use brunt_plan::threshold::nearest;
use brunt_plan::watch::Expression;

use super::Value;

/// The values of an expression, page by page.
#[derive(Debug)]
pub struct Pages {
    expression: Expression,
    /// The time of the last page, and the value of each series in it; for a rate only.
    before: Option<(Duration, BTreeMap<String, f64>)>,
}

impl Pages {
    pub const fn new(expression: Expression) -> Self {
        Self { expression, before: None }
    }

    /// The value in `page`, which came at `at`; `None` for the first page of a rate.
    pub fn value(&mut self, page: &str, at: Duration) -> Option<Value> {
        let samples = match read::samples(page, &self.expression.metric) {
            Ok(samples) => samples,
            Err(error) => return Some(Err(error.to_string())),
        };
        let mut taken = samples.iter().filter(|sample| self.expression.takes(|label| sample.label(label))).peekable();
        if taken.peek().is_none() {
            return Some(Err(nothing(&self.expression, page, samples.is_empty())));
        }
        if !self.expression.is_rate {
            return Some(Ok(taken.map(|sample| sample.value).sum()));
        }
        let series: BTreeMap<_, _> = taken.map(|sample| (sample.series.to_owned(), sample.value)).collect();
        let (before_at, before) = self.before.replace((at, series))?;
        let (_, series) = self.before.as_ref()?;
        let grown = series.iter().filter_map(|(name, value)| {
            let before = before.get(name)?;
            // A counter that begins anew has grown from 0.
            Some(if value < before { *value } else { value - before })
        });
        let elapsed = at.saturating_sub(before_at).as_secs_f64();
        (elapsed > 0.0).then(|| Ok(grown.sum::<f64>() / elapsed))
    }
}

/// The message that no series matches, with a suggestion.
fn nothing(expression: &Expression, page: &str, is_unknown: bool) -> String {
    if !is_unknown {
        return format!("no series of {} has these labels", expression.metric);
    }
    let near = nearest(&expression.metric, read::names(page));
    let near = near.map_or_else(String::new, |near| format!("; there is {near}"));
    format!("there is no metric {}{near}", expression.metric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(expression: &str, pages: &[(f64, &str)]) -> Vec<Option<Value>> {
        let mut of = Pages::new(expression.parse().unwrap());
        pages.iter().map(|(at, page)| of.value(page, Duration::from_secs_f64(*at))).collect()
    }

    #[test]
    fn series_that_match_are_added_up() {
        let page = "q{a=\"1\"} 2\nq{a=\"2\"} 3\nq{a=\"3\"} 4\n";
        assert_eq!(values("q", &[(0.0, page)]), [Some(Ok(9.0))]);
        assert_eq!(values("sum(q{a!=\"3\"})", &[(0.0, page)]), [Some(Ok(5.0))]);
    }

    #[test]
    fn a_rate_is_of_the_time_between_two_pages_and_survives_a_restart() {
        let page = |idle: f64, user: f64| format!("c{{m=\"idle\"}} {idle}\nc{{m=\"user\"}} {user}\n");
        let pages = [page(10.0, 100.0), page(11.0, 101.0), page(13.0, 3.0), "c{m=\"new\"} 7\n".to_owned()];
        let pages: Vec<_> = [5.0, 6.0, 8.0, 9.0].into_iter().zip(pages.iter().map(String::as_str)).collect();
        // 2 in a second; 2 and 3 in two seconds; a series that was not there before has not grown.
        assert_eq!(values("rate(c)", &pages), [None, Some(Ok(2.0)), Some(Ok(2.5)), Some(Ok(0.0))]);
        assert_eq!(values("rate(c{m!=\"idle\"})", &pages)[1], Some(Ok(1.0)));
    }

    #[test]
    fn a_page_that_came_after_one_was_missed_is_of_the_longer_time() {
        let pages = [(0.0, "c 0\n"), (1.0, "<html>"), (2.0, "c 8\n")];
        let values = values("rate(c)", &pages);
        assert_eq!(values[1], Some(Err("the answer is not in Prometheus' text format".to_owned())));
        assert_eq!(values[2], Some(Ok(4.0)));
    }

    #[test]
    fn what_is_not_there_is_said_with_what_may_have_been_meant() {
        let page = "go_goroutines 7\ngo_threads{a=\"b\"} 1\n";
        let of = |expression: &str| values(expression, &[(0.0, page)])[0].clone().unwrap().unwrap_err();
        assert_eq!(of("go_gorutines"), "there is no metric go_gorutines; there is go_goroutines");
        assert_eq!(of("node_cpu_seconds_total"), "there is no metric node_cpu_seconds_total");
        assert_eq!(of("go_threads{a=\"c\"}"), "no series of go_threads has these labels");
    }
}
