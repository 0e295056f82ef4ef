//! Limits of this process that a recording needs more of than the program: what the program inherits stays as it was.

use std::sync::OnceLock;

/// Gets a limit.
fn get(which: libc::__rlimit_resource_t) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live local that is filled in.
    (unsafe { libc::getrlimit(which, &mut limit) } == 0).then_some(limit)
}

/// Sets one, where it is allowed. May be called between fork and exec.
pub fn set(which: libc::__rlimit_resource_t, limit: &libc::rlimit) -> bool {
    // SAFETY: a live place that is only read.
    unsafe { libc::setrlimit(which, limit) == 0 }
}

/// Lets this process open as many files as it may, for many processes may be recorded at once, and gives the limits from
/// before, when they were others.
pub fn raise_open_files() -> Option<libc::rlimit> {
    static BEFORE: OnceLock<Option<libc::rlimit>> = OnceLock::new();
    *BEFORE.get_or_init(|| {
        let before = get(libc::RLIMIT_NOFILE).filter(|limit| limit.rlim_cur != limit.rlim_max)?;
        let raised = libc::rlimit { rlim_cur: before.rlim_max.min(1 << 16).max(before.rlim_cur), ..before };
        set(libc::RLIMIT_NOFILE, &raised).then_some(before)
    })
}

/// While this is there, this process makes files as large as it may: that of the rings is large, and sparse.
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
