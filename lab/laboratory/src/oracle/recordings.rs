//! Whether the file of an oracle layer is of the program that it stands in front of: of the same command, and of the same
//! build of everything that allocates.

use std::collections::HashMap;
use std::path::Path;

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::extension::FileCheck;
use heaptoll_experiment::manager::Manager;
use heaptoll_oracle::{OracleFile, file};

use super::native::{LAYER, VARIABLE};

/// Files that were read, each once: what is wrong with it.
#[derive(Debug, Default)]
struct OracleFiles {
    read: HashMap<String, Result<OracleFile, String>>,
}

/// The check of recordings, for those that measure.
pub fn check() -> FileCheck {
    let mut files = OracleFiles::default();
    Box::new(move |manager, program| files.why_not(manager, program))
}

impl OracleFiles {
    /// Why the manager's oracle does not serve the program; `None` where it does, or there is no oracle.
    fn why_not(&mut self, manager: &Manager, program: &ProgramInfo) -> Option<String> {
        manager.layers.iter().find(|layer| layer.kind.name == LAYER)?;
        let environment = manager.environment_for(&program.name);
        let (_, settings) = environment.iter().find(|(name, _)| name == VARIABLE)?;
        let path = settings.split(',').find_map(|pair| pair.strip_prefix("file="))?;
        let checked = self.read.entry(path.to_owned()).or_insert_with(|| checked(Path::new(path)));
        let point = settings.split(',').find_map(|pair| pair.strip_prefix("point="));
        match checked {
            Err(why) => Some(why.clone()),
            Ok(found) if found.about.command == program.command => {
                let lacks = point == Some("unreachable") && found.about.unreachable.is_none();
                lacks.then(|| lacks_unreachable(path))
            }
            Ok(found) => Some(format!(
                "{path} is a recording of another command: {}; record this command with `heaptoll lab oracle`",
                found.about.command.join(" ")
            )),
        }
    }
}

/// That a file has no points of unreachability, and what to do.
pub fn lacks_unreachable(path: &str) -> String {
    format!("{path} has no points of unreachability; record it with `heaptoll lab oracle --graph`")
}

/// A whole file whose code is still the same.
///
/// # Errors
/// What is wrong with it.
pub fn checked(path: &Path) -> Result<OracleFile, String> {
    if !path.exists() {
        return Err(format!("the recording {} is missing; `heaptoll lab oracle` makes it", path.display()));
    }
    let found = file::read(path).map_err(|error| error.to_string())?;
    found.require_same_code(path).map_err(|error| error.to_string())?;
    Ok(found)
}
