//! The managers of this machine, in the order in which they are listed.

use std::path::PathBuf;

use super::built::built;
use super::debian;
use super::definition::{Manager, glibc};
use super::error::ManagerError;
use super::settings::with_settings;
use crate::places::Places;

/// The order in which managers are listed; names not in it follow by alphabet.
const ORDER: [&str; 24] = [
    "tithe",
    "tithe-collect",
    "tithe-explicit",
    "mimalloc3",
    "mimalloc2",
    "jemalloc",
    "snmalloc",
    "tcmalloc",
    "rpmalloc",
    "bdw",
    "bdw-nofree",
    // The papers' collectors, then their allocators as the papers bring them up: Zorn 1992 §2.1 and §3, Detlefs 1994,
    // Boehm's slides.
    "bw16",
    "bw26",
    "treadmill",
    "knuth",
    "bestfit",
    "cartesian",
    "kingsley",
    "haertel",
    "buddy",
    "lea",
    "quickfit",
    "pow2",
    "bump",
];

/// Every manager known on this machine: glibc, then those built here, then Debian's.
///
/// # Errors
/// A built manager whose description cannot be read.
pub fn known(places: &Places) -> Result<Vec<Manager>, ManagerError> {
    let mut descriptions: Vec<PathBuf> = std::fs::read_dir(places.managers())
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    descriptions.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut built: Vec<Manager> = descriptions.iter().map(|path| built(path)).collect::<Result<_, _>>()?;
    let rank = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    built.sort_by(|a, b| rank(&a.name).cmp(&rank(&b.name)).then_with(|| a.name.cmp(&b.name)));
    let all = std::iter::once(glibc()).chain(built).chain(debian::installed());
    Ok(all.map(with_settings).collect())
}
