//! The cost of a sample: this process itself with a heap of 1 GiB and a million live blocks.
//!
//! `cargo run --release -p heaptoll-ledger --example cost [BLOCKS] [MIB]`

use heaptoll_ledger::{Block, Observer, Options, Term};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let mut figure = |usual| match arguments.next() {
        Some(Ok(figure)) if figure > 0 => figure,
        _ => usual,
    };
    let (count, bytes) = (figure(1_000_000), figure(1024) << 20);
    let mut heap = vec![0_u8; bytes as usize];
    // Three pages of four are resident, so that there are many runs.
    for page in (0..heap.len()).step_by(4096).filter(|page| page / 4096 % 4 != 0) {
        heap[page] = 1;
    }
    let (start, step) = (heap.as_ptr() as u64, bytes / count);
    let block = |place: u64| Block {
        address: start + place * step,
        requested: step * 3 / 5,
        usable: step * 4 / 5,
        ..Block::default()
    };
    let orders = [
        ("by address, as the recorder has them", (0..count).map(block).collect::<Vec<Block>>()),
        ("as of a hash table", (0..count).map(|at| block(at.wrapping_mul(0x9e37_79b1) % count)).collect()),
    ];
    for (order, blocks) in &orders {
        println!("{order}:");
        let mut observer = Observer::new(std::process::id() as i32, Options::default());
        for _ in 0..5 {
            let before = cpu_ms();
            match observer.observe(0, 0, blocks, None) {
                Ok(snapshot) => println!(
                    "  {:.1} ms of CPU, {:.1} ms; {} blocks, live {} MiB of {} MiB, difference {} bytes",
                    cpu_ms() - before,
                    snapshot.took_ns as f64 / 1e6,
                    snapshot.live_blocks,
                    snapshot.amount(Term::Live).resident >> 20,
                    snapshot.rss_bytes >> 20,
                    snapshot.difference_bytes,
                ),
                Err(error) => eprintln!("  {error}"),
            }
        }
    }
}

/// CPU time of this process, ms.
fn cpu_ms() -> f64 {
    // SAFETY: all zeroes is a valid timespec; clock_gettime writes to this live local only.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
        time
    };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
