use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use heaptoll_reference::event::Event;
use heaptoll_reference::word::{Kind, Reference, Text};
use heaptoll_reference::{Owner, Routine};

use super::*;
use crate::image::ImageEnding;
use crate::ring::{GAVE_UP, at};
use crate::testing::Producer;

const SHAPE: (usize, u64) = (64, 4);

/// Who lives, as a test says.
#[derive(Clone, Default)]
struct Living(Rc<RefCell<HashSet<i32>>>);

impl Living {
    fn begin(&self, pid: i32) {
        self.0.borrow_mut().insert(pid);
    }

    fn end(&self, pid: i32) {
        self.0.borrow_mut().remove(&pid);
    }
}

impl Life for Living {
    fn started(&self, pid: i32) -> Option<u64> {
        self.0.borrow().contains(&pid).then_some(1)
    }
}

#[derive(Default)]
struct Heard {
    addresses: Vec<u64>,
    events: u32,
    most: Option<usize>,
}

impl Sink for Heard {
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

struct World {
    folder: tempfile::TempDir,
    living: Living,
}

impl World {
    fn new() -> World {
        World { folder: tempfile::tempdir().expect("a folder"), living: Living::default() }
    }

    fn process(&self, pid: i32, parent: i32) -> Producer {
        self.living.begin(pid);
        Producer::create(self.folder.path(), (pid, parent), SHAPE)
    }

    fn follower(&self) -> Follower<Heard, impl FnMut(&Image) -> Heard, Living> {
        Follower::new(self.folder.path(), |_: &Image| Heard::default(), self.living.clone())
    }

    fn names(&self) -> usize {
        std::fs::read_dir(self.folder.path()).expect("reads").count()
    }
}

fn reference(address: u64) -> [u64; 1] {
    [Reference::new(address, 8, false).0]
}

/// Turns until nothing comes any more.
fn settle<B: FnMut(&Image) -> Heard>(follower: &mut Follower<Heard, B, Living>) {
    while follower.turn().expect("turns") {}
    std::thread::sleep(DEATHS);
    while follower.turn().expect("turns") {}
}

#[test]
fn an_image_that_ends_is_heard_to_its_last_word_and_its_ring_removed() {
    let world = World::new();
    let mut follower = world.follower();
    let mut process = world.process(10, 1);
    for address in 1..=1000 {
        assert!(process.tell(&reference(address)));
        if address % 50 == 0 {
            follower.turn().expect("turns");
        }
    }
    process.clocked(Kind::End, 3, 5000, &[]);
    world.living.end(10);
    settle(&mut follower);
    assert_eq!(world.names(), 0);
    let (images, unread) = follower.finish().expect("finishes");
    let [image] = &images[..] else { panic!("{} images", images.len()) };
    assert!(image.sink.addresses.iter().copied().eq(1..=1000) && unread.is_empty());
    assert_eq!((&image.ending, image.instructions()), (&ImageEnding::Ended(3), 5000));
    assert!(image.is_whole());
    assert_eq!(image.image.command, ["/bin/true", "-x"]);
}

#[test]
fn exec_makes_another_image_of_the_same_process() {
    let world = World::new();
    let mut follower = world.follower();
    let mut first = world.process(10, 1);
    first.tell(&reference(1));
    first.clocked(Kind::Exec, 0, 100, &[]);
    follower.turn().expect("turns");
    let mut second = world.process(10, 1);
    second.tell(&reference(2));
    second.clocked(Kind::End, 0, 7, &[]);
    world.living.end(10);
    settle(&mut follower);
    let (images, _) = follower.finish().expect("finishes");
    let told: Vec<_> = images
        .iter()
        .map(|image| (image.image.number, image.ending.clone(), image.sink.addresses.clone()))
        .collect();
    assert_eq!(told, [(0, ImageEnding::Exec, vec![1]), (1, ImageEnding::Ended(0), vec![2])]);
}

#[test]
fn an_exec_that_failed_is_no_end() {
    let world = World::new();
    let mut process = world.process(10, 1);
    process.clocked(Kind::Exec, 0, 100, &[]);
    process.tell(&reference(2));
    world.living.end(10);
    let (images, _) = world.follower().finish().expect("finishes");
    assert_eq!(images[0].ending, ImageEnding::Killed);
}

/// What follows a failed exec of a process that is then killed is its counters, which are no event.
#[test]
fn an_exec_that_failed_is_no_end_when_only_counters_follow() {
    let world = World::new();
    let mut process = world.process(10, 1);
    process.clocked(Kind::Exec, 0, 100, &[]);
    process.clocked(Kind::Tick, 0, 100, &[]);
    world.living.end(10);
    let (images, _) = world.follower().finish().expect("finishes");
    assert_eq!(images[0].ending, ImageEnding::Killed);
}

#[test]
fn a_process_number_that_comes_again_is_another_process() {
    let world = World::new();
    let mut follower = world.follower();
    for status in [4, 5] {
        let mut process = world.process(10, 1);
        process.clocked(Kind::End, status, 1, &[]);
        world.living.end(10);
        settle(&mut follower);
    }
    let (images, _) = follower.finish().expect("finishes");
    let told: Vec<_> = images.iter().map(|image| (image.image.number, image.ending.clone())).collect();
    assert_eq!(told, [(0, ImageEnding::Ended(4)), (1, ImageEnding::Ended(5))]);
}

#[test]
fn parents_come_before_their_children_whatever_their_numbers() {
    let world = World::new();
    for (pid, parent) in [(30, 1), (20, 30), (10, 20), (25, 30)] {
        drop(world.process(pid, parent));
    }
    let (images, _) = world.follower().finish().expect("finishes");
    let pids: Vec<i32> = images.iter().map(|image| image.image.pid).collect();
    let place = |pid: i32| pids.iter().position(|&other| other == pid).expect("is there");
    assert_eq!(pids.len(), 4);
    assert!(place(30) < place(20) && place(20) < place(10) && place(30) < place(25), "{pids:?}");
}

#[test]
fn who_is_killed_leaves_what_it_told() {
    let world = World::new();
    let mut process = world.process(10, 1);
    process.clocked(Kind::Enter, Routine::Malloc as u64, 60, &[24, 0, 0]);
    process.tell(&reference(9));
    world.living.end(10);
    let (images, _) = world.follower().finish().expect("finishes");
    assert_eq!((&images[0].ending, images[0].instructions()), (&ImageEnding::Killed, 60));
    assert_eq!(images[0].sink.addresses, [9]);
    assert_eq!(images[0].calls.allocations, 1);
    assert!(!images[0].is_whole());
}

#[test]
fn who_runs_on_is_left_and_marked() {
    let world = World::new();
    let mut process = world.process(10, 1);
    process.tell(&reference(9));
    process.publish();
    let (images, _) = world.follower().finish().expect("finishes");
    assert!(matches!(&images[0].ending, ImageEnding::Untold(why) if why.contains("runs on")));
    assert_eq!(images[0].sink.addresses, [9]);
    assert!(!process.tell(&reference(1)), "it was told that nobody listens");
}

#[test]
fn damage_is_kept_and_nothing_behind_it_heard() {
    let world = World::new();
    let mut process = world.process(10, 1);
    process.tell(&reference(1));
    process.tell(&[(1 << 63) | (99 << 56)]);
    process.tell(&reference(2));
    process.publish();
    process.tell(&reference(3));
    world.living.end(10);
    let (images, _) = world.follower().finish().expect("finishes");
    assert_eq!(images[0].damage.as_ref().map(|damage| damage.at), Some(1));
    assert_eq!(images[0].sink.addresses, [1]);
}

#[test]
fn a_sink_that_has_enough_says_so_and_hears_no_more() {
    let world = World::new();
    let begin = |_: &Image| Heard { most: Some(50), ..Heard::default() };
    let mut follower = Follower::new(world.folder.path(), begin, world.living.clone());
    let mut process = world.process(10, 1);
    for address in 1..=130 {
        process.tell(&reference(address));
    }
    while follower.turn().expect("turns") {}
    let why = follower.full().expect("it has enough");
    follower.stop(&why);
    assert!(!process.tell(&reference(1)));
    world.living.end(10);
    let (images, _) = follower.finish().expect("finishes");
    assert_eq!(images[0].ending, ImageEnding::Untold("50 are enough".into()));
    // What was told before it said so is heard, in the block that was not given away too.
    assert!(images[0].sink.addresses.iter().copied().eq(1..=130));
}

#[test]
fn what_concerns_every_command_is_noted() {
    let world = World::new();
    let mut process = world.process(10, 1);
    let text = |what: Text, word: u64, bytes: &[u8; 8]| {
        [Kind::Text.word(8 | (what as u64) << 32), word, u64::from_le_bytes(*bytes)]
    };
    process.tell(&text(Text::RoutineObject, 1, b"/libm.so"));
    for _ in 0..2 {
        process.tell(&text(Text::Warning, 0, b"mind it "));
        process.tell(&[Kind::Refused.word(38 + 4096 * 334)]);
    }
    process.header(at::SAID).store(GAVE_UP, std::sync::atomic::Ordering::Release);
    world.living.end(10);
    let (images, _) = world.follower().finish().expect("finishes");
    let image = &images[0];
    assert_eq!(image.warnings, ["mind it"]);
    assert_eq!(image.refused.iter().collect::<Vec<_>>(), [(&(334, 38), &2)]);
    assert_eq!(image.routine_objects.get(&Routine::Malloc).map(String::as_str), Some("/libm.so"));
    assert!(matches!(&image.ending, ImageEnding::Untold(why) if why.contains("without telling")));
}

#[test]
fn a_ring_that_its_process_never_finished_is_removed_with_it() {
    let world = World::new();
    let mut follower = world.follower();
    let process = world.process(10, 1);
    process.header(at::MAGIC).store(0, std::sync::atomic::Ordering::Release);
    settle(&mut follower);
    assert_eq!(world.names(), 1);
    world.living.end(10);
    settle(&mut follower);
    assert_eq!(world.names(), 0);
    assert!(follower.finish().expect("finishes").0.is_empty());
}

#[test]
fn the_system_knows_who_lives() {
    let own = System.started(std::process::id() as i32);
    assert!(own.is_some());
    let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("spawns");
    let pid = child.id() as i32;
    assert!(System.started(pid) >= own);
    child.kill().expect("kills");
    // A zombie is dead, before it is waited for.
    let begun = Instant::now();
    while System.started(pid).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not die");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait().expect("waits");
    assert_eq!(System.started(pid), None);
}
