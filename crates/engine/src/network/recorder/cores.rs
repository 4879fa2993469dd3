//! Answered calls in the cores of those that have a name, a tag or a selection in common: the same times as over all calls, the
//! target's part. Where the kernel is asked about some calls only, each of these stands for others of its own core: a call named A
//! never stands for one named B.

use brunt_record::catalogue::Timing;
use brunt_record::figures::{CallFigures, Figures};
use brunt_record::time::Tick;

use super::{Core, Reading, Recorder};
use crate::network::calls::Call;
use crate::network::sampler::Timed;

/// The target's part of a call's times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Took {
    /// From due to arrived, without the delay in sending.
    pub(crate) response: u64,
    /// From sent to arrived.
    pub(crate) service: u64,
}

/// The successful answers of a core that others stand for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    /// Answers since the last timed one, whose times are not written down yet.
    skipped: u64,
    /// What stands for them where no other follows: the last timed one, or the first of them.
    stands: Option<Took>,
}

/// The shares of all cores, by the numbers of their names.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// Whether the kernel has told an arrival: it begins to a moment after it was asked, and for Unix sockets it never does.
    pub(super) are_told: bool,
    requests: Vec<Share>,
    tags: Vec<Share>,
    selected: Vec<Share>,
}

impl Shares {
    fn of(&mut self, core: Core) -> Option<&mut Share> {
        let (shares, id) = match core {
            Core::All => return None,
            Core::Request(id) => (&mut self.requests, id),
            Core::Tag(id) => (&mut self.tags, id),
            Core::Selected(id) => (&mut self.selected, id),
        };
        let place = id.number() as usize;
        if place >= shares.len() {
            shares.resize(place + 1, Share::default());
        }
        shares.get_mut(place)
    }

    /// Writes down the times of all answers that wait for another to stand for them.
    pub(super) fn settle(&mut self, figures: &mut Figures) {
        let all = [
            (&mut self.requests, &mut figures.requests),
            (&mut self.tags, &mut figures.tags),
            (&mut self.selected, &mut figures.selected),
        ];
        for (shares, figures) in all {
            for (number, share) in shares.iter_mut().enumerate().filter(|(_, share)| share.skipped > 0) {
                if let (Some(took), Ok(number)) = (share.stands, u32::try_from(number)) {
                    let calls = figures.at(brunt_record::figures::NameId::from_number(number));
                    add(calls, took, std::mem::take(&mut share.skipped));
                }
            }
        }
    }
}

fn add(calls: &mut CallFigures, took: Took, weight: u64) {
    calls.times.record_n(Timing::Response, took.response, weight);
    calls.times.record_n(Timing::Service, took.service, weight);
}

impl Recorder {
    /// The target's part of the times of a call that ended at `at`, as noticed at `now`.
    #[inline]
    pub(crate) fn took<T>(call: &Call<T>, at: Tick, now: Tick) -> Took {
        if !call.was_sent() {
            return Took { response: call.response_ns(at), service: 0 };
        }
        let times = Self::times(call, None, at, now);
        Took { response: times.response().value, service: times.service().value }
    }

    /// A call of `core` was answered with this status, a success or not.
    #[inline]
    pub(crate) fn answered_in(&mut self, core: Core, status: u16, took: Took, is_ok: bool) {
        let samples = self.sampler.timed == Timed::Some && self.shares.are_told && is_ok;
        let (is_timed, is_slow) = (matches!(self.reading, Reading::Arrived(_)), self.sampler.is_slow);
        let share = if samples { self.shares.of(core) } else { None };
        let weight = match share {
            None => 1,
            // Slow calls are all timed.
            Some(_) if is_timed && is_slow => 1,
            Some(share) if is_timed => {
                share.stands = Some(took);
                1 + std::mem::take(&mut share.skipped)
            }
            Some(share) => {
                share.stands.get_or_insert(took);
                share.skipped += 1;
                0
            }
        };
        let figures = &mut self.snapshot.figures;
        let calls = match core {
            Core::All => return,
            Core::Request(id) => figures.requests.at(id),
            Core::Tag(id) => figures.tags.at(id),
            Core::Selected(id) => figures.selected.at(id),
        };
        calls.due();
        calls.statuses.record(status);
        if weight > 0 {
            add(calls, took, weight);
        }
        if !is_ok {
            calls.refused(took.response);
        }
    }
}
