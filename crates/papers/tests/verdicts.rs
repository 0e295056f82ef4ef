//! The table of mended verdicts against the stored figures: what it has of either test is what the tool makes of them.

use std::path::Path;

use heaptoll_papers::bundled::all;
use heaptoll_papers::results::Results;
use heaptoll_papers::stored;
use heaptoll_papers::verdict::Answer;

fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Holds => "holds",
        Answer::Fails => "fails",
        Answer::Undecided => "not decided",
        Answer::NotMeasured => "not measured",
    }
}

/// The verdict on a claim, in a word.
fn verdict(results: &Results, study: &str, claim: &str) -> Option<&'static str> {
    let paper = results.papers.iter().find(|paper| paper.study.name == study)?;
    paper.verdicts.iter().find(|verdict| verdict.claim == claim).map(|verdict| word(verdict.answer))
}

#[test]
fn the_table_of_mended_verdicts_is_what_the_stored_figures_give() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let text = std::fs::read_to_string(results.join("verdicts.md")).expect("the table");
    let before = stored::results(&results.join("study-2026-11-22.json.xz")).expect("stored results");
    let latest = stored::results(&results.join("study-last.json.xz")).expect("stored results");
    let again = before.clone().judged_again(&all().expect("studies"));
    let mut compared = 0;
    // The table of mended claims is the first; rows begin with a study and a claim.
    for line in text.lines().filter(|line| line.starts_with("| ") && line.split(" | ").count() == 7) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let Some((study, rest)) = cells[0].split_once(" `") else { continue };
        let (claim, _) = rest.split_once('`').expect(line);
        let [.., old, new, last] = cells.as_slice() else { panic!("{line}") };
        assert_eq!(Some(*old), verdict(&before, study, claim), "{claim} under the old test");
        let first = new.split(" (").next();
        assert_eq!(
            first,
            Some(verdict(&again, study, claim).unwrap_or("dropped")),
            "{claim} under the new test"
        );
        assert_eq!(*last, verdict(&latest, study, claim).unwrap_or("–"), "{claim} in the latest run");
        compared += 1;
    }
    assert_eq!(compared, 20);
}
