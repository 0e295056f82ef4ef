//! Processes that are not recorded though they tell: they are told to stop, and what they say before they hear it is
//! thrown away, since a full ring would hold them up.

use heaptoll_ring::{Arrival, RingEvent, Shared, Sink, Tap};

/// Words that one process may have out of its rings before the next one's turn.
const BUDGET: usize = 1 << 16;

/// All of them.
#[derive(Default)]
pub struct Ignored {
    taps: Vec<(u32, i32, Tap)>,
}

struct Nobody;

impl Sink for Nobody {
    fn event(&mut self, _: u32, _: RingEvent<'_>) {}
    fn thread(&mut self, _: u32, _: i32) {}
}

impl Ignored {
    /// Tells one that has arrived to stop.
    pub fn add(&mut self, shared: &Shared, arrival: &Arrival) {
        // Its image before, if it was ignored too, is no more.
        let before = self.taps.iter().position(|(_, pid, _)| *pid == arrival.pid);
        if let Some(before) = before {
            self.taps.swap_remove(before).2.end(&mut Nobody);
        }
        let tap = Tap::new(shared, arrival.index);
        tap.dismiss();
        self.taps.push((arrival.image, arrival.pid, tap));
    }

    /// Throws away what they have said; gives the most words that one had.
    pub fn drain(&mut self) -> usize {
        self.taps.iter_mut().map(|(_, _, tap)| tap.drain(BUDGET, &mut Nobody).words).max().unwrap_or(0)
    }

    /// One has ended.
    pub fn remove(&mut self, image: u32) {
        if let Some(at) = self.taps.iter().position(|(other, _, _)| *other == image) {
            self.taps.swap_remove(at).2.end(&mut Nobody);
        }
    }
}
