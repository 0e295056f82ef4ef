//! glibc's statistics and settings of malloc (<malloc.h>), implemented for this heap: without these a program would
//! read those of glibc's own, which is empty.
//!
//! Figures are the control contract's census, in the meanings that mallinfo(3) and malloc_info(3) give; one heap stands
//! for all arenas. Nothing here is inside the manager while it writes.

use core::ffi::c_int;

use crate::{Manager, RawCensus, RawClass};

/// Size classes that are read; no manager has as many.
const CLASSES: usize = 96;

/// A census and its classes.
struct Statistics {
    census: RawCensus,
    classes: [RawClass; CLASSES],
}

impl Statistics {
    fn of<M: Manager>(manager: &M) -> Statistics {
        let mut classes = [RawClass::default(); CLASSES];
        let mut census = RawCensus {
            size: size_of::<RawCensus>() as u32,
            class_capacity: CLASSES as u32,
            class_count: 0,
            exact: 0,
            mapped_bytes: 0,
            mapped_high_bytes: 0,
            live_bytes: 0,
            free_bytes: 0,
            metadata_bytes: 0,
            quarantined_bytes: 0,
            unused_bytes: 0,
            requested_bytes: 0,
            classes: classes.as_mut_ptr(),
        };
        // SAFETY: the census has its size, and an array of `class_capacity` classes.
        let _ = unsafe { manager.census(&mut census) };
        Statistics { census, classes }
    }

    /// Classes that have blocks ready to be handed out.
    fn free_classes(&self) -> impl Iterator<Item = &RawClass> {
        let known = (self.census.class_count as usize).min(CLASSES);
        self.classes[..known].iter().filter(|class| class.free_blocks > 0)
    }

    fn free_blocks(&self) -> u64 {
        self.free_classes().map(|class| class.free_blocks).sum()
    }

    /// Bytes that requests can be served from.
    fn available(&self) -> u64 {
        self.census.free_bytes + self.census.unused_bytes
    }
}

/// `mallinfo2`.
pub fn mallinfo2<M: Manager>(manager: &M) -> libc::mallinfo2 {
    let of = Statistics::of(manager);
    libc::mallinfo2 {
        arena: of.census.mapped_bytes as usize,
        ordblks: of.free_blocks() as usize,
        smblks: 0,
        hblks: 0,
        hblkhd: 0,
        usmblks: 0,
        fsmblks: 0,
        uordblks: of.census.live_bytes as usize,
        fordblks: of.available() as usize,
        keepcost: 0,
    }
}

/// `mallinfo`: as [`mallinfo2`], with what an `int` cannot hold cut to the largest.
pub fn mallinfo<M: Manager>(manager: &M) -> libc::mallinfo {
    let of = mallinfo2(manager);
    let cut = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
    libc::mallinfo {
        arena: cut(of.arena),
        ordblks: cut(of.ordblks),
        smblks: 0,
        hblks: 0,
        hblkhd: 0,
        usmblks: 0,
        fsmblks: 0,
        uordblks: cut(of.uordblks),
        fordblks: cut(of.fordblks),
        keepcost: 0,
    }
}

/// `malloc_stats`: glibc's lines, on standard error. It cannot be cancelled between them.
pub fn malloc_stats<M: Manager>(manager: &M) {
    let of = Statistics::of(manager);
    let mut text = Text::new();
    for heading in ["Arena 0:\n", "Total (incl. mmap):\n"] {
        text.put(heading);
        text.put("system bytes     = ").aligned(of.census.mapped_bytes);
        text.put("\nin use bytes     = ").aligned(of.census.live_bytes).put("\n");
    }
    text.put("max mmap regions = ").aligned(0).put("\nmax mmap bytes   = ").aligned(0).put("\n");
    // Not the C library's `write`, at which a thread may be cancelled.
    // SAFETY: the kernel reads `text.length` bytes of `text.bytes`, which `put` has written.
    unsafe { libc::syscall(libc::SYS_write, 2, text.bytes.as_ptr(), text.length) };
}

/// `malloc_info`: glibc's XML of one heap. Returns 0, or `EINVAL` for options, of which there are none.
///
/// # Safety
/// `stream` is open.
pub unsafe fn malloc_info<M: Manager>(manager: &M, options: c_int, stream: *mut libc::FILE) -> c_int {
    if options != 0 {
        return libc::EINVAL;
    }
    let of = Statistics::of(manager);
    // SAFETY: `stream` is open, as this function requires; the text is valid for its length.
    let write = |text: Text| unsafe { libc::fwrite(text.bytes.as_ptr().cast(), 1, text.length, stream) };
    let mut text = Text::new();
    text.put("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n");
    write(text);
    let mut from = 1;
    for class in of.free_classes() {
        let mut text = Text::new();
        text.put("  <size from=\"").number(from).put("\" to=\"").number(class.block_bytes.max(from));
        text.put("\" total=\"").number(class.free_bytes).put("\" count=\"").number(class.free_blocks);
        text.put("\"/>\n");
        write(text);
        from = class.block_bytes.max(from) + 1;
    }
    let mut text = Text::new();
    text.put("</sizes>\n").totals(&of).put("</heap>\n");
    write(text);
    let mut text = Text::new();
    text.totals(&of).put("</malloc>\n");
    write(text);
    0
}

/// `malloc_trim`: whether memory went back to the system. None does: the heap gives back by itself, or never.
pub fn malloc_trim() -> c_int {
    0
}

/// `mallopt`: 1 for glibc's parameters, which are its algorithm's and change nothing here; 0 for others.
pub fn mallopt(parameter: c_int) -> c_int {
    const LAST: c_int = libc::M_ARENA_MAX;
    c_int::from(parameter == libc::M_MXFAST || (LAST..0).contains(&parameter))
}

/// A text of limited length; what does not fit is cut.
struct Text {
    bytes: [u8; Self::CAPACITY],
    length: usize,
}

impl Text {
    const CAPACITY: usize = 768;

    fn new() -> Text {
        Text { bytes: [0; Self::CAPACITY], length: 0 }
    }

    fn put(&mut self, text: &str) -> &mut Text {
        let bytes = &text.as_bytes()[..text.len().min(Self::CAPACITY - self.length)];
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
        self
    }

    /// A number, and blanks in front of one that has fewer than `width` digits.
    fn padded(&mut self, mut number: u64, width: usize) -> &mut Text {
        let mut digits = [b' '; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.put(str::from_utf8(&digits[first.min(digits.len() - width)..]).unwrap_or_default())
    }

    fn number(&mut self, number: u64) -> &mut Text {
        self.padded(number, 0)
    }

    fn aligned(&mut self, number: u64) -> &mut Text {
        self.padded(number, 10)
    }

    /// The totals at the end of a heap, and at the end of all.
    fn totals(&mut self, of: &Statistics) -> &mut Text {
        self.put("<total type=\"fast\" count=\"0\" size=\"0\"/>\n<total type=\"rest\" count=\"");
        self.number(of.free_blocks()).put("\" size=\"").number(of.census.free_bytes).put("\"/>\n");
        self.put("<total type=\"mmap\" count=\"0\" size=\"0\"/>\n");
        let mapped = of.census.mapped_bytes;
        for (name, bytes) in [
            ("<system type=\"current\" size=\"", mapped),
            ("<system type=\"max\" size=\"", of.census.mapped_high_bytes),
            ("<aspace type=\"total\" size=\"", mapped),
            ("<aspace type=\"mprotect\" size=\"", mapped),
        ] {
            self.put(name).number(bytes).put("\"/>\n");
        }
        self
    }
}
