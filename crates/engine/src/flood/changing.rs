//! Changes of a flood's run while it goes on.

use super::{Flood, Pace};
use crate::control::Control;

impl Flood {
    /// Makes it part of a run that `control` changes.
    pub(crate) fn changed_by(self, control: &Control) -> Self {
        Self { heard: control.clone().into(), ..self }
    }

    /// Looks for changes of the run. Only after that a call is taken that is due by now.
    #[inline]
    pub(super) fn hear(&mut self) {
        if self.heard.look() {
            self.change();
        }
    }

    /// Applies the changes heard of.
    #[cold]
    pub(super) fn change(&mut self) {
        let begins_ns = self.phase_began.measured_from(self.measured_began).ns();
        if let (Pace::Open(schedule), Some(planned)) = (&mut self.pace, &self.planned) {
            let profile = planned.with(self.heard.changes(), begins_ns);
            schedule.change(&profile);
            if let Some(growth) = &mut self.growth {
                growth.change(&profile);
            }
        } else {
            self.reach.pause(self.heard.pauses(self.measured_began));
        }
    }
}
