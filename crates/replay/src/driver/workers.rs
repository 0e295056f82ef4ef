//! The threads of a replay: as many as the trace has, each begun when the call before its first was made, and ended
//! after its last. The process's own first thread is the trace's first.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heaptoll_replay::job::{Job, Outcome};
use heaptoll_replay::program::{BLOCK, Extent};

use super::area::Area;
use super::clock::{self, Clocks};
use super::execute::{AHEAD, Executor, Relations, check};
use super::process;
use super::tables::{Blocks, Sizes};
use super::watch::Watch;

/// What a thread's stack may grow to. Managers' calls are shallow; a collector's are not, but it marks on a stack of
/// its own.
const STACK: usize = 1 << 20;
/// Of it, what is resident from the beginning: the C library's thread block and what calls use.
const STACK_RESIDENT: usize = 32 << 10;
/// Words of a block at most: the last operation of one may be long.
const MOST_WORDS: usize = BLOCK + 8;

/// Stack and buffer of a thread; used again by the next.
#[derive(Clone, Copy)]
struct ThreadMemory {
    stack: Area,
    words: Area,
}

struct Running {
    thread: libc::pthread_t,
    thread_memory: ThreadMemory,
}

/// How threads wait for their turn.
#[derive(Default)]
struct TurnFlag {
    /// 1 while the thread sleeps or is about to.
    asleep: AtomicU32,
}

/// Sums over threads.
#[derive(Default)]
struct Sums {
    cpu_ns: u64,
    wall_ns: u64,
    waited_ns: u64,
    waits: u64,
    calls: u64,
}

/// All threads and what they share.
pub struct Workers<W: Watch, const TOUCH: u8, const GENERATIONS: bool> {
    job: Job,
    program: File,
    blocks: Blocks<GENERATIONS>,
    sizes: Sizes,
    clocks: Clocks,
    /// Taken out at the end.
    common: Option<W::Common>,
    /// Of exact order: the number of the run that has the turn.
    turn: AtomicU64,
    turn_flags: Vec<TurnFlag>,
    /// Of exact order: threads that passed the turn for the last time, and those of them that have been joined.
    leaving: AtomicU64,
    left: AtomicU64,
    stop: AtomicBool,
    failure: Mutex<Option<String>>,
    sums: Mutex<Sums>,
    running: Mutex<Vec<Option<Running>>>,
    /// Threads that are done and not joined yet.
    done: Mutex<Vec<usize>>,
    free_memory: Mutex<Vec<ThreadMemory>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_memory(error: io::Error) -> String {
    format!("no memory for the driver's own tables: {error}")
}

impl<W: Watch, const TOUCH: u8, const GENERATIONS: bool> Workers<W, TOUCH, GENERATIONS> {
    /// Puts everything in place.
    pub fn new(job: Job, program: File) -> Result<Self, String> {
        let slots = job.index.slots as usize;
        let threads = job.index.streams.len();
        let clocks = Clocks::measure();
        let common = W::common(&job, clocks)?;
        Ok(Workers {
            blocks: Blocks::new(slots).map_err(no_memory)?,
            sizes: Sizes::new(slots, W::SIZES || TOUCH > 0).map_err(no_memory)?,
            clocks,
            common: Some(common),
            turn: AtomicU64::new(0),
            turn_flags: (0..threads).map(|_| TurnFlag::default()).collect(),
            leaving: AtomicU64::new(0),
            left: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            sums: Mutex::new(Sums::default()),
            running: Mutex::new((0..threads).map(|_| None).collect()),
            done: Mutex::new(Vec::with_capacity(threads)),
            free_memory: Mutex::new(Vec::with_capacity(threads)),
            job,
            program,
        })
    }

    fn most_words(&self, thread: usize) -> usize {
        self.job.index.streams[thread].iter().map(|extent| extent.1 as usize).max().unwrap_or(0)
    }

    /// Replays and returns the measurements.
    pub fn replay(mut self) -> Result<Outcome, String> {
        let Some(common) = self.common.take() else { return Err("the driver was started twice".into()) };
        let words = Area::table::<u64>(MOST_WORDS + AHEAD).map_err(no_memory)?;
        W::baseline(&common);
        let faults = process::faults();
        for repetition in 0..self.job.repetitions {
            if repetition > 0 {
                for counter in [&self.turn, &self.leaving, &self.left] {
                    counter.store(0, Ordering::Relaxed);
                }
                // SAFETY: `join_all` has joined all other threads.
                unsafe { self.blocks.clear() };
            }
            Worker::new(&self, &common, 0, words).work(&self.job.index.streams, true);
            self.join_all();
            self.failed()?;
            W::repetition(&common, false);
            if self.job.repetitions > 1 {
                let leftovers = std::slice::from_ref(&self.job.index.leftovers);
                Worker::new(&self, &common, 0, words).work(leftovers, false);
                self.failed()?;
                W::repetition(&common, true);
            }
        }
        let (minor, major) = process::faults();
        let sums = std::mem::take(&mut *locked(&self.sums));
        let measured = W::measured(common);
        Ok(Outcome {
            calls: sums.calls,
            cpu_ns: sums.cpu_ns,
            waited_ns: sums.waited_ns,
            waits: sums.waits,
            wall_ns: sums.wall_ns,
            minor_faults: minor - faults.0,
            major_faults: major - faults.1,
            latency: measured.latency,
            checkpoints: measured.checkpoints,
            repetitions: measured.repetitions,
            max_live_bytes: measured.max_live_bytes,
            peak_rss_bytes: measured.peak_rss_bytes,
            peak_heap_bytes: measured.peak_heap_bytes,
            start_bytes: measured.start_bytes,
            ..Outcome::default()
        })
    }

    fn failed(&self) -> Result<(), String> {
        match locked(&self.failure).take() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    fn fail(&self, why: String) {
        locked(&self.failure).get_or_insert(why);
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Memory for a thread: one that an earlier thread has left, or a new one.
    fn thread_memory(&self, thread: usize) -> Result<ThreadMemory, String> {
        self.join_done();
        let words = self.most_words(thread) + AHEAD;
        let mut free = locked(&self.free_memory);
        if let Some(fits) = free.iter().position(|thread_memory| thread_memory.words.bytes() >= words * 8) {
            return Ok(free.swap_remove(fits));
        }
        drop(free);
        let stack = Area::new(STACK, STACK_RESIDENT).map_err(no_memory)?;
        Ok(ThreadMemory { stack, words: Area::table::<u64>(words).map_err(no_memory)? })
    }

    /// Waits until all threads that have made their last call are gone.
    fn join_leaving(&self) {
        while self.left.load(Ordering::Relaxed) < self.leaving.load(Ordering::Acquire)
            && !self.stop.load(Ordering::Relaxed)
        {
            self.join_done();
            std::thread::yield_now();
        }
    }

    fn join(&self, thread: usize) {
        let running = locked(&self.running)[thread].take();
        if let Some(Running { thread, thread_memory }) = running {
            // SAFETY: `start` made the thread joinable, and `take` hands it out once.
            unsafe { libc::pthread_join(thread, ptr::null_mut()) };
            self.left.fetch_add(1, Ordering::Relaxed);
            locked(&self.free_memory).push(thread_memory);
        }
    }

    fn join_done(&self) {
        loop {
            let Some(thread) = locked(&self.done).pop() else { return };
            self.join(thread);
        }
    }

    /// Waits for all. A thread is joined before those that it started, so that none is missed.
    fn join_all(&self) {
        while let Some(thread) = {
            let running = locked(&self.running);
            running.iter().position(Option::is_some)
        } {
            self.join(thread);
        }
        locked(&self.done).clear();
    }

    fn start(&self, common: &W::Common, number: usize) -> Result<(), String> {
        let thread_memory = self.thread_memory(number)?;
        let thread_start =
            Box::new(ThreadStart { workers: self, common, number, words: thread_memory.words });
        let thread_start = Box::into_raw(thread_start);
        let mut thread = 0;
        // The table is held until the thread is in it, so that it can be joined however soon it is done.
        let mut running = locked(&self.running);
        // SAFETY: attributes are initialised before use; the stack is in `thread_memory`, which is used again only
        // after the thread was joined (`join`); `thread_start` is taken by the thread, or freed below when there is
        // none.
        let status = unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            libc::pthread_attr_init(&mut attributes);
            libc::pthread_attr_setstack(
                &mut attributes,
                thread_memory.stack.start().cast(),
                thread_memory.stack.bytes(),
            );
            let status = libc::pthread_create(
                &mut thread,
                &attributes,
                begin::<W, TOUCH, GENERATIONS>,
                thread_start.cast(),
            );
            libc::pthread_attr_destroy(&mut attributes);
            status
        };
        if status != 0 {
            // SAFETY: pthread_create failed, so no thread took the box of `into_raw`.
            drop(unsafe { Box::from_raw(thread_start) });
            let why = io::Error::from_raw_os_error(status);
            return Err(format!("cannot start thread {number} of the trace: {why}; see ulimit -u"));
        }
        running[number] = Some(Running { thread, thread_memory });
        Ok(())
    }
}

/// The arguments of a thread.
struct ThreadStart<'a, W: Watch, const TOUCH: u8, const GENERATIONS: bool> {
    workers: &'a Workers<W, TOUCH, GENERATIONS>,
    common: &'a W::Common,
    number: usize,
    words: Area,
}

extern "C" fn begin<W: Watch, const TOUCH: u8, const GENERATIONS: bool>(given: *mut c_void) -> *mut c_void {
    // SAFETY: the box that `start` made for this thread alone; the workers outlive their threads, which `join_all`
    // joins.
    let given = unsafe { Box::from_raw(given.cast::<ThreadStart<'_, W, TOUCH, GENERATIONS>>()) };
    let ThreadStart { workers, common, number, words } = *given;
    Worker::new(workers, common, number, words).work(&workers.job.index.streams, true);
    locked(&workers.done).push(number);
    ptr::null_mut()
}

/// One thread at work.
struct Worker<'a, W: Watch, const TOUCH: u8, const GENERATIONS: bool> {
    workers: &'a Workers<W, TOUCH, GENERATIONS>,
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
    fn new(
        workers: &'a Workers<W, TOUCH, GENERATIONS>,
        common: &'a W::Common,
        number: usize,
        words: Area,
    ) -> Self {
        Worker { workers, common, number, words, sums: Sums::default(), is_new: true, begun: (0, 0) }
    }

    /// Does the thread's stream.
    fn work(mut self, streams: &[Vec<Extent>], counts: bool) {
        let executor = Executor::<W, GENERATIONS> {
            blocks: self.workers.blocks,
            sizes: self.workers.sizes,
            common: self.common,
        };
        let mut watch = match W::begin(self.common) {
            Ok(watch) => watch,
            Err(why) => return self.workers.fail(why),
        };
        for extent in streams.get(self.number).map_or(&[][..], Vec::as_slice) {
            if self.workers.stop.load(Ordering::Relaxed) {
                break;
            }
            let calls = match self.read(*extent) {
                Ok(calls) => calls,
                Err(why) => {
                    self.workers.fail(why);
                    break;
                }
            };
            let words = self.words.start().cast::<u64>();
            self.start_clocks();
            // SAFETY: `read` has checked the words; the buffer is AHEAD words longer (`thread_memory`); `Relations`
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
            let mut sums = locked(&self.workers.sums);
            sums.cpu_ns += self.sums.cpu_ns;
            sums.wall_ns += self.sums.wall_ns;
            sums.waited_ns += self.sums.waited_ns;
            sums.waits += self.sums.waits;
            sums.calls += self.sums.calls;
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
                    self.workers.program.as_raw_fd(),
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
                    return Err(format!(
                        "cannot read the program of the replay: {}",
                        io::Error::last_os_error()
                    ));
                }
            }
        }
        // SAFETY: the loop above has initialised the words, and only this thread writes them.
        let words = unsafe { std::slice::from_raw_parts(self.words.start().cast::<u64>(), words as usize) };
        check(words, &self.workers.blocks).ok_or_else(|| "the program of the replay is damaged".into())
    }

    /// Starts the clocks.
    fn start_clocks(&mut self) {
        self.begun.1 = clock::wall_ns();
        self.begun.0 = clock::cpu_ns();
    }

    /// Stops the clocks and adds what they show to the sums.
    fn stop_clocks(&mut self) {
        let (cpu, wall) = (clock::cpu_ns(), clock::wall_ns());
        self.sums.cpu_ns += (cpu - self.begun.0).saturating_sub(self.workers.clocks.cpu_cost);
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

/// Polls of a condition before a thread sleeps: some µs.
const SPINS: u32 = 100;
/// How long a thread sleeps before it checks again whether the replay has failed, ns.
const NAP: i64 = 50_000_000;

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32, timeout: *const libc::timespec) {
    // SAFETY: `word` is a live atomic; `timeout` is null or the caller's live timespec.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation | libc::FUTEX_PRIVATE_FLAG, value, timeout)
    };
}

impl<W: Watch, const TOUCH: u8, const GENERATIONS: bool> Relations for Worker<'_, W, TOUCH, GENERATIONS> {
    #[cold]
    fn wait(&mut self, slot: u32, generation: u64) -> bool {
        self.waiting(|worker| {
            let arrived = || worker.workers.blocks.generation(slot).load(Ordering::Acquire) == generation;
            let mut polls = 0u32;
            while !arrived() {
                if worker.workers.stop.load(Ordering::Relaxed) {
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
                    worker.workers.join_leaving();
                    true
                });
        }
        if self.workers.turn.load(Ordering::Acquire) == run {
            return true;
        }
        self.waiting(|worker| {
            let workers = worker.workers;
            for _ in 0..SPINS {
                if workers.turn.load(Ordering::Acquire) == run {
                    return true;
                }
                std::hint::spin_loop();
            }
            let asleep = &workers.turn_flags[worker.number].asleep;
            let nap = libc::timespec { tv_sec: 0, tv_nsec: NAP };
            loop {
                asleep.store(1, Ordering::SeqCst);
                // The thread that passes the turn stores it first and then checks whether we sleep: one of us sees the
                // other.
                if workers.turn.load(Ordering::SeqCst) == run {
                    asleep.store(0, Ordering::Relaxed);
                    return true;
                }
                if workers.stop.load(Ordering::SeqCst) {
                    return false;
                }
                futex(asleep, libc::FUTEX_WAIT, 1, &nap);
            }
        })
    }

    fn pass(&mut self, thread: u32, last: bool) {
        let workers = self.workers;
        // The first thread is the process's own and is not joined.
        if last && self.number != 0 {
            workers.leaving.fetch_add(1, Ordering::Release);
        }
        // Only the holder of the turn writes it.
        workers.turn.store(workers.turn.load(Ordering::Relaxed) + 1, Ordering::SeqCst);
        if let Some(flag) = workers.turn_flags.get(thread as usize)
            && flag.asleep.swap(0, Ordering::SeqCst) == 1
        {
            futex(&flag.asleep, libc::FUTEX_WAKE, 1, ptr::null());
        }
    }

    #[cold]
    fn start(&mut self, thread: u32) -> bool {
        self.stop_clocks();
        let started = self.workers.start(self.common, thread as usize);
        let well = started.is_ok();
        if let Err(why) = started {
            self.workers.fail(why);
        }
        self.start_clocks();
        well
    }

    #[cold]
    fn fail(&mut self, why: String) {
        self.workers.fail(why);
    }
}
