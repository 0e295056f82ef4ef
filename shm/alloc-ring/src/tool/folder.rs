//! The choice of the folder for the file, and how much memory its rings may have there.

use std::env;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum memory of all rings together, bytes, however much there is.
pub(crate) const MOST: u64 = 256 << 20;
/// With less than this, bytes, another folder is preferred.
const ENOUGH: u64 = 16 << 20;
/// With less than this, bytes, a folder is not used: as much as eight threads begin with.
const LEAST: u64 = 512 << 10;
/// Of the memory that is available to this process, the rings get one part in this many.
const PART_OF_MEMORY: u64 = 4;

/// A folder, and the memory that the rings of a file there may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub folder: PathBuf,
    pub budget_bytes: u64,
    /// Whether there is enough for many threads, or for all that was requested.
    pub is_enough: bool,
}

/// The folders to try, the best first: those with enough in their order, then the others by decreasing budget.
/// `fixed_bytes` are needed in addition to the rings, which want `wanted_bytes`.
pub(crate) fn candidates(folder: Option<&Path>, fixed_bytes: u64, wanted_bytes: u64) -> Vec<Candidate> {
    let named = |variable| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folders = match folder {
        Some(folder) => vec![folder.to_owned()],
        None => [named("XDG_RUNTIME_DIR"), Some("/dev/shm".into()), named("TMPDIR"), Some("/tmp".into())]
            .into_iter()
            .flatten()
            .collect(),
    };
    let memory = available().map_or(u64::MAX, |bytes| bytes / PART_OF_MEMORY).max(LEAST);
    let most = MOST.min(wanted_bytes).min(memory);
    let mut candidates: Vec<Candidate> = folders
        .into_iter()
        .map(|folder| {
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            // Half of it: the program may want to write there, too, and must not find it full because of us. If the
            // free space is unknown, making the file shows whether it suffices.
            let half = free(&folder).map_or(u64::MAX, |bytes| bytes.saturating_sub(fixed_bytes) / 2);
            let budget_bytes = most.min(half);
            Candidate { folder, budget_bytes, is_enough: budget_bytes >= most.min(ENOUGH) }
        })
        .collect();
    candidates
        .sort_by_key(|candidate| if candidate.is_enough { 0 } else { u64::MAX - candidate.budget_bytes });
    candidates
}

impl Candidate {
    /// Whether there is enough to record anything.
    pub fn suffices(&self, wanted_bytes: u64) -> bool {
        self.budget_bytes >= LEAST.min(wanted_bytes)
    }
}

/// Bytes that this user can still write to a folder's file system; `None`: unknown, or unlimited.
fn free(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: zero is a valid `statvfs`; statvfs writes `about`, a local variable, and reads the path, a C string.
    let about = unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut about) == 0).then_some(about)?
    };
    (about.f_blocks > 0).then(|| about.f_bavail.saturating_mul(about.f_frsize))
}

/// Bytes of memory that this process and its children can still get: by the machine, and by its control group, if that
/// is mounted in its usual place.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?.split_whitespace().next()?;
    let machine = kib.parse::<u64>().ok()?.saturating_mul(1024);
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map_or(u64::MAX, |(most, now)| most.saturating_sub(now));
    Some(machine.min(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rings_get_half_of_what_is_free_and_no_more_than_they_want() {
        let here = tempfile::tempdir().expect("a folder");
        let candidates = candidates(Some(here.path()), 0, 1 << 20);
        assert_eq!(candidates.len(), 1);
        assert!(candidates[0].is_enough && candidates[0].budget_bytes == 1 << 20, "{candidates:?}");
        let fixed = free(here.path()).expect("the file system reports it").saturating_add(1 << 40);
        let full = super::candidates(Some(here.path()), fixed, 1 << 20);
        assert!(!full[0].is_enough && !full[0].suffices(1 << 20), "{full:?}");
    }
}
