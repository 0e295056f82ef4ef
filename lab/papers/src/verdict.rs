//! A claim judged by its effects. It holds when whole intervals lie in its region, fails when whole intervals lie
//! outside, and is else undecided; each rule sets how many must.

use std::collections::BTreeMap;

use heaptoll_units::{and_list, figure, plural};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::answer::Answer;
use super::definition::{Claim, Estimand, Rule, Study, Test};
use super::effect::Effect;
use super::estimand::{Agreement, OtherEstimand, Programs, most_programs};
use super::figures::{Absent, Figures};
use super::open::would_decide;
use super::outcome::{Outcome, both_fit, by_test, too_few_collections};
use super::pairs::{of_side, requested};
use super::region::{Placement, Region, detectable, margin, placement, region};
use heaptoll_facts::Basis;

/// A claim's verdict.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Verdict {
    /// Study.
    pub study: String,
    /// Claim's id.
    pub claim: String,
    /// Place in the paper.
    pub place: String,
    /// The claim.
    pub words: String,
    /// The paper calls it false.
    pub myth: bool,
    /// It is a sentence of ours, not of the paper.
    #[serde(default)]
    pub ours: bool,
    /// What its means are stated of.
    #[serde(default)]
    pub estimand: Estimand,
    /// How the answers by the other estimand stand to it, the contrary one first; none where it has no means.
    #[serde(default)]
    pub other_estimand: Option<Agreement>,
    /// Answer.
    pub answer: Answer,
    /// One sentence with the figures that decided: `geometric mean 1.62 (1.31 to 1.99) over 6 programs`.
    pub reason: String,
    /// Exhibits that show it, by id.
    pub exhibits: Vec<String>,
    /// What was tested.
    pub tests: Vec<Tested>,
}

/// One test's outcome.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Tested {
    /// Its question.
    pub words: String,
    /// Answer.
    pub answer: Answer,
    /// With the figures.
    pub reason: String,
    /// The smallest effect, as a ratio above 1, that these data could have shown; none for exact counts or no data.
    pub detectable: Option<f64>,
    /// The comparisons.
    pub effects: Vec<Effect>,
    /// Of means over three programs or more: the same by the other estimand.
    #[serde(default)]
    pub other_estimand: Option<OtherEstimand>,
}

/// What a rule makes of effects.
fn decide(test: &Test, effects: &[Effect]) -> Answer {
    let of = |region| effects.iter().map(move |effect| placement(effect, region)).collect::<Vec<_>>();
    let whole = Region::of(test);
    let all = of(whole);
    let (every, any) =
        (|what: Placement| all.iter().all(|one| *one == what), |what: Placement| all.contains(&what));
    let (holds, fails) = match test.rule {
        _ if effects.is_empty() => (false, false),
        Rule::Mean | Rule::All | Rule::Trend | Rule::Order => (every(Placement::In), any(Placement::Out)),
        Rule::Some => (any(Placement::In), every(Placement::Out)),
        Rule::Most => {
            let count = |what: Placement| all.iter().filter(|one| **one == what).count() as f64;
            let needed = test.share.unwrap_or(0.5) * all.len() as f64;
            (count(Placement::In) > needed, all.len() as f64 - count(Placement::Out) <= needed)
        }
        Rule::Both => {
            let (above, below) = (of(Region { below: None, ..whole }), of(Region { above: None, ..whole }));
            let found = |side: &[Placement]| side.contains(&Placement::In);
            let never = |side: &[Placement]| side.iter().all(|one| *one == Placement::Out);
            (found(&above) && found(&below), never(&above) || never(&below))
        }
    };
    match (holds, fails) {
        (true, _) => Answer::Holds,
        (_, true) => Answer::Fails,
        _ => Answer::Undecided,
    }
}

/// `1.62 (1.31 to 1.99): bw16 over kingsley, mean of 6 programs`.
fn shown(effect: &Effect) -> String {
    format!("{}: {}", with_interval(effect), effect.words)
}

/// `1.62 (1.31 to 1.99)`.
fn with_interval(effect: &Effect) -> String {
    let Effect { value, low, high, basis, .. } = effect;
    let interval = match basis {
        Basis::Exact => ", counted exactly".into(),
        Basis::None => " (no interval)".into(),
        _ => format!(" ({} to {})", figure(*low), figure(*high)),
    };
    format!("{}{interval}", figure(*value))
}

/// The reason of an answer, with the figures.
fn because(test: &Test, answer: Answer, effects: &[Effect]) -> String {
    let region = region(test);
    if let [effect] = effects {
        let mut ends = [test.above, test.below].into_iter().flatten();
        let why = match (answer, effect.basis) {
            (Answer::Undecided, Basis::None) => "; without an interval nothing is decided",
            (Answer::Undecided, _) if placement(effect, Region::of(test)) != Placement::Unknown => "",
            (Answer::Undecided, basis)
                if basis == Basis::Exact || !ends.any(|end| (effect.low..=effect.high).contains(&end)) =>
            {
                "; so small a difference is no order"
            }
            (Answer::Undecided, _) => "; the interval leaves it open",
            _ => "",
        };
        return format!("{}; claim: {region}{why}", shown(effect));
    }
    let key = |effect: &Effect| if test.rule == Rule::Both { effect.value } else { margin(test, effect) };
    let by = |a: &&Effect, b: &&Effect| key(a).total_cmp(&key(b));
    let (Some(least), Some(most)) = (effects.iter().min_by(by), effects.iter().max_by(by)) else {
        return String::new();
    };
    let all = effects.len();
    if test.rule == Rule::Both {
        let ends = [least, most].map(shown);
        return format!(
            "of {all} comparisons the least is {}, the most {}; claim: {region}",
            ends[0], ends[1]
        );
    }
    let count =
        |what: Placement| effects.iter().filter(|one| placement(one, Region::of(test)) == what).count();
    let (inside, outside, without) = (
        count(Placement::In),
        count(Placement::Out),
        effects.iter().filter(|effect| effect.basis == Basis::None).count(),
    );
    let noun = match test.rule {
        Rule::Mean => "means",
        Rule::Trend => "slopes",
        _ => "comparisons",
    };
    let open = all - inside - outside - without;
    let is = |number: usize| if number == 1 { "is" } else { "are" };
    let mut words = match (inside, outside) {
        _ if inside == all && all == 2 => format!("both {noun} are {region}"),
        _ if inside == all => format!("all {all} {noun} are {region}"),
        _ if outside == all && all == 2 => format!("neither of the two {noun} is {region}"),
        _ if outside == all => format!("none of {all} {noun} is {region}"),
        (0, _) => format!("none of {all} {noun} is {region} for certain"),
        _ => format!("{inside} of {all} {noun} {} {region} for certain", is(inside)),
    };
    if outside > 0 && outside < all {
        words += &format!(", {outside} {} outside", if outside == 1 { "lies" } else { "lie" });
    }
    if open > 0 {
        words += &format!(", {open} {} open", is(open));
    }
    if without > 0 {
        words += &format!(", {without} {} without an interval", is(without));
    }
    match (test.rule, answer) {
        (Rule::Some, Answer::Fails) | (Rule::Most, Answer::Fails) => {
            words += &format!("; nearest to it: {}", shown(most))
        }
        (Rule::Some, _) => words += &format!("; the clearest: {}", shown(most)),
        (_, Answer::Fails) => words += &format!("; furthest from it: {}", shown(least)),
        _ => words += &format!("; the least clear: {}", shown(least)),
    }
    words
}

/// Whether a test is of most of programs like these.
fn is_of_most_programs(test: &Test, estimand: Estimand) -> bool {
    (test.rule, estimand) == (Rule::Most, Estimand::ProgramsLikeThese)
}

/// How many comparisons that the test is about are missing.
fn missing(test: &Test, estimand: Estimand, outcome: &Outcome) -> usize {
    let Outcome { without, effects, programs_requested: requested, named_hardly, .. } = outcome;
    let others = without.managers.len() + without.places.len();
    // There programs are a sample; each pair of managers is one comparison.
    if matches!(test.rule, Rule::Mean | Rule::Trend) || is_of_most_programs(test, estimand) {
        return others;
    }
    let there = requested.saturating_sub(without.programs.len()).max(1);
    let of_programs = without.programs.len() * effects.len().div_ceil(there) + without.cells.len();
    of_programs + named_hardly + others * there
}

/// The same test of some of its programs, by their names without variants, and what comes of it; none without such
/// programs.
fn of_programs(
    (test, claim): (&Test, &Claim),
    study: &Study,
    figures: &Figures,
    stays: &dyn Fn(&String) -> bool,
) -> Option<(Test, Outcome)> {
    let mut some = test.clone();
    some.quantity.programs = requested(&test.quantity, study.step(&test.quantity.step)?);
    some.quantity.programs.retain(stays);
    some.others.retain(stays);
    let empty = some.quantity.programs.is_empty() || some.others.is_empty() != test.others.is_empty();
    let mut outcome = by_test(&some, claim, claim.estimand, study, figures).ok().filter(|_| !empty)?;
    if test.quantity.programs.is_empty() {
        // The test itself names none.
        outcome.named_hardly = 0;
    }
    Some((some, outcome))
}

/// The same means without the programs that the study calls controls. The verdict is by all; what a control weighs
/// stands next to it.
fn without_controls(
    (test, claim): (&Test, &Claim),
    outcome: &Outcome,
    study: &Study,
    figures: &Figures,
) -> Option<String> {
    let step = study.step(&test.quantity.step).filter(|_| test.rule == Rule::Mean)?;
    let mut controls = requested(&test.quantity, step);
    controls.retain(|one| study.controls.contains(one) && !outcome.without.programs.contains(one));
    if controls.is_empty() {
        return None;
    }
    let (_, found) = of_programs((test, claim), study, figures, &|one| !controls.contains(one))?;
    let means: Vec<String> = found.effects.iter().map(shown).collect();
    Some(format!("without the control {}: {}", and_list(&controls), means.join("; ")))
}

/// What a test's effects answer.
struct Judgment {
    answer: Answer,
    /// How many comparisons are missing.
    missing: usize,
    /// They could turn the answer.
    turns: bool,
    /// The counts of programs, where these decide.
    counts: Option<String>,
}

fn judgment((test, estimand): (&Test, Estimand), outcome: &Outcome, deciding: &[Effect]) -> Judgment {
    let missing = missing(test, estimand, outcome);
    let open = Effect { words: String::new(), value: 1.0, low: 1.0, high: 1.0, basis: Basis::None };
    let (alone, answer, counts) = if is_of_most_programs(test, estimand) {
        let mut programs: BTreeMap<&str, Vec<Effect>> = BTreeMap::new();
        for (program, effect) in outcome.on.iter().zip(deciding) {
            programs.entry(program).or_default().push(effect.clone());
        }
        let answers: Vec<Answer> = programs.values().map(|effects| decide(test, effects)).collect();
        let (alone, counts) = most_programs(test.share.unwrap_or(0.5), &answers);
        (alone, if missing > 0 { Answer::Undecided } else { alone }, Some(counts))
    } else {
        let with: Vec<Effect> = deciding.iter().cloned().chain(std::iter::repeat_n(open, missing)).collect();
        (decide(test, deciding), decide(test, &with), None)
    };
    Judgment { answer, missing, turns: alone != answer, counts }
}

/// The same test by the estimand that the claim does not ask for, where its means are over three programs or more.
fn by_other(
    (test, claim, answered): (&Test, &Claim, Answer),
    programs: &Programs<'_>,
    study: &Study,
    figures: &Figures,
) -> Option<OtherEstimand> {
    let estimand = claim.estimand.other();
    let outcome = by_test(test, claim, estimand, study, figures).ok()?;
    if !outcome.programs.iter().any(|programs| *programs >= 3) {
        return None;
    }
    let (deciding, _) = programs.deciding(test, estimand, &outcome);
    let agreement = Agreement::of(answered, judgment((test, estimand), &outcome, &deciding).answer);
    Some(OtherEstimand { estimand, agreement, effects: outcome.effects })
}

/// `over programs like these 1.67 (0.83 to 3.35): a over b, mean of 6 programs: open`; of several means the figures alone.
fn other_in_words(other: &OtherEstimand) -> String {
    let figures = match other.effects.as_slice() {
        [one] => shown(one),
        several => and_list(&several.iter().map(with_interval).collect::<Vec<_>>()),
    };
    format!("over {} {figures}: {}", other.estimand.words(), other.agreement.word())
}

/// What a test's figures answer.
fn test(study: &Study, claim: &Claim, test: &Test, figures: &Figures, absent: &Absent) -> Tested {
    let not_measured = |reason: String| Tested {
        words: test.words.clone(),
        answer: Answer::NotMeasured,
        reason,
        detectable: None,
        effects: Vec::new(),
        other_estimand: None,
    };
    let step = &test.quantity.step;
    let why = absent.of_step(step).map(|why| format!("step {step}: {why}"));
    let outcome = match by_test(test, claim, claim.estimand, study, figures) {
        Ok(outcome) => outcome,
        Err(missing) => return not_measured(why.unwrap_or_else(|| missing.to_string())),
    };
    let programs = Programs::of(claim, study.step(step), absent);
    // What decides nothing is shown with its interval.
    let (deciding, barred) = programs.deciding(test, claim.estimand, &outcome);
    let by_all = judgment((test, claim.estimand), &outcome, &deciding);
    let all_barred = barred.is_some() && deciding.iter().all(|effect| effect.basis == Basis::None);
    let mut reasons = vec![match outcome.effects.as_slice() {
        [one] if all_barred => format!("{}; claim: {}", shown(one), region(test)),
        several if all_barred => because(test, by_all.answer, several),
        _ => because(test, by_all.answer, &deciding),
    }];
    let (judged, of_kin) = with_kin((test, claim, by_all.answer), &programs, &outcome, study, figures);
    let other = (test.rule == Rule::Mean)
        .then(|| by_other((test, claim, judged), &programs, study, figures))
        .flatten();
    reasons.extend(by_all.counts);
    reasons.extend(barred);
    reasons.extend(missing_in_words(&outcome, by_all.turns));
    reasons.extend(without_controls((test, claim), &outcome, study, figures));
    if !outcome.thin.is_empty() {
        reasons.push(format!("there are too few runs of {}", and_list(&outcome.thin)));
    }
    reasons.extend(of_kin);
    if by_all.answer == Answer::Undecided && outcome.named_hardly > 0 {
        reasons.push("inputs on which they collect more often would decide".into());
    } else if by_all.answer == Answer::Undecided && by_all.missing == 0 {
        // Repetitions bring no program that is missing, and no program of the paper.
        reasons.extend(would_decide(test, &deciding));
    }
    reasons.extend(other.as_ref().map(other_in_words));
    let detectable = deciding
        .iter()
        .filter_map(|effect| detectable(test.rule, effect))
        .filter(|ratio| ratio.is_finite())
        .reduce(f64::max);
    let effects = outcome.effects;
    Tested { answer: judged, detectable, effects, other_estimand: other, ..not_measured(reasons.join("; ")) }
}

/// An answer of all programs beside that of the paper's own alone: kin may bear it out, and decide nothing. And how many
/// of all are kin.
fn with_kin(
    (test, claim, all): (&Test, &Claim, Answer),
    programs: &Programs<'_>,
    outcome: &Outcome,
    study: &Study,
    figures: &Figures,
) -> (Answer, Option<String>) {
    let kin = programs.kin(outcome);
    if kin.is_empty() {
        return (all, None);
    }
    let are = if kin.len() == 1 { "is" } else { "are" };
    if kin.len() == outcome.compared.len() {
        let which = and_list(&kin);
        let words = format!("{which} {are} kin of the paper's own programs, and kin alone decide nothing");
        return (Answer::NotMeasured, Some(words));
    }
    let is_own = |base: &String| !kin.contains(&of_side(base, &test.quantity.of));
    let own = of_programs((test, claim), study, figures, &is_own).map(|(own, outcome)| {
        let (deciding, _) = programs.deciding(&own, claim.estimand, &outcome);
        judgment((&own, claim.estimand), &outcome, &deciding).answer
    });
    let share =
        format!("{} of {} {are} kin of the paper's", kin.len(), plural(outcome.compared.len(), "program"));
    match own {
        Some(own) if own == all => (all, Some(share)),
        _ => (
            Answer::Undecided,
            Some(format!("{share}, and the answer depends on them: the paper's would decide")),
        ),
    }
}

/// What is not in the figures: what has none, and in what a collector hardly collected.
fn missing_in_words(outcome: &Outcome, turns: bool) -> Vec<String> {
    let mut words = Vec::new();
    let gone = outcome.without.labels();
    if !gone.is_empty() {
        let turn = if turns { ", and they could turn the answer" } else { "" };
        words.push(format!("there is no such figure of {}{turn}", and_list(&gone)));
    }
    if !outcome.hardly_collected.is_empty() {
        words.push(too_few_collections(&outcome.hardly_collected));
    }
    if !outcome.fitting.is_empty() {
        words.push(both_fit(&outcome.fitting));
    }
    words
}

/// The verdict on a claim of a study by what was measured. `absent` has the reasons why steps and cells are not there.
///
/// All tests must hold. One that fails for certain decides; else what was not measured leaves the claim so. Where one of
/// them is enough it is the other way round. What the paper saw on one machine and not on another is borne out by any, and
/// refuted by that one alone.
pub fn judge(study: &Study, claim: &Claim, figures: &Figures, absent: &Absent) -> Verdict {
    let tests: Vec<Tested> = match claim.not_built {
        Some(_) => Vec::new(),
        None => claim.tests.iter().map(|one| test(study, claim, one, figures, absent)).collect(),
    };
    let has = |answer: Answer| tests.iter().any(|test| test.answer == answer);
    let answer = if tests.is_empty() {
        Answer::NotMeasured
    } else {
        let (order, rest) = match claim.either {
            false => ([Answer::Fails, Answer::NotMeasured, Answer::Undecided], Answer::Holds),
            true => ([Answer::Holds, Answer::NotMeasured, Answer::Undecided], Answer::Fails),
        };
        order.into_iter().find(|answer| has(*answer)).unwrap_or(rest)
    };
    let reason = match &claim.not_built {
        Some(why) => why.clone(),
        None => in_a_sentence(&tests, answer) + &over_all_tests(claim, &tests, answer),
    };
    let (answer, reason) = match &claim.seen_on {
        Some(machine) if answer == Answer::Fails => {
            let why = format!("the paper saw it on {machine}: only such a machine would refute it");
            (Answer::NotMeasured, format!("{reason}; {why}"))
        }
        _ => (answer, reason),
    };
    Verdict {
        study: study.name.clone(),
        claim: claim.id.clone(),
        place: claim.place.clone(),
        words: claim.words.clone(),
        myth: claim.myth,
        ours: claim.ours,
        estimand: claim.estimand,
        other_estimand: tests.iter().filter_map(|test| Some(test.other_estimand.as_ref()?.agreement)).max(),
        answer,
        reason,
        exhibits: claim.exhibits.clone(),
        tests,
    }
}

/// Of a claim about every comparison that fails by several tests: how many of all comparisons contradict it. One is
/// enough to refute a "never", and a reader shall not take it for the rule.
fn over_all_tests(claim: &Claim, tests: &[Tested], answer: Answer) -> String {
    let every = claim.tests.iter().all(|test| test.rule == Rule::All);
    if answer != Answer::Fails || claim.tests.len() < 2 || !every {
        return String::new();
    }
    let out = |(test, tested): (&Test, &Tested)| {
        let is_out = |effect: &&Effect| placement(effect, Region::of(test)) == Placement::Out;
        tested.effects.iter().filter(is_out).count()
    };
    let outside: usize = claim.tests.iter().zip(tests).map(out).sum();
    let all: usize = tests.iter().map(|tested| tested.effects.len()).sum();
    let verb = if outside == 1 { "contradicts" } else { "contradict" };
    format!("; {outside} of {all} comparisons in all {verb} the claim")
}

/// The reason of the first test that gave the answer, and how many gave it with it.
fn in_a_sentence(tests: &[Tested], answer: Answer) -> String {
    let mut giving = tests.iter().filter(|test| test.answer == answer);
    let Some(first) = giving.next() else { return "nothing tests it".into() };
    let (more, all) = (giving.count(), tests.len());
    let further = match more {
        0 if all == 1 => String::new(),
        0 => format!(" (one of {all} tests)"),
        _ => format!(" (and {more} more of {all} tests)"),
    };
    format!("{}{further}", first.reason)
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
