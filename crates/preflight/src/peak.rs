//! Whose peak of memory the kernel counts: it goes on counting that of an image that another has replaced.

use crate::tree::{Ending, Run};

/// Two counts of one peak may differ by so many bytes: threads add up their pages now and then.
const COARSE: u64 = 4 << 20;

/// That the peak of memory is of an image which another has replaced.
pub fn replaced_peak(run: &Run) -> Option<String> {
    let (peak, ended) = (run.peak_bytes, run.resident_bytes);
    let counted = ended.max(own_peak_bytes()).saturating_mul(5) / 4;
    if ended == 0 || run.ending == Ending::Stopped || peak <= counted.saturating_add(COARSE) {
        return None;
    }
    let images = &run.images;
    let is_replaced = |at: usize| images[at + 1..].iter().any(|later| later.pid == images[at].pid);
    let mut names: Vec<String> = (0..images.len())
        .filter(|at| is_replaced(*at))
        .filter_map(|at| Some(images[at].exe.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.dedup();
    Some(format!(
        "the peak of memory, {}, belongs to the program before an exec; the program after it had at most {}. The \
         kernel counts both together ({}): measure the program that it starts",
        heaptoll_units::whole_bytes(peak),
        heaptoll_units::whole_bytes(ended),
        names.join(", ")
    ))
}

/// The peak of this process's own resident memory: the kernel counts it for each process that this one starts.
fn own_peak_bytes() -> u64 {
    // SAFETY: all zeroes is a valid rusage; getrusage writes to this live local only.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage.ru_maxrss.cast_unsigned().saturating_mul(1024)
    }
}
