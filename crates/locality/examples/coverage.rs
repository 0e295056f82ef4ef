//! How often the exact number of misses lies in the interval that sampling returns: over many seeds, for sizes beyond
//! the seam, on streams of reference words from files (see `heaptoll_reftrace`) or, without files, on synthetic ones.
//! Also the error of the estimates and the width of the intervals, as shares of the exact number.

use heaptoll_locality::distance::curve::Curve;
use heaptoll_locality::simulation::{Sampling, Settings, Simulation};
use heaptoll_reftrace::{Owner, Reference};

const SEEDS: u64 = 40;

fn main() -> std::io::Result<()> {
    let mut streams = Vec::new();
    for file in std::env::args().skip(1) {
        let bytes = std::fs::read(&file)?;
        let words = bytes.chunks_exact(8).map(|word| {
            let mut value = [0; 8];
            value.copy_from_slice(word);
            Reference(u64::from_le_bytes(value))
        });
        streams.push((file, words.collect::<Vec<_>>()));
    }
    if streams.is_empty() {
        streams.push(("uniform over 16 MB".to_string(), uniform(4_000_000, 1 << 18)));
        streams.push((
            "sweep over 4 MB, 6 times".to_string(),
            (0..6 << 16).map(|at| line(at % (1 << 16))).collect(),
        ));
        streams.push(("skewed over 32 MB".to_string(), skewed(4_000_000, 1 << 19)));
        streams.push(("phases of sweeps".to_string(), phases()));
        streams.push(("a hundred hot lines in a sweep".to_string(), hot_in_sweep()));
    }
    for (name, stream) in &streams {
        let exact = curve(stream, None);
        println!("{name}: {} references, {} lines", stream.len(), exact.distinct);
        for shift in [4, 6] {
            for exact_lines in [256, 1024] {
                coverage(stream, &exact, shift, exact_lines);
            }
        }
    }
    Ok(())
}

fn coverage(stream: &[Reference], exact: &Curve, shift: u32, exact_lines: u32) {
    let (mut inside, mut all, mut error, mut width, mut worst) = (0, 0, 0.0, 0.0, 0.0_f64);
    for seed in 0..SEEDS {
        let sampled = curve(stream, Some(Sampling { shift, exact_lines, seed }));
        for entries in exact.sizes(4) {
            if entries <= u64::from(exact_lines) || entries >= exact.distinct {
                continue;
            }
            let (found, truth) = (sampled.misses(entries).total, exact.misses(entries).total.value);
            inside += u64::from((found.low..=found.high).contains(&truth));
            all += 1;
            let off = (found.value as f64 - truth as f64).abs() / truth as f64;
            error += off;
            worst = worst.max(off);
            width += (found.high - found.low) as f64 / truth as f64;
        }
    }
    let percent = |sum: f64| 100.0 * sum / f64::from(all.max(1) as u32);
    println!(
        "  1 in {:4}, exact to {exact_lines:4} lines: {:5.1} % of {all} inside; off by {:.1} % (at most {:.1} %); {:.1} % wide",
        1 << shift,
        percent(inside as f64),
        percent(error),
        worst * 100.0,
        percent(width),
    );
}

fn curve(stream: &[Reference], sampling: Option<Sampling>) -> Curve {
    let settings = Settings { lines: true, sets: None, pages: false, sampling, ..Settings::default() };
    match Simulation::new(&settings) {
        Ok(mut simulation) => {
            simulation.references(Owner::Program, stream);
            match simulation.finish().lines {
                Some(curve) => curve,
                None => unreachable!("lines were requested"),
            }
        }
        Err(error) => {
            eprintln!("coverage: {error}");
            std::process::exit(2);
        }
    }
}

fn line(number: u64) -> Reference {
    Reference::new(0x1000_0000 + number * 64, 8, false)
}

fn random() -> impl FnMut() -> u64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 33
    }
}

fn uniform(count: usize, lines: u64) -> Vec<Reference> {
    let mut next = random();
    (0..count).map(|_| line(next() % lines)).collect()
}

fn skewed(count: usize, lines: u64) -> Vec<Reference> {
    let mut next = random();
    (0..count)
        .map(|_| {
            let mut range = 64;
            while range < lines && next().is_multiple_of(3) {
                range *= 4;
            }
            line(next() % range.min(lines))
        })
        .collect()
}

fn phases() -> Vec<Reference> {
    let mut stream = Vec::new();
    for phase in 0..60_u64 {
        let (from, length) = (phase * 1000, 500 + phase * phase * 7 % 20_000);
        for _ in 0..3 {
            stream.extend((0..length).map(|at| line(from + at)));
        }
    }
    stream
}

fn hot_in_sweep() -> Vec<Reference> {
    let mut stream = Vec::new();
    for at in 0..2_000_000_u64 {
        stream.push(line(at % 50_000));
        if at % 40 == 0 {
            stream.push(line(100_000 + at / 40 % 100));
        }
    }
    stream
}
