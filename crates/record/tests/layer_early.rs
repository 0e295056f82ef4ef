//! What a program allocates before the C library is initialised is recorded and counted as the rest.

use std::path::PathBuf;

use crate::layer_support::recorded::{Event, Recording, Run};
use crate::layer_support::{Fixture, layers, manager};

/// Where the calls are made: in the program or in a library, which is initialised before the C library.
fn programs(fixture: &Fixture) -> Vec<(&'static str, PathBuf)> {
    let own = |name, define| {
        let path = fixture.path(name);
        fixture.program("early.c", &[define, "-o", path.to_str().expect("UTF-8")]);
        (name, path)
    };
    let of_library = |name, define| {
        let library = fixture.path(&format!("lib{name}.so"));
        let library = library.to_str().expect("UTF-8");
        let words = ["-DLIBRARY", define, "-shared", "-fPIC", "-Wl,-z,initfirst", "-o", library];
        fixture.program("early.c", &words);
        let path = fixture.path(name);
        fixture.program("early_user.c", &[library, "-o", path.to_str().expect("UTF-8")]);
        (name, path)
    };
    vec![
        own("preinit", "-DPREINIT"),
        own("constructor", "-DCONSTRUCTOR"),
        own("resolver", "-DRESOLVER"),
        of_library("constructor-of-library", "-DCONSTRUCTOR"),
        of_library("resolver-of-library", "-DRESOLVER"),
    ]
}

#[test]
fn what_is_allocated_before_the_c_library_is_initialised_is_recorded_and_counted() {
    let fixture = Fixture::new();
    for (name, program) in programs(&fixture) {
        is_recorded(name, &Recording::default().run(&fixture, &program, &[]).ok());
        let preload = layers().join("libheaptoll_count.so").into_os_string();
        is_counted(name, &Recording::default().run_preloaded(&fixture, &program, &[], Some(preload)).ok());
    }
}

fn is_recorded(name: &str, run: &Run) {
    let image = run.image();
    assert!(image.follow(false).is_empty(), "{name}: {:?}", image.events);
    let size = |event: &Event| match *event {
        Event::Alloc { size, .. } | Event::ResizeEnd { size, .. } => Some(size),
        _ => None,
    };
    let sizes = image.events.iter().filter_map(|(_, event)| size(event));
    let mut sizes: Vec<u64> = sizes.filter(|size| (2221..2227).contains(size)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [2221, 2222, 2223, 2224, 2225, 2226], "{name}");
    assert_eq!(image.tids.len(), 1, "{name}: {:?}", image.tids);
}

fn is_counted(name: &str, run: &Run) {
    let [slot] = &run.counted[..] else { panic!("{name}: {:?}", run.counted) };
    // A block that is resized before there is a manager counts as a new one and a free.
    assert_eq!((slot.malloc_calls + slot.realloc_calls, slot.failed_calls), (6, 0), "{name}: {slot:?}");
    assert_eq!(slot.malloc_calls, slot.free_calls, "{name}: {slot:?}");
    assert!(slot.realloc_calls >= 1, "{name}: {slot:?}");
}

#[test]
fn the_settings_of_a_layer_and_a_manager_hold_whatever_is_allocated_before_they_start() {
    let fixture = Fixture::new();
    let programs = programs(&fixture);
    let quarantine = layers().join("libheaptoll_quarantine.so");
    let sweep = layers().join("libheaptoll_sweep.so");
    for (object, variable) in [
        (quarantine, "HEAPTOLL_QUARANTINE"),
        (sweep, "HEAPTOLL_SWEEP"),
        (manager("tithe"), "TITHE_MODE"),
        (manager("bw16"), "BW_HEAP"),
    ] {
        // What a resolver allocates cannot pass all of them: `docs/method/limits.md`.
        for (name, program) in programs.iter().filter(|(name, _)| !name.starts_with("resolver")) {
            let recording = Recording { variables: vec![(variable, "wrong=x")], ..Recording::default() };
            let preload = object.clone().into_os_string();
            let run = recording.run_preloaded(&fixture, program, &[], Some(preload));
            assert_eq!(run.status.code(), Some(2), "{name}, {variable}: {}", run.stderr);
            assert!(run.stderr.contains(variable), "{name}: {}", run.stderr);
        }
    }
}
