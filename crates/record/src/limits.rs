//! Limits of this process that a recording raises; the program inherits them as they were.

use std::sync::OnceLock;

/// Gets a limit.
fn get(which: libc::__rlimit_resource_t) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes to this live local only.
    (unsafe { libc::getrlimit(which, &mut limit) } == 0).then_some(limit)
}

/// Sets one, where it is allowed. May be called between fork and exec.
pub fn set(which: libc::__rlimit_resource_t, limit: &libc::rlimit) -> bool {
    // SAFETY: setrlimit reads `limit`, a live reference, and writes to no memory of ours.
    unsafe { libc::setrlimit(which, limit) == 0 }
}

/// Raises the number of files that this process may open to its hard limit, since many processes may be recorded at
/// once, and returns the previous limits when they were different.
pub fn raise_open_files() -> Option<libc::rlimit> {
    static BEFORE: OnceLock<Option<libc::rlimit>> = OnceLock::new();
    *BEFORE.get_or_init(|| {
        let before = get(libc::RLIMIT_NOFILE).filter(|limit| limit.rlim_cur != limit.rlim_max)?;
        let raised = libc::rlimit { rlim_cur: before.rlim_max.min(1 << 16).max(before.rlim_cur), ..before };
        set(libc::RLIMIT_NOFILE, &raised).then_some(before)
    })
}

/// Lifts the limit on file sizes while it exists: the file of the rings is large, and sparse.
#[derive(Debug)]
pub struct LargeFiles(Option<libc::rlimit>);

impl LargeFiles {
    /// Raises the limit.
    pub fn allow() -> LargeFiles {
        let before = get(libc::RLIMIT_FSIZE).filter(|limit| limit.rlim_cur != limit.rlim_max);
        LargeFiles(
            before.filter(|before| {
                set(libc::RLIMIT_FSIZE, &libc::rlimit { rlim_cur: before.rlim_max, ..*before })
            }),
        )
    }
}

impl Drop for LargeFiles {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            set(libc::RLIMIT_FSIZE, before);
        }
    }
}
