//! Answered calls in the cores of those that have a name, a tag or a selection in common: the same times as over all calls, the
//! target's part. Where the kernel is asked about some calls only, each of these stands for others of its own core: a call named A
//! never stands for one named B.

use brunt_record::figures::{Figures, MOST_NAMES, NameId};
use brunt_record::time::Tick;

use super::{Core, Reading, Recorder};
use crate::network::calls::Call;
use crate::network::sampler::Timed;

/// The target's part of a call's times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Durations {
    /// From due to arrived, without the delay in sending.
    pub(crate) response: u64,
    /// From sent to arrived.
    pub(crate) service: u64,
}

/// An answer as each core of its call counts it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoreAnswer {
    pub(crate) status: u16,
    pub(crate) durations: Durations,
    /// Whether its status is a success for the run.
    pub(crate) is_usual: bool,
    /// Whether it is a success for its call.
    pub(crate) is_ok: bool,
    /// Bytes after decryption, of the answer and of the call.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// The successful answers of a core of which some are timed.
#[derive(Debug, Clone, Copy, Default)]
struct Sampled {
    /// Answers since the last timed one, whose times are not written down yet.
    skipped: u64,
    /// The times that stand for them unless another timed one follows: those of the last timed one, or of the first of them as read.
    stand_in: Option<Durations>,
}

/// Those of the cores of one kind, by the numbers of their names.
#[derive(Debug, Default)]
struct SampledByName {
    named: Vec<Sampled>,
    /// Of the core of all names beyond [`MOST_NAMES`].
    others: Sampled,
}

impl SampledByName {
    fn at(&mut self, id: NameId) -> &mut Sampled {
        let place = id.number() as usize;
        if place >= self.named.len() && place < MOST_NAMES {
            self.named.resize(place + 1, Sampled::default());
        }
        self.named.get_mut(place).unwrap_or(&mut self.others)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = (NameId, &mut Sampled)> {
        let named = self.named.iter_mut().zip(0..).map(|(sampled, number)| (NameId::from_number(number), sampled));
        named.chain([(NameId::OTHERS, &mut self.others)])
    }
}

/// Those of all cores.
#[derive(Debug, Default)]
pub(super) struct SampledCores {
    /// Whether the kernel has told an arrival: it begins to a moment after it was asked, and for Unix sockets it never does.
    pub(super) are_told: bool,
    requests: SampledByName,
    tags: SampledByName,
    selected: SampledByName,
}

impl SampledCores {
    fn at(&mut self, core: Core) -> Option<&mut Sampled> {
        match core {
            Core::All => None,
            Core::Request(id) => Some(self.requests.at(id)),
            Core::Tag(id) => Some(self.tags.at(id)),
            Core::Selected(id) => Some(self.selected.at(id)),
        }
    }

    /// Writes down the times of all answers that wait for another to stand for them.
    pub(super) fn settle(&mut self, figures: &mut Figures) {
        let kinds = [
            (&mut self.requests, &mut figures.requests),
            (&mut self.tags, &mut figures.tags),
            (&mut self.selected, &mut figures.selected),
        ];
        for (sampled, figures) in kinds {
            for (id, sampled) in sampled.iter_mut().filter(|(_, sampled)| sampled.skipped > 0) {
                if let Some(Durations { response, service }) = sampled.stand_in {
                    figures.at(id).took(response, service, std::mem::take(&mut sampled.skipped));
                }
            }
        }
    }
}

impl Recorder {
    /// The target's part of the times of a call that ended at `at`, as noticed at `now`; its times as read where the kernel tells no
    /// arrival, as those of all calls are then.
    #[inline]
    pub(crate) fn durations<T>(&self, call: &Call<T>, at: Tick, now: Tick) -> Durations {
        if !call.was_sent() {
            return Durations { response: call.response_ns(at), service: 0 };
        }
        if !self.sampled.are_told {
            return Durations { response: call.response_ns(now), service: call.service_ns(now) };
        }
        let times = Self::times(call, None, at, now);
        Durations { response: times.response().value, service: times.service().value }
    }

    /// A call of `core` was answered.
    #[inline]
    pub(crate) fn answered_in(&mut self, core: Core, answer: &CoreAnswer) {
        let CoreAnswer { status, durations, is_usual, is_ok, bytes_in, bytes_out } = *answer;
        let weight = self.weight_in(core, durations, is_ok);
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
            calls.took(durations.response, durations.service, weight);
        }
        if !is_ok {
            calls.refused(durations.response);
        }
        match (is_usual, is_ok) {
            (true, false) => calls.failed_check(status),
            (false, true) => calls.excused(status),
            _ => {}
        }
        calls.bytes(bytes_in, bytes_out);
    }

    /// For how many answers of its core one is written down now; 0 if another will stand for it.
    #[inline]
    fn weight_in(&mut self, core: Core, durations: Durations, is_ok: bool) -> u64 {
        // Answers without success are few, and all are written down.
        if self.sampler.timed != Timed::Some || !self.sampled.are_told || !is_ok {
            return 1;
        }
        let Some(sampled) = self.sampled.at(core) else { return 1 };
        match self.reading {
            Reading::Arrived(_) => {}
            Reading::Untimed => {
                sampled.stand_in.get_or_insert(durations);
                sampled.skipped += 1;
                return 0;
            }
            // It ended with what had been read before, or once it was sent: its times are its own.
            Reading::Nothing => return 1,
        }
        // Slow calls are all timed.
        if self.sampler.is_slow {
            return 1;
        }
        sampled.stand_in = Some(durations);
        1 + std::mem::take(&mut sampled.skipped)
    }
}
