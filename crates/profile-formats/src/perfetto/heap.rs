//! The call stacks as a heap profile: what each allocated, and what of it was freed until the chosen instant.

use std::collections::HashMap;

use heaptoll_profiles::{Frame, Profile};

use super::schema::{
    self, Callstack, HeapSample, InternedString, Mapping, ProcessHeapSamples, ProfilePacket, TracePacket,
};
use crate::format::{Instant, four};

/// The heap that the UI shows as that of malloc.
const HEAP: &str = "libc.malloc";
/// Entries of a table in one packet.
const PER_PACKET: usize = 4096;

/// Tables in which each entry has a number from 1.
#[derive(Default)]
struct Tables<'a> {
    strings: HashMap<&'a str, u64>,
    names: Vec<InternedString>,
    mappings: Vec<Mapping>,
    mapping_of: HashMap<&'a str, u64>,
    frames: Vec<schema::Frame>,
    frame_of: HashMap<(u64, u64, u64), u64>,
}

/// The packets of a profile; none when it has no stack.
pub fn packets(profile: &Profile, instant: Instant) -> Vec<TracePacket> {
    if profile.stacks().len() == 0 {
        return Vec::new();
    }
    let names: Vec<String> = profile.frames().iter().map(|frame| frame.name().into_owned()).collect();
    let mut tables = Tables::default();
    // What has no build ID has the empty text of number 0.
    tables.names.push(InternedString { iid: Some(0), str: Some(Vec::new()) });
    let numbers: Vec<u64> =
        profile.frames().iter().zip(&names).map(|(frame, name)| tables.frame(frame, name)).collect();
    let (callstacks, samples) = stacks(profile, instant, &numbers);
    let mut packets: Vec<ProfilePacket> = Vec::new();
    chunks(tables.names, &mut packets, |strings| ProfilePacket { strings, ..ProfilePacket::default() });
    chunks(tables.mappings, &mut packets, |mappings| ProfilePacket { mappings, ..ProfilePacket::default() });
    chunks(tables.frames, &mut packets, |frames| ProfilePacket { frames, ..ProfilePacket::default() });
    chunks(callstacks, &mut packets, |callstacks| ProfilePacket { callstacks, ..ProfilePacket::default() });
    chunks(samples, &mut packets, |samples| ProfilePacket {
        process_dumps: vec![dump(profile, instant, samples)],
        ..ProfilePacket::default()
    });
    let last = packets.len() - 1;
    let time_ns = at_ns(profile, instant);
    let packet = |(at, packet): (usize, ProfilePacket)| TracePacket {
        timestamp: Some(time_ns),
        profile_packet: Some(ProfilePacket { continued: Some(at < last), index: Some(at as u64), ..packet }),
        ..TracePacket::default()
    };
    packets.into_iter().enumerate().map(packet).collect()
}

fn chunks<T>(mut items: Vec<T>, packets: &mut Vec<ProfilePacket>, packet: impl Fn(Vec<T>) -> ProfilePacket) {
    while !items.is_empty() {
        let rest = items.split_off(items.len().min(PER_PACKET));
        packets.push(packet(std::mem::replace(&mut items, rest)));
    }
}

fn at_ns(profile: &Profile, instant: Instant) -> u64 {
    match instant {
        Instant::End => profile.subject.to_ns,
        Instant::Peak => profile.subject.peak_ns,
    }
}

/// Stacks and their values. Stacks whose frames are the same in this format are one: it knows no lines.
fn stacks(profile: &Profile, instant: Instant, numbers: &[u64]) -> (Vec<Callstack>, Vec<HeapSample>) {
    let columns = four(instant).map(|measure| profile.column(measure));
    let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
    let mut sums: Vec<[u64; 4]> = Vec::new();
    let mut callstacks = Vec::new();
    for stack in profile.stacks().filter(|stack| stack.call.is_some()) {
        let mut frame_ids: Vec<u64> = profile
            .path(stack.call)
            .map(|call| numbers[profile.calls()[call as usize].frame as usize])
            .collect();
        frame_ids.reverse();
        let next = sums.len();
        let at = *known.entry(frame_ids.clone()).or_insert(next);
        if at == next {
            sums.push([0; 4]);
            callstacks.push(Callstack { iid: Some(next as u64 + 1), frame_ids });
        }
        for (sum, column) in sums[at].iter_mut().zip(columns) {
            *sum = sum.saturating_add(column.map_or(0, |column| stack.values[column]));
        }
    }
    let sample = |(iid, [objects, bytes, live_objects, live_bytes]): (u64, [u64; 4])| HeapSample {
        callstack_id: Some(iid),
        self_allocated: Some(bytes),
        self_freed: Some(bytes.saturating_sub(live_bytes)),
        alloc_count: Some(objects),
        free_count: Some(objects.saturating_sub(live_objects)),
    };
    (callstacks, (1..).zip(sums).map(sample).collect())
}

fn dump(profile: &Profile, instant: Instant, samples: Vec<HeapSample>) -> ProcessHeapSamples {
    ProcessHeapSamples {
        pid: u64::try_from(profile.subject.pid).ok(),
        samples,
        from_startup: Some(profile.subject.from_ns == 0),
        timestamp: Some(at_ns(profile, instant)),
        heap_name: Some(HEAP.to_owned()),
        // Every byte is counted.
        sampling_interval_bytes: Some(1),
        orig_sampling_interval_bytes: Some(1),
    }
}

impl<'a> Tables<'a> {
    fn string(&mut self, text: &'a str) -> u64 {
        let next = self.names.len() as u64;
        let iid = *self.strings.entry(text).or_insert(next);
        if iid == next {
            self.names.push(InternedString { iid: Some(iid), str: Some(text.as_bytes().to_vec()) });
        }
        iid
    }

    fn frame(&mut self, frame: &'a Frame, name: &'a str) -> u64 {
        let (name, mapping) = (self.string(name), self.mapping(&frame.object));
        let next = self.frames.len() as u64 + 1;
        let iid = *self.frame_of.entry((name, mapping, frame.call_address())).or_insert(next);
        if iid == next {
            self.frames.push(schema::Frame {
                iid: Some(iid),
                function_name_id: Some(name),
                mapping_id: Some(mapping),
                rel_pc: Some(frame.call_address()),
            });
        }
        iid
    }

    fn mapping(&mut self, object: &'a str) -> u64 {
        let next = self.mappings.len() as u64 + 1;
        let iid = *self.mapping_of.entry(object).or_insert(next);
        if iid == next {
            // The path is in parts, without the separators.
            let parts = object.split('/').filter(|part| !part.is_empty());
            let path_string_ids = parts.map(|part| self.string(part)).collect();
            let start = next << 32;
            let (start, end) = (Some(start), Some(start + (1 << 32)));
            self.mappings.push(Mapping { iid: Some(iid), start, end, path_string_ids });
        }
        iid
    }
}
