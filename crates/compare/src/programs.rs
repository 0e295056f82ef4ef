//! `heaptoll programs`: what the catalog has.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_experiment::places::Places;
use heaptoll_report::terminal::ProgramRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use heaptoll_command::failure::Failure;
use heaptoll_runs::workload::{catalog, catalog_places};

schemars::labelled!(ProgramsFigures, "heaptoll-programs/1");

/// The catalog.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramsFigures {
    /// Its programs, by name.
    pub programs: Vec<ProgramRow>,
    /// Its sets, by name.
    #[serde(default)]
    pub sets: Vec<SetRow>,
}

/// A named set of programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetRow {
    /// The name that `--set` selects it by.
    pub name: String,
    /// One line on what it stands for.
    pub about: String,
    /// By what its programs were chosen, a sentence each.
    pub criteria: Vec<String>,
    /// Its programs, in the order in which they run.
    pub programs: Vec<String>,
}

impl ProgramsFigures {
    /// A line on each set.
    pub fn sets_text(&self) -> String {
        let line = |set: &SetRow| format!("set {} ({}): {}\n", set.name, set.about, set.programs.join(", "));
        let lines: String = self.sets.iter().map(line).collect();
        if lines.is_empty() { lines } else { format!("\n{lines}") }
    }
}

/// Every program of the catalog and of a folder of the user's own, with its variants and whether it is installed.
///
/// # Errors
/// A catalog that cannot be read.
pub fn list(own: Option<&Path>, places: &Places) -> Result<ProgramsFigures, Failure> {
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
    let sets = catalog.sets().map(|set| SetRow {
        name: set.name.clone(),
        about: set.about.clone(),
        criteria: set.criteria.clone(),
        programs: set.programs.clone(),
    });
    Ok(ProgramsFigures { programs, sets: sets.collect() })
}
