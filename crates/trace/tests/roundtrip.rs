//! What is written is read: every column, over several chunks.

use std::collections::HashMap;

use heaptoll_trace::{Allocation, Batch, Ending, Event, EventKind, Header, Reader, Settings, Writer};
use proptest::prelude::*;

/// A step of a made-up program.
#[derive(Debug, Clone)]
enum Step {
    Allocate(Allocation),
    Resize { which: usize, call: Allocation, moved: bool },
    Free { which: usize, kind: EventKind, thread: u32, latency_ns: u32 },
    Note(EventKind, Allocation),
    Stamp(u64),
    Flush,
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..200_u64, 4 => 0..5000_u64, 1 => (0..57_u32).prop_map(|shift| (1 << shift) - 1)]
}

fn call(kind: EventKind) -> impl Strategy<Value = Allocation> {
    let usable = prop_oneof![Just(None), (0..40_u64).prop_map(Some)];
    (sizes(), usable, 0..4_u32, 0..64_u8, 0..300_u32, any::<u32>(), any::<bool>()).prop_map(
        move |(size, usable, thread, align_log2, site, latency_ns, aligned)| Allocation {
            kind,
            thread,
            size: if size > 1 << 50 { 1 << 50 } else { size },
            usable: usable.map_or(0, |more| size.min(1 << 50).next_multiple_of(16) + more),
            align_log2: if aligned { align_log2 } else { 0 },
            site,
            latency_ns,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let allocating = prop_oneof![
        Just(EventKind::Malloc),
        Just(EventKind::Calloc),
        Just(EventKind::Aligned),
        Just(EventKind::New)
    ];
    let freeing = prop_oneof![
        6 => Just(EventKind::Free),
        1 => Just(EventKind::Delete),
        1 => Just(EventKind::ReallocFree),
        1 => Just(EventKind::Lost)
    ];
    let notes = prop_oneof![Just(EventKind::Failed), Just(EventKind::Foreign)];
    prop_oneof![
        10 => allocating.prop_flat_map(call).prop_map(Step::Allocate),
        8 => (any::<usize>(), freeing, 0..4_u32, any::<u32>())
            .prop_map(|(which, kind, thread, latency_ns)| Step::Free { which, kind, thread, latency_ns }),
        2 => (any::<usize>(), call(EventKind::Realloc), any::<bool>())
            .prop_map(|(which, call, moved)| Step::Resize { which, call, moved }),
        1 => notes.prop_flat_map(|kind| call(kind).prop_map(move |call| Step::Note(kind, call))),
        1 => (0..1_u64 << 40).prop_map(Step::Stamp),
        1 => Just(Step::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn events_come_back_as_they_were_written(
        steps in prop::collection::vec(step(), 0..600),
        (sites, latency, event_time) in any::<(bool, bool, bool)>(),
        level in prop_oneof![Just(0), Just(1)],
        events_per_chunk in 1..100_u32,
    ) {
        let header = Header { sites, latency, event_time, exe: "/bin/true".into(), ..Header::default() };
        let mut writer = Writer::new(Vec::new(), &header, &Settings { level, events_per_chunk }).unwrap();
        let mut live: Vec<u32> = Vec::new();
        let mut sizes: HashMap<u32, u64> = HashMap::new();
        let mut expected: Vec<Event> = Vec::new();
        let mut time_ns = 0;
        let mut clock = 0;
        let mut max_live = 0;
        let born = |call: &Allocation, kind, slot, time_ns| Event {
            kind,
            moved: false,
            align_log2: call.align_log2,
            thread: call.thread,
            slot,
            site: if sites { call.site } else { 0 },
            size: call.size,
            usable: call.usable,
            time_ns,
            latency_ns: if latency { call.latency_ns } else { 0 },
        };
        for step in steps {
            match step {
                Step::Allocate(call) => {
                    let slot = writer.allocate(&call).unwrap();
                    prop_assert!(!live.contains(&slot));
                    live.push(slot);
                    sizes.insert(slot, call.size);
                    clock += call.size;
                    expected.push(born(&call, call.kind, slot, time_ns));
                }
                Step::Resize { which, call, moved } if !live.is_empty() => {
                    let slot = live[which % live.len()];
                    writer.resize(slot, &call, moved).unwrap();
                    let old = sizes.insert(slot, call.size).unwrap();
                    clock += call.size.saturating_sub(old);
                    expected.push(Event { moved, ..born(&call, EventKind::Realloc, slot, time_ns) });
                }
                Step::Free { which, kind, thread, latency_ns } if !live.is_empty() => {
                    let slot = live.swap_remove(which % live.len());
                    writer.free(slot, kind, thread, latency_ns).unwrap();
                    sizes.remove(&slot);
                    let call = Allocation {
                        kind, thread, size: 0, usable: 0, align_log2: 0, site: 0, latency_ns,
                    };
                    expected.push(born(&call, kind, slot, time_ns));
                }
                Step::Note(kind, call) => {
                    writer.note(kind, &call).unwrap();
                    let size = if kind == EventKind::Failed { call.size } else { 0 };
                    let site = if kind == EventKind::Failed { call.site } else { 0 };
                    let call = Allocation { size, site, usable: 0, align_log2: 0, ..call };
                    expected.push(born(&call, kind, 0, time_ns));
                }
                Step::Stamp(ns) => {
                    writer.stamp(ns);
                    time_ns = time_ns.max(ns);
                }
                Step::Flush => writer.flush().unwrap(),
                Step::Resize { .. } | Step::Free { .. } => {}
            }
            max_live = max_live.max(sizes.values().sum::<u64>());
        }
        prop_assert_eq!(writer.clock_bytes(), clock);
        let ending = Ending { how: "exited with status 0".into(), status: Some(0), ..Ending::default() };
        let bytes = writer.finish(&ending).unwrap();

        let mut reader = Reader::new(&bytes[..]).unwrap();
        prop_assert_eq!(reader.header(), &header);
        let mut batch = Batch::default();
        let mut events = Vec::new();
        while reader.read(&mut batch).unwrap() {
            prop_assert_eq!(batch.first_event, events.len() as u64);
            prop_assert!(!batch.after_gap);
            prop_assert!(batch.events.iter().all(|event| u64::from(event.slot) < batch.objects.max(1)));
            events.append(&mut batch.events);
        }
        prop_assert_eq!(&events, &expected);
        prop_assert_eq!(&reader.tables().warnings, &Vec::<String>::new());
        let found = reader.tables().ending.as_ref().unwrap();
        prop_assert_eq!(found.events, expected.len() as u64);
        prop_assert_eq!(found.max_live_bytes, max_live);
        prop_assert_eq!(u64::from(found.slots), batch.objects);
        prop_assert_eq!(&found.how, &ending.how);
    }
}
