//! What a word of the command line selects: a peer by its name, the collector, or a group of them.

use crate::collector;
use crate::peer::Peer;

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
    /// By a name, `demo`, `fast`, `slow`, `all` or `profiling`, which is in none of the others. The collector is quick to
    /// build.
    ///
    /// # Errors
    /// No such peer; the message lists them.
    pub fn parse(word: &str) -> Result<Selection, String> {
        let named = word == collector::NAME;
        let wanted = Selection {
            peers: Peer::ALL
                .into_iter()
                .chain(Peer::PROFILING.into_iter().filter(|peer| ["profiling", peer.name()].contains(&word)))
                .filter(|peer| match word {
                    "profiling" => Peer::PROFILING.contains(peer),
                    "all" => true,
                    "demo" => [Peer::Mimalloc3, Peer::Snmalloc].contains(peer),
                    "fast" => !peer.is_slow(),
                    "slow" => peer.is_slow(),
                    name => peer.name() == name,
                })
                .collect(),
            collector: named || ["all", "demo", "fast"].contains(&word),
            collector_named: named,
        };
        if wanted == Selection::default() {
            let names: Vec<_> = Peer::ALL.iter().map(|peer| peer.name()).collect();
            let names = names.join(", ");
            return Err(format!(
                "no such peer; choose among {names}, {}, demo, fast, slow, all, profiling",
                collector::NAME
            ));
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
        let demo = Selection::parse("demo").unwrap();
        assert!(demo.peers == [Peer::Mimalloc3, Peer::Snmalloc] && demo.collector && !demo.collector_named);
        let profiling = Selection::parse("profiling").unwrap();
        assert_eq!((profiling.peers, profiling.collector), (Peer::PROFILING.to_vec(), false));
    }

    #[test]
    fn a_name_means_itself_and_an_unknown_one_lists_the_names() {
        for peer in Peer::ALL.into_iter().chain(Peer::PROFILING) {
            assert_eq!(Selection::parse(peer.name()).unwrap().peers, [peer]);
        }
        let collector = Selection::parse("bdw").unwrap();
        assert!(collector.peers.is_empty() && collector.collector_named);
        let error = Selection::parse("hoard").unwrap_err();
        assert!(error.contains("snmalloc") && error.contains("bdw"), "{error}");
    }
}
