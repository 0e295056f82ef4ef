//! What a mark of a request costs: `event-cost`, alone and under the events layer, in turns.

use std::path::Path;
use std::process::Command;

use heaptoll_event_log::EventsFile;
use heaptoll_experiment::places::Places;
use heaptoll_statistics::median;

use crate::Error;
use crate::installation::scratch;
use crate::table::table;

/// At most so much a pair of marks under the layer, ns.
const TARGET: f64 = 30.0;
/// Capacity for the events of a run: 500,000 requests of 24 bytes.
const LIMIT: u64 = 64 << 20;

/// Measures and prints.
///
/// # Errors
/// The program is not built, or its output is not as expected.
pub fn run(places: &Places, rounds: usize, markdown: bool) -> Result<(), Error> {
    let program = places.programs().join("event-cost");
    let (mut alone, mut under) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        alone.push(marks(&program, None)?);
        under.push(marks(&program, Some(&places.layer("events")))?);
    }
    let headings = ["marks of a request", "least ns", "median ns", "mean ns"];
    let mut table = table(&headings, 1, []).in_markdown(markdown);
    let mut least = f64::INFINITY;
    for (name, runs) in [("without the layer", &alone), ("under the events layer", &under)] {
        let column = |figure: usize| runs.iter().map(|run| run[figure]).collect::<Vec<f64>>();
        least = column(0).into_iter().fold(f64::INFINITY, f64::min);
        let figures = [least, median(&column(1)), median(&column(2))];
        table.row(std::iter::once(name.to_owned()).chain(figures.map(|ns| format!("{ns:.1}"))));
    }
    println!("{table}");
    let outcome = if least <= TARGET { "met" } else { "MISSED" };
    println!("target: a pair of marks under the layer at most {TARGET} ns, at its least: {outcome}");
    Ok(())
}

/// `pairs N least_ns A median_ns B mean_ns C`: the three figures.
fn marks(program: &Path, layer: Option<&Path>) -> Result<[f64; 3], Error> {
    let failed = |reason: String| {
        let what = format!("the program of marks, {}", program.display());
        Error::failed(what, reason + "; run `make build` again")
    };
    let folder = scratch()?;
    let mut command = Command::new(program);
    let mut file = None;
    if let Some(layer) = layer {
        let path = folder.path().join("heaptoll-marks.events");
        let made = EventsFile::create(&path, LIMIT).map_err(|error| failed(error.to_string()))?;
        command.env("LD_PRELOAD", layer).env("HEAPTOLL_EVENTS", &path);
        file = Some(made);
    }
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let output = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = output.split_whitespace().collect();
    let figure = |name: &str| words.windows(2).find(|pair| pair[0] == name)?[1].parse::<f64>().ok();
    let count = figure("pairs").ok_or_else(|| failed(format!("it printed `{}`", output.trim())))?;
    if let Some(file) = file {
        // A layer that was not there would be the cheapest of all.
        let read = file.read().map_err(|error| failed(error.to_string()))?;
        let kept: usize = read.iter().map(|process| process.requests.len()).sum();
        if kept as f64 != count {
            return Err(failed(format!("{kept} of {count} requests were written down")));
        }
    }
    match ["least_ns", "median_ns", "mean_ns"].map(figure) {
        [Some(least), Some(median), Some(mean)] => Ok([least, median, mean]),
        _ => Err(failed(format!("it printed `{}`", output.trim()))),
    }
}
