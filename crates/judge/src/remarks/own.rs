//! What protocols remark on figures of their own.

use brunt_plan::plan::Plan;
use brunt_plan::scenario::DeclaredFigure;
use brunt_record::figures::OwnFigures;
use brunt_record::snapshot::Snapshot;

use super::{About, Remark};

/// Remarks on own figures whose share of another reaches the percentage that the protocol declared.
pub(super) fn find(plan: &Plan, total: &Snapshot) -> Vec<Remark> {
    let figure = |name: &str| total.figures.own.iter().find(|(known, _)| *known == name).map(|(_, figure)| figure);
    let remark = |declared: &DeclaredFigure| {
        let remark = declared.remark.as_ref()?;
        let (part, whole) = (figure(&declared.name)?.sum()?, amount(figure(&remark.of)?));
        let share = part / whole;
        (whole > 0.0 && share * 100.0 >= f64::from(remark.from_percent)).then(|| Remark {
            share_ratio: Some(share.min(1.0)),
            ..Remark::new(About::OwnFigure, format!("{:.0}% {}", share * 100.0, remark.message))
        })
    };
    plan.own.iter().filter_map(remark).collect()
}

/// A figure's sum, or how many values it has.
fn amount(figure: &OwnFigures) -> f64 {
    figure.sum().unwrap_or(figure.count as f64)
}

#[cfg(test)]
mod tests {
    use brunt_plan::plan::ProtocolOptions;
    use brunt_plan::scenario::DeclaredRemark;
    use brunt_plan::target::Url;
    use brunt_record::figures::OwnKind;

    use super::*;

    #[test]
    fn a_figure_is_remarked_on_from_its_share_on() {
        let target = Url::parse("http://127.0.0.1/").unwrap().target;
        let mut plan = Plan::of_calls(target, ProtocolOptions::default());
        let message = "of tokens were known".to_owned();
        let remark = DeclaredRemark { of: "all".to_owned(), from_percent: 5, message };
        plan.own.push(DeclaredFigure { remark: Some(remark), ..DeclaredFigure::new("known", OwnKind::Counter, "") });
        let found = |known: f64, all: f64| {
            let mut total = Snapshot::default();
            for (name, value) in [("known", known), ("all", all)] {
                let mut figure = OwnFigures::new(OwnKind::Counter, "");
                figure.record(value, 1);
                let id = total.figures.own.id(name);
                *total.figures.own.at(id) = figure;
            }
            find(&plan, &total).into_iter().map(|remark| remark.message.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found(5.0, 100.0), ["5% of tokens were known"]);
        assert_eq!(found(4.9, 100.0), [""; 0]);
        assert_eq!(find(&plan, &Snapshot::default()), []);
    }
}
