//! The list of the process's mappings, by a query for each if the kernel has such (Linux 6.11 and later), or read as text a
//! piece at a time.

use core::cell::Cell;
use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_runtime::MapsEntry;

use crate::buffer::{Buffer, NoMemory};
use crate::kernel::{Error, File};
use crate::lines;
use crate::mapping_query::{self, NAME_CAPACITY, QueryError, SHARED};

/// The calling thread's: when the main thread has ended by `pthread_exit`, the process's own list is empty.
const LIST: &CStr = c"/proc/thread-self/maps";
/// The kernel's half of all addresses. Its one mapping ends the list.
const KERNEL: usize = 1 << 63;

/// Why there is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapsError {
    NoMemory,
    NoDescriptor,
    Unreadable,
}

impl From<NoMemory> for MapsError {
    fn from(_: NoMemory) -> MapsError {
        MapsError::NoMemory
    }
}

impl From<Error> for MapsError {
    fn from(error: Error) -> MapsError {
        if error.is_out_of_descriptors() { MapsError::NoDescriptor } else { MapsError::Unreadable }
    }
}

/// The means by which mappings are found, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    Queries,
    Text,
}

/// The kernel was found to have no queries.
static TEXT_ONLY: AtomicBool = AtomicBool::new(false);

/// Which mappings are shown: those that overlap a range, and are shared if the properties say so.
type Part = (Range<usize>, u64);

type Visit<'a> = &'a mut dyn FnMut(MapsEntry<'_>) -> Result<(), NoMemory>;

/// Shows each mapping of this process, in the order of addresses; some again from the first on, if queries fail. `text` is
/// scratch memory.
///
/// # Errors
/// [`MapsError`]: not all were shown.
pub fn read(text: &mut Buffer<u8>, each: Visit<'_>) -> Result<(), MapsError> {
    read_by(means(), text, &[(0..usize::MAX, 0)], each)
}

/// Shows every mapping of this process that overlaps `memory`, in the order of addresses, and every shared one, wherever it
/// is. One may be shown again. `text` is scratch memory.
///
/// # Errors
/// [`MapsError`]: not all were shown.
pub fn read_part(text: &mut Buffer<u8>, memory: &Range<usize>, each: Visit<'_>) -> Result<(), MapsError> {
    read_by(means(), text, &[(0..usize::MAX, SHARED), (memory.clone(), 0)], each)
}

fn means() -> Means {
    if TEXT_ONLY.load(Ordering::Relaxed) { Means::Text } else { Means::Queries }
}

/// By these means, or by the text if they fail.
fn read_by(means: Means, text: &mut Buffer<u8>, parts: &[Part], each: Visit<'_>) -> Result<(), MapsError> {
    if means == Means::Queries {
        let mut shown = Ok(());
        let is_all = query(text, parts, &mut |entry| {
            if shown.is_ok() {
                shown = each(entry);
            }
        })?;
        shown?;
        if is_all {
            return Ok(());
        }
    }
    let list = File::open(LIST)?;
    let (mut position, is_over) = (0, Cell::new(false));
    let source = |to: &mut [u8]| -> Result<usize, Error> {
        let got = if is_over.get() { 0 } else { list.read_at(to, position)? };
        position += got;
        Ok(got)
    };
    split(text, source, &mut |entry| {
        is_over.set(entry.range.start >= KERNEL);
        let is_in = |(range, properties): &Part| {
            (*properties != SHARED || !entry.private)
                && entry.range.start < range.end
                && range.start < entry.range.end
        };
        if parts.iter().any(is_in) { each(entry) } else { Ok(()) }
    })
}

/// Shows the mappings that overlap ranges and have properties, by queries. Returns whether all were shown.
fn query(
    names: &mut Buffer<u8>,
    parts: &[Part],
    each: &mut dyn FnMut(MapsEntry<'_>),
) -> Result<bool, MapsError> {
    let list = File::open(LIST)?;
    names.reserve(NAME_CAPACITY)?;
    let name = names.capacity_mut().get_mut(..NAME_CAPACITY).unwrap_or_default();
    for (range, properties) in parts {
        match mapping_query::walk(&list, name, range.clone(), *properties, each) {
            Ok(()) => {}
            Err(QueryError::Failed) => return Ok(false),
            Err(QueryError::Unavailable) => {
                TEXT_ONLY.store(true, Ordering::Relaxed);
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Shows the mappings in a text.
fn split(
    text: &mut Buffer<u8>,
    source: impl FnMut(&mut [u8]) -> Result<usize, Error>,
    each: &mut dyn FnMut(MapsEntry<'_>) -> Result<(), NoMemory>,
) -> Result<(), MapsError> {
    let is_whole = lines::each::<MapsError>(text, source, &mut |line| {
        Ok(each(MapsEntry::parse(line).ok_or(MapsError::Unreadable)?)?)
    })?;
    if is_whole { Ok(()) } else { Err(MapsError::Unreadable) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::Range;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    #[derive(Debug, Clone, PartialEq)]
    struct OwnedEntry {
        range: Range<usize>,
        access: [bool; 4],
        name: Vec<u8>,
    }

    impl From<MapsEntry<'_>> for OwnedEntry {
        fn from(line: MapsEntry<'_>) -> OwnedEntry {
            OwnedEntry {
                range: line.range,
                access: [line.readable, line.writable, line.executable, line.private],
                name: line.name.to_vec(),
            }
        }
    }

    impl OwnedEntry {
        /// As the kernel writes it: padded to a column before the name.
        fn text(&self, offset: u64, device: (u8, u8), inode: u32) -> Vec<u8> {
            let letter = |at: usize, letter: char| if self.access[at] { letter } else { '-' };
            let mut line = std::format!(
                "{:08x}-{:08x} {}{}{}{} {offset:08x} {:02x}:{:02x} {inode} ",
                self.range.start,
                self.range.end,
                letter(0, 'r'),
                letter(1, 'w'),
                letter(2, 'x'),
                if self.access[3] { 'p' } else { 's' },
                device.0,
                device.1,
            );
            if !self.name.is_empty() {
                while line.len() < 73 {
                    line.push(' ');
                }
            }
            let mut line = line.into_bytes();
            line.extend(&self.name);
            line.push(b'\n');
            line
        }
    }

    /// Splits a text given in pieces of these sizes, over and over.
    fn lines(text: &[u8], sizes: &[usize]) -> Result<Vec<OwnedEntry>, MapsError> {
        let mut buffer = Buffer::new();
        let (mut at, mut turn, mut found) = (0, 0, Vec::new());
        let source = |to: &mut [u8]| -> Result<usize, Error> {
            let size = sizes[turn % sizes.len()].min(to.len()).min(text.len() - at);
            turn += 1;
            to[..size].copy_from_slice(&text[at..at + size]);
            at += size;
            Ok(size)
        };
        split(&mut buffer, source, &mut |line| {
            found.push(line.into());
            Ok(())
        })?;
        Ok(found)
    }

    prop_compose! {
        fn mapping()(
            start in 0..usize::MAX - 1,
            length in 1..usize::MAX,
            access in any::<[bool; 4]>(),
            name in prop_oneof![
                Just(String::new()),
                Just(String::from("[heap]")),
                "\\[anon:[a-z ]{0,70}\\]",
                "/[a-z /.:()\\\\0-9]{0,200}[a-z]",
            ],
        ) -> OwnedEntry {
            let range = start..start.saturating_add(length);
            OwnedEntry { range, access, name: name.into_bytes() }
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_in_pieces_of_any_size(
            mappings in prop::collection::vec((mapping(), any::<(u64, (u8, u8), u32)>()), 0..40),
            sizes in prop::collection::vec(1..300_usize, 1..10),
        ) {
            let mut text = Vec::new();
            for (mapping, (offset, device, inode)) in &mappings {
                text.extend(mapping.text(*offset, *device, *inode));
            }
            let expected: Vec<OwnedEntry> = mappings.into_iter().map(|(mapping, _)| mapping).collect();
            prop_assert_eq!(lines(&text, &sizes), Ok(expected));
        }

        #[test]
        fn any_bytes_are_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = lines(&text, &[7]);
            let _ = MapsEntry::parse(&text);
        }

        #[test]
        fn a_text_that_ends_within_a_line_is_refused(mapping in mapping(), cut in 1..40_usize) {
            let text = mapping.text(0, (0, 0), 0);
            prop_assert_eq!(lines(&text[..text.len() - cut], &[100]), Err(MapsError::Unreadable));
        }
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_read_whole() {
        let mapping = OwnedEntry {
            range: 4096..8192,
            access: [true; 4],
            name: [&b"/"[..], &[b'a'; 3 * lines::INITIAL_CAPACITY]].concat(),
        };
        let text = mapping.text(0, (8, 1), 99);
        assert_eq!(lines(&text, &[4096]), Ok(std::vec![mapping]));
    }

    #[test]
    fn backward_ranges_and_numbers_too_large_are_refused() {
        for line in
            ["2000-1000 rw-p 0 0:0 0", "1000-1000 rw-p 0 0:0 0", "11111111111111111-2 rw-p 0 0:0 0", "-"]
        {
            assert_eq!(MapsEntry::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn this_process_has_a_stack_and_code() {
        let mut text = Buffer::new();
        let here = this_process_has_a_stack_and_code as *const () as usize;
        let (mut code, mut last) = (false, 0);
        read(&mut text, &mut |line| {
            assert!(line.range.start >= last);
            last = line.range.end;
            code |= line.range.contains(&here) && line.executable && !line.writable && line.name[0] == b'/';
            Ok(())
        })
        .expect("the list");
        assert!(code);
    }

    /// All that an entry has.
    type Facts = (Range<usize>, [bool; 4], usize, (usize, usize), Vec<u8>);

    fn facts(entry: &MapsEntry<'_>) -> Facts {
        let access = [entry.readable, entry.writable, entry.executable, entry.private];
        (entry.range.clone(), access, entry.offset, entry.file, entry.name.to_vec())
    }

    fn overlaps(one: &Range<usize>, other: &Range<usize>) -> bool {
        one.start < other.end && other.start < one.end
    }

    /// What is shown for some memory by these means, of what lies in `region`: other tests change the rest meanwhile.
    fn part(means: Means, memory: &Range<usize>, region: &Range<usize>) -> Vec<Facts> {
        let (mut text, mut found) = (Buffer::new(), Vec::new());
        let parts = [(0..usize::MAX, SHARED), (memory.clone(), 0)];
        read_by(means, &mut text, &parts, &mut |entry| {
            if overlaps(&entry.range, region) {
                found.push(facts(&entry));
            }
            Ok(())
        })
        .expect("the list");
        // A mapping may be shown again, and shared ones in any order.
        found.sort_by_key(|entry| entry.0.start);
        found.dedup();
        found
    }

    /// What the text has of a region.
    fn listed(region: &Range<usize>) -> Vec<Facts> {
        listed_by(Means::Text, region)
    }

    /// In the order in which they are shown.
    fn listed_by(means: Means, region: &Range<usize>) -> Vec<Facts> {
        let (mut text, mut found) = (Buffer::new(), Vec::new());
        read_by(means, &mut text, &[(0..usize::MAX, 0)], &mut |entry| {
            if overlaps(&entry.range, region) {
                found.push(facts(&entry));
            }
            Ok(())
        })
        .expect("the list");
        found
    }

    fn has_queries() -> bool {
        let has = query(&mut Buffer::new(), &[(0..1, 0)], &mut |_| {}).expect("the list");
        if !has {
            std::eprintln!("not tested: this kernel has no queries");
        }
        has
    }

    const PAGE: usize = crate::kernel::PAGE;
    const PAGES: usize = 400;

    /// A region of the test's own, inaccessible at first. Its first and last page are shared, so that the kernel joins none
    /// with what other tests map next to it; no test maps anything in their place.
    struct Region(Range<usize>);

    impl Region {
        fn new() -> Region {
            // SAFETY: a new mapping.
            let start = unsafe {
                let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                libc::mmap(core::ptr::null_mut(), PAGES * PAGE, libc::PROT_NONE, kind, -1, 0)
            };
            assert_ne!(start, libc::MAP_FAILED);
            let region = Region(start as usize..start as usize + PAGES * PAGE);
            for page in [0, PAGES - 1] {
                region.map(page, 1, libc::PROT_NONE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
            }
            region
        }

        /// Maps some pages in place of those of the region.
        fn map(&self, at: usize, pages: usize, access: i32, kind: i32, file: i32) -> *mut libc::c_void {
            assert!(at + pages <= PAGES);
            // SAFETY: the pages are the region's.
            let made = unsafe {
                let place = (self.0.start + at * PAGE) as *mut _;
                libc::mmap(place, pages * PAGE, access, kind | libc::MAP_FIXED, file, 0)
            };
            assert_ne!(made, libc::MAP_FAILED);
            made
        }
    }

    impl Drop for Region {
        fn drop(&mut self) {
            // SAFETY: the region is not used any more.
            unsafe { libc::munmap(self.0.start as *mut _, self.0.len()) };
        }
    }

    fn memfd(name: &core::ffi::CStr) -> std::fs::File {
        use std::os::fd::FromRawFd;
        // SAFETY: a new descriptor, owned from here on.
        let file = unsafe { std::fs::File::from_raw_fd(libc::memfd_create(name.as_ptr(), 0)) };
        file.set_len((PAGES * PAGE) as u64).expect("a length");
        file
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn queries_show_what_the_text_has(
            pieces in prop::collection::vec((0..7_usize, 0..8, 1..4_usize, 0..3_usize), 1..78),
            part_of in (0..PAGES, 1..PAGES),
        ) {
            use std::os::fd::AsRawFd;
            if !has_queries() {
                return Ok(());
            }
            let region = Region::new();
            let (memory_file, zero) = (memfd(c"a (b) "), std::fs::File::open("/dev/zero").expect("a device"));
            let program = std::fs::File::open("/proc/self/exe").expect("the program");
            let mut at = 1;
            for (what, access, pages, gap) in pieces {
                let (kind, file) = match what {
                    0 | 1 => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
                    2 => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
                    3 => (libc::MAP_PRIVATE, program.as_raw_fd()),
                    4 => (libc::MAP_PRIVATE, memory_file.as_raw_fd()),
                    5 => (libc::MAP_SHARED, memory_file.as_raw_fd()),
                    _ => (libc::MAP_PRIVATE, zero.as_raw_fd()),
                };
                let executable = if what <= 3 { access & 4 } else { 0 };
                let place = region.map(at, pages, access & 3 | executable, kind, file);
                if what == 1 {
                    // SAFETY: the pages are the region's. Kernels may have no names.
                    unsafe {
                        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, place, pages * PAGE, c"a b".as_ptr())
                    };
                }
                // Between pieces the region's own pages stay: other tests would map theirs in a hole.
                at += pages + gap;
            }
            let start = region.0.start + part_of.0 * PAGE;
            let memory = start..(start + part_of.1 * PAGE).min(region.0.end);
            let expected: Vec<Facts> = listed(&region.0)
                .into_iter()
                .filter(|(range, access, ..)| !access[3] || overlaps(range, &memory))
                .collect();
            prop_assert_eq!(&part(Means::Queries, &memory, &region.0), &expected);
            prop_assert_eq!(&part(Means::Text, &memory, &region.0), &expected);
            prop_assert_eq!(listed_by(Means::Queries, &region.0), listed(&region.0));
            prop_assert!(!TEXT_ONLY.load(Ordering::Relaxed), "queries have not failed");
        }
    }

    #[test]
    fn queries_show_mappings_of_files_and_the_stack_as_the_text_does() {
        if !has_queries() {
            return;
        }
        let stays = |(_, access, _, _, name): &Facts| {
            let name = std::string::String::from_utf8_lossy(name);
            access[3] && (name.contains(".so") || name == "[stack]" || name == "[vdso]")
        };
        let lines: Vec<Facts> = listed(&(0..usize::MAX)).into_iter().filter(stays).collect();
        assert!(lines.len() > 5);
        for line in lines {
            assert_eq!(part(Means::Queries, &line.0, &line.0), [line]);
        }
    }

    #[test]
    fn a_name_that_the_text_escapes_is_read_from_the_text() {
        use std::os::fd::AsRawFd;
        let (region, file) = (Region::new(), memfd(c"two\nlines"));
        region.map(1, 1, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
        region.map(3, 1, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd());
        region.map(5, 2, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd());
        let found = part(Means::Queries, &region.0, &region.0);
        assert_eq!(found, listed(&region.0));
        let mut all = listed_by(Means::Queries, &region.0);
        all.sort_by_key(|entry| entry.0.start);
        all.dedup();
        assert_eq!(all, found, "some are shown again");
        assert!(found.iter().any(|(.., name)| name == b"/memfd:two\\012lines (deleted)"));
    }

    /// Files without a name of their own, as rings, have one inode too.
    #[test]
    fn shared_mappings_of_one_inode_have_a_name_each() {
        use std::os::fd::AsRawFd;
        let path =
            |end: &str| std::env::temp_dir().join(std::format!("heaptoll-maps-{}{end}", std::process::id()));
        let (one, other) = (path(""), path("-linked"));
        std::fs::write(&one, [1; PAGE]).expect("a temporary file");
        std::fs::hard_link(&one, &other).expect("a second name");
        let region = Region::new();
        let (private, shared) = (libc::MAP_PRIVATE, libc::MAP_SHARED);
        for (at, path, kind) in [(2, &one, private), (3, &other, shared), (4, &one, shared)] {
            let file = std::fs::File::open(path).expect("the file");
            region.map(at, 1, libc::PROT_READ, kind, file.as_raw_fd());
        }
        let found = listed_by(Means::Queries, &region.0);
        assert_eq!(found, listed(&region.0));
        let [of_one, of_other] = [&one, &other].map(|path| {
            found.iter().filter(|(.., name)| name == path.as_os_str().as_encoded_bytes()).count()
        });
        std::fs::remove_file(&one).and_then(|()| std::fs::remove_file(&other)).expect("the files");
        assert_eq!((of_one, of_other), (2, 1));
    }

    #[test]
    fn what_has_no_queries_is_recognized() {
        let list = File::open(c"/proc/thread-self/status").expect("a file");
        let found = mapping_query::walk(&list, &mut [0; NAME_CAPACITY], 0..usize::MAX, 0, &mut |_| {});
        assert_eq!(found, Err(QueryError::Unavailable));
    }
}
