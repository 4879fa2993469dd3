//! Due times of a log's requests, by the log's times, a speed and a scale. Pure.
//!
//! - **Speed** divides time: a request that the log has after `t` seconds is due after `t / speed`.
//! - **Scale** keeps time and multiplies requests. A session is copied as a whole, with its own connection and cookies.
//!   Each copy is shifted by its own time, less than a bound, so that a burst stays one. Below 1, and for the fraction
//!   of a scale that is not a whole number, a random choice takes or leaves out each session, the same in every run
//!   with one seed.

use std::collections::hash_map::Entry as Place;

use brunt_protocol::plan::random::{ByNumber, choice, mix, unit};

use crate::order::Timed;
use crate::queue::Queue;

const SECOND_NS: i64 = 1_000_000_000;

/// How times and requests are scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// The divisor of time.
    pub speed: f64,
    /// The factor of requests.
    pub scale: f64,
    /// The bound of the shifts of a session's copies, in nanoseconds of the replay.
    pub shift_ns: u64,
    /// The seed of random choices.
    pub seed: u64,
}

/// A request with its due time.
#[derive(Debug)]
pub struct Due<T> {
    /// Nanoseconds after the load begins.
    pub ns: u64,
    /// The session to which it belongs.
    pub session: Option<u64>,
    /// The request to send.
    pub what: T,
}

/// A request that waits, ordered by due time, then by place in the log.
struct Waiting<T> {
    key: (u64, u64),
    session: Option<u64>,
    what: T,
    /// The approximate size in memory, in bytes; of several copies, the last one has it.
    weight: usize,
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// The most sessions whose last due times are remembered, which keeps each session's requests in order.
const MOST_SESSIONS: usize = 1 << 20;

/// The most requests that wait for their time, copies included, and the most bytes of them.
const MOST_WAITING: usize = 1 << 22;
const MOST_WAITING_BYTES: usize = 256 << 20;

/// Derives due times from a log's times.
pub struct Schedule<T> {
    scaling: Scaling,
    /// The second in which the log begins, in nanoseconds since 1970.
    zero: Option<i64>,
    /// The duration of all earlier passes of the log, in nanoseconds of the replay; and the number of the current pass.
    before_ns: u64,
    pass: u64,
    latest: i64,
    read: u64,
    waiting: Queue<Waiting<T>>,
    waiting_bytes: usize,
    /// The time before which no further request can come.
    certain_ns: u64,
    /// When the last request so far is due.
    last_ns: u64,
    last_due: ByNumber<u64>,
}

impl<T: Clone> Schedule<T> {
    /// A schedule without requests.
    pub fn new(scaling: Scaling) -> Self {
        Self {
            scaling,
            zero: None,
            before_ns: 0,
            pass: 0,
            latest: 0,
            read: 0,
            waiting: Queue::default(),
            waiting_bytes: 0,
            certain_ns: 0,
            last_ns: 0,
            last_due: ByNumber::default(),
        }
    }

    /// The due time of the log's time `ns`.
    fn due(&self, ns: i64, zero: i64) -> u64 {
        self.before_ns.saturating_add((ns.saturating_sub(zero).max(0) as f64 / self.scaling.speed) as u64)
    }

    /// Takes the next request of the sorted log, which has about `weight` bytes. Returns the number of its copies.
    pub fn push(&mut self, timed: &Timed, what: &T, weight: usize) -> u64 {
        let zero = *self.zero.get_or_insert(timed.ns.div_euclid(SECOND_NS) * SECOND_NS);
        self.latest = self.latest.max(timed.ns);
        let base = self.due(timed.ns, zero);
        // Stamps of whole seconds were spread, and may be up to a second before one that was read earlier.
        self.certain_ns = self.certain_ns.max(self.due(timed.ns - SECOND_NS, zero));
        self.read += 1;
        let named = timed.entry.session.as_deref().map(|session| hash(session.as_bytes()));
        let who = named.unwrap_or_else(|| mix(self.read)) ^ mix(self.pass.wrapping_mul(3));
        let Scaling { scale, shift_ns, seed, .. } = self.scaling;
        let copies = scale.floor() as u64 + u64::from(unit(seed, who) < scale.fract());
        for copy in 0..copies {
            let of_copy = choice(who, copy);
            let shift = if copy == 0 { 0 } else { (unit(seed ^ 1, of_copy) * shift_ns as f64) as u64 };
            let session = named.map(|_| of_copy);
            let mut ns = base.saturating_add(shift);
            if let Some(session) = session {
                ns = self.not_before(session, ns);
            }
            self.read += 1;
            self.last_ns = self.last_ns.max(ns);
            let weight = if copy + 1 == copies { weight } else { 0 };
            self.waiting_bytes = self.waiting_bytes.saturating_add(weight);
            self.waiting.push(Waiting { key: (ns, self.read), session, what: what.clone(), weight });
        }
        copies
    }

    /// The second in which this pass of the log begins, in nanoseconds since 1970, once it has begun.
    pub fn zero(&self) -> Option<i64> {
        self.zero
    }

    /// When the last request so far is due.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// The duration of the passes before this one, in nanoseconds of the replay.
    pub fn before_ns(&self) -> u64 {
        self.before_ns
    }

    /// Keeps the order within a session, however its requests were shifted or spread.
    fn not_before(&mut self, session: u64, ns: u64) -> u64 {
        if self.last_due.len() >= MOST_SESSIONS {
            let certain = self.certain_ns;
            self.last_due.retain(|_, last| *last > certain);
        }
        match self.last_due.entry(session) {
            Place::Occupied(mut last) => {
                let ns = ns.max(*last.get());
                last.insert(ns);
                ns
            }
            Place::Vacant(place) => *place.insert(ns),
        }
    }

    /// The next request, if no later one can precede it.
    pub fn pop(&mut self) -> Option<Due<T>> {
        let is_certain = self.waiting.peek().is_some_and(|first| first.key.0 < self.certain_ns);
        if is_certain { self.take() } else { None }
    }

    fn take(&mut self) -> Option<Due<T>> {
        let Waiting { key: (ns, _), session, what, weight } = self.waiting.pop()?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(weight);
        Some(Due { ns, session, what })
    }

    /// Whether more requests wait than may.
    pub fn is_full(&self) -> bool {
        self.waiting.len() > MOST_WAITING || self.waiting_bytes > MOST_WAITING_BYTES
    }

    /// Whether requests wait that were not taken yet.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Begins a new pass of a log that is over, with new sessions. Its times go on from where they are.
    pub fn go_on(&mut self) {
        self.pass += 1;
    }

    /// Ends a pass of the log, which begins anew if `repeats`. The remaining requests can be taken by [`Self::pop`].
    pub fn end_pass(&mut self, repeats: bool) {
        let Some(zero) = self.zero.take() else { return };
        if repeats {
            let end = (self.latest.div_euclid(SECOND_NS) + 1) * SECOND_NS;
            self.before_ns = self.due(end, zero);
            self.certain_ns = self.certain_ns.max(self.before_ns);
            (self.latest, self.pass) = (0, self.pass + 1);
        } else {
            self.certain_ns = u64::MAX;
        }
    }
}

/// The hash of a text, such as a session's name: the same in every run and on every machine.
pub(crate) fn hash(text: &[u8]) -> u64 {
    text.chunks(8).fold(text.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        mix(hash ^ u64::from_le_bytes(word))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::entry::Entry;

    const MS: u64 = 1_000_000;

    fn timed(ms: i64, session: &str) -> Timed {
        Timed { ns: ms * MS as i64, entry: Entry { session: Some(session.to_owned()), ..Entry::default() } }
    }

    fn scaled(scaling: Scaling, log: &[(i64, String)]) -> Vec<(u64, u64, usize)> {
        let mut schedule = Schedule::new(scaling);
        let mut out = Vec::new();
        for (place, (ms, session)) in log.iter().enumerate() {
            schedule.push(&timed(*ms, session), &place, 0);
            out.extend(std::iter::from_fn(|| schedule.pop()));
        }
        schedule.end_pass(false);
        out.extend(std::iter::from_fn(|| schedule.pop()));
        out.into_iter().map(|due| (due.ns / MS, due.session.unwrap(), due.what)).collect()
    }

    const AS_IT_IS: Scaling = Scaling { speed: 1.0, scale: 1.0, shift_ns: 50 * MS, seed: 7 };

    fn log(lines: &[(i64, &str)]) -> Vec<(i64, String)> {
        lines.iter().map(|(ms, session)| (*ms, (*session).to_owned())).collect()
    }

    #[test]
    fn times_are_those_of_the_log_from_its_first_second_on() {
        let out = scaled(AS_IT_IS, &log(&[(5250, "a"), (5500, "b"), (65_250, "a")]));
        let times: Vec<_> = out.iter().map(|(ms, ..)| *ms).collect();
        assert_eq!(times, [250, 500, 60_250]);
        assert_eq!((out[0].1, out[0].1 == out[1].1), (out[2].1, false), "sessions stay who they are");
        let out = scaled(Scaling { speed: 60.0, ..AS_IT_IS }, &log(&[(5000, "a"), (65_000, "a")]));
        assert_eq!(out.iter().map(|(ms, ..)| *ms).collect::<Vec<_>>(), [0, 1000]);
    }

    #[test]
    fn an_hour_does_not_drift() {
        let lines: Vec<_> = (0..36_000).map(|nth| (nth * 100 + 3, "s".to_owned())).collect();
        let out = scaled(AS_IT_IS, &lines);
        assert!(out.iter().enumerate().all(|(nth, (ms, ..))| *ms == nth as u64 * 100 + 3));
    }

    /// The variance of the counts of seconds over their mean.
    fn burst_index(counts: &[u64]) -> f64 {
        let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum::<f64>() / counts.len() as f64 / mean
    }

    #[test]
    fn three_times_the_requests_are_as_bursty() {
        // A burst of a second in every ten, of many sessions.
        let lines: Vec<_> = (0..60_i64)
            .flat_map(|second| {
                let count = if second % 10 == 0 { 400 } else { 40 };
                (0..count).map(move |nth| (second * 1000 + nth * 1000 / count, format!("s{}", nth % 97)))
            })
            .collect();
        let per_second = |out: &[(u64, u64, usize)]| {
            let mut counts = vec![0_u64; 60];
            for (ms, ..) in out {
                counts[(*ms / 1000).min(59) as usize] += 1;
            }
            counts
        };
        let once = scaled(AS_IT_IS, &lines);
        let thrice = scaled(Scaling { scale: 3.0, ..AS_IT_IS }, &lines);
        assert_eq!(thrice.len(), 3 * once.len());
        // A variance grows by the square of a factor.
        let ratio = burst_index(&per_second(&thrice)) / (3.0 * burst_index(&per_second(&once)));
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
        let half = scaled(Scaling { scale: 0.5, ..AS_IT_IS }, &lines).len() as f64 / once.len() as f64;
        assert!((0.35..0.65).contains(&half), "{half}");
    }

    #[test]
    fn a_log_that_begins_anew_goes_on_in_time_with_other_sessions() {
        let mut schedule = Schedule::new(AS_IT_IS);
        for _ in 0..2 {
            schedule.push(&timed(100, "a"), &(), 0);
            schedule.push(&timed(1700, "a"), &(), 0);
            schedule.end_pass(true);
        }
        let out: Vec<_> = std::iter::from_fn(|| schedule.pop()).collect();
        assert_eq!(out.iter().map(|due| due.ns / MS).collect::<Vec<_>>(), [100, 1700, 2100, 3700]);
        assert_ne!(out[0].session, out[2].session);
    }

    #[test]
    fn targets_that_begin_anew_keep_their_rate_and_have_other_sessions() {
        let mut schedule = Schedule::new(AS_IT_IS);
        for ms in [0, 300, 600, 900] {
            schedule.push(&timed(ms, "a"), &(), 0);
            schedule.go_on();
        }
        schedule.end_pass(false);
        let out: Vec<_> = std::iter::from_fn(|| schedule.pop()).collect();
        assert_eq!(out.iter().map(|due| due.ns / MS).collect::<Vec<_>>(), [0, 300, 600, 900]);
        assert_ne!(out[0].session, out[1].session);
    }

    #[test]
    fn copies_that_wait_for_long_take_no_memory_without_end() {
        let mut schedule = Schedule::new(Scaling { scale: 2.0, shift_ns: 3600 * 1000 * MS, ..AS_IT_IS });
        let pushed = (0..).take_while(|nth| {
            schedule.push(&timed(*nth, &format!("s{nth}")), &(), 1 << 20);
            while schedule.pop().is_some() {}
            !schedule.is_full()
        });
        assert!((250..600).contains(&pushed.count()), "two of a megabyte each wait, or one");
        schedule.end_pass(false);
        while schedule.pop().is_some() {}
        assert!(!schedule.is_full());
    }

    proptest! {
        #[test]
        fn due_times_do_not_fall_and_the_order_of_a_session_holds(
            gaps in prop::collection::vec((0..2000_i64, 0..5_u8), 1..200),
            scale in 0.1..4.0_f64,
            speed in 0.5..20.0_f64,
        ) {
            let mut at = 0;
            let lines: Vec<_> = gaps.iter().map(|(gap, session)| { at += gap; (at, format!("s{session}")) }).collect();
            let out = scaled(Scaling { speed, scale, ..AS_IT_IS }, &lines);
            prop_assert!(out.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            let mut last: HashMap<u64, usize> = HashMap::new();
            for (_, session, place) in &out {
                let before = last.insert(*session, *place);
                prop_assert!(before.is_none_or(|before| before < *place));
            }
            if scale >= 1.0 {
                prop_assert!(out.len() >= lines.len());
            }
        }
    }
}
