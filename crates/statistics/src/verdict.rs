//! What ratios show, in the words of every table, page and message. A difference is stated only where its interval excludes 1.

use heaptoll_units::percent_off;

use crate::{FEWEST_PAIRS, Interval};

/// Of a ratio with fewer pairs than an interval needs.
pub const TOO_FEW: &str = "too few repetitions";
/// Of an interval that holds 1.
pub const NO_DIFFERENCE: &str = "no difference detected";
/// Of an interval that holds the limit or the claim that it is compared with.
pub const NOT_DECIDED: &str = "not decided";

impl Interval {
    /// Whether it is one: of fewer pairs it is the range of their ratios, which shows nothing about 1.
    pub fn has_enough_pairs(&self) -> bool {
        self.pairs as usize >= FEWEST_PAIRS
    }
}

/// The difference that a ratio shows: `9.0 % less CPU`, `1.6x the memory`, or none.
pub fn claim(ratio: &Interval, noun: &str) -> Option<String> {
    if !ratio.differs || !ratio.ratio.is_finite() {
        return None;
    }
    Some(match ratio.ratio {
        ratio if ratio >= 1.5 => format!("{ratio:.1}x the {noun}"),
        ratio if ratio > 1.0 => format!("{} more {noun}", percent_off(ratio)),
        ratio => format!("{} less {noun}", percent_off(ratio)),
    })
}

/// What ratios of one comparison show, each with its noun and judged by its own pairs: the differences; before them that the
/// first ratio shows none; and where no ratio shows one, whether all had enough pairs to. A ratio is `None` where there
/// were too few pairs for it.
pub fn verdict(ratios: &[(Option<Interval>, &str)]) -> String {
    let claims: Vec<String> =
        ratios.iter().filter_map(|(ratio, noun)| claim(ratio.as_ref()?, noun)).collect();
    let is_enough = |(ratio, _): &(Option<Interval>, &str)| ratio.is_some_and(|one| one.has_enough_pairs());
    if claims.is_empty() {
        return if ratios.iter().all(is_enough) { NO_DIFFERENCE } else { TOO_FEW }.to_owned();
    }
    let first = ratios.first().filter(|(ratio, noun)| ratio.and_then(|ratio| claim(&ratio, noun)).is_none());
    let first = first.map(|first| match is_enough(first) {
        true => format!("no {} difference detected", first.1),
        false => format!("{TOO_FEW} for {}", first.1),
    });
    first.into_iter().chain(claims).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ALPHA, paired};

    fn around(ratio: f64, low: f64, high: f64) -> Interval {
        Interval { ratio, low, high, differs: low > 1.0 || high < 1.0, pairs: 10 }
    }

    /// What pairs of these ratios show.
    fn shown(ratios: &[f64]) -> String {
        let logs = ratios.iter().map(|ratio| Some(ratio.ln())).collect();
        verdict(&[(paired(&[logs], ALPHA, 1)[0], "CPU")])
    }

    #[test]
    fn a_claim_is_worded_by_its_size_and_direction() {
        assert_eq!(claim(&around(0.91, 0.88, 0.94), "CPU").as_deref(), Some("9.0 % less CPU"));
        assert_eq!(claim(&around(1.56, 1.5, 1.6), "memory").as_deref(), Some("1.6x the memory"));
        assert_eq!(claim(&around(1.06, 1.02, 1.1), "CPU").as_deref(), Some("6.0 % more CPU"));
        assert_eq!(claim(&around(1.06, 0.98, 1.1), "CPU"), None);
    }

    /// The means of an interrupted run were "no difference seen" next to .93 (.93 to .94).
    #[test]
    fn too_few_pairs_never_show_that_there_is_no_difference() {
        let ratios = [0.93, 0.94, 0.93, 0.94, 0.93, 0.94];
        for pairs in 0..FEWEST_PAIRS {
            assert_eq!(shown(&ratios[..pairs]), TOO_FEW, "{pairs}");
            assert_eq!(shown(&vec![1.0; pairs]), TOO_FEW, "{pairs} that are equal");
        }
        assert_eq!(shown(&ratios), "6.5 % less CPU");
        assert_eq!(shown(&[1.0; FEWEST_PAIRS]), NO_DIFFERENCE);
        assert_eq!(shown(&[2.0; FEWEST_PAIRS]), "2.0x the CPU");
        assert_eq!(shown(&[0.9, 1.1, 0.95, 1.05, 1.0, 1.0]), NO_DIFFERENCE);
    }

    #[test]
    fn what_one_ratio_cannot_show_the_other_does_not_deny() {
        let (same, few) = (Some(around(1.0, 0.9, 1.1)), Some(Interval { pairs: 5, ..around(1.0, 0.9, 1.1) }));
        for other in [few, None] {
            assert_eq!(verdict(&[(same, "CPU"), (other, "memory")]), TOO_FEW);
        }
        assert_eq!(verdict(&[(same, "CPU"), (same, "memory")]), NO_DIFFERENCE);
    }

    /// An interrupted run had its memory judged where its CPU time had too few pairs, and did not state that.
    #[test]
    fn a_difference_in_the_second_ratio_alone_names_the_state_of_the_first() {
        let (same, more) = (Some(around(1.0, 0.9, 1.1)), Some(around(2.0, 1.8, 2.2)));
        let few = Some(Interval { pairs: 5, ..around(1.0, 0.9, 1.1) });
        let shown = |cpu, memory| verdict(&[(cpu, "CPU"), (memory, "memory")]);
        assert_eq!(shown(few, more), "too few repetitions for CPU, 2.0x the memory");
        assert_eq!(shown(None, more), "too few repetitions for CPU, 2.0x the memory");
        assert_eq!(shown(same, more), "no CPU difference detected, 2.0x the memory");
        assert_eq!(shown(more, few), "2.0x the CPU");
    }

    #[test]
    fn a_ratio_has_one_state_which_json_has_too() {
        let few = Interval { pairs: 5, ..around(0.5, 0.4, 0.6) };
        for (interval, state) in [
            (around(0.9, 0.8, 0.95), "less"),
            (around(1.1, 1.05, 1.2), "more"),
            (around(1.0, 0.9, 1.1), "none"),
            (few, "too_few"),
        ] {
            let json = serde_json::to_value(interval).expect("it is JSON");
            assert_eq!(json["state"], state);
            assert_eq!(serde_json::from_value::<Interval>(json).expect("it is read again"), interval);
        }
    }
}
