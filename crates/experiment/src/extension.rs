//! What the laboratory adds to runs: whether a file that a layer needs is of the program, and what virtual machines report of
//! their heaps. The product has nothing of it, and takes what is handed in. Where nothing is, it refuses what needs it.

use std::path::Path;
use std::sync::OnceLock;

use heaptoll_stats_page::SlotRecord;
use thiserror::Error;

use crate::experiment::ProgramInfo;
use crate::laboratory;
use crate::manager::Manager;
use crate::stack::Layer;

/// What only the laboratory does.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} needs the laboratory, which is not installed: {}", laboratory::GET)]
pub struct NeedsLaboratory {
    what: String,
}

/// Refuses what only the laboratory does, where nothing was handed in.
///
/// # Errors
/// As stated.
pub fn require(what: &str) -> Result<(), NeedsLaboratory> {
    match HANDED_IN.get() {
        Some(_) => Ok(()),
        None => Err(NeedsLaboratory { what: what.to_owned() }),
    }
}

/// Refuses a stack that only the laboratory prepares or reads: a layer with a file that it makes, a collector of Java's
/// virtual machine.
///
/// # Errors
/// As [`require`].
pub fn require_for(stack: &Manager) -> Result<(), NeedsLaboratory> {
    let has_file =
        |layer: &Layer| layer.kind.file.as_ref().is_some_and(|file| layer.setting(&file.option).is_some());
    match stack.is_java() || stack.layers.iter().any(has_file) {
        true => require(&format!("`{}`", stack.name)),
        false => Ok(()),
    }
}

/// Why the file of a stack's layer does not serve a program; `None` where it does, or the stack needs none.
pub type FileCheck = Box<dyn FnMut(&Manager, &ProgramInfo) -> Option<String>>;

/// What can be added. Each function has the answer where nothing is.
pub trait Extension: Sync {
    /// The check of the files that the stacks of a program need made before they run.
    fn file_check(&self) -> FileCheck {
        Box::new(|_, _| None)
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
        Err(NeedsLaboratory { what: format!("`{}`", manager.name) }.to_string())
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

#[cfg(test)]
mod tests {
    use crate::manager::{ManagerSource, find, glibc};

    use super::*;

    /// Before, a stopped experiment with Java's collectors went on without them and counted no collections.
    #[test]
    fn a_stack_that_only_the_laboratory_reads_is_refused_where_it_is_not_with_how_to_get_it() {
        let stack = |word: &str| find(&[glibc()], word).expect(word);
        let java = Manager { name: "jvm-g1".into(), kind: ManagerSource::Java, ..glibc() };
        for (stack, name) in [
            (stack("oracle=free,file=/a.oracle/glibc"), "`oracle=free,file=/a.oracle/glibc`"),
            (stack("oracle=last-use/glibc"), "`oracle=last-use/glibc`"),
            (java, "`jvm-g1`"),
        ] {
            let why = require_for(&stack).expect_err(name).to_string();
            assert!(why.starts_with(name) && why.contains("make lab"), "{why}");
            assert_eq!(extension().proof(&stack, &[], Path::new("/")), Err(why));
        }
        for word in ["glibc", "oracle=record/glibc", "quarantine=1M/glibc"] {
            assert_eq!(require_for(&stack(word)), Ok(()));
            assert!(
                extension().proof(&stack(word), &[], Path::new("/")).is_err(),
                "{word} has no proof of Java's"
            );
        }
    }
}
