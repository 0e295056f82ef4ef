//! What the kernel says about processes and threads.

use std::fs;

/// Whether the process, or the thread `PID/task/TID`, runs or could run: it is there and no zombie.
fn runs(stat: &str) -> bool {
    let Ok(text) = fs::read(stat) else { return false };
    // The name, in brackets, may hold anything.
    let Some(end) = text.iter().rposition(|&byte| byte == b')') else { return false };
    !matches!(text.get(end + 2), Some(b'Z' | b'X' | b'x') | None)
}

/// Whether a process runs.
pub(crate) fn process_runs(pid: i32) -> bool {
    runs(&format!("/proc/{pid}/stat")) || main_thread_only_gone(pid)
}

/// A process whose first thread has ended is a zombie by its own `stat` while its other threads run.
fn main_thread_only_gone(pid: i32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    tasks.flatten().any(|task| {
        task.file_name().to_str().is_some_and(|tid| runs(&format!("/proc/{pid}/task/{tid}/stat")))
    })
}

/// Whether a thread of a process runs.
pub(crate) fn thread_runs(pid: i32, tid: i32) -> bool {
    runs(&format!("/proc/{pid}/task/{tid}/stat"))
}
