//! The choice of a row of data for each user.

use crate::random::{choice, mix};

/// The order in which rows are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the top, and again from the top after the last.
    Circular,
    /// Any each time.
    Random,
    /// In a random order, each once, and in the same order again.
    Shuffled,
    /// From the top, each once.
    Queue,
}

impl Order {
    /// The order with this name in scripts.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "circular" => Some(Self::Circular),
            "random" => Some(Self::Random),
            "shuffled" => Some(Self::Shuffled),
            "queue" => Some(Self::Queue),
            _ => None,
        }
    }

    /// The row, from 0, for taker `number` (from 0, over the whole run) out of `rows`, at least one. `None` when a
    /// queue is empty.
    ///
    /// Each number belongs to one [`Share`](crate::share::Share), so that the shares together hand out the same rows as
    /// one would.
    pub fn row(self, rows: u64, seed: u64, number: u64) -> Option<u64> {
        let rows = rows.max(1);
        match self {
            Self::Circular => Some(number % rows),
            Self::Random => Some(choice(seed, number) % rows),
            Self::Shuffled => Some(shuffled(seed, rows, number % rows)),
            Self::Queue => (number < rows).then_some(number),
        }
    }
}

/// The position of `index` in a random order of `0..count`, without making the order: a Feistel network of four rounds
/// over the next power of four, walked until it hits the range (Black and Rogaway, "Ciphers with arbitrary finite
/// domains", 2002).
fn shuffled(seed: u64, count: u64, index: u64) -> u64 {
    let half = (64 - count.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut at = index;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..4_u64 {
            (left, right) = (right, left ^ mix(mix(seed ^ round) ^ right) & mask);
        }
        at = left << half | right;
        if at < count {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::share::Portion;

    proptest! {
        #[test]
        fn a_shuffled_order_has_every_row_once(count in 1_u64..2000, seed: u64) {
            let mut order: Vec<_> = (0..count).map(|index| shuffled(seed, count, index)).collect();
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..count));
        }

        #[test]
        fn shares_give_out_the_rows_of_one(kind in 0_usize..4, rows in 1_u64..300, seed: u64, takers in 0_u64..600) {
            let order = [Order::Circular, Order::Random, Order::Shuffled, Order::Queue][kind];
            let given = |shares: u32| {
                let numbers = Portion::whole(shares).shares().flat_map(|share| share.numbers().take_while(|n| *n < takers));
                let mut given: Vec<_> = numbers.filter_map(|number| order.row(rows, seed, number)).collect();
                given.sort_unstable();
                given
            };
            let one = given(1);
            for shares in [2, 7, 20] {
                prop_assert_eq!(&one, &given(shares), "{} shares", shares);
            }
            prop_assert!(kind != 3 || one.windows(2).all(|pair| pair[0] < pair[1]), "a queue gives no row twice");
        }
    }
}
