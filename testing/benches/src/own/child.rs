//! Child processes that measure themselves: how much memory is resident, how much CPU they used.

use crate::Error;

/// Resident memory by a walk of the page tables (`smaps_rollup`), KiB. The counters behind `ru_maxrss` and `VmHWM`
/// are kept per CPU and lag by up to some hundred KiB; this does not.
fn resident_kib() -> Result<u64, Error> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").map_err(Error::system("smaps_rollup"))?;
    text.lines()
        .find(|line| line.starts_with("Rss:"))
        .and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok())
        .ok_or_else(|| Error::Unexpected("smaps_rollup has no Rss line".into()))
}

/// Maps and touches `mib` MiB, then prints its resident KiB at that, its peak.
pub fn touch(mib: usize) -> Result<(), Error> {
    let bytes = mib << 20;
    if bytes > 0 {
        // SAFETY: a new anonymous private mapping, checked against MAP_FAILED; written within its length only.
        unsafe {
            let base = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if base == libc::MAP_FAILED {
                return Err(Error::system("mmap")(std::io::Error::last_os_error()));
            }
            libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE);
            for offset in (0..bytes).step_by(4096) {
                base.cast::<u8>().add(offset).write_volatile(1);
            }
        }
    }
    println!("{}", resident_kib()?);
    Ok(())
}

fn cpu_ns() -> u64 {
    // SAFETY: all zeroes is a valid `timespec`; `clock_gettime` writes to it, a live local, and nowhere else.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Uses `ms` of CPU by the process's own clock, then prints how many ns that clock shows.
pub fn spin(ms: u64) -> Result<(), Error> {
    while cpu_ns() < ms * 1_000_000 {
        std::hint::spin_loop();
    }
    println!("{}", cpu_ns());
    Ok(())
}
