//! Tables and bars: programs down, managers or metrics across; the published value and ours in each cell.

use std::collections::BTreeSet;

use super::body::{Body, Ours, Pair, ours};
use super::lines::{by_key, managers};
use super::originals::THE_PAPERS_OWN;
use super::source::Source;
use crate::definition::{MetricColumn, Step};
use crate::pairs::{CellRef, Compared, Index, same_place};
use crate::placed::{Placed, of_grid};
use crate::variant::base;

/// A row or a column: the paper's names for it, and ours.
#[derive(Debug, Clone, Default, PartialEq)]
struct Header {
    /// What is run; none where nothing stands for the paper's.
    name: Option<String>,
    /// The paper's names.
    papers: Vec<String>,
    /// The paper's own program runs.
    is_original: bool,
}

impl Header {
    fn label(&self) -> String {
        if let (Some(name), true) = (&self.name, self.is_original) {
            return format!("{name}{THE_PAPERS_OWN}");
        }
        let papers: Vec<String> =
            self.papers.iter().filter(|paper| Some(*paper) != self.name.as_ref()).cloned().collect();
        match &self.name {
            None => papers.join(", "),
            Some(name) if papers.is_empty() => name.clone(),
            Some(name) => format!("{name} ({})", papers.join(", ")),
        }
    }
}

/// The place of a line, which is added when it is not there yet.
fn place(lines: &mut Vec<Header>, name: Option<&String>, paper: &str) -> usize {
    let found = lines.iter().position(|line| match name {
        Some(name) => line.name.as_ref() == Some(name),
        None => line.name.is_none() && line.papers.iter().any(|known| known == paper),
    });
    let at = found.unwrap_or_else(|| {
        lines.push(Header { name: name.cloned(), ..Header::default() });
        lines.len() - 1
    });
    if !paper.is_empty() && !lines[at].papers.iter().any(|known| known == paper) {
        lines[at].papers.push(paper.into());
    }
    at
}

/// Rows, columns and cells.
struct Grid {
    rows: Vec<Header>,
    columns: Vec<String>,
    cells: Vec<Vec<Pair>>,
    notes: Vec<String>,
}

fn named(names: &[String]) -> Vec<Header> {
    names.iter().map(|name| Header { name: Some(name.clone()), ..Header::default() }).collect()
}

/// Marks the programs (or `program under manager`) whose original ran in a step.
fn mark_originals(rows: &mut [Header], step: Option<&Step>) {
    let is = |name: &String| {
        let program = name.split_once(" under ").map_or(name.as_str(), |(program, _)| program);
        step.is_some_and(|step| step.originals.contains_key(program))
    };
    rows.iter_mut().for_each(|row| row.is_original = row.name.as_ref().is_some_and(is));
}

/// What a cell is of: a step's program under a manager.
struct Cell<'a> {
    step: &'a Step,
    metric: String,
    program: String,
    manager: String,
}

/// Each step of an exhibit with its cells.
struct Steps<'a>(Vec<(&'a Step, Index<'a>)>);

impl<'a> Steps<'a> {
    fn of(source: &Source<'a>) -> Steps<'a> {
        let steps = source.exhibit.steps().into_iter();
        let indexed = |id: &str| source.study.step(id).map(|step| (step, Index::of(step, source.figures)));
        Steps(steps.filter_map(indexed).collect())
    }

    fn index(&self, step: &Step) -> Option<&Index<'a>> {
        self.0.iter().find(|(of, _)| of.id == step.id).map(|(_, index)| index)
    }

    /// The value of a cell, at the requested place.
    fn value(&self, cell: &Cell<'_>, at: Option<f64>) -> Option<CellRef<'a>> {
        let places = self.index(cell.step)?.places(&cell.metric, &cell.program, &cell.manager);
        places.iter().find(|(place, _)| same_place(*place, at)).map(|(_, place)| *place)
    }

    /// Why a cell has none.
    fn why(&self, source: &Source<'_>, cell: &Cell<'_>) -> String {
        let Cell { step, metric, program, manager } = cell;
        if let Some(why) = source.absent.of_cell(&step.id, program, manager) {
            return why.to_owned();
        }
        let Some(index) = self.index(step).filter(|index| !index.programs.is_empty()) else {
            return format!("step {} gave no figures", step.id);
        };
        let runs = |list: &[&str], of_step: &[String], name: &str| {
            if list.contains(&name) {
                None
            } else if of_step.iter().any(|known| known == name) {
                Some(format!("{name} was not run in this form"))
            } else {
                Some(format!("{name} is not run by step {}", step.id))
            }
        };
        runs(&index.programs, &step.programs, program)
            .or_else(|| runs(&index.managers, &step.managers, manager))
            .unwrap_or_else(|| format!("no {metric} was measured"))
    }
}

/// Why nothing here stands for a program or manager of the paper.
fn nothing(source: &Source<'_>, papers: &[&str]) -> String {
    let missing = &source.study.names.missing;
    let of = |paper: &&str| {
        let starts = |key: &&String| paper.starts_with(key.as_str()) && paper[key.len()..].starts_with(' ');
        let key = missing.keys().filter(starts).max_by_key(|key| key.len());
        missing.get(*paper).or_else(|| key.and_then(|key| missing.get(key))).cloned()
    };
    papers.iter().find_map(of).unwrap_or_else(|| "nothing here stands for it".into())
}

/// The paper's values into the cells; where a row or column has several of the paper's names, with the name.
fn publish(pairs: &mut Pair, placed: &Placed, row: &Header) {
    let text = if row.papers.len() > 1 {
        format!("{} ({})", placed.text, placed.program)
    } else {
        placed.text.clone()
    };
    pairs.published.push(text);
}

/// Programs down, managers across.
fn over_managers(source: &Source<'_>) -> Grid {
    let Source { study, exhibit, .. } = source;
    let steps = Steps::of(source);
    let step = study.step(&exhibit.step);
    let programs = match (&exhibit.program, exhibit.programs.as_slice()) {
        (Some(program), _) => vec![program.clone()],
        (None, []) => step.map(|step| step.programs.clone()).unwrap_or_default(),
        (None, named) => named.to_vec(),
    };
    let mut rows = named(&programs);
    let across = step.and_then(|step| Some(managers(step, steps.index(step)?, &exhibit.managers)));
    let mut columns = named(&across.unwrap_or_default());
    let placed: Vec<(usize, usize, Placed)> = of_grid(study, exhibit)
        .into_iter()
        .map(|one| {
            let row = place(&mut rows, one.our_program.as_ref(), &one.program);
            let column = place(&mut columns, one.our_manager.as_ref(), &one.manager);
            (row, column, one)
        })
        .collect();
    let mut cells = vec![vec![Pair::default(); columns.len()]; rows.len()];
    let (mut keys, mut compared) = (Vec::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        for (across, column) in columns.iter().enumerate() {
            let pair = &mut cells[at][across];
            let (Some(program), Some(manager), Some(step)) = (&row.name, &column.name, step) else {
                let papers = row.papers.iter().filter(|_| row.name.is_none());
                let papers = papers.chain(column.papers.iter().filter(|_| column.name.is_none()));
                pair.missing = Some(nothing(source, &papers.map(String::as_str).collect::<Vec<_>>()));
                continue;
            };
            if let Some(one) = fill_ours(source, &steps, step, (program, manager), pair) {
                keys.push((at, across));
                compared.push(one);
            }
        }
    }
    add_ratios(&mut cells, keys, compared, exhibit.as_ratio);
    for (row, column, placed) in &placed {
        publish(&mut cells[*row][*column], placed, &rows[*row]);
    }
    mark_originals(&mut rows, step);
    let notes = agreement(&cells).into_iter().collect();
    Grid { columns: columns.iter().map(Header::label).collect(), rows, cells, notes }
}

/// Fills our part of a pair with the figure of a program under a manager, or why there is none. Gives what it is to be
/// compared with, where the exhibit has ratios.
fn fill_ours<'a>(
    source: &Source<'_>,
    steps: &Steps<'a>,
    step: &'a Step,
    (program, manager): (&str, &str),
    pair: &mut Pair,
) -> Option<Compared<'a>> {
    let exhibit = source.exhibit;
    let of = |program: &str, manager: &str| Cell {
        step,
        metric: exhibit.metric.clone(),
        program: program.into(),
        manager: manager.into(),
    };
    let cell = of(program, manager);
    let value = steps.value(&cell, exhibit.at);
    pair.ours = value.and_then(|place| ours(place.value, exhibit.scale));
    if pair.ours.is_none() {
        pair.missing = Some(steps.why(source, &cell));
    }
    let (value, base) = (value?, exhibit.relative_to.as_ref()?);
    let over = bases(program, exhibit.relative_variant.as_deref())
        .into_iter()
        .find_map(|program| steps.value(&of(&program, base), exhibit.at));
    match over {
        Some(over) if over == value => {
            if exhibit.as_ratio {
                pair.ours = Some(Ours { value: 1.0, interval: None, ratio: None, exact: true });
            }
            None
        }
        Some(over) => Some(Compared {
            of: value,
            over: Some(over),
            program: program.into(),
            at: exhibit.at,
            place: String::new(),
        }),
        None => {
            if exhibit.as_ratio {
                (pair.ours, pair.missing) = (None, Some(format!("no figure of {base} to compare with")));
            }
            None
        }
    }
}

/// Adds the ratios of the cells with these keys; as the figures themselves where the exhibit has ratios only.
fn add_ratios(
    cells: &mut [Vec<Pair>],
    keys: Vec<(usize, usize)>,
    compared: Vec<Compared<'_>>,
    as_ratio: bool,
) {
    if as_ratio {
        for (at, across) in &keys {
            cells[*at][*across].ours = None;
            cells[*at][*across].missing = Some("the two figures have no ratio".into());
        }
    }
    for ((at, across), ratio) in by_key(keys, compared) {
        let pair = &mut cells[at][across];
        if as_ratio {
            (pair.ours, pair.missing) = (Some(ratio), None);
        } else if let Some(ours) = &mut pair.ours {
            ours.ratio = Some((ratio.value, ratio.interval));
        }
    }
}

/// The denominators of a program's ratios: its other variant, or itself without any.
fn bases(program: &str, variant: Option<&str>) -> Vec<String> {
    let Some(variant) = variant else { return vec![program.into()] };
    let base = base(program);
    vec![format!("{base}:{variant}"), base.into()]
}

/// Puts ours over the paper's in the place of both.
fn over_paper(pair: &mut Pair) {
    let paper: Option<f64> = match pair.published.as_slice() {
        [one] => one.parse().ok().filter(|value| *value > 0.0),
        _ => None,
    };
    pair.published.clear();
    let Some(ours) = pair.ours.take() else { return };
    match paper {
        None => pair.missing = Some("the paper has no such figure".into()),
        Some(paper) => {
            let interval = ours.interval.map(|(low, high)| (low / paper, high / paper));
            pair.ours = Some(Ours { value: ours.value / paper, interval, ..ours });
        }
    }
}

/// Programs (or `program under manager`) down, metrics across.
fn over_metrics(source: &Source<'_>) -> Grid {
    let Source { study, exhibit, .. } = source;
    let steps = Steps::of(source);
    let shown = match exhibit.programs.as_slice() {
        [] => study.step(&exhibit.step).map(|step| step.programs.clone()).unwrap_or_default(),
        named => named.to_vec(),
    };
    let mut rows = named(&shown);
    let placed: Vec<(usize, Placed)> = of_grid(study, exhibit)
        .into_iter()
        .map(|one| (place(&mut rows, one.our_program.as_ref(), &one.program), one))
        .collect();
    let mut cells = vec![vec![Pair::default(); exhibit.columns.len()]; rows.len()];
    for (at, row) in rows.iter().enumerate() {
        for (across, column) in exhibit.columns.iter().enumerate() {
            let pair = &mut cells[at][across];
            (pair.ours, pair.missing) = match &row.name {
                None => {
                    (None, Some(nothing(source, &row.papers.iter().map(String::as_str).collect::<Vec<_>>())))
                }
                Some(name) => match metric(source, &steps, column, name) {
                    Ok(ours) => (Some(ours), None),
                    Err(why) => (None, Some(why)),
                },
            };
        }
    }
    for (row, placed) in &placed {
        publish(&mut cells[*row][placed.heading], placed, &rows[*row]);
    }
    for (across, _) in exhibit.columns.iter().enumerate().filter(|(_, column)| column.over_paper) {
        cells.iter_mut().for_each(|row| over_paper(&mut row[across]));
    }
    mark_originals(&mut rows, study.step(&exhibit.step));
    let columns = exhibit.columns.iter().map(|column| column.title.clone()).collect();
    Grid { rows, columns, cells, notes: Vec::new() }
}

/// A cell of a table over metrics, or why there is none.
fn metric(source: &Source<'_>, steps: &Steps<'_>, column: &MetricColumn, row: &str) -> Result<Ours, String> {
    let Source { study, exhibit, .. } = source;
    if column.metric.is_empty() {
        return Err(column.missing.clone().unwrap_or_else(|| "not measured here".into()));
    }
    let (program, manager) = match row.split_once(" under ") {
        Some((program, manager)) => (program, Some(manager)),
        None => (row, None),
    };
    let program = column.names.get(program).map_or(program, String::as_str);
    let step = |id: &str| study.step(id).ok_or_else(|| format!("the study has no step {id}"));
    let first = |step: &Step| {
        let index = steps.index(step);
        index.and_then(|index| managers(step, index, &[]).into_iter().next()).unwrap_or_default()
    };
    let of = step(column.step.as_deref().unwrap_or(&exhibit.step))?;
    let manager = manager.or(column.manager.as_deref()).map_or_else(|| first(of), str::to_owned);
    let cell = Cell { step: of, metric: column.metric.clone(), program: program.into(), manager };
    let value = steps.value(&cell, exhibit.at).ok_or_else(|| steps.why(source, &cell))?;
    let Some(divisor) = &column.over else {
        return ours(value.value, column.scale).ok_or_else(|| steps.why(source, &cell));
    };
    let other = step(divisor.step.as_deref().unwrap_or(&of.id))?;
    // In another step it may not have been run under the same manager.
    let manager = match &divisor.manager {
        Some(manager) => manager.clone(),
        None if other.managers.contains(&cell.manager) => cell.manager.clone(),
        None => first(other),
    };
    let under = Cell { step: other, metric: divisor.metric.clone(), program: program.into(), manager };
    let over = steps.value(&under, exhibit.at).ok_or_else(|| steps.why(source, &under))?;
    let (runs, others) = (of.run_as(program), other.run_as(program));
    if runs != others {
        return Err(format!(
            "{runs} ran in step {} and {others} in {}: their figures are never divided by each other",
            of.id, other.id
        ));
    }
    let compared =
        Compared { of: value, over: Some(over), program: program.into(), at: None, place: String::new() };
    let ratio = by_key(vec![()], vec![compared]).pop().map(|(_, ratio)| ratio);
    let ratio = ratio.ok_or_else(|| format!("no positive {} to divide by", divisor.metric))?;
    let interval = ratio.interval.map(|(low, high)| (column.scale * low, column.scale * high));
    Ok(Ours { value: column.scale * ratio.value, interval, ..ratio })
}

/// How many of the paper's differences between managers stand in the same order here.
fn agreement(cells: &[Vec<Pair>]) -> Option<String> {
    let both = |pair: &Pair| {
        let [published] = pair.published.as_slice() else { return None };
        Some((published.parse::<f64>().ok()?, pair.ours.as_ref()?.value))
    };
    let (mut same, mut all, mut rows) = (0, 0, BTreeSet::new());
    for (number, row) in cells.iter().enumerate() {
        let values: Vec<(f64, f64)> = row.iter().filter_map(both).collect();
        for (at, a) in values.iter().enumerate() {
            for b in &values[at + 1..] {
                if a.0 != b.0 {
                    all += 1;
                    rows.insert(number);
                    same += usize::from((a.0 < b.0) == (a.1 < b.1) && a.1 != b.1);
                }
            }
        }
    }
    let programs = heaptoll_units::plural(rows.len(), "program");
    (all >= 3).then(|| {
        format!(
            "Of {all} pairs of managers on one program that the paper distinguishes, {same} have the same \
             order here, by the figures shown ({programs}; chance would give half of them)."
        )
    })
}

fn grid(source: &Source<'_>) -> Grid {
    if source.exhibit.columns.is_empty() { over_managers(source) } else { over_metrics(source) }
}

/// The table's form.
pub(super) fn table(source: &Source<'_>) -> (Body, Vec<String>) {
    let Grid { rows, columns, cells, notes } = grid(source);
    let unit = &source.exhibit.unit;
    let corner = if unit.is_empty() { "program".to_owned() } else { format!("program, {unit}") };
    let rows = rows.iter().map(Header::label).zip(cells).collect();
    (Body::Table { columns: std::iter::once(corner).chain(columns).collect(), rows }, notes)
}

/// The bars' form: a series a column; of one program, a place a column.
pub(super) fn bars(source: &Source<'_>) -> (Body, Vec<String>) {
    let exhibit = source.exhibit;
    let Grid { rows, columns, mut cells, notes } = grid(source);
    let rows: Vec<String> = rows.iter().map(Header::label).collect();
    let (places, series) = if exhibit.program.is_some() {
        (columns, rows.into_iter().zip(cells).collect())
    } else {
        let series = columns
            .into_iter()
            .enumerate()
            .map(|(at, name)| (name, cells.iter_mut().map(|row| std::mem::take(&mut row[at])).collect()));
        (rows, series.collect())
    };
    let y_title = match (&exhibit.relative_to, exhibit.unit.as_str()) {
        (Some(base), "") if exhibit.as_ratio => format!("ratio to {base}"),
        (_, "") => exhibit.metric.clone(),
        (_, unit) => unit.to_owned(),
    };
    (Body::Bars { y_title, log_y: exhibit.log_y, places, series }, notes)
}
