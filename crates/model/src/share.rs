//! Which part of a run falls to one worker.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The place of a worker among all workers of a run, over all its machines: number `index`, from 0, of `of`.
///
/// Everything that a run has a number of (calls, users, iterations, connections, rows of data) is dealt out by number:
/// a share owns the numbers `index`, `index + of`, `index + 2·of`, and so on. The shares of a run therefore own every
/// number exactly once, and how many they own differs by one at most.
///
/// ```
/// use brunt_model::share::Share;
///
/// // Three machines with two workers each.
/// let second_machine = Share::new(1, 3)?;
/// let workers: Vec<Share> = second_machine.split(2).collect();
/// assert_eq!(workers, [Share::new(2, 6)?, Share::new(3, 6)?]);
/// assert_eq!(workers[0].numbers().take(3).collect::<Vec<_>>(), [2, 8, 14]);
/// assert_eq!(workers[0].part_of(10), 2);
/// # Ok::<(), brunt_model::share::ShareError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Share {
    index: u64,
    of: u64,
}

/// A share as it is written down.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    index: u64,
    of: u64,
}

/// A share that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("share {index} of {of} does not exist: shares are numbered from 0, below their number")]
pub struct ShareError {
    /// The number that was asked for.
    pub index: u64,
    /// How many shares there are.
    pub of: u64,
}

impl Share {
    /// The only share of a run that is not divided.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Share number `index`, from 0, of `of`.
    ///
    /// # Errors
    /// When `index` is not below `of`.
    pub fn new(index: u32, of: u32) -> Result<Self, ShareError> {
        Stored { index: u64::from(index), of: u64::from(of) }.try_into()
    }

    /// Its number, from 0.
    pub const fn index(self) -> u64 {
        self.index
    }

    /// How many shares there are.
    pub const fn of(self) -> u64 {
        self.of
    }

    /// Divides this share among so many workers: the share of a machine into those of its workers.
    ///
    /// The parts of all shares, in order, are numbered without a gap: worker `w` of machine `m` is number
    /// `m·workers + w`. Every machine must therefore divide its share among equally many.
    pub fn split(self, workers: u32) -> impl Iterator<Item = Self> + Clone {
        let workers = u64::from(workers);
        // Neither product overflows: there are fewer than 2^32 machines.
        let (first, of) = (self.index.saturating_mul(workers), self.of.saturating_mul(workers));
        (first..first.saturating_add(workers)).map(move |index| Self { index, of })
    }

    /// How many of the numbers below `total` are this share's.
    #[inline]
    pub const fn part_of(self, total: u64) -> u64 {
        total / self.of + (self.index < total % self.of) as u64
    }

    /// The `nth` number of this share, from 0; none beyond 2^64.
    #[inline]
    pub fn number(self, nth: u64) -> Option<u64> {
        nth.checked_mul(self.of)?.checked_add(self.index)
    }

    /// Its numbers, from the lowest.
    pub fn numbers(self) -> impl Iterator<Item = u64> {
        (0..).map_while(move |nth| self.number(nth))
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.index, self.of)
    }
}

impl TryFrom<Stored> for Share {
    type Error = ShareError;

    fn try_from(Stored { index, of }: Stored) -> Result<Self, ShareError> {
        if index < of { Ok(Self { index, of }) } else { Err(ShareError { index, of }) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_that_cannot_be_is_refused() {
        assert_eq!(Share::new(3, 3), Err(ShareError { index: 3, of: 3 }));
        assert!(Share::new(0, 0).is_err());
        assert!(serde_json::from_str::<Share>(r#"{"index":2,"of":2}"#).is_err());
    }

    proptest! {
        #[test]
        fn every_number_belongs_to_one_share(total in 0_u64..3000, machines in 1_u32..9, workers in 1_u32..9) {
            let shares: Vec<_> =
                (0..machines).flat_map(|machine| Share::new(machine, machines).unwrap().split(workers)).collect();
            prop_assert_eq!(shares.iter().map(|share| share.part_of(total)).sum::<u64>(), total);
            let mut numbers = Vec::new();
            for share in &shares {
                let own: Vec<_> = share.numbers().take_while(|number| *number < total).collect();
                prop_assert_eq!(own.len() as u64, share.part_of(total));
                numbers.extend(own);
            }
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..total));
        }

        #[test]
        fn json_keeps_it(index: u32, of: u32) {
            if let Ok(share) = Share::new(index, of) {
                let json = serde_json::to_string(&share).unwrap();
                prop_assert_eq!(serde_json::from_str::<Share>(&json).unwrap(), share);
            }
        }
    }
}
