//! Lists: quantities one by one, each with its published value.

use super::body::{Body, Ours, Pair, interval};
use super::source::Source;
use crate::definition::{Estimand, Rule, Shown as AsShown};
use crate::effect::Effect;
use crate::{outcome, placed};
use heaptoll_facts::Basis;

/// Quantities one by one.
pub(super) fn list(source: &Source<'_>) -> (Body, Vec<String>) {
    let Source { study, exhibit, figures, absent } = source;
    let heading = if exhibit.unit.is_empty() { "value".to_owned() } else { exhibit.unit.clone() };
    let mut rows = Vec::new();
    for row in &exhibit.rows {
        let published = placed::of_row(exhibit, row).into_iter().map(|placed| placed.text).collect();
        let mean = |quantity| outcome::by_rule(Rule::Mean, Estimand::ThesePrograms, quantity, study, figures);
        let found = row.ours.as_ref().map(|quantity| (quantity, mean(quantity)));
        // A mean of some of the programs is not to be taken for that of all.
        let mut part = String::new();
        let (ours, missing) = match found {
            None => (None, row.missing.clone()),
            Some((_, Ok(outcome))) => {
                let requested = outcome.programs_requested;
                let has = outcome.programs.iter().copied().max().unwrap_or_default();
                if has < requested {
                    part = format!(" (here {has} of {requested} programs)");
                }
                match outcome.effects.as_slice() {
                    [effect] => (Some(as_shown(row.shown, exhibit.scale, effect)), None),
                    several => {
                        let words: Vec<String> = several.iter().map(|effect| effect.words.clone()).collect();
                        (None, Some(format!("it may be each of {}", heaptoll_units::and_list(&words))))
                    }
                }
            }
            Some((quantity, Err(missing))) => {
                let why = absent.of_step(&quantity.step).map(|why| format!("step {}: {why}", quantity.step));
                (None, Some(why.unwrap_or_else(|| missing.to_string())))
            }
        };
        let percent = row.shown == AsShown::Percent
            && !row.words.contains('%')
            && !row.words.contains("percent")
            && !exhibit.unit.contains('%');
        let words = if percent { format!("{}{part}, %", row.words) } else { format!("{}{part}", row.words) };
        rows.push((words, vec![Pair { published, ours, missing }]));
    }
    (Body::Table { columns: vec![String::new(), heading], rows }, Vec::new())
}

fn as_shown(shown: AsShown, scale: f64, effect: &Effect) -> Ours {
    let to = |value: f64| match shown {
        AsShown::Ratio => value,
        AsShown::Percent => 100.0 * (value - 1.0),
        AsShown::Plain => scale * value,
    };
    Ours {
        value: to(effect.value),
        interval: interval(effect).map(|(low, high)| (to(low), to(high))),
        ratio: None,
        exact: effect.basis == Basis::Exact,
    }
}
