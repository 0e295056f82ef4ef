//! The peers: the names users type, the crates the sources come from, and which of them are quick to build.

/// One allocator that is built here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// Microsoft's mimalloc, version 3.
    Mimalloc3,
    /// Microsoft's mimalloc, version 2.
    Mimalloc2,
    /// Microsoft's snmalloc.
    Snmalloc,
    /// Mattias Jansson's rpmalloc.
    Rpmalloc,
    /// jemalloc, Jason Evans's and Meta's.
    Jemalloc,
    /// Google's TCMalloc (not gperftools).
    Tcmalloc,
    /// jemalloc with its heap profiler, which slows no other peer: for the bench of sampled profiles.
    JemallocProf,
}

impl Peer {
    /// All peers that programs are compared over; the quick ones first.
    pub const ALL: [Peer; 6] =
        [Peer::Mimalloc3, Peer::Mimalloc2, Peer::Snmalloc, Peer::Rpmalloc, Peer::Jemalloc, Peer::Tcmalloc];
    /// The variant with a heap profiler, which is built only where it is named.
    pub const PROFILING: [Peer; 1] = [Peer::JemallocProf];

    /// The name for `-m` and of the shared object.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Mimalloc3 => "mimalloc3",
            Peer::Mimalloc2 => "mimalloc2",
            Peer::Snmalloc => "snmalloc",
            Peer::Rpmalloc => "rpmalloc",
            Peer::Jemalloc => "jemalloc",
            Peer::Tcmalloc => "tcmalloc",
            Peer::JemallocProf => "jemalloc-prof",
        }
    }

    /// The crate that carries the source.
    pub fn crate_name(self) -> &'static str {
        match self {
            Peer::Mimalloc3 | Peer::Mimalloc2 => "libmimalloc-sys",
            Peer::Snmalloc => "snmalloc-sys",
            Peer::Rpmalloc => "rpmalloc-sys",
            Peer::Jemalloc | Peer::JemallocProf => "tikv-jemalloc-sys",
            Peer::Tcmalloc => "libtcmalloc-sys",
        }
    }

    /// Whether it takes minutes of CPU rather than seconds; a first run does without it.
    pub fn is_slow(self) -> bool {
        matches!(self, Peer::Jemalloc | Peer::Tcmalloc | Peer::JemallocProf)
    }

    /// One line for `heaptoll managers`.
    pub fn about(self) -> &'static str {
        match self {
            Peer::Mimalloc3 => {
                "Microsoft's mimalloc 3: free lists sharded by page, pages shared between threads"
            }
            Peer::Mimalloc2 => {
                "Microsoft's mimalloc 2: free lists sharded by page, segments owned by threads"
            }
            Peer::Snmalloc => "Microsoft's snmalloc: frees by other threads go home in batched messages",
            Peer::Rpmalloc => "Mattias Jansson's rpmalloc: lock-free, spans cached by thread",
            Peer::Jemalloc => "jemalloc: arenas, slabs of size classes, thread caches, decay-driven purging",
            Peer::Tcmalloc => "Google's TCMalloc: caches by CPU on restartable sequences, huge-page aware",
            Peer::JemallocProf => "jemalloc with --enable-prof: MALLOC_CONF switches its heap profiler on",
        }
    }
}
