//! Memories that hold all that a program touches: there only the first touch of a page faults, and that compares nothing
//! but how much each touches.

use super::definition::Step;
use super::figures::{Cell, Figures};
use super::pairs::{CellRef, Compared, same_place};
use heaptoll_facts::Value;

/// Metrics of faults, and that which counts no first touches.
const WITHOUT: [(&str, &str); 5] = [
    ("page_faults", "capacity_faults"),
    ("capacity_faults", "capacity_faults"),
    ("capacity_fault_rate", "capacity_faults"),
    ("tight_faults", "tight_capacity_faults"),
    ("tight_capacity_faults", "tight_capacity_faults"),
];

/// Comparisons of a step: those in which a side faults on what it had touched before, and those in which both sides fit.
pub(super) fn sort<'c>(
    compared: Vec<Compared<'c>>,
    step: &Step,
    figures: &Figures,
) -> (Vec<Compared<'c>>, Vec<Compared<'c>>) {
    let fits = |place: &CellRef<'_>, at: Option<f64>| {
        let without = WITHOUT.iter().find(|(with, _)| *with == place.metric).map(|(_, without)| *without);
        let is = |cell: &&Cell| {
            (cell.step.as_str(), cell.program.as_str(), cell.manager.as_str())
                == (step.id.as_str(), place.program, place.manager)
                && Some(cell.metric.as_str()) == without
                && same_place(cell.at, at)
        };
        let faults = without.and_then(|_| figures.cells.iter().find(is));
        faults.is_some_and(|cell| cell.value == Value::Exact(0.0))
    };
    let tight = |one: &Compared<'_>| match &one.over {
        Some(over) => !(fits(&one.of, one.at) && fits(over, one.at)),
        None => true,
    };
    compared.into_iter().partition(tight)
}

#[cfg(test)]
mod tests {
    use super::super::definition::Study;
    use super::super::figures::Absent;
    use super::super::testing::cells;
    use super::super::verdict::{Answer, Verdict, judge};
    use super::*;

    /// Faults of two managers at KiB of memory, and how many are no first touches.
    fn judged(rates: &[(f64, [f64; 2], [f64; 2])]) -> Verdict {
        let text = "name = \"made\"\ntitle = \"t\"\nsource = \"s\"\nabout = []\n[[step]]\nid = \"l\"\nkind = \"locality\"\n\
                    programs = [\"gawk\"]\nmanagers = [\"lea\", \"kingsley\"]\n[[claim]]\nid = \"it\"\nplace = \"p\"\nwords = \
                    \"w\"\n[[claim.test]]\nwords = \"q\"\nrule = \"all\"\nabove = 1.0\nquantity = { step = \"l\", metric = \
                    \"page_faults\", programs = [\"gawk\"], at = [128.0, 512.0], of = { managers = [\"lea\"] }, over = { \
                    managers = [\"kingsley\"] } }";
        let study = Study::parse(text, "made.toml").expect("a study");
        let mut figures = Figures::default();
        for (at, rate, others) in rates {
            for (manager, number) in [("lea", 0), ("kingsley", 1)] {
                let of = |value: f64| [("gawk", manager, Some(*at), Value::Exact(value))];
                figures.cells.extend(cells("l", "page_faults", &of(rate[number])).cells);
                figures.cells.extend(cells("l", "capacity_faults", &of(others[number])).cells);
            }
        }
        judge(&study, &study.claims[0], &figures, &Absent::default())
    }

    /// A claim on page faults failed in memories that held both heaps, by first touches.
    #[test]
    fn a_memory_that_holds_both_programs_is_no_comparison_of_faults() {
        let tight = (128.0, [9.0, 3.0], [900.0, 0.0]);
        let verdict = judged(&[tight, (512.0, [0.9, 1.0], [0.0, 0.0])]);
        assert_eq!(verdict.answer, Answer::Holds, "{}", verdict.reason);
        let words = "left out, for both fit into the memory: lea over kingsley on gawk at 512K";
        assert!(verdict.reason.contains(words), "{}", verdict.reason);
        let one = judged(&[tight, (512.0, [0.9, 1.0], [0.0, 1.0])]);
        assert_eq!(one.answer, Answer::Fails, "one that does not fit is enough: {}", one.reason);
        let none = judged(&[(128.0, [9.0, 3.0], [0.0, 0.0]), (512.0, [0.9, 1.0], [0.0, 0.0])]);
        assert_eq!(none.answer, Answer::NotMeasured);
        assert!(none.reason.contains("both fit into the memory"), "{}", none.reason);
    }
}
