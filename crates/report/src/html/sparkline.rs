//! Intervals as a small drawing in a line of text: where each comparison lies, and where it would support the claim.
//! Plain SVG, so that it is there before any script and on paper.

use crate::document::{Effect, Region};

/// Width of a drawing.
const WIDTH: f64 = 150.0;
/// Space at each end, for dots and arrows.
const EDGE: f64 = 5.0;
/// Height of a drawing with one comparison.
const LINE: f64 = 14.0;
/// More comparisons than this are a table's matter.
const MOST: usize = 48;
/// An interval that is longer than this many times what the values span is cut.
const REACH: f64 = 1.0;

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sparkline {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Where the claim's region is: left end and width.
    pub regions: Vec<(f64, f64)>,
    /// Where nothing differs.
    pub one: Option<f64>,
    /// One a comparison.
    pub marks: Vec<Mark>,
    /// What is drawn, for those who do not see it.
    pub label: String,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    /// Height at which it stands.
    pub y: f64,
    /// Ends of the interval.
    pub ends: Option<(f64, f64)>,
    /// The value.
    pub x: f64,
    /// Size of its dot.
    pub radius: f64,
    /// `sure` where the whole interval is on one side of the region's ends, `open` where not.
    pub class: &'static str,
}

/// The scale that drawings of one test share.
pub(super) struct Scale {
    region: Region,
    log: bool,
    low: f64,
    high: f64,
}

impl Scale {
    /// A scale for these comparisons, the ends of the region and, of ratios, 1; `None` without a value.
    pub fn around(effects: &[Effect], region: Region) -> Option<Scale> {
        let values = || effects.iter().map(|effect| effect.value).filter(|value| value.is_finite());
        values().next()?;
        let log = !region.even
            && values().all(|value| value > 0.0)
            && region.above.into_iter().chain(region.below).all(|end| end > 0.0);
        let place = |value: f64| if log { value.ln() } else { value };
        let fixed = region.above.into_iter().chain(region.below).chain((!region.even).then_some(1.0));
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values().chain(fixed).map(place) {
            (low, high) = (low.min(value), high.max(value));
        }
        // Intervals widen it, within reason.
        let least = if log { 0.05 } else { 0.05 * low.abs().max(high.abs()).max(1e-9) };
        let span = (high - low).max(least);
        let (lowest, highest) = (low - REACH * span, high + REACH * span);
        let ends = effects.iter().filter_map(|effect| effect.ends);
        for (from, to) in ends {
            let from = if log && from <= 0.0 { lowest } else { place(from) };
            (low, high) = (low.min(from.max(lowest)), high.max(place(to).min(highest)));
        }
        let margin = 0.06 * (high - low).max(least);
        Some(Scale { region, log, low: low - margin, high: high + margin })
    }

    /// A place across; ends that lie outside are put at the edge.
    fn x(&self, value: f64) -> f64 {
        let place = match self.log {
            true if value <= 0.0 => self.low,
            true => value.ln(),
            false => value,
        };
        let share = ((place - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        rounded(EDGE + share * (WIDTH - 2.0 * EDGE))
    }

    fn regions(&self) -> Vec<(f64, f64)> {
        let Region { above, below, outside, .. } = self.region;
        let spans = match (above, below) {
            (None, None) => vec![],
            (Some(above), Some(below)) if outside => {
                vec![(0.0, self.x(below)), (self.x(above), WIDTH)]
            }
            (above, below) => {
                vec![(above.map_or(0.0, |end| self.x(end)), below.map_or(WIDTH, |end| self.x(end)))]
            }
        };
        let spans = spans.into_iter().map(|(from, to)| (from, rounded((to - from).max(0.0))));
        spans.collect()
    }

    /// All of them above each other, the smallest on top; `None` where they are too many.
    pub fn all(&self, effects: &[Effect]) -> Option<Sparkline> {
        let mut drawn: Vec<&Effect> = effects.iter().filter(|effect| effect.value.is_finite()).collect();
        drawn.sort_by(|a, b| a.value.total_cmp(&b.value));
        let height = match drawn.len() {
            0 => return None,
            n if n > MOST => return None,
            1 => LINE,
            n => (6.0 * n as f64 + 4.0).clamp(LINE, 52.0),
        };
        let label = match drawn[..] {
            [one] => format!("{} {}", one.text, one.range),
            _ => format!("{} comparisons", drawn.len()),
        };
        Some(self.sparkline(&drawn, height, label))
    }

    fn sparkline(&self, effects: &[&Effect], height: f64, label: String) -> Sparkline {
        let step = height / effects.len().max(1) as f64;
        let marks = effects.iter().enumerate().map(|(at, effect)| Mark {
            y: rounded(step * (at as f64 + 0.5)),
            ends: effect.ends.map(|(from, to)| (self.x(from), self.x(to))),
            x: self.x(effect.value),
            radius: if effects.len() == 1 { 3.2 } else { rounded((0.38 * step).clamp(1.1, 2.6)) },
            class: if self.sure(effect) { "sure" } else { "open" },
        });
        Sparkline {
            width: WIDTH,
            height: rounded(height),
            regions: self.regions(),
            one: (!self.region.even).then(|| self.x(1.0)),
            marks: marks.collect(),
            label: label.trim().to_owned(),
        }
    }

    /// Whether the interval crosses no end of the region. An effect without an interval is sure of nothing.
    fn sure(&self, effect: &Effect) -> bool {
        let Some((low, high)) = effect.ends else { return false };
        let crosses = |end: &f64| low <= *end && *end <= high;
        !self.region.above.iter().chain(&self.region.below).any(crosses)
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(value: f64, low: f64, high: f64) -> Effect {
        Effect { value, ends: Some((low, high)), text: value.to_string(), ..Effect::default() }
    }

    fn above(end: f64) -> Region {
        Region { above: Some(end), ..Region::default() }
    }

    #[test]
    fn what_is_above_lies_in_the_region_and_what_crosses_its_end_is_open() {
        let effects = [effect(2.0, 1.5, 2.5), effect(1.1, 0.9, 1.3), effect(0.5, 0.4, 0.6)];
        let scale = Scale::around(&effects, above(1.0)).expect("values");
        let sparkline = scale.all(&effects).expect("three marks");
        let (from, width) = sparkline.regions[0];
        assert_eq!(Some(from), sparkline.one);
        assert!((from + width - WIDTH).abs() < 0.2);
        let classes: Vec<&str> = sparkline.marks.iter().map(|mark| mark.class).collect();
        assert_eq!(classes, ["sure", "open", "sure"], "sorted by value");
        assert!(
            sparkline.marks[2].ends.expect("ends").0 > from
                && sparkline.marks[0].ends.expect("ends").1 < from
        );
        assert!(sparkline.marks.is_sorted_by(|a, b| a.y < b.y && a.x <= b.x));
    }

    #[test]
    fn it_depends_means_both_sides() {
        let region = Region { above: Some(1.1), below: Some(0.9), outside: true, even: false };
        let scale = Scale::around(&[effect(1.0, 0.5, 2.0)], region).expect("a value");
        assert_eq!(scale.regions().len(), 2);
        let between = Region { outside: false, above: Some(0.9), below: Some(1.1), even: false };
        let scale = Scale::around(&[effect(1.0, 0.5, 2.0)], between).expect("a value");
        assert_eq!(scale.regions().len(), 1);
    }

    #[test]
    fn endless_and_absent_intervals_stay_on_the_drawing() {
        let mut effects = vec![effect(1.2, 0.0, f64::INFINITY), effect(1.1, 1e-30, 1e30)];
        effects.push(Effect { value: 1.3, ends: None, ..Effect::default() });
        let scale = Scale::around(&effects, above(1.0)).expect("values");
        for mark in scale.all(&effects).expect("marks").marks {
            let (from, to) = mark.ends.unwrap_or((mark.x, mark.x));
            assert!(
                (0.0..=WIDTH).contains(&from) && (0.0..=WIDTH).contains(&to) && from <= mark.x,
                "{mark:?}"
            );
        }
        assert!(effects.iter().all(|effect| !scale.sure(effect)));
    }

    #[test]
    fn slopes_are_drawn_on_an_even_scale() {
        let even = Region { above: None, below: Some(0.1), outside: false, even: true };
        let effects = [effect(-0.02, -0.1, 0.06)];
        let scale = Scale::around(&effects, even).expect("a value");
        let sparkline = scale.all(&effects).expect("a sparkline");
        assert_eq!(sparkline.one, None);
        assert_eq!(sparkline.marks[0].class, "sure");
        assert!(Scale::around(&[], even).is_none());
        assert!(Scale::around(&[effect(f64::NAN, 0.0, 1.0)], even).is_none());
    }

    #[test]
    fn a_crowd_is_not_drawn() {
        let crowd: Vec<Effect> = (0..=MOST).map(|_| effect(1.0, 0.9, 1.1)).collect();
        assert!(Scale::around(&crowd, above(1.0)).expect("values").all(&crowd).is_none());
    }
}
