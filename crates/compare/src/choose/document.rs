//! The document: the answer in words with the fresh runs, the frontier as a picture, what was not decided, the search.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::places::Places;
use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::{and_list, mib_from_bytes, plural, ratio, shell_command};

use super::figures::ChooseFigures;
use super::score::Preference;
use super::{answer, frontier, soak, undecided};

/// The document, with the command that repeats it.
pub fn document(figures: &ChooseFigures, experiment: &Experiment, places: &Places) -> Document {
    let sections = [
        answer::section(figures, places),
        soak::section(&figures.soak),
        frontier::section(figures),
        undecided::section(figures),
        search(figures),
    ];
    Document {
        title: format!("Which memory manager for {}?", and_list(&figures.programs)),
        subtitle: subtitle(figures),
        warnings: warnings(figures),
        sections: sections.into_iter().filter(|section| !section.title.is_empty()).collect(),
        facts: facts(figures, experiment),
        command: shell_command(&experiment.settings.repeat_command),
        palette: frontier::palette(figures),
    }
}

fn subtitle(figures: &ChooseFigures) -> String {
    let wanted = match figures.preference {
        Preference::Time => "little CPU time",
        Preference::Memory => "little memory",
        Preference::Balance => "little CPU time and little memory",
        Preference::P99 => "few slow requests",
        Preference::Idle => "little memory when idle",
    };
    let memory = figures.memory_limit_bytes;
    let memory = memory.map(|limit| format!(", at most {} MiB", mib_from_bytes(limit as f64)));
    let p99 = figures.p99_limit_ms.map(|limit| format!(", 99 % of requests in at most {limit} ms"));
    let limits: String = memory.into_iter().chain(p99).collect();
    format!("wanted: {wanted}{limits}; compared with {}", figures.baseline)
}

fn warnings(figures: &ChooseFigures) -> Vec<String> {
    let failed = figures.finalists.iter().filter(|finalist| !finalist.trouble.is_empty());
    let failed = failed.map(|finalist| format!("{}: {}", finalist.stack, finalist.trouble));
    let grows = |stack: &str| {
        let soak = figures.soak.iter().find(|soak| soak.stack == stack);
        soak.and_then(|soak| soak.growth).is_some_and(|growth| growth.is_certain())
    };
    let grown = (grows(&figures.choice) && !grows(&figures.baseline)).then(|| {
        format!(
            "{} grew in the soak, and {} did not: its savings may not last",
            figures.choice, figures.baseline
        )
    });
    failed.chain(grown).collect()
}

fn facts(figures: &ChooseFigures, experiment: &Experiment) -> Vec<(String, String)> {
    let fact = |name: &str, text: String| (name.to_owned(), text);
    let machine = &experiment.machine;
    vec![
        fact(
            "search",
            format!(
                "{} candidates in {}, each compared with {} in the same repetitions. Fresh runs of all candidates \
                 would take {}",
                figures.candidates.len(),
                plural(figures.search_runs as usize, "run"),
                figures.baseline,
                figures.full_search_runs
            ),
        ),
        fact(
            "fresh runs",
            format!(
                "{} repetitions of {}",
                figures.fresh_repetitions,
                plural(figures.finalists.len(), "stack")
            ),
        ),
        fact("score", format!("weighted mean of the logarithms of ratios: {}", weights(figures.preference))),
        fact(
            "machine",
            format!(
                "{}, {}, Linux {}, load {:.1}",
                machine.cpu,
                plural(machine.cores as usize, "core"),
                machine.kernel,
                machine.load[0]
            ),
        ),
    ]
}

fn weights(preference: Preference) -> &'static str {
    match preference {
        Preference::Time => "CPU time to memory 9 to 1",
        Preference::Memory => "CPU time to memory 1 to 9",
        Preference::Balance => "CPU time to memory 1 to 1",
        Preference::P99 => "99th percentile to CPU time to memory 18 to 1 to 1",
        Preference::Idle => "memory when idle to CPU time 9 to 1",
    }
}

fn search(figures: &ChooseFigures) -> Section {
    if figures.candidates.is_empty() {
        return Section::default();
    }
    let baseline = &figures.baseline;
    let table = Table::of(&figures.candidates)
        .text("Candidate", |row| row.stack.clone())
        .figure("last round", |row| row.round.to_string())
        .figure("runs", |row| row.repetitions.to_string())
        .figure(&format!("CPU / {baseline}"), |row| row.cpu_ratio.map(ratio))
        .figure(&format!("memory / {baseline}"), |row| row.memory_ratio.map(ratio))
        .figure("RSS MiB", |row| row.peak_bytes.map(mib_from_bytes))
        .text("", |row| row.why_out.clone().unwrap_or_default())
        .note(
            "Search estimates: ratios of so few runs are biased towards lucky candidates. Quote the ratios of \
             the fresh runs, not these.",
        );
    Section::new("The search").with(table)
}
