//! Whether a form does what is known of it: prints the same, and allocates as often.

use std::path::{Path, PathBuf};

use heaptoll_catalog::Varying;
use heaptoll_peers::manifest::digest;

use crate::Refusal;
use crate::counted_run::{self, Counts};
use crate::recipe::{Count, Proof};

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
    let stdin = proof.stdin.as_ref().map(|path| PathBuf::from(put(path)));
    let (output, counts) =
        counted_run::run(binary, &arguments, &environment, stdin.as_deref(), layer, scratch)?;
    // A pattern that is none was refused with the recipe.
    let varying = proof.varies.as_deref().and_then(|pattern| Varying::new(pattern).ok());
    let output = varying.map_or_else(|| digest(&output), |varying| varying.digest(&output));
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
    for (what, found, expected) in calls {
        match expected {
            Count::Known(expected) if !is_near(found, expected) => {
                return Err(Refusal::Counts { what, found, expected });
            }
            Count::AtLeast { least } if found < least => return Err(Refusal::TooFew { what, found, least }),
            Count::Known(_) | Count::AtLeast { .. } => {}
        }
    }
    Ok(counts)
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
            stdin: None,
            output: "same".into(),
            varies: None,
            objects: Count::Known(100_000),
            resizes: Count::Known(300),
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
    fn where_a_count_differs_from_run_to_run_its_least_proves_a_form() {
        let proof = Proof { objects: Count::AtLeast { least: 1000 }, ..proof() };
        assert!(compare(&proof, "same", counts(1000, 300)).is_ok());
        assert!(compare(&proof, "same", counts(7_000_000, 300)).is_ok());
        let few = compare(&proof, "same", counts(999, 300));
        assert!(matches!(few, Err(Refusal::TooFew { found: 999, least: 1000, .. })), "{few:?}");
    }

    #[test]
    fn another_output_is_refused_though_the_counts_are_right() {
        assert!(matches!(compare(&proof(), "other", counts(100_000, 300)), Err(Refusal::Output { .. })));
    }
}
