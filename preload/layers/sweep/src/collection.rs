//! A collection: the world stops with no thread inside the manager, what is reachable is marked, and what is not is
//! freed by the manager.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use heaptoll_layer_core::sweep::held;
use heaptoll_layer_core::sweep::policy::Policy;
use heaptoll_layer_core::sweep::settings::Settings;
use heaptoll_layer_core::sweep::side_tables::{Marking, Roots, Tables};
use heaptoll_next::forward;
use heaptoll_roots::{Buffer, DEFAULT_SIGNAL, NoMemory, Origin, RootKinds, StoppedWorld, World};
use heaptoll_runtime::{
    AbandonCause, Collected, Lock, Phase, Reason, SignalMaskGuard, now_ns, single_threaded, thread_cpu_ns,
};

use crate::freed::{self, FREED};
use crate::managed::Managed;
use crate::shared::{BUDGET, LAZY, REPORTER, SINCE, TABLES, WORLD, has_started};
use crate::{LAYER, gate, pinned};

/// How long a thread may take to stop before the gate is opened briefly for those that wait at it, ms; then twice as
/// long.
const FIRST_PATIENCE_MS: u32 = 10;
/// How long threads inside may take to leave, microseconds; then twice as long.
const FIRST_WAIT_US: u64 = 50;
const LAST_WAIT_US: u64 = 2000;
/// How long it may take to stop all threads with none inside, ms.
pub const PATIENCE_MS: u32 = 1000;
/// As long for a fork, ms: it is made in any case.
const FORK_PATIENCE_MS: u32 = 300;
/// Signals that stay unblocked during a collection: those of the C library, one of which stops threads.
const UNBLOCKED: [c_int; 2] = [32, DEFAULT_SIGNAL];
/// Blocks that are given back by one call, where sweeping is lazy.
const LAZY_BATCH: usize = 32;

/// What is kept from one collection to the next. Its lock lets one thread collect at a time.
pub struct Collection {
    pub policy: Policy,
    pub managed: Managed,
    left_out: Buffer<(usize, usize)>,
    dead: Buffer<usize>,
    number: u64,
    pub marking: Marking,
    /// How many threads mark, this time.
    markers: usize,
    helpers_cpu_ns: u64,
    /// Bytes of blocks that the last collection found live, or in the guard layer read.
    live: usize,
    /// No further collections: the process ends.
    pub over: bool,
}

pub static COLLECTION: Lock<Collection> = Lock::new(Collection {
    policy: Policy::new(Settings::new()),
    managed: Managed::new(),
    left_out: Buffer::new(),
    dead: Buffer::new(),
    number: 0,
    marking: Marking::new(),
    markers: 1,
    helpers_cpu_ns: 0,
    live: 0,
    over: false,
});

/// Dead blocks that wait to be freed, where sweeping is lazy.
pub static WAITING: Lock<Buffer<usize>> = Lock::new(Buffer::new());
static WAITING_COUNT: AtomicUsize = AtomicUsize::new(0);

/// When the last collection ended, ns, and how long it took.
static ENDED_NS: AtomicU64 = AtomicU64::new(0);
static TOOK_NS: AtomicU64 = AtomicU64::new(0);
/// A collection counts as recent for so many times its duration.
const RECENT_FACTOR: u64 = 4;

/// Whether a collection has ended recently, measured by how long collections take.
pub fn has_recently_run() -> bool {
    now_ns() < ENDED_NS.load(Ordering::Relaxed) + RECENT_FACTOR * TOOK_NS.load(Ordering::Relaxed)
}

/// Collects, unless the thread is inside or another thread collects. Returns whether it did.
#[cold]
#[inline(never)]
pub fn collect(reason: Reason) -> bool {
    has_started() && gate::outside(|| collect_outside(reason)).unwrap_or(false)
}

fn collect_outside(reason: Reason) -> bool {
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let signal_mask = SignalMaskGuard::all_but(&UNBLOCKED);
    let collection = match reason {
        Reason::Allocation => COLLECTION.try_lock(),
        _ => Some(COLLECTION.lock()),
    };
    let mut done = false;
    let started = now_ns();
    if let Some(mut collection) = collection
        && !collection.over
        && (reason != Reason::Allocation || SINCE.load(Ordering::Relaxed) > BUDGET.load(Ordering::Relaxed))
    {
        done = WORLD.on_own_stack(&signal_mask, || collection.run(reason)).unwrap_or_else(|NoMemory| {
            collection.abandon(AbandonCause::Memory);
            false
        });
        let ended = now_ns();
        TOOK_NS.store(ended - started, Ordering::Relaxed);
        ENDED_NS.store(ended, Ordering::Relaxed);
    }
    drop(signal_mask);
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = errno };
    done
}

impl Collection {
    /// Applies the settings.
    pub fn configure(&mut self, settings: Settings) {
        self.policy = Policy::new(settings);
        self.marking.configure(settings.markers.map(|markers| markers as usize));
        freed::FINDINGS.configure(settings.report, settings.abort);
        BUDGET.store(self.policy.first(), Ordering::Relaxed);
        SINCE.store(0, Ordering::Relaxed);
    }

    fn run(&mut self, reason: Reason) -> bool {
        let started = now_ns();
        let cpu = thread_cpu_ns();
        gate::inside(free_all_waiting);
        let number = self.number + 1;
        REPORTER.collection_starts(number, reason);
        self.markers = self.marking.prepare(self.live.saturating_add(SINCE.load(Ordering::Relaxed)));
        if self.markers == 0 {
            self.abandon(AbandonCause::Memory);
            return false;
        }
        REPORTER.phase(number, Phase::Stop);
        let stopped = match halt(&WORLD, PATIENCE_MS) {
            Ok(stopped) => stopped,
            Err(cause) => {
                self.abandon(cause);
                return false;
            }
        };
        let collected = gate::inside(|| self.collect_stopped(number, reason, &stopped));
        let (live, reclaimed) = match collected {
            Ok(collected) => collected,
            Err(cause) => {
                drop(stopped);
                gate::open();
                self.abandon(cause);
                return false;
            }
        };
        self.number = number;
        SINCE.store(self.policy.carried(SINCE.load(Ordering::Relaxed)), Ordering::Relaxed);
        REPORTER.phase(number, Phase::Resume);
        REPORTER.unread(stopped.unread());
        drop(stopped);
        gate::open();
        let pause_ns = now_ns() - started;
        REPORTER.collector_cpu(thread_cpu_ns() - cpu + self.helpers_cpu_ns);
        report_used();
        REPORTER.collection_ends(Collected {
            number,
            live_bytes: live,
            collected_bytes: reclaimed,
            pause_ns,
        });
        true
    }

    /// Marks and sweeps. Returns the bytes that are live, and those reclaimed.
    fn collect_stopped(
        &mut self,
        number: u64,
        reason: Reason,
        stopped: &StoppedWorld<'_>,
    ) -> Result<(usize, usize), AbandonCause> {
        REPORTER.phase(number, Phase::Roots);
        self.leave_out().map_err(|NoMemory| AbandonCause::Memory)?;
        REPORTER.phase(number, Phase::Mark);
        // A freed block leads nowhere; one that is not freed is read, reachable or not.
        let tables = if LAYER.guards { &FREED } else { &TABLES };
        let (marked, roots, blocks) = self.mark(tables, stopped)?;
        REPORTER.phase(number, Phase::Sweep);
        let reclaims = self.policy.reclaims() || reason != Reason::Allocation;
        let reclaimed = if reclaims { self.reclaim(tables) } else { 0 };
        if !reclaims {
            // SAFETY: all other threads are stopped, none of them inside.
            unsafe { tables.clear_marks() };
        }
        let budget = if LAYER.guards {
            freed::passed(marked);
            self.live = blocks;
            self.policy.next_pass(blocks.saturating_add(roots), marked)
        } else {
            self.live = marked;
            self.policy.next(marked, roots)
        };
        BUDGET.store(budget, Ordering::Relaxed);
        Ok((self.live, reclaimed))
    }

    /// Marks. Returns bytes: of marked blocks, of roots, and of blocks that were read as roots.
    fn mark(
        &mut self,
        tables: &Tables,
        stopped: &StoppedWorld<'_>,
    ) -> Result<(usize, usize, usize), AbandonCause> {
        let left_out = self.left_out.as_slice();
        let (mut bytes, mut blocks) = (0, 0);
        // SAFETY: all other threads are stopped, and none is inside (`halt`), so that none is within a call into the
        // tables either.
        let (read, marked) = unsafe {
            self.marking.mark(tables, self.markers, |roots: &mut dyn Roots| {
                roots.range(pinned::words());
                let read = stopped.roots_except(RootKinds::ALL, left_out, &mut |root| {
                    bytes += root.range.len();
                    match root.origin {
                        Origin::Code => roots.bytes(root.range),
                        _ => roots.range(root.range),
                    }
                });
                if LAYER.guards {
                    TABLES.runs(|run| {
                        blocks += run.len();
                        stopped.accessible(run, &mut |part| roots.range(part));
                    });
                }
                read
            })
        };
        self.helpers_cpu_ns = marked.helpers_cpu_ns;
        if let Err(error) = read {
            // Marking is incomplete: nothing may be reclaimed by it.
            // SAFETY: all other threads are stopped, none of them inside.
            unsafe { tables.clear_marks() };
            return Err(error.cause());
        }
        Ok((marked.live, bytes, blocks))
    }

    /// Gives what was not marked to the manager, now or later; returns its bytes.
    fn reclaim(&mut self, tables: &Tables) -> usize {
        let mut reclaimed = 0;
        let dead = &mut self.dead;
        dead.clear();
        // SAFETY: all other threads are stopped, none of them inside, and marking is complete.
        unsafe {
            tables.dead(|block, bytes| {
                reclaimed += bytes;
                if LAYER.guards && freed::check(block, bytes) {
                    // No thread writes now; what was written leads nowhere for the block's next owner.
                    held::clear(block..block + bytes);
                }
                if dead.push(block).is_err() {
                    forward::free(block as *mut c_void);
                }
            });
        }
        if LAZY.load(Ordering::Relaxed) {
            let mut waiting = WAITING.lock();
            core::mem::swap(&mut *waiting, dead);
            WAITING_COUNT.store(waiting.as_slice().len(), Ordering::Relaxed);
        } else {
            for &block in dead.as_slice() {
                // SAFETY: nothing refers to the block any more, and the table no longer has it.
                unsafe { forward::free(block as *mut c_void) };
            }
        }
        reclaimed
    }

    /// Gathers what is not read for roots.
    fn leave_out(&mut self) -> Result<(), NoMemory> {
        let left_out = &mut self.left_out;
        left_out.clear();
        for &range in self.managed.find()? {
            left_out.push(range)?;
        }
        let mut failed = Ok(());
        let mut push = |range: Range<usize>| {
            failed = failed.and(left_out.push((range.start, range.end)));
        };
        for tables in [&TABLES, &FREED] {
            let start = ptr::from_ref(tables) as usize;
            push(start..start + size_of::<Tables>());
            tables.ranges().into_iter().for_each(&mut push);
        }
        self.marking.ranges().into_iter().for_each(&mut push);
        self.managed.memory().into_iter().for_each(&mut push);
        [self.dead.range(), WAITING.lock().range(), pinned::memory()].into_iter().for_each(&mut push);
        failed?;
        let own = left_out.range();
        left_out.push((own.start, own.end))
    }

    /// Abandons a collection, and lets the heap grow.
    fn abandon(&mut self, cause: AbandonCause) {
        let budget = self.policy.after_abort();
        BUDGET.store(SINCE.load(Ordering::Relaxed).saturating_add(budget), Ordering::Relaxed);
        REPORTER.abandoned(cause);
    }
}

/// Reports how many pages hold a live block, and the most that ever did. The caller holds the collection's lock.
pub fn report_used() {
    REPORTER.used(TABLES.used_pages() * 4096);
    REPORTER.slot().used_high_bytes.fetch_max(TABLES.used_pages_high() as u64 * 4096, Ordering::Relaxed);
}

/// Stops the world with no thread inside the manager.
fn halt(world: &'static World, within_ms: u32) -> Result<StoppedWorld<'static>, AbandonCause> {
    let deadline = now_ns() + u64::from(within_ms) * 1_000_000;
    let mut patience_ms = FIRST_PATIENCE_MS;
    let mut wait_us = FIRST_WAIT_US;
    loop {
        match world.stop_within(patience_ms) {
            Ok(stopped) if !gate::is_any_inside(&stopped) => return Ok(stopped),
            Ok(stopped) => {
                let seen = gate::close();
                drop(stopped);
                if now_ns() >= deadline {
                    gate::open();
                    return Err(AbandonCause::Inside);
                }
                gate::wait_for_leaving(seen, wait_us);
                wait_us = (wait_us * 2).min(LAST_WAIT_US);
            }
            // It may wait at the gate with all signals blocked, as the C library does where a thread ends.
            Err(error) if error.may_pass() && now_ns() < deadline => {
                gate::open();
                patience_ms *= 2;
            }
            Err(error) => {
                gate::open();
                return Err(error.cause());
            }
        }
    }
}

/// Does something while all other threads are stopped with none inside; `None`: one could not be stopped. The caller
/// holds the collection's lock.
pub fn while_stopped<R>(work: impl FnOnce() -> R) -> Option<R> {
    let signal_mask = SignalMaskGuard::all_but(&UNBLOCKED);
    let stop = || {
        let stopped = halt(&WORLD, PATIENCE_MS).ok()?;
        let done = gate::inside(work);
        drop(stopped);
        gate::open();
        Some(done)
    };
    WORLD.on_own_stack(&signal_mask, stop).ok().flatten()
}

/// Keeps all other threads outside until [`gate::open`], for a fork, unless there are none. False: a thread did not
/// leave, or could not be stopped; the gate is open. The caller holds the collection's lock.
pub fn close_for_fork() -> bool {
    if single_threaded() {
        return false;
    }
    let stop = || {
        halt(&WORLD, FORK_PATIENCE_MS).is_ok_and(|_stopped| {
            gate::close();
            true
        })
    };
    WORLD.on_own_stack(&SignalMaskGuard::all_but(&UNBLOCKED), stop).unwrap_or(false)
}

/// Frees a few of the waiting dead blocks. The thread is inside.
#[inline(always)]
pub fn free_some() {
    if WAITING_COUNT.load(Ordering::Relaxed) != 0 {
        free_up_to(LAZY_BATCH);
    }
}

fn free_all_waiting() {
    free_up_to(usize::MAX);
}

#[inline(never)]
fn free_up_to(most: usize) {
    for _ in 0..most {
        let mut waiting = WAITING.lock();
        let Some(block) = waiting.pop() else { return };
        WAITING_COUNT.store(waiting.as_slice().len(), Ordering::Relaxed);
        drop(waiting);
        // SAFETY: nothing refers to the block any more, and the table no longer has it.
        unsafe { forward::free(block as *mut c_void) };
    }
}
