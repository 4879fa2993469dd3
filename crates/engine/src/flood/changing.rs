//! Changes of a flood's run while it goes on.

use super::{Flood, Pace};
use crate::control::Control;

impl Flood {
    /// Makes it part of a run that `control` changes.
    pub(crate) fn changed_by(self, control: &Control) -> Self {
        Self { part: self.part.changed_by(control), ..self }
    }

    /// Looks for changes of the run. Only after that a call is taken that is due by now.
    #[inline]
    pub(super) fn hear(&mut self) {
        if self.part.hear() {
            self.change();
        }
    }

    /// Applies the changes heard of.
    #[cold]
    pub(super) fn change(&mut self) {
        if let (Pace::Open(schedule), Some(profile)) = (&mut self.pace, self.part.profile()) {
            schedule.change(&profile);
            if let Some(growth) = &mut self.growth {
                growth.change(&profile);
            }
        } else {
            self.part.pause();
        }
    }
}
