//! The section of one paper: its claims with the tests that decided them, its tables and figures.

use crate::definition::{self, Rule};
use crate::effect::Effect;
use crate::results;
use crate::verdict::{Answer, Tested, Verdict};
use heaptoll_report::book::{self, Claim, PaperSection, Test};
use heaptoll_report::document::{self, Region};
use heaptoll_report::format::{self, plural};

use super::brackets::{plainly, ratio};
use super::exhibits;
use heaptoll_facts::Basis;

/// The section of a paper: without the claims that rest on steps that were not run.
pub fn paper_section(found: &results::PaperResult, of: &results::Results) -> PaperSection {
    let study = &found.study;
    let names = |kind: &str, names: &std::collections::BTreeMap<String, String>| {
        let each = names.iter().map(|(theirs, ours)| (kind.to_owned(), theirs.clone(), ours.clone()));
        each.collect::<Vec<_>>()
    };
    let mut standing_in = names("program", &study.names.programs);
    standing_in.extend(names("manager", &study.names.managers));
    let none = study.names.missing.iter().map(|(theirs, why)| ("none".into(), theirs.clone(), why.clone()));
    standing_in.extend(none);
    PaperSection {
        id: study.name.clone(),
        title: study.title.clone(),
        source: study.source.clone(),
        about: study.about.clone(),
        summary: summary(study),
        names: standing_in,
        claims: of.judged(found).map(|verdict| claim(verdict, study)).collect(),
        exhibits: found.exhibits.iter().map(|shown| exhibits::exhibit(shown, study)).collect(),
    }
}

/// The sentences of the abstract.
fn summary(study: &definition::Study) -> Vec<book::Sentence> {
    let sentence = |one: &definition::Sentence| book::Sentence {
        words: one.words.clone(),
        claims: one.claims.clone(),
        since: one.since.clone().unwrap_or_default(),
    };
    study.summary.iter().map(sentence).collect()
}

fn answer(answer: Answer) -> book::Answer {
    match answer {
        Answer::Holds => book::Answer::Holds,
        Answer::Fails => book::Answer::Fails,
        Answer::Undecided => book::Answer::Undecided,
        Answer::NotMeasured => book::Answer::NotMeasured,
    }
}

fn claim(verdict: &Verdict, study: &definition::Study) -> Claim {
    let definition_of = study.claims.iter().find(|claim| claim.id == verdict.claim);
    // In the order of the file; two tests may have the same words.
    let tests = verdict.tests.iter().enumerate().map(|(number, tested)| {
        let defined = definition_of.and_then(|claim| claim.tests.get(number));
        test(tested, defined)
    });
    Claim {
        id: verdict.claim.clone(),
        place: verdict.place.clone(),
        words: verdict.words.clone(),
        myth: verdict.myth,
        ours: verdict.ours,
        answer: answer(verdict.answer),
        reason: verdict.reason.clone(),
        exhibits: verdict.exhibits.clone(),
        tests: tests.collect(),
    }
}

fn test(tested: &Tested, defined: Option<&definition::Test>) -> Test {
    let region = defined.map_or_else(Region::default, region);
    let drawn_all = |effects: &[Effect]| effects.iter().map(|effect| drawn(effect, region.even)).collect();
    Test {
        words: tested.words.clone(),
        answer: answer(tested.answer),
        reason: tested.reason.clone(),
        detectable: tested.detectable.map_or_else(String::new, detectable),
        region,
        effects: drawn_all(&tested.effects),
        others: tested.other_estimand.as_ref().map_or_else(Vec::new, |other| drawn_all(&other.effects)),
    }
}

fn region(test: &definition::Test) -> Region {
    let ratio = test.quantity.over.is_some() || test.quantity.metric.ends_with("_ratio");
    Region {
        above: test.above,
        below: test.below,
        outside: test.rule == Rule::Both,
        even: test.rule == Rule::Trend || !ratio,
    }
}

fn detectable(ratio: f64) -> String {
    let least = match ratio {
        ratio if ratio >= 2.0 => format!("a factor of {}", format::ratio(ratio)),
        ratio => format::percent_off(ratio),
    };
    format!("The smallest difference that these data could have shown: {least}.")
}

fn drawn(effect: &Effect, plain: bool) -> document::Effect {
    let ends = (effect.basis != Basis::None).then_some((effect.low, effect.high));
    let shown = ends.filter(|_| effect.basis != Basis::Exact);
    let (text, range) = if plain { plainly(effect.value, shown) } else { ratio(effect.value, shown) };
    document::Effect {
        words: effect.words.clone(),
        text,
        range,
        basis: basis(effect.basis),
        value: effect.value,
        ends,
    }
}

fn basis(basis: Basis) -> String {
    let several = |count: u32, what: &str| plural(count as usize, what);
    match basis {
        Basis::Pairs(count) => several(count, "pair"),
        Basis::Programs(count) => several(count, "program"),
        Basis::Points(count) => several(count, "point"),
        Basis::Exact => "counted".into(),
        Basis::Estimate => "estimated".into(),
        Basis::None => "no interval".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_effects_have_no_brackets_and_single_ones_no_interval() {
        let effect = |basis| Effect { words: "a over b".into(), value: 2.0, low: 2.0, high: 2.0, basis };
        let counted = drawn(&effect(Basis::Exact), false);
        assert_eq!(
            (counted.text.as_str(), counted.range.as_str(), counted.ends),
            ("2.00", "", Some((2.0, 2.0)))
        );
        assert_eq!(drawn(&effect(Basis::None), false).ends, None);
        assert_eq!(basis(Basis::Pairs(1)), "1 pair");
    }

    #[test]
    fn a_test_knows_the_region_of_its_definition() {
        let results = crate::page::testing::results();
        let paper_section = paper_section(&results.papers[0], &results);
        let test = &paper_section.claims[0].tests[0];
        assert_eq!((test.region.above, test.region.even), (Some(1.0), false));
        assert!(test.detectable.contains("9.0 %"), "{}", test.detectable);
        let mut twice = results.papers[0].clone();
        let mut second = twice.study.claims[0].tests[0].clone();
        (second.above, second.below) = (None, Some(2.0));
        twice.study.claims[0].tests.push(second);
        let tested = twice.verdicts[0].tests[0].clone();
        twice.verdicts[0].tests.push(tested);
        let region = super::paper_section(&twice, &results).claims[0].tests[1].region;
        assert_eq!((region.above, region.below), (None, Some(2.0)), "the second of two with the same words");
        assert_eq!(paper_section.names[0], ("manager".into(), "sunos".into(), "cartesian".into()));
    }
}
