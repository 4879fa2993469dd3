//! Numbers of what is counted by name, as scripts know them.

use brunt_record::figures::{Example, Figures, NameId};

use crate::network::Recorder;

/// What a call is called by: its name, and its tags.
#[derive(Debug, Default)]
pub(super) struct Label {
    pub(super) name: String,
    pub(super) id: Option<NameId>,
    pub(super) tags: Vec<NameId>,
    /// The status whose name was asked for last.
    named: u16,
    /// Labels of the answers of such calls that led on, by how many had done so before.
    hops: Vec<u32>,
}

#[derive(Debug)]
struct Check {
    id: NameId,
    label: u32,
    name: String,
}

/// The names that a script has numbers for; its numbers count from 1.
#[derive(Debug, Default)]
pub(super) struct Names {
    labels: Vec<Label>,
    checks: Vec<Check>,
    /// What calls beyond the most labels are called by.
    others: u32,
}

/// The most labels that are told apart: names are fewer than that, but each may come with many tags.
const MOST_LABELS: usize = 5000;
/// The most checks, by the names of the calls that they are about.
const MOST_CHECKS: usize = 5000;

fn place(number: u32) -> usize {
    (number as usize).wrapping_sub(1)
}

impl Names {
    /// The number of a name with these tags.
    pub(super) fn label(&mut self, figures: &mut Figures, name: &str, tags: &[String]) -> u32 {
        if self.labels.len() >= MOST_LABELS {
            if self.others == 0 {
                let others = brunt_record::figures::OTHERS;
                let id = figures.requests.id(others);
                self.labels.push(Label { name: others.to_owned(), id: Some(id), ..Label::default() });
                self.others = self.labels.len() as u32;
            }
            return self.others;
        }
        let tags = tags.iter().map(|tag| figures.tags.id(tag)).collect();
        let id = Some(figures.requests.id(name));
        self.labels.push(Label { name: name.to_owned(), id, tags, ..Label::default() });
        self.labels.len() as u32
    }

    /// The number for answers of calls with this label that lead on, such as `login redirect 1` for the first of them. They have no tags: those
    /// are whole calls'.
    pub(super) fn hop(&mut self, figures: &mut Figures, label: u32, word: &str, number: usize) -> Option<u32> {
        let known = self.labels.get(place(label))?;
        if let Some(hop) = known.hops.get(number.checked_sub(1)?) {
            return Some(*hop);
        }
        let first = known.hops.len() + 1;
        let names: Vec<_> = (first..=number).map(|number| format!("{} {word} {number}", known.name)).collect();
        for name in names {
            let hop = self.label(figures, &name, &[]);
            self.labels.get_mut(place(label))?.hops.push(hop);
        }
        self.get(label)?.hops.last().copied()
    }

    /// What the label with this number stands for.
    pub(super) fn get(&self, label: u32) -> Option<&Label> {
        self.labels.get(place(label))
    }

    /// Whether it may be that nobody has asked yet what this status is called under this label.
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

    /// Records a call under its name and tags.
    pub(super) fn record(
        &self,
        recorder: &mut Recorder,
        label: u32,
        record: impl FnMut(&mut brunt_record::figures::CallFigures),
    ) {
        if let Some(Label { id: Some(id), tags, .. }) = self.get(label) {
            recorder.snapshot.figures.each(*id, tags, record);
        }
    }

    /// The number of a check.
    pub(super) fn check(&mut self, figures: &mut Figures, label: u32, name: &str) -> u32 {
        if self.checks.len() >= MOST_CHECKS {
            return self.checks.len() as u32;
        }
        let call = self.get(label).map(|label| label.name.as_str());
        let id = figures.checks.id(&Figures::check_name(call, name));
        self.checks.push(Check { id, label, name: name.to_owned() });
        self.checks.len() as u32
    }

    /// What a check is counted by.
    pub(super) fn check_name(&self, check: u32) -> Option<String> {
        let check = self.checks.get(place(check))?;
        Some(Figures::check_name(self.get(check.label).map(|label| label.name.as_str()), &check.name))
    }

    /// A check has held so often.
    pub(super) fn passed(&self, recorder: &mut Recorder, check: u32, passes: u64) {
        let Some(check) = self.checks.get(place(check)) else { return };
        let call = self.get(check.label).map(|label| label.name.as_str());
        let figures = recorder.snapshot.figures.checks.at(check.id);
        figures.passed(call, &check.name);
        figures.passes += passes.saturating_sub(1);
    }

    /// A check did not hold.
    pub(super) fn failed(&self, recorder: &mut Recorder, check: u32, example: impl FnOnce() -> Example) {
        let Some(check) = self.checks.get(place(check)) else { return };
        let call = self.get(check.label).map(|label| label.name.as_str());
        recorder.snapshot.figures.checks.at(check.id).failed(call, &check.name, example);
    }
}
