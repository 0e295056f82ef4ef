//! The order of events of several threads.

use core::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;

use super::exploration::join;
use crate::program::Event::Free;
use crate::program::Program;
use crate::recording::Tool;
use crate::world;

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
