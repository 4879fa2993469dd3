//! Replayed answers held against the log's.

use std::sync::Arc;

use brunt_protocol::record::replayed::{AgainstLog, ComparedTemplate, total_and_templates};

use crate::request::Request;

/// The parts of an answer that are compared with the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came {
    /// Its status.
    pub status: u16,
    /// The size of its body in bytes.
    pub bytes: u64,
    /// The time from sending to the answer, in nanoseconds.
    pub took_ns: u64,
}

/// Requests of one template.
#[derive(Debug, Default, Clone)]
struct Row {
    name: Option<Arc<str>>,
    compared: ComparedTemplate,
}

impl Row {
    fn ended(&mut self, request: &Request, came: Option<Came>) {
        let ComparedTemplate { sums, logged: logged_times, came: came_times } = &mut self.compared;
        sums.calls += 1;
        let Some(came) = came else { return };
        sums.answered += 1;
        if let Some(logged) = request.bytes {
            sums.compared_size += 1;
            sums.other_size += u64::from(logged != came.bytes);
            sums.logged_bytes += logged;
            sums.came_bytes += came.bytes;
        }
        if let Some(logged) = request.duration_ns {
            sums.compared_duration += 1;
            logged_times.record(logged);
            came_times.record(came.took_ns);
        }
        if let Some(logged) = request.status {
            sums.compared_status += 1;
            if logged != came.status {
                sums.other_status += 1;
                self.compared.other_status(logged, came.status, 1);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.compared.merge(&other.compared);
        if self.name.is_none() {
            self.name.clone_from(&other.name);
        }
    }
}

/// All templates, by their numbers.
#[derive(Debug, Default, Clone)]
pub struct Against(Vec<Row>);

impl Against {
    /// Records a request that has ended, with an answer or without.
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

    /// Adds the rows of another worker.
    pub fn merge(&mut self, other: &Self) {
        if other.0.len() > self.0.len() {
            self.0.resize_with(other.0.len(), Row::default);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(row, other)| row.merge(other));
    }

    /// The comparison of each template, ready to be merged with others' of the same run.
    pub fn compared(&self) -> Vec<ComparedTemplate> {
        let known = self.0.iter().filter_map(|row| {
            let mut compared = row.compared.clone();
            row.name.as_deref()?.clone_into(&mut compared.sums.name);
            Some(compared)
        });
        known.collect()
    }

    /// The row of all requests, and one for each template; those with the most requests first.
    pub fn total_and_templates(&self) -> (AgainstLog, Vec<AgainstLog>) {
        total_and_templates(&self.compared())
    }
}

#[cfg(test)]
mod tests {
    use brunt_protocol::plan::target::Url;
    use brunt_protocol::record::replayed::OtherStatus;

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
        let (all, templates) = here.total_and_templates();
        assert_eq!((all.calls, all.answered, all.compared_status, all.other_status), (4, 3, 2, 1));
        assert_eq!((all.other_size, all.logged_bytes, all.came_bytes), (3, 30, 36));
        let users = &templates[0];
        assert_eq!((users.name.as_str(), users.calls, users.answered), ("GET /users/{n}", 3, 2));
        assert_eq!(users.statuses, [OtherStatus { logged: 200, came: 500, count: 1 }]);
        assert!(users.came_p50_ns > users.logged_p50_ns);
    }
}
