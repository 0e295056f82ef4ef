//! The charts of a program.

use heaptoll_experiment::comparison::{Comparison, Metric, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::Observation;

use super::super::chart_registry::{ChartRegistry, ChartSlot};
use super::super::charts;
use super::super::palette::Palette;

/// Makes them, and keeps their data in `registry`.
pub fn register(
    experiment: &Experiment,
    comparison: &Comparison,
    table: &ProgramTable,
    rows: &[&Observation],
    palette: &Palette,
    registry: &mut ChartRegistry,
) -> Vec<ChartSlot> {
    let ratios = |metric| charts::program_ratios(table, metric, &comparison.baseline, palette);
    let is_server = experiment.programs.iter().any(|p| p.name == table.program && p.serve.is_some());
    let watched = match is_server {
        true => "Sampled during the timed runs.",
        false => "One watched run a stack, apart from the timed ones; its pace is not the measurement.",
    };
    let mut charts = vec![
        registry.put(ratios(Metric::Cpu), "CPU", "Left of the line is cheaper. Pale: no difference seen."),
        registry.put(ratios(Metric::PeakRss), "Peak memory", "Left of the line is smaller. Pale: no difference seen."),
        registry.put(
            charts::time_against_memory(table, palette),
            "CPU against memory",
            "Medians; whiskers reach from the smallest to the largest. Outlined and joined: nothing else here is \
             both cheaper and smaller.",
        ),
        registry.put(
            charts::memory_over_time(experiment, &table.program, palette),
            "Resident memory over time",
            watched,
        ),
    ];
    let mut dots = registry.put(
        charts::invocations(rows, palette),
        "Every timed invocation",
        "In the order in which they were made, so that drift of the machine shows. Crosses did not end well and are \
         in no average.",
    );
    if let Some(place) = &mut dots {
        place.wide = true;
    }
    charts.push(dots);
    charts.into_iter().flatten().collect()
}
