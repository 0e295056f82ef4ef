//! Bytes an event in the traces of the catalog's programs.

use heaptoll_catalog::Size;

use super::commands::recorded;
use crate::installation::{Installation, scratch};
use crate::table::print_figure;
use crate::{Error, child};

/// Bytes an event, at most.
const TARGET: f64 = 4.0;
/// In shorter traces header and tables outweigh the events.
const ENOUGH: u64 = 10_000;

/// Records every program once.
///
/// # Errors
/// A program cannot be recorded.
pub fn run() -> Result<(), Error> {
    let installation = Installation::find()?;
    let folder = scratch()?;
    let trace = folder.path().join("trace");
    let names: Vec<String> = installation.programs().map(|program| program.name().to_owned()).collect();
    for name in names {
        let program = installation.program(&name, Size::Demo)?;
        child::run(&mut recorded(&program, &trace, &[])?)?;
        let events = heaptoll_trace::tables(&trace)?.ending.map_or(0, |ending| ending.events);
        let bytes = std::fs::metadata(&trace).map_err(Error::system("the trace"))?.len();
        let each = bytes as f64 / events.max(1) as f64;
        let figure = format!("{each:.2} ({events} events)");
        print_figure(&format!("bytes an event, {name}"), figure, "<= 4", each <= TARGET || events < ENOUGH);
    }
    Ok(())
}
