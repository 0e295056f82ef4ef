//! Geometric means of comparisons over programs.

use heaptoll_statistics::{FEWEST_PAIRS, median, median_interval, student};
use heaptoll_units::plural;

use super::company::{self, Series, SeriesInterval};
use super::definition::Estimand;
use super::effect::Effect;
use super::measured::{MOVED, Measured, groups};
use heaptoll_facts::{Basis, FINITE, Known, WIDEST};

/// A mean over programs.
pub(super) struct Mean {
    pub effect: Effect,
    /// How many programs have a figure in it; bounds are apart.
    pub programs: usize,
}

/// Of what means are stated, and whether they are to be more or less than 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stated {
    pub estimand: Estimand,
    pub is_order: bool,
}

impl Stated {
    /// What is formed over this number of programs.
    fn noun(self, programs: usize) -> &'static str {
        let over_others = self.estimand == Estimand::ProgramsLikeThese && programs >= 3;
        if self.is_order && over_others { "median" } else { "mean" }
    }
}

/// One mean over programs a pair of managers and place, and what has too few runs to be in it.
pub(super) fn means(measured: &[Measured<'_>], stated: Stated) -> (Vec<Mean>, Vec<String>) {
    let mut groups = groups(measured, true);
    let mut thin = Vec::new();
    for (_, group) in &mut groups {
        // A program with too few runs has no interval, and would leave the mean without one.
        let has_interval = |one: &&Measured<'_>| one.effect.basis != Basis::None;
        if group.iter().any(has_interval) {
            thin.extend(group.iter().filter(|one| !has_interval(one)).map(|one| one.effect.words.clone()));
            group.retain(has_interval);
        }
    }
    let family = groups.len();
    let split = groups.into_iter().map(|(sides, group)| {
        let several = group.len() > 1;
        let (bounds, group): (Vec<_>, Vec<_>) = group.into_iter().partition(|one| one.is_bound && several);
        // Means within each repetition, all of them at once.
        let repeated = by_repetition(&group, stated.estimand);
        (sides, bounds, group, repeated)
    });
    let split: Vec<_> = split.collect();
    let repeated: Vec<&Series> = split.iter().filter_map(|(.., repeated)| repeated.as_ref()).collect();
    let mut intervals = company::intervals(&repeated).into_iter();
    let mut means = Vec::new();
    for (sides, bounds, group, repeated) in &split {
        let interval = repeated.as_ref().and_then(|_| intervals.next().flatten());
        let mut words = match group.as_slice() {
            [one] => one.effect.words.clone(),
            several => {
                format!("{sides}, {} of {}", stated.noun(several.len()), plural(several.len(), "program"))
            }
        };
        if group.len() > 1 && interval.as_ref().is_some_and(|found| found.moved) {
            words += MOVED;
        }
        let whole = group.iter().map(|one| &one.effect).collect::<Vec<_>>();
        let at_once = group.iter().any(|one| one.at_once);
        let known = over(&whole, at_once, family, stated, interval);
        if let Some(known) = known.map(|known| with_bounds(known, group.len(), bounds)) {
            if !bounds.is_empty() {
                words += &format!(" and {}", plural(bounds.len(), "bound"));
            }
            if stated.is_order && group.len() > 1 {
                let above = group.iter().chain(bounds).filter(|one| one.effect.value > 1.0).count();
                words += &format!(", above 1 on {above} of {}", group.len() + bounds.len());
            }
            let Known { value, low, high, basis } = known;
            means.push(Mean { effect: Effect { words, value, low, high, basis }, programs: group.len() });
        }
    }
    (means, thin)
}

/// A geometric mean with programs of which only a bound is known, for their runs were killed at the time limit: the
/// others have their interval, and a bound moves that one of its ends which it is known to move, as far as it is known to.
fn with_bounds(known: Known, others: usize, bounds: &[&Measured<'_>]) -> Known {
    if bounds.is_empty() || known.basis == Basis::None || known.low <= 0.0 {
        return known;
    }
    let all = (others + bounds.len()) as f64;
    let with = |of: f64, end: &dyn Fn(&Effect) -> f64| {
        let logs: f64 = bounds.iter().map(|one| end(&one.effect).ln().clamp(-FINITE, FINITE)).sum();
        ((of.ln() * others as f64 + logs) / all).exp()
    };
    Known {
        value: with(known.value, &|effect| effect.value),
        low: with(known.low, &|effect| effect.low),
        high: with(known.high, &|effect| effect.high),
        basis: known.basis,
    }
}

/// The means of log ratios by repetition: of the programs measured, or where they are too few for a mean over others.
fn by_repetition(group: &[&Measured<'_>], estimand: Estimand) -> Option<Series> {
    if group.len() > 2 && estimand == Estimand::ProgramsLikeThese {
        return None;
    }
    let series: Option<Vec<&Series>> = group.iter().map(|one| one.series.as_ref()).collect();
    Series::mean(&series?)
}

/// A mean over programs. Geometric; arithmetic where a figure is not positive.
fn over(
    programs: &[&Effect],
    at_once: bool,
    family: usize,
    stated: Stated,
    interval: Option<SeriesInterval>,
) -> Option<Known> {
    let geometric = programs.iter().all(|effect| effect.value > 0.0 && effect.low >= 0.0);
    let to = |value: f64| if geometric { value.ln().clamp(-FINITE, FINITE) } else { value };
    let from = |value: f64| if geometric { value.exp() } else { value };
    let average = |of: &dyn Fn(&Effect) -> f64| {
        from(programs.iter().map(|effect| to(of(effect))).sum::<f64>() / programs.len() as f64)
    };
    if let [one] = programs {
        return Some(Known { value: one.value, low: one.low, high: one.high, basis: one.basis });
    }
    let basis = Basis::weakest(programs.iter().map(|effect| effect.basis));
    let value = average(&|effect| effect.value);
    if programs.is_empty() || basis == Basis::None {
        return (!programs.is_empty()).then(|| Known::alone(value));
    }
    if programs.len() >= 3 && stated.estimand == Estimand::ProgramsLikeThese {
        let values: Vec<f64> = programs.iter().map(|effect| to(effect.value)).collect();
        // The widest that still prints: a factor of a million either way.
        let widest = if geometric { WIDEST } else { f64::INFINITY };
        let basis = Basis::Programs(programs.len() as u32);
        let known = if stated.is_order {
            let middle = median(&values);
            let Some((low, high)) = median_interval(&values, family) else {
                return Some(Known::alone(from(middle)));
            };
            let (low, high) = (low.max(middle - widest), high.min(middle + widest));
            Known { value: from(middle), low: from(low), high: from(high), basis }
        } else {
            let (mean, half) = student::mean(&values, family)?;
            let half = half.min(widest);
            Known { value: from(mean), low: from(mean - half), high: from(mean + half), basis }
        };
        return Some(if at_once && geometric { company::allowed_for(known) } else { known });
    }
    if let Some(found) = interval.filter(|found| found.pairs as usize >= FEWEST_PAIRS) {
        return Some(found.known());
    }
    // Programs are measured apart, so that their errors add up as those of independent figures do.
    let half = |of: &dyn Fn(&Effect) -> f64| {
        let squares: f64 = programs.iter().map(|effect| (to(of(effect)) - to(effect.value)).powi(2)).sum();
        squares.sqrt() / programs.len() as f64
    };
    let low = from(to(value) - half(&|effect| effect.low));
    Some(Known { value, low, high: from(to(value) + half(&|effect| effect.high)), basis })
}
