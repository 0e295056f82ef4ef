//! Speed of the simulators on a stream of reference words from files (native 64-bit words, see `heaptoll_reftrace`),
//! or, without files, on three synthetic ones. Prints millions of references a second of processor time (Linux): the
//! median of the rounds, with the slowest and the fastest. `--only=KIND` measures one configuration first.

use heaptoll_locality::image::{ImageSimulator, Plan};
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::{Sampling, Settings, Simulation};
use heaptoll_reftrace::{Owner, Reference, Sink};

const ROUNDS: usize = 5;

fn main() -> std::io::Result<()> {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let only = files.first().and_then(|first| first.strip_prefix("--only=")).map(str::to_string);
    files.retain(|file| !file.starts_with("--only="));
    let mut streams = Vec::new();
    for file in &files {
        let bytes = std::fs::read(file)?;
        let words = bytes.chunks_exact(8).map(|word| {
            let mut value = [0; 8];
            value.copy_from_slice(word);
            Reference(u64::from_le_bytes(value))
        });
        streams.push((file.clone(), words.collect::<Vec<_>>()));
    }
    if streams.is_empty() {
        streams.push(("hot stack and skewed heap".to_string(), skewed(1 << 24, 1 << 20)));
        streams
            .push(("sweep over 4 MB".to_string(), (0..1 << 24).map(|at| word(at * 8 % (4 << 20))).collect()));
        streams.push(("random over 256 MB".to_string(), random(1 << 22, 256 << 20)));
    }
    let none = Settings { lines: false, sets: None, pages: false, ..Settings::default() };
    let sampling = Some(Sampling::default());
    let mut kinds = vec![
        ("nothing but the same line", none.clone()),
        ("lines", Settings { lines: true, ..none.clone() }),
        ("sets", Settings { sets: Some(5..=14), ..none.clone() }),
        ("pages", Settings { pages: true, ..none.clone() }),
        ("everything", Settings::default()),
        ("lines, sampled", Settings { lines: true, sampling, ..none.clone() }),
        ("lines and pages, sampled", Settings { lines: true, pages: true, sampling, ..none }),
        ("everything, sampled", Settings { sampling, ..Settings::default() }),
    ];
    kinds.retain(|(kind, _)| only.as_ref().is_none_or(|only| only == kind));
    for (name, stream) in &streams {
        let mut block = vec![Reference(0); 1 << 15];
        println!("{name}: {} references", stream.len());
        let mut speeds = vec![Vec::new(); kinds.len()];
        for _ in 0..ROUNDS {
            for ((_, settings), speeds) in kinds.iter().zip(&mut speeds) {
                let Ok(mut simulation) = Simulation::new(settings) else { continue };
                let mut seconds = 0.0;
                for part in stream.chunks(block.len()) {
                    // As in a ring: the references were written just before.
                    block[..part.len()].copy_from_slice(part);
                    let start = processor_seconds();
                    simulation.references(Owner::Program, &block[..part.len()]);
                    seconds += processor_seconds() - start;
                }
                speeds.push((stream.len() as f64 / seconds / 1e6, simulation.bytes()));
            }
        }
        for sampling in [None, Some(Sampling::default())] {
            let settings = Settings { sampling, ..Settings::default() };
            let Ok(plan) = Plan::new(settings, Machine::usual(), false) else { continue };
            let mut simulator = ImageSimulator::new(&plan);
            let mut seconds = 0.0;
            for part in stream.chunks(block.len()) {
                block[..part.len()].copy_from_slice(part);
                let start = processor_seconds();
                simulator.references(Owner::Program, &block[..part.len()]);
                seconds += processor_seconds() - start;
            }
            let kind = if sampling.is_some() { "an image, sampled" } else { "an image" };
            println!(
                "  {kind:30} {:6.1} M/s, with its machine and working sets",
                stream.len() as f64 / seconds / 1e6
            );
        }
        for ((kind, _), speeds) in kinds.iter().zip(&mut speeds) {
            speeds.sort_by(|one, other| one.0.total_cmp(&other.0));
            let [slowest, median, fastest] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| speeds[at].0);
            let megabytes = speeds[0].1 as f64 / 1e6;
            println!("  {kind:30} {median:6.1} M/s ({slowest:.1} to {fastest:.1}), {megabytes:.1} MB");
        }
    }
    Ok(())
}

/// Processor time of this thread: other programs on the machine do not add to it.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `clock_gettime` writes one `timespec`, to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn word(address: u64) -> Reference {
    Reference::new(0x1000_0000 + address, 8, false)
}

fn random(count: usize, bytes: u64) -> Vec<Reference> {
    let mut state = 1_u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word(((state >> 16) % bytes) & !7)
        })
        .collect()
}

/// Two in three to a hot kilobyte; the others to a heap in which each step to a part eight times as large has one
/// chance in ten.
fn skewed(count: usize, lines: u64) -> Vec<Reference> {
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 33
    };
    (0..count)
        .map(|_| {
            if next() % 3 < 2 {
                return word((next() % 1024) & !7);
            }
            let mut range = 64;
            while range < lines && next().is_multiple_of(10) {
                range *= 8;
            }
            word((1 << 20) + (next() % range.min(lines)) * 64 + next() % 64 / 8 * 8)
        })
        .collect()
}
