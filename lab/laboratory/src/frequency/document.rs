//! The document of the study of collections' frequency.

use heaptoll_experiment::sweep::Sweep;
use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::{and_list, count, mib_from_kib, percent_off, plural, seconds};
use heaptoll_units::{ordinal, size_label};

use super::comparison::{FEWEST_COLLECTIONS, FIGURES, MUTATOR, Periods};
use super::figures::{Frequency, Study};
use super::period::{Period, Question};
use super::published;
use crate::axis::Shown;
use heaptoll_runs::studied::StudyOutcome;

/// The whole document.
pub fn document(found: &Frequency, sweep: &Sweep<Periods>, outcome: &StudyOutcome) -> Document {
    let (mut text, mut means, mut sections) = (Vec::<String>::new(), Vec::new(), Vec::new());
    for question in [Question::Collections, Question::Identifications, Question::Reclamations] {
        let all = sweep.programs.iter().flat_map(|one| &one.ratios).map(|ratios| ratios.0);
        let mut keys: Vec<(Question, Period, Period)> = all.filter(|key| key.0 == question).collect();
        let Some(over) = keys.first().map(|key| key.2) else { continue };
        keys.push((question, over, over));
        keys.sort_unstable_by_key(|key| (key.1, key.2));
        keys.dedup();
        let ([title, what, axis], [base, sentence]) = (words(question), base(question, over));
        let shown = Shown {
            sweep,
            subject: "collector",
            axis,
            places: keys.into_iter().map(|key| (key, period_label(question, key.1))).collect(),
            base: ((question, over, over), base.as_str()),
            figures: &FIGURES,
            drawn: &[MUTATOR],
        };
        text.extend(found.collectors.iter().filter_map(|one| verdict(found, one, question, what)));
        means.extend(shown.means());
        sections.extend(shown.section(title, &sentence));
    }
    text.extend(left_out(found));
    text.extend(found.programs.iter().any(Study::has_too_few_runs).then(|| {
        "With fewer than six good pairs of runs no difference is claimed. Add repetitions (-n).".to_owned()
    }));
    text.push(
        "Mutator time is elapsed time without pauses; mutator CPU is CPU without the collector's. Both \
         exclude start-up. A result is claimed by the mutator's CPU, or its time if the collector reports no CPU. \
         All intervals of a table are valid together at 95 %."
            .into(),
    );
    let mut all = vec![Section { text, ..Section::new("What frequency costs") }.with_all(means)];
    all.extend(published::section(found));
    all.extend(sections);
    all.push(settings(found));
    outcome.document("What collections cost besides their pauses", &and_list(&found.collectors), all)
}

/// How a question is put: its heading, what it varies, and what the places of its axis are.
fn words(question: Question) -> [&'static str; 3] {
    match question {
        Question::Collections => {
            ["Frequency of collections", "the frequency of collections", "collected every"]
        }
        Question::Identifications => [
            "Frequency of collections, while few reclaim",
            "the frequency of collections without reclaiming",
            "collected every",
        ],
        Question::Reclamations => ["Frequency of reclamation", "the frequency of reclaiming", "reclaimed at"],
    }
}

/// What others are compared with, and a sentence on it.
fn base(question: Question, over: Period) -> [String; 2] {
    let every = format!("a collection every {}", size_label(over.every_bytes));
    match question {
        Question::Collections => {
            let text = "Every collection reclaims: what collections disturb, and the delay of reuse.";
            [every, text.into()]
        }
        Question::Identifications => {
            let reclaim = ordinal(over.reclaim);
            let text = format!("Every {reclaim} collection reclaims; the others only identify what is dead.");
            [format!("{every}, while few reclaim"), text]
        }
        Question::Reclamations => {
            let text = format!("There is {every} in all: the delay of reuse alone.");
            ["reclaiming at every collection".into(), text]
        }
    }
}

/// A period by the parameter that a question varies.
fn period_label(question: Question, period: Period) -> String {
    match question {
        Question::Reclamations => match period.reclaim {
            1 => "every collection".into(),
            several => format!("every {} collection", ordinal(several)),
        },
        _ => size_label(period.every_bytes),
    }
}

/// On which programs the mutator gains or loses under a collector, in a sentence.
fn verdict(found: &Frequency, collector: &str, question: Question, what: &str) -> Option<String> {
    let mut differ: Vec<String> = Vec::new();
    let mut seen = 0;
    for study in found.programs.iter().filter(|study| study.collector == collector && study.often_enough) {
        // The farthest from what it is compared with: the longest period, the rarest reclamation.
        let Some(ratio) = study.ratios.iter().rfind(|ratio| ratio.question == question) else { continue };
        let Some(interval) = ratio.of_mutator() else { continue };
        if !interval.has_enough_pairs() {
            continue;
        }
        seen += 1;
        if interval.differs {
            let word = if interval.ratio < 1.0 { "less" } else { "more" };
            let period = period_label(question, ratio.period);
            differ.push(format!("{} ({} {word} at {period})", study.program, percent_off(interval.ratio)));
        }
    }
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

/// What is in no mean, since it hardly collects.
fn left_out(found: &Frequency) -> Option<String> {
    let rare = found.programs.iter().filter(|study| !study.often_enough).map(|study| {
        let Study { program, collector, settings, .. } = study;
        let why = match settings.first().and_then(|setting| setting.medians) {
            Some(medians) => format!("{} collections at the shortest period", count(medians.collections)),
            None => "nothing was reported".into(),
        };
        format!("{program} under {collector} ({why})")
    });
    let rare: Vec<String> = rare.collect();
    (!rare.is_empty()).then(|| {
        format!(
            "A run with fewer than {FEWEST_COLLECTIONS} collections shows nothing about their frequency. \
             Left out of means and verdicts: {}.",
            and_list(&rare)
        )
    })
}

/// Medians of every stack.
fn settings(found: &Frequency) -> Section {
    let settings = found.programs.iter().flat_map(|study| study.settings.iter().map(move |one| (study, one)));
    let table = Table::of(settings)
        .text("program", |(study, _)| study.program.clone())
        .text("collector", |(study, _)| study.collector.clone())
        .figure("every", |(_, setting)| size_label(setting.period.every_bytes))
        .figure("reclaim", |(_, setting)| setting.period.reclaim.to_string())
        .figure("runs", |(_, setting)| setting.good.to_string())
        .figure("collections", |(_, setting)| setting.medians.map(|medians| count(medians.collections)))
        .figure("time, s", |(_, setting)| setting.medians.map(|medians| seconds(medians.wall_s)))
        .figure("pauses, s", |(_, setting)| setting.medians.map(|medians| seconds(medians.pauses_s)))
        .figure("mutator, s", |(_, setting)| setting.medians?.mutator_wall_s.map(seconds))
        .figure("mutator CPU, s", |(_, setting)| setting.medians?.mutator_cpu_s.map(seconds))
        .figure("peak MiB", |(_, setting)| setting.medians.map(|medians| mib_from_kib(medians.peak_rss_kib)));
    Section::new("What was measured").state("Medians of good runs.").with(table)
}
