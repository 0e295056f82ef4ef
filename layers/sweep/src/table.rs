//! Every live block by address: a table of bits and sizes over chunks of 1 MiB.

use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heaptoll_sweeping::list::{List, NoMemory, system_call};

const CHUNK: usize = 1 << 20;
const TOP: usize = 1 << 13;
const LOW: usize = 1 << 14;
const SLOTS: usize = CHUNK / 8;

pub struct Block {
    pub start: usize,
    pub bytes: usize,
}

struct Chunk {
    starts: [u64; SLOTS / 64],
    marks: [u64; SLOTS / 64],
    blocks: usize,
    cover: usize,
    pages: [u16; 256],
    sizes: [u32; SLOTS],
}

struct Level {
    chunks: [*mut Chunk; LOW],
}

struct Inner {
    top: [*mut Level; TOP],
    known: List<usize>,
    stack: List<(usize, usize)>,
}

pub struct Tables {
    lock: AtomicBool,
    inner: UnsafeCell<Inner>,
    blocks: AtomicUsize,
    bytes: AtomicUsize,
    pages: AtomicUsize,
    pages_high: AtomicUsize,
}

// SAFETY: behind the lock.
unsafe impl Sync for Tables {}

fn map<T>() -> *mut T {
    let bytes = size_of::<T>().next_multiple_of(4096);
    // SAFETY: a new mapping.
    let made = unsafe { system_call(libc::SYS_mmap, [0, bytes, 3, 0x22, usize::MAX, 0]) };
    if made < 0 { core::ptr::null_mut() } else { made as *mut T }
}

impl Inner {
    fn chunk(&mut self, address: usize, make: bool) -> Option<&mut Chunk> {
        let number = address >> 20;
        let (high, low) = (number / LOW, number % LOW);
        if high >= TOP {
            return None;
        }
        // SAFETY: mapped for ever.
        unsafe {
            if self.top[high].is_null() {
                if !make {
                    return None;
                }
                self.top[high] = map();
            }
            let level = self.top[high].as_mut()?;
            if level.chunks[low].is_null() {
                if !make {
                    return None;
                }
                level.chunks[low] = map();
                self.known.push(number).ok()?;
            }
            level.chunks[low].as_mut()
        }
    }

    fn find(&mut self, address: usize) -> Option<Block> {
        let chunk = self.chunk(address, false)?;
        let slot = (address & (CHUNK - 1)) / 8;
        let mut word = slot / 64;
        let mut bits = chunk.starts[word] & (u64::MAX >> (63 - slot % 64));
        let start = loop {
            if bits != 0 {
                let at = word * 64 + 63 - bits.leading_zeros() as usize;
                break (address & !(CHUNK - 1)) + at * 8;
            }
            if word == 0 {
                break chunk.cover;
            }
            word -= 1;
            bits = chunk.starts[word];
        };
        if start == 0 {
            return None;
        }
        let bytes = self.bytes_of(start)?;
        (address < start + bytes).then_some(Block { start, bytes })
    }

    fn bytes_of(&mut self, start: usize) -> Option<usize> {
        let chunk = self.chunk(start, false)?;
        let slot = (start & (CHUNK - 1)) / 8;
        (start.is_multiple_of(8) && chunk.starts[slot / 64] >> (slot % 64) & 1 == 1)
            .then(|| chunk.sizes[slot] as usize * 8)
    }

    fn mark(&mut self, address: usize) {
        if let Some(Block { start, bytes }) = self.find(address) {
            let Some(chunk) = self.chunk(start, false) else { return };
            let slot = (start & (CHUNK - 1)) / 8;
            if chunk.marks[slot / 64] >> (slot % 64) & 1 == 0 {
                chunk.marks[slot / 64] |= 1 << (slot % 64);
                let _ = self.stack.push((start, bytes));
            }
        }
    }
}

impl Tables {
    pub const fn new() -> Tables {
        Tables {
            lock: AtomicBool::new(false),
            inner: UnsafeCell::new(Inner {
                top: [core::ptr::null_mut(); TOP],
                known: List::new(),
                stack: List::new(),
            }),
            blocks: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            pages: AtomicUsize::new(0),
            pages_high: AtomicUsize::new(0),
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R {
        while self.lock.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: locked.
        let done = work(unsafe { &mut *self.inner.get() });
        self.lock.store(false, Ordering::Release);
        done
    }

    fn count(&self, inner: &mut Inner, range: Range<usize>, new: bool) {
        for page in (range.start & !4095..range.end).step_by(4096) {
            let Some(chunk) = inner.chunk(page, true) else { return };
            let count = &mut chunk.pages[(page & (CHUNK - 1)) >> 12];
            if new {
                *count += 1;
                if *count == 1 {
                    let now = self.pages.fetch_add(1, Ordering::Relaxed) + 1;
                    self.pages_high.fetch_max(now, Ordering::Relaxed);
                }
            } else {
                *count -= 1;
                if *count == 0 {
                    self.pages.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    pub fn insert(&self, start: usize, bytes: usize) -> Result<(), NoMemory> {
        let bytes = bytes.next_multiple_of(8);
        self.with(|inner| {
            let chunk = inner.chunk(start, true).ok_or(NoMemory)?;
            let slot = (start & (CHUNK - 1)) / 8;
            chunk.starts[slot / 64] |= 1 << (slot % 64);
            chunk.marks[slot / 64] &= !(1 << (slot % 64));
            chunk.sizes[slot] = (bytes / 8) as u32;
            chunk.blocks += 1;
            let mut at = (start & !(CHUNK - 1)) + CHUNK;
            while at < start + bytes {
                inner.chunk(at, true).ok_or(NoMemory)?.cover = start;
                at += CHUNK;
            }
            self.count(inner, start..start + bytes, true);
            self.blocks.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        })
    }

    fn take(&self, inner: &mut Inner, start: usize) -> Option<usize> {
        let bytes = inner.bytes_of(start)?;
        let chunk = inner.chunk(start, false)?;
        let slot = (start & (CHUNK - 1)) / 8;
        chunk.starts[slot / 64] &= !(1 << (slot % 64));
        chunk.blocks -= 1;
        let mut at = (start & !(CHUNK - 1)) + CHUNK;
        while at < start + bytes {
            inner.chunk(at, true)?.cover = 0;
            at += CHUNK;
        }
        self.count(inner, start..start + bytes, false);
        self.blocks.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Some(bytes)
    }

    pub fn remove(&self, start: usize) -> Option<usize> {
        self.with(|inner| self.take(inner, start))
    }

    pub fn bytes_of(&self, start: usize) -> Option<usize> {
        self.with(|inner| inner.bytes_of(start))
    }

    pub fn blocks(&self) -> usize {
        self.blocks.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn used_pages(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
    }

    pub fn used_pages_high(&self) -> usize {
        self.pages_high.load(Ordering::Relaxed)
    }

    /// The first block that ends behind an address.
    pub fn following(&self, address: usize) -> Option<Block> {
        self.with(|inner| {
            if let Some(block) = inner.find(address) {
                return Some(block);
            }
            inner.known.as_mut_slice().sort_unstable();
            let at = inner.known.as_slice().partition_point(|&number| number < address >> 20);
            for index in at..inner.known.as_slice().len() {
                let base = inner.known.as_slice()[index] << 20;
                let from = if index == at && base < address { (address - base) / 8 } else { 0 };
                let chunk = inner.chunk(base, false)?;
                let mut word = from / 64;
                let mut bits = chunk.starts[word] & (u64::MAX << (from % 64));
                while bits == 0 && word + 1 < SLOTS / 64 && chunk.blocks > 0 {
                    word += 1;
                    bits = chunk.starts[word];
                }
                if bits != 0 {
                    let start = base + (word * 64 + bits.trailing_zeros() as usize) * 8;
                    let bytes = inner.bytes_of(start)?;
                    return Some(Block { start, bytes });
                }
            }
            None
        })
    }

    pub fn ranges(&self, visit: &mut dyn FnMut(Range<usize>)) {
        self.with(|inner| {
            visit(inner.known.range());
            visit(inner.stack.range());
            for &level in inner.top.iter().filter(|level| !level.is_null()) {
                visit(level as usize..level as usize + size_of::<Level>());
            }
            for index in 0..inner.known.as_slice().len() {
                let number = inner.known.as_slice()[index];
                if let Some(chunk) = inner.chunk(number << 20, false) {
                    let start = core::ptr::from_mut(chunk) as usize;
                    visit(start..start + size_of::<Chunk>());
                }
            }
            let own = core::ptr::from_ref(self) as usize;
            visit(own..own + size_of::<Tables>());
        });
    }

    pub unsafe fn mark_word(&self, word: usize) {
        self.with(|inner| inner.mark(word));
    }

    pub unsafe fn mark_range(&self, range: Range<usize>, step: usize) {
        self.with(|inner| {
            for at in range.start..range.end.saturating_sub(7) {
                if at.is_multiple_of(step) {
                    // SAFETY: the caller's word.
                    inner.mark(unsafe { (at as *const usize).read_unaligned() });
                }
            }
        });
    }

    pub unsafe fn drain(&self) {
        self.with(|inner| {
            while let Some((start, bytes)) = inner.stack.pop() {
                for at in (start..start + bytes).step_by(8) {
                    // SAFETY: a live block.
                    inner.mark(unsafe { (at as *const usize).read() });
                }
            }
        });
    }

    /// Unmarked blocks are told, and taken out if `reclaims`; marks are cleared.
    pub unsafe fn dead(&self, reclaims: bool, visit: &mut dyn FnMut(usize, usize)) {
        self.with(|inner| {
            for index in 0..inner.known.as_slice().len() {
                let base = inner.known.as_slice()[index] << 20;
                for word in 0..SLOTS / 64 {
                    let Some(chunk) = inner.chunk(base, false) else { continue };
                    if chunk.blocks == 0 {
                        break;
                    }
                    let mut dead = chunk.starts[word] & !chunk.marks[word];
                    chunk.marks[word] = 0;
                    while reclaims && dead != 0 {
                        let start = base + (word * 64 + dead.trailing_zeros() as usize) * 8;
                        dead &= dead - 1;
                        if let Some(bytes) = self.take(inner, start) {
                            visit(start, bytes);
                        }
                    }
                }
            }
        });
    }

    pub fn after_fork_in_child(&self) {
        self.lock.store(false, Ordering::Release);
    }
}
