//! The UC Berkeley espresso minimiser as a program under measurement: reads a PLA, minimises it, prints how many terms
//! and literals are left and a digest of the terms.
//!
//! All the work is in espresso's C code, whose sets of cubes are small blocks of malloc. The driver is Rust with the
//! system allocator, so everything the process allocates goes through the malloc that is bound.

mod pla;

use std::env;
use std::fs;
use std::process::ExitCode;

use espresso_logic::EspressoConfig;
use espresso_logic::espresso::{CubeType, Espresso, EspressoCover};
use sha2::{Digest, Sha256};

use crate::pla::Pla;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path] = arguments.as_slice() else {
        eprintln!("usage: heaptoll-espresso FILE.pla");
        return ExitCode::from(2);
    };
    match run(path) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("heaptoll-espresso: {path}: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &str) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let pla = Pla::parse(&text)?;
    let terms: Vec<(&[u8], &[u8])> = pla.terms.iter().map(|(i, o)| (i.as_slice(), o.as_slice())).collect();
    let espresso = Espresso::try_new(pla.inputs, pla.outputs, Some(&EspressoConfig::default()))
        .map_err(|error| error.to_string())?;
    let cover =
        EspressoCover::from_cubes(&terms, pla.inputs, pla.outputs).map_err(|error| error.to_string())?;
    let (minimal, _, _) = espresso.try_minimize(&cover, None, None).map_err(|error| error.to_string())?;
    Ok(report(&minimal, &pla))
}

/// The size of a cover and a digest of its terms. The order of terms is espresso's own.
fn report(cover: &EspressoCover, pla: &Pla) -> String {
    let (mut terms, mut literals) = (0, 0);
    let mut digest = Sha256::new();
    for cube in cover.to_cubes(pla.inputs, pla.outputs, CubeType::F) {
        terms += 1;
        for input in cube.inputs() {
            literals += usize::from(input.is_some());
            digest.update([input.map_or(b'-', |value| b'0' + u8::from(value))]);
        }
        for output in cube.outputs().iter() {
            digest.update([b'0' + u8::from(output)]);
        }
    }
    let hexadecimal: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{terms} terms, {literals} literals, {hexadecimal}")
}
