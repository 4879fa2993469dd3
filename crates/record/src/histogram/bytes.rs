//! Histograms as bytes: LEB128 numbers, a slot's distance from the last one and its count.

use super::Histogram;
use super::slots::{MAX_VALUE_NS, PAGE_BITS, PAGES};

/// The most values of a histogram that is read, so that no sum of such counts overflows: 2^48, a billion a second for three days.
pub(crate) const MOST_VALUES: u64 = 1 << 48;

impl Histogram {
    /// The histogram as bytes, for readers that are faster with numbers than with text, as LEB128 numbers: the smallest
    /// and the largest value, the two halves of the sum, and for each non-empty slot the number of empty ones before it
    /// and its count. An empty histogram has no bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.count > 0 {
            let halves = [self.sum as u64, (self.sum >> 64) as u64];
            [self.min, self.max].into_iter().chain(halves).for_each(|number| push_leb128(&mut bytes, number));
            let mut next = 0;
            for (slot, n) in self.slots() {
                push_slot(&mut bytes, &mut next, slot, n);
            }
        }
        bytes
    }

    /// The histogram of these bytes; `None` if they are not valid.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut histogram = Self::new();
        if bytes.is_empty() {
            return Some(histogram);
        }
        let mut rest = bytes;
        let mut number = || take_leb128(&mut rest);
        let (min, max, low, high) = (number()?, number()?, number()?, number()?);
        histogram.count = count_of(rest)?;
        histogram.packed = rest.into();
        histogram.min = min.min(MAX_VALUE_NS);
        histogram.max = max.clamp(histogram.min, MAX_VALUE_NS);
        let most = u128::from(histogram.count) * u128::from(histogram.max);
        histogram.sum = (u128::from(low) | u128::from(high) << 64).min(most);
        (histogram.count > 0).then_some(histogram)
    }
}

/// Appends a slot and its count; `next` is the slot after the last one.
pub(super) fn push_slot(bytes: &mut Vec<u8>, next: &mut usize, slot: usize, n: u64) {
    push_leb128(bytes, (slot - *next) as u64);
    push_leb128(bytes, n);
    *next = slot + 1;
}

/// Takes the next slot and its count off the front of a histogram's bytes; `None` at their end, or if they are not
/// valid.
#[inline]
fn take_slot(bytes: &mut &[u8], next: &mut usize) -> Option<(usize, u64)> {
    let (gap, n) = match **bytes {
        // Nearly all: a controller reads millions of them a second.
        [gap @ ..0x80, n @ ..0x80, ref rest @ ..] => {
            *bytes = rest;
            (usize::from(gap), u64::from(n))
        }
        _ => (usize::try_from(take_leb128(bytes)?).ok()?, take_leb128(bytes)?),
    };
    let slot = next.checked_add(gap)?;
    *next = slot.checked_add(1)?;
    (slot < PAGES << PAGE_BITS && n > 0).then_some((slot, n))
}

/// The slots in a histogram's bytes, from low to high, with their counts.
pub(super) fn slots_in(mut bytes: &[u8]) -> impl Iterator<Item = (usize, u64)> {
    let mut next = 0;
    std::iter::from_fn(move || take_slot(&mut bytes, &mut next))
}

/// The number of values in a histogram's bytes; `None` if they are not valid.
fn count_of(mut bytes: &[u8]) -> Option<u64> {
    let (mut next, mut count) = (0, 0_u64);
    while !bytes.is_empty() {
        // Four slots at once, where their numbers have a byte each: a controller looks at millions of slots a second.
        if let Some((four, rest)) = bytes.split_first_chunk::<8>()
            && four.chunks_exact(2).all(|slot| matches!(slot, [..0x80, 1..0x80]))
        {
            next += four.iter().step_by(2).map(|gap| usize::from(*gap) + 1).sum::<usize>();
            count += four.iter().skip(1).step_by(2).map(|n| u64::from(*n)).sum::<u64>();
            bytes = rest;
        } else {
            count = count.checked_add(take_slot(&mut bytes, &mut next)?.1)?;
        }
        if next > PAGES << PAGE_BITS || count > MOST_VALUES {
            return None;
        }
    }
    Some(count)
}

/// Appends a number, seven bits a byte, the lowest first.
pub(crate) fn push_leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes such a number off the front; `None` if it is incomplete.
pub(crate) fn take_leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
