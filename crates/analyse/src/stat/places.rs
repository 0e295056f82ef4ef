//! Sums by call site, and what each had alive when the whole program had most.
//!
//! A snapshot of all sites at every new maximum would cost more than everything else. So each site keeps what it has
//! now and when that last changed; when it changes again and the maximum was in between, what it had is what it had
//! at the maximum.

use serde::Serialize;

/// Sites told apart; those with higher numbers are put together in the last.
const SITES: usize = 1 << 20;

/// One site's sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    objects: u64,
    bytes: u64,
    live: Sum,
    at_peak: Sum,
    /// Number of the event that changed `live` last.
    changed: u64,
}

/// Objects and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Objects.
    pub objects: u64,
    /// Requested bytes of them.
    pub bytes: u64,
}

/// All sites.
#[derive(Debug, Clone, Default)]
pub struct Places {
    places: Vec<Place>,
}

/// What one call site did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SiteFigures {
    /// Number of the site in the trace.
    pub site: u32,
    /// The call stack in words.
    pub name: String,
    /// Objects made there.
    pub objects: u64,
    /// Bytes they asked for, with what they grew by later.
    pub bytes: u64,
    /// Alive when the program had most bytes alive.
    pub at_peak: Sum,
    /// Never freed.
    pub at_exit: Sum,
}

impl Places {
    /// An object of `bytes` was made at `site` by event number `event` (from 1); the maximum so far was at event
    /// `peak`.
    #[inline]
    pub fn allocate(&mut self, site: u32, bytes: u64, event: u64, peak: u64) {
        let place = self.at(site, event, peak);
        place.objects += 1;
        place.bytes = place.bytes.saturating_add(bytes);
        place.live.objects += 1;
        place.live.bytes = place.live.bytes.saturating_add(bytes);
    }

    /// An object of `site` changed its size.
    #[inline]
    pub fn resize(&mut self, site: u32, old: u64, new: u64, event: u64, peak: u64) {
        let place = self.at(site, event, peak);
        place.bytes = place.bytes.saturating_add(new.saturating_sub(old));
        place.live.bytes = place.live.bytes.saturating_sub(old).saturating_add(new);
    }

    /// An object of `site` ended.
    #[inline]
    pub fn free(&mut self, site: u32, bytes: u64, event: u64, peak: u64) {
        let place = self.at(site, event, peak);
        place.live.objects = place.live.objects.saturating_sub(1);
        place.live.bytes = place.live.bytes.saturating_sub(bytes);
    }

    #[inline]
    fn at(&mut self, site: u32, event: u64, peak: u64) -> &mut Place {
        let index = (site as usize).min(SITES - 1);
        if index >= self.places.len() {
            self.places.resize(index + 1, Place::default());
        }
        let place = &mut self.places[index];
        place.settle(peak);
        place.changed = event;
        place
    }

    /// Every site that made something, by number; `name` gives its words.
    pub fn figures(mut self, peak: u64, name: impl Fn(u32) -> String) -> Vec<SiteFigures> {
        self.places.iter_mut().for_each(|place| place.settle(peak));
        let used = self.places.iter().enumerate().filter(|(_, place)| place.objects > 0);
        used.map(|(site, place)| SiteFigures {
            site: site as u32,
            name: if site == SITES - 1 { "all further sites".to_owned() } else { name(site as u32) },
            objects: place.objects,
            bytes: place.bytes,
            at_peak: place.at_peak,
            at_exit: place.live,
        })
        .collect()
    }
}

impl Place {
    #[inline(always)]
    fn settle(&mut self, peak: u64) {
        if self.changed <= peak {
            self.at_peak = self.live;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_site_had_at_the_peak_is_what_it_had_then() {
        let mut places = Places::default();
        places.allocate(1, 100, 1, 0); // peak 1
        places.allocate(2, 50, 2, 1); // peak 2
        places.free(1, 100, 3, 2);
        places.allocate(1, 20, 4, 2);
        places.resize(2, 50, 200, 5, 2); // 220: peak 5
        places.free(2, 200, 6, 5);
        places.allocate(3, 1, 7, 5);
        let figures = places.figures(5, |site| format!("site {site}"));
        let peaks: Vec<(u32, Sum)> = figures.iter().map(|site| (site.site, site.at_peak)).collect();
        let sum = |objects, bytes| Sum { objects, bytes };
        assert_eq!(peaks, [(1, sum(1, 20)), (2, sum(1, 200)), (3, sum(0, 0))]);
        assert_eq!((figures[0].objects, figures[0].bytes, figures[0].at_exit), (2, 120, sum(1, 20)));
        assert_eq!((figures[1].bytes, figures[1].at_exit), (200, sum(0, 0)));
        assert_eq!(figures[2].name, "site 3");
    }
}
