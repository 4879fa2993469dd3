//! Which slot a value falls into, and which values fall into a slot.

use std::ops::RangeInclusive;

/// Slots of one power of two, as a power of two: 2^10 slots give three significant digits.
pub(super) const PRECISION_BITS: u32 = 10;
/// Slots a page, as a power of two.
pub(super) const PAGE_BITS: u32 = 6;
pub(super) const PAGE_SLOTS: usize = 1 << PAGE_BITS;
/// The largest value that is told apart, in nanoseconds: 2^44, four hours and 53 minutes. Larger ones count as it.
pub const MAX_VALUE_NS: u64 = (1 << 44) - 1;
pub(super) const PAGES: usize = (slot_of(MAX_VALUE_NS) >> PAGE_BITS) + 1;

/// The slot that `value` falls into.
pub(super) const fn slot_of(value: u64) -> usize {
    // log2 of the value, but at least PRECISION_BITS: the first two octaves share slots of width one.
    let octave = (value | (1 << PRECISION_BITS)).ilog2() - PRECISION_BITS;
    ((octave as usize) << PRECISION_BITS) + (value >> octave) as usize
}

/// The largest value that falls into `slot`.
pub(super) const fn highest_in(slot: usize) -> u64 {
    if slot < 2 << PRECISION_BITS {
        return slot as u64;
    }
    let octave = (slot >> PRECISION_BITS) as u32 - 1;
    let lead = (slot - ((octave as usize) << PRECISION_BITS)) as u64;
    ((lead + 1) << octave) - 1
}

/// The smallest value that falls into `slot`.
pub(super) const fn lowest_in(slot: usize) -> u64 {
    if slot < 2 << PRECISION_BITS {
        return slot as u64;
    }
    let octave = (slot >> PRECISION_BITS) as u32 - 1;
    ((slot - ((octave as usize) << PRECISION_BITS)) as u64) << octave
}

/// The bucket of `value_ns`: the values, in nanoseconds, that a [`Histogram`](super::Histogram) does not tell from it.
/// The last one has no end.
pub const fn bucket_of(value_ns: u64) -> RangeInclusive<u64> {
    if value_ns >= MAX_VALUE_NS {
        return lowest_in(slot_of(MAX_VALUE_NS))..=u64::MAX;
    }
    let slot = slot_of(value_ns);
    let highest = highest_in(slot);
    lowest_in(slot)..=if highest == MAX_VALUE_NS { u64::MAX } else { highest }
}
