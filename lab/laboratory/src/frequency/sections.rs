//! Tables and charts of the study of collections' frequency.

use heaptoll_report::document::{Item, Section, Table};
use heaptoll_report::format::{and_list, count, mib_from_kib, seconds};
use heaptoll_report::sweep::{Lines, lines};
use heaptoll_units::{ordinal, size_label};

use super::comparison::FEWEST_COLLECTIONS;
use super::figures::{Frequency, Ratio, Study};
use super::period::{Period, Question};
use heaptoll_runs::studied::ratio_cell;

/// More lines than this are drawn without bands.
const BANDED: usize = 6;

/// A period by the parameter that a question varies.
pub fn period_label(question: Question, period: Period) -> String {
    match question {
        Question::Reclamations => match period.reclaim {
            1 => "every collection".into(),
            several => format!("every {} collection", ordinal(several)),
        },
        _ => size_label(period.every_bytes),
    }
}

/// The section to read first.
pub fn findings(found: &Frequency, verdicts: Vec<String>) -> Section {
    let mut text = verdicts;
    let rare: Vec<String> = found
        .programs
        .iter()
        .filter(|study| !study.often_enough)
        .map(|study| match study.settings.first().and_then(|setting| setting.medians) {
            Some(medians) => format!(
                "{} under {} ({} collections at the shortest period)",
                study.program,
                study.collector,
                count(medians.collections)
            ),
            None => format!("{} under {} (nothing was reported)", study.program, study.collector),
        })
        .collect();
    if !rare.is_empty() {
        text.push(format!(
            "A run with fewer than {FEWEST_COLLECTIONS} collections shows nothing about their frequency. \
             Left out of means and verdicts: {}.",
            and_list(&rare)
        ));
    }
    if found.programs.iter().any(Study::has_too_few_runs) {
        text.push(
            "With fewer than six good pairs of runs no difference is claimed. Add repetitions (-n).".into(),
        );
    }
    text.push(
        "Mutator time is elapsed time without pauses; mutator CPU is CPU without the collector's. Both \
         exclude start-up. All intervals of a table are valid together at 95 %."
            .into(),
    );
    let compared = |ratio: &Ratio| {
        let [period, over] = [ratio.period, ratio.over].map(|period| period_label(ratio.question, period));
        format!("{period} over {over}")
    };
    let table = Table::of(&found.means)
        .caption("Geometric means over programs")
        .text("collector", |mean| mean.collector.clone())
        .text("varied", |mean| question_label(mean.ratio.question))
        .text("compared", |mean| compared(&mean.ratio))
        .figure("programs", |mean| mean.programs.to_string())
        .figure("mutator CPU", |mean| ratio_cell(mean.ratio.mutator_cpu))
        .figure("other programs", |mean| ratio_cell(mean.between_programs))
        .figure("mutator time", |mean| ratio_cell(mean.ratio.mutator_wall))
        .figure("time with pauses", |mean| ratio_cell(mean.ratio.wall))
        .figure("peak memory", |mean| ratio_cell(mean.ratio.peak_rss))
        .note(
            "Intervals are over repetitions of these programs. \"Other programs\": the programs are a sample \
             of their kind (Student's t on their logarithms, each at 95 % by itself). It shows the mutator's \
             CPU, or its time if the collector reports no CPU.",
        );
    Section { text, ..Section::new("What frequency costs") }.with_all(table.if_any())
}

fn question_label(question: Question) -> &'static str {
    match question {
        Question::Collections => "collections",
        Question::Identifications => "collections that mostly only identify",
        Question::Reclamations => "reclamations",
    }
}

/// One of the paper's experiments.
pub fn question(found: &Frequency, question: Question) -> Option<Section> {
    let of = |study: &Study| {
        study.ratios.iter().filter(|ratio| ratio.question == question).copied().collect::<Vec<Ratio>>()
    };
    let studies: Vec<(&Study, Vec<Ratio>)> = found
        .programs
        .iter()
        .map(|study| (study, of(study)))
        .filter(|(_, ratios)| !ratios.is_empty())
        .collect();
    let first = studies.first()?.1.first()?;
    let (title, text) = match question {
        Question::Collections => (
            "Frequency of collections",
            format!(
                "Every collection reclaims. Ratios are to a collection every {}: what collections disturb, \
                 and the delay of reuse.",
                size_label(first.over.every_bytes)
            ),
        ),
        Question::Identifications => (
            "Frequency of collections, while few reclaim",
            format!(
                "Every {} collection reclaims; the others only identify what is dead. Ratios are to a \
                 collection every {}.",
                ordinal(first.over.reclaim),
                size_label(first.over.every_bytes)
            ),
        ),
        Question::Reclamations => (
            "Frequency of reclamation",
            format!(
                "A collection every {} in all. Ratios are to reclaiming at each: the delay of reuse alone.",
                size_label(first.over.every_bytes)
            ),
        ),
    };
    let period = if question == Question::Reclamations { "reclaimed at" } else { "collected every" };
    let rows = studies.iter().flat_map(|(study, ratios)| ratios.iter().map(move |ratio| (study, ratio)));
    let table = Table::of(rows)
        .text("program", |(study, _)| study.program.clone())
        .text("collector", |(study, _)| study.collector.clone())
        .figure(period, |(_, ratio)| period_label(question, ratio.period))
        .figure("mutator CPU", |(_, ratio)| ratio_cell(ratio.mutator_cpu))
        .figure("mutator time", |(_, ratio)| ratio_cell(ratio.mutator_wall))
        .figure("time with pauses", |(_, ratio)| ratio_cell(ratio.wall))
        .figure("peak memory", |(_, ratio)| ratio_cell(ratio.peak_rss))
        .text("", |(study, _)| if study.often_enough { "" } else { "too few collections" });
    let charts = found.collectors.iter().flat_map(|collector| chart(title, collector, question, &studies));
    Some(Section::new(title).state(text).with(table).with_all(charts))
}

/// The mutator by period, one line a program.
fn chart(title: &str, collector: &str, question: Question, studies: &[(&Study, Vec<Ratio>)]) -> Option<Item> {
    let own: Vec<&(&Study, Vec<Ratio>)> =
        studies.iter().filter(|(study, _)| study.collector == collector && study.often_enough).collect();
    let over = own.first()?.1.first()?.over;
    let mut periods: Vec<Period> =
        own.iter().flat_map(|(_, ratios)| ratios.iter().map(|ratio| ratio.period)).collect();
    periods.push(over);
    periods.sort_unstable();
    periods.dedup();
    let axis = if question == Question::Reclamations { "reclaimed at" } else { "collected every" };
    let shown = Lines {
        title: format!("{title}: {collector}"),
        caption: "The mutator's CPU (its elapsed time if the collector does not report its CPU), one line a \
                  program."
            .into(),
        axes: [axis.into(), format!("ratio to {}", period_label(question, over))],
        places: periods.iter().map(|period| period_label(question, *period)).collect(),
        base: periods.iter().position(|period| *period == over),
        names: own.iter().map(|(study, _)| study.program.as_str()).collect(),
        banded: own.len() <= BANDED,
    };
    Some(lines(shown, &|name, place| {
        own[name].1.iter().find(|ratio| ratio.period == periods[place]).and_then(Ratio::of_mutator)
    }))
}

/// Medians of every stack.
pub fn settings(found: &Frequency) -> Section {
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
