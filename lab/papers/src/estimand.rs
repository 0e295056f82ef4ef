//! What a claim's means are stated of, these programs or programs like them, and which of the two the figures can decide.

use heaptoll_statistics::{ALPHA, at_least};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::definition::{Claim, Estimand, Rule, Step, Test};
use super::effect::Effect;
use super::figures::Absent;
use super::outcome::Outcome;
use heaptoll_facts::Basis;

/// Programs of a named set from which on a mean, a slope or a share states something of programs like them.
const FEWEST_OF_A_SET: usize = 20;
/// Programs from which on a mean of several is one.
const FEWEST: usize = 3;
/// More programs than anyone measures.
const MOST_PROGRAMS: usize = 200;

/// How the answer by the other estimand stands to a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Both give one answer.
    Agrees,
    /// One of the two decides nothing.
    Open,
    /// They give contrary answers.
    Contradicts,
}

impl Agreement {
    /// How one answer stands to another.
    pub(super) fn of(answer: Answer, other: Answer) -> Agreement {
        let decides = |answer| matches!(answer, Answer::Holds | Answer::Fails);
        match decides(answer) && decides(other) {
            false => Agreement::Open,
            true if answer == other => Agreement::Agrees,
            true => Agreement::Contradicts,
        }
    }

    /// As JSON has it, and as sentences do.
    pub const fn word(self) -> &'static str {
        match self {
            Agreement::Agrees => "agrees",
            Agreement::Open => "open",
            Agreement::Contradicts => "contradicts",
        }
    }
}

/// The same test, stated of what the claim does not ask for.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct OtherEstimand {
    /// What it is stated of.
    pub estimand: Estimand,
    /// How its answer stands to the verdict.
    pub agreement: Agreement,
    /// The means.
    pub effects: Vec<Effect>,
}

/// Whose programs a step ran.
pub(super) struct Programs<'a> {
    claim: &'a Claim,
    step: Option<&'a Step>,
    /// A plan chose which of them ran.
    thinned: bool,
    /// The paper names its own.
    named: bool,
}

impl<'a> Programs<'a> {
    pub fn of(claim: &'a Claim, step: Option<&'a Step>, absent: &Absent) -> Programs<'a> {
        let of_step = |is: fn(&Absent, &str) -> bool| step.is_some_and(|step| is(absent, &step.id));
        let (thinned, named) = (of_step(Absent::is_thinned), of_step(Absent::names_programs));
        Programs { claim, step, thinned, named }
    }

    /// Programs that stand for those which the paper names; none where the sentence is ours.
    pub fn kin(&self, outcome: &Outcome) -> Vec<String> {
        let own = |program: &String| self.step.is_some_and(|step| step.originals.contains_key(program));
        let counts = self.named && !self.claim.ours;
        outcome.compared.iter().filter(|program| counts && !own(program)).cloned().collect()
    }

    /// The effects, those without a basis that decide nothing of what the claim is about, and why.
    pub fn deciding(
        &self,
        test: &Test,
        estimand: Estimand,
        outcome: &Outcome,
    ) -> (Vec<Effect>, Option<String>) {
        let Outcome { effects, programs, programs_requested: requested, without, .. } = outcome;
        let of_others = test.rule == Rule::Trend || estimand == Estimand::ProgramsLikeThese;
        let in_set = self.step.is_some_and(|step| step.set.is_some());
        let of_any = !(of_others || in_set || self.named || self.claim.ours);
        let no_mean = match test.rule {
            Rule::Mean if self.thinned && !without.programs.is_empty() => {
                let ran = requested - without.programs.len();
                Some(format!("a plan chose {ran} of {requested} programs, and their mean decides nothing"))
            }
            Rule::Mean if outcome.named_hardly > 0 => {
                Some("a mean without programs that the claim names decides nothing".into())
            }
            Rule::Mean if of_any && *requested >= FEWEST => Some(
                "a mean of programs that are neither the paper's nor of a named set decides nothing".into(),
            ),
            Rule::Mean | Rule::Most | Rule::Trend => None,
            Rule::All | Rule::Some | Rule::Both | Rule::Order => return (effects.clone(), None),
        };
        let is_few =
            |programs: &&usize| test.rule == Rule::Mean && *requested >= FEWEST && **programs < FEWEST;
        // One or two slopes have intervals of their own.
        let states = |programs: usize| {
            in_set && programs >= FEWEST_OF_A_SET || test.rule == Rule::Trend && programs < FEWEST
        };
        let is_sample = |programs: &usize| of_others && !states(*programs);
        let bars = |programs: &usize| no_mean.is_some() || is_few(&programs) || is_sample(programs);
        let deciding = effects.iter().zip(programs).map(|(effect, programs)| match bars(programs) {
            true => Effect { basis: Basis::None, ..effect.clone() },
            false => effect.clone(),
        });
        let deciding = deciding.collect();
        let why = match programs.iter().filter(is_few).count() {
            _ if no_mean.is_some() => no_mean,
            0 => programs.iter().any(is_sample).then(|| {
                format!(
                    "it takes {FEWEST_OF_A_SET} programs of a named set to state this of programs like these"
                )
            }),
            few => {
                let which = if few < effects.len() {
                    format!(" in {few} of {} means", effects.len())
                } else {
                    String::new()
                };
                Some(format!(
                    "claim: a mean of {requested} programs; a mean of fewer than three{which} does not estimate it"
                ))
            }
        };
        (deciding, why)
    }
}

/// Whether more than a share of programs like these answer yes, by the exact test of a share, and their counts in words.
pub(super) fn most_programs(share: f64, answers: &[Answer]) -> (Answer, String) {
    let count = |answer| answers.iter().filter(|one| **one == answer).count();
    let (inside, outside) = (count(Answer::Holds), count(Answer::Fails));
    let all = answers.len();
    let decides =
        |found: usize, of: usize, share| at_least(found * of / all.max(1), of, share) <= ALPHA / 2.0;
    let by = |of: usize| (decides(inside, of, share), decides(outside, of, 1.0 - share));
    let counts = format!("of {all} programs {inside} lie in the region and {outside} outside");
    match by(all) {
        (true, _) => (Answer::Holds, counts),
        (_, true) => (Answer::Fails, counts),
        _ => {
            let needed = (all..=MOST_PROGRAMS).find(|of| by(*of) != (false, false));
            let more =
                needed.map(|needed| format!("; about {needed} programs with these shares would decide"));
            (Answer::Undecided, counts + &more.unwrap_or_default())
        }
    }
}

#[cfg(test)]
#[path = "estimand_tests.rs"]
mod tests;
