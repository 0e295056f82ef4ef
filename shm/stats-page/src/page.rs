//! The tool's side: makes a page and reads what the processes of a run left in it.

extern crate std;

use std::borrow::ToOwned;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::string::String;
use std::vec;
use std::vec::Vec;

use heaptoll_assertions::assert_internal;

use crate::layout::{HEADER_BYTES, IN_USE, MAGIC, SLOT_BYTES, VERSION, WriterKind};

/// The reason for which a page could not be made or read.
#[derive(Debug)]
pub enum PageError {
    /// The file could not be used.
    Io(PathBuf, io::Error),
    /// The file is not a statistics page of this version.
    Foreign(PathBuf),
}

impl core::fmt::Display for PageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PageError::Io(path, error) => write!(
                f,
                "the statistics page {} cannot be used ({error}); is its directory writable and not full?",
                path.display()
            ),
            PageError::Foreign(path) => write!(
                f,
                "{} is not a statistics page of version {VERSION}; it was overwritten or made by another heaptoll",
                path.display()
            ),
        }
    }
}

impl core::error::Error for PageError {}

/// The counters that one writer left for one process image; they are those of `include/heaptoll.h`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotRecord {
    /// What wrote it.
    pub kind: WriterKind,
    /// Process id.
    pub pid: i32,
    /// Its parent's when it claimed the slot.
    pub parent_pid: i32,
    /// `CLOCK_MONOTONIC` at the claim, ns.
    pub claimed_ns: u64,
    /// Name of the manager or layer.
    pub writer: String,
    /// The program, or the end of its path.
    pub exe: String,
    /// Bytes held from the system when last written.
    pub mapped_bytes: u64,
    /// Heap high-water mark, bytes.
    pub mapped_high_bytes: u64,
    /// Live bytes when last written.
    pub live_bytes: u64,
    /// High-water mark of live bytes.
    pub live_high_bytes: u64,
    /// Calls for a new block.
    pub malloc_calls: u64,
    /// Calls that resize one.
    pub realloc_calls: u64,
    /// Calls that free one.
    pub free_calls: u64,
    /// Of `malloc_calls`, those by `operator new`.
    pub new_calls: u64,
    /// Of `free_calls`, those by `operator delete`.
    pub delete_calls: u64,
    /// Calls that returned null.
    pub failed_calls: u64,
    /// Sum of requested sizes, bytes.
    pub requested_bytes: u64,
    /// Collections.
    pub collections: u64,
    /// Sum of pauses, ns.
    pub pause_total_ns: u64,
    /// Longest pause, ns.
    pub pause_max_ns: u64,
    /// Bytes reclaimed by collections.
    pub collected_bytes: u64,
    /// Searches through a free structure; 0 until the process ended by itself.
    pub searches: u64,
    /// Blocks examined in them.
    pub search_steps: u64,
    /// Blocks examined in the longest.
    pub search_longest: u64,
    /// Bytes of pages that hold a live block, now.
    pub used_bytes: u64,
    /// Its high-water mark.
    pub used_high_bytes: u64,
    /// Bytes in quarantined blocks, now.
    pub held_bytes: u64,
    /// Its high-water mark.
    pub held_high_bytes: u64,
    /// Times that a thread released its quarantined blocks.
    pub held_releases: u64,
    /// Blocks that were found changed when they left a quarantine.
    pub written_after_free: u64,
    /// Of `failed_calls`, those refused because the heap has a limit.
    pub refused_calls: u64,
    /// Processor time of collections, on all threads that took part, ns.
    pub collector_cpu_ns: u64,
    /// Places in use by the program that no collection could read: bits of [`crate::UnreadPlaces`].
    pub unread_places: u64,
    /// Why collections were abandoned: bits of [`crate::AbandonCause`].
    pub abandon_causes: u64,
}

/// A page made by the tool. The file stays when this is dropped; it belongs in a temporary directory.
#[derive(Debug)]
pub struct StatsPage {
    path: PathBuf,
    file: File,
    slots: u32,
}

impl StatsPage {
    /// Makes a page of `slots` slots at `path`, readable and writable by this user only. The file is sparse: unused
    /// slots take no memory.
    ///
    /// # Errors
    /// [`PageError::Io`] when the file cannot be made, for example because it exists.
    pub fn create(path: &Path, slots: u32) -> Result<StatsPage, PageError> {
        let failed = |error| PageError::Io(path.to_owned(), error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let mut header = [0u8; 24];
        header[0..8].copy_from_slice(&MAGIC.to_ne_bytes());
        header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
        header[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_ne_bytes());
        header[16..20].copy_from_slice(&(SLOT_BYTES as u32).to_ne_bytes());
        header[20..24].copy_from_slice(&slots.to_ne_bytes());
        file.set_len(HEADER_BYTES as u64 + u64::from(slots) * SLOT_BYTES as u64).map_err(failed)?;
        file.write_all_at(&header, 0).map_err(failed)?;
        Ok(StatsPage { path: path.to_owned(), file, slots })
    }

    /// The file's path, for `HEAPTOLL_STATS`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file itself, for giving it to another user.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Every slot filled in so far, in the order of their claims. Counters of running processes keep changing.
    ///
    /// # Errors
    /// [`PageError`] when the file cannot be read or a program overwrote it.
    pub fn read(&self) -> Result<Vec<SlotRecord>, PageError> {
        let failed = |error| PageError::Io(self.path.clone(), error);
        let claimed = self.claimed()?.min(self.slots) as usize;
        assert_internal!(claimed <= self.slots as usize, "no more slots are read than the page has");
        let mut bytes = vec![0u8; claimed * SLOT_BYTES];
        self.file.read_exact_at(&mut bytes, HEADER_BYTES as u64).map_err(failed)?;
        Ok(bytes.chunks_exact(SLOT_BYTES).filter_map(record).collect())
    }

    /// How many writers found no slot left; their counts are missing.
    ///
    /// # Errors
    /// As [`StatsPage::read`].
    pub fn left_out(&self) -> Result<u32, PageError> {
        Ok(self.claimed()?.saturating_sub(self.slots))
    }

    /// Clears all slots, for the next run. No process of the last run may be running: it would keep writing to a slot
    /// that is claimed again.
    ///
    /// # Errors
    /// [`PageError::Io`].
    pub fn clear(&self) -> Result<(), PageError> {
        let failed = |error| PageError::Io(self.path.clone(), error);
        let used = self.claimed()?.min(self.slots) as usize;
        self.file.write_all_at(&vec![0u8; used * SLOT_BYTES], HEADER_BYTES as u64).map_err(failed)?;
        self.file.write_all_at(&[0; 4], 24).map_err(failed)
    }

    fn claimed(&self) -> Result<u32, PageError> {
        let mut header = [0u8; 28];
        self.file.read_exact_at(&mut header, 0).map_err(|error| PageError::Io(self.path.clone(), error))?;
        if word(&header, 0) != MAGIC || half(&header, 8) != VERSION {
            return Err(PageError::Foreign(self.path.clone()));
        }
        Ok(half(&header, 24))
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(half)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn record(slot: &[u8]) -> Option<SlotRecord> {
    assert_internal!(slot.len() == SLOT_BYTES, "a record is read from a whole slot");
    if half(slot, 0) != IN_USE {
        return None;
    }
    let kind = match half(slot, 4) {
        1 => WriterKind::Manager,
        2 => WriterKind::Layer,
        _ => return None,
    };
    Some(SlotRecord {
        kind,
        pid: half(slot, 8).cast_signed(),
        parent_pid: half(slot, 12).cast_signed(),
        claimed_ns: word(slot, 16),
        writer: text(&slot[32..64]),
        exe: text(&slot[64..256]),
        mapped_bytes: word(slot, 256),
        mapped_high_bytes: word(slot, 264),
        live_bytes: word(slot, 272),
        live_high_bytes: word(slot, 280),
        malloc_calls: word(slot, 288),
        realloc_calls: word(slot, 296),
        free_calls: word(slot, 304),
        new_calls: word(slot, 312),
        delete_calls: word(slot, 320),
        failed_calls: word(slot, 328),
        requested_bytes: word(slot, 336),
        collections: word(slot, 344),
        pause_total_ns: word(slot, 352),
        pause_max_ns: word(slot, 360),
        collected_bytes: word(slot, 368),
        searches: word(slot, 376),
        search_steps: word(slot, 384),
        search_longest: word(slot, 392),
        used_bytes: word(slot, 400),
        used_high_bytes: word(slot, 408),
        held_bytes: word(slot, 416),
        held_high_bytes: word(slot, 424),
        held_releases: word(slot, 432),
        written_after_free: word(slot, 440),
        refused_calls: word(slot, 448),
        collector_cpu_ns: word(slot, 456),
        unread_places: word(slot, 464),
        abandon_causes: word(slot, 472),
    })
}
