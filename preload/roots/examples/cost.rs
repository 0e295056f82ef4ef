//! What a stop and the roots cost: `cost [MAPPINGS [TIMES [THREADS]]]`, medians in µs. The other threads sleep.
//!
//! The process is given so many mappings, as a larger program has them: single pages far from each other, every other
//! one not writable.

use std::hint::black_box;
use std::time::Instant;

use heaptoll_roots::World;

static WORLD: World = World::new();

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let mappings: usize = arguments.next().unwrap_or(60);
    let times: usize = arguments.next().unwrap_or(2000);
    WORLD.start(None, 2000);
    let count = || std::fs::read_to_string("/proc/self/maps").expect("maps").lines().count();
    let mut made = 0;
    while count() < mappings {
        let access = if made % 2 == 0 { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which stays; its first page is written if it may be.
        unsafe {
            let place = std::ptr::without_provenance_mut((1 << 44) + made * (1 << 24));
            let page = libc::mmap(place, 4 * 4096, access, kind, -1, 0);
            assert_ne!(page, libc::MAP_FAILED);
            if made % 2 == 0 {
                *page.cast::<usize>() = 1;
            }
        }
        made += 1;
    }
    for _ in 1..arguments.next().unwrap_or(1) {
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        });
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    let (mut stops, mut roots, mut resumes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ranges, mut bytes) = (0, 0);
    for _ in 0..times {
        (ranges, bytes) = (0, 0);
        let begin = Instant::now();
        let stopped = WORLD.stop().expect("stops");
        let standing = Instant::now();
        stopped
            .roots(&[], &mut |root| {
                ranges += 1;
                bytes += black_box(root.range.len());
            })
            .expect("readable");
        let shown = Instant::now();
        drop(stopped);
        resumes.push(shown.elapsed().as_secs_f64() * 1e6);
        stops.push((standing - begin).as_secs_f64() * 1e6);
        roots.push((shown - standing).as_secs_f64() * 1e6);
    }
    let threads = WORLD.stop().expect("stops").threads();
    println!(
        "{threads} threads, {} mappings, {ranges} root ranges of {} KiB: stop {:.1} µs, roots {:.1} µs, resume {:.1} µs",
        count(),
        bytes >> 10,
        median(stops),
        median(roots),
        median(resumes),
    );
}
