//! Whether a corpus is whole: each file as the index has it, and each trace readable to its end.

use std::path::Path;

use super::CorpusError;
use super::figures::{Figures, Trace};
use crate::cluster::ClusterError;
use crate::cluster::digests;
use crate::cluster::role::Role;
use heaptoll_trace_reports::stat;

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The index.
    pub corpus: Figures,
    /// Traces that are not as the index has them: path and why.
    pub faults: Vec<(String, String)>,
}

/// Verifies a folder.
///
/// # Errors
/// It has no index, or it cannot be read.
pub fn check(folder: &Path) -> Result<Checked, CorpusError> {
    let corpus =
        Figures::read(folder)?.ok_or_else(|| CorpusError::NoCorpus { path: folder.to_path_buf() })?;
    let faults = corpus
        .traces()
        .filter_map(|trace| {
            let why = fault(trace, folder).or_else(|| unreadable(trace, folder))?;
            Some((trace.path.clone(), why))
        })
        .collect();
    Ok(Checked { corpus, faults })
}

/// In what a file is not the one of the index.
pub(super) fn fault(trace: &Trace, folder: &Path) -> Option<String> {
    match digests::digest(&folder.join(&trace.path), Role::Input) {
        Ok(found) if found.sha256 == trace.sha256 => None,
        Ok(found) => Some(format!("its SHA-256 is {}, but the index says {}", found.sha256, trace.sha256)),
        Err(ClusterError::MissingFile { .. }) => Some("it is missing".into()),
        Err(error) => Some(error.to_string()),
    }
}

/// Why a trace cannot be read as the index describes it.
fn unreadable(trace: &Trace, folder: &Path) -> Option<String> {
    match stat::measure(&folder.join(&trace.path), stat::Request::default()) {
        Err(error) => Some(error.to_string()),
        Ok((figures, _)) if figures.events != trace.events => {
            Some(format!("it has {} events, but the index says {}", figures.events, trace.events))
        }
        Ok(_) => None,
    }
}
