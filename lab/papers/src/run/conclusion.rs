//! What follows from the steps that were run: figures, verdicts and exhibits, and why others are missing.

use std::collections::BTreeMap;

use crate::budget::Planned;
use crate::definition::Study;
use crate::figures::{Absent, Figures};
use crate::found::Found;
use crate::joined::OTHER_WORK;
use crate::originals::{Originals, of_steps};
use crate::results::{Ended as Ending, Ran as RanStep, Results};
use heaptoll_command::version;
use heaptoll_report::format::shell_command;

use super::commands::Extent;
use super::plan::Plan;
use super::selection::{self, TakenOut};
use super::steps::Ran;

/// The results of a study. `fitted` are the studies as they were run, `plan` has them as they are written; `kin` is a
/// sentence on originals that are not installed.
pub fn results(
    plan: &Plan,
    fitted: &[Study],
    (taken_out, kin): (&[TakenOut], Option<String>),
    ran: &Ran,
    facts: Vec<(String, String)>,
    load: f64,
) -> Results {
    let measured = Figures { cells: ran.steps.iter().flat_map(|step| step.cells.iter().cloned()).collect() };
    let figures = measured.with_derived(&plan.studies);
    let mut steps = steps(plan, fitted, ran);
    for step in &mut steps {
        step.reserves = selection::reserves(taken_out, &step.planned.step);
    }
    let absent = absent(plan, fitted, taken_out, ran);
    let originals = originals(&steps, fitted);
    let found = Found::of(&plan.studies, &steps, &figures, &absent);
    let papers = plan.studies.iter().map(|study| found.paper(study, &study.as_run(&originals))).collect();
    let mut warnings = warnings(plan, taken_out, ran, load);
    warnings.extend(kin);
    Results {
        begun_unix_s: plan.begun_unix_s,
        seconds: ran.seconds,
        budget_s: plan.budget_s,
        heaptoll_version: version::OURS.into(),
        command: shell_command(&plan.command),
        facts: with_load(facts, load),
        complete: ran.complete(),
        warnings,
        papers,
        steps,
        figures,
        absent,
    }
}

fn with_load(mut facts: Vec<(String, String)>, load: f64) -> Vec<(String, String)> {
    facts.push(("load when it began".into(), format!("{load:.2} (1 minute)")));
    facts
}

/// The originals that ran, by the step, and those that a longer form of it would run.
fn originals(steps: &[RanStep], fitted: &[Study]) -> BTreeMap<String, Originals> {
    let mut all = of_steps(steps);
    for step in fitted.iter().flat_map(|study| &study.steps) {
        let run = steps.iter().find(|ran| ran.planned.step == step.id && ran.ending != Ending::LeftOut);
        let later = step.programs.iter().skip(run.map_or(0, |ran| ran.planned.programs));
        let of_later = later.filter_map(|kin| Some((kin.clone(), step.originals.get(kin)?.clone())));
        all.entry(step.id.clone()).or_default().extend(of_later);
    }
    all
}

/// Steps that were run, then those that were not.
fn steps(plan: &Plan, fitted: &[Study], ran: &Ran) -> Vec<RanStep> {
    let mut steps: Vec<RanStep> = ran.steps.iter().map(|step| step.ran.clone()).collect();
    let find = |id: &str| fitted.iter().find_map(|study| study.step(id));
    let not_run = |planned: Planned, why: String| {
        let catalog = plan.catalog.as_deref();
        let extent = find(&planned.step)
            .map(|step| Extent { step, planned: &planned, seed: plan.seed, catalog }.repeat());
        RanStep {
            command: extent.unwrap_or_default(),
            seconds: 0.0,
            ending: Ending::LeftOut,
            commit: None,
            precision: String::new(),
            warnings: vec![why],
            originals: BTreeMap::new(),
            reserves: BTreeMap::new(),
            planned,
        }
    };
    for left in &ran.left_out {
        if let Some(step) = find(&left.step) {
            let planned = Planned {
                study: left.study.clone(),
                step: left.step.clone(),
                programs: step.programs.len(),
                of_programs: step.programs.len(),
                managers: step.managers.len(),
                of_managers: step.managers.len(),
                repetitions: step.repetitions(),
                of_repetitions: step.repetitions(),
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
fn absent(plan: &Plan, fitted: &[Study], taken_out: &[TakenOut], ran: &Ran) -> Absent {
    let mut absent = Absent::default();
    for step in plan.studies.iter().flat_map(|study| &study.steps) {
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
        if !runs && !plan.only.is_empty() && !plan.only.contains(&step.id) {
            absent.step(&step.id, "--only left it out");
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

fn warnings(plan: &Plan, taken_out: &[TakenOut], ran: &Ran, load: f64) -> Vec<String> {
    let mut warnings = Vec::new();
    if plan.quick {
        warnings.push(
            "This is the shortest form: two repetitions of each timed run, too few for any claim.".into(),
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
            "{OTHER_WORK} it began (load {load:.1} on {cores} cores): intervals of times are wider."
        ));
    }
    warnings.extend(selection::left_out_sentences(taken_out));
    warnings
}
