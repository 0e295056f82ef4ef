//! A study's results as one document, for the page and the terminal: pure, so that stored results make the same page.

use heaptoll_report::document::{Document, Section};

use super::paper::Paper;
use super::paper_section::section;
use super::{front, steps, summary};
use crate::results::Results;

/// All of it: verdicts first, then a section a paper, then what was run.
pub fn document(results: &Results) -> Document {
    let papers = Paper::all(results);
    let mut whole = front::front(results, &papers);
    whole.sections.extend(papers.iter().map(section));
    whole.sections.extend(steps::section(results));
    whole
}

/// What this is, and whether each claim holds.
pub fn front(results: &Results) -> Document {
    front::front(results, &Paper::all(results))
}

/// The abstracts of its papers, a sentence a row.
pub fn abstracts(results: &Results) -> Document {
    let of_paper = |paper: &Paper| Some(Section::new(&paper.study.title).with(front::abstract_of(paper)?));
    let sections = Paper::all(results).iter().filter_map(of_paper).collect();
    Document { title: summary::title(results), sections, ..Document::default() }
}
