//! The peers: the names users type, the crates the sources come from, and which of them are quick to build.

use crate::collector;

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
}

/// The meaning of a word of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Peers that are built from crates.
    pub peers: Vec<Peer>,
    /// Whether the collector, which is Debian's library, is among them.
    pub collector: bool,
    /// Whether it was requested by name: it may then not be left out.
    pub collector_named: bool,
}

impl Selection {
    /// By a name, `fast`, `slow` or `all`. The collector is quick to build.
    ///
    /// # Errors
    /// No such peer; the message lists them.
    pub fn parse(word: &str) -> Result<Selection, String> {
        let named = word == collector::NAME;
        let wanted = Selection {
            peers: Peer::ALL
                .into_iter()
                .filter(|peer| match word {
                    "all" => true,
                    "fast" => !peer.is_slow(),
                    "slow" => peer.is_slow(),
                    name => peer.name() == name,
                })
                .collect(),
            collector: named || ["all", "fast"].contains(&word),
            collector_named: named,
        };
        if wanted == Selection::default() {
            let names: Vec<_> = Peer::ALL.iter().map(|peer| peer.name()).collect();
            let names = names.join(", ");
            return Err(format!("no such peer; choose among {names}, {}, fast, slow, all", collector::NAME));
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_split_all_peers() {
        let fast = Selection::parse("fast").unwrap();
        let slow = Selection::parse("slow").unwrap();
        assert_eq!(slow.peers, [Peer::Jemalloc, Peer::Tcmalloc]);
        assert_eq!(fast.peers.len() + slow.peers.len(), Peer::ALL.len());
        assert_eq!(Selection::parse("all").unwrap().peers, Peer::ALL);
        assert!(fast.collector && !slow.collector && !fast.collector_named);
    }

    #[test]
    fn a_name_means_itself_and_an_unknown_one_lists_the_names() {
        for peer in Peer::ALL {
            assert_eq!(Selection::parse(peer.name()).unwrap().peers, [peer]);
        }
        let collector = Selection::parse("bdw").unwrap();
        assert!(collector.peers.is_empty() && collector.collector_named);
        let error = Selection::parse("hoard").unwrap_err();
        assert!(error.contains("snmalloc") && error.contains("bdw"), "{error}");
    }
}
