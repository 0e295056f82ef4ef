//! A Pascal program of many modules, each with constants, types, variables and routines. It is correct, ends by itself
//! and prints a checksum for each module, so that a translation of it can be tried out.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `modules` modules of `routines` routines each.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pascal {
    seed: u64,
    modules: NonZeroU32,
    routines: NonZeroU32,
}

/// Every variable stays below this, so that no sum or product in an expression leaves the range of 32 bits.
const MODULUS: u32 = 10007;

/// The members of each module's enumeration.
const MEMBERS: u64 = 7;

/// A module while it is written.
struct Module<'a> {
    dice: &'a mut Dice,
    /// In every name that is visible in the whole program.
    number: u32,
    routines: u32,
    text: String,
    indent: usize,
    /// How many loops are around.
    loops: u32,
}

impl Generate for Pascal {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        writeln!(out, "program generated(output);\n\nvar\n  check: integer;")?;
        let routines = self.routines.get();
        for number in 0..self.modules.get() {
            let mut module =
                Module { dice: &mut dice, number, routines, text: String::new(), indent: 0, loops: 0 };
            module.declarations();
            for routine in 0..routines {
                module.routine(routine);
            }
            module.summary();
            out.write_all(module.text.as_bytes())?;
        }
        writeln!(out, "\nbegin\n  check := 1;")?;
        for number in 0..self.modules.get() {
            writeln!(out, "  summary{number};")?;
        }
        writeln!(out, "  writeln('checksum ', check: 1)\nend.")
    }
}

impl Module<'_> {
    fn line(&mut self, text: &str) {
        for line in text.split('\n') {
            // A String takes everything.
            let _ = writeln!(self.text, "{:1$}{line}", "", if line.is_empty() { 0 } else { 2 * self.indent });
        }
    }

    fn member(&mut self) -> String {
        let member = self.dice.below(MEMBERS);
        format!("{}_{}", word(member), self.number)
    }

    fn declarations(&mut self) {
        let number = self.number;
        let members: Vec<String> = (0..MEMBERS).map(|member| format!("{}_{number}", word(member))).collect();
        let size = self.dice.between(10, 60);
        let offset = self.dice.below(4);
        let (first, last) = (offset, offset + size - 1);
        self.line(&format!("\n{{ module {number}: {} }}\n\nconst", word(number.into())));
        self.line(&format!("  first{number} = {first};\n  last{number} = {last};"));
        let scale = self.dice.between(1, 9);
        self.line(&format!("  size{number} = {size};\n  scale{number} = {scale}.5;"));
        self.line(&format!("\ntype\n  kind{number} = ({});", members.join(", ")));
        self.line(&format!("  kinds{number} = set of kind{number};"));
        self.line(&format!("  table{number} = array [first{number}..last{number}] of integer;"));
        self.line(&format!("  counts{number} = array [kind{number}] of integer;"));
        self.line(&format!("  link{number} = ^item{number};"));
        self.line(&format!("  item{number} = record\n    key, weight: integer;\n    kind: kind{number};"));
        self.line(&format!(
            "    letter: char;\n    place: record x, y: integer end;\n    next: link{number}\n  end;"
        ));
        self.line(&format!("\nvar\n  head{number}: link{number};\n  length{number}, sum{number}: integer;"));
        self.line(&format!("  values{number}: table{number};\n  counts_of{number}: counts{number};"));
        self.line(&format!("  best{number}: item{number};\n  seen{number}: kinds{number};"));
    }

    /// An integer whose amount is below some millions.
    fn integer(&mut self, depth: u32) -> String {
        let number = self.number;
        if depth == 0 {
            return match self.dice.below(7) {
                0 => self.dice.below(1000).to_string(),
                1 => format!("size{number}"),
                2 => "a".to_owned(),
                3 => "b".to_owned(),
                4 => format!("sum{number}"),
                5 if self.loops > 0 => format!("i{}", self.dice.between(1, self.loops.into())),
                _ => "total".to_owned(),
            };
        }
        let left = self.integer(depth - 1);
        match self.dice.below(11) {
            0 | 1 => format!("{left} + {}", self.integer(depth - 1)),
            2 => format!("({left}) - ({})", self.integer(depth - 1)),
            3 => format!("(({left}) mod 97) * (({}) mod 89)", self.integer(depth - 1)),
            4 => format!("({left}) div {}", self.dice.between(2, 30)),
            5 => format!("abs({left})"),
            6 => format!("values{number}[abs({left}) mod size{number} + first{number}]"),
            7 => format!("counts_of{number}[{}]", self.member()),
            8 => format!("best{number}.{}", self.dice.pick(&["key", "weight", "place.x", "place.y"])),
            9 => format!("sqr(({left}) mod 50)"),
            _ => format!("ord(kind) + ({left})"),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        let number = self.number;
        if depth > 0 {
            let left = self.condition(depth - 1);
            return match self.dice.below(3) {
                0 => format!("({left}) and ({})", self.condition(depth - 1)),
                1 => format!("({left}) or ({})", self.condition(depth - 1)),
                _ => format!("not ({left})"),
            };
        }
        let left = self.integer(1);
        match self.dice.below(6) {
            0 => format!("odd({left})"),
            1 => format!("kind in seen{number}"),
            2 => format!("kind = {}", self.member()),
            3 => format!("letter < '{}'", self.dice.pick(&["f", "m", "t"])),
            _ => format!("{left} {} {}", self.dice.pick(&["<", ">", "<=", ">=", "<>", "="]), self.integer(1)),
        }
    }

    fn target(&mut self) -> String {
        let number = self.number;
        match self.dice.below(7) {
            0 | 1 => "total".to_owned(),
            2 => format!("sum{number}"),
            3 => format!("values{number}[abs({}) mod size{number} + first{number}]", self.integer(1)),
            4 => format!("counts_of{number}[kind]"),
            5 => format!("best{number}.{}", self.dice.pick(&["key", "weight", "place.x"])),
            _ => "b".to_owned(),
        }
    }

    fn block(&mut self, head: &str, depth: u32, end: &str) {
        self.line(&format!("{head} begin"));
        self.indent += 1;
        for _ in 0..self.dice.between(1, 3) {
            self.statement(depth);
        }
        self.indent -= 1;
        self.line(&format!("end{end}"));
    }

    fn looped(&mut self, depth: u32) {
        self.loops += 1;
        let count = format!("i{}", self.loops);
        let rounds = self.dice.between(2, 5);
        match self.dice.below(4) {
            0 => {
                self.line(&format!("{count} := {rounds};"));
                let most = self.dice.between(4000, 9000);
                self.line(&format!("while ({count} > 0) and (total < {most}) do begin"));
                self.indent += 1;
                self.statement(depth);
                self.line(&format!("{count} := pred({count})"));
                self.indent -= 1;
                self.line("end;");
            }
            1 => {
                self.line(&format!("{count} := 0;\nrepeat"));
                self.indent += 1;
                self.statement(depth);
                self.line(&format!("{count} := succ({count})"));
                self.indent -= 1;
                self.line(&format!("until {count} >= {rounds};"));
            }
            2 => self.block(&format!("for {count} := {rounds} downto 1 do"), depth, ";"),
            _ => self.block(&format!("for {count} := 1 to {rounds} do"), depth, ";"),
        }
        self.loops -= 1;
    }

    /// A `case` over the enumeration or over a number.
    fn choice(&mut self, depth: u32) {
        let number = self.number;
        let by_kind = self.dice.one_in(2);
        let chosen = if by_kind { "kind".to_owned() } else { format!("abs({}) mod 4", self.integer(1)) };
        self.line(&format!("case {chosen} of"));
        self.indent += 1;
        for arm in 0..3 {
            let label = match (by_kind, arm) {
                (true, 0) => format!("{}_{number}, {}_{number}", word(0), word(1)),
                (true, _) => format!("{}_{number}", word(arm + 1)),
                (false, 0) => "0, 1".to_owned(),
                (false, _) => (arm + 1).to_string(),
            };
            self.block(&format!("{label}:"), depth, ";");
        }
        self.line("else total := total mod 5003");
        self.indent -= 1;
        self.line("end;");
    }

    /// Something with the list, which grows to 40 items at most.
    fn list(&mut self) {
        let number = self.number;
        if self.dice.one_in(2) {
            let (weight, member) = (self.integer(2), self.member());
            self.line(&format!("b := ({weight}) mod {MODULUS};\nif length{number} < 40 then begin"));
            self.line("  new(p);\n  with p^ do begin\n    key := total;\n    weight := b;");
            self.line("    place.x := key mod 100;\n    place.y := weight mod 100;");
            self.line(&format!(
                "    letter := chr(ord('a') + abs(key) mod 26);\n    next := head{number}\n  end;"
            ));
            self.line(&format!("  p^.kind := {member};"));
            self.line(&format!("  head{number} := p;\n  length{number} := length{number} + 1\nend;"));
        } else {
            self.line(&format!("p := head{number};\nwhile p <> nil do begin"));
            self.line(&format!("  total := (total + p^.key * 3 - p^.place.x) mod {MODULUS};"));
            self.line(&format!("  if p^.weight > best{number}.weight then best{number} := p^;"));
            self.line("  p := p^.next\nend;");
        }
    }

    fn statement(&mut self, depth: u32) {
        let number = self.number;
        if depth == 0 || self.dice.one_in(3) {
            let (target, value) = (self.target(), self.integer(3));
            return self.line(&format!("{target} := ({value}) mod {MODULUS};"));
        }
        match self.dice.below(10) {
            0..=2 => {
                let condition = self.condition(1);
                self.block(&format!("if {condition} then"), depth - 1, "");
                self.block("else", depth - 1, ";");
            }
            3 => {
                let condition = self.condition(2);
                self.block(&format!("if {condition} then"), depth - 1, ";");
            }
            4 | 5 if self.loops < 3 => self.looped(depth - 1),
            6 => self.choice(depth - 1),
            7 => {
                let (one, last) = (self.member(), self.dice.below(MEMBERS));
                let change = *self.dice.pick(&[&"+", &"-", &"*"]);
                let more = if self.dice.one_in(2) {
                    format!("[{one}, kind]")
                } else {
                    format!("[{}_{number}..{}_{number}]", word(0), word(last))
                };
                self.line(&format!("seen{number} := seen{number} {change} {more};"));
                self.line(&format!("kind := {one};\nletter := chr(ord('a') + abs(total) mod 26);"));
            }
            8 => self.list(),
            _ => {
                let value = self.integer(2);
                self.line(&format!("x := scale{number} * (({value}) mod 100) + total / 4;"));
                self.line("total := trunc(x) mod 5003;");
            }
        }
    }

    fn routine(&mut self, routine: u32) {
        let number = self.number;
        let about = word(self.dice.below(4000));
        self.line(&format!("\n{{ {about} }}"));
        self.line(&format!(
            "function work{number}_{routine}(a: integer; var b: integer; kind: kind{number}): integer;"
        ));
        self.line("var\n  i1, i2, i3, total: integer;\n  x: real;");
        self.line(&format!("  letter: char;\n  p: link{number};\nbegin"));
        self.indent = 1;
        self.line("total := a;\ni1 := 0;\ni2 := 0;\ni3 := 0;\nx := 0;\nletter := 'k';");
        for _ in 0..self.dice.between(3, 6) {
            self.statement(3);
        }
        // One call at most, of one that is much earlier: the work of all stays in proportion.
        if routine > 0 && self.dice.one_in(2) {
            let (called, argument) = (self.dice.below(u64::from(routine).div_ceil(2)), self.integer(1));
            self.line(&format!(
                "total := (total + work{number}_{called}(({argument}) mod {MODULUS}, b, kind)) mod {MODULUS};"
            ));
        }
        self.line(&format!("work{number}_{routine} := (total * 2 + i1 + i2 + i3 + trunc(x)) mod {MODULUS}"));
        self.indent = 0;
        self.line("end;");
    }

    /// The procedure that calls the others once each and prints what comes out.
    fn summary(&mut self) {
        let number = self.number;
        self.line(&format!("\nprocedure summary{number};\nvar\n  i: integer;\n  k: kind{number};\nbegin"));
        self.indent = 1;
        self.line(&format!("head{number} := nil;\nlength{number} := 0;\nsum{number} := check mod 1000;"));
        self.line(&format!("for i := first{number} to last{number} do values{number}[i] := i * 7 mod 101;"));
        self.line(&format!(
            "for k := {}_{number} to {}_{number} do counts_of{number}[k] := ord(k);",
            word(0),
            word(MEMBERS - 1)
        ));
        self.line(&format!("with best{number}, place do begin\n  key := 1;\n  weight := 2;\n  x := 3;\n  y := 4;\n  next := nil"));
        self.line(&format!("end;\nseen{number} := [];"));
        for routine in 0..self.routines {
            let kind = self.member();
            self.line(&format!(
                "check := (check * 3 + work{number}_{routine}({}, sum{number}, {kind})) mod {MODULUS};",
                routine * 11
            ));
        }
        let member = self.member();
        self.line(&format!(
            "writeln('module {number}: ', check: 6, length{number}: 4, ' items, ', {member} in seen{number})"
        ));
        self.indent = 0;
        self.line("end;");
    }
}
