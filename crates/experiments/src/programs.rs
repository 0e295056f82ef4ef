//! `heaptoll programs`: what the catalog has.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_experiment::places::Places;
use heaptoll_report::terminal::ProgramRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::workload::{catalog, catalog_places};

/// Schema of [`Figures`].
pub const SCHEMA: &str = "heaptoll-programs/1";

/// The catalog.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Its programs, by name.
    pub programs: Vec<ProgramRow>,
}

/// Every program of the catalog and of a folder of the user's own, with its variants and whether it is installed.
///
/// # Errors
/// A catalog that cannot be read.
pub fn list(own: Option<&Path>, places: &Places) -> Result<Figures, Failure> {
    let catalog = catalog(places, own)?;
    let folders = catalog_places(places);
    let mut variants: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for program in catalog.programs() {
        if let (Some(variant), Some((base, _))) = (program.variant(), program.name().split_once(':')) {
            variants.entry(base.into()).or_default().push(variant.into());
        }
    }
    let programs = catalog
        .programs()
        .filter(|program| program.variant().is_none())
        .map(|program| ProgramRow {
            name: program.name().into(),
            about: program.about().into(),
            package: match (program.package(), program.recipe()) {
                (Some(package), _) => package.into(),
                (None, Some(recipe)) => format!("programs add {recipe}"),
                (None, None) => "bundled".into(),
            },
            installed: program.missing(&folders).is_none(),
            variants: variants.remove(program.name()).unwrap_or_default(),
            live_mib: program.stat().map(|stat| stat.live_mib),
            allocating_threads: program.stat().map(|stat| stat.threads),
            pools: program.pools().map(str::to_owned),
        })
        .collect();
    Ok(Figures { programs })
}
