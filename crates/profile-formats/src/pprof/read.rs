//! Heap profiles of pprof: of Go, jemalloc, gperftools, Node, and heaptoll's own.
//!
//! Their live figures are those when the profile was written, which here is the end. Many are sampled; their values are
//! then estimates, and a remark states the rate.

use std::collections::HashMap;

use heaptoll_profiles::{Frame, Measure, Subject};
use heaptoll_units::number;
use prost::Message;

use super::schema::{self, Function, Line, Location, Mapping};
use crate::bounded::{Bounded, ReadError, ReadProfile, sampled, without_nul};
use crate::heap_text::{Mapped, Names};
use crate::pprof_fields::field;

/// Sample types and what they are: those of Go, of jemalloc and gperftools by pprof itself, of V8.
const TYPES: [(&str, &str, Measure); 8] = [
    ("alloc_objects", "count", Measure::AllocatedObjects),
    ("alloc_space", "bytes", Measure::AllocatedBytes),
    ("inuse_objects", "count", Measure::EndObjects),
    ("inuse_space", "bytes", Measure::EndBytes),
    ("objects", "count", Measure::EndObjects),
    ("space", "bytes", Measure::EndBytes),
    ("allocations", "count", Measure::AllocatedObjects),
    ("allocated", "bytes", Measure::AllocatedBytes),
];
/// Bytes in memory of a message without content, and of a byte of it: each may be a number of 8 bytes.
const EACH_MESSAGE: u64 = 160;
const EACH_BYTE: u64 = 10;

pub fn read(bytes: &[u8], limit_bytes: u64, names: &mut Names) -> Result<ReadProfile, ReadError> {
    let mut rest = bytes;
    let mut needs_bytes = 0_u64;
    while let Some((_, length)) = field(&mut rest) {
        needs_bytes = needs_bytes
            .saturating_add(EACH_MESSAGE)
            .saturating_add(length.unwrap_or(0).saturating_mul(EACH_BYTE));
        if needs_bytes > limit_bytes {
            return Err(ReadError::Memory { limit_bytes });
        }
    }
    let message = schema::Profile::decode(bytes).map_err(|error| malformed(error.to_string()))?;
    let texts = Texts(&message.string_table);
    let columns = columns(&message, texts)?;
    let measures = columns.iter().map(|(_, measure)| *measure).collect();
    let mut profile = Bounded::new(measures, limit_bytes - needs_bytes);
    profile.subject(subject(&message, texts));
    let mut frames = Frames::new(&message, names);
    let mut values = vec![0; columns.len()];
    for sample in &message.sample {
        if sample.value.len() != message.sample_type.len() {
            return Err(malformed("a sample has not a value for each type".into()));
        }
        for (value, (column, _)) in values.iter_mut().zip(&columns) {
            *value = u64::try_from(sample.value[*column]).map_err(|_| ReadError::Negative)?;
        }
        for &id in &sample.location_id {
            frames.know(id, &mut profile)?;
        }
        let stack = sample.location_id.iter().flat_map(|id| frames.of(*id));
        profile.stack(stack.copied(), &values)?;
    }
    Ok(profile.finish(remarks(&message, texts, &columns)))
}

fn malformed(what: String) -> ReadError {
    ReadError::Malformed { format: "pprof", what }
}

/// The table of texts. What it has not is empty.
#[derive(Clone, Copy)]
struct Texts<'a>(&'a [String]);

impl<'a> Texts<'a> {
    fn get(self, index: i64) -> &'a str {
        usize::try_from(index).ok().and_then(|index| self.0.get(index)).map_or("", String::as_str)
    }
}

/// Which values of a sample are of a heap, and what they are. Each measure once.
fn columns(message: &schema::Profile, texts: Texts<'_>) -> Result<Vec<(usize, Measure)>, ReadError> {
    let mut columns: Vec<(usize, Measure)> = Vec::new();
    let types = message.sample_type.iter().map(|kind| (texts.get(kind.r#type), texts.get(kind.unit)));
    for (column, (name, unit)) in types.clone().enumerate() {
        let measure = TYPES.iter().find(|known| (known.0, known.1) == (name, unit)).map(|known| known.2);
        if let Some(measure) = measure.filter(|measure| columns.iter().all(|(_, known)| known != measure)) {
            columns.push((column, measure));
        }
    }
    if columns.is_empty() {
        let counted: Vec<String> = types.take(8).map(|(name, unit)| format!("{name} ({unit})")).collect();
        let counted = if counted.is_empty() { "nothing".to_owned() } else { counted.join(", ") };
        return Err(ReadError::NoHeap { counted });
    }
    Ok(columns)
}

fn subject(message: &schema::Profile, texts: Texts<'_>) -> Subject {
    let ns = |ns: i64| u64::try_from(ns).unwrap_or(0);
    Subject {
        // By convention the first mapping is the program's.
        exe: message
            .mapping
            .first()
            .map_or_else(String::new, |program| without_nul(texts.get(program.filename))),
        started_unix_s: ns(message.time_nanos) / 1_000_000_000,
        to_ns: ns(message.duration_nanos),
        sampled_bytes: sampled_bytes(message, texts),
        ..Subject::default()
    }
}

/// The mean distance of samples; none where every byte was counted.
fn sampled_bytes(message: &schema::Profile, texts: Texts<'_>) -> Option<u64> {
    let unit = message.period_type.map(|kind| texts.get(kind.unit));
    (message.period > 1 && unit == Some("bytes")).then_some(message.period.unsigned_abs())
}

fn remarks(message: &schema::Profile, texts: Texts<'_>, columns: &[(usize, Measure)]) -> Vec<String> {
    let mut remarks: Vec<String> = sampled_bytes(message, texts).map(sampled).into_iter().collect();
    let others = message.sample_type.len() - columns.len();
    if others > 0 {
        remarks.push(format!(
            "{} of its values are duplicates or not of a heap, and left out",
            number(others as u64)
        ));
    }
    remarks
}

/// The frames of locations by the builder's numbers, innermost first.
struct Frames<'a> {
    texts: Texts<'a>,
    locations: HashMap<u64, &'a Location>,
    functions: HashMap<u64, &'a Function>,
    mappings: HashMap<u64, &'a Mapping>,
    /// What files here have of locations without functions.
    found: HashMap<u64, Vec<Frame>>,
    known: HashMap<u64, Vec<u32>>,
}

impl<'a> Frames<'a> {
    fn new(message: &'a schema::Profile, names: &mut Names) -> Frames<'a> {
        let texts = Texts(&message.string_table);
        let without: Vec<&Location> =
            message.location.iter().filter(|one| one.line.is_empty() && one.address != 0).collect();
        let mapped = message.mapping.iter().map(|one| Mapped {
            path: without_nul(texts.get(one.filename)),
            start: one.memory_start.wrapping_sub(one.file_offset),
            end: one.memory_limit,
        });
        // Its addresses are those of calls; a frame's are those after them.
        let addresses: Vec<u64> = without.iter().map(|one| one.address.wrapping_add(1)).collect();
        let found = match addresses.is_empty() {
            true => vec![],
            false => names(&mapped.collect::<Vec<_>>(), &addresses),
        };
        Frames {
            found: without.iter().map(|one| one.id).zip(found).collect(),
            texts: Texts(&message.string_table),
            locations: message.location.iter().map(|location| (location.id, location)).collect(),
            functions: message.function.iter().map(|function| (function.id, function)).collect(),
            mappings: message.mapping.iter().map(|mapping| (mapping.id, mapping)).collect(),
            known: HashMap::new(),
        }
    }

    fn of(&self, id: u64) -> &[u32] {
        self.known.get(&id).map_or(&[], Vec::as_slice)
    }

    fn know(&mut self, id: u64, profile: &mut Bounded) -> Result<(), ReadError> {
        if self.known.contains_key(&id) {
            return Ok(());
        }
        let location =
            *self.locations.get(&id).ok_or_else(|| malformed("a sample leads to no location".into()))?;
        let code = self.code(location);
        let mut frames = Vec::with_capacity(location.line.len().max(1));
        for (at, line) in location.line.iter().enumerate() {
            let inlined = at + 1 < location.line.len();
            frames.push(profile.frame(Frame { inlined, ..self.frame(*line, &code) })?);
        }
        for frame in self.found.remove(&id).unwrap_or_default() {
            frames.push(profile.frame(frame)?);
        }
        if frames.is_empty() {
            frames.push(profile.frame(code)?);
        }
        self.known.insert(id, frames);
        Ok(())
    }

    /// A location without its functions.
    fn code(&self, location: &Location) -> Frame {
        let mapping = self.mappings.get(&location.mapping_id);
        let object = mapping.map_or("", |mapping| self.texts.get(mapping.filename));
        let inside = mapping.map_or(location.address, |mapping| {
            location.address.wrapping_sub(mapping.memory_start).wrapping_add(mapping.file_offset)
        });
        // Its addresses are those of calls; a frame's are those after them.
        let offset = if location.address == 0 { 0 } else { inside.wrapping_add(1) };
        Frame { object: without_nul(object), offset, ..Frame::default() }
    }

    fn frame(&self, line: Line, code: &Frame) -> Frame {
        let function = self.functions.get(&line.function_id);
        let text = |of: fn(&Function) -> i64| function.map_or("", |function| self.texts.get(of(function)));
        let name = match text(|function| function.name) {
            "" => text(|function| function.system_name),
            name => name,
        };
        Frame {
            function: without_nul(name),
            file: without_nul(text(|function| function.filename)),
            line: u32::try_from(line.line).unwrap_or(0),
            ..code.clone()
        }
    }
}
