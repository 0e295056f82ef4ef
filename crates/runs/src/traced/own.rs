//! The allocator that a program brings along, and what the tracer follows of it: nothing is preloaded.

use std::path::PathBuf;
use std::sync::Arc;

use heaptoll_experiment::experiment::StackInfo;
use heaptoll_reftrace_host::allocator_symbols::Table;

/// The allocator that a program brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnAllocator {
    /// Its name in the table; `malloc` where it goes by the names of C.
    pub name: String,
    /// The file that has it.
    pub binary: PathBuf,
    /// Why no manager can be put in its place.
    pub why: String,
}

impl OwnAllocator {
    /// The name of its row.
    pub fn row(&self) -> String {
        format!("own ({})", self.name)
    }

    /// Its stack: nothing is preloaded.
    pub fn stack(&self, program: &str) -> StackInfo {
        StackInfo {
            program: program.into(),
            name: self.row(),
            origin: format!("the allocator that {} was linked with", self.binary.display()),
            proof: format!("nothing is preloaded; {} is followed by its symbols", self.name),
            warnings: vec![format!("{}: the figures describe the allocator it was linked with", self.why)],
            ..StackInfo::default()
        }
    }
}

/// What the tracer follows in one program besides the routines of C.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    /// The names, as the tracer's option has them.
    pub symbols: Arc<str>,
    /// The families that they are of.
    pub table: Arc<Table>,
    /// The program's own allocator, where no manager was put in its place.
    pub own: Option<OwnAllocator>,
}

impl Follow {
    /// Every family of the table; of those that forward only the program's own.
    pub fn of(table: &Arc<Table>, own: Option<OwnAllocator>) -> Follow {
        let is_own = |name: &str| own.as_ref().is_some_and(|own| own.name == name);
        let symbols = table.lines(|family| !family.forwards || is_own(&family.name));
        Follow { symbols: symbols.into(), table: table.clone(), own }
    }
}
