//! A directed graph in the language of Graphviz, as tools print dependencies.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `nodes` nodes, each with an edge or two to nodes at most a few after it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digraph {
    seed: u64,
    nodes: NonZeroU32,
}

impl Generate for Digraph {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let nodes = u64::from(self.nodes.get());
        writeln!(out, "digraph dependencies {{\n  node [shape=box];")?;
        for at in 0..nodes {
            writeln!(out, "  n{at} [label=\"{} {}\"];", word(at), word(dice.below(4000)))?;
        }
        for at in 1..nodes {
            for _ in 0..dice.between(1, 2) {
                writeln!(out, "  n{} -> n{at};", at - dice.between(1, at.min(12)))?;
            }
        }
        writeln!(out, "}}")
    }
}
