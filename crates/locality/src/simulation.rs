//! All simulators over one stream of references, in one pass.
//!
//! A reference to the line of the one before is only counted: it hits everywhere and changes nothing. The rest goes to
//! the stack of lines and, if it is to another page, the stack of pages. The forest of sets gets only lines that are
//! not the most recent of their set in the smallest cache; the others are the most recent in every cache, and nothing
//! changes there (set refinement, Hill & Smith 1989). Three in four references end there, for any other simulator of
//! sets as well ([`Simulation::sift`]).
//!
//! Memory depends on what the program touches, not on how long it runs. For lines of 64 bytes: 6 bytes a line for the
//! numbers and slots of each page that is touched, and up to 16 a line for the histograms (4 for each accessor that has
//! references with such distances). Together less than 24 bytes a line, and 32 a set.

pub mod profile;
pub mod settings;

use heaptoll_reftrace::Reference;

use crate::distance::Distances;
#[cfg(target_arch = "x86_64")]
use crate::distance::front::{Avx2, Avx512};
use crate::distance::front::{Fallen, Lanes, Portable};
use crate::forest::{Depths, Forest, MOST_LEVELS};
use crate::ids::{Ids, MOST_CHUNKS};
use crate::pages::Pages;
pub use crate::sampled::Sampling;
pub use crate::split::{Accessor, Split};
pub use profile::{Partial, Profile};
pub use settings::{BadSettings, Settings};

/// No line.
const NONE: u64 = u64::MAX;
/// New chunks of lines after which memory is counted again; and lines of a system call between two checks.
const CHECK_EVERY: u32 = 1 << 12;
/// References between two checks of memory.
const PART: usize = 1 << 15;
/// Most new chunks in a part, of which each reference touches at most 1023 bytes, or 129 lines of 8.
const MOST_NEW: u32 = 1 << 18;

/// References that are processed at once, so that each simulator has a loop of its own over them.
const BATCH: usize = 1024;

/// Most sets of the sieve, as a power of two.
const MOST_SIEVE: u32 = 5;

/// References to one line each, and buffers between the simulators.
#[derive(Debug, Clone)]
struct Batch {
    /// References not to the line before.
    others: [Reference; BATCH],
    numbers: [u32; BATCH],
    /// References not to the most recent line of a set.
    sifted: [Reference; BATCH],
    lines: [u64; BATCH],
    numbers_of_lines: [u32; BATCH],
    pages: [u32; BATCH],
    scratch: [Fallen; BATCH],
}

/// Simulates one process.
#[derive(Debug, Clone)]
pub struct Simulation {
    settings: Settings,
    line_shift: u32,
    /// The line touched last.
    last: u64,
    /// Whether the last reference was the program's.
    last_by_program: bool,
    /// Twice the most recent line of each set, plus 1 if the program has touched it since.
    sieve: [u64; 1 << MOST_SIEVE],
    /// Sets of the sieve - 1: at most as many as the forest's.
    sieve_mask: u64,
    batch: Box<Batch>,
    ids: Ids,
    lines: Option<Distances>,
    forest: Option<Forest>,
    pages: Option<Pages>,
    references: Split<u64>,
    straddling: Split<u64>,
    /// Number of chunks from which memory is checked.
    check_at: u32,
    /// References that came after memory ran out.
    unsimulated: Option<u64>,
}

impl Simulation {
    /// A setting that cannot be simulated.
    /// A setting that no simulation can be made with.
    pub fn new(settings: &Settings) -> Result<Simulation, BadSettings> {
        settings.check()?;
        let lines = || settings.sampling.map_or_else(Distances::new, Distances::sampled);
        Ok(Simulation {
            line_shift: settings.line_bytes.trailing_zeros(),
            last: NONE,
            last_by_program: false,
            sieve: [NONE; 1 << MOST_SIEVE],
            sieve_mask: (1
                << settings.sets.as_ref().map_or(MOST_SIEVE, |sets| MOST_SIEVE.min(*sets.start())))
                - 1,
            batch: Box::new(Batch {
                others: [Reference(0); BATCH],
                numbers: [0; BATCH],
                sifted: [Reference(0); BATCH],
                lines: [0; BATCH],
                numbers_of_lines: [0; BATCH],
                pages: [0; BATCH],
                scratch: [Fallen::default(); BATCH],
            }),
            ids: Ids::new(settings.line_bytes, settings.page_bytes),
            lines: settings.lines.then(lines),
            forest: settings.sets.as_ref().map(Forest::new),
            pages: settings.pages.then(Pages::new),
            references: Split::default(),
            straddling: Split::default(),
            check_at: CHECK_EVERY,
            unsimulated: None,
            settings: settings.clone(),
        })
    }

    /// Processes references of one accessor, in order.
    pub fn references(&mut self, accessor: impl Into<Accessor>, references: &[Reference]) {
        self.all_parts(accessor.into(), references, None);
    }

    /// Processes references of one accessor, in order, and appends to `sifted` those that another simulator has to process
    /// as well.
    ///
    /// The others are to the line touched last in one of [`Simulation::sieve_sets`] sets (the lowest bits of a line
    /// select the set), and, if they are of the program, touched by it since; also since [`Simulation::forget`]. So
    /// they hit and change nothing in any cache whose number of sets is a multiple, and are not the first to any line.
    pub fn sift(
        &mut self,
        accessor: impl Into<Accessor>,
        references: &[Reference],
        sifted: &mut Vec<Reference>,
    ) {
        self.all_parts(accessor.into(), references, Some(sifted));
    }

    /// Number of sets of the sieve.
    pub fn sieve_sets(&self) -> u64 {
        self.sieve_mask + 1
    }

    /// Empties the sieve: it passes the next reference to each line.
    pub fn forget(&mut self) {
        self.last = NONE;
        self.sieve.fill(NONE);
    }

    fn all_parts(
        &mut self,
        accessor: Accessor,
        references: &[Reference],
        mut sifted: Option<&mut Vec<Reference>>,
    ) {
        let by_program = accessor == Accessor::Program;
        if by_program != self.last_by_program {
            // The line is the same, but the owner of the reference is not.
            (self.last, self.last_by_program) = (NONE, by_program);
        }
        for part in references.chunks(PART) {
            *self.references.get_mut(accessor) += part.len() as u64;
            if let Some(unsimulated) = &mut self.unsimulated {
                *unsimulated += part.len() as u64;
                if let Some(sifted) = &mut sifted {
                    sifted.extend_from_slice(part);
                }
            } else {
                self.simulate_part(accessor, part, sifted.as_deref_mut());
                self.check_memory();
            }
        }
    }

    fn simulate_part(
        &mut self,
        accessor: Accessor,
        references: &[Reference],
        sifted: Option<&mut Vec<Reference>>,
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = Avx512::find() {
            // SAFETY: the value `avx512` proves that the processor has the instructions: `Avx512::find` checked them.
            return unsafe { self.simulate_with_avx512(avx512, accessor, references, sifted) };
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::find() {
            // SAFETY: the value `avx2` proves that the processor has the instructions: `Avx2::find` checked them.
            return unsafe { self.simulate_with_avx2(avx2, accessor, references, sifted) };
        }
        self.simulate(Portable, accessor, references, sifted);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,bmi1,popcnt")]
    fn simulate_with_avx512(
        &mut self,
        avx512: Avx512,
        accessor: Accessor,
        references: &[Reference],
        sifted: Option<&mut Vec<Reference>>,
    ) {
        self.simulate(avx512, accessor, references, sifted);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn simulate_with_avx2(
        &mut self,
        avx2: Avx2,
        accessor: Accessor,
        references: &[Reference],
        sifted: Option<&mut Vec<Reference>>,
    ) {
        self.simulate(avx2, accessor, references, sifted);
    }

    #[inline(always)]
    fn simulate(
        &mut self,
        lanes: impl Lanes,
        accessor: Accessor,
        references: &[Reference],
        mut sifted: Option<&mut Vec<Reference>>,
    ) {
        let shift = self.line_shift;
        let mut rest = references;
        while !rest.is_empty() {
            let mut last = self.last;
            let (mut consumed, mut count) = (0, 0);
            let mut straddling = None;
            for (reference, _) in rest.iter().zip(0..BATCH) {
                let address = reference.address();
                let line = address >> shift;
                // A size of 0 is invalid, but must not cause an error.
                let end = (address + reference.size().max(1) - 1) >> shift;
                if line != end {
                    straddling = Some((line, end));
                    break;
                }
                self.batch.others[count] = *reference;
                count += usize::from(line != last);
                last = line;
                consumed += 1;
            }
            self.last = last;
            let kept = self.batch(lanes, accessor, consumed, count);
            if let Some(sifted) = &mut sifted {
                sifted.extend_from_slice(&self.batch.sifted[..kept]);
            }
            if let Some((first, end)) = straddling {
                self.several(accessor, first, end);
                if let Some(sifted) = &mut sifted {
                    sifted.push(rest[consumed]);
                }
                consumed += 1;
            }
            rest = &rest[consumed..];
        }
    }

    /// Processes `consumed` references, of which those that are not to the line before are in the batch. Returns how
    /// many the sieve passed.
    #[inline(always)]
    fn batch(&mut self, lanes: impl Lanes, accessor: Accessor, consumed: usize, count: usize) -> usize {
        let Batch { others, numbers, sifted, lines, numbers_of_lines, pages: of_pages, scratch } =
            &mut *self.batch;
        let (others, numbers) = (&others[..count], &mut numbers[..count]);
        let shift = self.line_shift;
        let page_shift = self.settings.page_bytes.trailing_zeros() - shift;
        let (program, mask) = (u64::from(accessor == Accessor::Program), self.sieve_mask as usize);
        let (mut kept, mut kept_pages, mut last_page) = (0, 0, NONE);
        for (number, reference) in numbers.iter_mut().zip(others) {
            let line = reference.address() >> shift;
            *number = self.ids.line(line);
            let set = &mut self.sieve[line as usize & mask & ((1 << MOST_SIEVE) - 1)];
            // What the program has touched was touched by an accessor.
            let passes = *set | (program ^ 1) != line << 1 | 1;
            *set = if passes { line << 1 | program } else { *set };
            (sifted[kept], lines[kept], numbers_of_lines[kept]) = (*reference, line, *number);
            kept += usize::from(passes);
            if self.pages.is_some() {
                of_pages[kept_pages] = self.ids.page(line, *number);
                kept_pages += usize::from(line >> page_shift != last_page);
                last_page = line >> page_shift;
            }
        }
        if let Some(pages) = &mut self.pages {
            pages.references(lanes, accessor, &mut of_pages[..kept_pages], scratch);
            pages.record_same(accessor, (consumed - kept_pages) as u64);
        }
        if let Some(distances) = &mut self.lines {
            distances.references(lanes, accessor, numbers, scratch);
            distances.record_same(accessor, (consumed - count) as u64);
        }
        if let Some(forest) = &mut self.forest {
            forest.references(lanes, accessor, &mut lines[..kept], &mut numbers_of_lines[..kept]);
        }
        kept
    }

    /// A reference to one or several lines, which misses if any of them does.
    #[inline(never)]
    fn several(&mut self, accessor: Accessor, first: u64, end: u64) {
        if first != end {
            *self.straddling.get_mut(accessor) += 1;
        }
        self.last = end;
        let (mut lines_distance, mut pages_distance) = (0, 0);
        let mut depths: Depths = [0; MOST_LEVELS];
        for line in first..=end {
            self.sieve[(line & self.sieve_mask) as usize] =
                line << 1 | u64::from(accessor == Accessor::Program);
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
            pages.record(accessor, pages_distance);
        }
        if let Some(lines) = &mut self.lines {
            lines.record(accessor, lines_distance);
        }
        if let Some(forest) = &mut self.forest {
            forest.record(accessor, &depths);
        }
    }

    /// Processes an access of the kernel to this many bytes for a system call: one reference for each line.
    pub fn kernel(&mut self, address: u64, length: u64) {
        if length == 0 {
            return;
        }
        let (first, end) =
            (address >> self.line_shift, address.saturating_add(length - 1) >> self.line_shift);
        for line in first..=end {
            self.references.system += 1;
            if let Some(unsimulated) = &mut self.unsimulated {
                *unsimulated += end - line + 1;
                self.references.system += end - line;
                return;
            }
            self.several(Accessor::System, line, line);
            // The owner of the call is not known.
            self.last = NONE;
            if line % u64::from(CHECK_EVERY) == 0 {
                self.check_memory();
            }
        }
        self.check_memory();
    }

    /// Memory of the simulators, bytes.
    pub fn bytes(&self) -> u64 {
        let pages = self.pages.as_ref().map_or(0, |pages| pages.distances().bytes());
        let lines = self.lines.as_ref().map_or(0, Distances::bytes);
        self.ids.bytes() + lines + pages + self.forest.as_ref().map_or(0, Forest::bytes)
    }

    #[inline(always)]
    fn check_memory(&mut self) {
        if self.ids.chunks() >= self.check_at {
            self.limit_memory();
        }
    }

    #[cold]
    fn limit_memory(&mut self) {
        self.check_at = self.ids.chunks() + CHECK_EVERY;
        if self.bytes() > self.settings.memory_limit || self.ids.chunks() > MOST_CHUNKS - MOST_NEW {
            self.unsimulated = Some(0);
        }
    }

    /// The results.
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
                .unsimulated
                .map(|unsimulated| Partial::Memory { limit: self.settings.memory_limit, unsimulated }),
            memory_bytes,
        }
    }

    /// Checks the invariants of all structures.
    ///
    /// # Errors
    /// The first violation.
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
