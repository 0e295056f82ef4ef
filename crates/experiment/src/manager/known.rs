//! The managers of this machine, in the order in which they are listed.

use std::path::Path;

use super::built::{added, built};
use super::debian;
use super::definition::{Manager, glibc};
use super::error::ManagerError;
use super::order::rank;
use super::settings::with_settings;
use crate::places::{Places, descriptions};

/// Every manager known on this machine: glibc, then those built here, then Debian's, then those that the user has added.
///
/// # Errors
/// A built manager whose description cannot be read.
pub fn known(places: &Places) -> Result<Vec<Manager>, ManagerError> {
    known_with(places, &Places::added_managers())
}

/// [`known`], with another folder of added managers.
pub(super) fn known_with(places: &Places, added_below: &Path) -> Result<Vec<Manager>, ManagerError> {
    let installed = installed(places)?;
    let mut added: Vec<Manager> =
        descriptions(added_below).iter().map(|path| added(path)).collect::<Result<_, _>>()?;
    // A later heaptoll, or a package, may bring a manager of that name.
    added.retain(|one| installed.iter().all(|other| other.name != one.name));
    added.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(installed.into_iter().chain(added.into_iter().map(with_settings)).collect())
}

/// The same and the collectors of Java, for commands that run whole programs: these serve no malloc. Whether a program's
/// virtual machine has them is found for each.
///
/// # Errors
/// As [`known`].
pub fn known_with_java(places: &Places) -> Result<Vec<Manager>, ManagerError> {
    let java = described(places)?.into_iter().filter(Manager::is_java);
    Ok(known(places)?.into_iter().chain(java).collect())
}

/// Those that do not depend on the user.
///
/// # Errors
/// As [`known`].
pub fn installed(places: &Places) -> Result<Vec<Manager>, ManagerError> {
    let built = described(places)?.into_iter().filter(|manager| !manager.is_java());
    let all = std::iter::once(glibc()).chain(built).chain(debian::installed());
    Ok(all.map(with_settings).collect())
}

/// Those of the installation's descriptions.
fn described(places: &Places) -> Result<Vec<Manager>, ManagerError> {
    let descriptions = descriptions(&places.managers());
    let mut built: Vec<Manager> = descriptions.iter().map(|path| built(path)).collect::<Result<_, _>>()?;
    built.sort_by(|a, b| rank(&a.name).cmp(&rank(&b.name)).then_with(|| a.name.cmp(&b.name)));
    Ok(built)
}
