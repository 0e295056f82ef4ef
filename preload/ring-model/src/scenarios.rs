//! What threads do in the models, and what must hold then.

use std::cell::Cell;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread::JoinHandle;

use core::sync::atomic::Ordering;
use core::time::Duration;

use crate::layout::FACTS_BYTES;
use crate::mutant::{self, Mutant};
use crate::recording::Event::{Alloc, Free};
use crate::recording::{Event, Program, Tool};
use crate::world;

thread_local! {
    static EXECUTIONS: Cell<u64> = const { Cell::new(0) };
}

/// Explores a scenario, with an error of the protocol or without; a thread that could continue is interrupted at most
/// `preemptions` times. Returns the number of executions.
pub fn explore(scenario: fn(), preemptions: usize, mutant: Option<&Mutant>) -> u64 {
    mutant::place(mutant);
    EXECUTIONS.set(0);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        EXECUTIONS.set(EXECUTIONS.get() + 1);
        scenario();
    });
    EXECUTIONS.get()
}

/// Waits for threads to end.
fn join(threads: [JoinHandle<()>; 2]) {
    for thread in threads {
        thread.join().expect("no panic");
    }
}

/// The tool reads groups while a thread writes them.
pub fn groups_arrive_whole() {
    let mut tool = Tool::new(1, 2, 4);
    let thread = Program::new(1).register(2);
    tool.arrive();
    tool.threads_begin();
    let thread = thread.start(|program| {
        program.record(Alloc(1));
        program.record(Free(1));
    });
    tool.receive(2);
    thread.join().expect("no panic");
    assert_eq!(tool.events(0), [Alloc(1), Free(1)], "each event arrives once, in order");
}

/// A thread fills its ring, waits for the tool, and continues at the first word.
pub fn a_full_ring_waits_and_wraps() {
    let mut tool = Tool::new(1, 2, 4);
    let thread = Program::new(1).register(2);
    // The first carries the time: 15 words of 16.
    let before: Vec<Event> = (1..=14).map(Free).collect();
    thread.record(&before);
    tool.arrive();
    tool.threads_begin();
    let thread = thread.start(|program| (15..=17).for_each(|number| program.record(Free(number))));
    tool.receive(17);
    thread.join().expect("no panic");
    assert_eq!(tool.events(0), (1..=17).map(Free).collect::<Vec<_>>(), "each event arrives once, in order");
}

/// A ring grows while the tool reads it.
pub fn a_ring_grows_while_it_is_read() {
    let mut tool = Tool::new(1, 2, 5);
    let thread = Program::new(1).register(2);
    let before: Vec<Event> = (1..=14).map(Free).collect();
    thread.record(&before);
    tool.arrive();
    tool.threads_begin();
    let thread = thread.start(|program| (15..=17).for_each(|number| program.record(Free(number))));
    tool.receive(17);
    thread.join().expect("no panic");
    assert_eq!(tool.events(0), (1..=17).map(Free).collect::<Vec<_>>(), "each event arrives once, in order");
}

/// Two processes claim entries and rings of one file at once.
pub fn processes_register_at_once() {
    let mut tool = Tool::new(2, 3, 4);
    let programs = [Program::new(1), Program::new(2)];
    tool.threads_begin();
    let threads = [(programs[0], 3, 5), (programs[1], 4, 6)].map(|(program, tid, number)| {
        program.new_thread(tid).start(move |program| program.record(Free(number)))
    });
    join(threads);
    tool.receive_rest();
    assert_eq!(tool.events_with(Free(5)), [Free(5)], "a process has its events");
    assert_eq!(tool.events_with(Free(6)), [Free(6)], "a process has its events");
}

/// The tool sleeps until a process registers.
pub fn a_registration_wakes_the_tool() {
    let mut tool = Tool::new(1, 2, 4);
    let program = Program::new(1);
    tool.threads_begin();
    let thread = program.new_thread(3).start(|program| program.record(Free(1)));
    while !tool.arrive() {
        tool.shared.wait(Duration::from_secs(10));
    }
    thread.join().expect("no panic");
    tool.receive_rest();
    assert_eq!(tool.events(0), [Free(1)], "the event arrives");
}

/// Threads pass blocks to each other while the second registers.
pub fn events_that_depend_on_each_other_arrive_in_order() {
    let mut tool = Tool::new(1, 4, 4);
    let program = Program::new(1);
    let first = program.register(3);
    first.record(&[Free(8)]);
    tool.arrive();
    tool.threads_begin();
    let (there, back) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let passed = (Arc::clone(&there), Arc::clone(&back));
    let first = first.start(move |program| {
        program.record(Free(1));
        passed.0.store(1, Ordering::Release);
        if passed.1.load(Ordering::Acquire) == 1 {
            program.record(Free(3));
        }
    });
    let second = program.new_thread(4).start(move |program| {
        if there.load(Ordering::Acquire) == 1 {
            program.record(Free(2));
            back.store(1, Ordering::Release);
        } else {
            program.record(Free(4));
        }
    });
    let tool = tool.concurrently(|tool| {
        tool.poll();
    });
    first.join().expect("no panic");
    second.join().expect("no panic");
    let mut tool = tool.join().expect("no panic");
    tool.receive_rest();
    let events = tool.events(0);
    let at = |event| events.iter().position(|&other| other == event);
    assert_eq!(
        events.len(),
        [1, 2, 3, 4, 8].iter().filter(|&&n| at(Free(n)).is_some()).count(),
        "none twice"
    );
    assert!(at(Free(1)).is_some() && (at(Free(2)).is_some() || at(Free(4)).is_some()), "none is lost");
    assert!(at(Free(2)).is_none_or(|second| at(Free(1)) < Some(second)), "the first precedes the second");
    assert!(at(Free(3)).is_none_or(|third| at(Free(2)) < Some(third)), "the second precedes the third");
}

/// Two threads take numbers; the tool gives up what is missing and in no thread's hands.
pub fn no_event_of_a_running_thread_is_given_up() {
    let mut tool = Tool::new(1, 4, 4);
    let program = Program::new(1);
    let threads = [program.register(3), program.register(4)];
    threads[0].record(&[Free(8)]);
    threads[1].record(&[Free(9)]);
    tool.arrive();
    tool.receive(2);
    tool.threads_begin();
    world::be_hasty();
    let threads = [(threads[0], 1), (threads[1], 2)]
        .map(|(thread, number)| thread.start(move |program| program.record(Free(number))));
    let tool = tool.concurrently(|tool| {
        tool.poll();
    });
    join(threads);
    let mut tool = tool.join().expect("no panic");
    tool.receive_rest();
    assert_eq!(tool.events(0).len(), 4, "each event arrives once");
    assert_eq!(tool.numbers_taken(0), 4, "each event has a number of its own");
}

/// The tool pauses a program and lets it continue.
pub fn a_pause_ends() {
    let mut tool = Tool::new(1, 2, 4);
    let thread = Program::new(1).register(3);
    thread.record(&[Free(8)]);
    tool.arrive();
    tool.threads_begin();
    let thread = thread.start(|program| {
        program.record(Free(1));
        program.record(Free(2));
    });
    let tool = tool.concurrently(|tool| drop(tool.shared.pause()));
    thread.join().expect("no panic");
    let mut tool = tool.join().expect("no panic");
    tool.receive_rest();
    assert_eq!(tool.events(0), [Free(8), Free(1), Free(2)], "each event arrives once, in order");
}

/// Writes two bytes that belong together.
fn answer(bytes: &mut [u8; FACTS_BYTES]) -> usize {
    let (_, thread) = world::numbers();
    bytes[..2].fill(thread as u8);
    2
}

/// Two threads find a request for facts; the tool reads the answer while they go on.
pub fn facts_arrive_whole() {
    let mut tool = Tool::new(1, 4, 4);
    let program = Program::new(1);
    program.answer_with(answer);
    let threads = [program.register(3), program.register(4)];
    threads[0].record(&[Free(8)]);
    threads[1].record(&[Free(9)]);
    tool.arrive();
    tool.threads_begin();
    let request = tool.taps[0].request_facts(0);
    let threads = [(threads[0], 1), (threads[1], 2)]
        .map(|(thread, number)| thread.start(move |program| program.record(Free(number))));
    let check = move |tool: &mut Tool| {
        let bytes = tool.taps[0].facts(request);
        let whole = bytes.is_none_or(|bytes| bytes.len() == 2 && bytes[0] == bytes[1]);
        assert!(whole, "the facts are one thread's");
    };
    let tool = tool.concurrently(check);
    join(threads);
    let mut tool = tool.join().expect("no panic");
    check(&mut tool);
    assert!(tool.taps[0].facts(request).is_some(), "the request is answered");
}

/// The tool gives the ring of a thread that has ended to the next.
pub fn a_ring_is_used_again() {
    let mut tool = Tool::new(1, 2, 6);
    let program = Program::new(1);
    let first = program.register(3);
    first.record(&[Free(1)]);
    tool.arrive();
    tool.threads_begin();
    world::be_hasty();
    world::end(3);
    let second = program.new_thread(4).start(|program| {
        program.record(Free(2));
        program.record(Free(3));
    });
    let tool = tool.concurrently(|tool| {
        tool.poll();
        tool.poll();
    });
    second.join().expect("no panic");
    let mut tool = tool.join().expect("no panic");
    tool.receive_rest();
    assert_eq!(tool.events(0), [1, 2, 3].map(Free), "each event arrives once, in order");
}

/// Two threads without rings of their own record in the shared one.
pub fn threads_share_a_ring() {
    let mut tool = Tool::new(1, 1, 6);
    let program = Program::new(1);
    let threads = [program.register(3), program.register(4)];
    threads[0].record(&[Free(8)]);
    tool.arrive();
    tool.receive(1);
    tool.threads_begin();
    let threads = [(threads[0], 1), (threads[1], 2)]
        .map(|(thread, number)| thread.start(move |program| program.record(Free(number))));
    join(threads);
    tool.receive_rest();
    let mut received: Vec<_> = tool.received[0].0[1..].to_vec();
    received.sort_by_key(|&(thread, _)| thread);
    assert_eq!(received, [(0, Free(1)), (1, Free(2))], "each thread's event arrives as its own");
}

thread_local! {
    static LIFE: Cell<u32> = const { Cell::new(0) };
}

/// A thread is killed after any number of steps, and its process with it.
pub fn a_killed_thread_leaves_whole_events(preemptions: usize, mutant: Option<&Mutant>) {
    for steps in 0..60 {
        LIFE.set(steps);
        explore(one_thread_is_killed, preemptions, mutant);
    }
}

fn one_thread_is_killed() {
    let mut tool = Tool::new(1, 4, 6);
    let program = Program::new(1);
    let threads = [program.register(3), program.register(4)];
    threads[0].record(&[Free(8)]);
    threads[1].record(&[Free(9)]);
    tool.arrive();
    tool.receive(2);
    world::kill_after(3, LIFE.get());
    tool.threads_begin();
    let killed = threads[0].start(|program| {
        program.record(Alloc(1));
        program.record(Alloc(2));
        program.record(Alloc(3));
    });
    let other = threads[1].start(|program| program.record(Free(4)));
    killed.join().expect("no panic");
    other.join().expect("no panic");
    tool.end(1);
    let events = tool.events(0);
    assert!(events.contains(&Free(4)), "the other thread's event arrives");
    let whole: Vec<Event> = events.into_iter().filter(|event| matches!(event, Alloc(_))).collect();
    assert_eq!(
        whole,
        [1, 2, 3].map(Alloc)[..whole.len()],
        "what arrives is the beginning of what was recorded"
    );
    assert!(tool.missing <= 1, "a thread takes one number with it");
    assert_eq!(tool.taps[0].losses().damaged, 0, "a death is no damage");
}
