//! A program in a model: a process whose threads record events that are recognised when they arrive.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use loom::thread::JoinHandle;

use crate::attachment::FactsHook;
use crate::rings::Rings;
use crate::thread_word::ThreadWord;
use crate::world::{self, Killed};

loom::thread_local! {
    static WORD: Cell<usize> = Cell::new(0);
}

/// The threads' words.
pub struct Word;

impl ThreadWord for Word {
    fn get() -> usize {
        WORD.with(Cell::get)
    }
    fn set(word: usize) {
        WORD.with(|cell| cell.set(word));
    }
}

/// One process of the recording.
#[derive(Clone, Copy)]
pub struct Program {
    rings: &'static Rings<Word>,
    pid: i32,
}

/// A registered thread, to be started.
#[derive(Clone, Copy)]
pub struct Registered {
    program: Program,
    tid: i32,
    word: usize,
}

/// What a thread records. Each is recognised when it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A block: a group of several words.
    Alloc(u64),
    /// Its end: one word.
    Free(u64),
}

impl Program {
    /// A process that has not attached.
    pub fn new(pid: i32) -> Program {
        Program { rings: world::own(Rings::new()), pid }
    }

    /// Registers a thread of the program before it runs.
    pub fn register(self, tid: i32) -> Registered {
        let (before, word) = (world::numbers(), Word::get());
        world::set_numbers(self.pid, tid);
        Word::set(0);
        assert!(self.rings.attach(), "there is a ring");
        let registered = Registered { program: self, tid, word: Word::get() };
        world::set_numbers(before.0, before.1);
        Word::set(word);
        registered
    }

    /// A thread that registers at its first event.
    pub fn new_thread(self, tid: i32) -> Registered {
        Registered { program: self, tid, word: 0 }
    }

    /// Records an event of the calling thread.
    pub fn record(self, event: Event) {
        let Some(mut producer) = self.rings.thread() else { return };
        match event {
            Event::Alloc(number) => {
                producer.alloc(64 * number as usize, number as usize, usable(number) as usize);
            }
            Event::Free(number) => producer.free(64 * number as usize, false),
        }
    }

    /// Sets the hook that answers requests for facts.
    pub fn answer_with(self, hook: FactsHook) {
        self.rings.answer_with(hook);
    }
}

pub(crate) fn usable(number: u64) -> u64 {
    number + 100
}

impl Registered {
    /// Starts the thread. When it ends or is killed, the tool can see that.
    pub fn start(self, body: impl FnOnce(Program) + 'static) -> JoinHandle<()> {
        loom::thread::spawn(move || {
            world::set_numbers(self.program.pid, self.tid);
            Word::set(self.word);
            if let Err(reason) = catch_unwind(AssertUnwindSafe(|| body(self.program)))
                && !reason.is::<Killed>()
            {
                resume_unwind(reason);
            }
            world::end(self.tid);
        })
    }

    /// Records events before other threads run, as if the thread did.
    pub fn record(self, events: &[Event]) {
        let (before, word) = (world::numbers(), Word::get());
        world::set_numbers(self.program.pid, self.tid);
        Word::set(self.word);
        events.iter().for_each(|&event| self.program.record(event));
        world::set_numbers(before.0, before.1);
        Word::set(word);
    }
}
