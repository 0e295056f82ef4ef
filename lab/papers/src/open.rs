//! What would decide a test that its figures leave open, in words; the figures are taken to stay as they are.

use heaptoll_facts::Basis;
use heaptoll_statistics::student;

use super::definition::Test;
use super::effect::Effect;
use super::measured::MOVED;
use super::region::{Placement, Region, placement};

/// More repetitions, or programs, than anyone has.
const MOST: f64 = 10_000.0;

/// What would put every open interval on one side of the region's ends; none where one has no interval, or one of points.
pub(super) fn would_decide(test: &Test, effects: &[Effect]) -> Option<String> {
    let region = Region::of(test);
    let is_open = |effect: &&Effect| placement(effect, region) == Placement::Unknown;
    let open: Vec<&Effect> = effects.iter().filter(is_open).collect();
    let any = |is: &dyn Fn(&Effect) -> bool| open.iter().any(|effect| is(effect));
    if open.is_empty() || any(&|effect| matches!(effect.basis, Basis::None | Basis::Points(_))) {
        return None;
    }
    if any(&|effect| effect.basis == Basis::Estimate) {
        return Some("more repetitions of the step would decide".into());
    }
    if any(&|effect| effect.basis == Basis::Exact || (effect.value - 1.0).abs() < region.least) {
        return Some("they are counts: no run would decide so small a difference".into());
    }
    // The interval reaches over both, however many there are of each.
    if any(&|effect| effect.words.contains(MOVED)) {
        return Some("runs in lockstep and separate ones differ: separate ones alone would decide".into());
    }
    let needed = |effect: &&Effect| {
        let (Basis::Pairs(count) | Basis::Programs(count)) = effect.basis else { return None };
        let ends = [test.above, test.below].into_iter().flatten();
        let distance = ends.map(|end| (effect.value.ln() - end.ln()).abs()).reduce(f64::min)?;
        student::needed(count as usize, (effect.high / effect.low).ln() / 2.0, distance, effects.len())
    };
    let all: Option<Vec<f64>> = open.iter().map(needed).collect();
    let of = match any(&|effect| matches!(effect.basis, Basis::Programs(_))) {
        true => "programs",
        false => "repetitions",
    };
    Some(match all.and_then(|all| all.into_iter().reduce(f64::max)).filter(|needed| *needed <= MOST) {
        Some(needed) => format!("about {needed} {of} would decide"),
        None => format!("it takes more {of} than anyone has"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(test: &str, words: &str, basis: Basis, [low, value, high]: [f64; 3]) -> Option<String> {
        let test: Test = toml::from_str(&format!(
            "words = \"q\"\nrule = \"all\"\n{test}\nquantity = {{ step = \"s\", metric = \"heap_high_kib\", of = {{}}, over = \
             {{ managers = [\"b\"] }} }}"
        ))
        .expect("a test");
        would_decide(&test, &[Effect { words: words.into(), value, low, high, basis }])
    }

    /// Six open claims were silent, one was to be decided by fewer repetitions than it had.
    #[test]
    fn each_kind_of_open_comparison_states_what_would_decide_it() {
        let of = |words, basis, ends| open("above = 1.0", words, basis, ends).expect("words");
        assert_eq!(
            of("a over b", Basis::Exact, [1.004; 3]),
            of("a over b", Basis::Pairs(10), [0.9, 1.004, 1.1])
        );
        assert!(of("a over b", Basis::Exact, [1.004; 3]).contains("no run would decide"));
        let moved = format!("a over b{MOVED}");
        assert!(of(&moved, Basis::Pairs(10), [0.9, 1.2, 1.4]).contains("separate ones alone"));
        let number = |text: String| text.split(' ').nth(1).and_then(|word| word.parse::<u32>().ok());
        for (basis, what) in [(Basis::Pairs(10), "repetitions"), (Basis::Programs(20), "programs")] {
            let text = of("a over b", basis, [0.9, 1.1, 1.3]);
            assert!(text.ends_with(&format!(" {what} would decide")), "{text}");
            assert!(number(text).is_some_and(|needed| needed > 10));
            assert_eq!(
                open("above = 1.1", "a over b", basis, [0.9, 1.1, 1.3]),
                Some(format!("it takes more {what} than anyone has"))
            );
        }
        assert!(of("a over b", Basis::Estimate, [0.9, 1.1, 1.3]).starts_with("more repetitions"));
        assert_eq!(open("above = 1.0", "a over b", Basis::None, [0.9, 1.1, 1.3]), None);
        assert_eq!(open("above = 1.0", "a over b", Basis::Pairs(10), [1.1, 1.2, 1.3]), None, "decided");
        assert_eq!(open("", "a over b", Basis::Pairs(10), [0.9, 1.1, 1.3]), None, "nothing is claimed");
    }
}
