//! Limit on the bytes of an agent: a sender of more is not an agent.

/// Bytes that an agent may still send; they are refilled over time.
#[derive(Debug)]
pub(super) struct Allowance {
    bytes: u64,
    /// When it was last asked, in nanoseconds.
    at_ns: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { bytes: Self::AT_ONCE, at_ns: 0 }
    }
}

impl Allowance {
    /// Bytes a second: many times the size of a second's figures, with all the names that a run tells apart.
    pub(super) const PER_SECOND: u64 = 16 << 20;
    /// Bytes at once: the messages that an agent has kept while the bus was away.
    const AT_ONCE: u64 = 96 << 20;

    /// Takes `bytes` at `now_ns`. False if there are not as many left.
    pub(super) fn take(&mut self, bytes: usize, now_ns: u64) -> bool {
        let back = u128::from(now_ns.saturating_sub(self.at_ns)) * u128::from(Self::PER_SECOND) / 1_000_000_000;
        self.at_ns = self.at_ns.max(now_ns);
        self.bytes = u64::try_from(back).unwrap_or(u64::MAX).saturating_add(self.bytes).min(Self::AT_ONCE);
        let left = self.bytes.checked_sub(bytes as u64);
        self.bytes = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_may_come_at_once_and_less_all_the_time() {
        let mut allowance = Allowance::default();
        let mebibytes = |n: usize| n << 20;
        assert!(allowance.take(mebibytes(96), 0) && !allowance.take(1, 0));
        for second in 1..100 {
            assert!(allowance.take(mebibytes(16), second * 1_000_000_000));
        }
        assert!(!allowance.take(mebibytes(2), 99_100_000_000));
    }
}
