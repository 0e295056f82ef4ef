//! A claim with the tests that decided it.

use heaptoll_facts::Basis;
use heaptoll_report::document::{self, Cell, Intervals, Item, Part, Region, Table};
use heaptoll_report::format::{self, plural};

use super::brackets::{plainly, ratio};
use super::paper::Paper;
use crate::definition::{Rule, Study, Test};
use crate::effect::Effect;
use crate::verdict::{Answer, Tested, Verdict};

/// All of it.
pub fn claim(verdict: &Verdict, paper: &Paper) -> Item {
    let text = [place(verdict), verdict.reason.clone()].into_iter().filter(|text| !text.is_empty());
    Item::Part(Part {
        id: paper.anchor(&verdict.claim),
        title: format!("{}: {}", verdict.answer.label(), verdict.words),
        text: text.collect(),
        items: with_regions(verdict, paper.study)
            .map(|(tested, region)| test(tested, region, verdict))
            .collect(),
        see: paper.links(verdict, |shown| shown.title.clone()),
        folded: true,
        ..Part::default()
    })
}

/// Where in the paper a claim stands.
pub fn place(verdict: &Verdict) -> String {
    let myth = verdict.myth.then_some("the paper: a myth");
    let ours = verdict.ours.then_some("a claim of ours");
    let place = (!verdict.place.is_empty()).then_some(verdict.place.as_str());
    place.into_iter().chain(myth).chain(ours).collect::<Vec<_>>().join(" · ")
}

/// The comparisons of the test that decided a claim.
pub fn decided(verdict: &Verdict, study: &Study) -> Option<Intervals> {
    let decides = |tested: &Tested| tested.answer == verdict.answer && !tested.effects.is_empty();
    let (tested, region) = with_regions(verdict, study).find(|(tested, _)| decides(tested))?;
    Some(Intervals { region, effects: drawn(&tested.effects, region) })
}

/// The tests of a claim, and where effects support it.
fn with_regions<'a>(verdict: &'a Verdict, study: &'a Study) -> impl Iterator<Item = (&'a Tested, Region)> {
    let defined = study.claims.iter().find(|claim| claim.id == verdict.claim);
    // In the order of the file; two tests may have the same words.
    verdict.tests.iter().enumerate().map(move |(number, tested)| {
        let test = defined.and_then(|claim| claim.tests.get(number));
        (tested, test.map_or_else(Region::default, region))
    })
}

fn region(test: &Test) -> Region {
    let ratio = test.quantity.over.is_some() || test.quantity.metric.ends_with("_ratio");
    Region {
        above: test.above,
        below: test.below,
        outside: test.rule == Rule::Both,
        even: test.rule == Rule::Trend || !ratio,
    }
}

fn test(tested: &Tested, region: Region, verdict: &Verdict) -> Item {
    // A claim with one test has its reason already.
    let reason =
        (tested.reason != verdict.reason && !tested.reason.is_empty()).then(|| tested.reason.clone());
    let detectable = tested.detectable.filter(|_| tested.answer != Answer::NotMeasured).map(detectable);
    let others = tested.other_estimand.iter().flat_map(|other| &other.effects);
    let value = |effect: &document::Effect| {
        let drawn = Intervals { region, effects: vec![effect.clone()] };
        Cell { range: effect.range.clone(), intervals: Some(drawn), ..Cell::text(&effect.text) }
    };
    let table = Table::of(drawn(tested.effects.iter().chain(others), region))
        .text("Comparison", |effect| effect.words.clone())
        .figure("Effect", value)
        .text("Over", |effect| effect.basis.clone())
        .parts("");
    let table = Table { one_scale: true, ..table };
    Item::Part(Part {
        title: format!("{} {}", tested.words, tested.answer.label()),
        text: reason.into_iter().chain(detectable).collect(),
        items: (!tested.effects.is_empty()).then_some(Item::Table(table)).into_iter().collect(),
        ..Part::default()
    })
}

fn detectable(ratio: f64) -> String {
    let least = match ratio {
        ratio if ratio >= 2.0 => format!("a factor of {}", format::ratio(ratio)),
        ratio => format::percent_off(ratio),
    };
    format!("The smallest difference that these data could have shown: {least}.")
}

fn drawn<'a>(effects: impl IntoIterator<Item = &'a Effect>, region: Region) -> Vec<document::Effect> {
    let one = |effect: &Effect| {
        let ends = (effect.basis != Basis::None).then_some((effect.low, effect.high));
        let shown = ends.filter(|_| effect.basis != Basis::Exact);
        let (text, range) =
            if region.even { plainly(effect.value, shown) } else { ratio(effect.value, shown) };
        let (words, basis) = (effect.words.clone(), basis(effect.basis));
        document::Effect { words, text, range, basis, value: effect.value, ends }
    };
    effects.into_iter().map(one).collect()
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
        let both = drawn(&[effect(Basis::Exact), effect(Basis::None)], Region::default());
        let shown = (both[0].text.as_str(), both[0].range.as_str(), both[0].ends);
        assert_eq!(shown, ("2.00", "", Some((2.0, 2.0))));
        assert_eq!(both[1].ends, None);
        assert_eq!(basis(Basis::Pairs(1)), "1 pair");
    }

    #[test]
    fn a_test_knows_the_region_of_its_definition() {
        let mut paper = crate::page::testing::results().papers.remove(0);
        let second = Test { above: None, below: Some(2.0), ..paper.study.claims[0].tests[0].clone() };
        paper.study.claims[0].tests.push(second);
        let tested = paper.verdicts[0].tests[0].clone();
        assert_eq!(tested.detectable.map(detectable).map(|text| text.contains("9.0 %")), Some(true));
        paper.verdicts[0].tests.push(tested);
        let regions: Vec<Region> =
            with_regions(&paper.verdicts[0], &paper.study).map(|(_, region)| region).collect();
        assert_eq!((regions[0].above, regions[0].even), (Some(1.0), false));
        let second = (regions[1].above, regions[1].below);
        assert_eq!(second, (None, Some(2.0)), "the second of two with the same words");
    }
}
