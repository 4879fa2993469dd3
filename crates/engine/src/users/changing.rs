//! Changes to the run of virtual users while it goes on.

use super::VirtualUsers;
use crate::control::Control;

impl VirtualUsers {
    /// The same users in a run that `control` changes.
    pub(crate) fn changed_by(self, control: &Control) -> Self {
        Self { heard: control.clone().into(), ..self }
    }

    /// Looks for changes of the run.
    #[inline]
    pub(super) fn hear(&mut self) {
        if self.heard.look() {
            self.take_changes();
        }
    }

    /// Applies the changes. Kept apart from the look, which every tick makes.
    #[cold]
    fn take_changes(&mut self) {
        self.reach.pause(self.heard.pauses(self.began));
        let users = self.heard.users(self.began);
        self.crowds.iter_mut().for_each(|crowd| crowd.change(&users));
        if let Some(throttle) = &mut self.throttle {
            throttle.change(self.heard.changes());
        }
    }
}
