//! The commands whose results are facts, the laboratory's among them.

use heaptoll_compare::comparative::{self, Comparable};

use crate::{delay, frequency, minheap, proximity, reclamation, replay_graph};

/// Every one: those of studies first, in the order of the kinds of steps.
pub static ALL: [Comparable; 14] = {
    let [run, instructions, locality, lifetimes, ledger, drag, replay, gate] = comparative::ALL;
    [
        run,
        instructions,
        locality,
        lifetimes,
        ledger,
        Comparable::of::<delay::Delay>("lab delay"),
        Comparable::of::<frequency::Frequency>("lab frequency"),
        Comparable::of::<proximity::ProximityFigures>("lab proximity"),
        Comparable::of::<minheap::MinheapFigures>("lab minheap"),
        Comparable::of::<reclamation::Reclamation>("lab reclamation"),
        Comparable::of::<replay_graph::GraphReplayFigures>("lab replay-graph"),
        drag,
        replay,
        gate,
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_another_command_or_version_is_refused_by_name() {
        let refused = |command: &str, text: &str| {
            let of = ALL.iter().find(|known| known.name == command).expect("it is known");
            of.facts(text).expect_err("it is refused").to_string()
        };
        let other = refused("lab delay", r#"{"schema": "heaptoll-minheap/1", "programs": []}"#);
        assert!(other.contains("heaptoll lab delay") && other.contains("heaptoll-minheap/1"), "{other}");
        let later = refused("lab delay", r#"{"schema": "heaptoll-delay/2", "heaptoll": "999.0.0"}"#);
        assert!(later.contains("heaptoll-delay/2") && later.contains("heaptoll 999.0.0"), "{later}");
        let run = refused("run", r#"{"schema": "x"}"#);
        assert!(run.contains("heaptoll run"), "{run}");
    }
}
