//! What it means where exact counts and the measured CPU ratio disagree, in words. One pure function, [`words`].
//!
//! **Agreement.** A CPU difference that is claimed agrees with instructions when their ratio lies in the CPU interval, or
//! when their difference (as a logarithm) is 2/3 to 3/2 of CPU's: instructions are not all alike, and less than that is
//! no finding. Below a quarter of CPU's, or below [`SAME`], the difference is not in instructions.
//!
//! **Memory.** A cache's misses, or page faults, are named where their difference could matter: where it, times the
//! cycles that one is assumed to cost, is [`MATTERS`] of the baseline's instructions or more. Each is held against that by
//! itself; they are not added up. Named are those that point to where instructions leave the CPU ratio unexplained.

use crate::comparison::Interval;
use crate::statistics::FEWEST_PAIRS;

/// Instructions differ from this share on.
pub const SAME: f64 = 0.005;
/// A difference of misses or faults could matter from this many cycles an instruction of the baseline on.
pub const MATTERS: f64 = 0.005;
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

/// What is known of one stack against the baseline.
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
pub fn words(axis: &Axis) -> Option<String> {
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
    // Where the CPU ratio lies from where instructions alone would put it.
    let more = cpu.ratio > axis.instructions;
    let memory = memory(axis, more);
    Some(match (share(axis.instructions, cpu), memory) {
        (Share::Agrees, _) => return None,
        (Share::None, Some(memory)) => {
            format!("{takes}, but {executes}: the difference is in memory, not in instructions ({memory})")
        }
        (Share::None, None) => format!("{takes}, but {executes}: {}", unseen(axis, more)),
        (Share::Part, Some(memory)) => format!("{executes} and {takes}: the rest is in memory ({memory})"),
        (Share::Part, None) => format!("{executes} and {takes}; of the rest, {}", unseen(axis, more)),
        (Share::Beyond, Some(memory)) => {
            let back = if more { "memory takes part of it back" } else { "memory makes part of it good" };
            format!("{executes}, but {takes} only: {back} ({memory})")
        }
        (Share::Beyond, None) => format!(
            "{executes}, but {takes} only: those that make the difference are cheaper than the average; {}",
            unseen(axis, more)
        ),
        (Share::Opposite, Some(memory)) => {
            format!("{executes}, but {takes}: memory outweighs them ({memory})")
        }
        (Share::Opposite, None) => format!("{executes}, but {takes}: {}", unseen(axis, more)),
    })
}

fn unclaimed(axis: &Axis, cpu: Option<&Interval>) -> Option<String> {
    let executes = executes(axis);
    let enough = cpu.filter(|cpu| cpu.pairs as usize >= FEWEST_PAIRS);
    if axis.instructions.ln().abs() < SAME {
        let memory = [true, false].into_iter().find_map(|more| memory(axis, more))?;
        let time = if enough.is_some() { "no difference in time was seen" } else { FEW };
        return Some(format!("{executes}, with {memory}; {time}"));
    }
    let Some(cpu) = enough else { return Some(format!("{executes}; {FEW}")) };
    if (cpu.low..=cpu.high).contains(&axis.instructions) {
        return Some(format!("{executes}; the difference in time is below what this run could see"));
    }
    let more = axis.instructions < cpu.low;
    let within = format!("its CPU ratio is between {:.3} and {:.3}", cpu.low, cpu.high);
    Some(match memory(axis, more) {
        Some(memory) => format!("{executes}, but {within}: memory evens it out ({memory})"),
        None => format!("{executes}, but {within}: {}", unseen(axis, more)),
    })
}

const FEW: &str = "there are too few repetitions to state a difference in time";

/// Misses and faults that could matter and point to more time, or to less.
fn memory(axis: &Axis, more: bool) -> Option<String> {
    let matters =
        |part: &&Part| part.wait.abs() >= MATTERS * axis.of_instructions && (part.wait > 0.0) == more;
    let named: Vec<String> = axis
        .parts
        .iter()
        .filter(matters)
        .map(|part| format!("{} times {}'s {}", times(part.ratio), axis.baseline, part.what))
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// That nothing counted accounts for it.
fn unseen(axis: &Axis, more: bool) -> String {
    let nothing = "neither misses nor page faults account for it";
    match memory(axis, !more) {
        Some(other) => format!("{nothing} (what was counted points the other way: {other})"),
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
            format!("executes {} {} instructions", percent(ratio), if ratio > 1.0 { "more" } else { "fewer" })
        }
    }
}

fn takes(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1.5 => format!("takes {} times the CPU", times(ratio)),
        ratio => format!("takes {} {} CPU", percent(ratio), if ratio > 1.0 { "more" } else { "less" }),
    }
}

fn percent(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0).abs();
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

fn times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
}

#[cfg(test)]
mod tests;
