//! A C program that needs no header: structures, tables and many functions that call those before them.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;

/// `functions` functions over `structures` structures.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CSource {
    seed: u64,
    functions: NonZeroU32,
    structures: NonZeroU32,
}

impl Generate for CSource {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let structures = u64::from(self.structures.get());
        for at in 0..structures {
            writeln!(out, "struct s{at} {{\n    struct s{} *next;", dice.below(at + 1))?;
            for field in 0..FIELDS {
                let kind = dice.pick(&["int", "unsigned", "long", "short", "unsigned char"]);
                writeln!(out, "    {kind} f{field};")?;
            }
            writeln!(out, "}};")?;
            let values: Vec<String> = (0..32).map(|_| dice.below(100_000).to_string()).collect();
            writeln!(out, "static const int table{at}[32] = {{ {} }};\n", values.join(", "))?;
        }
        for at in 0..u64::from(self.functions.get()) {
            function(&mut dice, at, structures, out)?;
        }
        Ok(())
    }
}

const FIELDS: u64 = 6;
const LOCALS: u64 = 5;

fn function(dice: &mut Dice, number: u64, structures: u64, out: &mut dyn Write) -> io::Result<()> {
    let of = dice.below(structures);
    writeln!(out, "int g{number}(struct s{of} *p, int n, int k) {{")?;
    let locals: Vec<String> = (0..LOCALS).map(|at| format!("v{at} = {}", dice.below(50))).collect();
    writeln!(out, "    int {};", locals.join(", "))?;
    let writer = Writer { number, of };
    for _ in 0..dice.between(2, 6) {
        writer.statement(dice, 1, out)?;
    }
    writeln!(out, "    return v0 + v{} * k;\n}}\n", dice.below(LOCALS))
}

/// One function's statements.
struct Writer {
    number: u64,
    of: u64,
}

impl Writer {
    fn statement(&self, dice: &mut Dice, depth: usize, out: &mut dyn Write) -> io::Result<()> {
        let indent = "    ".repeat(depth);
        let target = format!("v{}", dice.below(LOCALS));
        // Calls only backwards, and to functions of the same parameters but for the structure.
        match dice.below(if depth < 4 { 8 } else { 4 }) {
            0..2 => writeln!(out, "{indent}{target} += {};", self.value(dice, 3)),
            2 => writeln!(out, "{indent}p->f{} = {};", dice.below(FIELDS), self.value(dice, 2)),
            3 if self.number > 0 => {
                let (callee, argument) = (dice.below(self.number), self.value(dice, 1));
                writeln!(out, "{indent}if (n > 0) {target} ^= g{callee}((void *)p->next, n - 1, {argument});")
            }
            3 | 4 => {
                writeln!(out, "{indent}for (int i = 0; i < {}; i++) {{", dice.between(2, 64))?;
                writeln!(
                    out,
                    "{indent}    {target} += table{}[(i + {}) & 31];",
                    self.of,
                    self.value(dice, 1)
                )?;
                self.block(dice, depth, out)
            }
            5 => {
                writeln!(out, "{indent}if ({} > {}) {{", self.value(dice, 2), self.value(dice, 2))?;
                self.block(dice, depth, out)
            }
            6 => {
                writeln!(out, "{indent}switch ({} & 7) {{", self.value(dice, 2))?;
                for case in 0..dice.between(2, 6) {
                    writeln!(out, "{indent}case {case}: {target} = {}; break;", self.value(dice, 2))?;
                }
                writeln!(out, "{indent}default: {target}--; break;\n{indent}}}")
            }
            _ => {
                writeln!(out, "{indent}while (p->next && {target} < {}) {{", dice.below(900))?;
                writeln!(
                    out,
                    "{indent}    p = (void *)p->next;\n{indent}    {target} += p->f{} + 1;",
                    dice.below(FIELDS)
                )?;
                self.block(dice, depth, out)
            }
        }
    }

    fn block(&self, dice: &mut Dice, depth: usize, out: &mut dyn Write) -> io::Result<()> {
        for _ in 0..dice.between(1, 3) {
            self.statement(dice, depth + 1, out)?;
        }
        writeln!(out, "{}}}", "    ".repeat(depth))
    }

    fn value(&self, dice: &mut Dice, depth: u64) -> String {
        if depth > 0 && !dice.one_in(4) {
            let operator = dice.pick(&["+", "-", "*", "&", "|", "^"]);
            return format!("({} {operator} {})", self.value(dice, depth - 1), self.value(dice, depth - 1));
        }
        match dice.below(5) {
            0 => dice.below(1000).to_string(),
            1 => format!("p->f{}", dice.below(FIELDS)),
            2 => ["n", "k"][dice.below(2) as usize].to_owned(),
            3 => format!("table{}[v{} & 31]", self.of, dice.below(LOCALS)),
            _ => format!("v{}", dice.below(LOCALS)),
        }
    }
}
