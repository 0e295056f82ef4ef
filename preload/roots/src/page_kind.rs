//! The kinds of a mapping's pages, which decide how those that hold something are found.

/// What the pages of a mapping are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Memory of this process alone.
    Anonymous,
    /// A file's pages, until they are written to.
    PrivateFile,
    /// Memory shared by processes: of no file, of one without a disk, or of a device. A forked child's page tables do
    /// not show what is there.
    SharedMemory,
    /// A file's pages, in memory or on a disk.
    SharedFile,
    /// Those that the page tables have: of memory that can only be written, or of a large file that is mostly holes. To
    /// find out of every page whether it is in memory takes 25 ms a GiB, and to read some has the kernel make more of
    /// the holes memory.
    SparseFile,
}

impl PageKind {
    /// Whether the page tables show which of its pages hold something.
    pub fn is_in_page_tables(self) -> bool {
        !matches!(self, PageKind::SharedMemory | PageKind::SharedFile)
    }
}
