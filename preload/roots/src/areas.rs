//! Which mappings may hold pointers.
//!
//! A stack is read whole, what lies below its pointer too: a stack pointer does not show which of the memory below is in
//! use. It may lie on a stack that is an array in a frame of another one, which an assembly routine has switched to, and
//! the kernel joins mappings that are alike, those of a thread's stack and of the program's own.

use core::ops::Range;

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_runtime::MapsEntry;

use crate::Origin;
use crate::buffer::{Buffer, NoMemory};
use crate::files;
use crate::page_kind::PageKind;

/// A mapping that may hold pointers.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    pub start: usize,
    pub end: usize,
    pub kind: PageKind,
    pub origin: Origin,
}

/// Pieces no further apart are looked at by one system call, bytes: a call of its own takes as long as to pass over the pages
/// between them (.6 µs; 25 to 40 ns a page of a library's code).
const CLOSE: usize = 64 << 10;

/// Names of memory that the kernel provides.
const KERNEL: [&[u8]; 4] = [b"[vvar", b"[vdso", b"[vsyscall", b"[uprobes"];
/// The prefixes of the names that heaptoll gives to memory which collectors must not read.
const OURS: [&[u8]; 2] = [b"[anon:heaptoll", b"[anon_shmem:heaptoll"];
/// Prefix and suffixes of the names of the layers' shared files: one holds the recording layer's events, another
/// times by the processor's counter, which may resemble addresses. Reading them all would take longer than a
/// collection. The last has a run's counters.
const SHARED_BY_LAYERS: (&[u8], [&[u8]; 3]) = (b"heaptoll-", [b".rings", b".events", b"-stats"]);
/// Private memory of this device is anonymous.
const ZERO: &[u8] = b"/dev/zero";

fn begins(name: &[u8], with: &[&[u8]]) -> bool {
    with.iter().any(|beginning| name.starts_with(beginning))
}

/// What the kernel appends to the name of a file that has none any more, or never had one (`memfd_create`).
const REMOVED: &[u8] = b" (deleted)";

/// Whether a mapping is a layer's.
fn is_a_layers(name: &[u8]) -> bool {
    let name = name.strip_suffix(REMOVED).unwrap_or(name);
    let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    name.starts_with(b"/")
        && file.starts_with(SHARED_BY_LAYERS.0)
        && SHARED_BY_LAYERS.1.iter().any(|end| file.ends_with(end))
}

/// The part of a mapping that may hold pointers, and the kind of its pages; `None`: nothing that a program's pointers are
/// kept in.
fn part(line: &MapsEntry<'_>) -> Option<(Range<usize>, PageKind)> {
    let name = line.name;
    if begins(name, &KERNEL) || begins(name, &OURS) || is_a_layers(name) {
        None
    } else if !line.private {
        files::shared_part(line)
    } else if name.is_empty() || name.starts_with(b"[") || name.starts_with(ZERO) {
        Some((line.range.clone(), PageKind::Anonymous))
    } else if is_view_of_memory(line) {
        files::shared_part(line)
    } else {
        Some((line.range.clone(), PageKind::PrivateFile))
    }
}

/// Whether a private mapping shows pages that the program may have written by other means: its file has no name, so it is
/// the program's own memory. Huge pages of a private mapping are in no file.
fn is_view_of_memory(line: &MapsEntry<'_>) -> bool {
    line.readable && line.name.ends_with(REMOVED) && !line.name.starts_with(files::HUGE_ANONYMOUS)
}

/// Gathers areas from the lines of the list, in their order.
#[derive(Debug)]
pub struct Gatherer<'a> {
    areas: &'a mut Buffer<Area>,
    /// Mappings without any access, as start and end, apart from each other.
    no_access: &'a mut Buffer<(usize, usize)>,
    /// End of the last line, if that was writable data of a file: what follows without a name is its zeroed data.
    data_end: usize,
}

impl<'a> Gatherer<'a> {
    pub fn new(areas: &'a mut Buffer<Area>, no_access: &'a mut Buffer<(usize, usize)>) -> Gatherer<'a> {
        areas.clear();
        no_access.clear();
        Gatherer { areas, no_access, data_end: 0 }
    }

    pub fn take(&mut self, line: &MapsEntry<'_>) -> Result<(), NoMemory> {
        let Range { start, end } = line.range;
        assert_internal!(start < end, "a mapping is not empty");
        // The list is not read at one instant: a mapping that was shown may have grown, or been merged with its
        // neighbour, and is then shown again, from its start. What is new of it is its end.
        let taken = self.areas.as_slice().last().map_or(0, |area| area.end);
        if end <= taken {
            return Ok(());
        }
        let start = start.max(taken);
        let follows_data = self.data_end == start;
        self.data_end = 0;
        // The processor reads what it may write.
        if !line.readable && !line.writable {
            return match self.no_access.as_mut_slice().last_mut() {
                Some(last) if last.1 >= start => {
                    last.1 = last.1.max(end);
                    Ok(())
                }
                _ => self.no_access.push((start, end)),
            };
        }
        let Some((part, kind)) = part(line) else { return Ok(()) };
        // Other memory may have been protected after pointers were written to it.
        if !line.writable && kind == PageKind::PrivateFile {
            return Ok(());
        }
        // The kernel brings nothing in that it may not read: only the page tables show what is there.
        let kind = if line.readable || line.private { kind } else { PageKind::SparseFile };
        let (start, end) = (start.max(part.start), part.end);
        if start >= end {
            return Ok(());
        }
        let data = line.private && line.writable && kind != PageKind::Anonymous;
        if data {
            self.data_end = end;
        }
        let origin = if line.executable {
            Origin::Code
        } else if data || line.name.is_empty() && follows_data {
            Origin::Statics
        } else {
            Origin::Mapping
        };
        self.areas.push(Area { start, end, kind, origin })
    }
}

/// Records in the areas, which are in order, where a thread's stack is.
pub fn note(areas: &mut [Area], stack_pointer: usize) {
    assert_expensive!(
        areas.windows(2).all(|pair| pair[0].end <= pair[1].start),
        "areas are ordered and disjoint"
    );
    let at = areas.partition_point(|area| area.end <= stack_pointer);
    if let Some(area) = areas.get_mut(at)
        && area.start <= stack_pointer
    {
        area.origin = Origin::Stack;
    }
}

/// What remains of a range without others, in order: calls `each` with every piece that is not empty. The others are
/// given as start and end, ordered by [`in_order`].
pub fn subtract<E>(
    range: Range<usize>,
    left_out: &[(usize, usize)],
    each: &mut dyn FnMut(Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    assert_expensive!(
        left_out.windows(2).all(|pair| pair[0].1 < pair[1].0)
            && left_out.iter().all(|(start, end)| start < end),
        "ranges that are left out are ordered, disjoint and apart"
    );
    let mut start = range.start;
    let first = left_out.partition_point(|&(_, end)| end <= start);
    for &(begin, end) in &left_out[first..] {
        if begin >= range.end {
            break;
        }
        if begin > start {
            assert_internal!(
                range.start <= start && begin <= range.end,
                "what remains of a range lies in it"
            );
            each(start..begin)?;
        }
        start = start.max(end);
    }
    if start < range.end { each(start..range.end) } else { Ok(()) }
}

/// Up to where pieces follow each other closely, from one of the first area on: what remains of the areas.
pub fn reach(areas: &[Area], start: usize, left_out: &[(usize, usize)]) -> usize {
    let mut end = start;
    for area in areas.iter().filter(|area| area.kind.is_in_page_tables()) {
        let mut extend = |piece: Range<usize>| {
            if piece.start > end + CLOSE {
                return Err(());
            }
            end = piece.end;
            Ok(())
        };
        if subtract(start.max(area.start)..area.end, left_out, &mut extend).is_err() {
            break;
        }
    }
    end
}

/// Sorts ranges and joins those that overlap or touch; returns how many are left, at the beginning.
pub fn in_order(ranges: &mut [(usize, usize)]) -> usize {
    ranges.sort_unstable();
    let mut kept = 0_usize;
    for at in 0..ranges.len() {
        let (start, end) = ranges[at];
        if start >= end {
            continue;
        }
        match kept.checked_sub(1).map(|last| &mut ranges[last]) {
            Some(last) if last.1 >= start => last.1 = last.1.max(end),
            _ => {
                assert_internal!(kept <= at, "ranges are written where they were read");
                ranges[kept] = (start, end);
                kept += 1;
            }
        }
    }
    assert_internal!(kept <= ranges.len(), "joined ranges are no more than the ranges were");
    assert_expensive!(
        ranges[..kept].windows(2).all(|pair| pair[0].1 < pair[1].0),
        "ranges that are left out are ordered, disjoint and apart"
    );
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn line(range: Range<usize>, access: &str, name: &'static str) -> MapsEntry<'static> {
        MapsEntry {
            range,
            readable: access.contains('r'),
            writable: access.contains('w'),
            executable: access.contains('x'),
            private: access.contains('p'),
            offset: 0,
            file: (0, 0),
            name: name.as_bytes(),
        }
    }

    fn areas(lines: &[MapsEntry<'_>]) -> Buffer<Area> {
        let mut areas = Buffer::new();
        let mut no_access = Buffer::new();
        let mut gatherer = Gatherer::new(&mut areas, &mut no_access);
        for line in lines {
            gatherer.take(line).expect("memory");
        }
        areas
    }

    #[test]
    fn what_cannot_be_accessed_is_listed_in_the_fewest_ranges() {
        let (mut areas, mut no_access) = (Buffer::new(), Buffer::new());
        let mut gatherer = Gatherer::new(&mut areas, &mut no_access);
        let lines =
            [(0, 1, "---p"), (1, 3, "---p"), (3, 4, "rw-p"), (4, 5, "---s"), (4, 6, "---p"), (6, 7, "-w-p")];
        for (start, end, access) in lines {
            gatherer.take(&line(start * 4096..end * 4096, access, "")).expect("memory");
        }
        assert_eq!(no_access.as_slice(), [(0, 3 * 4096), (4 * 4096, 6 * 4096)]);
    }

    #[test]
    fn kinds_follow_from_names_and_access() {
        let cases = [
            ("rw-p", "", Some((PageKind::Anonymous, Origin::Mapping))),
            ("r-xp", "", Some((PageKind::Anonymous, Origin::Code))),
            ("r--p", "[anon:jit]", Some((PageKind::Anonymous, Origin::Mapping))),
            ("rw-p", "[heap]", Some((PageKind::Anonymous, Origin::Mapping))),
            ("rw-p", "/dev/zero", Some((PageKind::Anonymous, Origin::Mapping))),
            ("rw-s", "/dev/zero (deleted)", Some((PageKind::SharedMemory, Origin::Mapping))),
            ("rw-s", "/memfd:x (deleted)", Some((PageKind::SharedMemory, Origin::Mapping))),
            ("rw-s", "/SYSV00000000 (deleted)", Some((PageKind::SharedMemory, Origin::Mapping))),
            ("rw-p", "/usr/lib/x.so", Some((PageKind::PrivateFile, Origin::Statics))),
            ("rw-p", "/memfd:x (deleted)", Some((PageKind::SharedMemory, Origin::Statics))),
            ("r--p", "/memfd:x (deleted)", Some((PageKind::SharedMemory, Origin::Mapping))),
            ("-w-p", "/memfd:x (deleted)", Some((PageKind::PrivateFile, Origin::Statics))),
            ("rw-p", "/anon_hugepage (deleted)", Some((PageKind::PrivateFile, Origin::Statics))),
            ("rw-s", "/var/db", Some((PageKind::SharedMemory, Origin::Mapping))),
            ("r--s", "/memfd:x (deleted)", Some((PageKind::SharedMemory, Origin::Mapping))),
            ("rw-s", "/dev/dri/card0", Some((PageKind::SharedMemory, Origin::Mapping))),
            ("rw-s", "anon_inode:[io_uring]", Some((PageKind::SharedMemory, Origin::Mapping))),
            ("rw-p", "/dev/hugepages/x", Some((PageKind::PrivateFile, Origin::Statics))),
            ("r--p", "/usr/lib/x.so", None),
            ("r-xp", "/usr/lib/x.so", None),
            ("---p", "", None),
            ("--xp", "", None),
            ("-w-p", "", Some((PageKind::Anonymous, Origin::Mapping))),
            ("-w-s", "/dev/zero (deleted)", Some((PageKind::SparseFile, Origin::Mapping))),
            ("r--p", "[vvar]", None),
            ("r--p", "[vvar_vclock]", None),
            ("r-xp", "[vdso]", None),
            ("rw-p", "[anon:heaptoll roots]", None),
            ("rw-s", "[anon_shmem:heaptoll page]", None),
            ("rw-s", "/dev/shm/heaptoll-71-0.rings", None),
            ("rw-s", "/run/user/0/heaptoll-71-0.rings (deleted)", None),
            ("rw-s", "/dev/shm/heaptoll-71-0.events", None),
            ("rw-s", "/tmp/heaptoll-71/heaptoll-1.events (deleted)", None),
            ("rw-s", "/tmp/.x/heaptoll-stats", None),
            ("rw-s", "/dev/shm/heaptoll-71-0.rings.mine", Some((PageKind::SharedMemory, Origin::Mapping))),
        ];
        for (access, name, expected) in cases {
            let areas = areas(&[line(0x1000..0x2000, access, name)]);
            let found = areas.as_slice().first().map(|area| (area.kind, area.origin));
            assert_eq!(found, expected, "{access} {name}");
        }
    }

    #[test]
    fn zeroed_data_belongs_to_the_object_before_it() {
        let areas = areas(&[
            line(0x1000..0x2000, "rw-p", "/usr/lib/x.so"),
            line(0x2000..0x3000, "rw-p", ""),
            line(0x3000..0x4000, "rw-p", ""),
            line(0x5000..0x6000, "rw-p", ""),
        ]);
        let origins: Vec<Origin> = areas.as_slice().iter().map(|area| area.origin).collect();
        assert_eq!(origins, [Origin::Statics, Origin::Statics, Origin::Mapping, Origin::Mapping]);
    }

    #[test]
    fn a_mapping_that_a_stack_pointer_leads_into_is_a_stack() {
        let mut areas = areas(&[line(0x2000..0x9000, "rw-p", ""), line(0x9000..0xa000, "rw-p", "")]);
        note(areas.as_mut_slice(), 0x5004);
        let found = areas.as_slice().iter().map(|area| (area.start..area.end, area.origin));
        assert!(found.eq([(0x2000..0x9000, Origin::Stack), (0x9000..0xa000, Origin::Mapping)]));
    }

    #[test]
    fn stack_pointers_outside_all_areas_belong_to_none() {
        let mut areas = areas(&[line(0x2000..0x9000, "rw-p", "[stack]")]);
        for pointer in [0, 0x1fff, 0x9000, usize::MAX] {
            note(areas.as_mut_slice(), pointer);
        }
        assert_eq!(areas.as_slice()[0].origin, Origin::Mapping);
    }

    #[test]
    fn pieces_are_scanned_together_up_to_the_first_that_is_far() {
        let far = 0x5000 + CLOSE;
        let areas = areas(&[
            line(0x1000..0x2000, "rw-p", ""),
            line(0x3000..0x4000, "rw-s", "/memfd:x (deleted)"),
            line(0x4000..0x5000, "rw-p", ""),
            line(far..far + 0x2000, "rw-p", ""),
            line(2 * far..2 * far + 0x1000, "rw-p", ""),
        ]);
        assert_eq!(reach(areas.as_slice(), 0x1800, &[]), far + 0x2000);
        assert_eq!(reach(areas.as_slice(), 0x1800, &[(far, far + 0x1000)]), 0x5000);
        assert_eq!(
            reach(areas.as_slice(), 0x1800, &[(0x1900, 0x1a00), (far + 0x1000, far + 0x2000)]),
            far + 0x1000
        );
        assert_eq!(reach(&areas.as_slice()[4..], 2 * far, &[]), 2 * far + 0x1000);
    }

    /// Another thread, or this process's own buffers, maps memory between two reads of the list.
    #[test]
    fn memory_that_grew_while_the_list_was_read_is_taken_once() {
        let ranges = [0x1000..0x3000, 0x1000..0x5000, 0x2000..0x5000, 0x5000..0x6000];
        let found = areas(&ranges.map(|range| line(range, "rw-p", "")));
        let found: Vec<(usize, usize)> = found.as_slice().iter().map(|area| (area.start, area.end)).collect();
        assert_eq!(found, [(0x1000, 0x3000), (0x3000, 0x5000), (0x5000, 0x6000)]);
    }

    proptest! {
        #[test]
        fn subtraction_agrees_with_sets(
            range in (0..100_usize, 0..100_usize),
            left_out in prop::collection::vec((0..100_usize, 0..30_usize), 0..8),
        ) {
            let mut left_out: Vec<(usize, usize)> =
                left_out.into_iter().map(|(start, length)| (start, start + length)).collect();
            let expected: Vec<usize> = (range.0..range.1)
                .filter(|at| !left_out.iter().any(|&(start, end)| (start..end).contains(at)))
                .collect();
            let kept = in_order(&mut left_out);
            let apart = left_out[..kept].windows(2).all(|pair| pair[0].1 < pair[1].0);
            prop_assert!(apart && left_out[..kept].iter().all(|(start, end)| start < end));
            let (mut found, mut last) = (Vec::new(), 0);
            subtract(range.0..range.1, &left_out[..kept], &mut |piece| {
                assert!(!piece.is_empty() && piece.start >= last);
                last = piece.end;
                found.extend(piece);
                Ok::<(), ()>(())
            }).expect("each succeeds");
            prop_assert_eq!(found, expected);
        }
    }
}
