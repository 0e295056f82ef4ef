//! How a claim's answer stands to its paper: what the paper calls a myth is borne out where the myth fails.

use heaptoll_report::document::{Share, Tone, tally};
use heaptoll_report::format::NOT_DECIDED;

use crate::verdict::{Answer, Verdict};

/// How an answer stands to the paper, in the order of its part of the bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Today's figures agree with the paper.
    BorneOut,
    /// They contradict it.
    Contradicted,
    /// They do not decide.
    Undecided,
    /// There are none.
    NotMeasured,
}

impl Standing {
    const ALL: [Standing; 4] =
        [Standing::BorneOut, Standing::Contradicted, Standing::Undecided, Standing::NotMeasured];

    /// That of a claim.
    pub fn of(verdict: &Verdict) -> Standing {
        match (verdict.answer, verdict.myth) {
            (Answer::Holds, false) | (Answer::Fails, true) => Standing::BorneOut,
            (Answer::Fails, false) | (Answer::Holds, true) => Standing::Contradicted,
            (Answer::Undecided, _) => Standing::Undecided,
            (Answer::NotMeasured, _) => Standing::NotMeasured,
        }
    }

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Standing::BorneOut => "confirmed",
            Standing::Contradicted => "contradicted",
            Standing::Undecided => NOT_DECIDED,
            Standing::NotMeasured => Answer::NotMeasured.label(),
        }
    }

    /// The colour of a claim's answer is its standing to the paper, not the answer itself.
    pub fn tone(self) -> Tone {
        match self {
            Standing::BorneOut => Tone::Less,
            Standing::Contradicted => Tone::More,
            Standing::Undecided | Standing::NotMeasured => Tone::Same,
        }
    }
}

/// How many of these claims stand in each way.
pub fn shares<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> Vec<Share> {
    let all: Vec<Standing> = verdicts.map(Standing::of).collect();
    let share = |standing: Standing| Share {
        name: standing.name().into(),
        count: all.iter().filter(|one| **one == standing).count(),
        tone: standing.tone(),
    };
    Standing::ALL.map(share).into()
}

/// `20 confirmed, 6 contradicted`: what no claim does is left out.
pub fn standings<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> String {
    let text = tally(&shares(verdicts));
    if text.is_empty() { Answer::NotMeasured.label().into() } else { text }
}
