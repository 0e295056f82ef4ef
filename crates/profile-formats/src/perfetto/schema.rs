//! The messages of Perfetto's `perfetto_trace.proto`, package `perfetto.protos`, as far as they are written: names and
//! numbers of fields are the format.

/// Types of a [`TrackEvent`].
pub const SLICE_BEGIN: i32 = 1;
pub const SLICE_END: i32 = 2;
pub const COUNTER: i32 = 4;

use crate::wire::{Unpacked, messages};

messages! {
    struct Trace {
        1 => packet: Vec<TracePacket>,
    }

    struct TracePacket {
        6 => clock_snapshot: Option<ClockSnapshot>,
        /// ns of the clock `BOOTTIME`.
        8 => timestamp: Option<u64>,
        10 => trusted_packet_sequence_id: Option<u32>,
        11 => track_event: Option<TrackEvent>,
        13 => sequence_flags: Option<u32>,
        37 => profile_packet: Option<ProfilePacket>,
        60 => track_descriptor: Option<TrackDescriptor>,
    }

    struct ClockSnapshot {
        1 => clocks: Vec<Clock>,
    }

    #[derive(Copy)]
    struct Clock {
        1 => clock_id: Option<u32>,
        2 => timestamp: Option<u64>,
    }

    struct TrackDescriptor {
        1 => uuid: Option<u64>,
        2 => name: Option<String>,
        3 => process: Option<ProcessDescriptor>,
        5 => parent_uuid: Option<u64>,
        8 => counter: Option<CounterDescriptor>,
    }

    struct ProcessDescriptor {
        1 => pid: Option<i32>,
        2 => cmdline: Vec<String>,
        6 => process_name: Option<String>,
    }

    struct CounterDescriptor {
        /// 1: ns, 2: count, 3: bytes.
        3 => unit: Option<i32>,
    }

    struct TrackEvent {
        4 => debug_annotations: Vec<DebugAnnotation>,
        9 => r#type: Option<i32>,
        11 => track_uuid: Option<u64>,
        23 => name: Option<String>,
        30 => counter_value: Option<i64>,
    }

    struct DebugAnnotation {
        3 => uint_value: Option<u64>,
        10 => name: Option<String>,
    }

    struct ProfilePacket {
        1 => strings: Vec<InternedString>,
        2 => frames: Vec<Frame>,
        3 => callstacks: Vec<Callstack>,
        4 => mappings: Vec<Mapping>,
        5 => process_dumps: Vec<ProcessHeapSamples>,
        /// The profile goes on in the next packet.
        6 => continued: Option<bool>,
        7 => index: Option<u64>,
    }

    struct InternedString {
        1 => iid: Option<u64>,
        2 => str: Option<Vec<u8>>,
    }

    struct Mapping {
        1 => iid: Option<u64>,
        4 => start: Option<u64>,
        5 => end: Option<u64>,
        7 => path_string_ids: Unpacked,
    }

    #[derive(Copy)]
    struct Frame {
        1 => iid: Option<u64>,
        2 => function_name_id: Option<u64>,
        3 => mapping_id: Option<u64>,
        4 => rel_pc: Option<u64>,
    }

    struct Callstack {
        1 => iid: Option<u64>,
        /// Outermost first.
        2 => frame_ids: Unpacked,
    }

    struct ProcessHeapSamples {
        1 => pid: Option<u64>,
        2 => samples: Vec<HeapSample>,
        3 => from_startup: Option<bool>,
        /// ns of the clock `MONOTONIC_COARSE`.
        9 => timestamp: Option<u64>,
        11 => heap_name: Option<String>,
        12 => sampling_interval_bytes: Option<u64>,
        13 => orig_sampling_interval_bytes: Option<u64>,
    }

    #[derive(Copy)]
    struct HeapSample {
        1 => callstack_id: Option<u64>,
        2 => self_allocated: Option<u64>,
        3 => self_freed: Option<u64>,
        5 => alloc_count: Option<u64>,
        6 => free_count: Option<u64>,
    }
}
