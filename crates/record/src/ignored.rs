//! Processes that are not recorded though they have the layer: they are sent the request to stop, and what they record
//! before it reaches them is discarded, since a full ring would block them.

use heaptoll_alloc_ring::{Arrival, RingEvent, Shared, Sink, Tap};

/// Words that are consumed of one process before the next one's turn.
const BUDGET: usize = 1 << 16;

/// All ignored processes.
#[derive(Default)]
pub struct IgnoredProcesses {
    taps: Vec<(u32, i32, Tap)>,
}

struct Discard;

impl Sink for Discard {
    fn event(&mut self, _: u32, _: RingEvent<'_>) {}
    fn thread(&mut self, _: u32, _: i32) {}
}

impl IgnoredProcesses {
    /// Sends the request to stop to a process that has arrived.
    pub fn add(&mut self, shared: &Shared, arrival: &Arrival) {
        // Its previous image, if it was ignored too, is gone.
        let before = self.taps.iter().position(|(_, pid, _)| *pid == arrival.pid);
        if let Some(before) = before {
            self.taps.swap_remove(before).2.end(&mut Discard);
        }
        let tap = Tap::new(shared, arrival.index);
        tap.dismiss();
        self.taps.push((arrival.image, arrival.pid, tap));
    }

    /// Discards what they have recorded; returns the largest number of words of one process.
    pub fn drain(&mut self) -> usize {
        self.taps.iter_mut().map(|(_, _, tap)| tap.drain(BUDGET, &mut Discard).words).max().unwrap_or(0)
    }

    /// A process has ended.
    pub fn remove(&mut self, image: u32) {
        if let Some(at) = self.taps.iter().position(|(other, _, _)| *other == image) {
            self.taps.swap_remove(at).2.end(&mut Discard);
        }
    }
}
