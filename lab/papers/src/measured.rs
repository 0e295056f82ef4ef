//! Comparisons with their intervals, one by one; intervals of repetitions hold together.

use std::collections::BTreeMap;

use heaptoll_statistics::FEWEST_PAIRS;

use super::company::{self, Series};
use super::definition::Against;
use super::effect::Effect;
use super::pairs::{CellRef, Compared};
use heaptoll_facts::{Basis, Known, Value};

/// After the words of a comparison whose interval reaches over both ways of measuring.
pub(super) const MOVED: &str = ", in lockstep and in separate runs";

/// A comparison with its interval.
pub(super) struct Measured<'a> {
    pub compared: Compared<'a>,
    /// The sides as means name them.
    pub sides: String,
    pub effect: Effect,
    /// Log ratios by repetition, where there are any.
    pub series: Option<Series>,
    /// Whether runs at once with others gave one of its figures.
    pub at_once: bool,
    /// Whether one of its figures is a bound, for each run was killed.
    pub is_bound: bool,
}

/// Whether a comparison rests on a bound.
fn is_bound(compared: &Compared<'_>) -> bool {
    let bound = |place: &CellRef<'_>| matches!(place.value, Value::AtLeast(_));
    bound(&compared.of) || compared.over.as_ref().is_some_and(bound)
}

/// Whether some repetition has both figures and no ratio, for one of them is none.
fn lacks_ratio(compared: &Compared<'_>) -> bool {
    let (Value::Samples(of), Some(Value::Samples(over))) =
        (compared.of.value, compared.over.map(|over| over.value))
    else {
        return false;
    };
    of.iter().zip(over).any(|pair| matches!(pair, (Some(of), Some(over)) if *of <= 0.0 || *over <= 0.0))
}

/// Comparisons with their intervals.
pub(super) fn measure(compared: Vec<Compared<'_>>) -> Vec<Measured<'_>> {
    let samples = |place: &CellRef<'_>| matches!(place.value, Value::Samples(_));
    let all: Vec<Option<Series>> =
        compared.iter().map(|one| Series::of(&one.of, one.over.as_ref()?)).collect();
    let family: Vec<&Series> = all.iter().flatten().collect();
    let plain = compared.iter().filter(|one| samples(&one.of)).count() - family.len();
    let mut intervals = company::intervals(&family).into_iter();
    let mut measured = Vec::new();
    for (compared, series) in compared.into_iter().zip(all) {
        let mut words = compared.label();
        let known = match &series {
            Some(series) => match intervals.next().flatten() {
                // Pairs with a figure of none have no ratio: without them an interval would be of the others alone.
                Some(found) if found.pairs as usize >= FEWEST_PAIRS && !lacks_ratio(&compared) => {
                    if found.moved {
                        words += MOVED;
                    }
                    Some(found.known())
                }
                Some(found) => Some(Known::alone(found.ratio)),
                None => series.first().map(|one| Known::alone(one.exp())),
            },
            None => {
                let known = Known::of(compared.of.value, plain);
                match &compared.over {
                    None => known,
                    Some(over) => known.and_then(|known| known.over(&Known::of(over.value, plain)?)),
                }
            }
        };
        let Some(Known { value, low, high, basis }) = known else { continue };
        let effect = Effect { words, value, low, high, basis };
        let at_once = series.as_ref().is_some_and(Series::is_at_once);
        let is_bound = is_bound(&compared);
        measured.push(Measured { sides: compared.sides(), compared, effect, series, at_once, is_bound });
    }
    measured
}

/// Where the least (or the most) of several denominators counts, the comparisons with them become one.
///
/// Over the least is the largest of the ratios, and so are the ends of its interval: as the intervals hold together,
/// it lies between them whichever manager is the least in truth.
pub(super) fn against(against: Against, measured: Vec<Measured<'_>>) -> Vec<Measured<'_>> {
    let (word, largest) = match against {
        Against::Each => return measured,
        Against::Lowest => ("least", true),
        Against::Highest => ("most", false),
    };
    let mut groups: BTreeMap<(String, String, String), Vec<Measured<'_>>> = BTreeMap::new();
    let mut order = Vec::new();
    for one in measured {
        let of = &one.compared.of;
        let key = (of.program.to_owned(), of.manager.to_owned(), one.compared.place.clone());
        if !groups.contains_key(&key) {
            order.push(key.clone());
        }
        groups.entry(key).or_default().push(one);
    }
    // Means are over programs, and one that lacks a manager is of the same mean.
    let of = groups.values().map(Vec::len).max().unwrap_or_default();
    order
        .into_iter()
        .filter_map(|key| {
            let group = groups.remove(&key)?;
            let ends = |of: &dyn Fn(&Effect) -> f64| {
                let values = group.iter().map(|one| of(&one.effect));
                if largest {
                    values.fold(f64::NEG_INFINITY, f64::max)
                } else {
                    values.fold(f64::INFINITY, f64::min)
                }
            };
            let (value, low, high) = (ends(&|e| e.value), ends(&|e| e.low), ends(&|e| e.high));
            let basis = Basis::weakest(group.iter().map(|one| one.effect.basis));
            let managers = group.len();
            let at_once = group.iter().any(|one| one.at_once);
            let is_bound = group.iter().any(|one| one.is_bound);
            let first = group.into_iter().next()?;
            let over = |managers: usize| {
                format!("{} over the {word} of {}", key.1, heaptoll_units::plural(managers, "manager"))
            };
            let place = if key.2.is_empty() { String::new() } else { format!(" {}", key.2) };
            let words = format!("{} on {}{place}", over(managers), first.compared.program);
            let sides = over(of);
            let (low, high) = if basis == Basis::None { (value, value) } else { (low, high) };
            let effect = Effect { words, value, low, high, basis };
            Some(Measured { compared: first.compared, sides, effect, series: None, at_once, is_bound })
        })
        .collect()
}

/// Comparisons by what is common to all programs: sides and place, in the order met.
pub(super) fn groups<'m, 'a>(
    measured: &'m [Measured<'a>],
    with_place: bool,
) -> Vec<(String, Vec<&'m Measured<'a>>)> {
    let mut groups: Vec<(String, Vec<&Measured<'_>>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for one in measured {
        let place = if with_place && !one.compared.place.is_empty() {
            format!(" {}", one.compared.place)
        } else {
            String::new()
        };
        let name = format!("{}{place}", one.sides);
        let number = *places.entry(name.clone()).or_insert_with(|| {
            groups.push((name, Vec::new()));
            groups.len() - 1
        });
        groups[number].1.push(one);
    }
    groups
}
