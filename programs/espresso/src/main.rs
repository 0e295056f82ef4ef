//! The UC Berkeley espresso minimiser as a program under measurement: reads a PLA, minimises it, prints how many terms
//! and literals are left and a digest of the terms.
//!
//! All the work is in espresso's C code, whose sets of cubes are small blocks of malloc. The driver is Rust with the
//! system allocator, so everything the process allocates goes through the malloc that is bound.

mod minimise;
mod pla;

use std::env;
use std::fs;
use std::process::ExitCode;

use sha2::{Digest, Sha256};

use crate::minimise::minimise;
use crate::pla::Pla;

/// The notices of espresso's authors, which go with every copy.
const LICENSE: &str = include_str!(env!("ESPRESSO_LICENSE"));

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path] = arguments.as_slice() else {
        eprintln!("usage: heaptoll-espresso FILE.pla | --license");
        return ExitCode::from(2);
    };
    if path == "--license" {
        print!("{LICENSE}");
        return ExitCode::SUCCESS;
    }
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

/// The size of the minimal cover and a digest of its terms. The order of terms is espresso's own.
fn run(path: &str) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let pla = Pla::parse(&text)?;
    let (mut terms, mut literals) = (0, 0);
    let mut digest = Sha256::new();
    minimise(&pla, |term| {
        terms += 1;
        literals += term[..pla.inputs].iter().filter(|input| **input != b'-').count();
        digest.update(term);
    })?;
    let hexadecimal: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{terms} terms, {literals} literals, {hexadecimal}"))
}
