//! Lines over a place (bytes of memory, of a quarantine, or the number in a program's variant).

use super::body::{Body, Ours, Pair, interval, ours};
use super::originals::THE_PAPERS_OWN;
use super::source::Source;
use crate::definition::Step;
use crate::measured::measure;
use crate::pairs::{CellRef, Compared, Index, same_place};
use crate::variant::numbered;
use heaptoll_facts::Basis;

/// A line's name and its cells by place.
struct Curve<'a> {
    program: String,
    manager: &'a str,
    points: Vec<(f64, CellRef<'a>)>,
}

/// The cells of a program under a manager by place; those of its numbered variants where it has none of its own.
fn points<'a>(index: &Index<'a>, metric: &str, program: &str, manager: &str) -> Vec<(f64, CellRef<'a>)> {
    let own: Vec<(f64, CellRef<'a>)> = index
        .places(metric, program, manager)
        .iter()
        .filter_map(|(at, place)| Some(((*at)?, *place)))
        .collect();
    if !own.is_empty() {
        return own;
    }
    let variant =
        |name: &&'a str| numbered(name).filter(|(base, _)| *base == program).map(|(_, at)| (*name, at));
    index
        .programs
        .iter()
        .filter_map(variant)
        .filter_map(|(name, at)| index.places(metric, name, manager).first().map(|(_, place)| (at, *place)))
        .collect()
}

/// Programs of the step, those of numbered variants once and without the number.
fn programs(step: &Step, index: &Index<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let of_step = step.programs.iter().map(String::as_str);
    for program in index.programs.iter().copied().chain(of_step) {
        let base = numbered(program).map_or(program, |(base, _)| base);
        if !names.iter().any(|name| name == base) {
            names.push(base.to_owned());
        }
    }
    names
}

/// The managers shown: those named, those of the step, or those that its command chose by itself.
pub(super) fn managers(step: &Step, index: &Index<'_>, named: &[String]) -> Vec<String> {
    match (named, step.managers.as_slice()) {
        ([], []) => index.managers.iter().map(|name| name.to_string()).collect(),
        ([], of_step) => of_step.to_vec(),
        (named, _) => named.to_vec(),
    }
}

/// A line a manager for the one program, or a line a program.
pub(super) fn lines(source: &Source<'_>) -> (Body, Vec<String>) {
    let Source { study, exhibit, figures, absent } = source;
    let mut notes = Vec::new();
    let mut series = Vec::new();
    if let Some(step) = study.step(&exhibit.step) {
        let index = Index::of(step, figures);
        let managers = managers(step, &index, &exhibit.managers);
        let programs = match (&exhibit.program, exhibit.programs.as_slice()) {
            (Some(program), _) => vec![program.clone()],
            (None, []) => programs(step, &index),
            (None, named) => named.to_vec(),
        };
        let mut found = Vec::new();
        let mut without = Vec::new();
        for program in &programs {
            for manager in &managers {
                let points = points(&index, &exhibit.metric, program, manager);
                let own = step.originals.get(program).map_or("", |_| THE_PAPERS_OWN);
                let name = match (programs.len(), managers.len()) {
                    (1, _) => manager.clone(),
                    (_, 1) => format!("{program}{own}"),
                    _ => format!("{program}{own} under {manager}"),
                };
                if points.is_empty() {
                    let why = absent.of_cell(&step.id, program, manager).unwrap_or("not run in this form");
                    if absent.of_step(&step.id).is_none() {
                        without.push((why.to_owned(), name));
                    }
                } else {
                    found.push((name, Curve { program: program.clone(), manager, points }));
                }
            }
        }
        notes.extend(grouped(without));
        let base = exhibit.relative_to.as_deref();
        let ratios = base.map(|base| ratios(step, &index, &exhibit.metric, base, &found)).unwrap_or_default();
        for (number, (name, line)) in found.iter().enumerate() {
            let mut values = Vec::new();
            for (place, (at, cell)) in line.points.iter().enumerate() {
                let Some(mut one) = ours(cell.value, exhibit.scale) else { continue };
                let ratio =
                    ratios.iter().find(|(of, _)| *of == (number, place)).map(|(_, ratio)| ratio.clone());
                match (exhibit.as_ratio, ratio) {
                    (true, Some(ratio)) => one = ratio,
                    (true, None) if base == Some(line.manager) => {
                        one = Ours { value: 1.0, interval: None, ratio: None, exact: true };
                    }
                    (true, None) if base.is_some() => continue,
                    (_, ratio) => one.ratio = ratio.map(|ratio| (ratio.value, ratio.interval)),
                }
                values.push((*at, Pair { ours: Some(one), ..Pair::default() }));
            }
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            series.push((name.clone(), values));
        }
    }
    let body = Body::Lines {
        x_title: exhibit.x_title.clone(),
        y_title: if exhibit.unit.is_empty() { exhibit.metric.clone() } else { exhibit.unit.clone() },
        log_x: exhibit.log_x,
        log_y: exhibit.log_y,
        series,
    };
    (body, notes)
}

/// Each point's ratio to that of the base manager at the same place; their intervals hold together.
fn ratios(
    step: &Step,
    index: &Index<'_>,
    metric: &str,
    base: &str,
    found: &[(String, Curve<'_>)],
) -> Vec<((usize, usize), Ours)> {
    let mut compared = Vec::new();
    let mut keys = Vec::new();
    for (number, (_, line)) in found.iter().enumerate().filter(|(_, (_, line))| line.manager != base) {
        let bases = points(index, metric, &line.program, base);
        for (point, (at, of)) in line.points.iter().enumerate() {
            let over =
                bases.iter().find(|(place, _)| same_place(Some(*place), Some(*at))).map(|(_, over)| *over);
            if let Some(over) = over {
                keys.push((number, point));
                let place = step.kind.command().place(metric, *at);
                compared.push(Compared {
                    of: *of,
                    over: Some(over),
                    program: line.program.clone(),
                    at: Some(*at),
                    place,
                });
            }
        }
    }
    by_key(keys, compared)
}

/// Comparisons with their intervals, by a key of each.
pub(super) fn by_key<K: Copy>(keys: Vec<K>, compared: Vec<Compared<'_>>) -> Vec<(K, Ours)> {
    let kept = measure(compared.clone());
    let mut rest = kept.into_iter().peekable();
    let mut ratios = Vec::new();
    for (key, one) in keys.into_iter().zip(compared) {
        // Those without any value are left out, in order.
        if let Some(measured) = rest.next_if(|measured| measured.compared == one) {
            let effect = &measured.effect;
            let exact = effect.basis == Basis::Exact;
            ratios.push((key, Ours { value: effect.value, interval: interval(effect), ratio: None, exact }));
        }
    }
    ratios
}

/// Notes from reason and name: `Without a and b: why.`
pub(super) fn grouped(without: Vec<(String, String)>) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for (why, name) in without {
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    reasons
        .into_iter()
        .map(|(why, names)| format!("Without {}: {why}.", heaptoll_units::and_list(&names)))
        .collect()
}
