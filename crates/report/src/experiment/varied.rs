//! What `--vary` varies: one setting of a manager at several values, over the same manager without it.

use std::collections::BTreeMap;

use heaptoll_experiment::comparison::{Comparison, VariedCurve};

use crate::document::{Cell, Item, Part, Table};
use crate::format::{NONE, TOO_FEW};
use crate::sweep::{self, Places, charts};

/// From which value on each manager takes more: over all programs where there are several.
pub(super) fn summary(comparison: &Comparison) -> Vec<String> {
    let only = match &comparison.tables[..] {
        [table] => Some(table.program.as_str()),
        _ => None,
    };
    sentences(&of(comparison, only))
}

/// Whether a stack has a varied setting, so that its verdict is one of a curve.
pub(super) fn is_varied(comparison: &Comparison, stack: &str) -> bool {
    comparison.varied.iter().flat_map(|curve| &curve.points).any(|point| point.stack == stack)
}

/// The curves of a program, or of the means over programs.
fn of<'a>(comparison: &'a Comparison, program: Option<&str>) -> Vec<&'a VariedCurve> {
    comparison.varied.iter().filter(|curve| curve.program.as_deref() == program).collect()
}

fn sentences(curves: &[&VariedCurve]) -> Vec<String> {
    let sentence = |curve: &&VariedCurve| {
        let places: Vec<_> = curve.points.iter().map(|point| (point.value.clone(), point.ratios)).collect();
        let last = format!("{}={}", curve.setting, places.last()?.0);
        sweep::sentence(&curve.manager, &last, "no value", &places)
    };
    curves.iter().filter_map(sentence).collect()
}

/// The curves of one program, or of the means without one; nothing where nothing is varied.
pub(super) fn part(comparison: &Comparison, program: Option<&str>) -> Option<Part> {
    let curves = of(comparison, program);
    let setting = &curves.first()?.setting;
    let points = curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let values: BTreeMap<i64, &String> = points.clone().map(|(_, point)| (point.at, &point.value)).collect();
    let table = Table::of(points)
        .text("manager", |(curve, _)| curve.manager.clone())
        .figure(setting, |(_, point)| point.value.clone())
        .figure(if program.is_some() { "runs" } else { "programs" }, |(_, point)| point.good.to_string())
        .figure("CPU ratio", |(_, point)| Cell::ratio(point.ratios.cpu.as_ref(), TOO_FEW))
        .figure("time ratio", |(_, point)| Cell::ratio(point.ratios.wall.as_ref(), NONE))
        .figure("memory ratio", |(_, point)| Cell::ratio(point.ratios.peak_rss.as_ref(), NONE))
        .note(format!(
            "ratios are to the same manager without {setting}; intervals are corrected for all comparisons in the table"
        ));
    let managers: Vec<&str> = curves.iter().map(|curve| curve.manager.as_str()).collect();
    let at: Vec<i64> = values.keys().copied().collect();
    let over = "the manager without it";
    let drawn = charts(
        program.unwrap_or("geometric mean over programs"),
        &Places {
            axis: setting,
            labels: values.into_values().cloned().collect(),
            positions: vec![],
            base: None,
        },
        &[("CPU", over), ("Peak memory", over)],
        &managers,
        &|figure, manager, place| {
            let ratios = curves[manager].points.iter().find(|point| point.at == at[place])?.ratios;
            [ratios.cpu, ratios.peak_rss][figure]
        },
    );
    let title = if program.is_some() { "Over values of" } else { "overall: over values of" };
    let items = drawn.into_iter().chain([Item::Table(table.wide())]);
    Some(Part::new(format!("{title} {setting}"), items).text(sentences(&curves)))
}
