//! The part of a run that belongs to one worker, and to one machine.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The place of a worker among all workers of a run, over all its machines: number `index`, from 0, of `of`.
///
/// Everything that a run numbers (calls, users, iterations, connections, rows of data) is dealt out by number: a share
/// owns the numbers `index`, `index + of`, `index + 2·of`, and so on. The shares of a run therefore own every number
/// exactly once, and the sizes of their parts differ by one at most.
///
/// ```
/// use brunt_plan::share::Share;
///
/// let third_of_six = Share::new(2, 6)?;
/// assert_eq!(third_of_six.numbers().take(3).collect::<Vec<_>>(), [2, 8, 14]);
/// assert_eq!(third_of_six.part_of(10), 2);
/// # Ok::<(), brunt_plan::share::ShareError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Share {
    index: u64,
    of: u64,
}

/// A share in its written form.
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
    /// The index that was asked for.
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
    pub const fn count(self) -> u64 {
        self.of
    }

    /// How many of the numbers below `total` are this share's.
    #[inline]
    pub const fn part_of(self, total: u64) -> u64 {
        total / self.of + (self.index < total % self.of) as u64
    }

    /// The `nth` number of this share, from 0; `None` beyond 2^64.
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

/// A machine's part of a run: as many workers as it has, numbered after those of the machines before it.
///
/// A stronger machine has more workers, and so a larger part of everything that is dealt out by number.
///
/// ```
/// use brunt_plan::share::{Portion, Share};
///
/// // Machines with two, one and three workers; this is the last.
/// let last = Portion::new(3, 3, 6)?;
/// assert_eq!(last.shares().collect::<Vec<_>>(), [Share::new(3, 6)?, Share::new(4, 6)?, Share::new(5, 6)?]);
/// assert_eq!(last.part_of(10), 4);
/// assert_eq!((0..4).filter_map(|nth| last.number(nth)).collect::<Vec<_>>(), [3, 4, 5, 9]);
/// # Ok::<(), brunt_plan::share::ShareError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "StoredPortion")]
pub struct Portion {
    first: u32,
    workers: u32,
    of: u32,
}

/// A portion in its written form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPortion {
    first: u32,
    workers: u32,
    of: u32,
}

impl Portion {
    /// All of a run, on one machine with this many workers.
    pub const fn whole(workers: u32) -> Self {
        Self { first: 0, workers, of: workers }
    }

    /// Workers `first`, from 0, up to `first + workers` of all `of`.
    ///
    /// # Errors
    /// When there are fewer workers than that, or the machine has none.
    pub fn new(first: u32, workers: u32, of: u32) -> Result<Self, ShareError> {
        StoredPortion { first, workers, of }.try_into()
    }

    /// The number of its first worker among all, from 0.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// How many workers it has.
    pub const fn workers(self) -> u32 {
        self.workers
    }

    /// How many workers the run has, on all machines.
    pub const fn all_workers(self) -> u32 {
        self.of
    }

    /// Whether no other machine has a part.
    pub const fn is_whole(self) -> bool {
        self.workers == self.of
    }

    /// The shares of its workers, in their order.
    pub fn shares(self) -> impl Iterator<Item = Share> + Clone {
        let of = u64::from(self.of);
        (self.first..self.first + self.workers).map(move |index| Share { index: u64::from(index), of })
    }

    /// The number of its workers' numbers below `total`.
    pub fn part_of(self, total: u64) -> u64 {
        let (rounds, rest) = (total / u64::from(self.of), total % u64::from(self.of));
        let of_rest = rest.saturating_sub(u64::from(self.first)).min(u64::from(self.workers));
        rounds * u64::from(self.workers) + of_rest
    }

    /// The number of its numbers below `total` where they are dealt to the run's `connections`, which are dealt to
    /// workers in turn: a machine has as many as its connections make.
    ///
    /// ```
    /// use brunt_plan::share::Portion;
    ///
    /// // Of three connections, the first of two machines has two.
    /// let first = Portion::new(0, 1, 2)?;
    /// assert_eq!((first.part_of(120), first.part_by_connection(120, 3)), (60, 80));
    /// # Ok::<(), brunt_plan::share::ShareError>(())
    /// ```
    pub fn part_by_connection(self, total: u64, connections: u64) -> u64 {
        match self.part_of(connections) {
            0 => self.part_of(total),
            own => (total / connections) * own + self.part_of(total % connections),
        }
    }

    /// The `nth` of these numbers, from 0; `None` beyond 2^64.
    #[inline]
    pub fn number_by_connection(self, nth: u64, connections: u64) -> Option<u64> {
        if self.is_whole() {
            return Some(nth);
        }
        match self.part_of(connections) {
            0 => self.number(nth),
            own => (nth / own).checked_mul(connections)?.checked_add(self.number(nth % own)?),
        }
    }

    /// The `nth` number, from 0, of its workers' shares together; `None` beyond 2^64.
    #[inline]
    pub fn number(self, nth: u64) -> Option<u64> {
        if self.is_whole() {
            return Some(nth);
        }
        let workers = u64::from(self.workers);
        (nth / workers).checked_mul(u64::from(self.of))?.checked_add(u64::from(self.first) + nth % workers)
    }
}

/// A stretch of a portion's numbers, dealt to the run's connections: what a machine takes from the front, and what it
/// gives back to its controller from the end.
///
/// ```
/// use brunt_plan::share::{DealtNumbers, Portion};
///
/// // The first of two machines has two of three connections.
/// let mut first = DealtNumbers::by_connection(Portion::new(0, 1, 2)?, Some(9), 3);
/// let given_back = first.split_last(2);
/// assert_eq!((first.collect::<Vec<_>>(), given_back.collect::<Vec<_>>()), (vec![0, 2, 3, 5], vec![6, 8]));
/// # Ok::<(), brunt_plan::share::ShareError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DealtNumbers {
    portion: Portion,
    connections: u64,
    /// The first and the end of the stretch, as places among the portion's numbers.
    from: u64,
    to: u64,
}

impl DealtNumbers {
    /// The portion's numbers below `total`, or all of them, dealt to this many connections of the run.
    pub fn by_connection(portion: Portion, total: Option<u64>, connections: u64) -> Self {
        let to = total.map_or(u64::MAX, |total| portion.part_by_connection(total, connections));
        Self { portion, connections, from: 0, to }
    }

    /// No numbers, of nobody.
    pub const fn none() -> Self {
        Self { portion: Portion::whole(1), connections: 1, from: 0, to: 0 }
    }

    /// How many they are.
    pub const fn remaining(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Takes at most this many off the front.
    #[must_use]
    pub fn split_first(&mut self, most: u64) -> Self {
        let split = self.from + most.min(self.remaining());
        let first = Self { to: split, ..self.clone() };
        self.from = split;
        first
    }

    /// Takes at most this many off the end.
    #[must_use]
    pub fn split_last(&mut self, most: u64) -> Self {
        let split = self.to - most.min(self.remaining());
        let last = Self { from: split, ..self.clone() };
        self.to = split;
        last
    }
}

impl Iterator for DealtNumbers {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.from >= self.to {
            return None;
        }
        let number = self.portion.number_by_connection(self.from, self.connections);
        self.from += 1;
        number
    }
}

impl TryFrom<StoredPortion> for Portion {
    type Error = ShareError;

    fn try_from(StoredPortion { first, workers, of }: StoredPortion) -> Result<Self, ShareError> {
        match first.checked_add(workers) {
            Some(end) if workers > 0 && end <= of => Ok(Self { first, workers, of }),
            _ => Err(ShareError { index: u64::from(first) + u64::from(workers.max(1)) - 1, of: u64::from(of) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Machines with so many workers each.
    fn portions(workers: &[u32]) -> Vec<Portion> {
        let of = workers.iter().sum();
        let firsts = workers.iter().scan(0, |first, workers| {
            *first += workers;
            Some(*first - workers)
        });
        firsts.zip(workers).map(|(first, workers)| Portion::new(first, *workers, of).unwrap()).collect()
    }

    #[test]
    fn a_share_that_cannot_be_is_refused() {
        assert_eq!(Share::new(3, 3), Err(ShareError { index: 3, of: 3 }));
        assert!(Share::new(0, 0).is_err());
        assert!(serde_json::from_str::<Share>(r#"{"index":2,"of":2}"#).is_err());
        for (first, workers, of) in [(0, 0, 3), (2, 2, 3), (u32::MAX, 2, u32::MAX), (0, 1, 0)] {
            assert!(Portion::new(first, workers, of).is_err(), "{first} {workers} {of}");
        }
    }

    proptest! {
        #[test]
        fn every_number_belongs_to_one_share(
            total in 0_u64..3000, workers in prop::collection::vec(1_u32..9, 1..9),
        ) {
            let portions = portions(&workers);
            let mut numbers = Vec::new();
            for portion in portions {
                let mut of_shares = Vec::new();
                for share in portion.shares() {
                    let own: Vec<_> = share.numbers().take_while(|number| *number < total).collect();
                    prop_assert_eq!(own.len() as u64, share.part_of(total));
                    of_shares.extend(own);
                }
                of_shares.sort_unstable();
                prop_assert_eq!(of_shares.len() as u64, portion.part_of(total));
                let of_portion: Vec<_> = (0..portion.part_of(total)).map_while(|nth| portion.number(nth)).collect();
                prop_assert_eq!(&of_shares, &of_portion);
                numbers.extend(of_shares);
            }
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..total));
        }

        #[test]
        fn every_number_belongs_to_one_connection(
            total in 0_u64..3000, workers in prop::collection::vec(1_u32..9, 1..9), more in 0_u64..50,
        ) {
            let connections = u64::from(workers.iter().sum::<u32>()) + more;
            let mut numbers = Vec::new();
            for portion in portions(&workers) {
                let part = portion.part_by_connection(total, connections);
                // No connection makes more than one more than another.
                let own = portion.part_of(connections);
                let even = total / connections * own;
                prop_assert!((even..=even + own).contains(&part), "{part} for {own} of {connections} connections");
                numbers.extend((0..part).map_while(|nth| portion.number_by_connection(nth, connections)));
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
