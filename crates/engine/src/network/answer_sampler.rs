//! The sample of answers whose kind is examined: a hundred a second, or all where there are fewer.

use brunt_record::snapshot::Snapshot;

/// Answers examined in a second before the next ones are spaced out. A look costs about half as much as a request.
const ENOUGH: u32 = 100;

/// Whether a connection's client was asked to look at its next answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleRequest {
    /// The client was not asked.
    None,
    /// The client was asked, and the answer has not come.
    Pending,
}

/// Counts answers down to the next one that is looked at.
#[derive(Debug)]
pub(crate) struct AnswerSampler {
    /// The average interval between examined answers.
    one_in: u32,
    /// Answers until the next examined one.
    left: u32,
    /// Answers examined in this second.
    looked: u32,
    /// Answers in this second, as far as they were handed over.
    answers: u64,
    /// Where random numbers stand (xorshift): the choice must not fall in step with connections.
    random: u32,
}

impl Default for AnswerSampler {
    fn default() -> Self {
        Self { one_in: 1, left: 0, looked: 0, answers: 0, random: 0x9e37_79b9 }
    }
}

impl AnswerSampler {
    /// Counts an answer. Returns whether the next one on its connection is to be examined.
    #[inline]
    pub(super) const fn is_due(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Whether an answer is wanted from the next connection that is read.
    #[inline]
    pub(super) const fn wants_one(&self) -> bool {
        self.left == 0
    }

    /// Counts one more look.
    pub(super) fn space_out(&mut self) {
        self.looked += 1;
        if self.looked > ENOUGH {
            (self.one_in, self.looked) = (self.one_in.saturating_mul(2).min(1 << 20), 0);
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.left = 1 + self.random % (2 * self.one_in - 1);
    }

    /// These answers were handed over.
    pub(super) fn count(&mut self, handed_over: &Snapshot) {
        self.answers += handed_over.statuses.total();
    }

    /// A second is over: spaces the looks of the next one by its answers.
    pub(crate) fn fit(&mut self) {
        let answers = u32::try_from(std::mem::take(&mut self.answers)).unwrap_or(u32::MAX);
        (self.one_in, self.looked) = ((answers / ENOUGH).clamp(1, 1 << 20), 0);
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::counts::Statuses;

    use super::*;

    /// Seconds are handed over in parts where someone watches, and the number of looks does not depend on that.
    #[test]
    fn a_hundred_answers_a_second_are_looked_at_whatever_a_second_is_handed_over_in() {
        for (per_s, parts) in [(50_u64, 10), (2000, 1), (2000, 10), (100_000, 10)] {
            let mut looks = AnswerSampler::default();
            let mut looked = Vec::new();
            for _ in 0..20 {
                let mut in_this = 0;
                for _ in 0..parts {
                    for _ in 0..per_s / parts {
                        if looks.is_due() {
                            looks.space_out();
                            in_this += 1;
                        }
                    }
                    let statuses = Statuses::from_counts([(200, per_s / parts)]);
                    looks.count(&Snapshot { statuses, ..Snapshot::default() });
                }
                looks.fit();
                looked.push(in_this);
            }
            let expected = per_s.min(ENOUGH.into());
            let mean = looked[10..].iter().sum::<u64>() / 10;
            assert!((expected * 8 / 10..=expected * 12 / 10).contains(&mean), "{per_s}/s in {parts}: {looked:?}");
        }
    }
}
