//! The paper's own programs in place of their kin, in a made-up catalog and study.

use std::fs;
use std::path::Path;

use heaptoll_catalog::{Catalog, Places};

use super::*;
use crate::bundled::all;
use crate::definition::StepKind;
use crate::exhibit::{self, Body, kin_note};
use crate::figures::{Absent, Cell, Figures};
use crate::run::selection::{self, Available};
use crate::verdict::{Answer, judge};
use heaptoll_facts::{Fact, Facts, Value};

/// A step of two kin of one original, of one that may be there in one form only, and of a program without any.
const STUDY: &str = r#"
name = "made"
title = "Made up"
source = "made up"
about = []
[names.programs]
"weaver slow" = "loom"
[[step]]
id = "c"
kind = "instructions"
programs = ["loom", "loom:fast", "loom:bare", "reel"]
managers = ["a", "b"]
[step.originals]
loom = "old-loom"
"loom:fast" = "old-loom"
"loom:bare" = "old-loom:bare"
[[exhibit]]
id = "table"
title = "Table 1"
form = "table"
step = "c"
metric = "objects"
[[claim]]
id = "same"
place = "1"
words = "b makes as many objects."
[[claim.test]]
words = "on loom:fast and reel"
rule = "all"
above = 0.9
below = 1.1
quantity = { step = "c", metric = "objects", programs = ["loom:fast", "loom", "reel"], of = { managers = ["b"] }, over = { managers = ["a"] } }
"#;

fn study() -> Study {
    Study::parse(STUDY, "made.toml").expect("a study")
}

/// A catalog in which kin are installed, and these originals.
fn catalog(folder: &Path, installed: &[&str]) -> (Catalog, Places) {
    let entries = folder.join("catalog");
    fs::create_dir_all(&entries).expect("makes");
    let write = |name: &str, rest: &str| {
        let text = format!("name = \"{name}\"\nabout = \"weaves\"\n{rest}\n[sizes.quick]\n");
        fs::write(entries.join(format!("{name}.toml")), text).expect("writes");
    };
    write("loom", "command = [\"/bin/sh\"]\n[variants.fast]");
    write("reel", "command = [\"/bin/sh\"]");
    write(
        "old-loom",
        "command = [\"{added}/loom\"]\nadded_by = { recipe = \"weavers\", licence = \"no sale\" }\n\
         [variants.bare]\ncommand = [\"{added}/bare\"]",
    );
    let places = Places { bin: folder.into(), added: folder.join("added"), inputs_cache: folder.into() };
    fs::create_dir_all(&places.added).expect("makes");
    for name in installed {
        fs::write(places.added.join(name), "").expect("writes");
    }
    (Catalog::load(&entries).expect("a catalog"), places)
}

/// The step as it is run, why others are taken out, and the sentence on kin, with these originals installed.
fn fitted(installed: &[&str]) -> (Step, Vec<String>, Option<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (catalog, folders) = catalog(folder.path(), installed);
    let available = Available { catalog: &catalog, folders: &folders, known: &[] };
    let mut study = study();
    // Managers are another matter.
    study.steps[0].managers.clear();
    let (mut fitted, out) = available.fit(std::slice::from_ref(&study), &[]);
    let out = out.into_iter().filter_map(|out| Some(format!("{}: {}", out.program?, out.why))).collect();
    (fitted.remove(0).steps.remove(0), out, available.kin_sentence(std::slice::from_ref(&study), &[]))
}

fn runs(step: &Step) -> Vec<(&str, &str)> {
    step.programs.iter().map(|program| (program.as_str(), step.run_as(program))).collect()
}

#[test]
fn without_the_originals_their_kin_run_and_the_command_that_adds_them_is_given() {
    let (step, out, sentence) = fitted(&[]);
    assert_eq!(runs(&step), [("loom", "loom"), ("loom:fast", "loom:fast"), ("reel", "reel")]);
    // What the catalog has no kin of is left out where its original is not installed.
    assert_eq!(out.len(), 1);
    assert!(out[0].starts_with("loom:bare: ") && out[0].contains("heaptoll programs add weavers"), "{out:?}");
    let sentence = sentence.expect("a sentence");
    assert!(sentence.contains("own loom: `heaptoll programs add weavers` adds"), "{sentence}");
}

#[test]
fn an_original_that_is_installed_runs_once_in_place_of_its_kin() {
    let (step, out, sentence) = fitted(&["loom", "bare"]);
    assert_eq!(runs(&step), [("loom", "old-loom"), ("loom:bare", "old-loom:bare"), ("reel", "reel")]);
    assert!(out.is_empty() && sentence.is_none(), "{out:?}");
    let (step, out, sentence) = fitted(&["loom"]);
    assert_eq!(runs(&step), [("loom", "old-loom"), ("reel", "reel")]);
    assert!(out.len() == 1 && sentence.is_some());
}

/// The planner ran kin, and left out gawk, perl and Ghostscript as the paper had them.
#[test]
fn a_short_form_leaves_out_kin_before_the_papers_own_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (catalog, folders) = catalog(folder.path(), &["bare"]);
    let available = Available { catalog: &catalog, folders: &folders, known: &[] };
    let mut study = study();
    study.steps[0].managers.clear();
    study.steps[0].programs = ["reel", "loom", "loom:fast", "loom:bare"].map(String::from).into();
    let of = |study: &Study| available.fit(std::slice::from_ref(study), &[]).0.remove(0);
    let fitted = of(&study);
    assert_eq!(fitted.steps[0].programs, ["loom:bare", "reel", "loom", "loom:fast"]);
    // Of kin only, what the claim is of stays longest.
    fs::remove_file(folders.added.join("bare")).expect("it is there");
    study.claims[0].tests[0].quantity.programs = vec!["reel".into()];
    assert_eq!(of(&study).steps[0].programs, ["reel", "loom", "loom:fast"]);
}

/// Found by attack: an original without inputs of the step's size hid that its kin is not there either.
#[test]
fn a_kin_that_is_not_there_is_left_out_though_its_original_is_there_without_the_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let (catalog, folders) = catalog(folder.path(), &["bare"]);
    let available = Available { catalog: &catalog, folders: &folders, known: &[] };
    let mut study = study();
    study.steps[0].managers.clear();
    study.steps[0].size = "full".into();
    let (fitted, out) = available.fit(std::slice::from_ref(&study), &[]);
    assert_eq!(runs(&fitted[0].steps[0]), [("loom", "loom"), ("loom:fast", "loom:fast"), ("reel", "reel")]);
    assert_eq!(out.len(), 1);
    assert!(out[0].why.contains("old-loom:bare has no inputs of size full"), "{}", out[0].why);
}

/// A set of twenty that lacks one program is a set of nineteen, of which no claim on programs like these is decided.
#[test]
fn a_reserve_takes_the_place_of_a_program_of_a_set_that_is_not_installed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (catalog, folders) = catalog(folder.path(), &[]);
    let available = Available { catalog: &catalog, folders: &folders, known: &[] };
    let mut study = study();
    let step = &mut study.steps[0];
    step.managers.clear();
    step.originals.clear();
    (step.set, step.programs) = (Some("mine".into()), ["gone", "loom", "lost"].map(String::from).into());
    step.reserves = ["absent", "loom", "reel", "gone"].map(String::from).into();
    study.claims[0].tests[0].quantity.programs = vec!["gone".into(), "lost".into()];
    let (fitted, out) = available.fit(std::slice::from_ref(&study), &[]);
    assert_eq!(fitted[0].steps[0].programs, ["reel", "loom"]);
    assert_eq!(fitted[0].claims[0].tests[0].quantity.programs, ["reel", "lost"]);
    assert!(out.len() == 2 && out[0].why.ends_with("; reel takes its place"), "{}", out[0].why);
    let reserves = selection::reserves(&out, "c");
    assert_eq!(reserves, originals(&[("gone", "reel")]));
    let run = study.as_run(&[("c".to_owned(), reserves)].into());
    assert!(run.steps[0].originals.is_empty());
    assert_eq!(run.steps[0].programs, ["reel", "loom", "lost"]);
}

/// Found by attack: the sentence was of steps that `--only` leaves out, too.
#[test]
fn the_sentence_on_kin_is_of_the_steps_that_are_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let (catalog, folders) = catalog(folder.path(), &[]);
    let available = Available { catalog: &catalog, folders: &folders, known: &[] };
    let of = |step: &str| available.kin_sentence(&[study()], &[step.to_owned()]);
    assert!(of("c").is_some() && of("other").is_none());
}

fn cell(program: &str, manager: &str, value: f64) -> Cell {
    Cell { step: "c".into(), fact: fact(program, manager, value) }
}

fn fact(program: &str, manager: &str, value: f64) -> Fact {
    let [program, manager, metric] = [program, manager, "objects"].map(str::to_owned);
    Fact { program, manager, metric, at: None, value: Value::Exact(value) }
}

fn originals(of: &[(&str, &str)]) -> Originals {
    of.iter().map(|(kin, original)| (kin.to_string(), original.to_string())).collect()
}

#[test]
fn figures_of_an_original_are_under_its_kins_name_and_those_of_the_kin_stay() {
    let mut step = study().steps.remove(0);
    step.originals = originals(&[("loom", "old-loom"), ("loom:bare", "old-loom:bare")]);
    let mut facts = Facts {
        measured: vec![fact("old-loom", "a", 7.0), fact("reel", "a", 3.0)],
        absent: vec![("old-loom".into(), Some("b".into()), "it failed".into())],
        ..Facts::default()
    };
    let ran = name_kin(&mut facts, &step);
    assert_eq!(ran, originals(&[("loom", "old-loom")]), "only what ran");
    assert_eq!(facts.measured, [fact("loom", "a", 7.0), fact("reel", "a", 3.0)]);
    assert_eq!(facts.absent[0].0, "loom");
    // Rows of before the original was added, which the study went on with.
    let mut earlier = Facts { measured: vec![fact("loom", "a", 5.0)], ..Facts::default() };
    assert!(name_kin(&mut earlier, &step).is_empty());
}

#[test]
fn what_selects_a_kin_that_was_left_out_selects_the_original() {
    let ran: BTreeMap<_, _> = [("c".to_owned(), originals(&[("loom", "old-loom")]))].into();
    let run = study().as_run(&ran);
    assert_eq!(run.steps[0].programs, ["loom", "loom:bare", "reel"]);
    assert_eq!(run.claims[0].tests[0].quantity.programs, ["loom", "reel"]);
    let cells: Vec<Cell> = [("loom", 7.0), ("reel", 3.0)]
        .iter()
        .flat_map(|(program, value)| [cell(program, "a", *value), cell(program, "b", *value)])
        .collect();
    let figures = Figures { cells };
    assert_eq!(judge(&run, &run.claims[0], &figures, &Absent::default()).answer, Answer::Holds);
    let shown = exhibit::show(&run, &run.exhibits[0], &figures, &BTreeMap::new(), &Absent::default());
    let Body::Table { rows, .. } = &shown.body else { panic!("{shown:?}") };
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["loom (the paper's own)", "loom:bare", "reel"]);
    assert!(shown.notes.contains(&"The paper's own programs: loom is old-loom.".to_owned()), "{shown:?}");
    // The study as it is written, where none ran.
    let none = study().as_run(&BTreeMap::new());
    assert_eq!(none.steps[0].programs, study().steps[0].programs);
    assert_eq!(none.claims, study().claims);
}

/// Renamed to `loom:fast`, the program before the variants of the sides was one that no step has. And a form that ran
/// under another name was left out of a test that names it, without a word.
#[test]
fn a_program_whose_forms_are_compared_stays_and_is_missed_where_a_form_is() {
    let compared = STUDY.replace(
        "programs = [\"loom:fast\", \"loom\", \"reel\"], of = { managers = [\"b\"] }, over = { managers = [\"a\"] }",
        "programs = [\"loom\"], of = { managers = [\"b\"], variant = \"bare\" }, over = { managers = [\"a\"], variant = \"fast\" }",
    );
    let study = Study::parse(&compared, "made.toml").expect("a study");
    let under = |name: &str| {
        let ran = originals(&[(name, "old-loom"), ("loom:bare", "old-loom:bare")]);
        let run = study.as_run(&[("c".to_owned(), ran)].into());
        let figures = Figures { cells: vec![cell("loom:bare", "b", 7.0), cell(name, "a", 7.0)] };
        (
            run.claims[0].tests[0].quantity.programs.clone(),
            judge(&run, &run.claims[0], &figures, &Absent::default()),
        )
    };
    let (programs, verdict) = under("loom:fast");
    assert_eq!((programs.as_slice(), verdict.answer), (["loom".to_owned()].as_slice(), Answer::Holds));
    let (programs, verdict) = under("loom");
    assert_eq!((programs.as_slice(), verdict.answer), (["loom".to_owned()].as_slice(), Answer::NotMeasured));
}

#[test]
fn a_published_program_is_placed_at_the_name_under_which_the_original_ran() {
    let mut study = study();
    study.steps[0].programs.swap(0, 1);
    let ran: BTreeMap<_, _> = [("c".to_owned(), originals(&[("loom:fast", "old-loom")]))].into();
    let run = study.as_run(&ran);
    let names = &run.exhibits[0].names;
    assert_eq!(names.get("weaver slow").map(String::as_str), Some("loom:fast"));
    assert_eq!(names.get("loom").map(String::as_str), Some("loom:fast"));
}

#[test]
fn a_step_names_originals_of_its_own_programs_only() {
    let fault = |rest: &str| {
        let text = STUDY.replace("loom = \"old-loom\"", rest);
        Study::parse(&text, "made.toml").expect_err("it is wrong").to_string()
    };
    assert!(fault("spool = \"old-spool\"").ends_with("`spool` is not among its programs"));
    assert!(fault("loom = \"reel\"").ends_with("`reel` is among its programs as well"));
}

/// Survival by instructions takes its rate from another step that runs the same program for a name.
#[test]
fn survival_takes_its_rate_from_a_step_that_runs_the_same_originals() {
    for study in all().expect("studies") {
        let of_kind = |kind: StepKind| study.steps.iter().filter(move |step| step.kind == kind);
        for lives in of_kind(StepKind::Lifetimes) {
            let counts = || of_kind(StepKind::Instructions).filter(|counts| counts.size == lives.size);
            let counted = |program: &&String| counts().any(|counts| counts.programs.contains(program));
            for program in lives.programs.iter().filter(counted) {
                let same = |counts: &Step| {
                    counts.programs.contains(program) && counts.run_as(program) == lives.run_as(program)
                };
                assert!(counts().any(same), "{program}");
            }
        }
    }
}

/// Each exhibit of a paper shows the paper's own programs, where all are installed, or states why it shows others.
#[test]
fn two_dozen_exhibits_show_the_papers_own_programs_and_each_other_states_why_not() {
    let mut many = 0;
    for study in all().expect("studies") {
        let every: BTreeMap<String, Originals> = study
            .steps
            .iter()
            .map(|step| {
                let mut first = Originals::new();
                for program in &step.programs {
                    if let Some(original) = step.originals.get(program)
                        && first.values().all(|one| one != original)
                    {
                        first.insert(program.clone(), original.clone());
                    }
                }
                (step.id.clone(), first)
            })
            .collect();
        let run = study.as_run(&every);
        assert!(
            run.kin.is_some() || !run.repeats(),
            "{} does not state why its programs are others",
            run.name
        );
        let own = |exhibit: &&Exhibit| run.kin.is_some() && kin_note(&run, exhibit).is_none();
        many += run.exhibits.iter().filter(own).count();
    }
    assert!(many >= 24, "{many}");
}

#[test]
fn an_exhibit_with_fewer_originals_than_other_programs_states_why() {
    let mut made = study();
    assert_eq!(kin_note(&made, &made.exhibits[0]), None, "of a study of no paper");
    made.kin = Some("they are lost".into());
    let none = made.as_run(&BTreeMap::new());
    let note = kin_note(&none, &none.exhibits[0]).expect("a note");
    assert_eq!(note, "Of 4 programs, none is the paper's own: they are lost.");
    let two = made.as_run(
        &[("c".to_owned(), originals(&[("loom", "old-loom"), ("loom:bare", "old-loom:bare")]))].into(),
    );
    assert_eq!(kin_note(&two, &two.exhibits[0]), None, "two of three");
}

#[test]
fn no_figure_of_an_original_is_divided_by_one_of_its_kin() {
    let more = "[[step]]\nid = \"d\"\nkind = \"instructions\"\nprograms = [\"loom\", \"reel\"]\nmanagers = [\"a\"]\n\
                [[exhibit]]\nid = \"rates\"\ntitle = \"Rates\"\nform = \"table\"\nstep = \"c\"\n[[exhibit.columns]]\n\
                title = \"rate\"\nmetric = \"objects\"\nover = { metric = \"objects\", step = \"d\" }\n";
    let ran: BTreeMap<_, _> = [("c".to_owned(), originals(&[("loom", "old-loom")]))].into();
    let run = Study::parse(&format!("{STUDY}{more}"), "made.toml").expect("a study").as_run(&ran);
    let of = |step: &str, program: &str| Cell { step: step.into(), ..cell(program, "a", 4.0) };
    let cells = ["c", "d"].iter().flat_map(|step| [of(step, "loom"), of(step, "reel")]).collect();
    let figures = Figures { cells };
    let shown = exhibit::show(&run, &run.exhibits[1], &figures, &BTreeMap::new(), &Absent::default());
    let Body::Table { rows, .. } = &shown.body else { panic!("{shown:?}") };
    let (loom, reel) = (&rows[0].1[0], &rows[2].1[0]);
    let why = loom.missing.as_deref().expect("a reason");
    assert!(loom.ours.is_none() && why.starts_with("old-loom ran in step c and loom in d"), "{why}");
    assert_eq!(reel.ours.as_ref().map(|ours| ours.value), Some(1.0));
}

/// Seconds of Zorn's espresso were "not run", for in their step its original ran under another name.
#[test]
fn a_column_of_another_step_follows_the_name_under_which_an_original_ran() {
    let more = "[[step]]\nid = \"d\"\nkind = \"instructions\"\nprograms = [\"loom:fast\"]\nmanagers = [\"a\"]\n\
                [[exhibit]]\nid = \"columns\"\ntitle = \"Table 2\"\nform = \"table\"\nstep = \"d\"\n\
                [[exhibit.columns]]\ntitle = \"objects\"\nmetric = \"objects\"\nstep = \"c\"";
    let study = Study::parse(&format!("{STUDY}{more}"), "made.toml").expect("a study");
    let ran = [("c".to_owned(), [("loom".to_owned(), "old-loom".to_owned())].into())].into();
    assert_eq!(study.as_run(&ran).exhibits[1].columns[0].names["loom:fast"], "loom");
}
