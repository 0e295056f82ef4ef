//! All simulators over one stream of references, in one pass.
//!
//! A reference to the line of the one before is only counted: it hits everywhere and changes nothing. What is left goes
//! to the stack of lines, the forest of sets and, when it is to another page, the stack of pages.
//!
//! Memory is for what the program touches, not for how long it runs. For lines of 64 bytes: 6 bytes a line for the
//! numbers and slots of each page that is touched, and up to 16 a line for the histograms (4 for each maker that has
//! references with such distances). Together less than 24 bytes a line, and 32 a set.

pub mod profile;
pub mod settings;
pub mod split;

use heaptoll_reference::{Owner, Reference};

use crate::distance::Distances;
#[cfg(target_arch = "x86_64")]
use crate::distance::front::{Avx2, Avx512};
use crate::distance::front::{Fallen, Lanes, Portable};
use crate::forest::{Depths, Forest, MOST_LEVELS};
use crate::ids::{Ids, MOST_CHUNKS};
use crate::pages::Pages;
pub use profile::{Partial, Profile};
pub use settings::{BadSettings, Sampling, Settings};
pub use split::{Maker, Split};

/// No line.
const NONE: u64 = u64::MAX;
/// Chunks of lines that may be new before memory is counted again; and lines of a system call before it is looked at.
const CHECK_EVERY: u32 = 1 << 12;
/// References that are heard before memory is looked at.
const PART: usize = 1 << 15;
/// Chunks that can be new in a part, of which each reference touches at most 1023 bytes, or 129 lines of 8.
const MOST_NEW: u32 = 1 << 18;

/// References that are taken at once, so that each simulator goes through them in a loop of its own.
const BATCH: usize = 1024;

/// References to one line each, and room for what is between the simulators.
#[derive(Debug, Clone)]
struct Batch {
    lines: [u64; BATCH],
    numbers: [u32; BATCH],
    pages: [u32; BATCH],
    room: [Fallen; BATCH],
}

/// Simulates one process.
#[derive(Debug, Clone)]
pub struct Simulation {
    settings: Settings,
    line_shift: u32,
    /// The line touched last.
    last: u64,
    batch: Box<Batch>,
    ids: Ids,
    lines: Option<Distances>,
    forest: Option<Forest>,
    pages: Option<Pages>,
    references: Split<u64>,
    straddling: Split<u64>,
    /// With more chunks than this memory is looked at.
    check_at: u32,
    /// References that came after memory was over.
    unheard: Option<u64>,
}

impl Simulation {
    /// # Errors
    /// A setting that no simulation can be made with.
    pub fn new(settings: &Settings) -> Result<Simulation, BadSettings> {
        settings.check()?;
        let lines = || settings.sampling.map_or_else(Distances::new, Distances::sampled);
        Ok(Simulation {
            line_shift: settings.line_bytes.trailing_zeros(),
            last: NONE,
            batch: Box::new(Batch {
                lines: [0; BATCH],
                numbers: [0; BATCH],
                pages: [0; BATCH],
                room: [Fallen::default(); BATCH],
            }),
            ids: Ids::new(settings.line_bytes, settings.page_bytes),
            lines: settings.lines.then(lines),
            forest: settings.sets.as_ref().map(Forest::new),
            pages: settings.pages.then(Pages::new),
            references: Split::default(),
            straddling: Split::default(),
            check_at: CHECK_EVERY,
            unheard: None,
            settings: settings.clone(),
        })
    }

    /// Hears references of one owner, in order.
    pub fn references(&mut self, owner: Owner, references: &[Reference]) {
        let maker = Maker::from(owner);
        for part in references.chunks(PART) {
            *self.references.get_mut(maker) += part.len() as u64;
            if let Some(unheard) = &mut self.unheard {
                *unheard += part.len() as u64;
            } else {
                self.hear_part(maker, part);
                self.look_at_memory();
            }
        }
    }

    fn hear_part(&mut self, maker: Maker, references: &[Reference]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = Avx512::find() {
            // SAFETY: there is an `Avx512` only where the processor has the instructions.
            return unsafe { self.hear_with_avx512(avx512, maker, references) };
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::find() {
            // SAFETY: there is an `Avx2` only where the processor has the instructions.
            return unsafe { self.hear_with_avx2(avx2, maker, references) };
        }
        self.hear(Portable, maker, references);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,bmi1,popcnt")]
    fn hear_with_avx512(&mut self, avx512: Avx512, maker: Maker, references: &[Reference]) {
        self.hear(avx512, maker, references);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn hear_with_avx2(&mut self, avx2: Avx2, maker: Maker, references: &[Reference]) {
        self.hear(avx2, maker, references);
    }

    #[inline(always)]
    fn hear(&mut self, lanes: impl Lanes, maker: Maker, references: &[Reference]) {
        let shift = self.line_shift;
        let mut rest = references;
        while !rest.is_empty() {
            let mut last = self.last;
            let (mut heard, mut count) = (0, 0);
            let mut straddling = None;
            for (reference, _) in rest.iter().zip(0..BATCH) {
                let address = reference.address();
                let line = address >> shift;
                // A size of 0 is of no meaning, and no reason to go wrong.
                let end = (address + reference.size().max(1) - 1) >> shift;
                if line != end {
                    straddling = Some((line, end));
                    break;
                }
                self.batch.lines[count] = line;
                count += usize::from(line != last);
                last = line;
                heard += 1;
            }
            self.last = last;
            self.batch(lanes, maker, heard, count);
            rest = &rest[heard..];
            if let Some((first, end)) = straddling {
                self.several(maker, first, end);
                rest = &rest[1..];
            }
        }
    }

    /// So many references, of which those that are not to the line before are in the batch.
    #[inline(always)]
    fn batch(&mut self, lanes: impl Lanes, maker: Maker, heard: usize, count: usize) {
        let same = (heard - count) as u64;
        let Batch { lines, numbers, pages: of_pages, room } = &mut *self.batch;
        let (lines, numbers, of_pages) = (&mut lines[..count], &mut numbers[..count], &mut of_pages[..count]);
        for (number, &line) in numbers.iter_mut().zip(&*lines) {
            *number = self.ids.line(line);
        }
        if let Some(pages) = &mut self.pages {
            for ((page, &line), &number) in of_pages.iter_mut().zip(&*lines).zip(&*numbers) {
                *page = self.ids.page(line, number);
            }
            pages.references(lanes, maker, of_pages, room);
            pages.record_same(maker, same);
        }
        if let Some(distances) = &mut self.lines {
            distances.references(lanes, maker, numbers, room);
            distances.record_same(maker, same);
        }
        if let Some(forest) = &mut self.forest {
            forest.references(lanes, maker, lines, numbers);
        }
    }

    /// A reference to one or several lines, which misses where any of them does.
    #[inline(never)]
    fn several(&mut self, maker: Maker, first: u64, end: u64) {
        if first != end {
            *self.straddling.get_mut(maker) += 1;
        }
        self.last = end;
        let (mut lines_distance, mut pages_distance) = (0, 0);
        let mut depths: Depths = [0; MOST_LEVELS];
        for line in first..=end {
            let number = self.ids.line(line);
            if let Some(pages) = &mut self.pages {
                let distance = pages.touch(self.ids.page(line, number));
                pages_distance = pages_distance.max(distance);
            }
            if let Some(lines) = &mut self.lines {
                lines_distance = lines_distance.max(lines.touch(number));
            }
            if let Some(forest) = &mut self.forest {
                forest.touch(line, number, &mut depths);
            }
        }
        if let Some(pages) = &mut self.pages {
            pages.record(maker, pages_distance);
        }
        if let Some(lines) = &mut self.lines {
            lines.record(maker, lines_distance);
        }
        if let Some(forest) = &mut self.forest {
            forest.record(maker, &depths);
        }
    }

    /// Hears that the kernel reads or writes so many bytes for a system call: one reference for each line.
    pub fn kernel(&mut self, address: u64, length: u64) {
        if length == 0 {
            return;
        }
        let (first, end) =
            (address >> self.line_shift, address.saturating_add(length - 1) >> self.line_shift);
        for line in first..=end {
            self.references.system += 1;
            if let Some(unheard) = &mut self.unheard {
                *unheard += end - line + 1;
                self.references.system += end - line;
                return;
            }
            self.several(Maker::System, line, line);
            if line % u64::from(CHECK_EVERY) == 0 {
                self.look_at_memory();
            }
        }
        self.look_at_memory();
    }

    /// Bytes that the simulators take.
    pub fn bytes(&self) -> u64 {
        let pages = self.pages.as_ref().map_or(0, |pages| pages.distances().bytes());
        let lines = self.lines.as_ref().map_or(0, Distances::bytes);
        self.ids.bytes() + lines + pages + self.forest.as_ref().map_or(0, Forest::bytes)
    }

    #[inline(always)]
    fn look_at_memory(&mut self) {
        if self.ids.chunks() >= self.check_at {
            self.limit_memory();
        }
    }

    #[cold]
    fn limit_memory(&mut self) {
        self.check_at = self.ids.chunks() + CHECK_EVERY;
        if self.bytes() > self.settings.memory_limit || self.ids.chunks() > MOST_CHUNKS - MOST_NEW {
            self.unheard = Some(0);
        }
    }

    /// What was found.
    pub fn finish(self) -> Profile {
        let memory_bytes = self.bytes();
        let line_bytes = self.settings.line_bytes;
        Profile {
            line_bytes,
            page_bytes: self.settings.page_bytes,
            references: self.references,
            straddling: self.straddling,
            associative: self.forest.map_or_else(Vec::new, |forest| forest.caches(line_bytes)),
            lines: self.lines.map(|lines| lines.curve(line_bytes)),
            pages: self.pages.map(|pages| pages.curve(self.settings.page_bytes)),
            partial: self
                .unheard
                .map(|unheard| Partial::Memory { limit: self.settings.memory_limit, unheard }),
            memory_bytes,
        }
    }

    /// Whether all structures are whole.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.ids.check()?;
        if let Some(lines) = &self.lines {
            lines.check()?;
        }
        if let Some(pages) = &self.pages {
            pages.distances().check()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
