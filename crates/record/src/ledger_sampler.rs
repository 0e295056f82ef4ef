//! Snapshots for the ledger, about sixty in a recording and one before the program ends where it has grown: the program is paused, all events that it has recorded are
//! consumed, and the ledger's observer reads its memory.

use std::path::Path;
use std::time::{Duration, Instant};

use heaptoll_alloc_ring::{Arrival, Shared, Tap};
use heaptoll_ledger::{
    Block, Blocks, Census, FreedBlocks, Ledger, LedgerError, Level, LivePeak, Observer, Options, Pace,
};
use heaptoll_trace::Output;
use heaptoll_units::limits;

use crate::event_consumer::EventConsumer;
use crate::proc::ResidentSet;
use crate::request::Manager;
use crate::resolver::{ObjectFacts, Resolver};
use crate::static_variables;

/// A paused thread stops at its next event. Threads that record nothing for this long are taken to have stopped.
const SILENCE: Duration = Duration::from_micros(100);
/// The program is paused no longer than this to wait for silence, and as long again for its manager's answer: a program
/// that makes no call records nothing.
const PATIENCE: Duration = Duration::from_millis(20);
/// A request that no thread has taken up after this time is given up: then no thread is paused at the gate. A paused
/// one takes it up earlier, however busy the machine is.
const NOTICE: Duration = Duration::from_millis(100);
/// An answer that is being given is awaited no longer than this: a forced collection may be in it.
const ANSWER: Duration = Duration::from_secs(10);

/// A program that records nothing for this long is idle, ns.
const IDLE_NS: u64 = 10_000_000;

/// Takes the snapshots of one process.
pub struct LedgerSampler {
    observer: Observer,
    ledger: Ledger,
    pace: Pace,
    collect: bool,
    resident: ResidentSet,
    /// Events at the last tick at which there were new ones, and when that was.
    events: u64,
    active_ns: u64,
    /// When the last snapshot let the program go on.
    resumed_ns: u64,
    /// Why the last one could not be taken, where a limit of this process was the reason.
    refused: Option<String>,
}

impl LedgerSampler {
    /// For a process that has arrived, which maps `rings`; `inherited`: see [`LedgerSampler::heap`].
    pub fn new(
        arrival: &Arrival,
        manager: &Manager,
        collect: bool,
        rings: &Path,
        inherited: &[(u64, u64)],
    ) -> LedgerSampler {
        let collect = collect && manager.collector;
        let options = Options {
            manager: manager.name.clone(),
            collector: manager.collector,
            rings: Some(rings.to_path_buf()),
            inherited: arrival.forked.then(|| inherited.to_vec()),
        };
        LedgerSampler {
            observer: Observer::new(arrival.pid, options),
            ledger: Ledger {
                manager: manager.name.clone(),
                collector: manager.collector,
                collected: collect,
                ..Ledger::default()
            },
            pace: Pace::default(),
            collect,
            resident: ResidentSet::new(arrival.pid),
            events: 0,
            active_ns: 0,
            resumed_ns: 0,
            refused: None,
        }
    }

    /// The ranges of the heap in the last snapshot: what a process forked now has of it.
    pub fn heap(&self) -> &[(u64, u64)] {
        self.observer.heap()
    }

    /// Whether a snapshot is due by the live bytes alone.
    pub fn rises(&self, now_ns: u64, live_bytes: u64) -> bool {
        self.pace.due(now_ns, Level { live_bytes, rss_bytes: 0 }, false)
    }

    /// Whether a snapshot is due of a program that has recorded this number of events. To be called at every tick.
    pub fn is_due(&mut self, now_ns: u64, events: u64, live_bytes: u64) -> bool {
        if events != self.events {
            (self.events, self.active_ns) = (events, now_ns);
        }
        self.keep_idle(now_ns, events);
        let is_idle = now_ns.saturating_sub(self.active_ns) >= IDLE_NS;
        self.pace.due(now_ns, self.level(live_bytes), is_idle)
    }

    /// Keeps how long the program has made no call since the last snapshot, if it has made none.
    fn keep_idle(&mut self, now_ns: u64, events: u64) {
        if let Some(last) = self.ledger.snapshots.last_mut().filter(|last| last.events == events) {
            last.idle_ns = now_ns.saturating_sub(self.resumed_ns);
        }
    }

    /// Whether the end of the program is to be sampled: no snapshot shows it as it is then.
    pub fn misses(&self, live_bytes: u64) -> bool {
        self.pace.misses(self.level(live_bytes))
    }

    fn level(&self, live_bytes: u64) -> Level {
        Level { live_bytes, rss_bytes: self.resident.bytes() }
    }

    /// Pauses the program and takes a snapshot. `now_ns` counts from the beginning of the trace.
    pub fn sample<W: Output>(
        &mut self,
        shared: &Shared,
        tap: &mut Tap,
        consumer: &mut EventConsumer<W>,
        now_ns: u64,
    ) {
        let _paused = shared.pause();
        let (begun, cpu) = (Instant::now(), cpu_time());
        consume_all(tap, consumer);
        let requested = Instant::now();
        let census = request_census(tap, Census::request_flags(false));
        // Where no thread answers, none was stopped meanwhile.
        let unanswered = if census.is_none() { requested.elapsed() } else { Duration::ZERO };
        // The thread that answers may have reached the gate only now, and have recorded events on the way.
        tap.drain(usize::MAX, consumer);
        let resolver = consumer.resolver();
        let clock_bytes = resolver.written().clock_bytes();
        let observed = self.observer.observe(now_ns, clock_bytes, &ResolverBlocks(resolver), census);
        if let Err(LedgerError::Read { file, source }) = &observed {
            let advice = limits::after(source);
            self.refused = (!advice.is_empty()).then(|| format!("cannot read {file}: {source}{advice}"));
        }
        // A process that has just ended cannot be sampled; its trace is written all the same.
        if let Ok(mut snapshot) = observed {
            snapshot.mappers = self.observer.mappers(consumer.mapped());
            if self.collect
                && let Some(after) = request_census(tap, Census::request_flags(true))
            {
                snapshot.collected(&after);
            }
            snapshot.events = consumer.resolver().written().events();
            self.keep_idle(now_ns, snapshot.events);
            let took = begun.elapsed();
            snapshot.took_ns = nanoseconds(took);
            let cpu = cpu_time().saturating_sub(cpu);
            let stopped_ns = nanoseconds(took.saturating_sub(unanswered));
            self.resumed_ns = now_ns.saturating_add(stopped_ns);
            self.pace.taken(now_ns, (stopped_ns, nanoseconds(cpu)), &snapshot);
            self.ledger.push(snapshot);
        }
    }

    /// What is missing, and why, where a limit of this process did not allow one snapshot.
    pub fn trouble(&self) -> Option<String> {
        let refused = self.refused.as_ref().filter(|_| self.ledger.snapshots.is_empty())?;
        Some(format!("its memory was never sampled: {refused}"))
    }

    /// The ledger, of a run that had its most live bytes there. Names of variables are looked up, which may take a while.
    pub fn finish(self, live_peak: LivePeak) -> Ledger {
        let static_variables = static_variables::largest(self.observer.static_data());
        Ledger { live_peak: Some(live_peak), static_variables, ..self.ledger }
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes to this live local only.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Consumes everything that was recorded, until nothing more comes.
fn consume_all<W: Output>(tap: &mut Tap, consumer: &mut EventConsumer<W>) {
    let mut detector = SilenceDetector::new(Instant::now());
    loop {
        let polled = Instant::now();
        let drained = tap.drain(usize::MAX, consumer);
        // Blocked: events wait for one of another thread, which is about to be recorded.
        let received = drained.words > 0 || drained.blocked;
        if !detector.keeps_polling(polled, received, Instant::now()) {
            return;
        }
    }
}

/// Decides when the program has fallen silent. That this process received nothing while the scheduler kept it waiting
/// is no silence: it counts only when a poll that begins after the wait finds nothing.
struct SilenceDetector {
    begun: Instant,
    last_received: Instant,
}

impl SilenceDetector {
    fn new(now: Instant) -> SilenceDetector {
        SilenceDetector { begun: now, last_received: now }
    }

    /// Whether to poll again, after a poll that lasted from `polled` to `until`.
    fn keeps_polling(&mut self, polled: Instant, received: bool, until: Instant) -> bool {
        let is_patient = polled.duration_since(self.begun) < PATIENCE;
        if received {
            self.last_received = until;
            return is_patient;
        }
        is_patient && polled.duration_since(self.last_received) < SILENCE
    }
}

/// Lets one of the threads that wait at the gate request figures of the manager.
fn request_census(tap: &Tap, request_flags: u8) -> Option<Census> {
    let request = tap.request_facts(request_flags);
    let begun = Instant::now();
    loop {
        if let Some(bytes) = tap.facts(request) {
            return Census::from_bytes(&bytes);
        }
        let patience = if tap.is_answering() { ANSWER } else { NOTICE };
        if begun.elapsed() > patience {
            return None;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// The live blocks of a resolver, in the form that the ledger reads.
struct ResolverBlocks<'a, W>(&'a Resolver<W>);

impl<W: Output> Blocks for ResolverBlocks<'_, W> {
    fn each(&self, visit: &mut dyn FnMut(Block)) {
        self.0.live().each(&mut |address, slot| {
            let requested = self.0.written().size(slot).unwrap_or(0);
            let ObjectFacts { usable, site, allocated_at_bytes } = self.0.facts(slot);
            visit(Block { address, requested, usable, site, allocated_at_bytes });
        });
    }

    fn count(&self) -> usize {
        self.0.live().len()
    }

    fn ever(&self, visit: &mut dyn FnMut(u64, u64)) {
        self.0.live().ever(visit);
    }

    fn freed(&self) -> Option<&FreedBlocks> {
        self.0.freed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_that_was_kept_waiting_polls_before_it_takes_that_for_silence() {
        let begun = Instant::now();
        let after = |time: Duration| begun + time;
        let late = 2 * SILENCE;
        // Kept waiting before its first poll, and after it received something.
        let mut detector = SilenceDetector::new(begun);
        assert!(detector.keeps_polling(after(late), true, after(late)));
        assert!(
            detector.keeps_polling(after(late), false, after(2 * late)),
            "polled from before the silence on"
        );
        assert!(!detector.keeps_polling(after(2 * late), false, after(2 * late)));
        // Kept waiting for longer than its patience: it polls once more all the same.
        let mut detector = SilenceDetector::new(begun);
        assert!(detector.keeps_polling(begun, true, after(2 * PATIENCE)));
        assert!(!detector.keeps_polling(after(2 * PATIENCE), true, after(2 * PATIENCE)));
    }
}
