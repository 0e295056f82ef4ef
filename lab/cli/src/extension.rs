//! What the laboratory adds to runs: it checks the recordings of the oracle layer, and reads the logs of Java's virtual machines.

use std::path::Path;

use heaptoll_experiment::extension::{Extension, FileCheck};
use heaptoll_experiment::manager::Manager;
use heaptoll_laboratory::oracle::recordings;
use heaptoll_stats_page::SlotRecord;

/// The extension of this process.
pub struct Laboratory;

impl Extension for Laboratory {
    fn file_check(&self) -> FileCheck {
        recordings::check()
    }

    fn slots(&self, scratch: &Path) -> Result<Vec<SlotRecord>, String> {
        heaptoll_java::logs(scratch).map(|logs| heaptoll_java::slots(&logs)).map_err(|why| why.to_string())
    }

    fn proof(&self, manager: &Manager, command: &[String], scratch: &Path) -> Result<String, String> {
        heaptoll_java::proof(manager, command, scratch).map_err(|why| why.to_string())
    }

    fn is_out_of_memory(&self, output: &str) -> bool {
        heaptoll_java::is_out_of_memory(output)
    }
}
