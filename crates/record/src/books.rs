//! Where the memory is, some sixty times in a recording: the program is stopped, everything that it has told is taken
//! in, and the ledger's observer looks at it.

use std::path::Path;
use std::time::{Duration, Instant};

use heaptoll_ledger::{Block, Blocks, Census, Ledger, Observer, Options, Pace};
use heaptoll_ring::{Shared, Tap};
use heaptoll_trace::Output;

use crate::request::Request;
use crate::resolver::Resolver;
use crate::told::Told;

/// Whoever stops does so at its next event. Threads that tell nothing for so long are taken to stand still.
const SILENCE: Duration = Duration::from_micros(100);
/// The program is held up no longer than this by waiting for silence, and as long again for what its manager says: a
/// program that makes no call says nothing.
const PATIENCE: Duration = Duration::from_millis(20);
/// A thread that stands still takes note of a question within this time, however busy the machine is. Only threads that
/// stand still are held up, and one of these answers.
const NOTICE: Duration = Duration::from_millis(100);
/// An answer that is being given takes no longer than this, or nobody waits for it: a forced collection may be in it.
const ANSWER: Duration = Duration::from_secs(10);

/// The ledger of one process.
pub struct Books {
    observer: Observer,
    ledger: Ledger,
    pace: Pace,
    collect: bool,
}

impl Books {
    /// Of process `pid`, which maps `rings`.
    pub fn new(pid: i32, request: &Request, rings: &Path) -> Books {
        let manager = &request.manager;
        let options = Options {
            manager: manager.name.clone(),
            collector: manager.collector,
            rings: Some(rings.to_path_buf()),
        };
        Books {
            observer: Observer::new(pid, options),
            ledger: Ledger {
                manager: manager.name.clone(),
                collector: manager.collector,
                collected: manager.collector && request.collect,
                ..Ledger::default()
            },
            pace: Pace::default(),
            collect: manager.collector && request.collect,
        }
    }

    /// Whether it is time for a look.
    pub fn is_due(&self, now_ns: u64, live_bytes: u64) -> bool {
        self.pace.due(now_ns, live_bytes)
    }

    /// Stops the program and looks. `now_ns` counts from the beginning of the trace.
    pub fn look<W: Output>(&mut self, shared: &Shared, tap: &mut Tap, told: &mut Told<W>, now_ns: u64) {
        let _paused = shared.pause();
        let begun = Instant::now();
        take_in(tap, told);
        let census = ask(tap, Census::wishes(false));
        // Whoever answers has come to the gate meanwhile, perhaps, and told something on the way.
        tap.drain(usize::MAX, told);
        let resolver = told.resolver();
        let clock_bytes = resolver.written().clock_bytes();
        // A process that has just ended has no ledger: its trace has.
        if let Ok(mut moment) = self.observer.observe(now_ns, clock_bytes, &LiveOf(resolver), census) {
            if self.collect
                && let Some(after) = ask(tap, Census::wishes(true))
            {
                moment.collected(&after);
            }
            moment.took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.pace.taken(now_ns, &moment);
            self.ledger.push(moment);
        }
    }

    /// What was seen.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// Takes in all that was told, until nothing comes any more.
fn take_in<W: Output>(tap: &mut Tap, told: &mut Told<W>) {
    let mut listening = Listening::new(Instant::now());
    loop {
        let from = Instant::now();
        let drained = tap.drain(usize::MAX, told);
        // What is there and waits for what is not: somebody is about to tell that.
        let heard = drained.words > 0 || drained.blocked;
        if !listening.goes_on(from, heard, Instant::now()) {
            return;
        }
    }
}

/// When it is silent. While the machine lets this process wait it hears nothing, which is no silence: what counts is that
/// nothing was there when it listened again.
struct Listening {
    begun: Instant,
    heard: Instant,
}

impl Listening {
    fn new(now: Instant) -> Listening {
        Listening { begun: now, heard: now }
    }

    /// Whether to listen again, after it was listened `from` then `until` then.
    fn goes_on(&mut self, from: Instant, heard: bool, until: Instant) -> bool {
        let is_patient = from.duration_since(self.begun) < PATIENCE;
        if heard {
            self.heard = until;
            return is_patient;
        }
        is_patient && from.duration_since(self.heard) < SILENCE
    }
}

/// Has one of the threads that stand at the gate ask the manager.
fn ask(tap: &Tap, wishes: u8) -> Option<Census> {
    let question = tap.request_facts(wishes);
    let begun = Instant::now();
    loop {
        if let Some(bytes) = tap.facts(question) {
            return Census::from_bytes(&bytes);
        }
        let patience = if tap.is_answering() { ANSWER } else { NOTICE };
        if begun.elapsed() > patience {
            return None;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// The live blocks of a resolver, as the ledger wants them.
struct LiveOf<'a, W>(&'a Resolver<W>);

impl<W: Output> Blocks for LiveOf<'_, W> {
    fn each(&self, show: &mut dyn FnMut(Block)) {
        self.0.live().each(&mut |address, slot| {
            let requested = self.0.written().size(slot).unwrap_or(0);
            show(Block { address, requested, usable: self.0.usable(slot) });
        });
    }

    fn count(&self) -> usize {
        self.0.live().len()
    }

    fn ever(&self, show: &mut dyn FnMut(u64, u64)) {
        self.0.live().ever(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_that_was_kept_waiting_listens_before_it_takes_that_for_silence() {
        let begun = Instant::now();
        let after = |time: Duration| begun + time;
        let late = 2 * SILENCE;
        // Kept waiting before it listened for the first time, and after it heard something.
        let mut listening = Listening::new(begun);
        assert!(listening.goes_on(after(late), true, after(late)));
        assert!(
            listening.goes_on(after(late), false, after(2 * late)),
            "listened from before the silence on"
        );
        assert!(!listening.goes_on(after(2 * late), false, after(2 * late)));
        // For longer than it is patient: once more all the same.
        let mut listening = Listening::new(begun);
        assert!(listening.goes_on(begun, true, after(2 * PATIENCE)));
        assert!(!listening.goes_on(after(2 * PATIENCE), true, after(2 * PATIENCE)));
    }
}
