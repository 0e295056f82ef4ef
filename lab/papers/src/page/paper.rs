//! A paper of the results, as a page shows it.

use heaptoll_report::document::Link;

use crate::definition::Study;
use crate::exhibit::Shown;
use crate::results::{PaperResult, Results};
use crate::verdict::Verdict;

/// A paper as it is shown: without the claims that no step which ran tests.
pub struct Paper<'a> {
    /// As it was written.
    pub study: &'a Study,
    /// In the order of its claims.
    pub verdicts: Vec<&'a Verdict>,
    /// In the paper's order.
    pub exhibits: &'a [Shown],
}

impl<'a> Paper<'a> {
    /// Those of these results.
    pub fn all(results: &'a Results) -> Vec<Paper<'a>> {
        let of = |found: &'a PaperResult| Paper {
            study: &found.study,
            verdicts: results.judged(found).collect(),
            exhibits: &found.exhibits,
        };
        results.papers.iter().map(of).collect()
    }

    /// The anchor of a claim or an exhibit. Anything but letters, digits and hyphens would make none.
    pub fn anchor(&self, id: &str) -> String {
        let whole = format!("{}-{id}", self.study.name);
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        whole.chars().map(plain).collect()
    }

    /// Links to the exhibits that show a claim.
    pub fn links(&self, verdict: &Verdict, text: impl Fn(&Shown) -> String) -> Vec<Link> {
        let shown = verdict.exhibits.iter().filter_map(|id| self.exhibits.iter().find(|one| one.id == *id));
        shown.map(|one| Link { id: self.anchor(&one.id), text: text(one) }).collect()
    }
}
