//! What a stop, the roots and the scan of a written page cost: `cost [MAPPINGS [TIMES [THREADS [FILES]]]]`, medians in µs.
//! The other threads sleep.
//!
//! The process is given so many mappings, as a larger program has them: single pages far from each other, every other
//! one not writable. If FILES is not 0, all but a third are of a file and not writable, as those of libraries are.

use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::time::Instant;

use heaptoll_roots::{RootKinds, World, WriteTracker};

static WORLD: World = World::new();

heaptoll_roots::interpose_kernel_calls!();

/// `NaN`: there are none.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let mappings: usize = arguments.next().unwrap_or(60);
    let times: usize = arguments.next().unwrap_or(2000);
    WORLD.start(None, 2000, 2);
    let threads = arguments.next().unwrap_or(1);
    let files = arguments.next().unwrap_or(0) != 0;
    let program = std::fs::File::open("/proc/self/exe").expect("the program");
    let count = || std::fs::read_to_string("/proc/self/maps").expect("maps").lines().count();
    let mut made = 0;
    while count() < mappings {
        let access = if made % 2 == 0 { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let of_file = files && made % 3 != 0;
        let access = if of_file { libc::PROT_READ } else { access };
        let (kind, file) = if of_file { (0, program.as_raw_fd()) } else { (libc::MAP_ANONYMOUS, -1) };
        // SAFETY: a new mapping, which stays; its first page is written if it may be.
        unsafe {
            let place = std::ptr::without_provenance_mut((1 << 44) + made * (1 << 24));
            let page = libc::mmap(place, 4 * 4096, access, kind | libc::MAP_PRIVATE, file, 0);
            assert_ne!(page, libc::MAP_FAILED);
            if access & libc::PROT_WRITE != 0 {
                *page.cast::<usize>() = 1;
            }
        }
        made += 1;
    }
    for _ in 1..threads {
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        });
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    let (mut stops, mut roots, mut resumes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ranges, mut bytes) = (0, 0);
    let mut tracker = WriteTracker::new();
    let mut scans = Vec::new();
    let start = {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which stays.
        unsafe { libc::mmap(std::ptr::without_provenance_mut(1 << 43), 4096, access, kind, -1, 0) as usize }
    };
    for _ in 0..times {
        (ranges, bytes) = (0, 0);
        let begin = Instant::now();
        let stopped = WORLD.stop().expect("stops");
        let standing = Instant::now();
        let memory = start..start + 4096;
        let scanned = tracker.scan(memory.clone()).and_then(|mut scan| scan.written(memory, &mut |_| {}));
        if scanned.is_ok() {
            scans.push(standing.elapsed().as_secs_f64() * 1e6);
        }
        let tracked = Instant::now();
        stopped
            .roots(RootKinds::ALL, &[], &mut |root| {
                ranges += 1;
                bytes += black_box(root.range.len());
            })
            .expect("readable");
        let shown = Instant::now();
        drop(stopped);
        resumes.push(shown.elapsed().as_secs_f64() * 1e6);
        stops.push((standing - begin).as_secs_f64() * 1e6);
        roots.push((shown - tracked).as_secs_f64() * 1e6);
    }
    let threads = WORLD.stop().expect("stops").threads();
    println!(
        "{threads} threads, {} mappings, {ranges} root ranges of {} KiB: stop {:.1} µs, roots {:.1} µs, resume {:.1} µs, \
         written pages {:.1} µs",
        count(),
        bytes >> 10,
        median(stops),
        median(roots),
        median(resumes),
        median(scans),
    );
}
