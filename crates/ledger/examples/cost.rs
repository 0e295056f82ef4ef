//! What a look costs: a process with a heap of 1 GiB and a million live blocks, ourselves.
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
    // Three pages of four are there, so that there are many runs.
    for page in (0..heap.len()).step_by(4096).filter(|page| page / 4096 % 4 != 0) {
        heap[page] = 1;
    }
    let (start, step) = (heap.as_ptr() as u64, bytes / count);
    // In an order as of a hash table.
    let blocks: Vec<Block> = (0..count)
        .map(|at| {
            let place = (at * 0x9e37_79b1) % count;
            Block { address: start + place * step, requested: step * 3 / 5, usable: step * 4 / 5 }
        })
        .collect();
    let mut observer = Observer::new(std::process::id() as i32, Options::default());
    for _ in 0..5 {
        match observer.observe(0, 0, &blocks, None) {
            Ok(moment) => println!(
                "{:.1} ms, {} blocks, live {} MiB of {} MiB, difference {} bytes, overlaps {}",
                moment.took_ns as f64 / 1e6,
                moment.live_blocks,
                moment.amount(Term::Live).resident >> 20,
                moment.rss_bytes >> 20,
                moment.difference_bytes,
                moment.defects.overlapping_blocks,
            ),
            Err(error) => eprintln!("{error}"),
        }
    }
}
