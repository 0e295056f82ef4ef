//! The document of a merged experiment, read program by program: of a million rows those of one program are in memory at
//! a time. Each class of machines is compared by itself.

use heaptoll_experiment::compare::{ComparedProgram, gather, judge_outputs};
use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::store::{Reader, StoreError};
use heaptoll_report::document::{Document, Section};
use heaptoll_report::experiment::{Extras, RowCount, gathered, of_classes, program_section};

/// One class of machines on the way to its document.
struct Class {
    name: String,
    /// Without rows.
    described: Experiment,
    compared: Vec<ComparedProgram>,
    sections: Vec<Section>,
    count: RowCount,
}

/// The document of an experiment that was measured in shards.
///
/// # Errors
/// The file is damaged.
pub fn document(reader: &Reader, extras: Extras, is_page: bool) -> Result<Document, StoreError> {
    let described = reader.description()?;
    let programs: Vec<String> = described.programs.iter().map(|program| program.name.clone()).collect();
    let mut classes: Vec<Class> = described
        .clone()
        .into_classes()
        .into_iter()
        .map(|(name, described)| Class {
            name,
            described,
            compared: vec![],
            sections: vec![],
            count: RowCount::default(),
        })
        .collect();
    // Bounds take as long as the rest: a page has them, and so have curves over heaps.
    let bounds = extras.bounds || is_page || described.stacks.iter().any(|stack| stack.heap.is_some());
    for program in &programs {
        for (class, experiment) in classes.iter_mut().zip(of_program(reader, &described, program)?) {
            let repetitions = class.described.settings.repetitions;
            class.compared.push(ComparedProgram::of(&experiment, program, repetitions, bounds));
        }
    }
    let comparisons: Vec<Comparison> = classes
        .iter_mut()
        .map(|class| {
            let compared = std::mem::take(&mut class.compared);
            gather(&class.described, compared, class.described.settings.repetitions)
        })
        .collect();
    for program in &programs {
        let experiments = of_program(reader, &described, program)?;
        for ((class, comparison), experiment) in classes.iter_mut().zip(&comparisons).zip(experiments) {
            let count = RowCount::of(&experiment.observations);
            class.count.rows += count.rows;
            class.count.bad += count.bad;
            let table = comparison.tables.iter().find(|table| table.program == *program);
            class.sections.extend(table.map(|table| program_section(&experiment, comparison, table, extras)));
        }
    }
    let mut documents = Vec::new();
    let mut sections_before = 0;
    for (class, comparison) in classes.into_iter().zip(&comparisons) {
        let extras = Extras { sections_before, ..extras };
        let document = gathered(&class.described, comparison, extras, class.sections, class.count);
        sections_before += document.sections.len();
        documents.push((class.name, document));
    }
    Ok(if documents.len() == 1 { documents.remove(0).1 } else { of_classes(documents) })
}

/// The experiment of each class with the rows of one program, whose outputs are judged.
fn of_program(reader: &Reader, described: &Experiment, program: &str) -> Result<Vec<Experiment>, StoreError> {
    let rows = reader.rows_of(program)?;
    let whole = Experiment { observations: rows, ..described.clone() };
    let classes = whole.into_classes().into_iter().map(|(_, experiment)| experiment);
    Ok(classes
        .map(|mut experiment| {
            judge_outputs(&mut experiment);
            experiment
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_experiment::compare::compare;
    use heaptoll_experiment::shards::{Part, Shard};
    use heaptoll_experiment::store::Store;
    use heaptoll_experiment::testing::programs::{experiment, row};
    use heaptoll_report::experiment::document as whole_document;
    use heaptoll_report::terminal::{Style, render_document};

    /// With all that a document can have.
    const EXTRAS: Extras = Extras { bounds: true, collections: true, explain: true, sections_before: 0 };

    fn plain() -> Style {
        Style { color: false, width: None, unicode: true }
    }

    /// Two programs in two shards each, on the nodes `n1` and `n2` of these classes.
    fn measured(classes: [&str; 2]) -> Experiment {
        let mut made = experiment(&["p", "q"], &["glibc".into(), "other".into()], 12);
        for (number, program) in (0..).zip(["p", "q"]) {
            for (shard, class) in (0u32..).zip(classes) {
                let class_first = if classes[0] == classes[1] { 0 } else { 6 * shard };
                let part = Part { first: 6 * shard, repetitions: 6, class_first, ..Part::default() };
                let part = Part { program: program.into(), class: class.into(), ..part };
                let (number, node) = (2 * number + shard, format!("n{}", shard + 1));
                made.settings.shards.push(Shard { number, of: 4, part, node, ..Shard::default() });
            }
            for repetition in 0..12 {
                let noise = 1.0 + f64::from(repetition % 5) / 1000.0;
                let other = if repetition < 6 { 0.5 } else { 2.0 };
                made.observations.push(row(program, "glibc", repetition, noise, 1000));
                made.observations.push(row(program, "other", repetition, other, 1000));
            }
        }
        for (order, row) in (0..).zip(&mut made.observations) {
            row.order = order;
        }
        made
    }

    fn text(made: &Experiment) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("e.db");
        Store::create(&path, made).expect("creates").append_all(&made.observations).expect("appends");
        let reader = Reader::open(&path).expect("opens");
        let document = document(&reader, EXTRAS, true).expect("reads");
        render_document(&document, &plain())
    }

    #[test]
    fn read_by_program_it_is_the_document_of_the_whole() {
        let mut made = measured(["a", "a"]);
        let by_program = text(&made);
        judge_outputs(&mut made);
        let whole = whole_document(&made, &compare(&made), EXTRAS);
        assert_eq!(by_program, render_document(&whole, &plain()));
        assert!(by_program.contains("n2 disagrees"), "{by_program}");
    }

    #[test]
    fn two_classes_with_a_true_difference_are_not_averaged() {
        let shown = text(&measured(["a", "b"]));
        for expected in ["a: p", "b: p", "0.50", "2.0", "on 2 classes of machines"] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        assert!(!shown.contains("disagrees"), "{shown}");
    }
}
