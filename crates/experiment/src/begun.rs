//! The beginning of an experiment: what all have in common before their stacks are proved.

use crate::experiment::{Experiment, ProgramInfo, Protocol};
use crate::{clock, machine};

impl Experiment {
    /// A new one, begun now and here on this machine; without stacks and rows.
    pub fn begun(settings: Protocol, baseline: String, programs: Vec<ProgramInfo>) -> Experiment {
        let here = std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default();
        Experiment {
            heaptoll_version: env!("CARGO_PKG_VERSION").into(),
            created_unix_s: clock::now().as_secs_f64(),
            settings: Protocol { directory: here, ..settings },
            machine: machine::read(),
            baseline,
            programs,
            ..Experiment::default()
        }
    }
}
