use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use heaptoll_reftrace::event::Event;
use heaptoll_reftrace::word::{EventKind, Reference, Text};
use heaptoll_reftrace::{Owner, Routine};

use super::*;
use crate::image::ImageEnding;
use crate::ring::{GAVE_UP, at};
use crate::testing::Producer;

const SHAPE: (usize, u64) = (64, 4);

/// Processes that live, as a test decides.
#[derive(Clone, Default)]
struct FakeProcesses(Rc<RefCell<HashSet<i32>>>);

impl FakeProcesses {
    fn begin(&self, pid: i32) {
        self.0.borrow_mut().insert(pid);
    }

    fn end(&self, pid: i32) {
        self.0.borrow_mut().remove(&pid);
    }
}

impl Processes for FakeProcesses {
    fn started(&self, pid: i32) -> Option<u64> {
        self.0.borrow().contains(&pid).then_some(1)
    }
}

#[derive(Default)]
struct Received {
    addresses: Vec<u64>,
    events: u32,
    most: Option<usize>,
}

impl Sink for Received {
    fn references(&mut self, _owner: Owner, references: &[Reference]) {
        self.addresses.extend(references.iter().map(|reference| reference.address()));
    }

    fn event(&mut self, _event: &Event<'_>) {
        self.events += 1;
    }

    fn full(&self) -> Option<String> {
        self.most.filter(|&most| self.addresses.len() > most).map(|most| format!("{most} are enough"))
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    processes: FakeProcesses,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture { folder: tempfile::tempdir().expect("a folder"), processes: FakeProcesses::default() }
    }

    fn process(&self, pid: i32, parent: i32) -> Producer {
        self.processes.begin(pid);
        Producer::create(self.folder.path(), (pid, parent), SHAPE)
    }

    fn program_reader(&self) -> ProgramReader<Received, impl FnMut(&Image) -> Received, FakeProcesses> {
        ProgramReader::new(self.folder.path(), |_: &Image| Received::default(), self.processes.clone())
    }

    fn names(&self) -> usize {
        std::fs::read_dir(self.folder.path()).expect("reads").count()
    }
}

fn reference(address: u64) -> [u64; 1] {
    [Reference::new(address, 8, false).0]
}

/// Polls until nothing comes any more.
fn settle<B: FnMut(&Image) -> Received>(program_reader: &mut ProgramReader<Received, B, FakeProcesses>) {
    while program_reader.poll().expect("turns") {}
    std::thread::sleep(EXIT_CHECK_INTERVAL);
    while program_reader.poll().expect("turns") {}
}

#[test]
fn an_image_that_ends_is_read_to_its_last_word_and_its_ring_removed() {
    let fixture = Fixture::new();
    let mut program_reader = fixture.program_reader();
    let mut process = fixture.process(10, 1);
    for address in 1..=1000 {
        assert!(process.write(&reference(address)));
        if address % 50 == 0 {
            program_reader.poll().expect("turns");
        }
    }
    process.clocked(EventKind::End, 3, 5000, &[]);
    fixture.processes.end(10);
    settle(&mut program_reader);
    assert_eq!(fixture.names(), 0);
    let (images, unread) = program_reader.finish().expect("finishes");
    let [image] = &images[..] else { panic!("{} images", images.len()) };
    assert!(image.sink.addresses.iter().copied().eq(1..=1000) && unread.is_empty());
    assert_eq!((&image.ending, image.instructions()), (&ImageEnding::Ended(3), 5000));
    assert!(image.is_whole());
    assert_eq!(image.image.command, ["/bin/true", "-x"]);
}

#[test]
fn exec_makes_another_image_of_the_same_process() {
    let fixture = Fixture::new();
    let mut program_reader = fixture.program_reader();
    let mut first = fixture.process(10, 1);
    first.write(&reference(1));
    first.clocked(EventKind::Exec, 0, 100, &[]);
    program_reader.poll().expect("turns");
    let mut second = fixture.process(10, 1);
    second.write(&reference(2));
    second.clocked(EventKind::End, 0, 7, &[]);
    fixture.processes.end(10);
    settle(&mut program_reader);
    let (images, _) = program_reader.finish().expect("finishes");
    let images_seen: Vec<_> = images
        .iter()
        .map(|image| (image.image.number, image.ending.clone(), image.sink.addresses.clone()))
        .collect();
    assert_eq!(images_seen, [(0, ImageEnding::Exec, vec![1]), (1, ImageEnding::Ended(0), vec![2])]);
}

#[test]
fn an_exec_that_failed_is_no_end() {
    let fixture = Fixture::new();
    let mut process = fixture.process(10, 1);
    process.clocked(EventKind::Exec, 0, 100, &[]);
    process.write(&reference(2));
    fixture.processes.end(10);
    let (images, _) = fixture.program_reader().finish().expect("finishes");
    assert_eq!(images[0].ending, ImageEnding::Unrecorded);
}

/// A process whose exec failed and that is then killed leaves its counters, which are no event.
#[test]
fn an_exec_that_failed_is_no_end_when_only_counters_follow() {
    let fixture = Fixture::new();
    let mut process = fixture.process(10, 1);
    process.clocked(EventKind::Exec, 0, 100, &[]);
    process.clocked(EventKind::Tick, 0, 100, &[]);
    fixture.processes.end(10);
    let (images, _) = fixture.program_reader().finish().expect("finishes");
    assert_eq!(images[0].ending, ImageEnding::Unrecorded);
}

#[test]
fn a_process_number_that_comes_again_is_another_process() {
    let fixture = Fixture::new();
    let mut program_reader = fixture.program_reader();
    for status in [4, 5] {
        let mut process = fixture.process(10, 1);
        process.clocked(EventKind::End, status, 1, &[]);
        fixture.processes.end(10);
        settle(&mut program_reader);
    }
    let (images, _) = program_reader.finish().expect("finishes");
    let images_seen: Vec<_> = images.iter().map(|image| (image.image.number, image.ending.clone())).collect();
    assert_eq!(images_seen, [(0, ImageEnding::Ended(4)), (1, ImageEnding::Ended(5))]);
}

#[test]
fn parents_come_before_their_children_whatever_their_numbers() {
    let fixture = Fixture::new();
    for (pid, parent) in [(30, 1), (20, 30), (10, 20), (25, 30)] {
        drop(fixture.process(pid, parent));
    }
    let (images, _) = fixture.program_reader().finish().expect("finishes");
    let pids: Vec<i32> = images.iter().map(|image| image.image.pid).collect();
    let place = |pid: i32| pids.iter().position(|&other| other == pid).expect("is there");
    assert_eq!(pids.len(), 4);
    assert!(place(30) < place(20) && place(20) < place(10) && place(30) < place(25), "{pids:?}");
}

#[test]
fn a_killed_process_leaves_what_it_recorded() {
    let fixture = Fixture::new();
    let mut process = fixture.process(10, 1);
    process.clocked(EventKind::Enter, Routine::Malloc as u64, 60, &[24, 0, 0]);
    process.write(&reference(9));
    fixture.processes.end(10);
    let (images, _) = fixture.program_reader().finish().expect("finishes");
    assert_eq!((&images[0].ending, images[0].instructions()), (&ImageEnding::Unrecorded, 60));
    assert_eq!(images[0].sink.addresses, [9]);
    assert_eq!(images[0].calls.allocations, 1);
    assert!(!images[0].is_whole());
}

#[test]
fn a_process_that_runs_on_is_left_and_marked() {
    let fixture = Fixture::new();
    let mut process = fixture.process(10, 1);
    process.write(&reference(9));
    process.publish();
    let (images, _) = fixture.program_reader().finish().expect("finishes");
    assert!(matches!(&images[0].ending, ImageEnding::Incomplete(why) if why.contains("runs on")));
    assert_eq!(images[0].sink.addresses, [9]);
    assert!(!process.write(&reference(1)), "the producer was stopped");
}

#[test]
fn damage_is_kept_and_nothing_after_it_decoded() {
    let fixture = Fixture::new();
    let mut process = fixture.process(10, 1);
    process.write(&reference(1));
    process.write(&[(1 << 63) | (99 << 56)]);
    process.write(&reference(2));
    process.publish();
    process.write(&reference(3));
    fixture.processes.end(10);
    let (images, _) = fixture.program_reader().finish().expect("finishes");
    assert_eq!(images[0].damage.as_ref().map(|damage| damage.at), Some(1));
    assert_eq!(images[0].sink.addresses, [1]);
}

#[test]
fn a_sink_that_is_full_receives_no_more() {
    let fixture = Fixture::new();
    let begin = |_: &Image| Received { most: Some(50), ..Received::default() };
    let mut program_reader = ProgramReader::new(fixture.folder.path(), begin, fixture.processes.clone());
    let mut process = fixture.process(10, 1);
    for address in 1..=130 {
        process.write(&reference(address));
    }
    while program_reader.poll().expect("turns") {}
    let why = program_reader.full().expect("it has enough");
    program_reader.stop(&why);
    assert!(!process.write(&reference(1)));
    fixture.processes.end(10);
    let (images, _) = program_reader.finish().expect("finishes");
    assert_eq!(images[0].ending, ImageEnding::Incomplete("50 are enough".into()));
    // What was written before the sink was full is decoded, including the block that was not published.
    assert!(images[0].sink.addresses.iter().copied().eq(1..=130));
}

#[test]
fn what_concerns_every_command_is_noted() {
    let fixture = Fixture::new();
    let mut process = fixture.process(10, 1);
    let text = |what: Text, word: u64, bytes: &[u8; 8]| {
        [EventKind::Text.word(8 | (what as u64) << 32), word, u64::from_le_bytes(*bytes)]
    };
    process.write(&text(Text::RoutineObject, 1, b"/libm.so"));
    for _ in 0..2 {
        process.write(&text(Text::Warning, 0, b"mind it "));
        process.write(&[EventKind::Refused.word(38 + 4096 * 334)]);
    }
    process.header(at::PRODUCER_FLAGS).store(GAVE_UP, std::sync::atomic::Ordering::Release);
    fixture.processes.end(10);
    let (images, _) = fixture.program_reader().finish().expect("finishes");
    let image = &images[0];
    assert_eq!(image.warnings, ["mind it"]);
    assert_eq!(image.refused.iter().collect::<Vec<_>>(), [(&(334, 38), &2)]);
    assert_eq!(image.routine_objects.get(&Routine::Malloc).map(String::as_str), Some("/libm.so"));
    assert!(matches!(&image.ending, ImageEnding::Incomplete(why) if why.contains("without recording")));
}

#[test]
fn a_ring_that_its_process_never_finished_is_removed_with_it() {
    let fixture = Fixture::new();
    let mut program_reader = fixture.program_reader();
    let process = fixture.process(10, 1);
    process.header(at::MAGIC).store(0, std::sync::atomic::Ordering::Release);
    settle(&mut program_reader);
    assert_eq!(fixture.names(), 1);
    fixture.processes.end(10);
    settle(&mut program_reader);
    assert_eq!(fixture.names(), 0);
    assert!(program_reader.finish().expect("finishes").0.is_empty());
}

#[test]
fn the_system_knows_which_processes_live() {
    let own = SystemProcesses.started(std::process::id() as i32);
    assert!(own.is_some());
    let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("spawns");
    let pid = child.id() as i32;
    assert!(SystemProcesses.started(pid) >= own);
    child.kill().expect("kills");
    // A zombie has ended, before it is waited for.
    let begun = Instant::now();
    while SystemProcesses.started(pid).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not die");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait().expect("waits");
    assert_eq!(SystemProcesses.started(pid), None);
}
