//! What is requested of `heaptoll lab reclamation`.

use std::path::PathBuf;

use heaptoll_oracle::FreePoint;

use heaptoll_runs::studied;

/// What to run.
#[derive(Debug, Clone)]
pub struct ReclamationRequest {
    /// Managers that are held fixed, by name or path, or groups of them.
    pub manager: Vec<String>,
    /// When objects are freed; the program's own free, which all are compared with, is always among them.
    pub points: Vec<FreePoint>,
    /// Whether unreachability is one more point where the recordings of all programs have it.
    pub adds_unreachable: bool,
    /// Folder of the recordings; what is missing there is recorded first.
    pub oracles: PathBuf,
    /// The programs, and how often they run.
    pub study: studied::Request,
}

impl ReclamationRequest {
    /// The points, each once, in the order from early to late.
    pub(super) fn all_points(&self) -> Vec<FreePoint> {
        let mut points = self.points.clone();
        points.push(FreePoint::Free);
        points.sort_unstable();
        points.dedup();
        points
    }
}
