//! A flood whose run is changed while it goes on.

use super::{Flood, Pace};
use crate::control::Control;

impl Flood {
    /// The same of a run that `control` changes.
    pub(crate) fn changed_by(self, control: &Control) -> Self {
        Self { heard: control.clone().into(), ..self }
    }

    /// Looks for changes of the run: no call is taken that was due by a time at which this was not asked after.
    #[inline]
    pub(super) fn hear(&mut self) {
        if self.heard.look() {
            self.change();
        }
    }

    /// Goes on by what was heard.
    #[cold]
    pub(super) fn change(&mut self) {
        let begins_ns = self.phase_began as i64 - self.measured_began as i64;
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
