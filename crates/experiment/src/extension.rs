//! What the laboratory adds to runs: whether a file that a layer needs is of the program, and what virtual machines report of
//! their heaps. The product has nothing of it, and takes what is handed in.

use std::path::Path;
use std::sync::OnceLock;

use heaptoll_stats_page::SlotRecord;

use crate::experiment::ProgramInfo;
use crate::manager::{Manager, filled};

/// Why the file of a stack's layer does not serve a program; `None` where it does, or the stack needs none.
pub type FileCheck = Box<dyn FnMut(&Manager, &ProgramInfo) -> Option<String>>;

/// What can be added. Each function has the answer where nothing is.
pub trait Extension: Sync {
    /// The check of the files that the stacks of a program need made before they run.
    fn file_check(&self) -> FileCheck {
        Box::new(unchecked)
    }

    /// What virtual machines left in the scratch folder of a run, as slots of its statistics page.
    ///
    /// # Errors
    /// What they left cannot be read.
    fn slots(&self, _scratch: &Path) -> Result<Vec<SlotRecord>, String> {
        Ok(vec![])
    }

    /// What proves that the program of a proof run had this collector of its virtual machine.
    ///
    /// # Errors
    /// Why it had not.
    fn proof(&self, manager: &Manager, _command: &[String], _scratch: &Path) -> Result<String, String> {
        Err(format!("{}: what reads the logs of Java's virtual machines is not installed", manager.name))
    }

    /// Whether a virtual machine reports that its heap is too small.
    fn is_out_of_memory(&self, _output: &str) -> bool {
        false
    }
}

struct Nothing;

impl Extension for Nothing {}

static HANDED_IN: OnceLock<&dyn Extension> = OnceLock::new();

/// Hands in the extension of this process; only the first one counts.
pub fn hand_in(extension: &'static dyn Extension) {
    HANDED_IN.get_or_init(|| extension);
}

/// The one that was handed in.
pub fn extension() -> &'static dyn Extension {
    HANDED_IN.get().copied().unwrap_or(&Nothing)
}

fn unchecked(manager: &Manager, program: &ProgramInfo) -> Option<String> {
    manager.layers.iter().find_map(|layer| {
        let file = layer.kind.file.as_ref()?;
        let (_, path) = layer.settings.iter().find(|(name, _)| *name == file.option)?;
        let (path, by) = (filled(path, &program.name), &file.made_by);
        Some(format!(
            "{path} cannot be compared with this program here: `{by}`, which makes it, is not installed"
        ))
    })
}

#[cfg(test)]
mod tests {
    use crate::manager::{find, glibc};

    use super::*;

    #[test]
    fn a_file_that_nothing_here_can_check_is_refused() {
        let mut check = extension().file_check();
        let mut why = |stack: &str| check(&find(&[glibc()], stack).expect(stack), &ProgramInfo::default());
        assert!(
            why("oracle=free,file=/a.oracle/glibc").is_some_and(|why| why.contains("/a.oracle cannot be"))
        );
        assert_eq!((why("oracle=record/glibc"), why("quarantine=1M/glibc")), (None, None));
    }
}
