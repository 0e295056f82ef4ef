//! Heap profiles as text: those that jemalloc dumps (`heap_v2/`) and those of gperftools (`heap profile:`). They have
//! addresses in memory and the process's list of mappings, but no names.
//!
//! Sampled values are as they were counted. As pprof and jeprof do, each call stack is scaled by the probability with
//! which an object of its mean size is sampled.

mod mapped;
mod values;

use std::collections::HashMap;

use heaptoll_profiles::{Frame, Measure};
use heaptoll_units::whole_bytes;

pub use mapped::Mapped;
use values::{Header, Values};

use crate::bounded::{Bounded, ReadError, ReadProfile, without_nul};

/// Bytes in memory of a byte of text: an address of a few digits is in a table.
const EACH_BYTE: u64 = 10;
const MAPPINGS: &str = "MAPPED_LIBRARIES:";

/// Looks up the functions at return addresses of a process whose memory had these files: for each address its frames,
/// innermost first.
pub type Names<'a> = dyn FnMut(&[Mapped], &[u64]) -> Vec<Vec<Frame>> + 'a;

/// Whether these first bytes are those of such a profile.
pub fn is_heap_text(first: &[u8]) -> bool {
    let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    std::str::from_utf8(line)
        .is_ok_and(|line| Header::parse(line).is_some() || line.starts_with("heap profile: "))
}

/// A call stack with what was counted of it.
struct Sampled {
    stack: Vec<u64>,
    values: Values,
}

pub fn read(bytes: &[u8], limit_bytes: u64, names: &mut Names) -> Result<ReadProfile, ReadError> {
    let needs_bytes = (bytes.len() as u64).saturating_mul(EACH_BYTE);
    if needs_bytes > limit_bytes {
        return Err(ReadError::Memory { limit_bytes });
    }
    let text = String::from_utf8_lossy(bytes);
    let first = text.lines().next().unwrap_or_default();
    let header = Header::parse(first).ok_or_else(|| ReadError::NoHeap { counted: format!("`{first}`") })?;
    let (samples, mapped) = parse(&text, &header)?;
    let has_allocated = samples.iter().any(|sample| sample.values.has_allocated(&header));
    let measures = match has_allocated {
        true => {
            vec![Measure::EndObjects, Measure::EndBytes, Measure::AllocatedObjects, Measure::AllocatedBytes]
        }
        false => vec![Measure::EndObjects, Measure::EndBytes],
    };
    let mut profile = Bounded::new(measures, limit_bytes - needs_bytes);
    let frames = frames(&samples, &mapped, names, &mut profile)?;
    for sample in &samples {
        let stack = sample.stack.iter().filter_map(|address| frames.get(address)).flatten();
        profile.stack(stack.copied(), &sample.values.estimated(&header))?;
    }
    Ok(profile.finish(remarks(&header, has_allocated)))
}

fn malformed(what: String) -> ReadError {
    ReadError::Malformed { format: "jemalloc or gperftools", what }
}

/// The call stacks, and the files that lay in memory.
fn parse(text: &str, header: &Header) -> Result<(Vec<Sampled>, Vec<Mapped>), ReadError> {
    let mut samples = Vec::new();
    // jemalloc's stack, whose sums are on a line of their own.
    let mut open: Option<Vec<u64>> = None;
    let mut lines = text.lines().skip(1);
    for line in lines.by_ref() {
        let line = line.trim();
        if line == MAPPINGS {
            return Ok((samples, mapped::files(lines)));
        }
        let wrong = || malformed(format!("`{}` is no line of it", line.chars().take(60).collect::<String>()));
        match (header.has_threads, line.split_once('@')) {
            _ if line.is_empty() => {}
            (true, Some(("", stack))) => open = Some(addresses(stack).ok_or_else(wrong)?),
            // `t*:` has the sums of all threads; those before the first stack are of the whole profile.
            (true, None) => {
                let (thread, values) = line.split_once(':').ok_or_else(wrong)?;
                let values = Values::parse(values).ok_or_else(wrong)?;
                if let Some(stack) = open.take_if(|_| thread == "t*") {
                    samples.push(Sampled { stack, values });
                }
            }
            (false, Some((values, stack))) => {
                let values = Values::parse(values).ok_or_else(wrong)?;
                samples.push(Sampled { stack: addresses(stack).ok_or_else(wrong)?, values });
            }
            _ => return Err(wrong()),
        }
    }
    Err(malformed(format!("it ends before `{MAPPINGS}`")))
}

/// Addresses in hexadecimal.
fn addresses(text: &str) -> Option<Vec<u64>> {
    let words = text.split_whitespace();
    words.map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()).collect()
}

/// The frames of each address, by the profile's numbers.
fn frames(
    samples: &[Sampled],
    mapped: &[Mapped],
    names: &mut Names,
    profile: &mut Bounded,
) -> Result<HashMap<u64, Vec<u32>>, ReadError> {
    let mut addresses: Vec<u64> = samples.iter().flat_map(|sample| sample.stack.iter().copied()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let named = names(mapped, &addresses);
    let mut known = HashMap::with_capacity(addresses.len());
    for (address, frames) in addresses.into_iter().zip(named) {
        let clean = |frame: Frame| Frame {
            function: without_nul(&frame.function),
            file: without_nul(&frame.file),
            object: without_nul(&frame.object),
            ..frame
        };
        let numbers =
            frames.into_iter().map(|frame| profile.frame(clean(frame))).collect::<Result<_, _>>()?;
        known.insert(address, numbers);
    }
    Ok(known)
}

fn remarks(header: &Header, has_allocated: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(mean_bytes) = header.mean_bytes.filter(|mean_bytes| *mean_bytes > 1) {
        remarks.push(format!(
            "it was sampled, once in about {} allocated: its values are estimates",
            whole_bytes(mean_bytes)
        ));
    }
    if !has_allocated {
        remarks.push("it has what was in use, and not what was allocated".to_owned());
    }
    remarks
}

#[cfg(test)]
mod tests;
