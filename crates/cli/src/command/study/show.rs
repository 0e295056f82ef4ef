//! Results with verdicts and exhibits; on the terminal, as a page and as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_report::format::shell_command;
use heaptoll_report::html;
use heaptoll_report::terminal::{render_book, render_verdicts};
use heaptoll_studies::paper::definition::Study;
use heaptoll_studies::paper::exhibit;
use heaptoll_studies::paper::figures::{Absent, Figures};
use heaptoll_studies::paper::results::{Ended as Ending, PaperResult, Ran as RanStep, Results};
use heaptoll_studies::paper::verdict::{self, Answer};

use super::book::book;
use super::commands::Extent;
use super::keep::{Folder, StudyRequest};
use super::selection::{self, TakenOut};
use super::session::Ran;
use crate::documents::DocumentOutputs;
use crate::terminal;
use heaptoll_experiments::failure::Failure;

/// Name and version of the JSON.
const SCHEMA: &str = "heaptoll-study/1";
/// The page in the folder that keeps a study.
const PAGE: &str = "report.html";
/// The results there.
const RESULTS: &str = "results.json";

/// The results of a study. `fitted` are the studies as they were run, `request` has them as they are written.
pub fn results(
    request: &StudyRequest,
    fitted: &[Study],
    taken_out: &[TakenOut],
    ran: &Ran,
    facts: Vec<(String, String)>,
    load: f64,
) -> Results {
    let figures = Figures { cells: ran.steps.iter().flat_map(|step| step.cells.iter().cloned()).collect() };
    let steps = steps(request, fitted, ran);
    let absent = absent(request, fitted, taken_out, ran);
    let commands: BTreeMap<String, String> = steps
        .iter()
        .filter(|step| step.ending != Ending::LeftOut)
        .map(|step| (step.planned.step.clone(), step.command.clone()))
        .collect();
    let paper_section = |study: &Study| PaperResult {
        verdicts: study.claims.iter().map(|claim| verdict::judge(study, claim, &figures, &absent)).collect(),
        exhibits: study
            .exhibits
            .iter()
            .map(|one| exhibit::show(study, one, &figures, &commands, &absent))
            .collect(),
        study: study.clone(),
    };
    Results {
        begun_unix_s: request.begun_unix_s,
        seconds: ran.seconds,
        budget_s: request.budget_s,
        heaptoll_version: env!("CARGO_PKG_VERSION").into(),
        command: shell_command(&request.command),
        facts: with_load(facts, load),
        complete: ran.complete(),
        warnings: warnings(request, taken_out, ran, load),
        papers: request.studies.iter().map(paper_section).collect(),
        steps,
        figures,
    }
}

fn with_load(mut facts: Vec<(String, String)>, load: f64) -> Vec<(String, String)> {
    facts.push(("load when it began".into(), format!("{load:.2} (1 minute)")));
    facts
}

/// Steps that were run, then those that were not.
fn steps(request: &StudyRequest, fitted: &[Study], ran: &Ran) -> Vec<RanStep> {
    let mut steps: Vec<RanStep> = ran.steps.iter().map(|step| step.ran.clone()).collect();
    let find = |id: &str| fitted.iter().find_map(|study| study.step(id));
    let not_run = |planned: heaptoll_studies::paper::budget::Planned, why: String| {
        let catalog = request.catalog.as_deref();
        let extent = find(&planned.step)
            .map(|step| Extent { step, planned: &planned, seed: request.seed, catalog }.repeat());
        RanStep {
            command: extent.unwrap_or_default(),
            seconds: 0.0,
            ending: Ending::LeftOut,
            precision: String::new(),
            warnings: vec![why],
            planned,
        }
    };
    for left in &ran.left_out {
        if let Some(step) = find(&left.step) {
            let planned = heaptoll_studies::paper::budget::Planned {
                study: left.study.clone(),
                step: left.step.clone(),
                programs: step.programs.len(),
                of_programs: step.programs.len(),
                managers: step.managers.len(),
                of_managers: step.managers.len(),
                repetitions: step.repetitions,
                of_repetitions: step.repetitions,
                size: step.size.clone(),
                seconds: 0.0,
                deadline_s: 0.0,
            };
            steps.push(not_run(planned, left.why.clone()));
        }
    }
    steps.extend(ran.not_reached.iter().map(|planned| not_run(planned.clone(), not_reached(ran).into())));
    steps
}

/// Why steps that were not reached have no figures.
fn not_reached(ran: &Ran) -> &'static str {
    if ran.stopped.is_some() { "the study ended before it" } else { "Ctrl-C came before it was run" }
}

/// Why figures are missing.
fn absent(request: &StudyRequest, fitted: &[Study], taken_out: &[TakenOut], ran: &Ran) -> Absent {
    let mut absent = Absent::default();
    for step in request.studies.iter().flat_map(|study| &study.steps) {
        let out = || taken_out.iter().filter(|out| out.step == step.id);
        for one in out() {
            match (&one.program, &one.manager) {
                (Some(program), _) => absent.cell(&step.id, program, None, &one.why),
                (None, Some(manager)) => {
                    for program in &step.programs {
                        absent.cell(&step.id, program, Some(manager), &one.why);
                    }
                }
                (None, None) => {}
            }
        }
        let runs = fitted.iter().any(|study| study.step(&step.id).is_some());
        if !runs && !request.only.is_empty() && !request.only.contains(&step.id) {
            absent.step(&step.id, "other steps were requested with --only");
        } else if !runs {
            let why = out().next().map_or("nothing of it can be run here", |out| &out.why);
            absent.step(&step.id, why);
        }
    }
    for left in &ran.left_out {
        absent.step(&left.step, &left.why);
    }
    for planned in &ran.not_reached {
        absent.step(&planned.step, not_reached(ran));
    }
    for step in &ran.steps {
        let planned = &step.ran.planned;
        if let Some(why) = &step.why {
            absent.step(&planned.step, why);
        }
        if let Some(whole) = fitted.iter().find_map(|study| study.step(&planned.step)) {
            for program in whole.programs.iter().skip(planned.programs) {
                absent.cell(&planned.step, program, None, SHORTER);
            }
            for manager in whole.managers.iter().skip(planned.managers) {
                for program in whole.programs.iter().take(planned.programs) {
                    absent.cell(&planned.step, program, Some(manager), SHORTER);
                }
            }
        }
        for (program, manager, why) in &step.absent {
            absent.cell(&planned.step, program, manager.as_deref(), why);
        }
    }
    absent
}

/// Why the parts that the plan left out have no figures.
const SHORTER: &str = "this shorter form leaves it out";

fn warnings(of: &StudyRequest, taken_out: &[TakenOut], ran: &Ran, load: f64) -> Vec<String> {
    let mut warnings = Vec::new();
    if of.quick {
        warnings.push(
            "This is the shortest form: two repetitions of each timed run, from which nothing is claimed."
                .into(),
        );
    }
    if ran.interrupted {
        warnings.push("It was interrupted: what was measured until then is shown.".into());
    }
    if let Some(why) = &ran.stopped {
        warnings.push(format!("It ended early: {why}. What was measured until then is shown."));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if load > 0.5 * cores as f64 {
        warnings.push(format!(
            "The machine had other work when it began (load {load:.1} on {cores} cores): intervals of times are wider."
        ));
    }
    warnings.extend(selection::left_out_sentences(taken_out));
    warnings
}

/// Reads the results that a study wrote.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn stored(path: &Path) -> Result<Results, Failure> {
    let refuse = |why: String| Failure::Usage(format!("cannot show {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let json: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| refuse(format!("it is no JSON: {error}")))?;
    match json["schema"].as_str() {
        Some(SCHEMA) => serde_json::from_value(json).map_err(|error| refuse(error.to_string())),
        Some(other) => Err(refuse(format!("its schema is {other}, and {SCHEMA} is wanted"))),
        None => Err(refuse(format!("it has no schema; `heaptoll study --json` writes {SCHEMA}"))),
    }
}

/// Prints the results, writes the requested files and those that the folder keeps; returns the exit status.
///
/// # Errors
/// Standard output is full.
pub fn deliver(outputs: &DocumentOutputs, results: &Results, folder: Option<&Folder>) -> Result<u8, Failure> {
    let book = book(results);
    let mut code = 0;
    if let Some(folder) = folder {
        let kept =
            DocumentOutputs { html: Some(folder.path().join(PAGE)), json: Some(folder.path().join(RESULTS)) };
        code = kept.write(SCHEMA, results, || html::book::render(&book));
    }
    // The page has several papers in full, the terminal only their verdicts. So it has where there is nothing else to
    // show.
    let style = terminal::style();
    let mut verdicts = results.papers.iter().flat_map(|paper_section| &paper_section.verdicts).peekable();
    let nothing = verdicts.peek().is_some() && verdicts.all(|verdict| verdict.answer == Answer::NotMeasured);
    let short = results.papers.len() > 1 || outputs.html.is_some() || nothing;
    let text = || if short { render_verdicts(&book, &style) } else { render_book(&book, &style) };
    Ok(outputs.give(text, || html::book::render(&book), SCHEMA, results)?.max(code))
}
