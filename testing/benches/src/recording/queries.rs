//! A trace of nearly 200 M events (cfrac on a larger number than the catalog's): recorded, queried and replayed.

use std::path::Path;

use heaptoll_catalog::Size;

use super::commands::{heaptoll, recorded};
use crate::installation::{Installation, scratch};
use crate::table::print_figure;
use crate::{Error, child};

/// A product of two primes of 21 and 22 digits.
const NUMBER: &str = "499304109286205715972354797417733033431131";
/// Events a second, at least.
const SPEED: f64 = 20e6;
/// MiB resident, at most.
const MEMORY: f64 = 256.0;
/// ns an operation of the replay driver's own, at most.
const DRIVER: f64 = 5.0;

/// Records, queries, replays.
///
/// # Errors
/// A step fails.
pub fn run() -> Result<(), Error> {
    let installation = Installation::find()?;
    let folder = scratch()?;
    let trace = folder.path().join("trace");
    let mut program = installation.program("cfrac", Size::Full)?;
    if let Some(number) = program.command.last_mut() {
        *number = NUMBER.into();
    }
    let took = child::run(&mut recorded(&program, &trace, &[])?)?;
    let events = heaptoll_trace::tables(&trace)?.ending.map_or(0, |ending| ending.events) as f64;
    print_figure(
        "events of cfrac recorded",
        format!("{:.0} M in {:.1} s", events / 1e6, took.wall_s),
        ">= 100 M",
        events >= 1e8,
    );
    for command in ["stat", "lifetimes"] {
        let took = child::run(heaptoll(&[command])?.arg(&trace))?;
        let speed = events / took.wall_s;
        print_figure(
            &format!("{command}, events a second"),
            format!("{:.0} M", speed / 1e6),
            ">= 20 M",
            speed >= SPEED,
        );
        let mib = took.peak_rss_kib as f64 / 1024.0;
        print_figure(
            &format!("{command}, peak memory"),
            format!("{mib:.0} MiB"),
            "<= 256 MiB",
            mib <= MEMORY,
        );
    }
    let own = replay(&trace, &folder.path().join("replay.json"))?;
    print_figure(
        "replay driver, its own cost an operation",
        format!("{own:.1} ns"),
        "<= 5 ns",
        own <= DRIVER,
    );
    Ok(())
}

/// Replays under glibc, and returns the driver's own ns an operation as it reports.
fn replay(trace: &Path, json: &Path) -> Result<f64, Error> {
    let mut command = heaptoll(&["replay", "-m", "glibc", "-n", "1", "--json"])?;
    let took = child::run(command.arg(json).arg(trace))?;
    println!("replay under glibc and the null manager took {:.1} s", took.wall_s);
    let text = std::fs::read_to_string(json).map_err(Error::system("the replay's figures"))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Error::Unexpected(error.to_string()))?;
    let own = value["own_ns"].as_f64();
    own.ok_or_else(|| Error::Unexpected("the replay does not report what its driver costs".into()))
}
