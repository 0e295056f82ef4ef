//! Heap profiles as text: those of jemalloc (`heap_v2/`), of gperftools (`heap profile:`), and of Go (`debug=1`). The
//! first two have addresses in memory and the process's list of mappings, and names only where a tool put them in front.
//!
//! Sampled values are as they were counted. As pprof and jeprof do, each call stack is scaled by the probability with
//! which an object of its mean size is sampled.

mod lines;
mod mapped;
mod values;

use std::collections::HashMap;

use heaptoll_profiles::{Frame, Measure, Subject};
use heaptoll_units::whole_bytes;

pub use lines::is_heap_text;
use lines::{Parsed, parse};
pub use mapped::Mapped;
use values::Values;

use crate::bounded::{Bounded, ReadError, ReadProfile, sampled, without_nul};

/// Bytes in memory of a byte of text: an address of a few digits is in a table.
const EACH_BYTE: u64 = 10;

/// Looks up the functions at return addresses of a process whose memory had these files: for each address its frames,
/// innermost first.
pub type Names<'a> = dyn FnMut(&[Mapped], &[u64]) -> Vec<Vec<Frame>> + 'a;

pub fn read(bytes: &[u8], limit_bytes: u64, names: &mut Names) -> Result<ReadProfile, ReadError> {
    let needs_bytes = (bytes.len() as u64).saturating_mul(EACH_BYTE);
    if needs_bytes > limit_bytes {
        return Err(ReadError::Memory { limit_bytes });
    }
    let parsed = parse(&String::from_utf8_lossy(bytes))?;
    let header = &parsed.header;
    let values: Vec<&Values> = parsed.samples.iter().map(|sample| &sample.values).collect();
    let has_allocated = Values::have_allocated(&values, header);
    let measures = match has_allocated {
        true => {
            vec![Measure::EndObjects, Measure::EndBytes, Measure::AllocatedObjects, Measure::AllocatedBytes]
        }
        false => vec![Measure::EndObjects, Measure::EndBytes],
    };
    let mut profile = Bounded::new(measures, limit_bytes - needs_bytes);
    profile.subject(Subject { sampled_bytes: header.sampled_bytes(), ..Subject::default() });
    let frames = frames(&parsed, names, &mut profile)?;
    for sample in &parsed.samples {
        let named: Vec<u32> = match sample.frames.is_empty() {
            true => {
                sample.addresses.iter().filter_map(|address| frames.get(address)).flatten().copied().collect()
            }
            false => numbered(sample.frames.iter().cloned(), &mut profile)?,
        };
        profile.stack(named.into_iter(), &sample.values.estimated(header))?;
    }
    Ok(profile.finish(remarks(&parsed, has_allocated)))
}

/// The frames of each address, by the profile's numbers. Names that the file has come before those of files here.
fn frames(
    parsed: &Parsed,
    names: &mut Names,
    profile: &mut Bounded,
) -> Result<HashMap<u64, Vec<u32>>, ReadError> {
    let without = parsed.samples.iter().filter(|sample| sample.frames.is_empty());
    let mut addresses: Vec<u64> = without.flat_map(|sample| sample.addresses.iter().copied()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let found = names(&parsed.mapped, &addresses);
    let mut known = HashMap::with_capacity(addresses.len());
    for (address, mut frames) in addresses.into_iter().zip(found) {
        // Some tools write the address of the call.
        let written = [address, address.wrapping_sub(1)].into_iter().find_map(|one| parsed.names.get(&one));
        if let Some(written) = written {
            let code = frames.pop().unwrap_or_default();
            let frame = |(at, function): (usize, &String)| Frame {
                function: function.clone(),
                inlined: at + 1 < written.len(),
                file: String::new(),
                line: 0,
                ..code.clone()
            };
            frames = written.iter().enumerate().map(frame).collect();
        }
        known.insert(address, numbered(frames.into_iter(), profile)?);
    }
    Ok(known)
}

/// The profile's numbers of frames.
fn numbered(frames: impl Iterator<Item = Frame>, profile: &mut Bounded) -> Result<Vec<u32>, ReadError> {
    let clean = |frame: Frame| Frame {
        function: without_nul(&frame.function),
        file: without_nul(&frame.file),
        object: without_nul(&frame.object),
        ..frame
    };
    frames.map(|frame| profile.frame(clean(frame))).collect()
}

fn remarks(parsed: &Parsed, has_allocated: bool) -> Vec<String> {
    let mut remarks: Vec<String> = parsed.header.sampled_bytes().map(sampled).into_iter().collect();
    if !has_allocated {
        remarks.push("it has bytes in use, but not bytes allocated".to_owned());
    }
    let sum = parsed.samples.iter().fold(0_u64, |sum, one| sum.saturating_add(one.values.live_bytes()));
    let total = parsed.total.map(|total| total.live_bytes()).filter(|total| *total != sum);
    remarks.extend(total.map(|total| {
        format!("its first line has {} in use, its call stacks have {}", whole_bytes(total), whole_bytes(sum))
    }));
    remarks
}

#[cfg(test)]
mod tests;
