//! A circuit in Verilog: modules of registers and logic, and a bench that clocks them and prints a checksum.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;

/// `modules` modules of `registers` registers each, clocked `cycles` times by the bench.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verilog {
    seed: u64,
    modules: NonZeroU32,
    registers: NonZeroU32,
    cycles: NonZeroU32,
}

impl Generate for Verilog {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        for module in 0..self.modules.get() {
            self.module(&mut dice, module, out)?;
        }
        writeln!(out, "module top(input clk, output [15:0] sum);")?;
        writeln!(
            out,
            "  reg [15:0] feed = 16'h1;\n  always @(posedge clk) feed <= {{feed[14:0], feed[15] ^ feed[13]}};"
        )?;
        writeln!(out, "  wire [15:0] w0 = feed;")?;
        let modules = self.modules.get();
        for module in 0..modules {
            writeln!(
                out,
                "  wire [15:0] w{};\n  m{module} i{module}(clk, w{module}, w{});",
                module + 1,
                module + 1
            )?;
        }
        writeln!(out, "  assign sum = w{modules};\nendmodule")?;
        // Synthesis has no use for a bench.
        writeln!(
            out,
            "`ifndef SYNTHESIS\nmodule bench;\n  reg clk = 0;\n  wire [15:0] sum;\n  reg [31:0] all = 0;"
        )?;
        writeln!(out, "  integer at;\n  top dut(clk, sum);\n  initial begin")?;
        writeln!(out, "    for (at = 0; at < {}; at = at + 1) begin", self.cycles)?;
        writeln!(out, "      #1 clk = 1;\n      #1 clk = 0;\n      all = all * 33 + sum;\n    end")?;
        writeln!(out, "    $display(\"%h\", all);\n    $finish;\n  end\nendmodule\n`endif")
    }
}

impl Verilog {
    fn module(&self, dice: &mut Dice, module: u32, out: &mut dyn Write) -> io::Result<()> {
        let registers = u64::from(self.registers.get());
        writeln!(out, "module m{module}(input clk, input [15:0] d, output [15:0] q);")?;
        for at in 0..registers {
            writeln!(out, "  reg [15:0] r{at} = 16'd{};", dice.below(65_536))?;
        }
        writeln!(out, "  always @(posedge clk) begin")?;
        for at in 0..registers {
            let mut operand = || match dice.below(8) {
                0 => "d".to_owned(),
                1 => format!("16'd{}", dice.below(65_536)),
                _ => format!("r{}", dice.below(registers)),
            };
            let (a, b, c, e) = (operand(), operand(), operand(), operand());
            let operation = dice.pick(&["+", "-", "^", "&", "|"]);
            let shift = dice.below(15) + 1;
            match dice.below(3) {
                0 => writeln!(out, "    r{at} <= ({a} {operation} {b}) ^ {c};")?,
                1 => writeln!(out, "    r{at} <= {a} < {b} ? {c} + {e} : {e} {operation} {c};")?,
                _ => writeln!(out, "    r{at} <= ({a} << {shift}) {operation} ({b} >> {shift});")?,
            }
        }
        write!(out, "  end\n  assign q = d")?;
        for at in 0..registers {
            write!(out, " ^ r{at}")?;
        }
        writeln!(out, ";\nendmodule")
    }
}
