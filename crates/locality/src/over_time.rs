//! Working sets over the run: how many lines and pages were touched within a window of references.
//!
//! The working set W(t, window) of Denning (1968) is the set touched in the window that ends at t. Time is counted in
//! references of the *program*, which are the same under every manager, so the curves of managers align however much
//! the managers do in between. Windows are adjacent, so the figures at the end of each are exact.
//!
//! All windows of 2^k base windows are counted at once: a line that is touched for the first time in a base window is
//! new in those larger windows in which it was not touched either, and the time of its previous touch determines these.
//! So most references cost one comparison. Memory is a few bytes a line of the footprint, and samples that are bounded:
//! a scale with too many keeps its mean only.

use std::collections::HashMap;

use heaptoll_reftrace::{Owner, Reference};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// References of the program in the shortest window.
pub const BASE: u64 = 1 << 14;
/// Most samples that a scale keeps.
const SAMPLES: usize = 1024;
/// Number of scales; the longest window is far beyond any run.
const SCALES: usize = 40;
/// Cached pages.
const RECENT: usize = 1024;

/// Working-set sizes at the end of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Lines touched in it by any accessor.
    pub lines: u64,
    /// Pages touched in it by any accessor.
    pub pages: u64,
    /// Lines touched in it by the program.
    pub program_lines: u64,
    /// Pages touched in it by the program.
    pub program_pages: u64,
    /// Lines touched since the beginning of the run, by any accessor.
    pub lines_so_far: u64,
    /// Pages touched since the beginning of the run, by any accessor.
    pub pages_so_far: u64,
}

/// Working sets of windows of one length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scale {
    /// The window, references of the program.
    pub window: u64,
    /// Windows that have ended.
    pub windows: u64,
    /// Mean size: lines touched by any accessor.
    pub mean_lines: f64,
    /// Mean size: pages.
    pub mean_pages: f64,
    /// One sample a window, in order; empty if there are too many to keep.
    pub samples: Vec<Sample>,
}

/// New lines and pages of the present window.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    lines: u64,
    pages: u64,
    program_lines: u64,
    program_pages: u64,
}

#[derive(Debug, Clone, Default)]
struct ScaleState {
    now: Sizes,
    windows: u64,
    lines: u64,
    pages: u64,
    samples: Vec<Sample>,
    dropped: bool,
}

/// Counts working sets of one process.
#[derive(Debug, Clone)]
pub struct OverTime {
    line_shift: u32,
    page_shift: u32,
    /// Index of a page's stamps.
    places: HashMap<u64, usize>,
    /// Page + 1 and the index of its stamps; by the page's lower bits.
    recent: Vec<(u64, usize)>,
    /// For each page: when it and each of its lines was touched last, by any accessor and by the program; base windows
    /// + 1.
    stamps: Vec<u32>,
    /// The present base window + 1.
    now: u32,
    /// References of the program left in the present base window.
    left: u64,
    /// The line touched last, and whether by the program.
    last: (u64, bool),
    so_far: (u64, u64),
    scales: Vec<ScaleState>,
    /// Most stamps allowed.
    limit: usize,
    /// Whether more would have been needed: nothing is counted since.
    full: bool,
}

/// Stamps of a page itself, by any accessor and by the program; those of its lines follow in pairs.
const OF_PAGE: usize = 2;

impl OverTime {
    /// Lines and pages of these many bytes, both powers of two, a page no shorter than a line. When it would need more
    /// memory than `limit` bytes it stops; see [`OverTime::is_partial`].
    pub fn new(line: u64, page: u64, limit: u64) -> OverTime {
        OverTime {
            line_shift: line.trailing_zeros(),
            page_shift: page.trailing_zeros().max(line.trailing_zeros()),
            places: HashMap::new(),
            recent: vec![(0, 0); RECENT],
            stamps: Vec::new(),
            now: 1,
            left: BASE,
            last: (u64::MAX, false),
            so_far: (0, 0),
            scales: vec![ScaleState::default(); SCALES],
            limit: usize::try_from(limit / size_of::<u32>() as u64).unwrap_or(usize::MAX),
            full: false,
        }
    }

    /// Whether memory ran out: the results are of the time before.
    pub fn is_partial(&self) -> bool {
        self.full
    }

    /// Processes references of one owner.
    pub fn references(&mut self, owner: Owner, references: &[Reference]) {
        if owner != Owner::Program {
            return self.touch_all(false, references);
        }
        let mut rest = references;
        while rest.len() as u64 >= self.left {
            let (these, others) = rest.split_at(self.left as usize);
            self.touch_all(true, these);
            if self.full {
                return;
            }
            self.end_window();
            rest = others;
        }
        self.touch_all(true, rest);
        self.left -= rest.len() as u64;
    }

    /// References of the program left in the present window: at least 1, and any number after memory ran out.
    pub fn left(&self) -> u64 {
        if self.full { u64::MAX } else { self.left }
    }

    /// Processes this many references of one owner of which `sifted` are all that can be the first to a line in this
    /// window, by any accessor or by the program. Of the program at most [`OverTime::left`]. Returns whether a window
    /// ended.
    pub fn sifted(&mut self, owner: Owner, references: u64, sifted: &[Reference]) -> bool {
        let program = owner == Owner::Program;
        self.touch_all(program, sifted);
        if !program || self.full {
            return false;
        }
        self.left -= references;
        if self.left == 0 {
            self.end_window();
            return true;
        }
        false
    }

    /// Processes an access of the kernel to a range of memory for this owner; no time passes.
    pub fn kernel(&mut self, owner: Owner, address: u64, length: u64) {
        let Some(end) = length.checked_sub(1).map(|beyond| address.saturating_add(beyond)) else { return };
        for line in address >> self.line_shift..=end >> self.line_shift {
            if self.full {
                return;
            }
            self.touch(owner == Owner::Program, line);
        }
    }

    fn touch_all(&mut self, program: bool, references: &[Reference]) {
        if self.full {
            return;
        }
        for reference in references {
            let first = reference.address() >> self.line_shift;
            let last = (reference.address() + reference.size().max(1) - 1) >> self.line_shift;
            if self.last != (first, program) {
                self.touch(program, first);
            }
            for line in first + 1..=last {
                self.touch(program, line);
            }
        }
    }

    #[inline]
    fn touch(&mut self, program: bool, line: u64) {
        self.last = (line, program);
        let shift = self.page_shift - self.line_shift;
        let page = line >> shift;
        let at = match self.recent[page as usize % RECENT] {
            (recent, at) if recent == page + 1 => at,
            _ => match self.place(page) {
                Some(at) => at,
                None => return,
            },
        };
        let own = at + OF_PAGE + 2 * (line & ((1 << shift) - 1)) as usize;
        // What the program touches was touched by an accessor, so its own stamp suffices.
        if self.stamps[own + usize::from(program)] != self.now {
            self.first_in_window(program, at, own);
        }
    }

    #[cold]
    fn place(&mut self, page: u64) -> Option<usize> {
        let next = self.stamps.len();
        let at = *self.places.entry(page).or_insert(next);
        if at == next {
            let of_page = OF_PAGE + (2 << (self.page_shift - self.line_shift));
            if self.full || next + of_page > self.limit || self.stamps.try_reserve(of_page).is_err() {
                self.full = true;
                return None;
            }
            self.stamps.resize(next + of_page, 0);
        }
        self.recent[page as usize % RECENT] = (page + 1, at);
        Some(at)
    }

    #[inline(never)]
    fn first_in_window(&mut self, program: bool, page: usize, line: usize) {
        let now = self.now;
        for by_program in [false, true] {
            if by_program && !program {
                break;
            }
            let place = usize::from(by_program);
            let before = std::mem::replace(&mut self.stamps[line + place], now);
            if before != now {
                self.so_far.0 += u64::from(before == 0 && !by_program);
                self.count(before, |sizes| {
                    *if by_program { &mut sizes.program_lines } else { &mut sizes.lines } += 1;
                });
            }
            let before = std::mem::replace(&mut self.stamps[page + place], now);
            if before != now {
                self.so_far.1 += u64::from(before == 0 && !by_program);
                self.count(before, |sizes| {
                    *if by_program { &mut sizes.program_pages } else { &mut sizes.pages } += 1;
                });
            }
        }
    }

    /// Counts in all windows that have begun since the base window `before`.
    fn count(&mut self, before: u32, add: impl Fn(&mut Sizes)) {
        let scales = match before {
            0 => SCALES,
            // Windows of 2^k agree from the highest bit on in which the two differ.
            before => (u32::BITS - ((before - 1) ^ (self.now - 1)).leading_zeros()) as usize,
        };
        for scale in &mut self.scales[..scales.min(SCALES)] {
            add(&mut scale.now);
        }
    }

    fn end_window(&mut self) {
        let over = u64::from(self.now);
        let (lines_so_far, pages_so_far) = self.so_far;
        for (k, scale) in self.scales.iter_mut().enumerate() {
            if !over.is_multiple_of(1 << k) {
                break;
            }
            let Sizes { lines, pages, program_lines, program_pages } = std::mem::take(&mut scale.now);
            scale.windows += 1;
            scale.lines += lines;
            scale.pages += pages;
            if scale.samples.len() == SAMPLES {
                (scale.samples, scale.dropped) = (Vec::new(), true);
            }
            if !scale.dropped {
                scale.samples.push(Sample {
                    lines,
                    pages,
                    program_lines,
                    program_pages,
                    lines_so_far,
                    pages_so_far,
                });
            }
        }
        self.now = self.now.saturating_add(1);
        self.left = BASE;
        // Its stamp belongs to the window before.
        self.last = (u64::MAX, false);
    }

    /// Lines and pages touched in total.
    pub fn footprint(&self) -> (u64, u64) {
        self.so_far
    }

    /// The results, the shortest window first; windows longer than the run are left out.
    pub fn scales(&self) -> Vec<Scale> {
        let reported = self.scales.iter().enumerate().filter(|(_, scale)| scale.windows > 0);
        reported
            .map(|(k, scale)| Scale {
                window: BASE << k,
                windows: scale.windows,
                mean_lines: scale.lines as f64 / scale.windows as f64,
                mean_pages: scale.pages as f64 / scale.windows as f64,
                samples: scale.samples.clone(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn words(from: u64, to: u64) -> Vec<Reference> {
        (from / 8..to / 8).map(|word| Reference::new(word * 8, 8, false)).collect()
    }

    #[test]
    fn a_sweep_has_the_working_set_of_its_width() {
        let mut over_time = OverTime::new(64, 4096, u64::MAX);
        // 128 KiB are as many words as the shortest window has references.
        for _ in 0..8 {
            over_time.references(Owner::Program, &words(1 << 20, (1 << 20) + BASE * 8));
        }
        let scales = over_time.scales();
        assert_eq!(scales.iter().map(|scale| scale.windows).collect::<Vec<_>>(), [8, 4, 2, 1]);
        let all = Sample {
            lines: 2048,
            pages: 32,
            program_lines: 2048,
            program_pages: 32,
            lines_so_far: 2048,
            pages_so_far: 32,
        };
        assert!(scales.iter().flat_map(|scale| &scale.samples).all(|sample| *sample == all));
        assert_eq!(over_time.footprint(), (2048, 32));
    }

    #[test]
    fn what_others_touch_takes_no_time_and_is_counted_separately() {
        let mut over_time = OverTime::new(64, 4096, u64::MAX);
        over_time.references(Owner::Program, &words(0, BASE * 4));
        over_time.references(Owner::Collector, &words(1 << 24, (1 << 24) + BASE * 16));
        over_time.kernel(Owner::Program, 1 << 28, 4096);
        over_time.references(Owner::Program, &words(0, BASE * 4));
        let scales = over_time.scales();
        let sample = scales[0].samples[0];
        assert_eq!((scales[0].windows, sample.pages, sample.program_pages), (1, 16 + 64 + 1, 16 + 1));
        assert_eq!((sample.lines, sample.program_lines), (1024 + 4096 + 64, 1024 + 64));
    }

    #[test]
    fn all_windows_are_what_sets_give() {
        let mut state = 12345u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut over_time = OverTime::new(32, 1024, u64::MAX);
        let mut stream = Vec::new();
        for phase in 0..40 {
            let (from, wide) = (random(1 << 20), 64 << random(12));
            let owner = if phase % 3 == 2 { Owner::Allocator } else { Owner::Program };
            let run: Vec<Reference> =
                (0..10_000).map(|_| Reference::new(from + random(wide), 1 + random(40), false)).collect();
            over_time.references(owner, &run);
            stream.extend(run.into_iter().map(|reference| (owner, reference)));
        }
        for (k, scale) in over_time.scales().iter().enumerate() {
            let mut sets: [HashSet<u64>; 4] = Default::default();
            let (mut clock, mut found) = (0, Vec::new());
            for (owner, reference) in &stream {
                let line = |byte: u64| (reference.address() + byte) >> 5;
                for line in line(0)..=line(reference.size() - 1) {
                    sets[0].insert(line);
                    sets[1].insert(line >> 5);
                    if *owner == Owner::Program {
                        sets[2].insert(line);
                        sets[3].insert(line >> 5);
                    }
                }
                if *owner == Owner::Program {
                    clock += 1;
                    if clock % (BASE << k) == 0 {
                        found.push(sets.each_mut().map(|set| std::mem::take(set).len() as u64));
                    }
                }
            }
            let reported: Vec<[u64; 4]> = scale
                .samples
                .iter()
                .map(|sample| [sample.lines, sample.pages, sample.program_lines, sample.program_pages])
                .collect();
            assert_eq!(reported, found, "windows of {}", scale.window);
        }
    }

    #[test]
    fn samples_are_bounded_and_means_go_on() {
        let mut over_time = OverTime::new(64, 4096, u64::MAX);
        let run = words(0, BASE * 8);
        for _ in 0..1500 {
            over_time.references(Owner::Program, &run);
        }
        let scales = over_time.scales();
        assert_eq!((scales[0].windows, scales[0].samples.len(), scales[0].mean_lines), (1500, 0, 2048.0));
        assert_eq!((scales[1].windows, scales[1].samples.len()), (750, 750));
    }

    #[test]
    fn it_stops_where_memory_ends_and_keeps_what_was() {
        let bytes_a_page = 4 * (2 + 2 * 64);
        let mut over_time = OverTime::new(64, 4096, 40 * bytes_a_page);
        for _ in 0..3 {
            over_time.references(Owner::Program, &words(0, BASE * 8));
        }
        assert!(!over_time.is_partial());
        over_time.references(Owner::Program, &words(1 << 24, (1 << 24) + BASE * 8));
        over_time.kernel(Owner::Program, 1 << 40, u64::MAX);
        over_time.references(Owner::Program, &words(0, BASE * 8));
        assert!(over_time.is_partial());
        assert_eq!((over_time.scales()[0].windows, over_time.footprint().1), (3, 40));
    }
}
