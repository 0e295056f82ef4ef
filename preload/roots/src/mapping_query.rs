//! The kernel's query for single mappings (Linux 6.11 and later). It passes over mappings without given properties inside
//! the kernel. To make a path costs more than a system call: so the name of a file is asked for once, where its private
//! mappings follow each other, as those of a library do. The text has every mapping with its path, and takes twice the time.

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
    fn file(&self) -> (usize, usize) {
        ((self.device_major as usize) << 32 | self.device_minor as usize, self.inode as usize)
    }

    /// The file of a private mapping that another one of it may follow: what can be written is a library's last. Shared ones of
    /// one file may have names that differ: rings have one inode with all that the kernel gives no file.
    fn continued_file(&self) -> Option<(usize, usize)> {
        (self.access & (SHARED | WRITABLE) == 0 && self.inode != 0).then(|| self.file())
    }

    fn is_private_of(&self, file: (usize, usize)) -> bool {
        self.access & SHARED == 0 && self.file() == file
    }

    fn entry<'a>(&self, name: &'a [u8]) -> MapsEntry<'a> {
        MapsEntry {
            range: self.start as usize..self.end as usize,
            readable: self.access & READABLE != 0,
            writable: self.access & WRITABLE != 0,
            executable: self.access & EXECUTABLE != 0,
            private: self.access & SHARED == 0,
            offset: self.offset as usize,
            file: self.file(),
            name,
        }
    }
}

/// The mapping at an address, or the next one, that has the properties; its name too, unless that has no space. `None`: there
/// is none.
fn find(list: &File, name: &mut [u8], address: usize, properties: u64) -> Result<Option<Query>, QueryError> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        flags: COVERING_OR_NEXT | properties,
        address: address as u64,
        name: if name.is_empty() { 0 } else { name.as_mut_ptr() as u64 },
        name_length: name.len() as u32,
        ..Query::default()
    };
    // SAFETY: the request takes this structure; the kernel writes at most `name_length` bytes to `name`.
    match unsafe { list.control(QUERY, &mut query) } {
        Ok(_) => Ok(Some(query)),
        Err(Error(libc::ENOENT)) => Ok(None),
        Err(Error(libc::ENAMETOOLONG | libc::EINTR | libc::ENOMEM)) => Err(QueryError::Failed),
        Err(_) => Err(QueryError::Unavailable),
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
    // The file whose name `name` has, and the name's length with its zero byte, where the next mapping may be of that file.
    let mut named = None;
    while at < range.end {
        // A name that is not known is needed in any case.
        let space = if named.is_some() { &mut [] } else { &mut *name };
        let Some(mut query) = find(list, space, at, properties)? else { return Ok(()) };
        if let Some((file, length)) = named {
            if query.is_private_of(file) {
                assert_internal!(
                    query.access & SHARED == 0,
                    "the name of a file is used again for its private mappings alone"
                );
                query.name_length = length;
            } else if (query.start as usize) < range.end {
                let Some(same) = find(list, name, query.start as usize, properties)? else {
                    return Ok(());
                };
                query = same;
            }
        }
        named = query.continued_file().map(|file| (file, query.name_length));
        let (start, end) = (query.start as usize, query.end as usize);
        if start >= range.end {
            return Ok(());
        }
        if end <= at || end <= start {
            return Err(QueryError::Unavailable);
        }
        // Without the zero byte; a mapping without a name has none.
        let length = (query.name_length as usize).saturating_sub(1);
        let found = name.get(..length).ok_or(QueryError::Failed)?;
        if found.contains(&b'\n') {
            return Err(QueryError::Failed);
        }
        assert_internal!(
            query.access & properties == properties,
            "a mapping that is found has the properties that were requested"
        );
        each(query.entry(found));
        at = end;
    }
    Ok(())
}
