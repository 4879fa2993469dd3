//! What came beside what the log had.

use std::collections::HashMap;
use std::sync::Arc;

use brunt_protocol::record::histogram::Histogram;
use brunt_protocol::record::replayed::{AgainstLog, OtherStatus};

use crate::request::Request;

/// The most pairs of statuses of a template that are told apart.
const MOST_PAIRS: usize = 64;
/// How many of them a result shows.
const SHOWN_PAIRS: usize = 5;

/// An answer, as far as it is held against the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came {
    /// Its status.
    pub status: u16,
    /// The size of its body in bytes.
    pub bytes: u64,
    /// From sent to answered, in nanoseconds.
    pub took_ns: u64,
}

/// Requests of one template.
#[derive(Debug, Default, Clone)]
struct Row {
    name: Option<Arc<str>>,
    sums: AgainstLog,
    pairs: HashMap<(u16, u16), u64>,
    logged: Histogram,
    came: Histogram,
}

impl Row {
    fn ended(&mut self, request: &Request, came: Option<Came>) {
        self.sums.calls += 1;
        let Some(came) = came else { return };
        let sums = &mut self.sums;
        sums.answered += 1;
        if let Some(logged) = request.status {
            sums.compared_status += 1;
            if logged != came.status {
                sums.other_status += 1;
                let pair = (logged, came.status);
                if self.pairs.len() < MOST_PAIRS || self.pairs.contains_key(&pair) {
                    *self.pairs.entry(pair).or_default() += 1;
                }
            }
        }
        if let Some(logged) = request.bytes {
            sums.compared_size += 1;
            sums.other_size += u64::from(logged != came.bytes);
            sums.logged_bytes += logged;
            sums.came_bytes += came.bytes;
        }
        if let Some(logged) = request.duration_ns {
            sums.compared_duration += 1;
            self.logged.record(logged);
            self.came.record(came.took_ns);
        }
    }

    fn merge(&mut self, other: &Self) {
        let (sums, more) = (&mut self.sums, &other.sums);
        sums.calls += more.calls;
        sums.answered += more.answered;
        sums.compared_status += more.compared_status;
        sums.other_status += more.other_status;
        sums.compared_size += more.compared_size;
        sums.other_size += more.other_size;
        sums.logged_bytes += more.logged_bytes;
        sums.came_bytes += more.came_bytes;
        sums.compared_duration += more.compared_duration;
        for (pair, count) in &other.pairs {
            *self.pairs.entry(*pair).or_default() += count;
        }
        self.logged.merge(&other.logged);
        self.came.merge(&other.came);
        if self.name.is_none() {
            self.name.clone_from(&other.name);
        }
    }

    fn told(&self, name: &str) -> AgainstLog {
        let mut pairs: Vec<_> = self.pairs.iter().map(|((logged, came), count)| (*count, *logged, *came)).collect();
        pairs.sort_unstable_by(|a, b| b.cmp(a));
        let statuses = pairs.into_iter().take(SHOWN_PAIRS);
        AgainstLog {
            name: name.to_owned(),
            statuses: statuses.map(|(count, logged, came)| OtherStatus { logged, came, count }).collect(),
            logged_p50_ns: self.logged.quantile(0.5),
            logged_p95_ns: self.logged.quantile(0.95),
            came_p50_ns: self.came.quantile(0.5),
            came_p95_ns: self.came.quantile(0.95),
            ..self.sums.clone()
        }
    }
}

/// All templates, by their numbers.
#[derive(Debug, Default, Clone)]
pub struct Against(Vec<Row>);

impl Against {
    /// A request has ended, with an answer or without.
    pub fn ended(&mut self, request: &Request, came: Option<Came>) {
        let place = request.template.0 as usize;
        if place >= self.0.len() {
            self.0.resize_with(place + 1, Row::default);
        }
        if let Some(row) = self.0.get_mut(place) {
            row.name.get_or_insert_with(|| Arc::clone(&request.template.1));
            row.ended(request, came);
        }
    }

    /// Adds what another worker has seen.
    pub fn merge(&mut self, other: &Self) {
        if other.0.len() > self.0.len() {
            self.0.resize_with(other.0.len(), Row::default);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(row, other)| row.merge(other));
    }

    /// Everything together, and each template; those with the most requests first.
    pub fn told(&self) -> (AgainstLog, Vec<AgainstLog>) {
        let mut all = Row::default();
        self.0.iter().for_each(|row| all.merge(row));
        let known = self.0.iter().filter_map(|row| Some(row.told(row.name.as_deref()?)));
        let mut templates: Vec<_> = known.collect();
        templates.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
        (all.told("(all)"), templates)
    }
}

#[cfg(test)]
mod tests {
    use brunt_protocol::plan::target::Url;

    use super::*;
    use crate::entry::Entry;
    use crate::request::Composer;

    #[test]
    fn differences_are_counted_by_template() {
        let mut composer = Composer::new(&Url::parse("http://a/").unwrap().target, Vec::new());
        let mut request = |url: &str, status: Option<u16>| {
            let entry = Entry {
                method: "GET".to_owned(),
                url: url.to_owned(),
                status,
                bytes: Some(10),
                duration_ns: Some(1_000_000),
                ..Entry::default()
            };
            composer.request(&entry)
        };
        let (mut here, mut there) = (Against::default(), Against::default());
        let came = |status| Some(Came { status, bytes: 12, took_ns: 2_000_000 });
        here.ended(&request("/users/1", Some(200)), came(200));
        here.ended(&request("/users/2", Some(200)), came(500));
        there.ended(&request("/users/3", Some(404)), None);
        there.ended(&request("/", None), came(200));
        here.merge(&there);
        let (all, templates) = here.told();
        assert_eq!((all.calls, all.answered, all.compared_status, all.other_status), (4, 3, 2, 1));
        assert_eq!((all.other_size, all.logged_bytes, all.came_bytes), (3, 30, 36));
        let users = &templates[0];
        assert_eq!((users.name.as_str(), users.calls, users.answered), ("GET /users/{n}", 3, 2));
        assert_eq!(users.statuses, [OtherStatus { logged: 200, came: 500, count: 1 }]);
        assert!(users.came_p50_ns > users.logged_p50_ns);
    }
}
