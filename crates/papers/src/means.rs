//! Geometric means of comparisons over programs.

use heaptoll_statistics::{FEWEST_PAIRS, student};

use super::company::{self, Series, SeriesInterval};
use super::effect::{Basis, Effect};
use super::known::{FINITE, Known, WIDEST};
use super::measured::{MOVED, Measured, groups};

/// One mean over programs a pair of managers and place, and what has too few runs to be in it.
pub(super) fn means(measured: &[Measured<'_>]) -> (Vec<Effect>, Vec<String>) {
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
    // Of one or two programs: means within each repetition, all of them at once.
    let repeated: Vec<Option<Series>> = groups.iter().map(|(_, group)| by_repetition(group)).collect();
    let mut intervals = company::intervals(&repeated.iter().flatten().collect::<Vec<_>>()).into_iter();
    let mut effects = Vec::new();
    for ((sides, group), repeated) in groups.iter().zip(repeated) {
        let (bounds, group): (Vec<&Measured<'_>>, Vec<&Measured<'_>>) =
            group.iter().copied().partition(|one| one.is_bound && group.len() > 1);
        let interval = repeated.and_then(|_| intervals.next().flatten());
        let mut words = match group.as_slice() {
            [one] => one.effect.words.clone(),
            several => format!("{sides}, mean of {}", heaptoll_units::plural(several.len(), "program")),
        };
        if group.len() == 2 && interval.as_ref().is_some_and(|found| found.moved) {
            words += MOVED;
        }
        let whole = group.iter().map(|one| &one.effect).collect::<Vec<_>>();
        let at_once = group.iter().any(|one| one.at_once);
        let known =
            over(&whole, at_once, family, interval).map(|known| with_bounds(known, group.len(), &bounds));
        if let Some(known) = known {
            if !bounds.is_empty() {
                words += &format!(" and {}", heaptoll_units::plural(bounds.len(), "bound"));
            }
            let Known { value, low, high, basis } = known;
            effects.push(Effect { words, value, low, high, basis });
        }
    }
    (effects, thin)
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

/// The log ratios' means by repetition of one or two programs.
fn by_repetition(group: &[&Measured<'_>]) -> Option<Series> {
    if group.len() > 2 {
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
    if programs.len() >= 3 {
        let values: Vec<f64> = programs.iter().map(|effect| to(effect.value)).collect();
        let (mean, half) = student::mean(&values, family)?;
        // The widest that still prints: a factor of a million either way.
        let half = if geometric { half.min(WIDEST) } else { half };
        let basis = Basis::Programs(programs.len() as u32);
        let known = Known { value: from(mean), low: from(mean - half), high: from(mean + half), basis };
        return Some(if at_once && geometric { company::allowed_for(known) } else { known });
    }
    if let Some(found) = interval.filter(|found| found.pairs as usize >= FEWEST_PAIRS) {
        return Some(found.known());
    }
    // Intervals that hold together: the mean lies between the means of their ends.
    Some(Known { value, low: average(&|effect| effect.low), high: average(&|effect| effect.high), basis })
}
