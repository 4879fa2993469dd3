//! The catalogue: unique names, groups, the reference in docs/reference.md, and merging.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::timing::BOUNDS;
use super::*;
use crate::outcome::Failure;

#[test]
fn names_are_unique_and_each_number_stands_in_a_known_group() {
    let mut names: BTreeSet<&str> = Failure::ALL.into_iter().map(Failure::name).collect();
    for counter in Counter::ALL {
        assert!(names.insert(counter.key()), "{} is the name of something else", counter.key());
        let is_placed =
            |path: &str| places::PATHS.iter().any(|group| counter.name_at(group) == path.rsplit('.').next());
        assert!(counter.json_path().is_none_or(is_placed), "{} stands in no group", counter.key());
    }
    let keys: BTreeSet<_> = Timing::ALL.into_iter().map(Timing::key).collect();
    assert_eq!(keys.len(), Timing::ALL.len());
    assert!(keys.iter().all(|key| !key.ends_with(BOUNDS)));
}

#[test]
fn a_group_is_written_by_its_names() {
    let mut numbers = Numbers::from_values([(Counter::WorkersWall, 7), (Counter::Due, 3)]);
    numbers.set_ratio(Counter::BusiestWorker, 0.25);
    let written = serde_json::to_string(&JsonGroupNumbers::<places::Health>::from_numbers(&numbers)).unwrap();
    assert_eq!(
        written,
        r#"{"wall_ns":7,"cpu_ns":0,"spun_ns":0,"starved_ns":0,"busiest_worker_cpu_ratio":0.25,"most_starved_worker_ratio":0.0,"saturated_ns":0}"#
    );
}

/// `UPDATE_GOLDEN=1` writes the table anew.
#[test]
fn the_reference_has_every_figure() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once("<!-- figures: ").unwrap();
    let (comment, rest) = rest.split_once("-->\n").unwrap();
    let (table, after) = rest.split_once("<!-- end of figures -->").unwrap();
    let expected = format!("\n{}\n", reference());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let page = format!("{before}<!-- figures: {comment}-->\n{expected}<!-- end of figures -->{after}");
        std::fs::write(path, page).unwrap();
        return;
    }
    assert_eq!(table, expected, "set UPDATE_GOLDEN=1 to write the table anew");
}

fn numbers() -> impl Strategy<Value = Numbers> {
    prop::collection::vec((0..Counter::ALL.len(), 0_u64..1 << 40), 0..40).prop_map(|values| {
        let mut numbers = Numbers::default();
        for (at, value) in values {
            let counter = Counter::ALL[at];
            match counter.unit() {
                Unit::Ratio => numbers.set_ratio(counter, value as f64 / (1_u64 << 40) as f64),
                _ => numbers.set(counter, value),
            }
        }
        numbers
    })
}

proptest! {
    #[test]
    fn merging_is_commutative_and_associative((a, b, c) in (numbers(), numbers(), numbers())) {
        let merged = |one: &Numbers, other: &Numbers| {
            let mut all = *one;
            all.merge(other);
            all
        };
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
    }

    #[test]
    fn numbers_travel(numbers in numbers()) {
        let json: Numbers = serde_json::from_str(&serde_json::to_string(&numbers).unwrap()).unwrap();
        prop_assert_eq!(json, numbers);
    }
}
