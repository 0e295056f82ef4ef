//! Figures that follow from others of the same study, whatever command measured them: so stored figures of an earlier
//! version have them too.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::{Step, StepKind, Study};
use super::figures::{Cell, Figures};
use heaptoll_facts::{Fact, Value};

/// Ages at which survival by instructions is given.
const AGES: [f64; 5] = [1e4, 1e5, 1e6, 1e7, 1e8];

impl Figures {
    /// With the figures that follow from them and are not among them.
    pub fn with_derived(mut self, studies: &[Study]) -> Figures {
        let place = |cell: &Cell| {
            let Fact { program, manager, metric, at, .. } = &cell.fact;
            (cell.step.clone(), program.clone(), manager.clone(), metric.clone(), at.map(f64::to_bits))
        };
        let mut there: BTreeSet<_> = self.cells.iter().map(place).collect();
        let mut more = of_faults(&self.cells);
        more.extend(numbered_figures(&self.cells));
        more.extend(studies.iter().flat_map(|study| surviving(study, &self.cells)));
        more.retain(|cell| there.insert(place(cell)));
        self.cells.extend(more);
        self
    }
}

impl Cell {
    /// What follows from it, of the same program under the same manager.
    fn with(&self, metric: &str, at: Option<f64>, value: Value) -> Cell {
        let fact = Fact { metric: metric.into(), at, value, ..self.fact.clone() };
        Cell { fact, ..self.clone() }
    }
}

/// Page faults without the first touch of each page, and these as a rate. Zorn's Figure 4 has none of the first touches:
/// programs that fit had no faults. His Figure 5 is of faults per reference, by the same simulation.
fn of_faults(cells: &[Cell]) -> Vec<Cell> {
    let key = |cell: &Cell| (cell.step.clone(), cell.program.clone(), cell.manager.clone());
    let of = |metric: &str| -> BTreeMap<_, f64> {
        let cells = cells.iter().filter(|cell| cell.metric == metric);
        cells.filter_map(|cell| Some((key(cell), exact(cell)?))).collect()
    };
    let (touched, references) = (of("pages_touched"), of("references"));
    let beyond = |cell: &Cell| Some((exact(cell)? - touched.get(&key(cell))?).max(0.0));
    let rate = |cell: &Cell| {
        let references = references.get(&key(cell)).filter(|_| cell.metric == "page_faults")?;
        Some(cell.with("capacity_fault_rate", cell.at, Value::Exact(1e6 * beyond(cell)? / references)))
    };
    let without = |cell: &Cell| {
        let metric = match cell.metric.as_str() {
            "page_faults" => "capacity_faults",
            "tight_faults" => "tight_capacity_faults",
            _ => return None,
        };
        Some(cell.with(metric, cell.at, Value::Exact(beyond(cell)?)))
    };
    cells.iter().filter_map(without).chain(cells.iter().filter_map(rate)).collect()
}

fn exact(cell: &Cell) -> Option<f64> {
    match cell.value {
        Value::Exact(value) => Some(value),
        _ => None,
    }
}

/// A program's own figures that end in a number, `figure_rounds_8`: `figure_rounds` at 8.
fn numbered_figures(cells: &[Cell]) -> Vec<Cell> {
    let at = |cell: &Cell| {
        let (name, number) = cell.metric.strip_prefix("figure_")?.rsplit_once('_')?;
        let at: u32 = number.parse().ok()?;
        Some(cell.with(&format!("figure_{name}"), Some(f64::from(at)), cell.value.clone()))
    };
    cells.iter().filter_map(at).collect()
}

/// Survival by ages in instructions: an age is as many bytes as the program allocates in so many of its own
/// instructions on the average, which a step of the same study counts on the same inputs. Survival is counted at some
/// ages, and lies between those of the two next to it.
fn surviving(study: &Study, cells: &[Cell]) -> Vec<Cell> {
    let of_kind = |kind: StepKind| study.steps.iter().filter(move |step| step.kind == kind);
    let mut found = Vec::new();
    for step in of_kind(StepKind::Lifetimes) {
        let rates: Vec<&Step> =
            of_kind(StepKind::Instructions).filter(|counts| counts.size == step.size).collect();
        let mut curves: BTreeMap<(&str, &str), Vec<(f64, f64)>> = BTreeMap::new();
        for cell in cells.iter().filter(|cell| cell.step == step.id && cell.metric == "surviving") {
            if let (Some(at), Some(share)) = (cell.at, exact(cell)) {
                curves.entry((&cell.program, &cell.manager)).or_default().push((at, share));
            }
        }
        for ((program, manager), curve) in curves {
            let mut of_same = rates.iter().filter(|counts| counts.run_as(program) == step.run_as(program));
            let Some(rate) = of_same.find_map(|counts| rate(&counts.id, program, cells)) else {
                continue;
            };
            found.extend(AGES.iter().filter_map(|age| {
                let value = between(&curve, age * rate)?;
                let [program, manager, metric] =
                    [program, manager, "surviving_instructions"].map(str::to_owned);
                let fact = Fact { program, manager, metric, at: Some(*age), value };
                Some(Cell { step: step.id.clone(), fact })
            }));
        }
    }
    found
}

/// Bytes that a program allocates in one of its own instructions. Both are the same under all managers.
fn rate(step: &str, program: &str, cells: &[Cell]) -> Option<f64> {
    let of = |metric: &str| {
        cells
            .iter()
            .find(|cell| cell.step == step && cell.program == program && cell.metric == metric)
            .and_then(exact)
            .filter(|value| *value > 0.0)
    };
    Some(of("bytes")? / of("program_instructions")?)
}

/// A share that falls with age, at an age between two at which it is counted; none beyond the last.
fn between(curve: &[(f64, f64)], age: f64) -> Option<Value> {
    let (mut before, mut after) = ((0.0, 1.0), None);
    for point in curve {
        if point.0 <= age && point.0 >= before.0 {
            before = *point;
        } else if point.0 > age && after.is_none_or(|(at, _): (f64, f64)| point.0 < at) {
            after = Some(*point);
        }
    }
    let after = after?;
    let part = (age - before.0) / (after.0 - before.0);
    Some(Value::Estimate {
        value: before.1 + part * (after.1 - before.1),
        low: after.1.min(before.1),
        high: before.1.max(after.1),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::study;
    use super::*;

    fn cell(step: &str, metric: &str, at: Option<f64>, value: Value) -> Cell {
        let [step, program, manager, metric] = [step, "cfrac", "a", metric].map(str::to_owned);
        Cell { step, fact: Fact { program, manager, metric, at, value } }
    }

    fn derived(cells: Vec<Cell>, studies: &[Study]) -> Vec<Cell> {
        let given = cells.len();
        Figures { cells }.with_derived(studies).cells.split_off(given)
    }

    #[test]
    fn capacity_faults_are_those_beyond_the_first_touch_of_each_page_and_a_rate_is_of_references() {
        let exact = |metric: &str, at: Option<f64>, value: f64| cell("l", metric, at, Value::Exact(value));
        let cells = vec![
            exact("pages_touched", None, 100.0),
            exact("references", None, 5e6),
            exact("page_faults", Some(64.0), 130.0),
            exact("tight_faults", Some(1.0), 100.0),
        ];
        let found = derived(cells.clone(), &[]);
        assert_eq!(
            found,
            [
                exact("capacity_faults", Some(64.0), 30.0),
                exact("tight_capacity_faults", Some(1.0), 0.0),
                exact("capacity_fault_rate", Some(64.0), 6.0),
            ]
        );
        let twice = Figures { cells }.with_derived(&[]).with_derived(&[]);
        assert_eq!(twice.cells.len(), 7, "what is there already is not made again");
    }

    #[test]
    fn figures_of_a_program_that_end_in_a_number_are_at_that_place() {
        let samples = Value::Samples(vec![Some(3.0), None]);
        let found = derived(vec![cell("t", "figure_rounds_8", None, samples.clone())], &[]);
        assert_eq!(found, [cell("t", "figure_rounds", Some(8.0), samples.clone())]);
        assert_eq!(derived(vec![cell("t", "figure_longest_us", None, samples)], &[]), []);
    }

    /// Two bytes an instruction: the age of 100,000 instructions is that of 200,000 bytes.
    #[test]
    fn survival_by_instructions_is_at_the_age_that_the_program_allocates_in_them() {
        let study = study("[[step]]\nid = \"l\"\nkind = \"lifetimes\"\nprograms = [\"cfrac\"]");
        let exact = |step: &str, metric: &str, at: Option<f64>, value: f64| {
            cell(step, metric, at, Value::Exact(value))
        };
        let mut cells = vec![
            exact("c", "bytes", None, 2e6),
            exact("c", "program_instructions", None, 1e6),
            exact("l", "surviving", Some(100_000.0), 0.5),
            exact("l", "surviving", Some(300_000.0), 0.3),
        ];
        let of = |study: &Study, cells: &[Cell], age: f64| {
            let all = derived(cells.to_vec(), std::slice::from_ref(study));
            all.into_iter().find(|cell| cell.at == Some(age)).map(|cell| cell.fact.value)
        };
        let at = |cells: &[Cell], age: f64| of(&study, cells, age);
        let Some(Value::Estimate { value, low, high }) = at(&cells, 1e5) else { panic!("an estimate") };
        assert!((value - 0.4).abs() < 1e-9 && low == 0.3 && high == 0.5, "{value} {low} {high}");
        assert_eq!(at(&cells, 1e6), None, "beyond the last age nothing is known");
        cells[0].fact.value = Value::Exact(4e5);
        let Some(Value::Estimate { low, high, .. }) = at(&cells, 1e5) else { panic!("an estimate") };
        assert_eq!((low, high), (0.5, 1.0), "at a fifth of the rate it is a fifth of the age");
        let mut own = study.clone();
        own.steps[2].originals = [("cfrac".to_owned(), "mb-cfrac".to_owned())].into();
        assert_eq!(of(&own, &cells, 1e5), None, "the rate of another program is none of its own");
        cells.remove(1);
        assert_eq!(at(&cells, 1e5), None, "without a rate there are no instructions");
    }
}
