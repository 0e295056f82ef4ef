//! Two results of one command compared, by the facts that both have.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heaptoll_command::failure::Failure;
use heaptoll_command::labelled::Unreadable;
use heaptoll_facts::{Fact, Facts, Known, Value};
use heaptoll_units::and_list;

use crate::comparative::Comparable;
use crate::instructions;
pub use document::document;
pub use figures::{Figures, Row};

mod document;
mod figures;

/// Name and version of the figures as JSON.
pub const SCHEMA: &str = "heaptoll-diff-facts/1";

/// Compares two files of one command; none where the first is of no command whose results are facts. Counts of
/// instructions are compared by function.
///
/// # Errors
/// One cannot be read, or is of another command; they have nothing in common.
pub fn measure(base: &Path, new: &Path) -> Result<Option<Figures>, Failure> {
    let command = super::read(base, |text| Ok::<_, Unreadable>(Comparable::of_text(text)))?;
    let Some(command) = command.filter(|known| known.schema != instructions::SCHEMA) else {
        return Ok(None);
    };
    let read = |path: &Path| super::read(path, |text| command.facts(text));
    let (before, after) = (read(base)?, read(new)?);
    let names = [base, new].map(|path| path.display().to_string());
    let mut warnings: Vec<String> = names.iter().zip([&before, &after]).flat_map(told).collect();
    let rows = compare(before.measured, after.measured, &mut warnings);
    let [base, new] = names;
    if rows.is_empty() {
        return Err(Failure::NothingToCompare(format!("{base} and {new} have no figure in common")));
    }
    Ok(Some(Figures { command: command.name.into(), base, new, rows, warnings }))
}

/// What a result says of itself.
fn told<'a>((name, facts): (&'a String, &'a Facts)) -> impl Iterator<Item = String> + 'a {
    let absent = facts.absent.iter().map(|(program, manager, why)| match manager {
        Some(manager) => format!("{program} under {manager}: {why}"),
        None => format!("{program}: {why}"),
    });
    let all = absent.chain(facts.pairing.iter().chain(&facts.warnings).cloned());
    all.map(move |text| format!("{name}: {text}"))
}

/// The rows of what both have.
fn compare(mut base: Vec<Fact>, mut new: Vec<Fact>, warnings: &mut Vec<String>) -> Vec<Row> {
    join("program", |fact| &mut fact.program, &mut base, &mut new, warnings);
    join("manager", |fact| &mut fact.manager, &mut base, &mut new, warnings);
    let under = |facts: &[Fact]| -> BTreeSet<String> {
        facts.iter().map(|fact| format!("{} under {}", fact.program, fact.manager)).collect()
    };
    let alone: Vec<String> = under(&base).symmetric_difference(&under(&new)).cloned().collect();
    if !alone.is_empty() {
        warnings.push(format!("Only one file has {}.", and_list(&alone)));
    }
    let key = |fact: &Fact| {
        let Fact { program, manager, metric, at, .. } = fact.clone();
        (program, manager, metric, at.map(f64::to_bits))
    };
    let mut values: BTreeMap<_, Value> = new.into_iter().map(|fact| (key(&fact), fact.value)).collect();
    let other = |fact: Fact| values.remove(&key(&fact)).map(|value| (fact, value));
    let both: Vec<(Fact, Value)> = base.into_iter().filter_map(other).collect();
    let family = both.len();
    let change = |base: &Value, new: &Value| Known::of(new, family)?.over(&Known::of(base, family)?);
    let row = |(base, new): (Fact, Value)| Row { change: change(&base.value, &new), base, new };
    let mut rows: Vec<Row> = both.into_iter().map(row).collect();
    rows.sort_by(|one, other| other.factor().total_cmp(&one.factor()));
    rows.sort_by_key(|row| Reverse(row.has_changed()));
    rows
}

/// Where each has one name alone, the new one's are called as the base's.
fn join(
    what: &str,
    of: fn(&mut Fact) -> &mut String,
    base: &mut [Fact],
    new: &mut [Fact],
    warnings: &mut Vec<String>,
) {
    let only = |facts: &mut [Fact]| {
        let first = of(facts.first_mut()?).clone();
        facts.iter_mut().all(|fact| *of(fact) == first).then_some(first)
    };
    if let (Some(base), Some(other)) = (only(base), only(new))
        && base != other
    {
        warnings.push(format!("These are two {what}s: {base} and {other}."));
        new.iter_mut().for_each(|fact| of(fact).clone_from(&base));
    }
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
        let rows =
            compare(all(100.0, [0.9, 1.0, 1.1], 1.0), all(101.0, [1.0, 1.2, 1.3], 9.0), &mut warnings);
        let found: Vec<(&str, bool)> =
            rows.iter().map(|row| (row.base.metric.as_str(), row.has_changed())).collect();
        assert_eq!(found, [("objects", true), ("near_us", false), ("cpu_ratio", false)]);
        assert_eq!(rows[0].change.map(|change| change.value), Some(1.01));
        assert!(warnings.is_empty(), "{warnings:?}");
        let rows = compare(all(1.0, [1.0, 1.0, 1.05], 1.0), all(1.0, [1.2, 1.3, 1.4], 1.0), &mut warnings);
        assert_eq!((rows[0].base.metric.as_str(), rows[0].has_changed()), ("cpu_ratio", true));
        assert!(!rows[1].has_changed() && !rows[2].has_changed(), "a count that is the same has not changed");
    }

    #[test]
    fn what_has_one_name_is_joined_and_what_is_alone_too() {
        let of = |names: &[(&str, &str)]| -> Vec<Fact> {
            names.iter().map(|(program, manager)| fact(program, manager, "objects", Value::Exact(1.0))).collect()
        };
        let found = |base: &[(&str, &str)], new: &[(&str, &str)]| {
            let mut warnings = Vec::new();
            (compare(of(base), of(new), &mut warnings).len(), warnings)
        };
        assert_eq!(found(&[("p", "a")], &[("p", "b")]), (1, vec!["These are two managers: a and b.".into()]));
        let left_out = vec!["Only one file has p under b and p under c.".to_owned()];
        assert_eq!(found(&[("p", "a"), ("p", "b")], &[("p", "a"), ("p", "c")]), (1, left_out));
        assert_eq!(found(&[("p", "a"), ("q", "a")], &[("r", "a"), ("s", "a")]).0, 0);
    }
}
