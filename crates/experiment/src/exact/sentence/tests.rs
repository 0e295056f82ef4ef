//! Each way in which counts and time can stand to each other, and the sentence for it.

use super::*;

/// An interval of twelve pairs, this wide either way.
fn cpu(ratio: f64, half: f64) -> Option<Interval> {
    let (low, high) = (ratio / (1.0 + half), ratio * (1.0 + half));
    Some(Interval { ratio, low, high, differs: low > 1.0 || high < 1.0, pairs: 12 })
}

/// Of a million instructions of glibc's.
fn sentence_for(instructions: f64, cpu: Option<Interval>, parts: &[(&str, u64, u64, f64)]) -> String {
    let parts: Vec<Part> = parts
        .iter()
        .filter_map(|(what, count, of, cycles)| Part::of((*what).into(), *count, *of, *cycles))
        .collect();
    let axis = Axis { baseline: "glibc", instructions, of_instructions: 1e6, parts: &parts, cpu };
    sentence(&axis).unwrap_or_default()
}

/// 200 000 cycles more, and as many fewer.
const MORE: (&str, u64, u64, f64) = ("misses of 1M/16", 2000, 1000, 200.0);
const FEWER: (&str, u64, u64, f64) = ("page faults", 100, 200, 2000.0);
/// Three times as many, and too few to matter.
const FEW_OF_THEM: (&str, u64, u64, f64) = ("misses of 32M/16", 30, 10, 200.0);

#[test]
fn each_disagreement_has_its_sentence() {
    let memory = "memory makes the difference, not instructions";
    let unseen = "neither misses nor page faults explain it";
    let cases = [
        // A difference in CPU that is not in instructions.
        (
            "memory alone",
            1.001,
            cpu(1.12, 0.02),
            &[MORE][..],
            vec!["takes 12 % more CPU", "as many", memory, "2.00 times glibc's misses of 1M/16"],
        ),
        (
            "memory alone, less",
            1.0,
            cpu(0.9, 0.02),
            &[FEWER],
            vec!["takes 10 % less CPU", memory, "0.50 times glibc's page faults"],
        ),
        ("nothing counted", 1.0, cpu(1.12, 0.02), &[FEW_OF_THEM], vec!["takes 12 % more CPU", unseen]),
        ("the other way", 1.0, cpu(1.12, 0.02), &[FEWER], vec![unseen, "point the other way", "page faults"]),
        // One that goes the other way.
        (
            "outweighed",
            0.95,
            cpu(1.05, 0.01),
            &[MORE],
            vec!["executes 5.0 % fewer instructions, but takes 5.0 % more CPU", "memory outweighs them"],
        ),
        (
            "opposite, unseen",
            1.05,
            cpu(0.9, 0.01),
            &[MORE],
            vec!["executes 5.0 % more instructions, but takes 10 % less CPU", unseen, "other way"],
        ),
        // One that is larger, or smaller.
        (
            "the rest",
            1.05,
            cpu(1.12, 0.01),
            &[MORE],
            vec!["executes 5.0 % more instructions and takes 12 % more CPU: memory makes up the rest"],
        ),
        ("the rest unseen", 1.05, cpu(1.12, 0.01), &[], vec!["As for the rest, neither"]),
        (
            "part taken back",
            0.7,
            cpu(0.95, 0.01),
            &[MORE],
            vec![
                "executes 30 % fewer instructions, but only takes 5.0 % less CPU: memory cancels part of the gain",
            ],
        ),
        (
            "part made good",
            1.6,
            cpu(1.1, 0.01),
            &[FEWER],
            vec![
                "executes 1.60 times the instructions, but only takes 10 % more CPU: memory offsets part of the cost",
            ],
        ),
        (
            "cheap ones",
            2.0,
            cpu(1.2, 0.01),
            &[],
            vec!["but only takes 20 % more CPU: the instructions that differ may be cheaper"],
        ),
        // No difference in CPU.
        (
            "below what was seen",
            0.97,
            cpu(1.0, 0.05),
            &[MORE],
            vec![
                "executes 3.0 % fewer instructions; the difference in time is too small to detect in this run",
            ],
        ),
        (
            "evened out",
            0.8,
            cpu(1.0, 0.02),
            &[MORE],
            vec![
                "executes 20 % fewer instructions, but its CPU ratio is between 0.980 and 1.020: memory balances it",
            ],
        ),
        ("not evened out", 0.8, cpu(1.0, 0.02), &[], vec!["between 0.980 and 1.020", unseen]),
        (
            "misses only",
            1.0,
            cpu(1.0, 0.02),
            &[MORE],
            vec![
                "as many instructions as glibc (1.0000 times), with 2.00 times",
                "no difference detected in time",
            ],
        ),
        ("no time at all", 0.97, None, &[], vec!["executes 3.0 % fewer instructions; too few repetitions"]),
    ];
    for (case, instructions, cpu, parts, expected) in cases {
        let found = sentence_for(instructions, cpu, parts);
        assert!(expected.iter().all(|part| found.contains(part)), "{case}: {found}");
    }
}

/// A tenth of what instructions leave unexplained is the least that is named.
#[test]
fn a_few_misses_more_are_not_what_a_large_difference_is_in() {
    let few = ("misses of 1M/16", 1250, 1000, 200.0);
    assert!(sentence_for(1.0, cpu(1.9, 0.02), &[few]).contains("neither misses"));
    assert!(sentence_for(1.0, cpu(1.3, 0.02), &[few]).contains("not instructions (1.25 times"));
}

/// An end of an interval is not known to a tenth of a percent.
#[test]
fn what_lies_hardly_beyond_an_interval_is_below_what_was_seen() {
    let interval = Interval { ratio: 1.02, low: 0.984, high: 1.054, differs: false, pairs: 8 };
    assert!(sentence_for(0.982, Some(interval), &[]).ends_with("too small to detect in this run"));
    assert!(sentence_for(0.97, Some(interval), &[]).contains("between 0.984 and 1.054: neither"));
}

#[test]
fn several_parts_are_named_in_one_list() {
    let sentence = sentence_for(1.0, cpu(1.2, 0.02), &[MORE, ("page faults", 200, 100, 2000.0), FEWER]);
    assert!(
        sentence.ends_with("(2.00 times glibc's misses of 1M/16, 2.00 times its page faults)"),
        "{sentence}"
    );
}

#[test]
fn nothing_is_stated_where_counts_and_time_agree() {
    for (case, instructions, cpu, parts) in [
        ("all the same", 1.0, cpu(1.0, 0.02), &[][..]),
        ("the same but for what does not matter", 1.004, cpu(1.0, 0.02), &[FEW_OF_THEM]),
        ("in the interval", 1.05, cpu(1.04, 0.02), &[MORE]),
        ("near it", 0.85, cpu(0.87, 0.002), &[MORE]),
        ("a small one", 0.9955, cpu(0.994, 0.001), &[]),
    ] {
        assert_eq!(sentence_for(instructions, cpu, parts), "", "{case}");
    }
}

#[test]
fn ranges_of_few_pairs_claim_nothing() {
    let few = cpu(1.5, 0.01).map(|range| Interval { differs: false, pairs: 3, ..range });
    assert!(sentence_for(0.9, few, &[]).ends_with("too few repetitions to claim a difference in time"));
    assert!(sentence_for(1.0, few, &[MORE]).ends_with("too few repetitions to claim a difference in time"));
}

#[test]
fn what_the_baseline_has_none_of_has_no_ratio() {
    assert!(Part::of("page faults".into(), 7, 0, FAULT_CYCLES).is_none());
}
