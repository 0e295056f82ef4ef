//! The kernel's query for single mappings (Linux 6.11 and later). It passes over mappings without given properties inside
//! the kernel, and their paths are not made: for few mappings of many that is cheaper than the text of all. For all of
//! them it is not: a system call each costs as much as a line.

use core::ops::Range;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::MapsEntry;

use crate::kernel::{Error, File};

/// The request's number: `_IOWR('f', 17, struct procmap_query)`.
const QUERY: u64 = 0xC068_6611;

const READABLE: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const EXECUTABLE: u64 = 1 << 2;
/// Changes are seen by other processes.
pub const SHARED: u64 = 1 << 3;
/// The mapping at the address, or the next one that has the properties.
const COVERING_OR_NEXT: u64 = 1 << 4;

/// Space for a name, bytes, its zero byte included: the kernel writes no longer ones.
pub const NAME_CAPACITY: usize = libc::PATH_MAX as usize;

/// The kernel's `struct procmap_query`.
#[derive(Debug, Default)]
#[repr(C)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    access: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device_major: u32,
    device_minor: u32,
    name_length: u32,
    build_id_length: u32,
    name: u64,
    build_id: u64,
}

// The layout of the kernel's structure, and its request's number, which has the structure's size.
const _: () = {
    assert!(size_of::<Query>() == 104 && QUERY >> 16 & 0x3fff == size_of::<Query>() as u64);
    assert!(core::mem::offset_of!(Query, start) == 24 && core::mem::offset_of!(Query, inode) == 64);
    assert!(core::mem::offset_of!(Query, name_length) == 80 && core::mem::offset_of!(Query, name) == 88);
};

/// Why mappings were not all shown by queries. Those that were shown are right; the text has all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryError {
    /// The kernel has no queries, or a filter refuses them.
    Unavailable,
    /// This reading failed: a name is too long or has a line break, which the text escapes, or memory was short.
    Failed,
}

impl Query {
    fn entry<'a>(&self, name: &'a [u8]) -> MapsEntry<'a> {
        MapsEntry {
            range: self.start as usize..self.end as usize,
            readable: self.access & READABLE != 0,
            writable: self.access & WRITABLE != 0,
            executable: self.access & EXECUTABLE != 0,
            private: self.access & SHARED == 0,
            offset: self.offset as usize,
            file: ((self.device_major as usize) << 32 | self.device_minor as usize, self.inode as usize),
            name,
        }
    }
}

/// Shows the mappings that overlap a range and have `properties` (0, or [`SHARED`]), in the order of addresses, with the
/// values that their lines in the text have. `list` is an open list of mappings, `name` has [`NAME_CAPACITY`] bytes.
///
/// # Errors
/// [`QueryError`]: not all were shown.
pub fn walk(
    list: &File,
    name: &mut [u8],
    range: Range<usize>,
    properties: u64,
    each: &mut dyn FnMut(MapsEntry<'_>),
) -> Result<(), QueryError> {
    let mut at = range.start;
    while at < range.end {
        let mut query = Query {
            size: size_of::<Query>() as u64,
            flags: COVERING_OR_NEXT | properties,
            address: at as u64,
            name: name.as_mut_ptr() as u64,
            name_length: name.len() as u32,
            ..Query::default()
        };
        // SAFETY: the request takes this structure; the kernel writes at most `name_length` bytes to `name`.
        match unsafe { list.control(QUERY, &mut query) } {
            Ok(_) => {}
            Err(Error(libc::ENOENT)) => return Ok(()),
            Err(Error(libc::ENAMETOOLONG | libc::EINTR | libc::ENOMEM)) => return Err(QueryError::Failed),
            Err(_) => return Err(QueryError::Unavailable),
        }
        let (start, end) = (query.start as usize, query.end as usize);
        if start >= range.end {
            return Ok(());
        }
        if end <= at || end <= start {
            return Err(QueryError::Unavailable);
        }
        // Without the zero byte; a mapping without a name has none.
        let length = (query.name_length as usize).saturating_sub(1);
        let name = name.get(..length).ok_or(QueryError::Failed)?;
        if name.contains(&b'\n') {
            return Err(QueryError::Failed);
        }
        assert_internal!(
            query.access & properties == properties,
            "a mapping that is found has the properties that were requested"
        );
        each(query.entry(name));
        at = end;
    }
    Ok(())
}
