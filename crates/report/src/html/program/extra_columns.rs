//! Columns of what only some programs or managers have figures for.

use std::collections::BTreeSet;

use heaptoll_experiment::comparison::{Metric, ProgramTable, Row};
use heaptoll_experiment::observation::{Counters, Observation, Phase};

use crate::format::{self, NONE};

/// Headings and cells for what only some programs or managers have: wall time, instructions, heap, load figures.
pub fn extra_columns(table: &ProgramTable, observations: &[&Observation]) -> (Vec<String>, Vec<Vec<String>>) {
    let mut headings = Vec::new();
    let mut cells: Vec<Vec<String>> = table.rows.iter().map(|_| Vec::new()).collect();
    let mut column = |heading: String, cell: &dyn Fn(&Row) -> Option<String>| {
        let found: Vec<Option<String>> = table.rows.iter().map(cell).collect();
        if found.iter().any(Option::is_some) {
            headings.push(heading);
            for (row, cell) in cells.iter_mut().zip(found) {
                row.push(cell.unwrap_or_else(|| NONE.to_owned()));
            }
        }
    };
    let with_ratio = |row: &Row, metric: Metric, unit: f64| {
        let figure = row.figures.get(&metric)?;
        let median = if unit == 1.0 {
            format::median(metric, figure)
        } else {
            format::significant(figure.median / unit)
        };
        Some(
            figure
                .ratio
                .as_ref()
                .map_or(median.clone(), |ratio| format!("{median}, {}", format::interval(ratio))),
        )
    };
    column("Wall s, ratio".into(), &|row| with_ratio(row, Metric::Wall, 1.0));
    column("Instructions 10⁹, ratio".into(), &|row| with_ratio(row, Metric::Instructions, 1e9));
    let counted = |row: &Row, count: fn(&Counters) -> Option<u64>| {
        let good = observations
            .iter()
            .filter(|o| o.stack == row.stack && o.phase == Phase::Timed && o.outcome.is_ok());
        let counts: Vec<f64> = good.filter_map(|o| count(&o.counters)).map(|count| count as f64).collect();
        (!counts.is_empty()).then(|| heaptoll_statistics::median(&counts))
    };
    column("Cycles 10⁹".into(), &|row| counted(row, |c| c.cycles).map(|n| format::significant(n / 1e9)));
    column("Cache misses 10⁶".into(), &|row| {
        counted(row, |c| c.llc_misses).map(|n| format::significant(n / 1e6))
    });
    column("TLB misses 10⁶".into(), &|row| {
        counted(row, |c| c.dtlb_misses).map(|n| format::significant(n / 1e6))
    });
    column("Involuntary switches a CPU s".into(), &|row| {
        row.involuntary_switches_per_cpu_s.map(format::significant)
    });
    column("Heap peak MiB".into(), &|row| row.heap_high_water_bytes.map(format::mib_from_bytes));
    if table.has_collections() {
        column("Collections".into(), &|row| row.collections.map(|c| format::count(c.count)));
        column("Pauses ms".into(), &|row| row.collections.map(|c| format::milliseconds(c.pause_total_s)));
        column("Longest pause ms".into(), &|row| {
            row.collections.map(|c| format::milliseconds(c.pause_max_s))
        });
        column("Reclaimed MiB".into(), &|row| {
            row.collections.map(|c| format::mib_from_bytes(c.reclaimed_bytes))
        });
    }
    let names: BTreeSet<&String> = table.rows.iter().flat_map(|row| row.load_figures.keys()).collect();
    for name in names {
        column(format::printable(name), &|row| {
            row.load_figures.get(name).map(|value| format::significant(*value))
        });
    }
    (headings, cells)
}
