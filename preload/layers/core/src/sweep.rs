//! The parts of the sweep layer that need no process around them: its settings, when it collects, and which addresses
//! are the manager's.

pub use heaptoll_marking::cores;

pub mod elf;
pub mod held;
pub mod policy;
pub mod ranges;
pub mod settings;
pub mod side_tables;
