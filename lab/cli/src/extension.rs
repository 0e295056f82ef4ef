//! What the laboratory adds to runs: it checks the recordings of the oracle layer, and reads the logs of Java's virtual machines.

use std::path::Path;

use heaptoll_experiment::extension::{Extension, FileCheck};
use heaptoll_experiment::manager::Manager;
use heaptoll_laboratory::{java, oracle::recordings};
use heaptoll_stats_page::SlotRecord;

/// The extension of this process.
pub struct Laboratory;

impl Extension for Laboratory {
    fn file_check(&self) -> FileCheck {
        recordings::check()
    }

    fn slots(&self, scratch: &Path) -> Result<Vec<SlotRecord>, String> {
        java::logs(scratch).map(|logs| java::slots(&logs)).map_err(|why| why.to_string())
    }

    fn proof(&self, manager: &Manager, command: &[String], scratch: &Path) -> Result<String, String> {
        java::proof(manager, command, scratch).map_err(|why| why.to_string())
    }

    fn is_out_of_memory(&self, output: &str) -> bool {
        java::is_out_of_memory(output)
    }
}
