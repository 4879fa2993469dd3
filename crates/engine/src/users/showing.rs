//! Showing what users do to an observer: everything (`--once`), or failures and what scripts log (`--log`).

use std::sync::Arc;

use super::slots::{UserCall, slot_of};
use super::{State, VirtualUsers};
use crate::trace::{Level, Sight, Trace, Traced};
use brunt_protocol::scenario::CompleteAnswer;

impl VirtualUsers {
    /// Shows `trace` what the users do, as far as its sight goes.
    pub(crate) fn show(&mut self, trace: &Arc<dyn Trace>) {
        match trace.sight() {
            Sight::Everything => {}
            sight @ (Sight::Failures | Sight::Said) => {
                self.witness = Some(Arc::clone(trace));
                self.shows_failures = sight == Sight::Failures;
                return;
            }
        }
        self.library.trace();
        self.trace = Some(Arc::clone(trace));
    }

    pub(super) fn see(&self, traced: &Traced<'_>) {
        if let Some(trace) = &self.trace {
            trace.see(traced);
        }
    }

    /// Whether a call succeeds with this status.
    pub(super) fn is_success(&self, call: &UserCall, status: u16) -> bool {
        self.expects(call, status).unwrap_or_else(|| self.ok_status.holds(status))
    }

    /// Whether a call succeeds with this status, as its options or its protocol say; `None` if the run's statuses decide.
    #[inline]
    pub(super) fn expects(&self, call: &UserCall, status: u16) -> Option<bool> {
        self.names.expects(call.label, status).or_else(|| {
            let ok = self.own_statuses.get(call.client)?.as_ref()?;
            Some(ok.holds(status))
        })
    }

    /// Shows the outcome of a call to a trace of everything, or its failure to a trace of failures.
    #[inline]
    pub(super) fn see_call(&self, slot: u32) {
        if let Some(trace) = &self.trace {
            return self.show_call(trace.as_ref(), slot);
        }
        let Some(witness) = self.witness.as_ref().filter(|_| self.shows_failures) else { return };
        let has_failed = self.calls.get(slot).is_some_and(|call| match call.state {
            State::Answered(status) => !self.is_success(call, status),
            State::Failed(_) => !call.optional,
            State::Throttled | State::UnderWay => false,
        });
        if has_failed {
            self.show_call(witness.as_ref(), slot);
        }
    }

    #[cold]
    fn show_call(&self, trace: &dyn Trace, slot: u32) {
        let Some(call) = self.calls.get(slot) else { return };
        let Some(client) = self.clients.get(call.client) else { return };
        let name = self.names.get(call.label).map_or("", |label| label.name.as_str());
        let request = &client.caller.shown_call(self.encoded(call));
        match call.state {
            State::Answered(status) => {
                let parts = call.kept.parts();
                let answer = CompleteAnswer { status, parts };
                let head = &client.caller.shown_head(&answer);
                let body = &[call.before.as_slice(), &client.caller.shown_answer(self.encoded(call), &answer)].concat();
                let service_ns = call.ended.map_or(0, |(times, end)| times.service_ns(end));
                trace.see(&Traced::Answered { name, request, status, head, body, service_ns });
            }
            State::Failed(failure) => trace.see(&Traced::Failed { name, request, failure, reason: &call.reason }),
            State::Throttled | State::UnderWay => {}
        }
    }

    /// Shows the failed check and its answer to a trace of failures.
    pub(super) fn see_failed_check(&self, check: u32, ticket: u64) {
        let Some(witness) = self.witness.as_ref().filter(|_| self.shows_failures) else { return };
        let Some(name) = self.names.check_name(check) else { return };
        let slot = self.ticketed(ticket).map(|_| slot_of(ticket));
        let is_ok = |slot: u32| {
            let call = self.calls.get(slot);
            call.is_some_and(|call| matches!(call.state, State::Answered(status) if self.is_success(call, status)))
        };
        // An answer that was no success anyway was shown when it came.
        if let Some(slot) = slot.filter(|slot| is_ok(*slot)) {
            self.show_call(witness.as_ref(), slot);
        }
        witness.see(&Traced::Checked { name: &name, held: false });
    }

    /// The trace that sees failures and what the script logs.
    pub(super) fn seer(&self) -> Option<&Arc<dyn Trace>> {
        self.trace.as_ref().or(self.witness.as_ref())
    }

    /// Shows what a script logs.
    pub(super) fn see_log(&self, user: u32, level: &str, text: &str) {
        let Some(trace) = self.seer() else { return };
        let Some(of) = self.users.get(self.home(user)) else { return };
        let scenario = self.crowds.get(of.crowd).and_then(|crowd| crowd.scenario(of.place)).unwrap_or_default();
        let level = Level::from_name(level).unwrap_or(Level::Info);
        trace.see(&Traced::Logged { level, user: of.id, scenario, text });
    }

    /// Shows whether a check held.
    pub(super) fn see_check(&self, check: u32, held: bool) {
        if self.trace.is_some()
            && let Some(name) = self.names.check_name(check)
        {
            self.see(&Traced::Checked { name: &name, held });
        }
    }
}
