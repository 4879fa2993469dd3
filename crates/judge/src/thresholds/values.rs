//! Figures of a threshold's subject.

use super::statistics::{NoSuchFigure, of_own, of_times, of_watched};
use super::subject::{By, FigureSource, Share, Subject};
use brunt_plan::threshold::{Count, Figure, OfOwn, Statistic, Time};
use brunt_plan::units::counted;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::figures::{CheckFigures, OwnFigures, ScenarioFigures};
use brunt_record::histogram::{AtLeast, Censored, fewest_calls};

impl Subject<'_> {
    /// Its distribution of `time`; `None` if it has no such time.
    pub(super) fn times(&self, time: Time, standing: &FigureSource<'_>) -> Option<Censored> {
        const USUAL: Time = Time::Usual;
        const RESPONSE: Time = Time::Recorded(Timing::Response);
        const SERVICE: Time = Time::Recorded(Timing::Service);
        let total = standing.total;
        match (self, time) {
            (Self::All, Time::Iteration) => {
                let mut all = Censored::default();
                total.figures.scenarios.iter().for_each(|(_, scenario)| all.merge(&scenario.iterations));
                Some(all)
            }
            // How fast calls fail does not tell how fast they are answered.
            (Self::All, USUAL | RESPONSE | SERVICE) if total.statuses.total() == 0 => Some(Censored::default()),
            (Self::All, USUAL | RESPONSE) => Some(total.response_times()),
            (Self::All, Time::Ok) => Some(total.response_times().known.into()),
            (Self::All, Time::Recorded(Timing::Failed)) => Some(total.response_times().failed.into()),
            (Self::All, Time::Ended) => Some(total.response_times().pooled()),
            (Self::Calls { calls, .. }, Time::Ok) => Some(calls.response_ok().into()),
            (Self::Calls { calls, .. }, Time::Recorded(Timing::Failed)) => Some(calls.response_not_ok().known.into()),
            (Self::Calls { calls, .. }, Time::Ended) => Some(calls.times.get(Timing::Response).clone()),
            (Self::All, SERVICE) => Some(total.service_times().into_owned()),
            (Self::All, Time::Recorded(Timing::FirstByte)) => Some(total.first_byte_times().clone().into()),
            (Self::All, Time::Recorded(timing)) => Some(total.times.get(timing).clone()),
            (Self::Calls { calls, by: By::Status, .. }, USUAL | RESPONSE) => {
                Some(calls.times.get(Timing::Response).clone())
            }
            (Self::Calls { calls, .. }, USUAL | RESPONSE | SERVICE) if calls.statuses.total() == 0 => {
                Some(Censored::default())
            }
            (Self::Calls { calls, .. }, USUAL | RESPONSE) => Some(calls.response_times()),
            (Self::Calls { calls, .. }, Time::Recorded(timing)) if timing.is_named() => {
                Some(calls.times.get(timing).clone())
            }
            (Self::Group(group, _), Time::Usual | Time::Duration | Time::WithoutPauses) => {
                Some(group.without_pauses.clone())
            }
            (Self::Group(group, _), Time::WithPauses) => Some(group.with_pauses.clone()),
            (Self::Scenario(scenario, _), Time::Usual | Time::Duration | Time::Iteration) => {
                Some(scenario.iterations.clone())
            }
            _ => None,
        }
    }

    /// The part of it that is not ok; `None` if it has no notion of success.
    pub(super) fn errors(&self, standing: &FigureSource<'_>) -> Option<Share> {
        match self {
            Self::All => Some(Share {
                part: standing.total.not_ok(standing.ok),
                whole: standing.total.numbers.get(Counter::Due),
            }),
            Self::Calls { calls, .. } => {
                Some(Share { part: calls.not_ok(standing.ok), whole: calls.numbers.get(Counter::Due) })
            }
            Self::Group(group, _) => Some(Share { part: group.failed, whole: group.count() }),
            Self::Scenario(scenario, _) => {
                Some(Share { part: scenario.not_ok + scenario.errors, whole: scenario.iterations_begun() })
            }
            Self::Check(_) | Self::Own(_) | Self::Unrecorded(_) | Self::Watched(_) => None,
        }
    }

    /// Calls that ended, and those among them without a success within `limit_ns` after they were due; `None` if it is
    /// not calls. Answers that failed a check are not known by time: they count as late.
    pub(super) fn late(&self, limit_ns: u64, standing: &FigureSource<'_>) -> Option<Share> {
        let (ended, statuses, ok, times) = match self {
            Self::All => {
                let total = standing.total;
                (total.ended(), &total.statuses, total.ok(standing.ok), total.response_times().known)
            }
            Self::Calls { calls, .. } => (calls.ended(), &calls.statuses, calls.ok(standing.ok), calls.response_ok()),
            _ => return None,
        };
        // Some that are no success by their status are excused.
        let answered_ok = statuses.ok(standing.ok).max(ok);
        let in_time = times.count() - times.count_above(limit_ns);
        // Where not every answer is timed, the timed ones stand for the others.
        let in_time = u128::from(in_time) * u128::from(answered_ok) / u128::from(times.count().max(1));
        let failed_checks = answered_ok.saturating_sub(ok);
        let in_time = u64::try_from(in_time).unwrap_or(u64::MAX).saturating_sub(failed_checks);
        Some(Share { part: ended.saturating_sub(in_time), whole: ended })
    }

    /// The part of its checks that failed; `None` if it has no checks.
    pub(super) fn failed_checks(&self, standing: &FigureSource<'_>) -> Option<Share> {
        let sum = |of: &dyn Fn(&CheckFigures) -> bool| {
            let checks = standing.total.figures.checks.iter().filter(|(_, check)| of(check));
            let sum = checks.fold((0, 0), |(part, whole), (_, check)| {
                (part + check.failed_checks(), whole + check.passes + check.failed_checks())
            });
            Some(Share { part: sum.0, whole: sum.1 })
        };
        match self {
            Self::All => sum(&|_| true),
            Self::Calls { name, by: By::Name, .. } => sum(&|check| check.call.as_deref() == Some(name)),
            Self::Check(check) => Some(Share { part: check.fails, whole: check.passes + check.fails }),
            _ => None,
        }
    }

    /// How many of it ended in the measured part (calls: with success, whenever they were due); `None` if it has no rate.
    pub(super) fn ended(&self, standing: &FigureSource<'_>) -> Option<u64> {
        match self {
            Self::All => Some(standing.total.numbers.ended_ok()),
            Self::Calls { calls, by: By::Status, .. } => Some(calls.numbers.get(Counter::EndedAnswered)),
            Self::Calls { calls, .. } => Some(calls.numbers.ended_ok()),
            Self::Group(_, measured) => Some(measured.map_or(0, |group| group.with_pauses.known.count())),
            Self::Scenario(_, measured) => Some(measured.map_or(0, |scenario| scenario.iterations.known.count())),
            Self::Check(_) | Self::Own(_) | Self::Unrecorded(_) | Self::Watched(_) => None,
        }
    }

    /// Messages that came in the measured part; `None` if it has none of its own.
    fn messages(&self, standing: &FigureSource<'_>) -> Option<u64> {
        match self {
            Self::All => Some(standing.total.numbers.get(Counter::EndedMessages)),
            Self::Calls { calls, .. } => Some(calls.numbers.get(Counter::EndedMessages)),
            _ => None,
        }
    }

    /// Bytes received and sent in the measured part; `None` if it has none of its own.
    fn bytes(&self, standing: &FigureSource<'_>) -> Option<(u64, u64)> {
        match self {
            Self::All => {
                Some((standing.measured.numbers.get(Counter::WireIn), standing.measured.numbers.get(Counter::WireOut)))
            }
            Self::Calls { measured, .. } => {
                Some(measured.map_or((0, 0), |calls| {
                    (calls.numbers.get(Counter::ClearIn), calls.numbers.get(Counter::ClearOut))
                }))
            }
            _ => None,
        }
    }

    /// The count `what`; `None` if it does not have it.
    pub(super) fn count(&self, what: Count, standing: &FigureSource<'_>) -> Option<u64> {
        let checks = |of: fn(Share) -> u64| self.failed_checks(standing).map(of);
        match (what, self) {
            (Count::Passes, _) => checks(|share| share.whole - share.part),
            (Count::Fails, _) => checks(|share| share.part),
            (Count::Recorded(counter), Self::All) => Some(standing.total.numbers.get(counter)),
            (Count::Recorded(counter), Self::Calls { calls, .. }) if counter.is_named() => {
                Some(calls.numbers.get(counter))
            }
            (Count::Failure(failure), Self::All) => Some(standing.total.failures.count(failure)),
            (Count::Users, Self::All) => Some(standing.most_users),
            (Count::Failure(failure), Self::Calls { calls, .. }) => Some(calls.failures.count(failure)),
            (Count::Recorded(Counter::Unfinished), Self::Group(group, _)) => Some(group.unfinished),
            (_, Self::All) => {
                let scenarios = standing.total.figures.scenarios.iter();
                scenarios.map(|(_, scenario)| of_scenario(what, scenario)).try_fold(0, |sum, n| Some(sum + n?))
            }
            (_, Self::Scenario(scenario, _)) => of_scenario(what, scenario),
            _ => None,
        }
    }

    /// Of how many calls, or whatever else has such times, a percentile is, where they are too few to bound it from above.
    pub(super) fn few(&self, figure: Figure, standing: &FigureSource<'_>) -> Option<String> {
        let (measured, noun, q) = match (self, figure) {
            (
                Self::Own(own),
                Figure::Own(OfOwn::Statistic(Statistic::Quantile(q))) | Figure::Time(_, Statistic::Quantile(q)),
            ) => (own.count, "value", q),
            (_, Figure::Time(time, Statistic::Quantile(q))) => {
                let noun = match (self, time) {
                    (Self::Group(..) | Self::Scenario(..), _) | (_, Time::Iteration) => "iteration",
                    (_, Time::Recorded(Timing::Connect | Timing::Tls | Timing::Handshake)) => "connection",
                    (_, Time::Recorded(Timing::MessageGap)) => "gap",
                    _ => "call",
                };
                (self.times(time, standing)?.lower().count(), noun, q)
            }
            _ => return None,
        };
        (measured < fewest_calls(q)).then(|| counted(measured, noun))
    }

    /// The value of `figure`; `None` if nothing was measured.
    ///
    /// # Errors
    /// When it has no such figure.
    pub(super) fn value(
        &self,
        figure: Figure,
        standing: &FigureSource<'_>,
    ) -> Result<Option<AtLeast<f64>>, NoSuchFigure> {
        let nothing;
        let own = match *self {
            Self::Own(own) => Some(own),
            Self::Unrecorded(declared) => {
                nothing = OwnFigures::new(declared.kind, &declared.unit);
                Some(&nothing)
            }
            _ => None,
        };
        match (own, figure) {
            (Some(own), Figure::Own(_) | Figure::Rate) => {
                let of = if let Figure::Own(of) = figure { of } else { OfOwn::Rate };
                return of_own(of, own, standing.measured_ns as f64 / 1e9);
            }
            // The limit of a figure whose values are times may be a duration.
            (Some(own), Figure::Time(_, statistic)) => {
                let unit_ns = own.unit_ns().ok_or(NoSuchFigure)?;
                let value = of_own(OfOwn::Statistic(statistic), own, 0.0)?;
                return Ok(value.map(|value| value.map(|value| value * unit_ns)));
            }
            (Some(_), _) | (None, Figure::Own(_)) => return Err(NoSuchFigure),
            (None, _) => {}
        }
        match (self, figure) {
            (Self::Watched(watched), Figure::Watched(of)) => return Ok(of_watched(of, watched).map(AtLeast::exactly)),
            (Self::Watched(_), _) | (_, Figure::Watched(_)) => return Err(NoSuchFigure),
            _ => {}
        }
        // An empty whole has no share.
        let share = |of: u64, whole: u64| (whole > 0).then(|| of as f64 / whole as f64);
        let value = match figure {
            Figure::Time(time, statistic) => {
                return self.times(time, standing).map(|times| of_times(statistic, &times)).ok_or(NoSuchFigure);
            }
            Figure::ErrorRate => self.errors(standing).map(|errors| share(errors.part, errors.whole)),
            Figure::Availability => match self {
                Self::All => Some(standing.availability()),
                _ => None,
            },
            Figure::ScriptErrorRate => match self {
                Self::Scenario(scenario, _) => Some(share(scenario.errors, scenario.iterations_begun())),
                _ => None,
            },
            Figure::Within(limit_ns) => {
                self.late(limit_ns, standing).map(|late| share(late.whole - late.part, late.whole))
            }
            Figure::Checks => {
                self.failed_checks(standing).map(|failed| share(failed.whole - failed.part, failed.whole))
            }
            Figure::Rate => {
                // Calls of a lost agent may have ended, too.
                let at_least = standing.total.numbers.get(Counter::Unknown) > 0;
                let rate = self.ended(standing).map(|ended| AtLeast { value: standing.per_s(ended), at_least });
                return rate.map(Some).ok_or(NoSuchFigure);
            }
            Figure::DueRate => {
                self.count(Count::Recorded(Counter::Due), standing).map(|due| Some(standing.due_per_s(due)))
            }
            Figure::MessageRate => self.messages(standing).map(|messages| Some(standing.per_s(messages))),
            Figure::BytesIn => self.bytes(standing).map(|(bytes_in, _)| Some(standing.per_s(bytes_in))),
            Figure::BytesOut => self.bytes(standing).map(|(_, bytes_out)| Some(standing.per_s(bytes_out))),
            Figure::Count(count) => self.count(count, standing).map(|n| Some(n as f64)),
            Figure::Own(_) | Figure::Watched(_) => None,
        };
        value.map(|value| value.map(AtLeast::exactly)).ok_or(NoSuchFigure)
    }
}

fn of_scenario(what: Count, scenario: &ScenarioFigures) -> Option<u64> {
    match what {
        Count::UsersStarted => Some(scenario.users_started),
        Count::NotAdmitted => Some(scenario.not_admitted),
        Count::Iterations => Some(scenario.iterations.known.count() + scenario.errors),
        Count::FailedIterations => Some(scenario.not_ok + scenario.errors),
        Count::ScriptErrors => Some(scenario.errors),
        _ => None,
    }
}
