//! Which answers are looked at for their kind: a hundred a second, all of them where they are fewer.

use brunt_record::snapshot::Snapshot;

/// Answers that are looked at in an interval before the next are spaced out. A look costs about a sixth of a request.
const ENOUGH: u32 = 100;

/// Whether a connection's client was asked to look at its next answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookRequest {
    /// It was not.
    None,
    /// It was, and the answer has not come.
    Pending,
}

/// Counts answers down to the next one that is looked at.
#[derive(Debug)]
pub(super) struct Looks {
    /// One answer of so many is looked at, on average.
    one_in: u32,
    /// Answers until the next one that is.
    left: u32,
    /// Those in this interval.
    looked: u32,
    /// Where random numbers stand (xorshift): the choice must not fall in step with connections.
    random: u32,
}

impl Default for Looks {
    fn default() -> Self {
        Self { one_in: 1, left: 0, looked: 0, random: 0x9e37_79b9 }
    }
}

impl Looks {
    /// An answer has come: whether the next one on its connection is to be looked at.
    #[inline]
    pub(super) const fn is_due(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Whether one is to be looked at on the next connection that is read.
    #[inline]
    pub(super) const fn wants_one(&self) -> bool {
        self.left == 0
    }

    /// One more is to be looked at.
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

    /// An interval with so many answers has ended.
    pub(super) fn fit(&mut self, ended: &Snapshot) {
        let answers = u32::try_from(ended.statuses.total()).unwrap_or(u32::MAX);
        (self.one_in, self.looked) = ((answers / ENOUGH).clamp(1, 1 << 20), 0);
    }
}
