//! The requested studies, and the parts of each that can be run here: programs that are not installed and managers that
//! are not known are taken out of the steps, with the reason. The paper's own programs, where they are installed, stay in
//! place of their kin.

use std::collections::BTreeSet;
use std::path::Path;

use crate::bundled::all;
use crate::definition::{Step, Study};
use crate::needs::Needs;
use crate::originals::Originals;
use crate::sets;
use crate::variant::base;
use heaptoll_catalog::did_you_mean;
use heaptoll_catalog::{Catalog, Places as CatalogPlaces};
use heaptoll_experiment::manager::{self, Manager};

use heaptoll_command::failure::Failure;
use heaptoll_laboratory::replay_graph::is_known;

/// The word for every study that heaptoll has.
const EVERY: &str = "all";

/// The studies of these arguments: names, paths of the user's files, or `all`; each once. And the steps that `only` names:
/// by their ids, or by a table or figure of the paper that shows them.
///
/// # Errors
/// There is no such study, step or exhibit, or a file is no study.
pub fn studies(words: &[String], only: &[String]) -> Result<(Vec<Study>, Vec<String>), Failure> {
    let mut chosen: Vec<Study> = Vec::new();
    let mut add = |study: Study| {
        if chosen.iter().all(|other| other.name != study.name) {
            chosen.push(study);
        }
    };
    let refuse = |fault: crate::definition::Fault| Failure::Refused(Box::new(fault));
    for word in words {
        if is_path(word) {
            add(own(word)?);
            continue;
        }
        let known = all().map_err(refuse)?;
        if word == EVERY {
            known.into_iter().for_each(&mut add);
            continue;
        }
        let names: Vec<String> = known.iter().map(|study| study.name.clone()).collect();
        add(known.into_iter().find(|study| study.name == *word).ok_or_else(|| {
            Failure::Usage(format!(
                "there is no study `{word}`{}; there are: {}, and `{EVERY}` for all of them. A file of your own is named by \
                 its path (with a `/`, or ending in .toml)",
                did_you_mean(word, names.iter().map(String::as_str).chain([EVERY])),
                names.join(", ")
            ))
        })?);
    }
    apart(&chosen)?;
    let mut steps = Vec::new();
    for word in only {
        let found: Vec<String> =
            chosen.iter().flat_map(|study| study.named(word)).map(str::to_owned).collect();
        if found.is_empty() {
            return Err(no_such_step(word, &chosen));
        }
        steps.extend(found);
    }
    Ok((chosen, steps))
}

fn no_such_step(word: &str, studies: &[Study]) -> Failure {
    let steps: Vec<&str> =
        studies.iter().flat_map(|study| &study.steps).map(|step| step.id.as_str()).collect();
    let exhibits: Vec<&str> =
        studies.iter().flat_map(|study| &study.exhibits).filter_map(|exhibit| exhibit.label()).collect();
    Failure::Usage(format!(
        "--only {word}: there is no such step{}; there are: {}; or a table or figure: {}",
        did_you_mean(word, steps.iter().copied()),
        steps.join(", "),
        exhibits.join(", ")
    ))
}

fn is_path(word: &str) -> bool {
    word.contains('/') || word.ends_with(".toml")
}

/// A study from a user's file.
fn own(path: &str) -> Result<Study, Failure> {
    let text = std::fs::read_to_string(Path::new(path))
        .map_err(|error| Failure::Usage(format!("cannot read the study {path}: {error}")))?;
    Study::parse(&text, path).map_err(|fault| Failure::Refused(Box::new(fault)))
}

/// Figures are kept by step: a user's file may not have a step with the name of another's.
fn apart(studies: &[Study]) -> Result<(), Failure> {
    for (number, study) in studies.iter().enumerate() {
        for step in &study.steps {
            if let Some(other) = studies[..number].iter().find(|other| other.step(&step.id).is_some()) {
                return Err(Failure::Usage(format!(
                    "{} and {} both have a step `{}`: figures are kept by it, so run them one by one, or rename it",
                    other.name, study.name, step.id
                )));
            }
        }
    }
    Ok(())
}

/// A program or manager of a step that cannot be run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenOut {
    /// Step's id.
    pub step: String,
    /// The program.
    pub program: Option<String>,
    /// The manager.
    pub manager: Option<String>,
    /// The program that takes its place.
    pub reserve: Option<String>,
    /// Why.
    pub why: String,
}

/// Sentences on what was taken out: one a program or manager, however many steps have it.
pub fn left_out_sentences(taken_out: &[TakenOut]) -> Vec<String> {
    let mut all: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for out in taken_out {
        let what = out.program.as_deref().or(out.manager.as_deref()).unwrap_or_default();
        match all.iter_mut().find(|(other, why, _)| *other == what && *why == out.why) {
            Some((_, _, steps)) => steps.push(&out.step),
            None => all.push((what, &out.why, vec![&out.step])),
        }
    }
    let sentence = |(what, why, steps): (&str, &str, Vec<&str>)| {
        format!("{what} is left out of {}: {why}", steps.join(", "))
    };
    all.into_iter().map(sentence).collect()
}

/// The programs that take the places of others in a step, by these.
pub fn reserves(taken_out: &[TakenOut], step: &str) -> Originals {
    let of_step = taken_out.iter().filter(|out| out.step == step);
    of_step.filter_map(|out| Some((out.program.clone()?, out.reserve.clone()?))).collect()
}

/// The programs and managers of this machine.
pub struct Available<'a> {
    /// Programs.
    pub catalog: &'a Catalog,
    /// Where they are.
    pub folders: &'a CatalogPlaces,
    /// Managers.
    pub known: &'a [Manager],
}

impl Available<'_> {
    /// Why a program cannot be run, if it cannot.
    fn no_program(&self, name: &str) -> Option<String> {
        match self.catalog.find(name) {
            Err(_) => Some("the catalog has no such program".into()),
            Ok(program) => program.missing(self.folders),
        }
    }

    /// Why a program of a step cannot be run: neither its original nor itself, which may be of no catalog, is there.
    fn no_program_of(&self, original: Option<&String>, size: &str, name: &str) -> Option<String> {
        let Some(original) = original else { return self.no_program(name) };
        let why = self.no_program_of_size(original, size)?;
        match self.catalog.find(name) {
            Ok(program) => program.missing(self.folders),
            Err(_) => Some(why),
        }
    }

    /// Why a program does not run on inputs of a size, if it does not.
    fn no_program_of_size(&self, name: &str, size: &str) -> Option<String> {
        let no_size = || format!("{name} has no inputs of size {size}");
        self.no_program(name).or_else(|| (!self.has_size(name, size)).then(no_size))
    }

    /// Leaves a step the originals that can run on inputs of its size. Where several of its programs have the same, the
    /// first one stays.
    fn choose_originals(&self, step: &mut Step) {
        let size = step.size.clone();
        step.originals.retain(|_, original| self.no_program_of_size(original, &size).is_none());
        let mut seen = BTreeSet::new();
        let originals = &step.originals;
        step.programs.retain(|program| originals.get(program).is_none_or(|one| seen.insert(one.clone())));
    }

    /// Puts the reserves of a step's set that can run in the places of its programs that cannot, and gives these.
    fn take_reserves(&self, step: &mut Step) -> Vec<TakenOut> {
        let Step { id, size, set, programs, reserves, .. } = step;
        let set = set.as_deref().and_then(sets::set);
        let is_of_set = |name: &String| set.as_ref().is_none_or(|set| set.programs.contains(name));
        let can_run = |name: &&String| self.no_program_of_size(name, size).is_none();
        let mut free = reserves
            .iter()
            .filter(|name| !programs.contains(name))
            .filter(can_run)
            .cloned()
            .collect::<Vec<_>>()
            .into_iter();
        let mut out = Vec::new();
        for program in programs.iter_mut().filter(|name| is_of_set(name)) {
            let Some(why) = self.no_program(program) else { continue };
            let Some(reserve) = free.next() else { break };
            let why = format!("{why}; {reserve} takes its place");
            let gone = std::mem::replace(program, reserve.clone());
            out.push(TakenOut {
                step: id.clone(),
                program: Some(gone),
                manager: None,
                reserve: Some(reserve),
                why,
            });
        }
        out
    }

    /// A sentence on the originals that are not installed, and how to get them; none where all are, or no step has any.
    /// With `only`, of these steps.
    pub fn kin_sentence(&self, studies: &[Study], only: &[String]) -> Option<String> {
        let mut kin: Vec<&str> = Vec::new();
        let mut recipes = BTreeSet::new();
        let steps = studies.iter().flat_map(|study| &study.steps);
        let steps = steps.filter(|step| only.is_empty() || only.contains(&step.id));
        for (name, original) in steps.flat_map(|step| &step.originals) {
            let Ok(program) = self.catalog.find(original) else { continue };
            if let (Some(_), Some(recipe)) = (program.missing(self.folders), program.recipe()) {
                kin.push(base(name));
                recipes.insert(format!("`heaptoll programs add {recipe}`"));
            }
        }
        kin.sort_unstable();
        kin.dedup();
        let recipes: Vec<String> = recipes.into_iter().collect();
        let kin: Vec<String> = kin.into_iter().map(str::to_owned).collect();
        (!kin.is_empty()).then(|| {
            format!(
                "Programs of today replace the papers' own {}: {} adds the papers' own, under their \
                 licences, and these run then.",
                heaptoll_units::and_list(&kin),
                heaptoll_units::and_list(&recipes)
            )
        })
    }

    /// Why a manager cannot be used, if it cannot.
    fn no_manager(&self, name: &str) -> Option<String> {
        if manager::is_group(self.known, name) {
            return None;
        }
        // The rest of the error lists all that are known.
        let first = |error: manager::ManagerError| {
            let text = error.to_string();
            text.split(';').next().unwrap_or_default().trim().to_owned()
        };
        manager::find(self.known, name).err().map(first)
    }

    /// Whether a program has inputs of a size.
    pub fn has_size(&self, program: &str, size: &str) -> bool {
        self.catalog.find(program).is_ok_and(|program| program.sizes().any(|own| own.to_string() == size))
    }

    /// The studies without what cannot be run here, and what was taken out. With `only`, without the other steps too.
    /// Programs are in the order in which a shorter form leaves them out, the first last.
    pub fn fit(&self, studies: &[Study], only: &[String]) -> (Vec<Study>, Vec<TakenOut>) {
        let mut fitted = studies.to_vec();
        let mut out = Vec::new();
        for (study, written) in fitted.iter_mut().zip(studies) {
            study.steps.retain(|step| only.is_empty() || only.contains(&step.id));
            for step in &mut study.steps {
                let step_originals = step.originals.clone();
                self.choose_originals(step);
                out.extend(self.take_reserves(step));
                let id = step.id.clone();
                let mut take = |program: Option<&String>, manager: Option<&String>, why: Option<String>| {
                    let taken = why.map(|why| TakenOut {
                        step: id.clone(),
                        program: program.cloned(),
                        manager: manager.cloned(),
                        reserve: None,
                        why,
                    });
                    let stays = taken.is_none();
                    out.extend(taken);
                    stays
                };
                let size = &step.size;
                let absent =
                    |program: &String| self.no_program_of(step_originals.get(program), size, program);
                step.programs.retain(|program| take(Some(program), None, absent(program)));
                step.originals.retain(|kin, _| step.programs.contains(kin));
                let replays = step.kind.replays();
                let absent =
                    |manager: &String| if replays { no_plan(manager) } else { self.no_manager(manager) };
                let mut stays = |manager: &String| take(None, Some(manager), absent(manager));
                step.managers.retain(&mut stays);
                step.options = with_baselines_of(&step.options, stays);
            }
            originals_first(study, written, &out);
            // Nothing is left of such a step; the sentences on what was taken out report it.
            study.steps.retain(|step| {
                let wanted = studies.iter().find_map(|study| study.step(&step.id));
                let lost = |had: Option<bool>, has: bool| had.unwrap_or(false) && !has;
                !lost(wanted.map(|wanted| !wanted.programs.is_empty()), !step.programs.is_empty())
                    && !lost(wanted.map(|wanted| !wanted.managers.is_empty()), !step.managers.is_empty())
            });
        }
        (fitted, out)
    }
}

/// Orders the programs of a fitted study's steps: the papers' own first, then those that its claims need. Its claims
/// select programs under the names that run.
fn originals_first(study: &mut Study, written: &Study, taken_out: &[TakenOut]) {
    let in_place =
        |step: &Step| step.originals.clone().into_iter().chain(reserves(taken_out, &step.id)).collect();
    let run = written.as_run(&study.steps.iter().map(|step| (step.id.clone(), in_place(step))).collect());
    for step in &mut study.steps {
        step.together = run.step(&step.id).map(|run| run.together.clone()).unwrap_or_default();
    }
    study.claims = run.claims;
    let needs: Vec<Needs> =
        study.steps.iter().map(|step| Needs::of(study, step).unwrap_or_default()).collect();
    for (Step { programs, originals, .. }, needs) in study.steps.iter_mut().zip(needs) {
        programs.sort_by_key(|name| (!originals.contains_key(name), !needs.programs.contains(name)));
    }
}

/// Why a plan cannot replay a trace, if it cannot.
fn no_plan(name: &str) -> Option<String> {
    (!is_known(name))
        .then(|| "it is not a collector of `heaptoll lab replay-graph`, such as mmtk:immix".into())
}

/// A step's options without baselines that do not stay: `-b tcmalloc` where no TCMalloc is built.
fn with_baselines_of(options: &[String], mut stays: impl FnMut(&String) -> bool) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = options.iter();
    while let Some(word) = words.next() {
        if let Some(manager) = word.strip_prefix("--baseline=") {
            kept.extend(stays(&manager.to_owned()).then(|| word.clone()));
        } else if word == "-b" || word == "--baseline" {
            let manager = words.next().filter(|manager| stays(manager));
            kept.extend(manager.into_iter().flat_map(|manager| [word.clone(), manager.clone()]));
        } else {
            kept.push(word.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_named_by_the_tables_that_show_them_too() {
        let only = |word: &str| studies(&["zorn1992".into()], &[word.into()]).map(|(_, steps)| steps);
        assert_eq!(only("zorn1992-counts").unwrap(), ["zorn1992-counts"]);
        assert_eq!(only("Table 3").unwrap(), ["zorn1992-time"]);
        assert_eq!(only("table 3").unwrap(), ["zorn1992-time"]);
        let refused = only("Table 77").unwrap_err().to_string();
        assert!(refused.contains("zorn1992-time") && refused.contains("Table 3"), "{refused}");
    }

    /// A fresh machine has no TCMalloc until `make build`: the smallest heaps are still found over the others.
    #[test]
    fn a_baseline_that_is_not_built_is_left_out_of_a_steps_options() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let fitted = |text: &str| with_baselines_of(&words(text), |manager| manager != "tcmalloc").join(" ");
        assert_eq!(fitted("-b mimalloc3 -b tcmalloc --every 32K"), "-b mimalloc3 --every 32K");
        assert_eq!(fitted("--baseline tcmalloc --baseline=tcmalloc --repeats 1"), "--repeats 1");
        assert_eq!(
            fitted("--every 32K --baseline=snmalloc -b knuth"),
            "--every 32K --baseline=snmalloc -b knuth"
        );
    }
}
