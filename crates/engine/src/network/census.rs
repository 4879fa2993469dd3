//! How many connections are being made, take calls, or leave.

/// A worker's connections, counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Census {
    connecting: usize,
    taking: usize,
    draining: usize,
}

impl Census {
    /// Connections being made.
    #[inline]
    pub(crate) fn connecting(self) -> usize {
        self.connecting
    }

    /// Connections that take calls.
    #[inline]
    pub(crate) fn taking(self) -> usize {
        self.taking
    }

    /// Connections that take no more calls and have some in flight.
    pub(crate) fn draining(self) -> usize {
        self.draining
    }

    /// One begins to be made.
    pub(super) fn begins(&mut self) {
        self.connecting += 1;
    }

    /// One was made.
    pub(super) fn opens(&mut self) {
        (self.connecting, self.taking) = (self.connecting - 1, self.taking + 1);
    }

    /// One could not be made, or nobody wants it any more.
    pub(super) fn is_not_made(&mut self) {
        self.connecting -= 1;
    }

    /// The peer takes no more calls on one.
    pub(super) fn leaves(&mut self) {
        (self.taking, self.draining) = (self.taking - 1, self.draining + 1);
    }

    /// One that was made is gone, after the peer took no more calls on it or otherwise.
    pub(super) fn is_gone(&mut self, has_left: bool) {
        let place = if has_left { &mut self.draining } else { &mut self.taking };
        *place -= 1;
    }
}
