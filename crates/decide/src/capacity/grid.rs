//! The levels that a search can try: rates that each exceed the last by the same share, or whole numbers of
//! connections or users.

use super::{LOWEST_RATE, Searched, Settings};

impl Settings {
    /// The level of a step of the grid: calls a second to four digits, or connections.
    pub fn level(&self, step: i32) -> f64 {
        match self.searched {
            Searched::Rate => self.rate(step),
            Searched::Connections | Searched::Users => {
                let mut connections = self.from;
                for _ in 0..step.unsigned_abs() {
                    if (step > 0 && connections >= self.highest) || (step < 0 && connections <= 1.0) {
                        break;
                    }
                    connections = if step > 0 { self.more(connections) } else { self.fewer(connections) };
                }
                connections.clamp(1.0, self.highest)
            }
        }
    }

    fn rate(&self, step: i32) -> f64 {
        let rate = self.from * (1.0 + self.precision_ratio).powi(step);
        let digits = 3 - rate.log10().floor() as i32;
        let scale = 10_f64.powi(digits.abs());
        let rate = if digits > 0 { (rate * scale).round() / scale } else { (rate / scale).round() * scale };
        rate.clamp(LOWEST_RATE.min(self.from), self.highest)
    }

    /// The next number of connections on the grid, at least one more.
    fn more(&self, connections: f64) -> f64 {
        (connections * (1.0 + self.precision_ratio)).round().max(connections + 1.0)
    }

    /// The number of connections before this one on the grid, at least one fewer.
    fn fewer(&self, connections: f64) -> f64 {
        (connections / (1.0 + self.precision_ratio)).round().min(connections - 1.0)
    }

    /// The last step: that of rates is not above the highest, that of connections is the highest.
    pub(super) fn top(&self) -> i32 {
        match self.searched {
            Searched::Rate => self.steps_to(self.highest).floor() as i32,
            Searched::Connections | Searched::Users => self.first_up(0, self.highest),
        }
    }

    /// The first step: that of rates is not below the lowest, that of connections is one connection.
    pub(super) fn bottom(&self) -> i32 {
        match self.searched {
            Searched::Rate => self.steps_to(LOWEST_RATE.min(self.from)).ceil() as i32,
            Searched::Connections | Searched::Users => self.first_down(0, 1.0),
        }
    }

    /// The first step with at least twice the level of `step`.
    pub(super) fn doubled(&self, step: i32) -> i32 {
        match self.searched {
            Searched::Rate => step + self.doubling(),
            Searched::Connections | Searched::Users => self.first_up(step, (self.level(step) * 2.0).min(self.highest)),
        }
    }

    /// The first step below with at most half the level of `step`.
    pub(super) fn halved(&self, step: i32) -> i32 {
        match self.searched {
            Searched::Rate => step - self.doubling(),
            Searched::Connections | Searched::Users => self.first_down(step, (self.level(step) / 2.0).max(1.0)),
        }
    }

    /// How many steps double a rate.
    pub(super) fn doubling(&self) -> i32 {
        (2_f64.ln() / self.precision_ratio.ln_1p()).ceil() as i32
    }

    fn steps_to(&self, rate: f64) -> f64 {
        // 1e-9 absorbs rounding, so that the rate asked for stays within the grid.
        ((rate / self.from).ln() / self.precision_ratio.ln_1p() + 1e-9).min(1e6)
    }

    fn first_up(&self, from: i32, connections: f64) -> i32 {
        let (mut step, mut level) = (from, self.level(from));
        while level < connections {
            level = self.more(level);
            step += 1;
        }
        step
    }

    fn first_down(&self, from: i32, connections: f64) -> i32 {
        let (mut step, mut level) = (from, self.level(from));
        while level > connections {
            level = self.fewer(level);
            step -= 1;
        }
        step
    }
}
