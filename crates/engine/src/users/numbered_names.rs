//! The numbers by which scripts know the names that figures are counted by.

use brunt_plan::threshold::{Selection, Traits};
use brunt_record::figures::{CallFigures, Example, Figures, NameId};
use brunt_record::outcome::OkStatus;
use brunt_record::samples::Texts;

use crate::network::{Core, Recorder};

/// The label of calls: their name and their tags.
#[derive(Debug, Default)]
pub(super) struct Label {
    pub(super) name: String,
    pub(super) id: Option<NameId>,
    pub(super) tags: Vec<NameId>,
    /// The texts of the tags, which a `;` separates.
    tag_texts: String,
    /// The selections that take such calls, with the statuses that they take, if not all.
    selected: Vec<(NameId, Option<OkStatus>)>,
    /// The statuses that count as success for such calls, if not those of the run.
    ok: Option<OkStatus>,
    /// The status whose name was asked for last.
    named: u16,
    /// Labels of the answers of such calls that led on, by the number of earlier ones that had.
    hops: Vec<u32>,
}

#[derive(Debug)]
struct Check {
    id: NameId,
    label: u32,
    name: String,
    is_reason: bool,
}

/// The names that a script has numbers for; its numbers count from 1.
#[derive(Debug, Default)]
pub(super) struct NumberedNames {
    labels: Vec<Label>,
    checks: Vec<Check>,
    /// The labels of calls beyond the most: one for those with the same selections and expectations.
    others: Vec<u32>,
    /// The selections that thresholds ask for.
    selections: Vec<Selection>,
    /// Whether any label has its own expected statuses.
    has_expectations: bool,
}

/// The most labels that are told apart: names are fewer than that, but each may come with many tags.
const MOST_LABELS: usize = 5000;
/// The most checks, by the names of the calls to which they belong.
const MOST_CHECKS: usize = 5000;

fn place(number: u32) -> usize {
    (number as usize).wrapping_sub(1)
}

impl NumberedNames {
    /// No names yet; figures are kept for these selections.
    pub(super) fn selecting(selections: Vec<Selection>) -> Self {
        Self { selections, ..Self::default() }
    }

    /// The number of the label for calls with these traits: their name, tags and place.
    pub(super) fn label(&mut self, figures: &mut Figures, call: &Traits<'_>, ok: Option<&OkStatus>) -> u32 {
        let label = Label { selected: self.selected(figures, call), ok: ok.cloned(), ..Label::default() };
        self.has_expectations |= ok.is_some();
        if self.labels.len() >= MOST_LABELS {
            return self.other_label(figures, label);
        }
        let tags = call.tags.iter().map(|tag| figures.tags.id(tag)).collect();
        self.new_label(figures, call.name, Label { tags, tag_texts: call.tags.join(";"), ..label })
    }

    /// The name of calls with this label.
    pub(super) fn name(&self, label: u32) -> Option<&str> {
        Some(self.get(label)?.name.as_str())
    }

    /// The name and the tags of calls with this label.
    pub(super) fn texts(&self, label: u32) -> Texts<'_> {
        self.get(label).map(|label| Texts { name: &label.name, tags: &label.tag_texts }).unwrap_or_default()
    }

    /// Whether calls with this label succeed with this status; `None` if the run's statuses decide.
    #[inline]
    pub(super) fn expects(&self, label: u32, status: u16) -> Option<bool> {
        if !self.has_expectations {
            return None;
        }
        self.get(label)?.ok.as_ref().map(|ok| ok.holds(status))
    }

    /// Records an answer whose status is a success for the run, but not for its call.
    #[cold]
    pub(super) fn unexpected(&self, recorder: &mut Recorder, label: u32, status: u16) {
        let call = self.get(label).map(|label| label.name.as_str());
        let reason = format!("unexpected status {status}");
        let name = Figures::check_name(call, &reason);
        recorder.snapshot.failed_check.record(status);
        let figures = recorder.snapshot.figures.checks.named(&name);
        figures.gave_reason(call, &reason, || Example { status: Some(status), ..Example::default() });
    }

    fn new_label(&mut self, figures: &mut Figures, name: &str, label: Label) -> u32 {
        self.labels.push(Label { name: name.to_owned(), id: Some(figures.requests.id(name)), ..label });
        self.labels.len() as u32
    }

    /// The number for calls beyond the most labels: thresholds see them all the same.
    fn other_label(&mut self, figures: &mut Figures, label: Label) -> u32 {
        let is_same = |known: &Label| known.selected == label.selected && known.ok == label.ok;
        if let Some(known) = self.others.iter().find(|known| self.get(**known).is_some_and(is_same)) {
            return *known;
        }
        let label = self.new_label(figures, brunt_record::figures::OTHERS, label);
        self.others.push(label);
        label
    }

    /// The selections that take such calls.
    fn selected(&self, figures: &mut Figures, call: &Traits<'_>) -> Vec<(NameId, Option<OkStatus>)> {
        let taking = self.selections.iter().filter(|selection| selection.takes(call));
        taking.map(|selection| (figures.selected.id(&selection.to_string()), selection.statuses().cloned())).collect()
    }

    /// The number for answers of calls with this label that lead on, such as `login redirect 1` for the first of them.
    /// They have no tags, and no selection takes them: selections are of whole calls.
    pub(super) fn hop(&mut self, figures: &mut Figures, label: u32, word: &str, number: usize) -> Option<u32> {
        let known = self.labels.get(place(label))?;
        if let Some(hop) = known.hops.get(number.checked_sub(1)?) {
            return Some(*hop);
        }
        let first = known.hops.len() + 1;
        let names: Vec<_> = (first..=number).map(|number| format!("{} {word} {number}", known.name)).collect();
        for name in names {
            let hop = self.new_label(figures, &name, Label::default());
            self.labels.get_mut(place(label))?.hops.push(hop);
        }
        self.get(label)?.hops.last().copied()
    }

    /// The label with this number.
    pub(super) fn get(&self, label: u32) -> Option<&Label> {
        self.labels.get(place(label))
    }

    /// Whether the name of this status may not have been asked for yet under this label.
    #[inline]
    pub(super) fn is_new(&mut self, label: u32, status: u16) -> bool {
        match self.labels.get_mut(place(label)) {
            Some(label) if label.named != status => {
                label.named = status;
                true
            }
            _ => false,
        }
    }

    /// Records a call without a status under its name, its tags and its selections.
    pub(super) fn record(&self, recorder: &mut Recorder, label: u32, mut record: impl FnMut(&mut CallFigures)) {
        let Some(Label { id: Some(id), tags, selected, .. }) = self.get(label) else { return };
        let figures = &mut recorder.snapshot.figures;
        figures.each(*id, tags, &mut record);
        for (selection, _) in selected.iter().filter(|(_, statuses)| statuses.is_none()) {
            record(figures.selected.at(*selection));
        }
    }

    /// Records a call that was answered with this status under its name, its tags and its selections.
    #[inline]
    pub(super) fn record_answered(
        &self,
        recorder: &mut Recorder,
        label: u32,
        status: u16,
        mut record: impl FnMut(&mut CallFigures),
    ) {
        let Some(Label { id: Some(id), tags, selected, .. }) = self.get(label) else { return };
        let figures = &mut recorder.snapshot.figures;
        figures.each(*id, tags, &mut record);
        for (selection, statuses) in selected {
            if statuses.as_ref().is_none_or(|statuses| statuses.holds(status)) {
                record(figures.selected.at(*selection));
            }
        }
    }

    /// Calls `count` for each core that counts a call with this label, and this status if it was answered, apart from that of all calls.
    pub(super) fn each_core(&self, label: u32, status: Option<u16>, mut count: impl FnMut(Core)) {
        let Some(Label { id: Some(id), tags, selected, .. }) = self.get(label) else { return };
        count(Core::Request(*id));
        for tag in tags {
            count(Core::Tag(*tag));
        }
        for (selection, statuses) in selected {
            if statuses.as_ref().is_none_or(|taken| status.is_some_and(|status| taken.holds(status))) {
                count(Core::Selected(*selection));
            }
        }
    }

    /// The number of a check, or of a reason for which the script fails calls.
    pub(super) fn check(&mut self, figures: &mut Figures, label: u32, name: &str, is_reason: bool) -> u32 {
        if self.checks.len() >= MOST_CHECKS {
            return self.checks.len() as u32;
        }
        let call = self.get(label).map(|label| label.name.as_str());
        let id = figures.checks.id(&Figures::check_name(call, name));
        self.checks.push(Check { id, label, name: name.to_owned(), is_reason });
        self.checks.len() as u32
    }

    /// The name by which a check is counted.
    pub(super) fn check_name(&self, check: u32) -> Option<String> {
        let check = self.checks.get(place(check))?;
        Some(Figures::check_name(self.get(check.label).map(|label| label.name.as_str()), &check.name))
    }

    /// Records the passes of a check.
    pub(super) fn passed(&self, recorder: &mut Recorder, check: u32, passes: u64) {
        let Some(check) = self.checks.get(place(check)) else { return };
        let call = self.get(check.label).map(|label| label.name.as_str());
        let figures = recorder.snapshot.figures.checks.at(check.id);
        figures.passed(call, &check.name);
        figures.passes += passes.saturating_sub(1);
    }

    /// Records a failure of a check.
    pub(super) fn failed(&self, recorder: &mut Recorder, check: u32, example: impl FnOnce() -> Example) {
        let Some(check) = self.checks.get(place(check)) else { return };
        let call = self.get(check.label).map(|label| label.name.as_str());
        let figures = recorder.snapshot.figures.checks.at(check.id);
        if check.is_reason {
            figures.gave_reason(call, &check.name, example);
        } else {
            figures.failed(call, &check.name, example);
        }
    }
}
