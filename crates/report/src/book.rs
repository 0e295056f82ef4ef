//! Studies of whole papers as one page: verdicts first, then a section a paper with its claims, tables and figures, the
//! published values with ours.
//!
//! As in a [`crate::document::Document`], figures come formatted in tables and plain in charts; so do the ends of
//! intervals, which are drawn. All text may come from a user's file and is made harmless where it is shown, not here.

mod document;

use crate::document::{Chart, Effect, Ratio, Region};
use crate::format::NOT_DECIDED;

/// All of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Book {
    /// Headline.
    pub title: String,
    /// What this is; a paragraph each.
    pub lead: Vec<String>,
    /// In one line under it: date, machine, budget.
    pub dateline: Vec<String>,
    /// What the reader must know first; shown in colour.
    pub warnings: Vec<String>,
    /// How verdicts are made and how to read the page; sentences, folded.
    pub how: Vec<String>,
    /// A paper each.
    pub papers: Vec<PaperSection>,
    /// What was run, in its order.
    pub steps: Vec<Step>,
    /// Name and value: machine, versions.
    pub facts: Vec<(String, String)>,
    /// The command that makes it again.
    pub command: String,
}

/// A paper.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PaperSection {
    /// Its anchor, and the beginning of those of its claims and exhibits: letters, digits, hyphens.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Authors, title, place, year.
    pub source: String,
    /// The paper's questions and how they are answered here; a paragraph each.
    pub about: Vec<String>,
    /// What its abstract states, sentence by sentence.
    pub summary: Vec<Sentence>,
    /// Our names for the paper's: kind, the paper's name, ours.
    pub names: Vec<(String, String, String)>,
    /// In the paper's order.
    pub claims: Vec<Claim>,
    /// In the paper's order.
    pub exhibits: Vec<Exhibit>,
}

/// A sentence of a paper's abstract.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sentence {
    /// In our words.
    pub words: String,
    /// The claims that answer it, by id.
    pub claims: Vec<String>,
    /// What has changed since the paper, and why; empty where nothing is known.
    pub since: String,
}

/// Does it hold today?
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// Yes.
    Holds,
    /// No.
    Fails,
    /// The data do not decide.
    Undecided,
    /// Nothing was measured for it.
    #[default]
    NotMeasured,
}

impl Answer {
    /// As text.
    pub fn label(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::Fails => "fails",
            Answer::Undecided => NOT_DECIDED,
            Answer::NotMeasured => "not measured",
        }
    }
}

/// How a claim's answer stands to the paper: what the paper calls a myth is borne out where the myth fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

/// What a paper claims.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claim {
    /// Its anchor within the section.
    pub id: String,
    /// Where in the paper.
    pub place: String,
    /// One sentence.
    pub words: String,
    /// The paper calls this false.
    pub myth: bool,
    /// A sentence of ours, not of the paper.
    pub ours: bool,
    /// Today.
    pub answer: Answer,
    /// The figures that decided, in a sentence.
    pub reason: String,
    /// Exhibits of the section that show it, by id.
    pub exhibits: Vec<String>,
    /// The tests of the figures.
    pub tests: Vec<Test>,
}

impl Claim {
    /// How the answer stands to the paper.
    pub fn standing(&self) -> Standing {
        match (self.answer, self.myth) {
            (Answer::Holds, false) | (Answer::Fails, true) => Standing::BorneOut,
            (Answer::Fails, false) | (Answer::Holds, true) => Standing::Contradicted,
            (Answer::Undecided, _) => Standing::Undecided,
            (Answer::NotMeasured, _) => Standing::NotMeasured,
        }
    }
}

/// One test of a claim.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Test {
    /// Its question; yes supports the claim.
    pub words: String,
    /// Today.
    pub answer: Answer,
    /// With the figures.
    pub reason: String,
    /// What the data could have shown, in words; empty for counts and where there are none.
    pub detectable: String,
    /// Where effects support the claim.
    pub region: Region,
    /// The comparisons.
    pub effects: Vec<Effect>,
    /// The same over what the claim does not ask for: programs like these, or these programs.
    pub others: Vec<Effect>,
}

/// A table or a figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exhibit {
    /// Its anchor within the section.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What to see, sentences.
    pub text: Vec<String>,
    /// Of a figure.
    pub chart: Option<Chart>,
    /// All values; folded under a chart.
    pub table: Pairs,
    /// Below it.
    pub notes: Vec<String>,
    /// The commands that repeat it.
    pub commands: Vec<String>,
}

/// A table whose cells hold a value of ours and the published one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs {
    /// Heading of the rows' names, then of the columns.
    pub columns: Vec<String>,
    /// Name of the row and its cells, as many as columns less one.
    pub rows: Vec<(String, Vec<Pair>)>,
    /// What ratios are to; empty where there are none.
    pub baseline: String,
}

/// A value of ours and the published one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pair {
    /// Ours; empty for none.
    pub ours: String,
    /// Its interval in brackets; empty for none.
    pub range: String,
    /// Ours to that of a baseline.
    pub ratio: Option<Ratio>,
    /// Published; empty for none.
    pub paper: String,
    /// Why there is none of ours.
    pub missing: String,
}

/// A step that was run, or was not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Study and step.
    pub name: String,
    /// Programs and repetitions of how many.
    pub extent: String,
    /// How long it took.
    pub took: String,
    /// How it ended; empty where it ran to its end.
    pub ending: String,
    /// What the shorter form costs.
    pub precision: String,
    /// Refused programs and managers, doubts.
    pub warnings: Vec<String>,
    /// The command that repeats it.
    pub command: String,
}
