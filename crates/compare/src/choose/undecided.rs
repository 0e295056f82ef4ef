//! What was not decided, in words: differences that the fresh runs could not show, and candidates that few runs do not
//! separate from those that went on.

use heaptoll_report::document::Section;
use heaptoll_report::format::and_list;
use heaptoll_statistics::Interval;
use heaptoll_units::percent;

use super::answer::are_few;
use super::figures::{Candidate, ChooseFigures, Finalist};

/// Candidates with a score within this of a finalist's are named, and those with a run that was better than a finalist.
const NEAR: f64 = 0.01;
/// At most this many are named.
const NAMED: usize = 6;

/// The section; without a title where all was decided.
pub(super) fn section(figures: &ChooseFigures) -> Section {
    let others = figures.finalists.iter().filter(|finalist| finalist.stack != figures.baseline);
    let mut text: Vec<String> =
        others.flat_map(|finalist| of_finalist(finalist, &figures.baseline)).collect();
    let compared = figures.finalists.iter().filter_map(|finalist| finalist.cpu.as_ref());
    if compared.clone().next().is_some() && compared.into_iter().all(are_few) {
        text.push(format!(
            "Cannot tell whether any of the finalists differs from {}: {} fresh repetitions are too few.",
            figures.baseline, figures.fresh_repetitions
        ));
    }
    text.extend(between_finalists(figures));
    text.extend(near(figures));
    match text.is_empty() {
        true => Section::default(),
        false => Section { title: "Not decided".into(), text, items: Vec::new() },
    }
}

/// A sentence for each figure whose interval holds 1.
fn of_finalist(finalist: &Finalist, baseline: &str) -> Vec<String> {
    let open = finalist.named().into_iter().filter_map(|(noun, interval)| Some((noun, interval.as_ref()?)));
    open.filter(|(_, interval)| !interval.differs && !are_few(interval) && interval.low < interval.high)
        .map(|(noun, interval)| {
            format!("Cannot rank {} against {baseline} by {noun}: {}.", finalist.stack, bounds(interval))
        })
        .collect()
}

/// By how much it could differ either way.
fn bounds(interval: &Interval) -> String {
    format!("between {} less and {} more", percent(1.0 - interval.low), percent(interval.high - 1.0))
}

/// Which of two finalists is better, where their difference is not certain.
fn between_finalists(figures: &ChooseFigures) -> Option<String> {
    let interval =
        figures.between_finalists.as_ref().filter(|interval| !interval.differs && !are_few(interval))?;
    let others = figures.finalists.iter().filter(|finalist| finalist.stack != figures.baseline);
    let names: Vec<&str> = others.map(|finalist| finalist.stack.as_str()).collect();
    let [first, second] = names[..] else { return None };
    Some(format!(
        "Cannot rank {first} against {second}: {first} is between {} better and {} worse.",
        percent(1.0 - interval.low),
        percent(interval.high - 1.0)
    ))
}

/// Candidates that the search let go although few runs do not separate them from a finalist.
fn near(figures: &ChooseFigures) -> Option<String> {
    let is_finalist = |row: &&Candidate| figures.finalists.iter().any(|finalist| finalist.stack == row.stack);
    let worst = figures.candidates.iter().filter(is_finalist).filter_map(|row| row.score).reduce(f64::max)?;
    let mut near: Vec<&Candidate> = figures
        .candidates
        .iter()
        .filter(|row| !is_finalist(row) && row.why_out.is_none())
        .filter(|row| {
            let is_below = |score: Option<f64>, limit| score.is_some_and(|score| score < limit);
            is_below(row.score, worst + NEAR) || is_below(row.best_score, worst)
        })
        .collect();
    near.sort_by(|a, b| a.score.unwrap_or(0.0).total_cmp(&b.score.unwrap_or(0.0)));
    if near.is_empty() {
        return None;
    }
    let names: Vec<String> = near.iter().take(NAMED).map(|row| row.stack.clone()).collect();
    let more = near.len() - names.len();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(format!(
        "The search may have dropped good candidates: few runs do not rank {}{more}. Name them with -m to have them in \
         the fresh runs.",
        and_list(&names)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Option<Interval> {
        let differs = low > 1.0 || high < 1.0;
        Some(Interval { ratio: (low * high).sqrt(), low, high, differs, pairs: 20 })
    }

    #[test]
    fn open_differences_and_near_candidates_are_named_and_decided_ones_are_not() {
        let candidate = |stack: &str, score| Candidate {
            stack: stack.into(),
            score: Some(score),
            ..Candidate::default()
        };
        let mut figures = ChooseFigures {
            baseline: "glibc".into(),
            finalists: vec![
                Finalist { stack: "glibc".into(), ..Finalist::default() },
                Finalist {
                    stack: "lean".into(),
                    cpu: interval(0.98, 1.03),
                    memory: interval(0.5, 0.6),
                    ..Finalist::default()
                },
            ],
            candidates: vec![
                candidate("lean", -0.3),
                candidate("close", -0.295),
                candidate("far", 0.2),
                Candidate { best_score: Some(-0.5), ..candidate("slow once", 0.1) },
            ],
            ..ChooseFigures::default()
        };
        let text = section(&figures).text;
        assert_eq!(text[0], "Cannot rank lean against glibc by CPU time: between 2.0 % less and 3.0 % more.");
        assert!(text.len() == 2 && text[1].contains("rank close and slow once."), "{text:?}");
        figures.finalists[1].cpu = interval(1.01, 1.03);
        figures.candidates.truncate(1);
        assert!(section(&figures).title.is_empty(), "all is decided");
    }
}
