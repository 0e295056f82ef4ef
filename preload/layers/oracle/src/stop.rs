//! Ends the process where it cannot be followed any more, with the reason on standard error.

use core::ffi::c_int;
use core::fmt::Write;

use heaptoll_layer_core::oracle::difference::{Difference, What};
use heaptoll_layer_core::oracle::sites::{Loaded, Sites};
use heaptoll_next::stderr_line::StderrLine;

/// Exit status of a process that the layer ended.
pub const STOPPED: c_int = 93;

/// Where the reasons are explained.
const PAGE: &[u8] = b" (docs/lab/reclamation.md: what must be the same)";

/// Writes the line and ends the process.
pub fn stop(line: StderrLine) -> ! {
    line.write_out();
    // SAFETY: exit_group takes no pointers and does not return; nothing of the program's runs any more.
    unsafe {
        libc::syscall(libc::SYS_exit_group, STOPPED);
        libc::abort()
    }
}

/// Ends the process for a reason that has no figures.
pub fn stop_because(reason: &str) -> ! {
    let mut line = StderrLine::new();
    line.put(b"the oracle stops: ");
    line.put(reason.as_bytes());
    stop(line)
}

/// Ends the process at the first allocation that is not as it was recorded: of `size` bytes, called from `caller`.
pub fn stop_at<L: Loaded>(difference: Difference, sites: &Sites<L>, size: usize, caller: usize) -> ! {
    let mut line = StderrLine::new();
    let _ = write!(line, "the oracle stops: allocation {} ", difference.allocation);
    // Texts that do not fit into the line are cut off, so results are ignored.
    let _ = match difference.what {
        What::Size { recorded, now } => {
            write!(line, "is of {now} bytes, and was of {recorded} when it was recorded")
        }
        What::Site(_) => {
            write!(line, "of {size} bytes is called from another place than when it was recorded")
        }
        What::Resize => {
            write!(line, "of {size} bytes is a realloc now or was one when it was recorded, not both")
        }
        What::End => write!(line, "of {size} bytes was not made when the program was recorded"),
        What::File => write!(
            line,
            "of {size} bytes: the recorded file was damaged, or cannot be opened by the program any more"
        ),
    };
    line.put(b"; called from ");
    line.code_address(caller + 1);
    if let What::Site(site) = difference.what
        && let Some((object, address)) = sites.place(site)
    {
        line.put(b", recorded from ");
        line.put(object);
        let _ = write!(line, "+{address:#x}");
    }
    line.put(PAGE);
    stop(line)
}
