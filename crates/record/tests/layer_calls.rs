//! The recording layer records every call, as it was made, in the order of the process.

use heaptoll_alloc_ring::Flags;

use crate::layer_support::recorded::{Event, Recording, agree, logged, marked};
use crate::layer_support::{Fixture, layers};

#[test]
fn every_function_of_the_family_is_recorded_as_it_was_called() {
    let fixture = Fixture::new();
    let run = Recording::default().run(&fixture, &fixture.program("family.c", &[]), &[]).ok();
    let image = run.image();
    let log = logged(&run.stdout);
    let expected = &log[&image.pid];
    assert!(expected.len() > 10_000);
    agree(marked(&image.of_thread(image.pid)), expected, false);
    image.follow(false);
    assert_eq!(run.left_out, Default::default());
}

#[test]
fn every_operator_is_recorded_as_it_was_called() {
    let fixture = Fixture::new();
    let run = Recording::default().run(&fixture, &fixture.program("operators.cc", &[]), &[]).ok();
    let image = run.image();
    agree(marked(&image.of_thread(image.pid)), &logged(&run.stdout)[&image.pid], false);
    image.follow(false);
    // operator new, the malloc of the runtime's own, the same again after the handler; and without exceptions the
    // runtime's operator first calls the plain one.
    assert_eq!(image.counts().failed, 6);
}

#[test]
fn threads_and_what_they_give_each_other_are_recorded_in_order() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    for (threads, rounds) in [("1", "20000"), ("7", "10000"), ("200", "300")] {
        let run = Recording::default().run(&fixture, &program, &[threads, rounds]).ok();
        let image = run.image();
        let log = logged(&run.stdout);
        assert_eq!(log.len(), threads.parse::<usize>().expect("a number") + 1);
        for (tid, expected) in &log {
            agree(&image.of_thread(*tid), expected, true);
        }
        image.follow(false);
        assert_eq!(run.left_out, Default::default());
    }
}

#[test]
fn threads_that_share_a_ring_are_recorded_all_the_same() {
    let fixture = Fixture::new();
    let program = fixture.program("threads.c", &[]);
    let options = heaptoll_alloc_ring::Options { rings: 4, ..Recording::default().options };
    let run = Recording { options, ..Recording::default() }.run(&fixture, &program, &["30", "500"]).ok();
    let image = run.image();
    for (tid, expected) in &logged(&run.stdout) {
        agree(&image.of_thread(*tid), expected, true);
    }
    image.follow(false);
    assert_eq!(run.left_out, Default::default());
}

#[test]
fn blocks_freed_at_the_very_end_are_recorded() {
    let fixture = Fixture::new();
    let program = fixture.program("endings.c", &[]);
    for (how, code) in [
        ("exit", Some(0)),
        ("return", Some(0)),
        ("thread", Some(0)),
        ("_exit", Some(0)),
        ("abort", None),
        ("kill", None),
    ] {
        let run = Recording::default().run(&fixture, &program, &[how]);
        assert_eq!(run.status.code(), code, "{how}: {}", run.stderr);
        let image = run.image();
        let log = logged(&run.stdout);
        assert_eq!(log.len(), 2, "{how}");
        for (tid, expected) in &log {
            agree(&image.of_thread(*tid), expected, true);
        }
        image.follow(false);
    }
}

#[test]
fn each_process_records_its_own_calls_and_a_child_of_vfork_those_of_its_parent() {
    let fixture = Fixture::new();
    let program = fixture.program("family_tree.c", &[]);
    for (how, images) in [("fork", 3), ("clone", 2), ("vfork", 2), ("exec", 2)] {
        let run = Recording::default().run(&fixture, &program, &[how]).ok();
        assert_eq!(run.images.len(), images, "{how}");
        let log = logged(&run.stdout);
        for (tid, expected) in &log {
            // The image that exec began in the same process comes after it.
            let recorded: Vec<_> = run
                .images
                .iter()
                .filter(|image| image.pid == *tid)
                .flat_map(|image| image.of_thread(*tid))
                .collect();
            agree(&recorded, expected, true);
        }
        for image in &run.images {
            image.follow(true);
        }
        let first = &run.images[0];
        first.follow(false);
        assert!(run.images[1..].iter().all(|image| image.parent_pid != 0 && image.exe == first.exe));
        if how == "vfork" {
            let of_child = |event: &&(u32, crate::layer_support::recorded::Event)| {
                matches!(event.1, crate::layer_support::recorded::Event::Alloc { size: 5555, .. })
            };
            assert_eq!(first.events.iter().filter(of_child).count(), 1);
        }
    }
}

#[test]
fn a_program_that_closes_all_descriptors_changes_its_root_and_forgets_its_environment_is_recorded() {
    let fixture = Fixture::new();
    let run = Recording::default().run(&fixture, &fixture.program("closes.c", &[]), &[]).ok();
    let image = run.image();
    let log = logged(&run.stdout);
    assert_eq!(log.len(), 2);
    for (tid, expected) in &log {
        assert!(expected.len() >= 2000);
        agree(&image.of_thread(*tid), expected, true);
    }
    image.follow(false);
}

#[test]
fn handlers_that_allocate_at_any_instruction_leave_the_record_sound() {
    let fixture = Fixture::new();
    let program = fixture.program("handler.c", &[]);
    // A manager that allows it: these calls may interrupt any other.
    let manager = fixture.program("reentrant.c", &["-shared", "-fPIC"]);
    let recording = Recording { preload_after: vec![&manager], ..Recording::default() };
    let run = recording.run(&fixture, &program, &["20000"]).ok();
    let image = run.image();
    agree(marked(&image.of_thread(image.pid)), &logged(&run.stdout)[&image.pid], false);
    let of_handlers =
        image.events.iter().filter(|(_, event)| matches!(event, Event::ResizeEnd { size: 333, .. })).count();
    assert!(of_handlers + run.left_out.events as usize >= 20_000, "{of_handlers} {:?}", run.left_out);
    assert!(of_handlers >= 10_000, "{of_handlers} {:?}", run.left_out);
}

#[test]
fn a_manager_that_allocates_is_never_queried_from_within_itself() {
    let fixture = Fixture::new();
    let program = fixture.program("queries.c", &[]);
    let manager = fixture.program("queried.c", &["-shared", "-fPIC"]);
    let all = Flags { latency: true, sites: true, event_time: false, ledger: true };
    for (flags, requests_facts) in [(Flags::default(), false), (all, true)] {
        let preload_after = vec![manager.as_path()];
        let run = Recording { flags, requests_facts, preload_after, ..Recording::default() };
        let run = run.run(&fixture, &program, &[]).ok();
        let image = run.image();
        image.follow(false);
        let (mut own, mut of_program) = (0, 0);
        for (_, event) in &image.events {
            match *event {
                Event::Alloc { size: 33, usable, .. } => own += u32::from(usable == 0),
                Event::Alloc { size, usable, .. } | Event::ResizeEnd { size, usable, .. } => {
                    of_program += u32::from(size >= 1000 && usable >= size);
                }
                _ => {}
            }
        }
        // One in each of the five calls that allocate and the five that free, at least.
        assert!(own >= 1000 && of_program == 400, "{own} {of_program}");
    }
    for (layer, variable, value) in [
        ("forward", "NONE", ""),
        ("count", "NONE", ""),
        ("quarantine", "HEAPTOLL_QUARANTINE", "size=64K"),
        ("quarantine", "HEAPTOLL_QUARANTINE", "size=64K,check=on"),
        ("sample", "NONE", ""),
        ("sweep", "HEAPTOLL_SWEEP", "every=64K"),
        ("sweep", "HEAPTOLL_SWEEP", "every=64K,free=honour"),
        ("oracle", "NONE", ""),
    ] {
        let layer = layers().join(format!("libheaptoll_{layer}.so"));
        let run = Recording { variables: vec![(variable, value)], ..Recording::default() };
        let mut preload = layer.clone().into_os_string();
        preload.push(":");
        preload.push(&manager);
        let run = run.run_preloaded(&fixture, &program, &[], Some(preload));
        assert!(run.status.success(), "{} {value}: {} {}", layer.display(), run.status, run.stderr);
    }
}
