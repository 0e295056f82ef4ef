//! The runs of a search.

use heaptoll_experiment::experiment::StackInfo;
use heaptoll_experiment::extension::extension;
use heaptoll_experiment::observation::{Observation, Phase};
use heaptoll_experiment::runner::{Around, Left, RunError};

use heaptoll_command::failure::Failure;
use heaptoll_runs::chosen::Rows;

/// The row of a run of a search, however well it ended, has what shows whether memory was short.
struct Messages;

impl Around for Messages {
    fn ended(&mut self, left: &Left, row: &mut Observation) -> Result<Option<Vec<u8>>, RunError> {
        if row.outcome.is_ok() {
            row.stderr_tail.clone_from(&left.finished.error_tail);
        }
        // A virtual machine that does not even start states that on standard output.
        let output = String::from_utf8_lossy(&left.finished.output_head);
        if extension().is_out_of_memory(&output) {
            row.stderr_tail = format!("{}\n{output}", row.stderr_tail);
        }
        Ok(None)
    }
}

/// Makes a run of a search, or finds its row.
///
/// # Errors
/// Ctrl-C, or heaptoll's own machinery failed.
pub fn run(rows: &mut Rows, stack: &StackInfo, repetition: u32) -> Result<Observation, Failure> {
    rows.row(stack, Phase::Search, repetition, &mut Messages)
}
