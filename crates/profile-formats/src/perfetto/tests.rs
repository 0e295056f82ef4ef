//! Traces are decoded and compared with what they were made of.

use std::collections::HashMap;

use heaptoll_profiles::{Measure, Profile};
use prost::Message;

use super::schema::{HeapSample, ProfilePacket, Trace, TrackEvent};
use crate::testing::{CHOICE, bytes, hostile, small};
use crate::{Choice, Format, Instant};

fn decoded(profile: &Profile, choice: Choice) -> Trace {
    Trace::decode(&bytes(Format::Perfetto, profile, choice)[..]).expect("a message")
}

fn profile_packets(trace: &Trace) -> Vec<&ProfilePacket> {
    trace.packet.iter().filter_map(|packet| packet.profile_packet.as_ref()).collect()
}

#[test]
fn counters_and_slices_are_tracks_of_the_process() {
    let trace = decoded(&small(), CHOICE);
    let first = &trace.packet[0];
    assert_eq!(first.sequence_flags, Some(1), "the first packet clears the state");
    assert!(trace.packet.iter().all(|packet| packet.trusted_packet_sequence_id == Some(1)));
    let descriptors: Vec<_> =
        trace.packet.iter().filter_map(|packet| packet.track_descriptor.as_ref()).collect();
    let process = descriptors[0].process.as_ref().expect("a process");
    assert_eq!((process.pid, process.process_name.as_deref()), (Some(77), Some("prog")));
    assert!(descriptors[1..].iter().all(|track| track.parent_uuid == descriptors[0].uuid));
    let events = |name: &str| -> Vec<(u64, &TrackEvent)> {
        let uuid = descriptors.iter().find(|track| track.name.as_deref() == Some(name)).and_then(|t| t.uuid);
        let events = trace
            .packet
            .iter()
            .filter_map(|packet| Some((packet.timestamp.unwrap_or(0), packet.track_event.as_ref()?)));
        events.filter(|(_, event)| event.track_uuid == uuid).collect()
    };
    let values: Vec<_> =
        events("live bytes").iter().map(|(time, event)| (*time, event.counter_value)).collect();
    assert_eq!(values, [(0, Some(0)), (1_000_000, Some(136)), (3_000_000, Some(64))]);
    let slices: Vec<_> = events("snapshots").iter().map(|(time, event)| (*time, event.r#type)).collect();
    assert_eq!(slices, [(5, Some(1)), (15, Some(2))]);
}

#[test]
fn the_heap_profile_has_the_profiles_sums() {
    for (instant, time) in [(Instant::End, 3_000_000), (Instant::Peak, 1_000_000)] {
        let trace = decoded(&small(), Choice { instant, ..CHOICE });
        let packets = profile_packets(&trace);
        let continued: Vec<_> = packets.iter().filter_map(|packet| packet.continued).collect();
        assert_eq!(continued, [true, true, true, true, false]);
        assert!(packets.iter().enumerate().all(|(at, packet)| packet.index == Some(at as u64)));
        let dumps: Vec<_> = packets.iter().flat_map(|packet| &packet.process_dumps).collect();
        assert_eq!((dumps[0].timestamp, dumps[0].pid), (Some(time), Some(77)));
        let sum = |of: fn(&HeapSample) -> Option<u64>| -> u64 {
            dumps.iter().flat_map(|dump| &dump.samples).filter_map(of).sum()
        };
        let (all, live) = (small().total(Measure::AllocatedBytes), small().total(instant.measures()[1]));
        assert_eq!(sum(|sample| sample.self_allocated), all);
        assert_eq!(sum(|sample| sample.self_freed), all - live);
        let (objects, alive) =
            (small().total(Measure::AllocatedObjects), small().total(instant.measures()[0]));
        assert_eq!(sum(|sample| sample.alloc_count), objects);
        assert_eq!(sum(|sample| sample.free_count), objects - alive);
    }
}

/// Names of a stack's frames by way of all tables, as the importer resolves them.
fn names(trace: &Trace, iid: u64) -> Vec<String> {
    let packets = profile_packets(trace);
    let strings: HashMap<u64, String> = packets
        .iter()
        .flat_map(|packet| &packet.strings)
        .map(|string| {
            let text = string.str.clone().unwrap_or_default();
            (string.iid.unwrap_or(0), String::from_utf8(text).expect("UTF-8"))
        })
        .collect();
    let mappings: Vec<u64> =
        packets.iter().flat_map(|packet| &packet.mappings).filter_map(|mapping| mapping.iid).collect();
    let frames: HashMap<u64, String> = packets
        .iter()
        .flat_map(|packet| &packet.frames)
        .map(|frame| {
            assert!(mappings.contains(&frame.mapping_id.expect("a mapping")));
            let name = strings[&frame.function_name_id.expect("a name")].clone();
            (frame.iid.expect("a number"), name)
        })
        .collect();
    let stacks = packets.iter().flat_map(|packet| &packet.callstacks);
    let mut stacks = stacks.filter(|stack| stack.iid == Some(iid));
    stacks.next().expect("the stack").frame_ids.iter().map(|frame| frames[frame].clone()).collect()
}

#[test]
fn stacks_are_resolved_by_way_of_all_tables() {
    let trace = decoded(&small(), CHOICE);
    assert_eq!(names(&trace, 1), ["main", "parse", "xmalloc"], "outermost first");
    let trace = decoded(&hostile(), CHOICE);
    let expected = ["a;b", "new\nline", "<script>alert(1)</script>", "é \u{fffd}", "bin+0x40"];
    assert_eq!(names(&trace, 1), expected);
}

#[test]
fn without_stacks_there_is_no_heap_profile() {
    assert!(profile_packets(&decoded(&Profile::default(), CHOICE)).is_empty());
}
