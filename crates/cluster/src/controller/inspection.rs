//! Whether an agent's report can be true, judged by the timetable of its work.
//!
//! An agent's account can speak only in that agent's name, and may say anything there. It must not change the results
//! of others, nor take unlimited memory. So each second is checked before it is counted. A breach makes the agent lost.

use brunt_plan::arrivals::Arrivals;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::profile::Profile;
use brunt_plan::share::Portion;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::interval::Interval;
use brunt_record::snapshot::{Phase, Snapshot};

/// How far ahead of the controller's clock a second may end, in nanoseconds: clocks are compared to milliseconds.
const AHEAD_NS: u64 = 2 * SECOND_NS;
/// The longest reported second, in nanoseconds: a worker may close it late.
const LONGEST_NS: u64 = 2 * SECOND_NS;
/// More than any figure of a second is. As many seconds as a run of years has add up to no overflow.
const MOST: u64 = 1 << 40;
/// The most statuses that are told apart: more than protocols have.
const MOST_STATUSES: usize = 2_000;

/// The planned end of the measured part, in nanoseconds; `u64::MAX` without one.
pub(super) fn planned_end_ns(plan: &Plan) -> u64 {
    let of_users = plan.scenarios.as_ref().map(|scenarios| (scenarios.seconds() * 1e9) as u64);
    plan.duration_ns().into_iter().chain(of_users).min().unwrap_or(u64::MAX)
}

/// Something that no agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Breach {
    /// A time that is not over yet.
    #[error("it reported second {second}, and that is not over yet")]
    Ahead {
        /// The second of the measured part.
        second: u64,
    },
    /// A second of an impossible length.
    #[error("it reported a second of {length_ns} ns")]
    Length {
        /// Its reported length.
        length_ns: u64,
    },
    /// A second that it has reported already, or an earlier one.
    #[error("it reported second {second} twice, or out of turn")]
    Order {
        /// The second of its phase.
        second: u64,
    },
    /// Calls that the timetable does not have.
    #[error("it reported {got} calls as due, and {most} are at most")]
    Due {
        /// The reported number.
        got: u64,
        /// The number that it was given.
        most: u64,
    },
    /// Fewer calls than the timetable has.
    #[error("it finished with {got} calls due, and {expected} were")]
    Short {
        /// The reported number.
        got: u64,
        /// The number that it was given.
        expected: u64,
    },
    /// Ends of calls that never were.
    #[error("it reported the ends of {got} calls, and {most} were due at most")]
    Ended {
        /// The reported number.
        got: u64,
        /// The number that was due.
        most: u64,
    },
    /// Calls without an end, of an agent that reports its part as done.
    #[error("it finished, and of its {due} calls due only {ended} had ended")]
    Open {
        /// The calls reported as due.
        due: u64,
        /// The calls reported as ended.
        ended: u64,
    },
    /// Requests that it was not asked for, or does not have.
    #[error("it gave {got} requests back, and {most} are at most")]
    GivenBack {
        /// The reported number.
        got: u64,
        /// The number that it was asked for, and can have.
        most: u64,
    },
    /// Times of calls that never ended.
    #[error("it reported {got} response times of {most} calls")]
    Times {
        /// The reported number.
        got: u64,
        /// Calls that ended.
        most: u64,
    },
    /// A figure without bounds.
    #[error("it reported a figure of {0}, which no second has")]
    Figure(u64),
    /// A comparison with a log without bounds.
    #[error("it reported of a log what no machine reads")]
    Log,
    /// Statuses without bounds.
    #[error("it reported {0} different statuses in a second")]
    Statuses(usize),
}

/// An agent's work, and its reports on it.
#[derive(Debug)]
pub(super) struct Inspection {
    /// The timetable of the open model; `None` in the closed model.
    timetable: Option<Vec<Arrivals>>,
    /// Calls of the timetable that are due until `reached_ns`.
    given: u64,
    reached_ns: u64,
    /// Calls that it may make, where the plan limits their number in the closed model.
    numbers: Option<u64>,
    /// Its reports of the measured part and the drain.
    due: u64,
    ended: u64,
    last: Option<(Phase, u64)>,
}

impl Inspection {
    /// Of an agent whose own part is `portion`.
    pub(super) fn new(plan: &Plan, portion: Portion, numbers: Option<u64>) -> Self {
        let timetable = timetable_of(plan, portion);
        Self { timetable, given: 0, reached_ns: 0, numbers, due: 0, ended: 0, last: None }
    }

    /// The run goes on by this profile.
    pub(super) fn change(&mut self, profile: &Profile) {
        self.timetable.iter_mut().flatten().for_each(|arrivals| arrivals.change(profile));
    }

    /// It has so many requests of a counted number.
    pub(super) fn dealt(&mut self, requests: u64) {
        self.numbers = Some(requests);
    }

    /// Calls that may be due until then.
    fn most_due(&mut self, until_ns: u64) -> u64 {
        let Some(timetable) = &mut self.timetable else { return self.numbers.unwrap_or(MOST) };
        if until_ns > self.reached_ns {
            self.given += timetable.iter_mut().map(|arrivals| arrivals.pass(until_ns)).sum::<u64>();
            self.reached_ns = until_ns;
        }
        self.given
    }

    /// Checks a reported second, when the measured part has lasted `elapsed_ns`.
    ///
    /// # Errors
    /// When it cannot be true. It must not be counted then.
    pub(super) fn second(&mut self, interval: &Interval, planned_ns: u64, elapsed_ns: u64) -> Result<(), Breach> {
        let Interval { phase, second, length_ns, snapshot, .. } = interval;
        let key = Some((*phase, *second));
        if key <= self.last {
            return Err(Breach::Order { second: *second });
        }
        if *phase == Phase::Measured && *length_ns > LONGEST_NS {
            return Err(Breach::Length { length_ns: *length_ns });
        }
        let end_ns = second.saturating_mul(SECOND_NS).saturating_add(*length_ns);
        if *phase == Phase::Measured && end_ns > elapsed_ns.saturating_add(AHEAD_NS)
            || *second > MOST / SECOND_NS * 1024
        {
            return Err(Breach::Ahead { second: *second });
        }
        let ended = bounded(snapshot)?;
        self.last = self.last.max(key);
        if *phase == Phase::Warmup {
            return Ok(());
        }
        let (due, ended) = (self.due + snapshot.due(), self.ended + ended);
        // A second may be closed a little late, and calls sent together are due with the first of them.
        let until_ns = if *phase == Phase::Measured { end_ns.saturating_add(SECOND_NS) } else { planned_ns };
        let most = self.most_due(until_ns.min(planned_ns));
        if due > most {
            return Err(Breach::Due { got: due, most });
        }
        let most = if self.timetable.is_some() { most } else { due };
        if ended > most {
            return Err(Breach::Ended { got: ended, most });
        }
        (self.due, self.ended) = (due, ended);
        Ok(())
    }

    /// Checks everything that it has reported, when it reports its part as done. `planned_ns` is the planned length of
    /// its part, if it claims to have taken that long.
    ///
    /// # Errors
    /// When something is missing.
    pub(super) fn finished(&mut self, planned_ns: Option<u64>) -> Result<(), Breach> {
        if self.ended != self.due {
            return Err(Breach::Open { due: self.due, ended: self.ended });
        }
        if let Some(planned_ns) = planned_ns.filter(|_| self.timetable.is_some()) {
            let expected = self.most_due(planned_ns);
            if self.due < expected {
                return Err(Breach::Short { got: self.due, expected });
            }
        }
        Ok(())
    }
}

fn timetable_of(plan: &Plan, portion: Portion) -> Option<Vec<Arrivals>> {
    let Load::Open { profile, arrivals } = &plan.load else { return None };
    let of_share = |share| Arrivals::new(profile.clone(), *arrivals, share, plan.seed, plan.stop.requests);
    plan.scenarios.is_none().then(|| portion.shares().map(of_share).collect())
}

/// Whether no figure of a second is out of bounds. Returns the number of calls that ended in it.
fn bounded(snapshot: &Snapshot) -> Result<u64, Breach> {
    let statuses = snapshot.statuses.sorted();
    if statuses.len() > MOST_STATUSES {
        return Err(Breach::Statuses(statuses.len()));
    }
    let within = |figure: u64| if figure <= MOST { Ok(figure) } else { Err(Breach::Figure(figure)) };
    let mut ended = 0_u64;
    for (_, count) in statuses {
        ended += within(count)?;
    }
    for (_, count) in snapshot.failures.counted() {
        ended += within(count)?;
    }
    for counter in [Counter::Due, Counter::Unfinished, Counter::Unsent, Counter::Unknown] {
        within(snapshot.numbers.get(counter))?;
    }
    let ended = within(snapshot.ended())?.max(within(ended)?);
    for timing in Timing::ALL {
        within(snapshot.times.known(timing).count())?;
        within(snapshot.times.bounds(timing).count())?;
    }
    let times = snapshot.times.known(Timing::Response).count() + snapshot.times.bounds(Timing::Response).count();
    if times > ended {
        return Err(Breach::Times { got: times, most: ended });
    }
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use brunt_plan::arrivals::Spread;
    use brunt_plan::plan::{ProtocolOptions, StopRule};
    use brunt_plan::target::Url;

    use super::*;

    const PLANNED_NS: u64 = 5 * SECOND_NS;

    fn plan(load: Load) -> Plan {
        let target = Url::parse("http://127.0.0.1/").unwrap().target;
        let stop = StopRule { duration_ns: Some(PLANNED_NS), requests: None };
        Plan { load, stop, ..Plan::of_calls(target, ProtocolOptions::default()) }
    }

    /// Of the second of two workers at 100 calls a second: 50 are due in each second.
    fn of_a_rate() -> Inspection {
        let load = Load::Open { profile: "100".parse().unwrap(), arrivals: Spread::Uniform };
        Inspection::new(&plan(load), Portion::new(1, 1, 2).unwrap(), None)
    }

    fn of_a_number(requests: u64) -> Inspection {
        Inspection::new(&plan(Load::Closed {}), Portion::whole(1), Some(requests))
    }

    fn second(second: u64, due: u64, answered: u64) -> Interval {
        let mut snapshot = Snapshot::with_numbers([(Counter::Due, due)]);
        (0..answered).for_each(|_| snapshot.statuses.record(200));
        snapshot.times.record_n(Timing::Response, 1, answered);
        let (phase, length_ns) = (Phase::Measured, SECOND_NS);
        Interval { worker: 0, phase, second, length_ns, snapshot, open_connections: 0, in_flight: 0, oldest_ns: 0 }
    }

    fn inspect(inspection: &mut Inspection, interval: &Interval) -> Result<(), Breach> {
        inspection.second(interval, PLANNED_NS, (interval.second.min(9) + 1) * SECOND_NS)
    }

    #[test]
    fn what_an_agent_does_is_no_breach() {
        let mut rate = of_a_rate();
        // It answers late, and closes a second late: calls of the next one have ended.
        for (number, answered) in [(0, 20), (1, 83), (2, 40), (3, 50), (4, 50)] {
            assert_eq!(inspect(&mut rate, &second(number, 50, answered)), Ok(()), "{number}");
        }
        let drain = Interval { phase: Phase::Drain, ..second(0, 0, 7) };
        assert_eq!((inspect(&mut rate, &drain), rate.finished(Some(PLANNED_NS))), (Ok(()), Ok(())));
        let mut number = of_a_number(90);
        assert_eq!((inspect(&mut number, &second(0, 90, 90)), number.finished(None)), (Ok(()), Ok(())));
    }

    #[test]
    fn what_no_agent_does_is_a_breach() {
        let rows = vec![
            (second(0, 101, 0), Breach::Due { got: 101, most: 100 }),
            (second(0, 50, 101), Breach::Ended { got: 101, most: 100 }),
            (second(u64::MAX, 0, 0), Breach::Ahead { second: u64::MAX }),
            (second(13, 0, 0), Breach::Ahead { second: 13 }),
            (Interval { length_ns: u64::MAX, ..second(0, 0, 0) }, Breach::Length { length_ns: u64::MAX }),
        ];
        for (interval, breach) in rows {
            assert_eq!(inspect(&mut of_a_rate(), &interval), Err(breach));
        }
        let mut twice = of_a_rate();
        assert_eq!(inspect(&mut twice, &second(1, 50, 0)), Ok(()));
        assert_eq!(inspect(&mut twice, &second(1, 50, 0)), Err(Breach::Order { second: 1 }));
        let mut large = second(0, 50, 0);
        large.snapshot.numbers.set(Counter::Unfinished, u64::MAX);
        assert_eq!(inspect(&mut of_a_rate(), &large), Err(Breach::Figure(u64::MAX)));
        let mut timed = second(0, 50, 1);
        timed.snapshot.times.record_n(Timing::Response, 1, 1);
        assert_eq!(inspect(&mut of_a_rate(), &timed), Err(Breach::Times { got: 2, most: 1 }));
        let mut statuses = second(0, 50, 0);
        (0..=MOST_STATUSES as u16).for_each(|status| statuses.snapshot.statuses.record(status));
        assert_eq!(inspect(&mut of_a_rate(), &statuses), Err(Breach::Statuses(MOST_STATUSES + 1)));
        assert_eq!(inspect(&mut of_a_number(90), &second(0, 91, 0)), Err(Breach::Due { got: 91, most: 90 }));
        assert_eq!(inspect(&mut of_a_number(90), &second(0, 5, 6)), Err(Breach::Ended { got: 6, most: 5 }));
    }

    #[test]
    fn who_finishes_has_all_of_its_timetable() {
        let mut rate = of_a_rate();
        assert_eq!(inspect(&mut rate, &second(0, 50, 40)), Ok(()));
        assert_eq!(rate.finished(None), Err(Breach::Open { due: 50, ended: 40 }));
        assert_eq!(inspect(&mut rate, &second(1, 0, 10)), Ok(()));
        assert_eq!(rate.finished(Some(PLANNED_NS)), Err(Breach::Short { got: 50, expected: 250 }));
    }
}
