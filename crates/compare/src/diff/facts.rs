//! Two results of one command compared, by the facts that both have.

use std::cmp::Reverse;

use heaptoll_command::failure::Failure;
use heaptoll_facts::{Fact, Facts, Known, Value};

use super::JsonFile;
use super::joined::joined;
use crate::comparative::Comparable;
pub use document::document;
pub use figures::{DiffFactsFigures, Row};

mod document;
mod figures;

schemars::labelled!(DiffFactsFigures, "heaptoll-diff-facts/1");

/// Compares two files of this command.
///
/// # Errors
/// One is of another command; they have nothing in common.
pub fn measure(base: &JsonFile, new: &JsonFile, command: &Comparable) -> Result<DiffFactsFigures, Failure> {
    let (before, after) = (base.facts(command)?, new.facts(command)?);
    let names = [base, new].map(JsonFile::name);
    let mut warnings: Vec<String> = names.iter().zip([&before, &after]).flat_map(remarks).collect();
    let rows = compare(&before.measured, &after.measured, &mut warnings);
    let [base, new] = names;
    if rows.is_empty() {
        return Err(Failure::NothingToCompare(format!("{base} and {new} have no figure in common")));
    }
    Ok(DiffFactsFigures { command: command.name.into(), base, new, rows, warnings })
}

/// What a result says of itself.
fn remarks<'a>((name, facts): (&'a String, &'a Facts)) -> impl Iterator<Item = String> + 'a {
    facts.remarks().map(move |text| format!("{name}: {text}"))
}

/// The rows of what both have.
fn compare(base: &[Fact], new: &[Fact], warnings: &mut Vec<String>) -> Vec<Row> {
    let mut both = Vec::new();
    let by_program = [base, new].map(|facts| groups(facts, |fact| &fact.program));
    for (base, new) in joined(&by_program[0], &by_program[1], |group| &group.0, "program", warnings) {
        let by_manager = [base, new].map(|(_, facts)| groups(facts.iter().copied(), |fact| &fact.manager));
        for (base, new) in joined(&by_manager[0], &by_manager[1], |group| &group.0, "manager", warnings) {
            let other = |one: &Fact| new.1.iter().find(|new| (&one.metric, one.at) == (&new.metric, new.at));
            both.extend(base.1.iter().filter_map(|one| Some((*one, *other(one)?))));
        }
    }
    let family = both.len();
    let change = |base: &Value, new: &Value| Known::of(new, family)?.over(&Known::of(base, family)?);
    let row = |(base, new): (&Fact, &Fact)| Row {
        change: change(&base.value, &new.value),
        base: base.clone(),
        new: new.value.clone(),
    };
    let mut rows: Vec<Row> = both.into_iter().map(row).collect();
    rows.sort_by(|one, other| other.factor().total_cmp(&one.factor()));
    rows.sort_by_key(|row| Reverse(row.has_changed()));
    rows
}

/// Facts by a name, in their order.
fn groups<'a>(
    facts: impl IntoIterator<Item = &'a Fact>,
    name: fn(&Fact) -> &String,
) -> Vec<(String, Vec<&'a Fact>)> {
    let mut all: Vec<(String, Vec<&Fact>)> = Vec::new();
    for fact in facts {
        match all.iter_mut().find(|(known, _)| known == name(fact)) {
            Some((_, group)) => group.push(fact),
            None => all.push((name(fact).clone(), vec![fact])),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(program: &str, manager: &str, metric: &str, value: Value) -> Fact {
        let [program, manager, metric] = [program, manager, metric].map(str::to_owned);
        Fact { program, manager, metric, at: None, value }
    }

    #[test]
    fn what_changed_for_certain_is_first_and_no_interval_decides_nothing() {
        let all = |exact: f64, estimate: [f64; 3], single: f64| {
            let [low, value, high] = estimate;
            vec![
                fact("cfrac", "lea", "cpu_ratio", Value::Estimate { value, low, high }),
                fact("cfrac", "lea", "objects", Value::Exact(exact)),
                fact("cfrac", "lea", "near_us", Value::Single(single)),
            ]
        };
        let mut warnings = Vec::new();
        let (base, new) = (all(100.0, [0.9, 1.0, 1.1], 1.0), all(101.0, [1.0, 1.2, 1.3], 9.0));
        let rows = compare(&base, &new, &mut warnings);
        let found: Vec<(&str, bool)> =
            rows.iter().map(|row| (row.base.metric.as_str(), row.has_changed())).collect();
        assert_eq!(found, [("objects", true), ("near_us", false), ("cpu_ratio", false)]);
        assert!(rows[0].change.is_some_and(|change| (change.value - 1.01).abs() < 1e-12), "{rows:?}");
        assert!(warnings.is_empty(), "{warnings:?}");
        let (base, new) = (all(1.0, [1.0, 1.0, 1.05], 1.0), all(1.0, [1.2, 1.3, 1.4], 1.0));
        let rows = compare(&base, &new, &mut warnings);
        assert_eq!((rows[0].base.metric.as_str(), rows[0].has_changed()), ("cpu_ratio", true));
        assert!(!rows[1].has_changed() && !rows[2].has_changed(), "a count that is the same has not changed");
    }

    #[test]
    fn the_only_managers_are_compared_and_others_by_their_names() {
        let of = |managers: &[&str]| -> Vec<Fact> {
            managers.iter().map(|manager| fact("p", manager, "objects", Value::Exact(1.0))).collect()
        };
        let found = |base: &[&str], new: &[&str]| {
            let mut warnings = Vec::new();
            (compare(&of(base), &of(new), &mut warnings).len(), warnings)
        };
        assert_eq!(found(&["a"], &["b"]), (1, vec!["These are two managers: a and b.".to_owned()]));
        assert_eq!(found(&["a", "b"], &["a", "c"]).0, 1);
        assert_eq!(found(&["a", "b"], &["c", "d"]).0, 0);
    }
}
