//! The options of `heaptoll lab replay-graph`.

use clap::{Args, ValueEnum};
use heaptoll_command::failure::Failure;
use heaptoll_experiments::minheap::tolerance;
use heaptoll_experiments::replay::graph::{HeapBase, HeapSize, MOST_HEAPS, Question};
use heaptoll_experiments::simulated_machine;

use crate::memory;

/// The least heap, bytes: a page.
const PAGE: u64 = 4096;

/// Options of replays with pointers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traces with pointers")]
pub struct Options {
    /// The trace has pointers: replay it under collectors of MMTk (docs/guide/replay-graph.md)
    #[arg(long)]
    pub graph: bool,
    /// Sizes of the heap: multiples of the smallest one (2x), or sizes with K, M or G (16M)
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size, default_value = "1.5x,2x,3x", requires = "graph")]
    heap: Vec<HeapSize>,
    /// What heaps are multiples of
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = BaseArg::Least, requires = "graph")]
    multiple_of: BaseArg,
    /// Compare what each collection keeps with the trace, in one run more of each collector in each heap: an object that
    /// is reachable or used later, and is gone or changed, ends the run
    #[arg(long, requires = "graph")]
    pub check: bool,
    /// Simulate what the program's loads and stores miss in caches and TLB where each collector puts the objects, in one
    /// run more of each collector in each heap, and how that changes for requests after a collection; of a trace of
    /// `record --graph --references`
    #[arg(long, requires = "graph")]
    misses: bool,
    /// With --misses, a machine's data caches, nearest first, each SIZE/WAYS or SIZE/WAYS/LINE [default: those of this
    /// machine]
    #[arg(long, value_name = "CACHES", requires = "misses")]
    cache: Option<String>,
    /// With --misses, cycles that an access waits for level 2, level 3, ..., and for memory [default: 14, 50, ... and 200
    /// for memory]
    #[arg(long, value_name = "CYCLES", requires = "misses")]
    latency: Option<String>,
    /// With --misses, collections on request over the run, evenly by bytes allocated, besides those of full heaps: at the
    /// same places under each collector of MMTk
    #[arg(long, value_name = "N", requires = "misses", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    collections: Option<u32>,
    /// How far a smallest heap may be above the truth, as a percentage of it
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = tolerance, requires = "graph")]
    pub tolerance: f64,
    /// Threads of the collector
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), requires = "graph")]
    pub collector_threads: u32,
}

/// A smallest heap that others are multiples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BaseArg {
    /// The least of all collectors': they are compared at equal memory
    Least,
    /// Each collector's own
    Own,
}

fn size(text: &str) -> Result<HeapSize, String> {
    let wrong = "give multiples of the smallest heap, 1 or more, such as 1.5x, or sizes such as 16M: a whole number with K, M \
                 or G, 4K or more"
        .to_owned();
    match text.strip_suffix('x') {
        Some(times) => {
            let times: Option<f64> =
                times.parse().ok().filter(|times: &f64| times.is_finite() && *times >= 1.0);
            times.map(HeapSize::Times).ok_or(wrong)
        }
        None => memory::bytes(text).ok().filter(|bytes| *bytes >= PAGE).map(HeapSize::Bytes).ok_or(wrong),
    }
}

impl Options {
    /// Heaps, each once.
    ///
    /// # Errors
    /// They are too many.
    pub fn heaps(&self) -> Result<Vec<HeapSize>, Failure> {
        let mut heaps: Vec<HeapSize> = Vec::new();
        for heap in &self.heap {
            if !heaps.contains(heap) {
                heaps.push(*heap);
            }
        }
        if heaps.len() > MOST_HEAPS {
            return Err(Failure::Usage(format!(
                "--heap: {} sizes are too many; give {MOST_HEAPS} at most, for each is run under each collector",
                heaps.len()
            )));
        }
        Ok(heaps)
    }

    /// What is simulated.
    ///
    /// # Errors
    /// A text is no machine.
    pub fn misses(&self) -> Result<Option<Question>, Failure> {
        if !self.misses {
            return Ok(None);
        }
        let (machine, origin) = simulated_machine::choose(self.cache.as_deref(), self.latency.as_deref())
            .map_err(Failure::Usage)?;
        Ok(Some(Question { machine, origin, collections: self.collections }))
    }

    /// What they are multiples of.
    pub fn base(&self) -> HeapBase {
        match self.multiple_of {
            BaseArg::Least => HeapBase::Least,
            BaseArg::Own => HeapBase::Own,
        }
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
