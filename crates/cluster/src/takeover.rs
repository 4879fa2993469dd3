//! A lost agent's remaining work, and which of the others takes over which piece. Pure: no I/O, no clock.

use brunt_plan::share::{Numbers, Portion};

/// A piece of a run that another agent has to carry on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) portion: Portion,
    /// The calls that are left, where the plan limits their number in the closed model.
    pub(crate) numbers: Vec<Numbers>,
    /// The end of its account in the measured part, in nanoseconds.
    pub(crate) since_ns: u64,
}

/// Deals the remaining work to `helpers`: pieces, each with the place of its helper. The run has `scarce` units of
/// something, such as connections, and each piece gets at least one; with `counts`, each gets a call.
///
/// Each helper has about as much to do. Where there are fewer workers left than helpers, a worker's share is divided.
pub(crate) fn deal(left: Vec<Left>, helpers: usize, scarce: u64, counts: bool) -> Vec<(usize, Left)> {
    let each = (helpers / left.len().max(1)).max(1);
    let mut pieces = Vec::new();
    for one in left {
        let portions = divided(one.portion, each as u32, scarce);
        let of = portions.len() as u64;
        let all: u64 = one.numbers.iter().map(|numbers| numbers.count()).sum();
        for (place, portion) in (0..).zip(portions) {
            let numbers = some_of(&one.numbers, all * place / of, all * (place + 1) / of);
            if !counts || !numbers.is_empty() {
                pieces.push(Left { portion, numbers, since_ns: one.since_ns });
            }
        }
    }
    (0..helpers.max(1)).cycle().zip(pieces).collect()
}

/// At most `parts` parts of a portion, each with at least one of the `scarce` units.
fn divided(portion: Portion, parts: u32, scarce: u64) -> Vec<Portion> {
    let has_one = |parts: &Vec<Portion>| parts.iter().all(|part| part.part_of(scarce) > 0);
    (2..=parts).rev().map(|parts| portion.divided(parts)).find(has_one).unwrap_or_else(|| vec![portion])
}

/// Numbers `from` up to `until` of several ranges one after the other.
pub(crate) fn some_of(numbers: &[Numbers], from: u64, until: u64) -> Vec<Numbers> {
    let mut before = 0;
    let mut some = Vec::new();
    for one in numbers {
        let begin = from.saturating_sub(before).min(one.count());
        let end = until.saturating_sub(before).min(one.count());
        if begin < end {
            some.push(Numbers { from: one.from + begin, until: one.from + end, ..*one });
        }
        before += one.count();
    }
    some
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owned(portions: impl IntoIterator<Item = Portion>, total: u64) -> Vec<u64> {
        let all = portions
            .into_iter()
            .flat_map(|portion| (0..portion.part_of(total)).filter_map(move |nth| portion.number(nth)));
        let mut all: Vec<u64> = all.collect();
        all.sort_unstable();
        all
    }

    fn listed(numbers: &[Numbers]) -> Vec<u64> {
        let mut all: Vec<_> =
            numbers.iter().flat_map(|some| (0..some.count()).filter_map(|nth| some.number(nth))).collect();
        all.sort_unstable();
        all
    }

    proptest! {
        /// Loss after loss, of those who had taken over too: what is left stays what it was, and nobody has it twice.
        #[test]
        fn what_is_left_is_dealt_out_whole(
            workers in prop::collection::vec(1_u32..5, 2..7), spare in 0_u32..40, made in 0_u64..60,
            losses in prop::collection::vec(any::<prop::sample::Index>(), 1..6), total in 1_u64..400,
        ) {
            let of: u32 = workers.iter().sum();
            let connections = u64::from(of + spare);
            let mut agents: Vec<Vec<Left>> = Vec::new();
            let mut first = 0;
            for count in &workers {
                let portion = Portion::new(first, *count, of).unwrap();
                first += count;
                agents.push(vec![Left { portion, numbers: vec![Numbers::owned_by(portion, Some(total))], since_ns: 0 }]);
            }
            for loss in losses.iter().take(workers.len() - 1) {
                let lost = agents.remove(loss.index(agents.len()));
                // It has made some of its calls.
                let left: Vec<_> = lost.into_iter().map(|one| {
                    let made = made.min(one.numbers.iter().map(|some| some.count()).sum());
                    Left { numbers: some_of(&one.numbers, made, u64::MAX), ..one }
                }).collect();
                let portions = owned(left.iter().map(|one| one.portion), total);
                let numbers = listed(&left.iter().flat_map(|one| one.numbers.clone()).collect::<Vec<_>>());
                let open = deal(left.clone(), agents.len(), connections, false);
                prop_assert_eq!(owned(open.iter().map(|(_, one)| one.portion), total), portions);
                let dealt = deal(left, agents.len(), connections, true);
                prop_assert_eq!(listed(&dealt.iter().flat_map(|(_, one)| one.numbers.clone()).collect::<Vec<_>>()), numbers);
                for (helper, one) in open {
                    prop_assert!(one.portion.part_of(connections) > 0);
                    agents[helper].push(one);
                }
            }
            let all = agents.iter().flatten().map(|one| one.portion);
            prop_assert_eq!(owned(all, total), (0..total).collect::<Vec<_>>());
        }
    }

    #[test]
    fn helpers_have_about_as_much_to_do() {
        let portion = Portion::new(0, 1, 5).unwrap();
        let left = Left { portion, numbers: Vec::new(), since_ns: 7 };
        let dealt = deal(vec![left], 4, 1000, false);
        assert_eq!(dealt.iter().map(|(helper, _)| *helper).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(dealt.iter().all(|(_, piece)| piece.portion.all_workers() == 20 && piece.since_ns == 7));
        // With six connections in all, the lost agent had two at most.
        let left = Left { portion, numbers: Vec::new(), since_ns: 7 };
        let counts: Vec<u64> =
            deal(vec![left], 4, 6, false).iter().map(|(_, piece)| piece.portion.part_of(6)).collect();
        assert_eq!(counts, [1, 1]);
    }
}
