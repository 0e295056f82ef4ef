//! The invariants of free runs, verified.

use heaptoll_runtime::Damage;

use super::Units;
use super::lists::{BINS, KEPT_BINS, bin_of_run};
use crate::class::FREE;
use crate::reservation::HeapReservation;
use crate::span::NONE;

impl Units {
    /// Verifies lists, lengths and neighbours.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self, reservation: &HeapReservation) -> Result<(), Damage> {
        let (mut free, mut runs) = (0, 0_usize);
        for bin in 0..BINS + KEPT_BINS {
            let mut run = self.bins[bin];
            Damage::unless(
                bin >= BINS || (run == NONE) == (self.filled >> bin & 1 == 0),
                bin,
                "a list's bit is set if it is not empty",
            )?;
            let mut previous = NONE;
            while run != NONE {
                let address = reservation.address(run);
                Damage::unless((run as usize) < reservation.units(), address, "a free run lies in the heap")?;
                // SAFETY: a unit of the heap; only read.
                let span = unsafe { &*reservation.span(run) };
                let end = run as usize + span.units as usize;
                Damage::unless(
                    span.units > 0 && end <= reservation.units(),
                    address,
                    "a free run lies in the heap",
                )?;
                Damage::unless(bin_of_run(span) == bin, address, "a free run is in the list of its length")?;
                Damage::unless(span.previous == previous, address, "the links of free runs are mutual")?;
                Damage::unless(
                    reservation.first(end - 1) == run,
                    address,
                    "a free run's last unit points to its first",
                )?;
                Damage::unless(
                    (run as usize..end).all(|unit| reservation.span_class(unit) == FREE),
                    address,
                    "a free run is of free units",
                )?;
                let joined = span.kept
                    || (run == 0 || self.joinable(reservation, run as usize - 1).is_none())
                        && self.joinable(reservation, end).is_none();
                Damage::unless(joined, address, "free neighbours are coalesced")?;
                free += span.units;
                runs += 1;
                Damage::unless(runs <= reservation.units(), address, "lists of free runs end")?;
                previous = run;
                run = span.next;
            }
        }
        Damage::unless(free == self.free, reservation.base(), "the count of free units is right")?;
        Damage::unless(self.dirty <= self.free, reservation.base(), "dirty units are free ones")?;
        let all = (0..reservation.units()).filter(|&unit| reservation.span_class(unit) == FREE).count();
        Damage::unless(all == free as usize, reservation.base(), "every free unit is in a free run")
    }
}
