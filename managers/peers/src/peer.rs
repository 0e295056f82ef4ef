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
}

impl Peer {
    /// All peers; the quick ones first.
    pub const ALL: [Peer; 6] =
        [Peer::Mimalloc3, Peer::Mimalloc2, Peer::Snmalloc, Peer::Rpmalloc, Peer::Jemalloc, Peer::Tcmalloc];

    /// The name for `-m` and of the shared object.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Mimalloc3 => "mimalloc3",
            Peer::Mimalloc2 => "mimalloc2",
            Peer::Snmalloc => "snmalloc",
            Peer::Rpmalloc => "rpmalloc",
            Peer::Jemalloc => "jemalloc",
            Peer::Tcmalloc => "tcmalloc",
        }
    }

    /// The crate that carries the source.
    pub fn crate_name(self) -> &'static str {
        match self {
            Peer::Mimalloc3 | Peer::Mimalloc2 => "libmimalloc-sys",
            Peer::Snmalloc => "snmalloc-sys",
            Peer::Rpmalloc => "rpmalloc-sys",
            Peer::Jemalloc => "tikv-jemalloc-sys",
            Peer::Tcmalloc => "libtcmalloc-sys",
        }
    }

    /// Whether it takes minutes of CPU rather than seconds; a first run does without it.
    pub fn is_slow(self) -> bool {
        matches!(self, Peer::Jemalloc | Peer::Tcmalloc)
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
        }
    }

    /// The peers a word of the command line means: a name, `fast`, `slow` or `all`.
    pub fn parse(word: &str) -> Result<Vec<Peer>, String> {
        let chosen: Vec<Peer> = Peer::ALL
            .into_iter()
            .filter(|peer| match word {
                "all" => true,
                "fast" => !peer.is_slow(),
                "slow" => peer.is_slow(),
                name => peer.name() == name,
            })
            .collect();
        if chosen.is_empty() {
            let names: Vec<_> = Peer::ALL.iter().map(|peer| peer.name()).collect();
            return Err(format!("no such peer; choose among {}, fast, slow, all", names.join(", ")));
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_split_all_peers() {
        let fast = Peer::parse("fast").unwrap();
        let slow = Peer::parse("slow").unwrap();
        assert_eq!(slow, [Peer::Jemalloc, Peer::Tcmalloc]);
        assert_eq!(fast.len() + slow.len(), Peer::ALL.len());
        assert_eq!(Peer::parse("all").unwrap(), Peer::ALL);
    }

    #[test]
    fn a_name_means_itself_and_an_unknown_one_lists_the_names() {
        for peer in Peer::ALL {
            assert_eq!(Peer::parse(peer.name()).unwrap(), [peer]);
        }
        assert!(Peer::parse("hoard").unwrap_err().contains("snmalloc"));
    }
}
