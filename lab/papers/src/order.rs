//! Whether some programs are at one end of all: the least of these over the largest of the others.
//!
//! "These look worst" claims an order, and a paper's own figures are no limit of it on other programs.

use super::effect::Effect;
use super::measured::{Measured, groups};
use heaptoll_facts::{Basis, Known};

/// One effect a pair of managers: the least comparison of the programs `of` over the largest of the others. As the
/// intervals hold together, the least lies between the least of their ends, and the largest likewise.
pub(super) fn order(measured: &[Measured<'_>], of: &[String]) -> Vec<Effect> {
    groups(measured, true)
        .into_iter()
        .filter_map(|(sides, group)| {
            let (these, others): (Vec<&Measured<'_>>, Vec<&Measured<'_>>) =
                group.into_iter().partition(|one| of.contains(&one.compared.program));
            let (least, low) = end(&these, f64::min)?;
            let (largest, high) = end(&others, f64::max)?;
            let Known { value, low, high, basis } = low.over(&high)?;
            let words = format!(
                "{sides}, the least of {} ({least}) over the largest of {} ({largest})",
                heaptoll_units::plural(these.len(), "program"),
                heaptoll_units::plural(others.len(), "other"),
            );
            Some(Effect { words, value, low, high, basis })
        })
        .collect()
}

/// The comparison at one end of all, with the program it is of.
fn end<'m>(all: &[&'m Measured<'_>], further: fn(f64, f64) -> f64) -> Option<(&'m str, Known)> {
    let of = |figure: fn(&Effect) -> f64| all.iter().map(|one| figure(&one.effect)).reduce(further);
    let (value, low, high) = (of(|one| one.value)?, of(|one| one.low)?, of(|one| one.high)?);
    let program = all.iter().find(|one| one.effect.value == value)?.compared.program.as_str();
    Some((program, Known { value, low, high, basis: Basis::weakest(all.iter().map(|one| one.effect.basis)) }))
}

#[cfg(test)]
mod tests {
    use super::super::figures::Absent;
    use super::super::testing::{cells, claiming, samples};
    use super::super::verdict::{Answer, judge};
    use heaptoll_facts::Value;

    const WORST: &str = r#"
        rule = "order"
        above = 1.0
        others = ["perl", "make"]
        quantity = { step = "c", metric = "per_malloc", programs = ["cfrac", "gawk"], of = { managers = ["a"] }, over = { managers = ["b"] } }
    "#;

    fn judged(test: &str, ratios: &[(&str, f64)]) -> (Answer, String) {
        let mut values = Vec::new();
        for (program, ratio) in ratios {
            values.extend([
                (*program, "a", None, Value::Exact(*ratio)),
                (*program, "b", None, Value::Exact(1.0)),
            ]);
        }
        let study = claiming(test);
        let verdict = judge(&study, &study.claims[0], &cells("c", "per_malloc", &values), &Absent::default());
        (verdict.answer, verdict.reason)
    }

    #[test]
    fn the_least_of_these_is_over_the_largest_of_the_others() {
        let (answer, reason) = judged(WORST, &[("cfrac", 2.5), ("gawk", 2.0), ("perl", 1.8), ("make", 1.0)]);
        assert_eq!(answer, Answer::Holds, "{reason}");
        let words = "the least of 2 programs (gawk) over the largest of 2 others (perl)";
        assert!(reason.starts_with("1.11, counted exactly") && reason.contains(words), "{reason}");
    }

    /// Neither the largest of these nor the least of the others decides.
    #[test]
    fn one_of_these_below_one_of_the_others_is_no_order() {
        let (answer, reason) = judged(WORST, &[("cfrac", 9.0), ("gawk", 1.5), ("perl", 1.8), ("make", 1.0)]);
        assert_eq!(answer, Answer::Fails, "{reason}");
        let inverted = WORST.replace("above", "below");
        assert_eq!(
            judged(&inverted, &[("cfrac", 9.0), ("gawk", 1.5), ("perl", 1.8), ("make", 1.0)]).0,
            Answer::Holds
        );
        let all_above = judged(&inverted, &[("cfrac", 2.5), ("gawk", 2.0), ("perl", 1.8), ("make", 1.0)]);
        assert_eq!(all_above.0, Answer::Fails);
    }

    #[test]
    fn a_program_of_either_list_that_was_not_run_leaves_an_order_open() {
        for gone in ["gawk", "make"] {
            let all = [("cfrac", 2.5), ("gawk", 2.0), ("perl", 1.8), ("make", 1.0)];
            let there: Vec<(&str, f64)> = all.into_iter().filter(|(program, _)| *program != gone).collect();
            let (answer, reason) = judged(WORST, &there);
            assert_eq!(answer, Answer::Undecided, "{reason}");
            assert!(reason.contains(gone), "{reason}");
        }
        let (answer, reason) = judged(WORST, &[("cfrac", 2.5), ("gawk", 2.0)]);
        assert_eq!(answer, Answer::NotMeasured, "{reason}");
    }

    #[test]
    fn an_order_of_timed_programs_needs_intervals_that_are_apart() {
        let test = WORST.replace("\"c\"", "\"t\"").replace("per_malloc", "cpu_s");
        let answer = |gawk: f64| {
            let mut values = Vec::new();
            for (number, (program, ratio)) in
                [("cfrac", 2.5), ("gawk", gawk), ("perl", 1.8), ("make", 1.0)].into_iter().enumerate()
            {
                let seed = number as u64;
                values.extend([
                    (program, "a", None, samples(ratio, 10, seed)),
                    (program, "b", None, samples(1.0, 10, seed + 5)),
                ]);
            }
            let study = claiming(&test);
            judge(&study, &study.claims[0], &cells("t", "cpu_s", &values), &Absent::default()).answer
        };
        assert_eq!(
            (answer(2.0), answer(1.8), answer(1.5)),
            (Answer::Holds, Answer::Undecided, Answer::Fails)
        );
    }
}
