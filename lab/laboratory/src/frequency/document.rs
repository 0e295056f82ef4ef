//! The document of the study of collections' frequency.

use heaptoll_report::document::Document;
use heaptoll_report::format::{and_list, percent_off, plural};
use heaptoll_statistics::FEWEST_PAIRS;

use super::figures::Frequency;
use super::period::Question;
use super::published;
use super::sections;
use heaptoll_runs::studied::StudyOutcome;

/// The whole document.
pub fn document(found: &Frequency, outcome: &StudyOutcome) -> Document {
    let mut all = vec![sections::findings(found, verdicts(found))];
    all.extend(published::section(found));
    for question in [Question::Collections, Question::Identifications, Question::Reclamations] {
        all.extend(sections::question(found, question));
    }
    all.push(sections::settings(found));
    outcome.document("What collections cost besides their pauses", &and_list(&found.collectors), all)
}

/// One sentence a collector and question: on which programs the mutator gains or loses.
fn verdicts(found: &Frequency) -> Vec<String> {
    let mut all = Vec::new();
    for collector in &found.collectors {
        for question in [Question::Collections, Question::Identifications, Question::Reclamations] {
            all.extend(verdict(found, collector, question));
        }
    }
    all
}

fn verdict(found: &Frequency, collector: &str, question: Question) -> Option<String> {
    let mut differ: Vec<String> = Vec::new();
    let mut seen = 0;
    for study in found.programs.iter().filter(|study| study.collector == collector && study.often_enough) {
        // The farthest from what it is compared with: the longest period, the rarest reclamation.
        let Some(ratio) = study.ratios.iter().rfind(|ratio| ratio.question == question) else { continue };
        let Some(interval) = ratio.of_mutator() else { continue };
        if (interval.pairs as usize) < FEWEST_PAIRS {
            continue;
        }
        seen += 1;
        if interval.differs {
            let word = if interval.ratio < 1.0 { "less" } else { "more" };
            let period = sections::period_label(question, ratio.period);
            differ.push(format!("{} ({} {word} at {period})", study.program, percent_off(interval.ratio)));
        }
    }
    let what = match question {
        Question::Collections => "the frequency of collections",
        Question::Identifications => "the frequency of collections without reclaiming",
        Question::Reclamations => "the frequency of reclaiming",
    };
    (seen > 0).then(|| match differ.is_empty() {
        true => format!(
            "{collector}: {what} has no measurable effect on mutator time ({}).",
            plural(seen, "program")
        ),
        false => format!(
            "{collector}: {what} changes mutator time in {} of {}: {}.",
            differ.len(),
            plural(seen, "program"),
            and_list(&differ)
        ),
    })
}
