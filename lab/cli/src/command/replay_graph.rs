//! `heaptoll lab replay-graph`: what collectors, also such that move objects, do with a trace with pointers.

use std::path::PathBuf;

use clap::Args;
use heaptoll::bytes::bytes;
use heaptoll::entry::{Command, writes};
use heaptoll::one_of::{Word, one_of};
use heaptoll::replays::{ReplayArguments, again, status};
use heaptoll::session::Session;
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::minheap::tolerance;
use heaptoll_laboratory::replay_graph::{self, GraphReplayRequest, HeapBase, HeapSize, MOST_HEAPS, Question};
use heaptoll_traced::simulated_machine;

/// The least heap, bytes: a page.
const PAGE: u64 = 4096;

/// Replay a trace with pointers under collectors of MMTk, in heaps of fixed size.
///
/// `heaptoll record --graph` makes such a trace. Collectors that move objects replay it too (-m mmtk:semispace).
/// docs/lab/replay-graph.md explains the figures.
///
/// Exit status: 0 all well; 1 a collector failed, a collection lost an object, or an output file could not be
/// written; 2 not a trace with pointers, or not replayable; 130 interrupted (finished runs are shown).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll lab replay-graph lua.graph --heap 2x,3x\n  \
    heaptoll lab replay-graph lua.graph -m mmtk:marksweep -m mmtk:gencopy --heap 16M --check\n  \
    heaptoll lab replay-graph kv.graph --heap 64M --misses --collections 100    (caches, and requests after a collection)")]
pub struct Arguments {
    /// The trace that `heaptoll record --graph` made
    trace: PathBuf,
    /// A collector of MMTk (mmtk:marksweep, mmtk:immix, mmtk:immix,moving=off, mmtk:stickyimmix, mmtk:genimmix,
    /// mmtk:gencopy, mmtk:semispace, mmtk:markcompact), or mmtk:nogc, which never collects. Our own collectors for
    /// replays are own:mostlycopying, own:counting and own:treadmill. May be given several times; ratios are to the
    /// first [default: all of MMTk but mmtk:nogc]
    #[arg(short, long, value_name = "COLLECTOR")]
    manager: Vec<String>,
    /// Sizes of the heap: multiples of the smallest one (2x), or sizes with K, M or G (16M)
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size, default_value = "1.5x,2x,3x")]
    heap: Vec<HeapSize>,
    /// The smallest heap that multiples refer to
    #[arg(long, value_name = "WHICH", default_value = "least", value_parser = one_of(&BASES))]
    multiple_of: HeapBase,
    /// Compare each collection with the trace, in one more run per collector and heap; a lost or changed object that
    /// is still needed ends the run
    #[arg(long)]
    check: bool,
    /// Simulate cache and TLB misses of the program's loads and stores with each collector's placement, in one more
    /// run per collector and heap. It also shows how they change for requests after a collection. Needs a trace of
    /// `record --graph --references`
    #[arg(long)]
    misses: bool,
    /// With --misses, a machine's data caches, nearest first, each SIZE/WAYS or SIZE/WAYS/LINE [default: this
    /// machine's]
    #[arg(long, value_name = "CACHES", requires = "misses")]
    cache: Option<String>,
    /// With --misses, cycles that an access waits for level 2, level 3, ..., and for memory [default: 14, 50, ... and 200
    /// for memory]
    #[arg(long, value_name = "CYCLES", requires = "misses")]
    latency: Option<String>,
    /// With --misses, further collections spread evenly by bytes allocated, at the same places under each collector
    /// of MMTk
    #[arg(long, value_name = "N", requires = "misses", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    collections: Option<u32>,
    /// A smallest heap may be too large by this percentage
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = tolerance)]
    tolerance: f64,
    /// Threads of the collector
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    collector_threads: u32,
    #[command(flatten)]
    replay: ReplayArguments,
}

/// The smallest heap that multiples refer to.
const BASES: [Word<HeapBase>; 2] = [
    ("least", HeapBase::Least, "The smallest of all collectors, to compare them at equal memory"),
    ("own", HeapBase::Own, "Each collector's own"),
];

fn size(text: &str) -> Result<HeapSize, String> {
    let wrong = "give multiples of the smallest heap from 1x, such as 1.5x, or sizes from 4K with K, M or G, such as \
    16M"
        .to_owned();
    match text.strip_suffix('x') {
        Some(times) => {
            let times: Option<f64> =
                times.parse().ok().filter(|times: &f64| times.is_finite() && *times >= 1.0);
            times.map(HeapSize::Times).ok_or(wrong)
        }
        None => bytes(text).ok().filter(|bytes| *bytes >= PAGE).map(HeapSize::Bytes).ok_or(wrong),
    }
}

impl Command for Arguments {
    const NAME: &'static str = "lab replay-graph";
    const FIRST: &'static [&'static str] = &["heap", "check", "misses"];
    writes!(of: replay_graph::GraphReplayFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let request = GraphReplayRequest {
            trace: arguments.trace.clone(),
            plans: arguments.manager.clone(),
            heaps: arguments.heaps()?,
            base: arguments.multiple_of,
            tolerance: arguments.tolerance,
            check: arguments.check,
            misses: arguments.misses()?,
            runs: arguments.replay.runs,
            seed: arguments.replay.seed,
            collector_threads: arguments.collector_threads,
            timeout: arguments.replay.timeout(),
            memory_limit_bytes: arguments.replay.memory.limit_bytes(),
        };
        let replayed = replay_graph::run(&request, &session.context())?;
        let document = replayed.document(&again(replayed.figures.seed));
        let code = arguments.replay.outputs.deliver(&document, &replayed.figures)?;
        Ok(status(replayed.figures.complete, replayed.has_trouble(), code))
    }
}

impl Arguments {
    /// Heaps, each once.
    ///
    /// # Errors
    /// They are too many.
    fn heaps(&self) -> Result<Vec<HeapSize>, Failure> {
        let mut heaps: Vec<HeapSize> = Vec::new();
        for heap in &self.heap {
            if !heaps.contains(heap) {
                heaps.push(*heap);
            }
        }
        if heaps.len() > MOST_HEAPS {
            return Err(Failure::Usage(format!(
                "--heap: {} sizes are too many; give at most {MOST_HEAPS}, because each runs under each collector",
                heaps.len()
            )));
        }
        Ok(heaps)
    }

    /// What is simulated.
    ///
    /// # Errors
    /// A text is no machine.
    fn misses(&self) -> Result<Option<Question>, Failure> {
        if !self.misses {
            return Ok(None);
        }
        let (machine, origin) = simulated_machine::choose(self.cache.as_deref(), self.latency.as_deref())
            .map_err(Failure::Usage)?;
        Ok(Some(Question { machine, origin, collections: self.collections }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_are_multiples_or_sizes() {
        assert_eq!(size("1.5x"), Ok(HeapSize::Times(1.5)));
        assert_eq!(size("16M"), Ok(HeapSize::Bytes(16 << 20)));
        for wrong in ["0.5x", "x", "-2x", "NaNx", "0", "1", "4095", "1T", "many", "", "2y"] {
            assert!(
                size(wrong).is_err_and(|text| text.contains("1.5x") && text.contains("K, M or G")),
                "{wrong}"
            );
        }
    }
}
