//! One thread at work: it reads its blocks of the program, executes them with its clocks running, and waits for other
//! threads with its clocks stopped.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::Ordering;

use heaptoll_replay::program::Extent;

use super::super::area::Area;
use super::super::clock;
use super::super::execute::{AHEAD, Executor, Relations, check};
use super::super::watch::Watch;
use super::locked::locked;
use super::shared::{Shared, Sums};
use super::turns::SPINS;

/// The arguments of a thread.
struct ThreadStart<'a, W: Watch, const GENERATIONS: bool> {
    shared: &'a Shared<GENERATIONS>,
    common: &'a W::Common,
    number: usize,
    words: Area,
}

extern "C" fn begin<W: Watch, const TOUCH: u8, const GENERATIONS: bool>(given: *mut c_void) -> *mut c_void {
    // SAFETY: the box that `start_thread` made for this thread alone; what the threads share outlives them, for
    // `Threads::join_all` joins them.
    let given = unsafe { Box::from_raw(given.cast::<ThreadStart<'_, W, GENERATIONS>>()) };
    let ThreadStart { shared, common, number, words } = *given;
    Worker::<W, TOUCH, GENERATIONS>::new(shared, common, number, words).work(&shared.job.index.streams, true);
    shared.threads.done(number);
    ptr::null_mut()
}

/// One thread at work.
pub struct Worker<'a, W: Watch, const TOUCH: u8, const GENERATIONS: bool> {
    shared: &'a Shared<GENERATIONS>,
    common: &'a W::Common,
    number: usize,
    words: Area,
    sums: Sums,
    /// Of exact order: no turn has been had yet.
    is_new: bool,
    /// CPU and elapsed time when the present block was begun.
    begun: (u64, u64),
}

impl<'a, W: Watch, const TOUCH: u8, const GENERATIONS: bool> Worker<'a, W, TOUCH, GENERATIONS> {
    pub fn new(shared: &'a Shared<GENERATIONS>, common: &'a W::Common, number: usize, words: Area) -> Self {
        Worker { shared, common, number, words, sums: Sums::default(), is_new: true, begun: (0, 0) }
    }

    /// Does the thread's stream; `counts`: what it takes is added to the sums.
    pub fn work(mut self, streams: &[Vec<Extent>], counts: bool) {
        let executor = Executor::<W, GENERATIONS> {
            blocks: self.shared.blocks,
            sizes: self.shared.sizes,
            common: self.common,
        };
        let mut watch = match W::begin(self.common) {
            Ok(watch) => watch,
            Err(why) => return self.shared.fail(why),
        };
        for extent in streams.get(self.number).map_or(&[][..], Vec::as_slice) {
            if self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let calls = match self.read(*extent) {
                Ok(calls) => calls,
                Err(why) => {
                    self.shared.fail(why);
                    break;
                }
            };
            let words = self.words.start().cast::<u64>();
            self.start_clocks();
            // SAFETY: `read` has checked the words; the buffer is AHEAD words longer (`start_thread`); `Relations`
            // keeps the program's order.
            let well = unsafe { executor.run::<TOUCH>(words, extent.1 as usize, &mut watch, &mut self) };
            self.stop_clocks();
            self.sums.calls += calls;
            if !well {
                break;
            }
        }
        watch.end(self.common);
        if counts {
            locked(&self.shared.sums).add(&self.sums);
        }
    }

    /// Reads a block of words; gives how many calls are in it.
    fn read(&self, extent: Extent) -> Result<u64, String> {
        let Extent(at, words) = extent;
        let bytes = words as usize * 8;
        if bytes + AHEAD * 8 > self.words.bytes() {
            return Err("a block of the program is larger than blocks are".into());
        }
        let mut got = 0;
        while got < bytes {
            // SAFETY: the range is within the buffer, whose length was compared above.
            let more = unsafe {
                let to = self.words.start().add(got).cast();
                libc::pread(
                    self.shared.program.as_raw_fd(),
                    to,
                    bytes - got,
                    (at + got as u64) as libc::off_t,
                )
            };
            match more {
                0 => return Err("the program of the replay ends too early".into()),
                1.. => got += more as usize,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => {
                    let why = io::Error::last_os_error();
                    return Err(format!("cannot read the program of the replay: {why}"));
                }
            }
        }
        // SAFETY: the loop above has initialised the words, and only this thread writes them.
        let words = unsafe { std::slice::from_raw_parts(self.words.start().cast::<u64>(), words as usize) };
        check(words, &self.shared.blocks).ok_or_else(|| "the program of the replay is damaged".into())
    }

    /// Starts thread `number` of the trace.
    fn start_thread(&self, number: usize) -> Result<(), String> {
        let Worker { shared, common, .. } = *self;
        let thread_memory = shared.threads.memory(shared.most_words(number) + AHEAD)?;
        let words = thread_memory.words;
        let given = Box::into_raw(Box::new(ThreadStart::<W, GENERATIONS> { shared, common, number, words }));
        let entry = begin::<W, TOUCH, GENERATIONS>;
        // SAFETY: `begin` takes the box, which is this thread's alone; `shared` and `common` outlive the thread, for
        // the replay joins all before it ends.
        unsafe { shared.threads.start(number, thread_memory, entry, given.cast()) }.inspect_err(|_| {
            // SAFETY: no thread was started, so none took the box of `into_raw`.
            drop(unsafe { Box::from_raw(given) });
        })
    }

    /// Starts the clocks.
    fn start_clocks(&mut self) {
        self.begun.1 = clock::wall_ns();
        self.begun.0 = clock::cpu_ns();
    }

    /// Stops the clocks and adds what they show to the sums.
    fn stop_clocks(&mut self) {
        let (cpu, wall) = (clock::cpu_ns(), clock::wall_ns());
        self.sums.cpu_ns += (cpu - self.begun.0).saturating_sub(self.shared.clocks.cpu_cost);
        self.sums.wall_ns += wall.saturating_sub(self.begun.1);
    }

    /// Waits with the clocks stopped.
    fn waiting(&mut self, wait: impl FnOnce(&Self) -> bool) -> bool {
        self.stop_clocks();
        let begun = clock::cpu_ns();
        let well = wait(self);
        self.sums.waited_ns += clock::cpu_ns() - begun;
        self.sums.waits += 1;
        self.start_clocks();
        well
    }
}

impl<W: Watch, const TOUCH: u8, const GENERATIONS: bool> Relations for Worker<'_, W, TOUCH, GENERATIONS> {
    #[cold]
    fn wait(&mut self, slot: u32, generation: u64) -> bool {
        self.waiting(|worker| {
            let arrived = || worker.shared.blocks.generation(slot).load(Ordering::Acquire) == generation;
            let mut polls = 0u32;
            while !arrived() {
                if worker.shared.stop.load(Ordering::Relaxed) {
                    return false;
                }
                polls = polls.saturating_add(1);
                match polls {
                    ..SPINS => std::hint::spin_loop(),
                    // SAFETY: sched_yield takes no arguments and cannot fail.
                    SPINS..1000 => unsafe {
                        libc::sched_yield();
                    },
                    _ => std::thread::sleep(std::time::Duration::from_micros(50)),
                }
            }
            true
        })
    }

    fn turn(&mut self, run: u64) -> bool {
        if self.is_new {
            self.is_new = false;
            // A thread that has made its last call is joined before another makes its first: the manager can reuse what
            // it leaves, as when the one was started after the other had ended.
            return self.turn(run)
                && self.waiting(|worker| {
                    worker.shared.join_leaving();
                    true
                });
        }
        self.shared.turns.has(run)
            || self.waiting(|worker| worker.shared.turns.wait(run, worker.number, &worker.shared.stop))
    }

    fn pass(&mut self, thread: u32, last: bool) {
        // The first thread is the process's own and is not joined.
        if last && self.number != 0 {
            self.shared.turns.leave();
        }
        self.shared.turns.pass(thread);
    }

    #[cold]
    fn start(&mut self, thread: u32) -> bool {
        self.stop_clocks();
        let started = self.start_thread(thread as usize);
        let well = started.is_ok();
        if let Err(why) = started {
            self.shared.fail(why);
        }
        self.start_clocks();
        well
    }

    #[cold]
    fn fail(&mut self, why: String) {
        self.shared.fail(why);
    }
}
