//! Facts about a study: the machine, and the versions of managers and programs.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::definition::Study;
use heaptoll_experiment::machine;
use heaptoll_experiment::manager;

use super::selection::Available;

/// Name and value.
pub fn facts(available: &Available, studies: &[Study]) -> Vec<(String, String)> {
    let machine = machine::read();
    let mut facts: Vec<(String, String)> = [
        ("machine", format!("{}, {} cores, {} MiB", machine.cpu, machine.cores, machine.memory_kib / 1024)),
        ("system", format!("{}, Linux {}, glibc {}", machine.distribution, machine.kernel, machine.libc)),
        ("huge pages", machine.thp),
        ("frequency governor", machine.governor),
        ("address randomisation", machine.aslr),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    facts.extend(managers(available, studies));
    facts.extend(programs(available, studies));
    facts
}

fn managers(available: &Available, studies: &[Study]) -> Vec<(String, String)> {
    let named: BTreeSet<&String> =
        studies.iter().flat_map(|study| &study.steps).flat_map(|step| &step.managers).collect();
    let bases: BTreeMap<String, String> = named
        .into_iter()
        .filter_map(|name| manager::find(available.known, name).ok())
        .map(|manager| (manager.base, format!("{} ({})", manager.version, manager.origin)))
        .collect();
    bases.into_iter().map(|(name, version)| (format!("manager {name}"), version)).collect()
}

fn programs(available: &Available, studies: &[Study]) -> Vec<(String, String)> {
    let named: BTreeSet<&String> =
        studies.iter().flat_map(|study| &study.steps).flat_map(|step| &step.programs).collect();
    let packages: BTreeMap<String, String> = named
        .into_iter()
        .filter_map(|name| available.catalog.find(name).ok())
        // A variant is the same program.
        .filter_map(|program| {
            let base = program.name().split(':').next().unwrap_or_default();
            Some((base.to_owned(), program.package()?.to_owned()))
        })
        .collect();
    let versions = versions(&packages.values().collect());
    let of = |package: &String| versions.get(package).cloned().unwrap_or_else(|| "version unknown".into());
    packages
        .iter()
        .map(|(name, package)| (format!("program {name}"), format!("{} ({package})", of(package))))
        .collect()
}

/// Versions of Debian packages; none where the system is no Debian.
fn versions(packages: &BTreeSet<&String>) -> BTreeMap<String, String> {
    if packages.is_empty() {
        return BTreeMap::new();
    }
    let queried = Command::new("dpkg-query")
        .args(["-W", "-f", "${binary:Package} ${Version}\n"])
        .args(packages)
        .output();
    let Ok(output) = queried else { return BTreeMap::new() };
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split_once(' '))
        // Libraries are listed with their architecture: `libsqlite3-dev:amd64`.
        .map(|(name, version)| (name.split(':').next().unwrap_or(name).to_owned(), version.to_owned()))
        .collect()
}
