//! A genome, reads of it as a sequencing machine makes them, and their places as an aligner writes them.
//!
//! All three draw the bases from the same seed, so that the reads are found in the genome.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

const BASES: [u8; 4] = *b"ACGT";
/// Bases of a read.
const READ: u64 = 100;

/// The contigs of the genome that `seed` stands for. A tenth of each consists of copies of what is before it.
fn contigs(seed: u64, contigs: u32, length: u32) -> Vec<Vec<u8>> {
    let mut dice = Dice::new(seed);
    let length = u64::from(length).max(2 * READ) as usize;
    let one = |dice: &mut Dice| {
        let mut bases = Vec::with_capacity(length + 500);
        while bases.len() < length {
            if bases.len() > 1000 && dice.one_in(10) {
                let from = dice.below(bases.len() as u64 - 500) as usize;
                bases.extend_from_within(from..from + 500);
            } else {
                bases.extend((0..500).map(|_| BASES[dice.below(4) as usize]));
            }
        }
        bases.truncate(length);
        bases
    };
    (0..contigs).map(|_| one(&mut dice)).collect()
}

/// `contigs` sequences of `length` bases each (FASTA).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genome {
    seed: u64,
    contigs: NonZeroU32,
    length: NonZeroU32,
}

impl Generate for Genome {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        for (at, bases) in contigs(self.seed, self.contigs.get(), self.length.get()).iter().enumerate() {
            writeln!(out, ">{}{at}", word(at as u64))?;
            for line in bases.chunks(60) {
                out.write_all(line)?;
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

/// A read: where it lies, and its bases with their qualities.
struct Read {
    contig: usize,
    position: usize,
    bases: Vec<u8>,
    qualities: Vec<u8>,
}

impl Read {
    /// One base in a hundred is read wrong, with a low quality.
    fn draw(dice: &mut Dice, contigs: &[Vec<u8>]) -> Read {
        let contig = dice.below(contigs.len() as u64) as usize;
        let position = dice.below(contigs[contig].len() as u64 - READ) as usize;
        let mut bases = contigs[contig][position..position + READ as usize].to_vec();
        let mut qualities = Vec::with_capacity(bases.len());
        for base in &mut bases {
            let wrong = dice.one_in(100);
            if wrong {
                *base = BASES[dice.below(4) as usize];
            }
            qualities.push(b'!' + if wrong { 8 } else { dice.between(25, 40) } as u8);
        }
        Read { contig, position, bases, qualities }
    }
}

/// `reads` reads of the genome with the same `seed`, `contigs` and `length` (FASTQ).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reads {
    seed: u64,
    contigs: NonZeroU32,
    length: NonZeroU32,
    reads: NonZeroU32,
}

impl Generate for Reads {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let contigs = contigs(self.seed, self.contigs.get(), self.length.get());
        let mut dice = Dice::new(!self.seed);
        for number in 0..self.reads.get() {
            let read = Read::draw(&mut dice, &contigs);
            writeln!(out, "@read{number}")?;
            out.write_all(&read.bases)?;
            writeln!(out, "\n+")?;
            out.write_all(&read.qualities)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

/// The same reads with their places, in no order (SAM).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alignments {
    seed: u64,
    contigs: NonZeroU32,
    length: NonZeroU32,
    reads: NonZeroU32,
}

impl Generate for Alignments {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let contigs = contigs(self.seed, self.contigs.get(), self.length.get());
        let mut dice = Dice::new(!self.seed);
        writeln!(out, "@HD\tVN:1.6\tSO:unsorted")?;
        for (at, bases) in contigs.iter().enumerate() {
            writeln!(out, "@SQ\tSN:{}{at}\tLN:{}", word(at as u64), bases.len())?;
        }
        for number in 0..self.reads.get() {
            let read = Read::draw(&mut dice, &contigs);
            let name = word(read.contig as u64);
            let (contig, position) = (read.contig, read.position + 1);
            write!(out, "read{number}\t0\t{name}{contig}\t{position}\t60\t{READ}M\t*\t0\t0\t")?;
            out.write_all(&read.bases)?;
            write!(out, "\t")?;
            out.write_all(&read.qualities)?;
            writeln!(out)?;
        }
        Ok(())
    }
}
