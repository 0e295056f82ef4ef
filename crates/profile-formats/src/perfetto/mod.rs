//! Perfetto's traces: figures over time as counter tracks, what took a while as slices, and the call stacks as a heap
//! profile at the chosen instant, which its UI shows as a flame graph.
//!
//! Perfetto opens Chrome's JSON as well. Protocol buffers are written since JSON has no heap profiles, its times are
//! floating-point microseconds, and its numbers above 2^53 are not exact. A file is a sequence of packets, each a
//! message of its own, so it is written as a stream.

mod heap;
mod schema;

use std::io::{self, Write};

use heaptoll_profiles::{Counter, Profile, Slice, SliceTrack, Tracks, Unit};

use crate::format::Instant;
use prost::Message;

use schema::{
    COUNTER, Clock, ClockSnapshot, CounterDescriptor, DebugAnnotation, ProcessDescriptor, SLICE_BEGIN,
    SLICE_END, Trace, TracePacket, TrackDescriptor, TrackEvent,
};

/// The one sequence of packets in the file.
const SEQUENCE: u32 = 1;
/// Flag of its first packet: no packet came before.
const STATE_CLEARED: u32 = 1;
/// The track of the process; those of counters and slices follow.
const PROCESS_TRACK: u64 = 1;
/// Clocks by Perfetto's numbers.
const REALTIME: u32 = 1;
const MONOTONIC_COARSE: u32 = 4;
const BOOTTIME: u32 = 6;

pub fn write(profile: &Profile, tracks: &Tracks, instant: Instant, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer { out };
    writer.begin(profile)?;
    let mut uuid = PROCESS_TRACK;
    for counter in &tracks.counters {
        uuid += 1;
        writer.counter(uuid, counter)?;
    }
    for track in &tracks.slices {
        uuid += 1;
        writer.slices(uuid, track)?;
    }
    for packet in heap::packets(profile, instant) {
        writer.packet(packet)?;
    }
    writer.out.flush()
}

struct Writer<'a> {
    out: &'a mut dyn Write,
}

impl Writer<'_> {
    fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        self.out.write_all(&Trace { packet: vec![packet] }.encode_to_vec())
    }

    /// Clocks, all of which begin with the trace, and the process.
    fn begin(&mut self, profile: &Profile) -> io::Result<()> {
        let subject = &profile.subject;
        let started_ns = subject.started_unix_s.saturating_mul(1_000_000_000);
        let clocks = [(REALTIME, started_ns), (MONOTONIC_COARSE, 0), (BOOTTIME, 0)];
        let clocks = clocks.map(|(id, ns)| Clock { clock_id: Some(id), timestamp: Some(ns) }).to_vec();
        self.packet(TracePacket {
            clock_snapshot: Some(ClockSnapshot { clocks }),
            sequence_flags: Some(STATE_CLEARED),
            timestamp: Some(0),
            ..TracePacket::default()
        })?;
        let process = ProcessDescriptor {
            pid: Some(subject.pid),
            cmdline: subject.command.clone(),
            process_name: Some(subject.program().to_owned()),
        };
        self.track(TrackDescriptor {
            uuid: Some(PROCESS_TRACK),
            process: Some(process),
            ..TrackDescriptor::default()
        })
    }

    fn track(&mut self, descriptor: TrackDescriptor) -> io::Result<()> {
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })
    }

    fn event(&mut self, time_ns: u64, event: TrackEvent) -> io::Result<()> {
        self.packet(TracePacket {
            timestamp: Some(time_ns),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    fn counter(&mut self, uuid: u64, counter: &Counter) -> io::Result<()> {
        let unit = match counter.unit {
            Unit::Nanoseconds => 1,
            Unit::Count | Unit::ByteInstructions | Unit::ByteBytes => 2,
            Unit::Bytes => 3,
        };
        self.track(TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid: Some(PROCESS_TRACK),
            name: Some(counter.name.clone()),
            counter: Some(CounterDescriptor { unit: Some(unit) }),
            ..TrackDescriptor::default()
        })?;
        for &(time_ns, value) in &counter.points {
            let event = TrackEvent {
                r#type: Some(COUNTER),
                track_uuid: Some(uuid),
                counter_value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
                ..TrackEvent::default()
            };
            self.event(time_ns, event)?;
        }
        Ok(())
    }

    fn slices(&mut self, uuid: u64, track: &SliceTrack) -> io::Result<()> {
        self.track(TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid: Some(PROCESS_TRACK),
            name: Some(track.name.clone()),
            ..TrackDescriptor::default()
        })?;
        for slice in &track.slices {
            self.slice(uuid, slice)?;
        }
        Ok(())
    }

    fn slice(&mut self, uuid: u64, slice: &Slice) -> io::Result<()> {
        let fact = |&(name, value): &(&str, u64)| DebugAnnotation {
            name: Some(name.to_owned()),
            uint_value: Some(value),
        };
        let begin = TrackEvent {
            r#type: Some(SLICE_BEGIN),
            track_uuid: Some(uuid),
            name: Some(slice.name.clone()),
            debug_annotations: slice.facts.iter().map(fact).collect(),
            ..TrackEvent::default()
        };
        self.event(slice.start_ns, begin)?;
        let end = TrackEvent { r#type: Some(SLICE_END), track_uuid: Some(uuid), ..TrackEvent::default() };
        self.event(slice.start_ns.saturating_add(slice.length_ns), end)
    }
}

#[cfg(test)]
mod tests;
