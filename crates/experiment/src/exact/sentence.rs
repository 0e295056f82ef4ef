//! What a disagreement of exact counts and the measured CPU ratio means, as a sentence. One pure function,
//! [`sentence`].
//!
//! **Agreement.** A CPU difference that is claimed agrees with instructions when their ratio lies in the CPU interval, or
//! when their difference (as a logarithm) is 2/3 to 3/2 of CPU's: instructions are not all alike, and less than that is
//! no finding. Below a quarter of CPU's, or below [`SAME`], the difference is not in instructions.
//!
//! Where no CPU difference is claimed, instructions are within what was seen up to [`SAME`] beyond the interval.
//!
//! **Memory.** A cache's misses, or page faults, are named where their difference could account for something: where it,
//! times the cycles that one is assumed to cost, is a tenth ([`PART`]) or more of what instructions leave unexplained, as a
//! share of the baseline's instructions, and [`MATTERS`] of these in any case. Each is held against that by itself; they
//! are not added up. Named are those that point to where instructions leave the CPU ratio unexplained.

use heaptoll_statistics::FEWEST_PAIRS;
use heaptoll_statistics::Interval;
use heaptoll_units::percent_off;

/// Instructions differ from this share on.
pub const SAME: f64 = 0.005;
/// A difference of misses or faults could matter from this many cycles an instruction of the baseline on.
pub const MATTERS: f64 = 0.002;
/// And from this share of what instructions leave unexplained on.
pub const PART: f64 = 0.1;
/// What a page fault is assumed to take, cycles: half a microsecond or so with the page to be cleared.
pub const FAULT_CYCLES: f64 = 2000.0;

/// A count of memory's under one stack.
pub struct Part {
    /// What was counted: `misses of 32K/8`, `page faults`.
    pub what: String,
    /// Over the baseline's.
    pub ratio: f64,
    /// Cycles that it has more than the baseline, under the assumption.
    pub wait: f64,
}

impl Part {
    /// `None` where the baseline has none, so that there is no ratio.
    pub fn of(what: String, count: u64, of: u64, cycles: f64) -> Option<Part> {
        (of > 0).then(|| Part {
            what,
            ratio: count as f64 / of as f64,
            wait: (count as f64 - of as f64) * cycles,
        })
    }
}

/// One stack's counts and CPU ratio against the baseline.
pub struct Axis<'a> {
    /// The baseline's name.
    pub baseline: &'a str,
    /// Ratio of instructions.
    pub instructions: f64,
    /// Instructions under the baseline.
    pub of_instructions: f64,
    /// Misses and faults.
    pub parts: &'a [Part],
    /// The measured CPU ratio.
    pub cpu: Option<Interval>,
}

/// How the instructions' difference stands to the one of CPU that is claimed.
enum Share {
    Agrees,
    /// As many instructions.
    None,
    /// The same way, but too few for it.
    Part,
    /// The same way, and more than CPU has.
    Beyond,
    /// The other way.
    Opposite,
}

/// The sentence, without the stack's name; `None` where instructions and CPU agree, or there is nothing to state.
pub fn sentence(axis: &Axis) -> Option<String> {
    match axis.cpu {
        Some(cpu) if cpu.differs => claimed(axis, &cpu),
        cpu => unclaimed(axis, cpu.as_ref()),
    }
}

fn share(instructions: f64, cpu: &Interval) -> Share {
    let (own, whole) = (instructions.ln(), cpu.ratio.ln());
    let share = own / whole;
    if (cpu.low..=cpu.high).contains(&instructions) || (2.0 / 3.0..=1.5).contains(&share) {
        Share::Agrees
    } else if own.abs() < SAME || share.abs() < 0.25 {
        Share::None
    } else if share < 0.0 {
        Share::Opposite
    } else if share < 1.0 {
        Share::Part
    } else {
        Share::Beyond
    }
}

fn claimed(axis: &Axis, cpu: &Interval) -> Option<String> {
    let (executes, takes) = (executes(axis), takes(cpu.ratio));
    // How far the CPU ratio lies from where instructions alone would put it.
    let left = (cpu.ratio / axis.instructions).ln();
    let memory = memory(axis, left);
    Some(match (share(axis.instructions, cpu), memory) {
        (Share::Agrees, _) => return None,
        (Share::None, Some(memory)) => {
            format!("{takes}, but {executes}: memory makes the difference, not instructions ({memory})")
        }
        (Share::None, None) => format!("{takes}, but {executes}: {}", unseen(axis, left)),
        (Share::Part, Some(memory)) => format!("{executes} and {takes}: memory makes up the rest ({memory})"),
        (Share::Part, None) => format!("{executes} and {takes}. As for the rest, {}", unseen(axis, left)),
        (Share::Beyond, Some(memory)) => {
            let back = if left > 0.0 {
                "memory cancels part of the gain"
            } else {
                "memory offsets part of the cost"
            };
            format!("{executes}, but only {takes}: {back} ({memory})")
        }
        (Share::Beyond, None) => format!(
            "{executes}, but only {takes}: the instructions that differ may be cheaper than average, and \
             {}",
            unseen(axis, left)
        ),
        (Share::Opposite, Some(memory)) => {
            format!("{executes}, but {takes}: memory outweighs them ({memory})")
        }
        (Share::Opposite, None) => format!("{executes}, but {takes}: {}", unseen(axis, left)),
    })
}

fn unclaimed(axis: &Axis, cpu: Option<&Interval>) -> Option<String> {
    let executes = executes(axis);
    let enough = cpu.filter(|cpu| cpu.pairs as usize >= FEWEST_PAIRS);
    if axis.instructions.ln().abs() < SAME {
        // What could cost as much as instructions have to differ by.
        let named = [1.0, -1.0].into_iter().filter_map(|way| memory(axis, way * SAME / PART));
        let memory = named.collect::<Vec<String>>().join(", ");
        let time = if enough.is_some() { "no difference detected in time" } else { FEW };
        return (!memory.is_empty()).then(|| format!("{executes}, with {memory}; {time}"));
    }
    let Some(cpu) = enough else { return Some(format!("{executes}; {FEW}")) };
    // To the nearer end of the interval, which holds 1.
    let left = (axis.instructions.clamp(cpu.low, cpu.high) / axis.instructions).ln();
    if left.abs() < SAME {
        return Some(format!("{executes}; the difference in time is too small to detect in this run"));
    }
    let between = format!("its CPU ratio is between {:.3} and {:.3}", cpu.low, cpu.high);
    Some(match memory(axis, left) {
        Some(memory) => format!("{executes}, but {between}: memory balances it ({memory})"),
        None => format!("{executes}, but {between}: {}", unseen(axis, left)),
    })
}

const FEW: &str = "too few repetitions to claim a difference in time";

/// Misses and faults that could account for a part of what is `left` unexplained: of more time, or of less.
fn memory(axis: &Axis, left: f64) -> Option<String> {
    let least = MATTERS.max(PART * left.abs()) * axis.of_instructions;
    let could = |part: &&Part| part.wait.abs() >= least && (part.wait > 0.0) == (left > 0.0);
    let named = axis.parts.iter().filter(could).enumerate().map(|(at, part)| {
        let whose = if at == 0 { format!("{}'s", axis.baseline) } else { "its".into() };
        format!("{} times {whose} {}", times(part.ratio), part.what)
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// That nothing counted accounts for it.
fn unseen(axis: &Axis, left: f64) -> String {
    let nothing = "neither misses nor page faults explain it";
    match memory(axis, -left) {
        Some(other) => format!("{nothing} (they point the other way: {other})"),
        None => nothing.into(),
    }
}

fn executes(axis: &Axis) -> String {
    let ratio = axis.instructions;
    if ratio.ln().abs() < SAME {
        return format!("executes as many instructions as {} ({ratio:.4} times)", axis.baseline);
    }
    match ratio {
        ratio if ratio >= 1.5 => format!("executes {} times the instructions", times(ratio)),
        ratio => {
            format!(
                "executes {} {} instructions",
                percent_off(ratio),
                if ratio > 1.0 { "more" } else { "fewer" }
            )
        }
    }
}

fn takes(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1.5 => format!("takes {} times the CPU", times(ratio)),
        ratio => format!("takes {} {} CPU", percent_off(ratio), if ratio > 1.0 { "more" } else { "less" }),
    }
}

fn times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

#[cfg(test)]
mod tests;
