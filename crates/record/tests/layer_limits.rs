//! The layer does not harm a program that is near a limit: of a stack, of its address space, of its system calls.

use heaptoll_alloc_ring::{Flags, LeftOut, Options};

use crate::layer_support::Fixture;
use crate::layer_support::recorded::{Recording, Run};

/// A recording with the geometry of a real one.
fn recording(sites: bool) -> Recording<'static> {
    Recording {
        flags: Flags { sites, ..Flags::default() },
        options: Options::default(),
        ..Recording::default()
    }
}

/// Runs a program that takes `mib` MiB; its address space is limited, in KiB.
fn limited(fixture: &Fixture, sites: bool, kib: u32, mib: u32) -> Run {
    let program = fixture.program("limits.c", &[]);
    let script = format!("ulimit -v {kib}; exec {} space {mib}", program.display());
    recording(sites).run(fixture, "/bin/sh".as_ref(), &["-c", &script]).ok()
}

#[test]
fn a_call_takes_little_of_the_stack_that_it_is_made_on() {
    let fixture = Fixture::new();
    // Bound at once: the loader's own search for a function takes kilobytes.
    let program = fixture.program("limits.c", &["-Wl,-z,now"]);
    for (sites, bytes) in [(false, "2048"), (true, "4096")] {
        let run = recording(sites).run(&fixture, &program, &["stack", bytes]).ok();
        assert!(run.image().counts().malloc >= 99, "{bytes}");
    }
}

#[test]
fn a_program_with_little_address_space_can_have_it_all() {
    let fixture = Fixture::new();
    for (kib, mib) in [(30_000, 20), (60_000, 50)] {
        let run = limited(&fixture, true, kib, mib);
        assert_eq!(run.left_out, LeftOut { limited: 1, ..LeftOut::default() }, "{kib}");
    }
}

#[test]
fn a_program_with_more_address_space_is_recorded_without_what_is_too_large() {
    let fixture = Fixture::new();
    let run = limited(&fixture, true, 102_000, 80);
    assert_eq!(run.left_out, LeftOut { without_stacks: 1, ..LeftOut::default() });
    let image = run.images.iter().find(|image| image.exe.ends_with("limits")).expect("it is recorded");
    assert!(image.counts().malloc >= 80);
}

/// Before, such a program had no threads or no memory: 2 GiB of rings counted towards its limit, in a child of fork also
/// after the mend for others.
#[test]
fn a_limit_of_the_address_space_that_a_program_sets_itself_is_the_programs() {
    let fixture = Fixture::new();
    let program = fixture.program("limits.c", &[]);
    for (who, sites, mib) in [("own", false, 80), ("own", true, 240), ("child", false, 80)] {
        let run = recording(sites).run(&fixture, &program, &[who, &mib.to_string()]).ok();
        assert_eq!(run.left_out, LeftOut::default(), "{who} {sites}");
        let most = run.images.iter().map(|image| image.counts().malloc).max();
        assert!(most.is_some_and(|calls| calls >= mib), "{who} {sites}");
    }
}
