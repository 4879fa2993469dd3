//! The part of the run that a flood is in, and how far calls may be made in it.

use brunt_plan::profile::Profile;
use brunt_plan::timetable::Timetable;
use brunt_record::time::Tick;

use crate::control::{AppliedChanges, Control};
use crate::gate::{DispatchWindow, GrantedUntil};

/// The warm-up or the measured part, its bounds, and the changes made to it.
pub(super) struct FloodPhase {
    is_on: bool,
    is_measured: bool,
    /// When the closed model stops calling: at the end of the part.
    until: Tick,
    /// When the part, and the measured part, began on the run's clock, past or future.
    began: Tick,
    measured_began: Tick,
    window: DispatchWindow,
    heard: AppliedChanges,
    /// The part's planned timetable, where it has one.
    planned: Option<Timetable>,
}

impl FloodPhase {
    /// Before the first part of a run.
    pub(super) fn before_all() -> Self {
        Self {
            is_on: false,
            is_measured: false,
            until: Tick::NEVER,
            began: Tick::EPOCH,
            measured_began: Tick::EPOCH,
            window: DispatchWindow::default(),
            heard: AppliedChanges::default(),
            planned: None,
        }
    }

    /// The same, with calls up to this horizon.
    pub(super) fn within(self, horizon: GrantedUntil) -> Self {
        Self { window: horizon.into(), ..self }
    }

    /// The same, of a run that `control` changes.
    pub(super) fn changed_by(self, control: &Control) -> Self {
        Self { heard: control.clone().into(), ..self }
    }

    /// A part begins at `began` and lasts until `until`; the measured one begins at `measured_began`, now or later.
    pub(super) fn begin(&mut self, is_measured: bool, began: Tick, until: Tick, measured_began: Tick) {
        (self.is_on, self.is_measured, self.until) = (true, is_measured, until);
        (self.began, self.measured_began, self.planned) = (began, measured_began, None);
    }

    pub(super) fn end(&mut self) {
        self.is_on = false;
    }

    /// Whether no part of the run has begun.
    pub(super) fn is_ahead(&self) -> bool {
        !self.is_on && self.began == Tick::EPOCH
    }

    /// Whether calls are made.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether they are measured.
    #[inline]
    pub(super) fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// When the closed model stops calling.
    #[inline]
    pub(super) fn until(&self) -> Tick {
        self.until
    }

    /// The part's calls follow this profile. Returns it with the changes so far.
    pub(super) fn follow(&mut self, profile: Profile) -> Profile {
        self.heard.look();
        let planned = self.planned.insert(Timetable::new(profile));
        planned.with(self.heard.changes(), self.began.measured_from(self.measured_began).ns())
    }

    /// Looks for changes of the run. Returns whether there are new ones.
    #[inline]
    pub(super) fn hear(&mut self) -> bool {
        self.heard.look()
    }

    /// The profile with the changes heard of, where calls follow one.
    pub(super) fn profile(&self) -> Option<Profile> {
        let planned = self.planned.as_ref()?;
        Some(planned.with(self.heard.changes(), self.began.measured_from(self.measured_began).ns()))
    }

    /// Pauses as the changes say.
    pub(super) fn pause(&mut self) {
        self.window.pause(self.heard.pauses(self.measured_began));
    }

    /// Whether the run is paused, or will be, without a known end.
    pub(super) fn is_paused(&self) -> bool {
        self.heard.is_paused()
    }

    /// Whether a call of this due time must wait. Remembers that one waits.
    #[inline]
    pub(super) fn holds_back(&mut self, due: Tick) -> bool {
        self.window.holds_back(due)
    }

    /// Whether calls have waited, and those of this due time may be made now. True once for each wait.
    #[inline]
    pub(super) fn lets_go(&mut self, due: Tick) -> bool {
        self.window.lets_go(due)
    }

    /// Whether no call of this due time may be made.
    #[inline]
    pub(super) fn ends_before(&self, due: Tick) -> bool {
        self.window.ends_before(due)
    }

    /// When the pause at `now` ends: [`Tick::NEVER`] without a pause, or if its end is not known.
    pub(super) fn resumes(&self, now: Tick) -> Tick {
        self.window.resumes(now)
    }

    /// The due time from which on no call may be made.
    pub(super) fn horizon(&self) -> Tick {
        self.window.until()
    }
}
