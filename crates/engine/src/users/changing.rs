//! Virtual users whose run is changed while it goes on.

use super::VirtualUsers;
use crate::control::Control;

impl VirtualUsers {
    /// The same of a run that `control` changes.
    pub(crate) fn changed_by(self, control: &Control) -> Self {
        Self { heard: control.clone().into(), ..self }
    }

    /// Looks for changes of the run.
    pub(super) fn hear(&mut self) {
        if self.heard.look() {
            self.reach.pause(self.heard.pauses(self.began));
            if let Some(throttle) = &mut self.throttle {
                throttle.change(self.heard.changes());
            }
        }
    }
}
