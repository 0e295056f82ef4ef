//! What a claim's means are stated of, these programs or programs like them, and which of the two the figures can decide.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::definition::{Claim, Estimand, Rule, Step, Test};
use super::effect::{Basis, Effect};
use super::figures::Absent;
use super::outcome::Outcome;

/// Programs of a named set from which on a mean states something of programs like them.
const FEWEST_OF_A_SET: usize = 20;
/// Programs from which on a mean of several is one.
const FEWEST: usize = 3;

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

    /// The effects, those without a basis that decide nothing as a mean, and why.
    pub fn deciding(
        &self,
        test: &Test,
        estimand: Estimand,
        outcome: &Outcome,
    ) -> (Vec<Effect>, Option<String>) {
        let Outcome { effects, programs, programs_requested: requested, without, .. } = outcome;
        if test.rule != Rule::Mean {
            return (effects.clone(), None);
        }
        let few = programs.iter().filter(|programs| *requested >= FEWEST && **programs < FEWEST).count();
        let of_plan = self.thinned && !without.programs.is_empty();
        let in_set = self.step.is_some_and(|step| step.set.is_some());
        let of_others = estimand == Estimand::ProgramsLikeThese;
        let bars = |programs: usize| {
            let like_these = of_others && !(in_set && programs >= FEWEST_OF_A_SET);
            of_plan || like_these || (*requested >= FEWEST && programs < FEWEST)
        };
        let deciding = effects.iter().zip(programs).map(|(effect, programs)| match bars(*programs) {
            true => Effect { basis: Basis::None, ..effect.clone() },
            false => effect.clone(),
        });
        let which =
            if few < effects.len() { format!(" in {few} of {} means", effects.len()) } else { String::new() };
        let why = if of_plan {
            let ran = requested - without.programs.len();
            Some(format!("a plan chose {ran} of {requested} programs, and their mean decides nothing"))
        } else if few > 0 {
            Some(format!(
                "claim: a mean of {requested} programs; a mean of fewer than three{which} does not estimate it"
            ))
        } else if programs.iter().any(|programs| bars(*programs)) {
            Some(format!(
                "it takes {FEWEST_OF_A_SET} programs of a named set to state this of programs like these"
            ))
        } else {
            None
        };
        (deciding.collect(), why)
    }
}

#[cfg(test)]
#[path = "estimand_tests.rs"]
mod tests;
