//! The summary at the top of the page: its title, when and where it was made, and how verdicts are read.

use crate::results::{Ended, PaperResult, Results};
use crate::verdict::Verdict;
use heaptoll_report::document::{Share, Tone, tally};
use heaptoll_report::format;
use heaptoll_units::{plural, took};

/// Names of facts that belong under the headline, in any case.
const MACHINE: [&str; 3] = ["machine", "processor", "cpu"];

/// Headline.
pub fn title(results: &Results) -> String {
    match &results.papers[..] {
        [one] if !one.study.repeats() => one.study.title.clone(),
        [one] => format!("{}, measured again", one.study.title),
        _ => "What papers on memory management found, measured again".into(),
    }
}

/// A description in sentences.
pub fn lead(results: &Results) -> Vec<String> {
    let has_ours = results.papers.iter().flat_map(|paper| &paper.verdicts).any(|verdict| verdict.ours);
    let left_out = [(false, " of the papers"), (true, " of ours")].into_iter().filter_map(|(ours, whose)| {
        let count =
            |verdicts: &mut dyn Iterator<Item = &Verdict>| verdicts.filter(|one| one.ours == ours).count();
        let of = |paper: &PaperResult| count(&mut paper.verdicts.iter()) - count(&mut results.judged(paper));
        let left_out: usize = results.papers.iter().map(of).sum();
        let claims = plural(left_out, "claim");
        let whose = if has_ours { whose } else { "" };
        let (are, them) = if left_out == 1 { ("is", "it") } else { ("are", "them") };
        (left_out > 0).then(|| format!("{claims}{whose} {are} left out: no step here tests {them}."))
    });
    let papers = match results.papers.iter().filter(|section| section.study.repeats()).count() {
        0 => {
            let read = "Each claim holds, fails or is not decided: the sections have the figures.";
            return std::iter::once(read.to_owned()).chain(left_out).collect();
        }
        1 => "this paper".to_owned(),
        count => format!("{count} papers"),
    };
    let experiments = match results.steps_run() {
        (run, all) if run < all => format!("{run} of the {all} experiments of {papers} ran again"),
        _ => format!("Every experiment of {papers} was run again"),
    };
    let read = format!(
        "{experiments}, with the allocators and collectors of its time and of today, on programs of today. \
         Each claim holds, fails or is not decided. The sections have the figures, next to those that were \
         published."
    );
    std::iter::once(read).chain(left_out).collect()
}

/// Date, machine, time.
pub fn dateline(results: &Results) -> Vec<String> {
    let machine = results
        .facts
        .iter()
        .find(|(name, _)| MACHINE.iter().any(|wanted| name.eq_ignore_ascii_case(wanted)))
        .map(|(_, text)| text.clone());
    let time = took(results.seconds);
    let time = match results.budget_s {
        Some(budget) => format!("took {time} of {} given", took(budget)),
        None => format!("took {time}"),
    };
    let mut line = vec![format::date(results.begun_unix_s)];
    line.extend(machine);
    line.extend([time, format!("heaptoll {}", results.heaptoll_version)]);
    line
}

/// Warnings shown first.
pub fn warnings(results: &Results) -> Vec<String> {
    let mut warnings = results.warnings.clone();
    if !results.complete {
        let ended = |(wanted, name): (Ended, &str)| {
            let count = results.steps.iter().filter(|step| step.ending == wanted).count();
            Share { name: name.into(), count, tone: Tone::Same }
        };
        let which =
            tally(&[(Ended::Cut, "cut"), (Ended::Failed, "failed"), (Ended::LeftOut, "left out")].map(ended));
        let which = if which.is_empty() { "it was interrupted" } else { &which };
        warnings.push(format!("Not all of {} steps ran to their end: {which}.", results.steps.len()));
    }
    warnings
}

/// How verdicts are made and what the drawings show.
pub fn how(results: &Results) -> Vec<String> {
    let mut how: Vec<String> = [
        "A claim holds if the whole interval of each comparison lies in the claimed region. It fails if the \
         whole interval lies outside. Otherwise the data do not decide, and the section shows how large an \
         effect they could detect.",
        "Intervals are at 95 %. Intervals of one test are valid together if they come from paired \
         repetitions. A mean over programs is geometric. Its interval is over repetitions where a claim is of \
         these programs, and over programs where it is of programs like these. Counts are exact and have none.",
        "In the small drawings each line is a comparison with its interval. The shaded part is the claimed \
         region; the dotted line is a ratio of 1. A hollow dot does not decide.",
        "Colours show how today compares with the paper: green agrees with it, orange is contrary to it.",
        "A diamond (◇) marks a published value. Published times are of machines of their year: compare ratios, not seconds.",
    ]
    .map(String::from)
    .into();
    if results.papers.iter().flat_map(|paper_section| &paper_section.verdicts).any(|verdict| verdict.myth) {
        how.push("A myth is worded as the myth. If it fails, the paper is right.".into());
    }
    how
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Published;
    use crate::verdict::Answer;

    #[test]
    fn a_study_that_shows_no_published_value_is_not_called_a_paper() {
        let mut results = crate::page::testing::results();
        assert_eq!(title(&results), results.papers[0].study.title);
        assert!(!lead(&results)[0].contains("this paper"));
        let published: Published = toml::from_str("file = 'table3.csv'").expect("it is sound");
        results.papers[0].study.exhibits[0].published = Some(published);
        assert!(title(&results).ends_with(", measured again"));
        assert!(lead(&results)[0].contains("this paper"));
    }

    /// Before, "every experiment was run again" after Ctrl-C, and a row for each claim of steps that --only had left out.
    #[test]
    fn what_did_not_run_is_counted_and_has_no_rows() {
        let mut results = crate::page::testing::results();
        let paper = &mut results.papers[0];
        paper.study.exhibits[0].published = Some(toml::from_str("file = 'table3.csv'").expect("it is sound"));
        let (mut step, mut claim) = (paper.study.steps[0].clone(), paper.study.claims[0].clone());
        let mut verdict = paper.verdicts[0].clone();
        let shown = |results: &Results| results.judged(&results.papers[0]).count();
        assert!(lead(&results)[0].starts_with("Every experiment of this paper was run again"));
        step.id = "other".into();
        claim.id.clone_from(&step.id);
        claim.tests[0].quantity.step.clone_from(&step.id);
        (verdict.claim, verdict.answer) = (step.id.clone(), Answer::NotMeasured);
        let paper = &mut results.papers[0];
        paper.study.steps.push(step);
        paper.study.claims.push(claim);
        paper.verdicts.push(verdict);
        let mut whole = results.clone();
        whole.steps.push(whole.steps[0].clone());
        whole.steps[1].planned.step = "other".into();
        whole.papers[0].study.claims.last_mut().expect("a claim").tests.clear();
        assert_eq!(
            (lead(&whole).len(), shown(&whole)),
            (1, 2),
            "a run of all steps states why it has no figures"
        );
        let text = lead(&results);
        assert!(text[0].starts_with("1 of the 2 experiments of this paper ran again"), "{text:?}");
        assert_eq!(text[1], "1 claim is left out: no step here tests it.");
        assert_eq!((results.papers[0].verdicts.len(), shown(&results)), (2, 1));
        results.papers[0].verdicts[1].ours = true;
        assert_eq!(lead(&results)[1], "1 claim of ours is left out: no step here tests it.");
    }

    #[test]
    fn the_date_the_machine_and_the_time_stand_under_the_headline() {
        let results = Results {
            begun_unix_s: 1_795_320_000.0,
            seconds: 1700.0,
            budget_s: Some(1800.0),
            heaptoll_version: "1.2".into(),
            facts: vec![("Kernel".into(), "6".into()), ("Processor".into(), "two cores".into())],
            ..crate::page::testing::results()
        };
        let line = dateline(&results);
        assert_eq!(line[1..], ["two cores", "took 28 min 20 s of 30 min given", "heaptoll 1.2"]);
        assert!(line[0].starts_with("2026-"));
        assert!(warnings(&results).iter().any(|text| text.contains("1 cut")), "{:?}", warnings(&results));
    }

    #[test]
    fn a_myth_is_explained_only_where_there_is_one() {
        let mut results = crate::page::testing::results();
        assert!(how(&results).iter().any(|text| text.contains("myth")));
        for paper_section in &mut results.papers {
            paper_section.verdicts.iter_mut().for_each(|verdict| verdict.myth = false);
        }
        assert!(!how(&results).iter().any(|text| text.contains("myth")));
    }
}
