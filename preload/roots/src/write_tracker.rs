//! Which pages of private memory were written since they were scanned last, for collectors that read old objects only where
//! they changed (Demers et al. 1990; Boehm, Demers and Shenker 1991).
//!
//! What is not known to be clean is dirty. A page is shown as written unless this tracker has protected it and nothing has
//! written to it since. Each scan has the kernel fail where a mapping does not record writes (it was made, moved or
//! replaced meanwhile), and the mappings are read before it: memory that other processes share is never tracked, nor is any
//! while the kernel may write to pages that it has pinned (io_uring, asynchronous input).

use core::ffi::{CStr, c_int};
use core::ops::Range;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::MapsEntry;

use crate::buffer::{Buffer, NoMemory};
use crate::descriptors;
use crate::entries;
use crate::kernel::{self, Error, File, PAGE};
use crate::maps::{self, MapsError};
use crate::pages::PAGEMAP;
use crate::proc;
use crate::scan::{self, REGIONS, Region, SCAN, Scan};
use crate::userfault::Userfault;

const STATUS: &CStr = c"/proc/thread-self/status";

/// Names of mappings by which the kernel writes to pages of the program that it has pinned.
const PINNING: [&[u8]; 2] = [b"anon_inode:[io_uring]", b"/[aio]"];

/// Why it is not known which pages were written. All were, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untracked {
    /// The kernel does not record writes (before Linux 6.7), or does not allow it: its error number.
    Kernel(c_int),
    /// A filter of system calls was in force before the descriptor was opened.
    Filtered,
    /// The program has closed the descriptor.
    Closed,
    /// A part of the memory is not private and anonymous, or was mapped, moved or replaced since the last scan.
    Mapping,
    /// The kernel may write to pages without a trace: the program has a ring of requests.
    Pinned,
    /// `/proc` cannot be read.
    Proc,
    /// No memory for the lists.
    NoMemory,
}

impl Untracked {
    /// Whether a later scan may find what was written.
    pub const fn may_pass(self) -> bool {
        match self {
            Untracked::Kernel(_) | Untracked::Filtered | Untracked::Closed => false,
            Untracked::Mapping | Untracked::Pinned | Untracked::Proc | Untracked::NoMemory => true,
        }
    }
}

impl From<NoMemory> for Untracked {
    fn from(_: NoMemory) -> Untracked {
        Untracked::NoMemory
    }
}

impl From<Error> for Untracked {
    fn from(_: Error) -> Untracked {
        Untracked::Proc
    }
}

impl From<MapsError> for Untracked {
    fn from(error: MapsError) -> Untracked {
        match error {
            MapsError::NoMemory => Untracked::NoMemory,
            MapsError::NoDescriptor | MapsError::Unreadable => Untracked::Proc,
        }
    }
}

/// Whether there is a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not in this process yet.
    Unopened,
    Open(Userfault),
    /// There will be none.
    Unavailable(Untracked),
}

/// Records writes to one range of memory, which only grows at its end.
#[derive(Debug)]
pub struct WriteTracker {
    state: State,
    /// The process that has opened the descriptor, whose memory it acts on.
    process: i32,
    /// What is registered.
    tracked: Range<usize>,
    text: Buffer<u8>,
    regions: Buffer<Region>,
}

impl WriteTracker {
    /// A tracker that has no descriptor yet.
    pub const fn new() -> WriteTracker {
        WriteTracker {
            state: State::Unopened,
            process: 0,
            tracked: 0..0,
            text: Buffer::new(),
            regions: Buffer::new(),
        }
    }

    /// The addresses of its working memory, which is no root.
    pub fn ranges(&self) -> [Range<usize>; 2] {
        [self.text.range(), self.regions.range()]
    }

    /// Opens the descriptor, if there is none. Called at the process's start, so that a filter of system calls that comes
    /// later meets none that is new.
    ///
    /// # Errors
    /// The kernel has no such records, or does not allow them.
    pub fn open(&mut self) -> Result<(), Untracked> {
        match self.state {
            State::Open(_) => Ok(()),
            State::Unavailable(cause) => Err(cause),
            State::Unopened => {
                let opened = if is_filtered() {
                    Err(Untracked::Filtered)
                } else {
                    Userfault::open().map_err(|Error(number)| Untracked::Kernel(number))
                };
                self.process = kernel::process();
                self.tracked = 0..0;
                self.state = opened.map_or_else(State::Unavailable, State::Open);
                opened.map(drop)
            }
        }
    }

    /// Whether there may be a descriptor.
    pub fn is_available(&self) -> bool {
        !matches!(self.state, State::Unavailable(_))
    }

    /// In the child of a fork: its memory is recorded by no descriptor, and the inherited one acts on its parent's.
    pub fn after_fork_in_child(&mut self) {
        if let State::Open(userfault) = self.state {
            userfault.0.close();
        }
        if self.state != State::Unopened {
            *self = WriteTracker {
                text: core::mem::take(&mut self.text),
                regions: core::mem::take(&mut self.regions),
                ..WriteTracker::new()
            };
        }
    }

    /// Begins a scan of memory that begins where it did in the last scan. While it lasts no thread writes to the memory.
    ///
    /// # Errors
    /// [`Untracked`]: all pages count as written.
    pub fn scan(&mut self, memory: Range<usize>) -> Result<WriteScan<'_>, Untracked> {
        assert_internal!(
            memory.start.is_multiple_of(PAGE) && memory.end.is_multiple_of(PAGE) && !memory.is_empty(),
            "what is tracked is of whole pages"
        );
        self.open()?;
        let userfault = self.verified()?;
        self.regions.reserve(REGIONS)?;
        survey(&mut self.text, &memory)?;
        if self.tracked.start != memory.start {
            self.tracked = memory.start..memory.start;
        }
        self.register(userfault, memory.end)?;
        self.resume()
    }

    /// Has the memory of the last scan end there, if that is further: what is new counts as written. To do so in parts takes
    /// less time at once than to leave it to the next scan. Without a scan there is nothing to do.
    ///
    /// # Errors
    /// [`Untracked`]: all pages count as written.
    pub fn extend(&mut self, end: usize) -> Result<(), Untracked> {
        if self.tracked.is_empty() || end <= self.tracked.end {
            return Ok(());
        }
        let userfault = self.verified()?;
        self.register(userfault, end)
    }

    /// Ends the records until the next scan, to which all memory is new. While there are records the kernel brings in one
    /// page at a time.
    pub fn release(&mut self) {
        let tracked = core::mem::replace(&mut self.tracked, 0..0);
        if !tracked.is_empty()
            && let Ok(userfault) = self.verified()
        {
            // What it cannot do the next registration finds done.
            let _ = userfault.unregister(&tracked);
        }
    }

    /// The descriptor, if it is still this tracker's.
    fn verified(&mut self) -> Result<Userfault, Untracked> {
        let State::Open(userfault) = self.state else { return Err(Untracked::Closed) };
        if self.process != kernel::process() || userfault.0.verified().is_none() {
            self.state = State::Unavailable(Untracked::Closed);
            return Err(Untracked::Closed);
        }
        Ok(userfault)
    }

    fn register(&mut self, userfault: Userfault, end: usize) -> Result<(), Untracked> {
        if self.tracked.end < end {
            userfault
                .register(&(self.tracked.end..end))
                .map_err(|Error(number)| Untracked::Kernel(number))?;
            self.tracked.end = end;
        }
        Ok(())
    }

    /// Goes on with the last scan, in the same stop.
    ///
    /// # Errors
    /// [`Untracked`]: all pages count as written.
    pub fn resume(&mut self) -> Result<WriteScan<'_>, Untracked> {
        let pagemap = File::open(PAGEMAP).map_err(|_| Untracked::Proc)?;
        Ok(WriteScan { pagemap, tracked: &mut self.tracked, regions: &mut self.regions })
    }
}

impl Default for WriteTracker {
    fn default() -> WriteTracker {
        WriteTracker::new()
    }
}

/// A scan of tracked memory.
pub struct WriteScan<'a> {
    pagemap: File,
    tracked: &'a mut Range<usize>,
    regions: &'a mut Buffer<Region>,
}

impl WriteScan<'_> {
    /// Shows the pages of a range that may have been written since they were last shown or, protected, not shown; and
    /// protects them again.
    ///
    /// # Errors
    /// [`Untracked`]: all pages of all ranges count as written, now and, where this scan has shown some already, for the
    /// caller alone, since a next scan will not show those again.
    pub fn written(
        &mut self,
        range: Range<usize>,
        each: &mut dyn FnMut(Range<usize>),
    ) -> Result<(), Untracked> {
        assert_internal!(
            self.tracked.start <= range.start && range.end <= self.tracked.end,
            "what is scanned for writes is tracked"
        );
        let mut at = range.start;
        while at < range.end {
            let mut request = Scan {
                size: size_of::<Scan>() as u64,
                flags: scan::PROTECT | scan::CHECK_TRACKED,
                start: at as u64,
                end: range.end as u64,
                regions: self.regions.capacity_mut().as_mut_ptr() as u64,
                regions_length: REGIONS as u64,
                all_of: scan::WRITTEN,
                output_categories: scan::WRITTEN,
                ..Scan::default()
            };
            // SAFETY: the request takes this structure; the regions are writable for `REGIONS` entries, which
            // `WriteTracker::scan` has reserved.
            let got = unsafe { self.pagemap.control(SCAN, &mut request) };
            let end = request.walk_end as usize;
            let Ok(count) = got else { return Err(self.forget()) };
            if end <= at || end > range.end {
                return Err(self.forget());
            }
            for region in self.regions.capacity_mut().get(..count).unwrap_or_default() {
                let found = region.start as usize..region.end as usize;
                assert_internal!(
                    at <= found.start && found.end <= end && !found.is_empty(),
                    "pages that are shown lie in the range that was requested"
                );
                each(found);
            }
            at = end;
        }
        Ok(())
    }

    /// A mapping does not record writes: the next scan registers all memory again, and shows all of it.
    fn forget(&mut self) -> Untracked {
        *self.tracked = 0..0;
        Untracked::Mapping
    }
}

/// Verifies that a range is mapped, private, anonymous and writable throughout, and that the kernel does not write to pages
/// that it has pinned. Rings are mapped shared: through a private mapping a program submits nothing.
fn survey(text: &mut Buffer<u8>, memory: &Range<usize>) -> Result<(), Untracked> {
    let (mut at, mut fits, mut pinned) = (memory.start, true, false);
    text.reserve(entries::CAPACITY)?;
    maps::read_part(text, memory, &mut |line: MapsEntry<'_>| {
        pinned |= PINNING.iter().any(|name| line.name.starts_with(name));
        if line.range.start < memory.end && line.range.end > memory.start {
            let anonymous = line.name.is_empty() || line.name.starts_with(b"[anon:");
            let plain = line.private && line.readable && line.writable && anonymous && line.file == (0, 0);
            fits &= plain && line.range.start <= at;
            at = at.max(line.range.end);
        }
        Ok(())
    })?;
    if pinned || descriptors::has_ring(text)? {
        return Err(Untracked::Pinned);
    }
    if fits && at >= memory.end { Ok(()) } else { Err(Untracked::Mapping) }
}

/// Whether a filter of system calls holds the process, as far as can be read.
fn is_filtered() -> bool {
    let mut text = [0; 4096];
    let got = File::open(STATUS).and_then(|file| file.read(&mut text)).unwrap_or(0);
    text.get(..got).and_then(|text| proc::field(text, b"Seccomp:")) != Some(b"0")
}
