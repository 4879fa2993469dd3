//! A queue of items that mostly come in order. Pure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Returns items by their order, the least first. An item not less than the last one is appended, which costs a
/// comparison; other items go into a heap.
#[derive(Debug)]
pub struct Queue<T> {
    in_order: VecDeque<T>,
    others: BinaryHeap<Reverse<T>>,
}

impl<T: Ord> Default for Queue<T> {
    fn default() -> Self {
        Self { in_order: VecDeque::new(), others: BinaryHeap::new() }
    }
}

impl<T: Ord> Queue<T> {
    /// Adds an item.
    pub fn push(&mut self, item: T) {
        if self.in_order.back().is_none_or(|last| *last <= item) {
            self.in_order.push_back(item);
        } else {
            self.others.push(Reverse(item));
        }
    }

    /// The least item.
    pub fn peek(&self) -> Option<&T> {
        if self.is_other_next() { self.others.peek().map(|Reverse(item)| item) } else { self.in_order.front() }
    }

    /// Takes the least item.
    pub fn pop(&mut self) -> Option<T> {
        if self.is_other_next() { self.others.pop().map(|Reverse(item)| item) } else { self.in_order.pop_front() }
    }

    fn is_other_next(&self) -> bool {
        let Some(Reverse(other)) = self.others.peek() else { return false };
        self.in_order.front().is_none_or(|first| other < first)
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.in_order.len() + self.others.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_come_out_as_from_a_heap(steps in prop::collection::vec(prop::option::of(0..50_u32), 0..200)) {
            let (mut queue, mut heap) = (Queue::default(), BinaryHeap::new());
            for step in steps {
                if let Some(item) = step {
                    queue.push(item);
                    heap.push(Reverse(item));
                } else {
                    prop_assert_eq!(queue.peek(), heap.peek().map(|Reverse(item)| item));
                    prop_assert_eq!(queue.pop(), heap.pop().map(|Reverse(item)| item));
                }
                prop_assert_eq!(queue.len(), heap.len());
            }
        }
    }
}
