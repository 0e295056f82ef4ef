//! A claim held against its effects.

use serde::{Deserialize, Serialize};

use super::definition::{Claim, Study};
use super::effect::Effect;
use super::figures::{Absent, Figures};

/// Does it hold today?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Verdict {
    /// Study.
    pub study: String,
    /// Claim's id.
    pub claim: String,
    /// Place in the paper.
    pub place: String,
    /// The claim.
    pub words: String,
    /// The paper says that it is false.
    pub myth: bool,
    /// Answer.
    pub answer: Answer,
    /// One sentence with the figures that decided: `geometric mean 1.62 (1.31 to 1.99) over 6 programs`.
    pub reason: String,
    /// Exhibits to look at, by id.
    pub exhibits: Vec<String>,
    /// What was tested.
    pub tests: Vec<Tested>,
}

/// One test's outcome.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Tested {
    /// What it asked.
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

/// A claim of a study, held against what was measured. `absent` says why steps and cells are not there.
pub fn judge(study: &Study, claim: &Claim, figures: &Figures, absent: &Absent) -> Verdict {
    let _ = (figures, absent);
    Verdict {
        study: study.name.clone(),
        claim: claim.id.clone(),
        place: claim.place.clone(),
        words: claim.words.clone(),
        myth: claim.myth,
        answer: Answer::NotMeasured,
        reason: claim.not_built.clone().unwrap_or_default(),
        exhibits: claim.exhibits.clone(),
        tests: Vec::new(),
    }
}
