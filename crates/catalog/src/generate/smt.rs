//! Problems for a solver in SMT-LIB 2: each round asserts fresh formulas on top of what all rounds share, checks them,
//! and takes them back.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;

/// `rounds` questions in turn of three kinds: differences of integers, bit vectors, and functions over arrays, each
/// with `constraints` constraints on `variables` variables.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smt {
    seed: u64,
    rounds: NonZeroU32,
    variables: NonZeroU32,
    constraints: NonZeroU32,
}

impl Generate for Smt {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let variables = u64::from(self.variables.get());
        writeln!(out, "(declare-fun f (Int) Int)\n(declare-const a (Array Int Int))")?;
        for at in 0..variables {
            writeln!(out, "(declare-const x{at} Int)\n(declare-const b{at} (_ BitVec 8))")?;
            writeln!(out, "(assert (and (<= 0 x{at}) (<= x{at} 1000)))")?;
        }
        for round in 0..self.rounds.get() {
            writeln!(out, "(push 1)")?;
            for _ in 0..self.constraints.get() {
                match round % 3 {
                    0 => difference(&mut dice, variables, out)?,
                    1 => bits(&mut dice, variables, out)?,
                    _ => lookup(&mut dice, variables, out)?,
                }
            }
            writeln!(out, "(check-sat)\n(pop 1)")?;
        }
        writeln!(out, "(exit)")
    }
}

/// Some differences are below zero, so that constraints form cycles that cannot all hold.
fn difference(dice: &mut Dice, variables: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut one = || {
        format!("(<= (- x{} x{}) (- {} 12))", dice.below(variables), dice.below(variables), dice.below(60))
    };
    let (first, second) = (one(), one());
    let (c, d, gap) = (dice.below(variables), dice.below(variables), dice.between(1, 9));
    writeln!(out, "(assert (or {first} (and {second} (>= x{c} (+ x{d} {gap})))))")
}

fn bits(dice: &mut Dice, variables: u64, out: &mut dyn Write) -> io::Result<()> {
    let operation = dice.pick(&["bvadd", "bvsub", "bvxor", "bvand", "bvor"]);
    let (a, b, c) = (dice.below(variables), dice.below(variables), dice.below(variables));
    let (left, right) = (dice.below(256), dice.below(256));
    writeln!(out, "(assert (bvult (bvadd ({operation} b{a} b{b}) #x{left:02x}) (bvadd b{c} #x{right:02x})))")
}

fn lookup(dice: &mut Dice, variables: u64, out: &mut dyn Write) -> io::Result<()> {
    let (a, b, c) = (dice.below(variables), dice.below(variables), dice.below(variables));
    let value = dice.below(1000);
    match dice.below(4) {
        0 => writeln!(out, "(assert (or (= (f x{a}) x{b}) (> (f x{c}) {value})))"),
        1 => writeln!(out, "(assert (=> (< x{a} x{b}) (= (select (store a x{c} {value}) x{a}) (f x{b}))))"),
        2 => writeln!(out, "(assert (distinct (f x{a}) (select a x{b}) {value}))"),
        _ => writeln!(out, "(assert (or (= x{a} x{b}) (= (f x{c}) (select a x{a}))))"),
    }
}
