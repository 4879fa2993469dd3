//! Users dealt to the parts of a mix by their shares.

use crate::random;

/// Two deadlines that are nearer to each other than this are one.
const SAME: f64 = 1e-9;

/// How often users may change places.
const EXCHANGES: u64 = 8;

/// Endless sequence of parts: after any number of users each part has its share of them, to within one user.
///
/// It depends on the weights and the seed alone, so that every worker deals the same sequence and takes its own numbers of it.
///
/// Parts take turns by the chairman assignment of R. Tijdeman (Discrete Mathematics 32, 1980): of the parts that are owed enough, the one whose
/// next user is due first. Ties are random, and users change places with those behind them as far as the limit allows: in a strict order one
/// thread of eight would get all users of a part of an eighth.
///
/// ```
/// use brunt_plan::deal::Deal;
///
/// let mut deal = Deal::new(&[3.0, 1.0], 7);
/// let second = (0..40).filter(|_| deal.next_part() == 1).count();
/// assert_eq!(second, 10);
/// ```
#[derive(Debug, Clone)]
pub struct Deal {
    seed: u64,
    /// The share of each part of the users.
    shares: Vec<f64>,
    /// The share of each part of the turns so far, without those that it took.
    owed: Vec<f64>,
    /// How many turns were taken.
    turns: u64,
    exchanges: Vec<Exchange>,
}

/// One passage of users, in which they may change places.
#[derive(Debug, Clone)]
struct Exchange {
    seed: u64,
    /// The part of the user who is held back.
    held: usize,
    /// How many users have passed, over all and of each part.
    passed: u64,
    passed_of: Vec<u64>,
}

impl Exchange {
    /// Takes a user of this part, and gives one: the same, or the one who was held back.
    fn pass(&mut self, coming: usize, shares: &[f64]) -> usize {
        self.passed += 1;
        // How many users more a part had to have here.
        let lacks = |part: usize| {
            let (share, passed) = (shares.get(part).unwrap_or(&0.0), self.passed_of.get(part).unwrap_or(&0));
            self.passed as f64 * share - *passed as f64
        };
        let holds_on = !random::choice(self.seed, self.passed).is_multiple_of(4)
            && lacks(self.held) <= 1.0 - SAME
            && lacks(coming) >= SAME;
        let passes = if holds_on { coming } else { std::mem::replace(&mut self.held, coming) };
        if let Some(passed) = self.passed_of.get_mut(passes) {
            *passed += 1;
        }
        passes
    }
}

impl Deal {
    /// The users of parts with these weights, each above 0.
    pub fn new(weights: &[f64], seed: u64) -> Self {
        let all: f64 = weights.iter().sum();
        let shares: Vec<_> = weights.iter().map(|weight| weight / all).collect();
        let count = shares.len();
        let mut deal = Self { seed, shares, owed: vec![0.0; count], turns: 0, exchanges: Vec::new() };
        if count > 1 {
            for number in 0..EXCHANGES {
                let held = deal.next_part();
                let seed = random::choice(!seed, number);
                deal.exchanges.push(Exchange { seed, held, passed: 0, passed_of: vec![0; count] });
            }
        }
        deal
    }

    /// The part of the next user: its place among the weights.
    pub fn next_part(&mut self) -> usize {
        if self.shares.len() < 2 {
            return 0;
        }
        let part = self.take_turn();
        self.exchanges.iter_mut().fold(part, |part, exchange| exchange.pass(part, &self.shares))
    }

    /// The part whose turn it is.
    fn take_turn(&mut self) -> usize {
        self.turns += 1;
        // How far behind its share a part may be.
        let limit = 1.0 - 1.0 / (2 * self.shares.len() - 2) as f64;
        let (mut chosen, mut earliest, mut ties) = (0, f64::INFINITY, 0_u64);
        for (part, (share, owed)) in self.shares.iter().zip(&mut self.owed).enumerate() {
            *owed += share;
            if *owed < 1.0 - limit - SAME {
                continue;
            }
            let deadline = (limit - *owed) / share;
            if (deadline - earliest).abs() < SAME {
                ties += 1;
                // Each of them has the same chance.
                let drawn = random::choice(self.seed, self.turns.wrapping_mul(64).wrapping_add(part as u64));
                if drawn.is_multiple_of(ties + 1) {
                    chosen = part;
                }
            } else if deadline < earliest {
                (chosen, earliest, ties) = (part, deadline, 0);
            }
        }
        if let Some(owed) = self.owed.get_mut(chosen) {
            *owed -= 1.0;
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dealt(weights: &[f64], seed: u64, users: usize) -> Vec<usize> {
        let mut deal = Deal::new(weights, seed);
        (0..users).map(|_| deal.next_part()).collect()
    }

    /// The most by which a part is off its share after any number of these users.
    fn most_off(weights: &[f64], parts: &[usize]) -> f64 {
        let all: f64 = weights.iter().sum();
        let mut had = vec![0.0; weights.len()];
        let mut most: f64 = 0.0;
        for (place, part) in parts.iter().enumerate() {
            had[*part] += 1.0;
            for (had, weight) in had.iter().zip(weights) {
                most = most.max((had - (place + 1) as f64 * weight / all).abs());
            }
        }
        most
    }

    #[test]
    fn whole_rounds_have_each_share_exactly() {
        for (weights, round) in
            [(&[3.0, 1.0][..], 4), (&[90.0, 10.0], 10), (&[1.0, 1.0, 1.0], 3), (&[0.5, 0.3, 0.2], 10)]
        {
            for seed in 0..20 {
                let parts = dealt(weights, seed, 50 * round);
                let all: f64 = weights.iter().sum();
                for (part, weight) in weights.iter().enumerate() {
                    let had = parts.iter().filter(|one| **one == part).count();
                    assert_eq!(had as f64, (weight / all * (50 * round) as f64).round(), "{weights:?} {seed}");
                }
            }
        }
    }

    #[test]
    fn the_order_is_that_of_the_seed() {
        assert_eq!(dealt(&[3.0, 1.0], 1, 100), dealt(&[3.0, 1.0], 1, 100));
        assert_ne!(dealt(&[3.0, 1.0], 1, 100), dealt(&[3.0, 1.0], 2, 100));
        assert_eq!(dealt(&[5.0], 1, 3), [0, 0, 0]);
    }

    /// Threads take every n-th user: none may get all, or none, of a part.
    #[test]
    fn each_thread_gets_some_users_of_each_part() {
        for (weights, threads) in [(&[7.0, 1.0], 8), (&[1.0, 1.0], 2), (&[3.0, 1.0], 4), (&[3.0, 1.0], 2)] {
            let parts = dealt(weights, 3, 4000);
            let of = |thread: usize| parts.iter().skip(thread).step_by(threads).filter(|part| **part == 1).count();
            let (all, with) = (parts.iter().filter(|part| **part == 1).count(), (0..threads).map(of));
            let most = with.max().unwrap();
            assert!(most * 2 < all || threads == 2 && most * 4 < all * 3, "{weights:?}: {most} of {all}");
        }
    }

    proptest! {
        #[test]
        fn no_part_is_ever_a_whole_user_off(weights in prop::collection::vec(prop_oneof![0.01..100.0_f64, (1..20_u32).prop_map(f64::from)], 1..8), seed: u64) {
            let parts = dealt(&weights, seed, 3000);
            prop_assert!(most_off(&weights, &parts) < 1.0 + 1e-6, "{}", most_off(&weights, &parts));
        }
    }
}
