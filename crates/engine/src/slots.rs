//! Slots: values by number that keep their buffers from one use to the next.
//!
//! A worker makes and ends calls, users, sessions and connections all the time. Each kind lives in [`Slots`]: a slot that
//! is freed is taken again before another is made, and its value is recycled and never dropped, so that a busy worker
//! soon allocates nothing.

/// A value that is used again.
pub(crate) trait Recycle {
    /// Forgets what it holds. Buffers keep their memory, within reason.
    fn recycle(&mut self);
}

/// A slot.
#[derive(Debug)]
struct Slot<T> {
    /// Grows whenever the slot is freed, and so tells its values apart.
    generation: u32,
    is_taken: bool,
    value: T,
}

/// Values by the numbers of their slots.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    vacant: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// The value in a slot that is taken.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize).filter(|slot| slot.is_taken).map(|slot| &slot.value)
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize).filter(|slot| slot.is_taken).map(|slot| &mut slot.value)
    }

    /// The value in a slot, if it is still the one of this generation.
    #[inline]
    pub(crate) fn of(&self, slot: u32, generation: u32) -> Option<&T> {
        let slot = self.slots.get(slot as usize)?;
        (slot.is_taken && slot.generation == generation).then_some(&slot.value)
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn of_mut(&mut self, slot: u32, generation: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut(slot as usize)?;
        (slot.is_taken && slot.generation == generation).then_some(&mut slot.value)
    }

    /// The value in a slot, taken or not.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline]
    #[allow(clippy::indexing_slicing)]
    pub(crate) fn value(&self, slot: usize) -> &T {
        &self.slots[slot].value
    }

    /// The same, to change it.
    ///
    /// # Panics
    /// When there is no such slot.
    #[inline]
    #[allow(clippy::indexing_slicing)]
    pub(crate) fn value_mut(&mut self, slot: usize) -> &mut T {
        &mut self.slots[slot].value
    }

    /// The generation of the value in a slot, or of the next one if the slot is vacant.
    #[inline]
    pub(crate) fn generation(&self, slot: u32) -> u32 {
        self.slots.get(slot as usize).map_or(0, |slot| slot.generation)
    }

    /// How many slots there are, vacant ones included. Their numbers are lower.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many slots are taken.
    #[inline]
    pub(crate) fn taken(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// The values in taken slots, with the slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().zip(0..).filter(|(slot, _)| slot.is_taken).map(|(slot, number)| (number, &slot.value))
    }

    /// The same, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter(|slot| slot.is_taken).map(|slot| &mut slot.value)
    }
}

impl<T: Recycle> Slots<T> {
    /// Takes a slot. Its value is a recycled one, or else `fresh`.
    #[inline]
    pub(crate) fn take(&mut self, fresh: impl FnOnce() -> T) -> u32 {
        if let Some(number) = self.vacant.pop() {
            if let Some(slot) = self.slots.get_mut(number as usize) {
                debug_assert!(!slot.is_taken, "a slot holds one value at a time");
                slot.is_taken = true;
            }
            return number;
        }
        self.slots.push(Slot { generation: 0, is_taken: true, value: fresh() });
        (self.slots.len() - 1) as u32
    }

    /// Takes a slot for a value that replaces whatever is there. Returns the slot and the value's generation.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> (u32, u32) {
        let Some(number) = self.vacant.pop() else {
            self.slots.push(Slot { generation: 0, is_taken: true, value });
            return ((self.slots.len() - 1) as u32, 0);
        };
        let Some(slot) = self.slots.get_mut(number as usize) else { return (number, 0) };
        debug_assert!(!slot.is_taken, "a slot holds one value at a time");
        (slot.is_taken, slot.value) = (true, value);
        (number, slot.generation)
    }

    /// Frees a slot, and recycles its value. False if it was free already.
    #[inline]
    pub(crate) fn free(&mut self, number: u32) -> bool {
        let Some(slot) = self.slots.get_mut(number as usize).filter(|slot| slot.is_taken) else { return false };
        slot.is_taken = false;
        slot.generation = slot.generation.wrapping_add(1);
        slot.value.recycle();
        self.vacant.push(number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Recycle for Vec<u8> {
        fn recycle(&mut self) {
            self.clear();
        }
    }

    #[test]
    fn a_freed_slot_is_taken_again_with_its_buffer() {
        let mut slots = Slots::default();
        let first = slots.take(|| Vec::with_capacity(100));
        let other = slots.take(Vec::new);
        slots.get_mut(first).expect("it is taken").extend(b"text");
        assert!(slots.free(first) && !slots.free(first), "once");
        assert!(slots.get(first).is_none() && slots.get(other).is_some());
        assert_eq!((slots.taken(), slots.len(), slots.iter().count()), (1, 2, 1));
        let again = slots.take(Vec::new);
        assert_eq!((again, slots.get(again).map(Vec::len)), (first, Some(0)));
        assert!(slots.get(again).is_some_and(|value| value.capacity() >= 100), "its memory was kept");
    }

    #[test]
    fn a_generation_tells_values_of_one_slot_apart() {
        let mut slots = Slots::default();
        let slot = slots.take(Vec::new);
        let generation = slots.generation(slot);
        assert!(slots.of(slot, generation).is_some());
        slots.free(slot);
        assert!(slots.of_mut(slot, generation).is_none() && slots.of(slot, slots.generation(slot)).is_none());
        slots.take(Vec::new);
        assert!(slots.of(slot, generation).is_none() && slots.of(slot, slots.generation(slot)).is_some());
    }
}
