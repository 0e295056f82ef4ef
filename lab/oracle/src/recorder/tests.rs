use heaptoll_reftrace::Clock;

use super::*;

/// A recorder and the calls that tests make of it.
struct Run(Recorder);

impl Default for Run {
    fn default() -> Run {
        let mut recorder = Recorder::new();
        recorder.event(&Event::Main { before: Default::default() });
        Run(recorder)
    }
}

impl Run {
    fn call(&mut self, routine: Routine, arguments: [u64; 3], result: u64) {
        let (family, clock, site) = (0, Clock::default(), 1);
        self.0.event(&Event::Enter { routine, family, clock, arguments, site });
        let (cost, collector, served_by) = (clock, clock, None);
        self.0.event(&Event::Leave {
            routine,
            family,
            clock,
            arguments,
            site,
            result,
            cost,
            collector,
            served_by,
        });
    }

    fn malloc(&mut self, size: u64, result: u64) {
        self.call(Routine::Malloc, [size, 0, 0], result);
    }

    fn free(&mut self, block: u64) {
        self.call(Routine::Free, [block, 0, 0], 0);
    }

    fn touch(&mut self, address: u64, bytes: u64) {
        self.0.references(Owner::Program, &[Reference::new(address, bytes, false)]);
    }

    fn objects(self) -> Vec<Object> {
        self.0.recording().expect("usable").objects
    }
}

#[test]
fn an_objects_last_use_is_its_last_touch_and_not_its_free() {
    let mut run = Run::default();
    run.malloc(24, 0x1000);
    run.touch(0x1008, 8);
    run.malloc(24, 0x2000);
    run.touch(0x1017, 1);
    run.malloc(24, 0x3000);
    run.0.references(Owner::Allocator, &[Reference::new(0x1000, 8, true)]);
    run.free(0x1000);
    run.touch(0x1000, 8);
    let objects = run.objects();
    let uses: Vec<_> = objects.iter().map(|object| (object.last_use, object.freed)).collect();
    assert_eq!(uses, [(2, Some(3)), (2, None), (3, None)], "one that is never touched has its allocation");
}

#[test]
fn a_wide_reference_touches_every_object_that_it_overlaps() {
    let mut run = Run::default();
    run.malloc(8, 0x1000);
    run.malloc(8, 0x1010);
    run.malloc(8, 0x1020);
    run.malloc(8, 0x1030);
    run.touch(0xff8, 64);
    let uses: Vec<u64> = run.objects().iter().map(|object| object.last_use).collect();
    assert_eq!(uses, [4, 4, 4, 4]);
}

#[test]
fn a_reference_that_ends_before_an_object_does_not_touch_it() {
    let mut run = Run::default();
    run.malloc(8, 0x1000);
    run.malloc(8, 0x1020);
    run.malloc(8, 0x2000);
    run.touch(0x1010, 16);
    let uses: Vec<u64> = run.objects().iter().map(|object| object.last_use).collect();
    assert_eq!(uses, [1, 2, 3]);
}

#[test]
fn a_system_call_touches_all_of_its_buffer() {
    let mut run = Run::default();
    for at in 0..5u64 {
        run.malloc(16, 0x1000 + at * 0x20);
    }
    run.0.event(&Event::Kernel { owner: Owner::Program, address: 0x1025, length: 0x60, store: false });
    let uses: Vec<u64> = run.objects().iter().map(|object| object.last_use).collect();
    assert_eq!(uses, [1, 5, 5, 5, 5]);
}

#[test]
fn a_realloc_ends_one_object_after_it_has_made_another() {
    let mut run = Run::default();
    run.malloc(24, 0x1000);
    run.call(Routine::Realloc, [0x1000, 48, 0], 0x1000);
    run.call(Routine::Realloc, [0x1000, 96, 0], 0x4000);
    run.call(Routine::Realloc, [0x4000, 0, 0], 0);
    let objects = run.objects();
    assert_eq!(objects.len(), 3);
    assert_eq!(
        objects[0],
        Object { size: 24, site: 0, resized: None, last_use: 2, freed: Some(2), unreachable: None }
    );
    assert_eq!(
        objects[1],
        Object { size: 48, site: 0, resized: Some(24), last_use: 3, freed: Some(3), unreachable: None }
    );
    assert_eq!(
        objects[2],
        Object { size: 96, site: 0, resized: Some(48), last_use: 3, freed: Some(3), unreachable: None }
    );
}

#[test]
fn what_is_allocated_before_main_is_no_object_but_has_a_size() {
    let mut run = Run(Recorder::new());
    run.malloc(100, 0x1000);
    run.malloc(200, 0x2000);
    run.0.event(&Event::Main { before: Default::default() });
    run.free(0x2000);
    run.call(Routine::Realloc, [0x1000, 300, 0], 0x2000);
    run.touch(0x1000, 8);
    let objects = run.objects();
    assert_eq!(
        objects,
        [Object { size: 300, site: 0, resized: Some(100), last_use: 1, freed: None, unreachable: None }]
    );
}

#[test]
fn a_realloc_that_fails_leaves_the_object_where_it_is() {
    let mut run = Run::default();
    run.malloc(24, 0x1000);
    run.malloc(24, 0x2000);
    run.call(Routine::Realloc, [0x1000, 1 << 50, 0], 0);
    let objects = run.objects();
    assert_eq!((objects.len(), objects[0].last_use, objects[0].freed), (2, 2, None), "the call was given it");
}

#[test]
fn an_object_of_which_the_usable_size_is_known_lasts_until_it_is_freed() {
    let mut run = Run::default();
    run.malloc(20, 0x1000);
    run.call(Routine::UsableSize, [0x1000, 0, 0], 24);
    run.malloc(20, 0x2000);
    run.malloc(20, 0x3000);
    run.free(0x1000);
    run.malloc(20, 0x4000);
    assert_eq!(run.objects()[0].last_use, 3);
}

#[test]
fn a_fork_touches_all_that_is_live() {
    let mut run = Run::default();
    run.malloc(24, 0x1000);
    run.malloc(24, 0x2000);
    run.free(0x2000);
    run.malloc(24, 0x3000);
    run.0.event(&Event::Fork { child: 7 });
    let uses: Vec<u64> = run.objects().iter().map(|object| object.last_use).collect();
    assert_eq!(uses, [3, 2, 3]);
}

#[test]
fn posix_memalign_touches_where_it_stores_its_result() {
    let mut run = Run::default();
    run.malloc(64, 0x1000);
    run.call(Routine::PosixMemalign, [0x1010, 32, 100], 0x2000);
    assert_eq!(run.objects()[0].last_use, 2);
}

#[test]
fn a_program_with_threads_or_without_objects_is_refused() {
    let mut run = Run::default();
    assert_eq!(Recorder::new().recording(), Err(Unusable::Nothing));
    run.malloc(8, 0x1000);
    run.0.event(&Event::ThreadStart { thread: 2, parent: 1, manager: false });
    assert!(run.0.full().is_some(), "the run need not go on");
    assert_eq!(run.0.recording(), Err(Unusable::Threads));
}

#[test]
fn sites_of_the_same_place_are_one() {
    let mut run = Run::default();
    for (site, frame) in [(1, 0x5000), (2, 0x6000), (3, 0x5000)] {
        run.0.event(&Event::Site { site, frames: &[frame] });
    }
    run.0.event(&Event::Text { what: Text::FrameObject, word: 0x5000, bytes: b"1138 /usr/bin/a b" });
    for site in [1, 3, 2] {
        run.0.allocated(0x1000 * u64::from(site), 8, site, None);
    }
    let recording = run.0.recording().expect("usable");
    let numbers: Vec<u32> = recording.objects.iter().map(|object| object.site).collect();
    assert_eq!(numbers, [0, 0, 1]);
    assert_eq!(recording.sites[0], Site { object: "/usr/bin/a b".into(), address: 0x1138 });
    assert_eq!(recording.sites[1], Site::default(), "code of no file");
}
