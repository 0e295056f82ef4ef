//! Where the file is made, and how much memory its rings may have there.

use std::env;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Rings have no more memory than this together, bytes, however much there is.
pub(crate) const MOST: u64 = 256 << 20;
/// With less than this, bytes, another folder is looked for.
const ENOUGH: u64 = 16 << 20;
/// With less than this, bytes, a folder is of no use: as much as eight threads begin with.
const LEAST: u64 = 512 << 10;
/// Of the memory that is available to this process, the rings get the part that is 1 over this.
const PART_OF_MEMORY: u64 = 4;

/// A folder, and what the rings of a file there may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub folder: PathBuf,
    pub budget_bytes: u64,
    /// Whether there is enough for many threads, or for all that was asked for.
    pub is_enough: bool,
}

/// The folders to try, the best first: those with enough in their order, then the others, of which that with the most
/// comes first. `fixed_bytes` are needed beside the rings, which want `wanted_bytes`.
pub(crate) fn places(folder: Option<&Path>, fixed_bytes: u64, wanted_bytes: u64) -> Vec<Place> {
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
    let mut places: Vec<Place> = folders
        .into_iter()
        .map(|folder| {
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            // Half of it: the program may want to write there, too, and must not find it full because of us. What
            // cannot be known shows when the file is made.
            let half = free(&folder).map_or(u64::MAX, |bytes| bytes.saturating_sub(fixed_bytes) / 2);
            let budget_bytes = most.min(half);
            Place { folder, budget_bytes, is_enough: budget_bytes >= most.min(ENOUGH) }
        })
        .collect();
    places.sort_by_key(|place| if place.is_enough { 0 } else { u64::MAX - place.budget_bytes });
    places
}

impl Place {
    /// Whether anything can be recorded there.
    pub fn is_of_use(&self, wanted_bytes: u64) -> bool {
        self.budget_bytes >= LEAST.min(wanted_bytes)
    }
}

/// Bytes that this user can still write to a folder's file system; `None`: it does not say, or has no limit.
fn free(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: zero is a valid `statvfs`, which the kernel fills in; the path is a C string.
    let about = unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut about) == 0).then_some(about)?
    };
    (about.f_blocks > 0).then(|| about.f_bavail.saturating_mul(about.f_frsize))
}

/// Bytes of memory that this process and its children can still get: by the machine, and by its control group as far as
/// that is mounted where it usually is.
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
        let places = places(Some(here.path()), 0, 1 << 20);
        assert_eq!(places.len(), 1);
        assert!(places[0].is_enough && places[0].budget_bytes == 1 << 20, "{places:?}");
        let fixed = free(here.path()).expect("it says").saturating_add(1 << 40);
        let full = super::places(Some(here.path()), fixed, 1 << 20);
        assert!(!full[0].is_enough && !full[0].is_of_use(1 << 20), "{full:?}");
    }
}
