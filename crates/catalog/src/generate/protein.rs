//! A family of proteins as a profile for HMMER, and sequences of which some belong to the family.
//!
//! Both draw the family's ancestor from the same seed, so that a search with the one finds relatives in the other.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// The amino acids in the order of the profile format.
const RESIDUES: &[u8; 20] = b"ACDEFGHIKLMNPQRSTVWY";

/// The ancestor of the family that `seed` stands for, as indices of residues.
fn ancestor(seed: u64, length: u32) -> Vec<usize> {
    let mut dice = Dice::new(seed);
    (0..length).map(|_| dice.below(20) as usize).collect()
}

/// A profile (HMMER3/f) with `length` positions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    seed: u64,
    length: NonZeroU32,
}

/// Negative natural logarithms of the probabilities: of the ancestor's residue (.62), of any other (.02), and of each
/// residue in an insertion (.05).
const LIKELY: &str = "0.47804";
const OTHER: &str = "3.91202";
const EVEN: &str = "2.99573";
/// Match to match, insert, delete (.98, .01, .01); insert to match, insert (.5, .5); delete to match, delete (.7, .3).
const TRANSITIONS: &str = "0.02020 4.60517 4.60517 0.69315 0.69315 0.35667 1.20397";

impl Generate for Profile {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let ancestor = ancestor(self.seed, self.length.get());
        writeln!(
            out,
            "HMMER3/f [heaptoll]\nNAME  family{}\nLENG  {}\nALPH  amino",
            self.seed,
            ancestor.len()
        )?;
        writeln!(out, "RF    no\nMM    no\nCONS  yes\nCS    no\nMAP   yes\nNSEQ  50\nEFFN  20.000000")?;
        // Locations grow with the logarithm of the length; these are a profile's of a few hundred positions.
        writeln!(out, "STATS LOCAL MSV      -10.5000  0.70000")?;
        writeln!(out, "STATS LOCAL VITERBI  -11.5000  0.70000\nSTATS LOCAL FORWARD   -5.5000  0.70000")?;
        let names: String = RESIDUES.iter().map(|residue| format!("{:>9}", char::from(*residue))).collect();
        writeln!(out, "HMM  {names}\n        m->m m->i m->d i->m i->i d->m d->d")?;
        let row = |likely: Option<usize>| -> String {
            let weight = |at| if likely == Some(at) { LIKELY } else { OTHER };
            (0..20).map(|at| format!("  {}", if likely.is_some() { weight(at) } else { EVEN })).collect()
        };
        let even = row(None);
        // A profile cannot begin by leaving the deletion that it has not entered.
        writeln!(
            out,
            "  COMPO {even}\n        {even}\n        0.02020 4.60517 4.60517 0.69315 0.69315 0.00000 *"
        )?;
        for (at, &residue) in ancestor.iter().enumerate() {
            let consensus = char::from(RESIDUES[residue]).to_ascii_lowercase();
            let last = at + 1 == ancestor.len();
            let next = if last { "0.01005 4.60517 * 0.69315 0.69315 0.00000 *" } else { TRANSITIONS };
            writeln!(out, "  {:>5} {} {} {consensus} - - -", at + 1, row(Some(residue)), at + 1)?;
            writeln!(out, "        {even}\n        {next}")?;
        }
        writeln!(out, "//")
    }
}

/// `sequences` sequences (FASTA) of up to 500 residues, one in `relatives` of which holds a mutated copy of the ancestor
/// of the profile with the same `seed` and `length`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proteins {
    seed: u64,
    length: NonZeroU32,
    sequences: NonZeroU32,
    relatives: NonZeroU32,
}

impl Generate for Proteins {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let ancestor = ancestor(self.seed, self.length.get());
        // Another stream than the ancestor's.
        let mut dice = Dice::new(!self.seed);
        for number in 0..u64::from(self.sequences.get()) {
            let mut residues = Vec::new();
            unrelated(&mut dice, &mut residues);
            if dice.one_in(u64::from(self.relatives.get())) {
                for &residue in &ancestor {
                    match dice.below(20) {
                        0 => {}
                        1 => residues.extend([residue, dice.below(20) as usize]),
                        2..6 => residues.push(dice.below(20) as usize),
                        _ => residues.push(residue),
                    }
                }
                unrelated(&mut dice, &mut residues);
            }
            writeln!(out, ">{}{number} {}", word(number), word(dice.zipf(4000)))?;
            for line in residues.chunks(60) {
                let letters: Vec<u8> = line.iter().map(|&residue| RESIDUES[residue]).collect();
                out.write_all(&letters)?;
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

fn unrelated(dice: &mut Dice, residues: &mut Vec<usize>) {
    residues.extend((0..dice.between(30, 250)).map(|_| dice.below(20) as usize));
}
