//! Standard output as a file to write: what `-` names, in every command.

use std::path::Path;

/// Makes every write to a standard output that was closed (`>&-`) fail. Before `main`, since Rust's run-time would put
/// `/dev/null` there, which takes a result in silence.
extern "C" fn refuse_where_closed() {
    // SAFETY: both are bare system calls; the path is a C string. What is open is numbered 1 only if 0 is open.
    unsafe {
        if libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) == -1 {
            let full = libc::open(c"/dev/full".as_ptr(), libc::O_WRONLY);
            if full != libc::STDOUT_FILENO && full >= 0 {
                libc::dup2(full, libc::STDOUT_FILENO);
                libc::close(full);
            }
        }
    }
}

#[used]
// SAFETY: the section holds functions that the loader calls, with a C function's calling convention.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = refuse_where_closed;

/// Whether a path is standard output.
pub fn is_meant(path: &Path) -> bool {
    path == Path::new("-")
}
