//! How figures grow with their place: slopes of log figure over log place.

use heaptoll_statistics::{FEWEST_PAIRS, student};

use super::effect::Effect;
use super::measured::{Measured, groups};
use super::variant::numbered;
use heaptoll_facts::{Basis, Known, Value};

/// Slopes of log figure over log place: over programs when there are three, else of each program. And the comparisons
/// that have no logarithm.
pub(super) fn trends(measured: &[Measured<'_>]) -> (Vec<Effect>, Vec<String>) {
    let mut none = Vec::new();
    type Points<'v> = (String, Vec<(f64, f64)>, bool, Vec<(f64, &'v [Option<f64>])>);
    let mut lines: Vec<(String, Vec<Points<'_>>)> = Vec::new();
    for (sides, group) in groups(measured, false) {
        let mut programs: Vec<Points<'_>> = Vec::new();
        for one in group {
            let compared = &one.compared;
            let (program, at) = match compared.at {
                Some(at) => (compared.program.as_str(), at),
                None => match numbered(&compared.program) {
                    Some(place) => place,
                    None => continue,
                },
            };
            if at <= 0.0 || one.effect.value <= 0.0 {
                none.push(one.effect.words.clone());
                continue;
            }
            let line = match programs.iter_mut().position(|line| line.0 == program) {
                Some(number) => &mut programs[number],
                None => {
                    programs.push((program.to_owned(), Vec::new(), true, Vec::new()));
                    let last = programs.len() - 1;
                    &mut programs[last]
                }
            };
            line.1.push((at.ln(), one.effect.value.ln()));
            line.2 &= one.effect.basis != Basis::None;
            if let (Value::Samples(samples), None) = (compared.of.value, &compared.over) {
                line.3.push((at.ln(), samples));
            }
        }
        lines.push((sides, programs));
    }
    // One line that has no slope leaves fewer than three, and then each is an interval of its own.
    for (_, programs) in &mut lines {
        programs.retain(|line| student::slope(&line.1, 1).is_some());
    }
    let family = lines.iter().map(|(_, programs)| if programs.len() >= 3 { 1 } else { programs.len() }).sum();
    let mut effects = Vec::new();
    for (sides, programs) in lines {
        let slopes: Vec<(&Points<'_>, f64, Option<f64>)> = programs
            .iter()
            .filter_map(|line| student::slope(&line.1, family).map(|(slope, half)| (line, slope, half)))
            .collect();
        let sure = slopes.iter().all(|(line, _, _)| line.2);
        let effect = |words: String, known: Known| {
            let Known { value, low, high, basis } = known;
            Effect { words, value, low, high, basis }
        };
        let spread = |value: f64, half: Option<f64>, basis: Basis| match half {
            Some(half) if sure => Known { value, low: value - half, high: value + half, basis },
            _ => Known::alone(value),
        };
        if slopes.len() >= 3 {
            let values: Vec<f64> = slopes.iter().map(|(_, slope, _)| *slope).collect();
            if let Some((mean, half)) = student::mean(&values, family) {
                let words =
                    format!("slope of {sides}, mean of {}", heaptoll_units::plural(slopes.len(), "program"));
                effects.push(effect(words, spread(mean, Some(half), Basis::Programs(slopes.len() as u32))));
            }
            continue;
        }
        for (line, slope, half) in slopes {
            let repeated = if line.3.len() == line.1.len() { by_repetition(&line.3) } else { Vec::new() };
            if repeated.len() >= FEWEST_PAIRS
                && let Some((mean, half)) = student::mean(&repeated, family)
            {
                let words = format!("slope of {sides} on {}", line.0);
                effects.push(effect(words, spread(mean, Some(half), Basis::Pairs(repeated.len() as u32))));
                continue;
            }
            let words = format!("slope of {sides} on {} over {} places", line.0, line.1.len());
            effects.push(effect(words, spread(slope, half, Basis::Points(line.1.len() as u32))));
        }
    }
    (effects, none)
}

/// The slope in each repetition that has a figure at every place: a line that bends has one slope all the same, and its
/// repetitions show how well that one is known.
fn by_repetition(points: &[(f64, &[Option<f64>])]) -> Vec<f64> {
    let repetitions = points.iter().map(|(_, samples)| samples.len()).min().unwrap_or_default();
    let line = |repetition: usize| -> Option<Vec<(f64, f64)>> {
        let log = |value: f64| (value.is_finite() && value > 0.0).then(|| value.ln());
        points.iter().map(|(at, samples)| Some((*at, log(samples[repetition]?)?))).collect()
    };
    (0..repetitions).filter_map(|repetition| Some(student::slope(&line(repetition)?, 1)?.0)).collect()
}
