//! Circles in a graph of modules.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::Uses;
use crate::source::{Id, Tree};

/// Modules that all use each other, directly or not, in the order of their names.
pub type Circle = Vec<Id>;

/// The circles of a tree's modules. A module and those inside of it count as related: what one uses of the other makes no
/// circle.
pub fn circles(tree: &Tree, uses: &Uses) -> Vec<Circle> {
    let edges = uses.keys().copied().filter(|&(from, to)| !tree.related(from, to));
    named(tree, components(&edges.collect()))
}

/// The circles of modules that stand beside each other, each with all that is inside of it.
///
/// These are stricter: `a::x` uses `b::y` and `b::z` uses `a::w` is a circle of `a` and `b`, though of no two modules.
pub fn folder_circles(tree: &Tree, uses: &Uses) -> Vec<Circle> {
    let edges = uses.keys().filter_map(|&(from, to)| beside_each_other(tree, from, to));
    named(tree, components(&edges.collect()))
}

/// The modules around these two that have the same parent; none where one is inside of the other.
pub fn beside_each_other(tree: &Tree, from: Id, to: Id) -> Option<(Id, Id)> {
    if tree.related(from, to) {
        return None;
    }
    let (above_from, above_to) = (ancestry(tree, from), ancestry(tree, to));
    above_from.into_iter().zip(above_to).find(|(one, other)| one != other)
}

/// A module and all around it, from the root down.
fn ancestry(tree: &Tree, id: Id) -> Vec<Id> {
    let mut ids: Vec<_> =
        std::iter::successors(Some(id), |&id| tree.modules.get(id).and_then(|module| module.parent)).collect();
    ids.reverse();
    ids
}

fn named(tree: &Tree, mut circles: Vec<Circle>) -> Vec<Circle> {
    for circle in &mut circles {
        circle.sort_by_key(|&id| tree.name(id));
    }
    circles.sort_by_key(|circle| (std::cmp::Reverse(circle.len()), circle.first().map(|&id| tree.name(id))));
    circles
}

/// Strongly connected components of more than one node: of what a node reaches, what reaches it.
pub fn components<N: Ord + Copy>(edges: &BTreeSet<(N, N)>) -> Vec<Vec<N>> {
    let mut forward: BTreeMap<N, Vec<N>> = BTreeMap::new();
    let mut backward: BTreeMap<N, Vec<N>> = BTreeMap::new();
    for &(from, to) in edges {
        forward.entry(from).or_default().push(to);
        backward.entry(to).or_default().push(from);
    }
    let mut found = Vec::new();
    let mut placed = BTreeSet::new();
    for &node in forward.keys() {
        if placed.contains(&node) {
            continue;
        }
        let both: Vec<N> = reached(&forward, node).intersection(&reached(&backward, node)).copied().collect();
        placed.extend(both.iter().copied());
        if both.len() > 1 {
            found.push(both);
        }
    }
    found
}

fn reached<N: Ord + Copy>(edges: &BTreeMap<N, Vec<N>>, from: N) -> BTreeSet<N> {
    let mut seen = BTreeSet::from([from]);
    let mut next = vec![from];
    while let Some(node) = next.pop() {
        next.extend(edges.get(&node).into_iter().flatten().copied().filter(|&to| seen.insert(to)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_what_reaches_each_other() {
        let edges = BTreeSet::from([(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (5, 6)]);
        assert_eq!(components(&edges), [vec![1, 2, 3], vec![4, 5]]);
        assert!(components(&BTreeSet::from([(1, 2), (1, 3), (2, 3)])).is_empty());
    }
}
