//! A claim judged by its effects. It holds when whole intervals lie in its region, fails when whole intervals lie
//! outside, and is else undecided; each rule sets how many must.

use heaptoll_units::{and_list, figure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::{Claim, Quantity, Rule, Study, Test};
use super::effect::{Basis, Effect};
use super::figures::{Absent, Figures};
use super::outcome::{Outcome, by_rule, by_test};
use super::pairs::{Without, requested};

/// Does it hold today?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes.
    Holds,
    /// No.
    Fails,
    /// The data do not decide.
    Undecided,
    /// The system is not built, or was left out.
    NotMeasured,
}

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
}

/// Where an effect lies relative to a claim's region, and whether it does for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// The whole interval is in the region.
    In,
    /// The whole interval is outside.
    Out,
    /// The interval holds an end of the region, or there is none.
    Unknown,
}

/// Where a test requires comparisons to lie.
#[derive(Clone, Copy)]
struct Region {
    above: Option<f64>,
    below: Option<f64>,
    /// It is what lies beyond the two.
    outside: bool,
}

impl Region {
    fn of(test: &Test) -> Region {
        Region { above: test.above, below: test.below, outside: test.outside }
    }
}

fn placement(effect: &Effect, region: Region) -> Placement {
    if effect.basis == Basis::None {
        return Placement::Unknown;
    }
    let Region { above, below, outside } = region;
    let (inside, out) = match outside {
        false => (
            above.is_none_or(|end| effect.low > end) && below.is_none_or(|end| effect.high < end),
            above.is_some_and(|end| effect.high <= end) || below.is_some_and(|end| effect.low >= end),
        ),
        true => (
            above.is_some_and(|end| effect.low > end) || below.is_some_and(|end| effect.high < end),
            above.is_none_or(|end| effect.high <= end) && below.is_none_or(|end| effect.low >= end),
        ),
    };
    match (inside, out) {
        (true, _) => Placement::In,
        (_, true) => Placement::Out,
        _ => Placement::Unknown,
    }
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

/// `above 1 and below 2`.
fn region(test: &Test) -> String {
    let ends = [test.above.map(|end| ("above", end)), test.below.map(|end| ("below", end))];
    let words: Vec<String> = ends.iter().flatten().map(|(side, end)| format!("{side} {end}")).collect();
    words.join(match test.rule {
        Rule::Both => " here and there ",
        _ if test.outside => " or ",
        _ => " and ",
    })
}

/// `1.62 (1.31 to 1.99), bw16 over kingsley, mean of 6 programs`.
fn shown(effect: &Effect) -> String {
    let Effect { words, value, low, high, basis } = effect;
    let interval = match basis {
        Basis::Exact => ", counted exactly".into(),
        Basis::None => " (no interval)".into(),
        _ => format!(" ({} to {})", figure(*low), figure(*high)),
    };
    format!("{}{interval}: {words}", figure(*value))
}

/// The smallest ratio above 1 that an effect's interval would have shown.
fn detectable(rule: Rule, effect: &Effect) -> Option<f64> {
    let Effect { value, low, high, basis, .. } = effect;
    match basis {
        Basis::None | Basis::Exact => None,
        // By how much a figure changes when its place doubles.
        _ if rule == Rule::Trend => Some(((high - value).max(value - low) * std::f64::consts::LN_2).exp()),
        _ if *low > 0.0 && *value > 0.0 => Some((high / value).max(value / low)),
        _ => None,
    }
}

/// By how far an effect is on the side of the region's nearest end: the least is what comes nearest to failing.
fn margin(test: &Test, effect: &Effect) -> f64 {
    let scale =
        |a: f64, b: f64| if a > 0.0 && b > 0.0 && test.rule != Rule::Trend { (a / b).ln() } else { a - b };
    let above = test.above.map(|end| scale(effect.low, end));
    let below = test.below.map(|end| scale(end, effect.high));
    let ends = above.into_iter().chain(below);
    if test.outside { ends.fold(f64::NEG_INFINITY, f64::max) } else { ends.fold(f64::INFINITY, f64::min) }
}

/// The reason of an answer, with the figures.
fn because(test: &Test, answer: Answer, effects: &[Effect]) -> String {
    let region = region(test);
    if let [effect] = effects {
        return match answer {
            Answer::Undecided if effect.basis == Basis::None => {
                format!("{}; claim: {region}; without an interval nothing is decided", shown(effect))
            }
            Answer::Undecided => {
                format!("{}; claim: {region}; the interval leaves it open", shown(effect))
            }
            _ => format!("{}; claim: {region}", shown(effect)),
        };
    }
    let mut ordered: Vec<&Effect> = effects.iter().collect();
    ordered.sort_by(|a, b| margin(test, a).total_cmp(&margin(test, b)));
    let (Some(least), Some(most)) = (ordered.first(), ordered.last()) else { return String::new() };
    let all = effects.len();
    if test.rule == Rule::Both {
        let (mut low, mut high) = (*least, *least);
        for effect in effects {
            low = if effect.value < low.value { effect } else { low };
            high = if effect.value > high.value { effect } else { high };
        }
        return format!(
            "of {all} comparisons the least is {}, the most {}; claim: {region}",
            shown(low),
            shown(high)
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
        _ if inside == all => format!("all {all} {noun} are {region}"),
        _ if outside == all => format!("none of {all} {noun} is {region}"),
        (0, _) => format!("none of {all} {noun} is {region} for certain"),
        _ => format!("{inside} of {all} {noun} {} {region} for certain", is(inside)),
    };
    if outside > 0 && outside < all {
        words += &format!(", {outside} {} not", is(outside));
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

/// Whether a mean over programs was requested, and this one is of so few that it is none.
fn of_too_few(test: &Test, requested: usize, effect: &Effect) -> bool {
    let is = matches!(effect.basis, Basis::Programs(_) | Basis::None);
    test.rule == Rule::Mean && requested >= 3 && !is
}

/// How many comparisons that the test names are missing.
fn missing(test: &Test, without: &Without, effects: usize, requested: usize) -> usize {
    let Quantity { programs, of, over, .. } = &test.whole_quantity();
    let named = |name: &&String| {
        of.managers.contains(name) || over.as_ref().is_some_and(|over| over.managers.contains(name))
    };
    let others = without.managers.iter().filter(named).count() + without.places.len();
    // Of means and slopes programs are a sample; each pair of managers is one comparison.
    if matches!(test.rule, Rule::Mean | Rule::Trend) {
        return others;
    }
    let there = requested.saturating_sub(without.programs.len()).max(1);
    let of_programs = match programs.as_slice() {
        [] => 0,
        _ => without.programs.len() * effects.div_ceil(there) + without.cells.len(),
    };
    of_programs + others * there
}

/// What a rule makes of effects, and whether as many `more` could turn it.
fn turned(test: &Test, effects: &[Effect], more: usize) -> (Answer, bool) {
    let open = Effect { words: String::new(), value: 1.0, low: 1.0, high: 1.0, basis: Basis::None };
    let with: Vec<Effect> = effects.iter().cloned().chain(std::iter::repeat_n(open, more)).collect();
    let (alone, with) = (decide(test, effects), decide(test, &with));
    (with, alone != with)
}

/// The same means without the programs that the study calls controls. The verdict is by all; what a control weighs
/// stands next to it.
fn without_controls(test: &Test, study: &Study, figures: &Figures) -> Option<String> {
    let step = study.step(&test.quantity.step).filter(|_| test.rule == Rule::Mean)?;
    let (controls, programs): (Vec<String>, Vec<String>) =
        requested(&test.quantity, step).into_iter().partition(|program| study.controls.contains(program));
    if controls.is_empty() || programs.is_empty() {
        return None;
    }
    let others = Quantity { programs, ..test.quantity.clone() };
    let found = by_rule(test.rule, &others, study, figures).ok()?;
    let means: Vec<String> = found.effects.iter().map(shown).collect();
    Some(format!("; without the control {}: {}", and_list(&controls), means.join("; ")))
}

fn test(study: &Study, test: &Test, figures: &Figures, absent: &Absent) -> Tested {
    let without = |reason: String| Tested {
        words: test.words.clone(),
        answer: Answer::NotMeasured,
        reason,
        detectable: None,
        effects: Vec::new(),
    };
    let step = &test.quantity.step;
    let why = absent.of_step(step).map(|why| format!("step {step}: {why}"));
    let outcome = match by_test(test, study, figures) {
        Ok(outcome) => outcome,
        Err(missing) => return without(why.unwrap_or_else(|| missing.to_string())),
    };
    let Outcome { effects, programs_requested, without, thin } = outcome;
    let few = effects.iter().filter(|effect| of_too_few(test, programs_requested, effect)).count();
    // They are shown with their intervals, and decide nothing.
    let deciding: Vec<Effect> = effects
        .iter()
        .map(|effect| match of_too_few(test, programs_requested, effect) {
            true => Effect { basis: Basis::None, ..effect.clone() },
            false => effect.clone(),
        })
        .collect();
    let missing = missing(test, &without, effects.len(), programs_requested);
    let (answer, turns) = turned(test, &deciding, missing);
    let mut reason = match effects.as_slice() {
        [one] if few > 0 => format!("{}; claim: {}", shown(one), region(test)),
        _ => because(test, answer, &deciding),
    };
    if few > 0 {
        let which = match (few, effects.len()) {
            (1, 1) => String::new(),
            (few, all) => format!(" in {few} of {all} means"),
        };
        reason += &format!(
            "; claim: a mean of {programs_requested} programs; a mean of fewer than three{which} does \
             not estimate it"
        );
    }
    let gone = without.labels();
    if !gone.is_empty() {
        let turn = if turns { ", and they could turn the answer" } else { "" };
        reason += &format!("; there is no such figure of {}{turn}", and_list(&gone));
    }
    reason += &without_controls(test, study, figures).unwrap_or_default();
    if !thin.is_empty() {
        reason += &format!("; there are too few runs of {}", and_list(&thin));
    }
    let detectable = deciding
        .iter()
        .filter_map(|effect| detectable(test.rule, effect))
        .filter(|ratio| ratio.is_finite())
        .reduce(f64::max);
    Tested { words: test.words.clone(), answer, reason, detectable, effects }
}

/// The verdict on a claim of a study by what was measured. `absent` has the reasons why steps and cells are not there.
///
/// All tests must hold. One that fails for certain decides; else what was not measured leaves the claim so. Where one of
/// them is enough it is the other way round.
pub fn judge(study: &Study, claim: &Claim, figures: &Figures, absent: &Absent) -> Verdict {
    let tests: Vec<Tested> = match claim.not_built {
        Some(_) => Vec::new(),
        None => claim.tests.iter().map(|one| test(study, one, figures, absent)).collect(),
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
    Verdict {
        study: study.name.clone(),
        claim: claim.id.clone(),
        place: claim.place.clone(),
        words: claim.words.clone(),
        myth: claim.myth,
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
