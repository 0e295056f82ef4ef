//! Whether a form does what is known of it: prints the same, and allocates as often.

use std::path::Path;

use crate::Refusal;
use crate::counted_run::{self, Counts};
use crate::recipe::Proof;

/// Runs the form's cheap input and compares.
///
/// # Errors
/// Other output, or counts that differ by more than a percent.
pub(crate) fn prove(
    proof: &Proof,
    binary: &Path,
    here: &Path,
    layer: &Path,
    scratch: &Path,
) -> Result<Counts, Refusal> {
    let here = here.display().to_string();
    let put = |text: &String| text.replace("{here}", &here);
    let arguments: Vec<String> = proof.arguments.iter().map(put).collect();
    let environment = proof.environment.iter().map(|(name, value)| (name.clone(), put(value))).collect();
    let (output, counts) = counted_run::run(binary, &arguments, &environment, layer, scratch)?;
    compare(proof, &output, counts)
}

fn compare(proof: &Proof, output: &str, counts: Counts) -> Result<Counts, Refusal> {
    if output != proof.output {
        return Err(Refusal::Output { found: output.to_owned(), expected: proof.output.clone() });
    }
    let calls = [
        ("calls of malloc and calloc", counts.objects, proof.objects),
        ("calls of realloc", counts.resizes, proof.resizes),
    ];
    match calls.into_iter().find(|&(_, found, expected)| !is_near(found, expected)) {
        Some((what, found, expected)) => Err(Refusal::Counts { what, found, expected }),
        None => Ok(counts),
    }
}

/// Within one percent. The C library may make a call or two of its own, which is more than that in the shortest runs.
fn is_near(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) <= (expected / 100).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof() -> Proof {
        Proof {
            arguments: vec![],
            environment: Default::default(),
            output: "same".into(),
            objects: 100_000,
            resizes: 300,
        }
    }

    fn counts(objects: u64, resizes: u64) -> Counts {
        Counts { objects, resizes, bytes: 0 }
    }

    #[test]
    fn counts_within_a_percent_prove_a_form() {
        for (objects, resizes) in [(100_000, 300), (101_000, 303), (99_000, 297)] {
            assert!(compare(&proof(), "same", counts(objects, resizes)).is_ok(), "{objects} {resizes}");
        }
    }

    #[test]
    fn more_than_a_percent_off_is_refused_though_the_output_is_right() {
        for (objects, resizes) in [(101_001, 300), (98_999, 300), (144_000, 300), (100_000, 304), (0, 0)] {
            let outcome = compare(&proof(), "same", counts(objects, resizes));
            assert!(matches!(outcome, Err(Refusal::Counts { .. })), "{objects} {resizes}");
        }
    }

    #[test]
    fn another_output_is_refused_though_the_counts_are_right() {
        assert!(matches!(compare(&proof(), "other", counts(100_000, 300)), Err(Refusal::Output { .. })));
    }
}
