//! The recording layer with the counting one, with everything that may be requested, without a recorder, and over
//! collectors.

use std::process::Command;

use crate::layer_support::recorded::{Counts, Event, Image, Recording, Run, agree, logged};
use crate::layer_support::{Fixture, layers, manager};
use heaptoll_alloc_ring::Flags;
use heaptoll_alloc_ring::facts::{Facts, request};

/// The counts of the counting layer in the process of an image. Directly after the recording layer, it gets the calls
/// that this forwards: operators as the family's functions.
fn counted(run: &Run, image: &Image) -> Counts {
    let slots = run.counted.iter().filter(|slot| slot.pid == image.pid && slot.writer == "count");
    slots.fold(Counts::default(), |sum, slot| Counts {
        malloc: sum.malloc + slot.malloc_calls,
        realloc: sum.realloc + slot.realloc_calls,
        free: sum.free + slot.free_calls,
        new: 0,
        delete: 0,
        failed: sum.failed + slot.failed_calls,
        requested_bytes: sum.requested_bytes.wrapping_add(slot.requested_bytes),
    })
}

#[test]
fn it_records_as_many_calls_as_the_counting_layer_counts() {
    let fixture = Fixture::new();
    let threads = fixture.program("threads.c", &[]);
    let tree = fixture.program("family_tree.c", &[]);
    let endings = fixture.program("endings.c", &[]);
    let recording = Recording { counting: true, ..Recording::default() };
    for (program, arguments) in [
        (threads.as_path(), &["20", "3000"][..]),
        (&tree, &["fork"]),
        (&tree, &["clone"]),
        (&endings, &["exit"]),
        (&endings, &["_exit"]),
        ("/bin/ls".as_ref(), &["-l", "/usr"]),
        ("/usr/bin/perl".as_ref(), &["-e", "my %h; $h{$_} = $_ x 3 for 1..20000; print scalar keys %h"]),
        ("/bin/sh".as_ref(), &["-c", "for i in 1 2 3; do /bin/ls / | /usr/bin/sort; done"]),
    ] {
        let run = recording.run(&fixture, program, arguments).ok();
        for image in &run.images {
            // Processes that a shell starts have a number each; images of one process are skipped, since they share a
            // slot.
            if run.images.iter().filter(|other| other.pid == image.pid).count() == 1 {
                let recorded = Counts { new: 0, delete: 0, ..image.counts() };
                assert_eq!(recorded, counted(&run, image), "{} {arguments:?}", image.exe.display());
            }
        }
        assert_eq!(run.left_out, Default::default());
    }
}

#[test]
fn operators_are_recorded_as_often_as_the_counting_layer_in_its_place_counts_them() {
    let fixture = Fixture::new();
    let program = fixture.program("operators.cc", &[]);
    let recorded = Recording::default().run(&fixture, &program, &[]).ok();
    let count = Some(layers().join("libheaptoll_count.so").into_os_string());
    let counted = Recording::default().run_preloaded(&fixture, &program, &[], count).ok();
    let [slot] = &counted.counted[..] else { panic!("{:?}", counted.counted) };
    let expected = Counts {
        malloc: slot.malloc_calls,
        realloc: slot.realloc_calls,
        free: slot.free_calls,
        new: slot.new_calls,
        delete: slot.delete_calls,
        failed: slot.failed_calls,
        requested_bytes: slot.requested_bytes,
    };
    assert_eq!(recorded.image().counts(), expected);
}

#[test]
fn latencies_of_all_calls_are_recorded_when_requested() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    let flags = Flags { latency: true, ..Flags::default() };
    for threads in ["0", "3"] {
        let run =
            Recording { flags, ..Recording::default() }.run(&fixture, &program, &[threads, "5000"]).ok();
        let image = run.image();
        for (tid, expected) in &logged(&run.stdout) {
            agree(&image.of_thread(*tid), expected, true);
        }
        image.follow(false);
        let mut of_allocations = Vec::new();
        let mut unknown = 0;
        for ((_, event), latency) in image.events.iter().zip(&image.latencies) {
            match event {
                Event::ResizeBegin { .. } => assert_eq!(*latency, 0),
                // Recorded after it: 0 when the thread has been preempted in between.
                Event::Free { .. } => unknown += usize::from(*latency == 0),
                _ => assert!(*latency > 0, "{event:?}"),
            }
            if matches!(event, Event::Alloc { .. }) {
                of_allocations.push(*latency);
            }
        }
        assert!(unknown <= image.events.len() / 200, "{unknown} of {}", image.events.len());
        of_allocations.sort_unstable();
        // Of a malloc: tens of ns, and neither the time of recording nor a system call's.
        let median = of_allocations[of_allocations.len() / 2];
        assert!((5..2000).contains(&median), "{median} ns");
    }
}

#[test]
fn times_of_all_events_are_recorded_when_requested() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    let flags = Flags { event_time: true, ..Flags::default() };
    let run = Recording { flags, ..Recording::default() }.run(&fixture, &program, &["0", "5000"]).ok();
    let image = run.image();
    assert!(image.times.len() >= image.events.len());
    assert!(image.times.is_sorted());
    image.follow(false);
}

#[test]
fn every_allocation_has_a_site_when_requested() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    let flags = Flags { sites: true, latency: true, ..Flags::default() };
    let run = Recording { flags, ..Recording::default() }.run(&fixture, &program, &["4", "3000"]).ok();
    let image = run.image();
    for (tid, expected) in &logged(&run.stdout) {
        agree(&image.of_thread(*tid), expected, true);
    }
    image.follow(false);
    for ((_, event), site) in image.events.iter().zip(&image.sites) {
        match event {
            Event::Alloc { .. } | Event::ResizeEnd { .. } => {
                assert!(*site != 0 && image.defined.contains_key(site), "{event:?} {site}");
            }
            _ => assert_eq!(*site, 0),
        }
    }
}

#[test]
fn sites_of_operators_lead_to_their_callers() {
    let fixture = Fixture::new();
    // At fixed addresses: from 4 MiB on.
    let program = fixture.program("operators.cc", &["-no-pie"]);
    let flags = Flags { sites: true, ..Flags::default() };
    let run = Recording { flags, ..Recording::default() }.run(&fixture, &program, &[]).ok();
    let image = run.image();
    let mut sites = std::collections::BTreeSet::new();
    for ((_, event), site) in image.events.iter().zip(&image.sites) {
        if matches!(event, Event::Alloc { kind: 3, .. }) {
            let frames = &image.defined[site];
            assert!((4 << 20..5 << 20).contains(&frames[0]), "{event:x?} {frames:x?}");
            sites.insert(*site);
        }
    }
    // Each has a line of its own in the program.
    assert_eq!(sites.len(), 14);
}

#[test]
fn glibc_reports_its_mallinfo() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    let flags = Flags { ledger: true, ..Flags::default() };
    let recording = Recording { flags, requests_facts: true, ..Recording::default() };
    let run = recording.run(&fixture, &program, &["2", "30000"]).ok();
    let facts: Vec<Facts> =
        run.image().facts.iter().map(|bytes| Facts::from_bytes(bytes).expect("facts")).collect();
    assert!(!facts.is_empty());
    for facts in &facts {
        let info = facts.mallinfo.expect("it is glibc");
        assert_eq!(info.arena, info.uordblks + info.fordblks);
        assert!(info.arena >= 100 << 10 && info.keepcost <= info.fordblks);
        assert_eq!((facts.name(), facts.census, facts.collected), ("", None, None));
    }
    run.image().follow(false);
}

#[test]
fn a_manager_with_the_control_symbol_reports_its_census() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    let flags = Flags { ledger: true, ..Flags::default() };
    for name in ["knuth", "tithe"] {
        let object = manager(name);
        let recording =
            Recording { flags, requests_facts: true, preload_after: vec![&object], ..Recording::default() };
        let run = recording.run(&fixture, &program, &["2", "30000"]).ok();
        let facts: Vec<Facts> =
            run.image().facts.iter().map(|bytes| Facts::from_bytes(bytes).expect("facts")).collect();
        assert!(!facts.is_empty(), "{name}");
        for facts in &facts {
            assert_eq!(facts.name(), name);
            let census = facts.census.expect("a census");
            let sum = census.live_bytes
                + census.free_bytes
                + census.metadata_bytes
                + census.quarantined_bytes
                + census.unused_bytes;
            assert_eq!(sum, census.mapped_bytes);
            assert_eq!(facts.mallinfo, None);
            assert_eq!(facts.blacklisted_bytes.is_some(), name == "tithe");
        }
        run.image().follow(false);
    }
}

#[test]
fn a_collector_reports_what_a_collection_leaves_and_roots_hold_when_requested() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    let flags = Flags { ledger: true, ..Flags::default() };
    let object = manager("tithe");
    for request_flags in [0, request::COLLECT, request::COLLECT | request::HELD] {
        let recording = Recording {
            flags,
            requests_facts: true,
            request_flags,
            preload_after: vec![&object],
            variables: vec![("TITHE_MODE", "collect")],
            ..Recording::default()
        };
        let run = recording.run(&fixture, &program, &["0", "20000"]).ok();
        let facts: Vec<Facts> =
            run.image().facts.iter().map(|bytes| Facts::from_bytes(bytes).expect("facts")).collect();
        assert!(!facts.is_empty());
        for facts in &facts {
            assert!(facts.census.is_some());
            assert_eq!(facts.collected.is_some(), request_flags & request::COLLECT != 0);
            assert_eq!(facts.held.is_some(), request_flags & request::HELD != 0);
        }
        if request_flags & request::COLLECT != 0 {
            let live = |of: fn(&Facts) -> u64| facts.iter().map(of).sum::<u64>();
            let before = live(|facts| facts.census.unwrap_or_default().live_bytes);
            let after = live(|facts| facts.collected.unwrap_or_default().live_bytes);
            assert!(after < before, "{after} of {before}");
        }
    }
}

#[test]
fn what_is_recorded_keeps_no_garbage_alive() {
    let fixture = Fixture::new();
    let program = fixture.program("garbage.c", &[]);
    let collectors = ["bw16", "bw26", "treadmill"].map(|name| (name, ("", "")));
    for (name, mode) in collectors.into_iter().chain([("tithe", ("TITHE_MODE", "collect"))]) {
        let object = manager(name);
        let flags = Flags { sites: true, ..Flags::default() };
        let variables = if mode.0.is_empty() { vec![] } else { vec![mode] };
        let recording = Recording { flags, preload_after: vec![&object], variables, ..Recording::default() };
        let run = recording.run(&fixture, &program, &["100000"]).ok();
        let image = run.image();
        assert!(image.counts().malloc >= 200_000);
        let [before, after] = run.stdout.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{}", run.stdout)
        };
        let [before, after] = [before, after].map(|text| text.parse::<u64>().expect("a number"));
        // 45 MB of garbage were made. Stray words may keep some of it, not one in a hundred.
        assert!(after < before + (450 << 10), "{name}: {before} bytes are live before and {after} after");
    }
}

#[test]
fn without_a_recorder_it_only_forwards() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    let junk = fixture.path("junk");
    std::fs::write(&junk, [7; 8192]).expect("a file");
    let empty = fixture.path("empty");
    std::fs::write(&empty, []).expect("a file");
    for named in [None, Some("/nowhere/at/all".into()), Some(junk), Some(empty), Some("/".into())] {
        let mut command = Command::new(&program);
        command.args(["3", "1000"]).env("LD_PRELOAD", layers().join("libheaptoll_record.so"));
        match &named {
            Some(path) => command.env("HEAPTOLL_RECORD", path),
            None => command.env_remove("HEAPTOLL_RECORD"),
        };
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{named:?}: {output:?}");
        assert!(output.stderr.is_empty());
        assert_eq!(logged(&String::from_utf8_lossy(&output.stdout)).len(), 4);
    }
}

#[test]
fn a_program_under_a_limit_of_its_address_space_is_recorded_all_the_same() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    let script = format!("ulimit -v 600000; exec {} 3 2000", program.display());
    let run = Recording::default().run(&fixture, "/bin/sh".as_ref(), &["-c", &script]).ok();
    let image = run.images.iter().find(|image| image.exe == program).expect("it registered");
    for (tid, expected) in &logged(&run.stdout) {
        agree(&image.of_thread(*tid), expected, true);
    }
    image.follow(false);
}
