//! Plans of made-up studies.

use heaptoll_experiment::experiment::Pairing;
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

use super::*;

fn step(id: &str, kind: StepKind, programs: usize, priority: u32) -> Step {
    let text = format!(
        "id = \"{id}\"\nkind = \"run\"\nprograms = []\nmanagers = [\"glibc\", \"lea\", \"bw16\"]\nrepetitions = 10"
    );
    let mut step: Step = toml::from_str(&text).expect("a step");
    step.programs = (0..programs).map(|number| format!("p{number}")).collect();
    (step.kind, step.priority) = (kind, priority);
    step
}

fn study(steps: Vec<Step>) -> Study {
    let mut study: Study =
        toml::from_str("name = \"made\"\ntitle = \"t\"\nsource = \"s\"\nabout = []").expect("a study");
    study.steps = steps;
    study
}

fn of(study: &Study, length: Length) -> Plan {
    plan(std::slice::from_ref(study), length, &|_, _| true, &Speed::default(), &BTreeSet::new())
}

/// The least form of a step on which nothing is claimed.
fn least(step: &Step) -> Form {
    Form::least(&study(vec![]), step)
}

#[test]
fn the_whole_is_all_of_it() {
    let study = study(vec![step("a", StepKind::Run, 5, 1), step("b", StepKind::Locality, 3, 3)]);
    let plan = of(&study, Length::Whole);
    assert_eq!(plan.left_out, []);
    assert!(plan.planned.iter().all(|one| one.programs == one.of_programs && one.managers == 3));
    assert_eq!(plan.planned.iter().map(|one| one.repetitions).collect::<Vec<_>>(), [10, 1]);
    assert_eq!(plan.planned.iter().map(|one| precision(one, &study.steps[0])).collect::<String>(), "");
}

#[test]
fn the_quick_form_has_one_program_two_managers_tiny_inputs_and_two_repetitions() {
    let study = study(vec![step("a", StepKind::Run, 5, 1), step("b", StepKind::Instructions, 3, 1)]);
    let plan = of(&study, Length::Quick);
    let a = &plan.planned[0];
    assert_eq!((a.programs, a.managers, a.repetitions, a.size.as_str()), (1, 2, 2, "tiny"));
    let words = precision(a, &study.steps[0]);
    assert!(words.contains("2 of 10 repetitions: no intervals") && words.contains("size tiny"), "{words}");
    assert!(words.contains("1 of 5 programs") && words.contains("2 of 3 managers"), "{words}");
    let without = plan_without_tiny(&study);
    assert_eq!(without.planned[0].size, "quick");
}

fn plan_without_tiny(study: &Study) -> Plan {
    let has = |program: &str, size: &str| program != "p0" || size != "tiny";
    plan(std::slice::from_ref(study), Length::Quick, &has, &Speed::default(), &BTreeSet::new())
}

#[test]
fn what_matters_least_is_left_out_first_with_its_reason() {
    let study = study(vec![
        step("a", StepKind::Locality, 1, 3),
        step("b", StepKind::Run, 3, 1),
        step("c", StepKind::Run, 3, 2),
    ]);
    let plan = of(&study, Length::Seconds(20.0));
    assert_eq!(plan.left_out.iter().map(|one| one.step.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(
        plan.left_out[0].why.contains("no time in the budget: 1 program needs"),
        "{}",
        plan.left_out[0].why
    );
    assert_eq!(plan.planned.iter().map(|one| one.step.as_str()).collect::<Vec<_>>(), ["b", "c"]);
}

/// Of two steps that fit one by one, the less important was left out for the sake of the other, and then the other, too.
#[test]
fn a_step_that_does_not_fit_takes_none_with_it_that_does() {
    let mut long = step("long", StepKind::Run, 1, 1);
    long.heaviness = 40.0;
    let study = study(vec![long, step("short", StepKind::Run, 1, 2)]);
    let guess = |step: &Step| least(step).guess(step);
    let available_s = (guess(&study.steps[0]) - 1.0) / PLANNED;
    assert!(guess(&study.steps[1]) < PLANNED * available_s);
    let plan = of(&study, Length::Seconds(available_s));
    assert_eq!(plan.planned.iter().map(|one| one.step.as_str()).collect::<Vec<_>>(), ["short"]);
    assert_eq!(plan.left_out.iter().map(|one| one.step.as_str()).collect::<Vec<_>>(), ["long"]);
}

/// Each of two takes most of the time: one of them is run.
#[test]
fn of_two_steps_that_fit_one_by_one_one_is_run() {
    for priority in [1, 2] {
        let study = study(vec![step("a", StepKind::Run, 1, 1), step("b", StepKind::Run, 1, priority)]);
        let seconds = 1.6 * least(&study.steps[0]).guess(&study.steps[0]) / PLANNED;
        let plan = of(&study, Length::Seconds(seconds));
        assert_eq!((plan.planned.len(), plan.left_out.len()), (1, 1), "{plan:?}");
        assert_eq!(plan.planned[0].step, "a");
    }
}

#[test]
fn what_is_done_is_not_planned_again() {
    let study = study(vec![step("a", StepKind::Run, 2, 1), step("b", StepKind::Run, 2, 1)]);
    let done = BTreeSet::from(["a".to_owned()]);
    let plan =
        plan(std::slice::from_ref(&study), Length::Seconds(1e5), &|_, _| true, &Speed::default(), &done);
    assert_eq!(plan.planned.len(), 1);
    assert_eq!((plan.planned[0].step.as_str(), plan.planned[0].repetitions), ("b", 10));
}

#[test]
fn a_machine_that_is_slower_than_guessed_gets_less_to_do() {
    let study = study(vec![step("a", StepKind::Run, 20, 1)]);
    let before = of(&study, Length::Seconds(60.0));
    let mut speed = Speed::default();
    speed.learn(&study.steps[0], &before.planned[0], 3.0 * before.planned[0].seconds);
    assert!((speed.factor(StepKind::Run) - 3.0).abs() < 1e-9);
    assert!((speed.factor(StepKind::Locality) - 3.0).abs() < 1e-9, "a machine is busy for all alike");
    let after =
        plan(std::slice::from_ref(&study), Length::Seconds(60.0), &|_, _| true, &speed, &BTreeSet::new());
    assert!(after.planned[0].programs < before.planned[0].programs, "{before:?} {after:?}");
}

#[test]
fn a_step_without_programs_is_left_out() {
    let plan = of(&study(vec![step("a", StepKind::Run, 0, 1)]), Length::Whole);
    assert_eq!((plan.planned.len(), plan.left_out.len()), (0, 1));
}

#[test]
fn sizes_of_a_delay_are_counted_from_its_options() {
    let mut delay = step("a", StepKind::Delay, 1, 1);
    let nine = Form::whole(&delay).guess(&delay);
    delay.options = vec!["--sizes".into(), "1B,64K,2M".into()];
    let three = Form::whole(&delay).guess(&delay);
    delay.options = vec!["--sizes=1B,64K,2M".into()];
    assert!((nine / three - 11.0 / 5.0).abs() < 1e-9, "{nine} {three}");
    assert_eq!(Form::whole(&delay).guess(&delay), three);
}

#[test]
fn fewer_repetitions_cost_width() {
    let study = study(vec![step("a", StepKind::Run, 1, 1)]);
    let mut planned = of(&study, Length::Whole).planned.remove(0);
    planned.repetitions = 6;
    let words = precision(&planned, &study.steps[0]);
    // 2.571 / √6 over 2.262 / √10.
    assert_eq!(words, "6 of 10 repetitions: their intervals are 1.5 times as wide");
}

proptest! {
    #[test]
    fn a_plan_fits_keeps_its_least_and_grows_while_it_can(
        steps in prop::collection::vec((1usize..12, 1u32..4, 0usize..4), 1..8),
        seconds in 1.0f64..2000.0,
    ) {
        let kinds = [StepKind::Run, StepKind::Instructions, StepKind::Locality, StepKind::Delay];
        let steps: Vec<Step> = steps
            .into_iter()
            .enumerate()
            .map(|(number, (programs, priority, kind))| {
                step(&format!("s{number}"), kinds[kind], programs, priority)
            })
            .collect();
        let study = study(steps);
        let plan = of(&study, Length::Seconds(seconds));
        prop_assert_eq!(plan.planned.len() + plan.left_out.len(), study.steps.len());
        let spent: f64 = plan.planned.iter().map(|one| one.seconds).sum();
        prop_assert!(spent <= PLANNED * seconds + 1e-6);
        for one in &plan.planned {
            let step = study.step(&one.step).expect("of the study");
            prop_assert!(one.programs >= 1 && one.programs <= one.of_programs && one.repetitions <= one.of_repetitions);
            prop_assert!(one.deadline_s >= 1.0 && one.deadline_s <= seconds.max(1.0));
            // Nothing more of it would have fitted.
            let larger = Form {
                programs: one.programs + 1,
                managers: one.managers,
                repetitions: one.repetitions,
                size: one.size.clone(),
            };
            prop_assert!(
                one.programs == one.of_programs
                    || spent - one.seconds + larger.guess(step) > PLANNED * seconds - 1e-6
            );
        }
        // What was left out would not have fitted with what was kept at its least.
        let kept_least: f64 =
            plan.planned.iter().filter_map(|one| study.step(&one.step)).map(|step| least(step).guess(step)).sum();
        for out in &plan.left_out {
            let step = study.step(&out.step).expect("of the study");
            prop_assert!(kept_least + least(step).guess(step) > PLANNED * seconds - 1e-6);
        }
        // Nothing that matters more than what is kept was left out while what matters less stayed and is longer.
        for out in &plan.left_out {
            let gone = study.step(&out.step).expect("of the study").priority;
            let guess: f64 = least(study.step(&out.step).expect("it")).guess(study.step(&out.step).expect("it"));
            for one in &plan.planned {
                let kept = study.step(&one.step).expect("of the study");
                prop_assert!(kept.priority <= gone || least(kept).guess(kept) < guess);
            }
        }
    }
}

#[test]
fn a_step_in_lockstep_takes_longer_and_one_of_few_repetitions_is_none() {
    let mut paired = step("a", StepKind::Run, 3, 1);
    let plain = Form::whole(&paired).guess(&paired);
    paired.pairing = Some(Pairing::Lockstep);
    let whole = Form::whole(&paired);
    let share = whole.guess(&paired) / plain;
    assert!((1.5..3.0).contains(&share), "{share}");
    let few = Form { repetitions: QUICK_REPETITIONS, ..whole };
    let unpaired = Step { pairing: None, ..paired.clone() };
    assert!((few.guess(&paired) - few.guess(&unpaired)).abs() < 1e-9);
}

/// Three forms of cfrac were three programs, and what compares programs was decided by one.
#[test]
fn the_planner_counts_programs_and_not_their_forms() {
    let mut of_forms = step("a", StepKind::Run, 0, 1);
    of_forms.programs =
        ["cfrac", "cfrac:gc", "cfrac:optimized", "kv", "kv:gc", "route", "route:gc"].map(String::from).into();
    assert_eq!([0, 3, 5, 7].map(|entries| next_program(&of_forms, entries)), [3, 5, 7, 7]);
    assert_eq!(least(&of_forms).programs, 3, "cfrac in all its forms");
    let mut forms_of_one = step("b", StepKind::Run, 0, 1);
    forms_of_one.programs = ["reverse", "reverse:gc", "reverse:custom"].map(String::from).into();
    assert_eq!(least(&forms_of_one).programs, 1, "forms of one program are what the step compares");
    assert_eq!(Form::quick(&forms_of_one, &|_, _| true).programs, 3);
    let study = study(vec![of_forms]);
    let seconds = least(&study.steps[0]).guess(&study.steps[0]) / PLANNED;
    let forms: BTreeSet<usize> = (0..40)
        .map(|more| of(&study, Length::Seconds(seconds * (1.0 + f64::from(more) / 20.0))))
        .filter_map(|plan| plan.planned.first().map(|one| one.programs))
        .collect();
    assert!(forms.is_subset(&BTreeSet::from([3, 5, 7])), "no program is cut between its forms: {forms:?}");
    assert!(forms.len() > 1, "{forms:?}");
}

#[test]
fn no_budget_goes_below_the_repetitions_of_a_published_figure() {
    let published = |pairing| Step { repetitions: None, pairing, ..step("a", StepKind::Run, 2, 1) };
    let delay = Step { kind: StepKind::Delay, ..published(None) };
    let paired = Step { options: vec!["--pairing".into(), "lockstep".into()], ..delay.clone() };
    let all = [(published(Some(Pairing::Lockstep)), 10), (published(None), 20), (delay, 20), (paired, 10)];
    for (step, repetitions) in all {
        let study = study(vec![step]);
        for seconds in 1..200 {
            match of(&study, Length::Seconds(f64::from(seconds))) {
                Plan { planned, .. } if !planned.is_empty() => {
                    assert_eq!(planned[0].repetitions, repetitions)
                }
                Plan { left_out, .. } => {
                    let words = format!("no time in the budget: {repetitions} repetitions need ");
                    assert!(left_out[0].why.starts_with(&words), "{}", left_out[0].why);
                }
            }
        }
        assert_eq!(of(&study, Length::Whole).planned[0].repetitions, repetitions);
    }
}

/// The planner ran the first programs of a list, and what a claim needs was among the others.
#[test]
fn a_budget_leaves_out_only_what_no_claim_needs() {
    let claim = "[[claim]]\nid = \"c\"\nplace = \"1\"\nwords = \"w\"\n[[claim.test]]\nwords = \"w\"\nrule = \"all\"\n\
                 above = 1.0\nquantity = { step = \"t\", metric = \"cpu_s\", programs = [\"perl\"], \
                 of = { managers = [\"b\"] }, over = { managers = [\"a\"] } }";
    let study = crate::testing::study(claim);
    let forms: BTreeSet<(usize, usize, u32)> = (1..2000)
        .flat_map(|seconds| of(&study, Length::Seconds(f64::from(seconds))).planned)
        .filter(|planned| planned.step == "t")
        .map(|planned| (planned.programs, planned.managers, planned.repetitions))
        .collect();
    // cfrac and gawk come before perl, a before b.
    assert_eq!(forms, BTreeSet::from([(3, 2, 10), (4, 2, 10), (4, 3, 10)]));
}

#[test]
fn every_step_of_the_studies_has_the_repetitions_of_a_published_figure() {
    for step in crate::bundled::all().expect("studies").iter().flat_map(|study| &study.steps) {
        let least = Step { repetitions: None, ..step.clone() }.least_repetitions();
        assert!(step.repetitions() >= least, "{}: {} of {least}", step.id, step.repetitions());
    }
}
