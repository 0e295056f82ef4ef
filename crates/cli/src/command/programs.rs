//! `heaptoll programs`: the catalog.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use heaptoll_experiment::places::Places;
use heaptoll_report::terminal::{ProgramRow, programs_table};

use crate::terminal;
use heaptoll_experiments::failure::Failure;
use heaptoll_experiments::workload::{catalog, catalog_places};

/// List the programs of the catalog: what each does, which Debian package brings it, whether it is here.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A folder with catalog entries of your own (docs/guide/programs.md explains how to write one)
    #[arg(long, value_name = "DIR")]
    catalog: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A catalog that cannot be read.
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let places = Places::find()?;
    let catalog = catalog(&places, arguments.catalog.as_deref())?;
    let folders = catalog_places(&places);
    let mut variants: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for program in catalog.programs() {
        if let (Some(variant), Some((base, _))) = (program.variant(), program.name().split_once(':')) {
            variants.entry(base.into()).or_default().push(variant.into());
        }
    }
    let rows: Vec<ProgramRow> = catalog
        .programs()
        .filter(|program| program.variant().is_none())
        .map(|program| ProgramRow {
            name: program.name().into(),
            about: program.about().into(),
            package: program.package().unwrap_or("bundled").into(),
            installed: program.missing(&folders).is_none(),
            variants: variants.remove(program.name()).unwrap_or_default(),
        })
        .collect();
    terminal::print(&programs_table(&rows, &terminal::style()))?;
    Ok(0)
}
