//! How fast the tables and the marker over them are, on this machine: `cargo run --release --example marking`.
//!
//! Objects of 16 to 64 bytes, 8 bytes between them as under malloc, are linked in lists, trees and arrays, in the order
//! of their addresses or at random. Prints for each ns an object and MB of live objects a second for one marker, ns an
//! object to find the dead where nothing is and where everything is, and ns for one insertion and removal.

use std::error::Error;
use std::hint::black_box;

use heaptoll_layer_core::sweep::side_tables::{Marking, Tables};

const OBJECTS: usize = 500_000;
const ROUNDS: usize = 5;

/// Processor time of this thread, ns: other programs' is not counted.
fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place to write the time to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }
}

/// Objects in memory of their own.
struct Heap {
    tables: Box<Tables>,
    _memory: Vec<u64>,
    objects: Vec<(usize, usize)>,
    bytes: usize,
}

fn heap(random: &mut Random) -> Result<Heap, Box<dyn Error>> {
    let tables = Box::new(Tables::new());
    let mut memory = vec![0_u64; OBJECTS * 9];
    let mut at = (memory.as_mut_ptr() as usize).next_multiple_of(16);
    let (mut objects, mut sum) = (Vec::new(), 0);
    for _ in 0..OBJECTS {
        // As glibc has them: 24, 40, 56 bytes, and 8 between.
        let bytes = 24 + random.below(3) * 16;
        tables.insert(at, bytes)?;
        objects.push((at, bytes));
        at += bytes + 8;
        sum += bytes;
    }
    Ok(Heap { tables, _memory: memory, objects, bytes: sum })
}

fn set(at: usize, value: usize) {
    // SAFETY: the callers write within objects.
    unsafe { (at as *mut usize).write(value) };
}

/// Links objects; returns the roots.
type Shape = fn(&[(usize, usize)]) -> Vec<usize>;

fn list(objects: &[(usize, usize)]) -> Vec<usize> {
    objects.windows(2).for_each(|pair| set(pair[0].0, pair[1].0));
    vec![objects[0].0]
}

fn tree(objects: &[(usize, usize)]) -> Vec<usize> {
    for (number, object) in objects.iter().enumerate() {
        for side in 0..2 {
            set(object.0 + 8 * side, objects.get(2 * number + 1 + side).map_or(0, |child| child.0));
        }
    }
    vec![objects[0].0]
}

fn array(objects: &[(usize, usize)]) -> Vec<usize> {
    objects.iter().map(|object| object.0).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = Random(88_172_645_463_325_252);
    let mut seen = 0;
    println!(
        "{:<16} {:>12} {:>10} {:>12} {:>12}",
        "objects", "ns an object", "MB/s", "ns none dead", "ns all dead"
    );
    let shapes: [(&str, Shape); 3] = [("list", list), ("tree", tree), ("array", array)];
    for (name, shape) in shapes {
        for shuffled in [false, true] {
            let mut heap = heap(&mut random)?;
            let mut order = heap.objects.clone();
            if shuffled {
                (1..order.len()).rev().for_each(|last| order.swap(last, random.below(last + 1)));
            }
            let roots = shape(&order);
            let range = roots.as_ptr_range();
            let mut marking = Marking::new();
            marking.prepare(heap.bytes);
            let (mut best, mut none) = (f64::MAX, f64::MAX);
            for _ in 0..ROUNDS {
                let start = cpu_ns();
                // SAFETY: the only thread; the objects and roots are its own.
                let (_, marked) = unsafe {
                    marking
                        .mark(&heap.tables, 1, |roots| roots.range(range.start as usize..range.end as usize))
                };
                best = best.min(cpu_ns() - start);
                if marked.live != heap.bytes {
                    return Err(format!("{} of {} bytes were marked", marked.live, heap.bytes).into());
                }
                let start = cpu_ns();
                // SAFETY: the only thread, and `mark` has marked everything.
                unsafe { heap.tables.dead(|start, _| seen = black_box(start)) };
                none = none.min(cpu_ns() - start);
            }
            let start = cpu_ns();
            // SAFETY: the only thread; nothing is marked, so that all blocks are dead.
            unsafe { heap.tables.dead(|start, _| seen = black_box(start)) };
            let all = cpu_ns() - start;
            let each = OBJECTS as f64;
            let name = if shuffled { format!("{name}, random") } else { name.to_string() };
            println!(
                "{name:<16} {:>12.1} {:>10.0} {:>12.2} {:>12.1}",
                best / each,
                heap.bytes as f64 / best * 1000.0,
                none / each,
                all / each
            );
            heap.objects.clear();
        }
    }
    black_box(seen);
    small()?;
    pairs(&mut random)
}

/// What a collection of few blocks costs, before and after there were many: chunks at both ends of the address space,
/// as where one part of the blocks lies on the break and another in mappings.
fn small() -> Result<(), Box<dyn Error>> {
    let tables = Box::new(Tables::new());
    let mut marking = Marking::new();
    marking.prepare(0);
    let memory = vec![0_u64; 1 << 16];
    let (base, many) = (memory.as_ptr() as usize, 0x2000_0000_0000_usize);
    println!("{:<40} {:>10}", "a collection of 1000 blocks", "us");
    for what in ["as the first", "where 1 GiB was"] {
        let starts: Vec<usize> = (0..1000).map(|number| base + number * 64).collect();
        let range = starts.as_ptr_range();
        let mut best = f64::MAX;
        for _ in 0..100 {
            for start in &starts {
                if tables.find(*start).is_none() {
                    tables.insert(*start, 56)?;
                }
            }
            let start = cpu_ns();
            // SAFETY: the only thread; the blocks and roots are its own.
            unsafe {
                marking.mark(&tables, 1, |roots| roots.range(range.start as usize..range.end as usize));
                tables.dead(|start, _| _ = black_box(start));
            }
            best = best.min((cpu_ns() - start) / 1e3);
        }
        println!("{what:<40} {best:>10.1}");
        for block in 0..1 << 14 {
            tables.insert(many + (block << 16), 48)?;
        }
    }
    Ok(())
}

/// What a pair of insertion and removal costs, among other blocks.
fn pairs(random: &mut Random) -> Result<(), Box<dyn Error>> {
    const COUNT: usize = 1 << 19;
    let (tables, base) = (Box::new(Tables::new()), 0x2000_0000_0000_usize);
    println!("{:<40} {:>10}", "a pair of insert and remove", "ns");
    let places: Vec<usize> = (0..4096).map(|_| base + random.below(20_000) * 64).collect();
    for threads in [1, 2] {
        for (what, bytes) in [
            ("24 bytes at one place", 24),
            ("24 bytes, last in first out", 24),
            ("56 bytes at random", 56),
            ("200 bytes at random", 200),
            ("300 bytes at random", 300 / 8 * 8),
            ("5000 bytes at random", 5000),
        ] {
            let mut best = f64::MAX;
            for _ in 0..ROUNDS {
                // A second thread clears the C library's flag that there is one only.
                let other = (threads == 2).then(|| std::thread::spawn(std::thread::park));
                let start = cpu_ns();
                if what.contains("one place") {
                    for _ in 0..COUNT {
                        tables.insert(black_box(base + 64), bytes)?;
                        black_box(tables.remove(black_box(base + 64)));
                    }
                } else if what.contains("last in") {
                    for _ in 0..COUNT / 16 {
                        for place in 0..16 {
                            tables.insert(black_box(base + place * 32), bytes)?;
                        }
                        for place in (0..16).rev() {
                            black_box(tables.remove(black_box(base + place * 32)));
                        }
                    }
                } else {
                    for number in 0..COUNT {
                        let at = places[number & 4095] * 4 - base * 3;
                        tables.insert(black_box(at), bytes)?;
                        black_box(tables.remove(black_box(at)));
                    }
                }
                best = best.min((cpu_ns() - start) / COUNT as f64);
                if let Some(other) = other {
                    other.thread().unpark();
                    other.join().map_err(|_| "the other thread failed")?;
                }
            }
            println!("{what:<28} threads {threads:>2} {best:>10.1}");
        }
    }
    Ok(())
}
