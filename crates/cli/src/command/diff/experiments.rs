//! `heaptoll diff A.db B.db`: what changed between two experiments.

use std::path::Path;

use heaptoll_command::failure::Failure;
use heaptoll_compare::diff::experiments::{DiffExperimentsFigures, read};
use heaptoll_compare::same_work;
use heaptoll_experiment::compare::{across, judge_outputs};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_report::document::Document;
use heaptoll_report::experiment::pair;

use crate::documents::DocumentOutputs;
use crate::one_class::one_class;
use crate::terminal;

/// Compares B with A, and shows and writes what it finds. With `anyway` also programs that were not given the same work.
///
/// # Errors
/// Files that cannot be read, or nothing in common.
pub fn run(a_path: &Path, b_path: &Path, anyway: bool, outputs: &DocumentOutputs) -> Result<u8, Failure> {
    let (mut a, mut b) = (read(a_path)?, read(b_path)?);
    one_class(&a, a_path)?;
    one_class(&b, b_path)?;
    judge_outputs(&mut a);
    judge_outputs(&mut b);
    let left_out = leave_out_other_work(&mut a, &b, anyway);
    let rows = across(&a, &b);
    if rows.is_empty() {
        return Err(Failure::NothingToCompare(nothing(&left_out, (a_path, &a), (b_path, &b))));
    }
    let mut warnings: Vec<String> =
        left_out.iter().map(|text| format!("left out (--anyway compares it): {text}")).collect();
    warnings.extend(same_work::of_all(&a, &b));
    warnings.iter().for_each(|text| terminal::warning(text));
    let (name_a, name_b) = names(a_path, b_path);
    let printed = pair(&name_a, &name_b, &rows);
    // The terminal has the warnings already.
    let written = Document { warnings: warnings.clone(), ..printed.clone() };
    outputs.deliver_with(&printed, &written, &DiffExperimentsFigures { a: name_a, b: name_b, warnings, rows })
}

/// Why there is nothing to compare.
fn nothing(
    left_out: &[String],
    (a_path, a): (&Path, &Experiment),
    (b_path, b): (&Path, &Experiment),
) -> String {
    if !left_out.is_empty() {
        return format!(
            "nothing is left to compare; --anyway compares different work:\n  {}",
            left_out.join("\n  ")
        );
    }
    format!(
        "{} and {} have no program and manager in common with good rows in both. The first has {}; the second has {}. \
         Two builds under other names are compared by: heaptoll gate --base OLD --new NEW",
        a_path.display(),
        b_path.display(),
        contents(a),
        contents(b)
    )
}

/// The programs of an experiment, each with its managers.
fn contents(experiment: &Experiment) -> String {
    let each = experiment.programs.iter().map(|program| {
        let own = experiment.stacks.iter().filter(|stack| stack.program == program.name);
        let managers: Vec<&str> = own.map(|stack| stack.name.as_str()).collect();
        format!("{} under {}", program.name, managers.join(", "))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What the two files are called: by their names without folder and ending, or by their paths where these are the same.
fn names(a: &Path, b: &Path) -> (String, String) {
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let path = |path: &Path| path.display().to_string();
    if name(a) == name(b) { (path(a), path(b)) } else { (name(a), name(b)) }
}

/// Removes from `a` the programs that did other work in `b`, returns the reasons, and warns about other differences.
fn leave_out_other_work(a: &mut Experiment, b: &Experiment, anyway: bool) -> Vec<String> {
    let mut left_out = Vec::new();
    let names: Vec<String> = a.programs.iter().map(|program| program.name.clone()).collect();
    for name in names {
        let found = same_work::differences(a, b, &name);
        if !anyway && !found.work.is_empty() {
            left_out.push(format!("{name}: {}", found.work.join("; ")));
            a.stacks.retain(|stack| stack.program != name);
            continue;
        }
        for text in found.work.iter().chain(&found.surroundings) {
            terminal::warning(&format!("{name}: {text}"));
        }
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(a: &str, b: &str) -> (String, String) {
        names(Path::new(a), Path::new(b))
    }

    /// Found by attack: `old/run.db` and `new/run.db` were both called run, and so was what took less.
    #[test]
    fn files_of_the_same_name_are_called_by_their_paths() {
        assert_eq!(named("old/run.db", "new/run.db"), ("old/run.db".into(), "new/run.db".into()));
        assert_eq!(named("old/a.db", "new/b.db"), ("a".into(), "b".into()));
    }
}
