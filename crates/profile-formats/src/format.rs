//! The formats, and what is chosen of a profile where a format has no place for all of it.

use heaptoll_profiles::Measure;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Protocol buffers compressed by gzip: `go tool pprof`, Pyroscope, Parca, Perfetto.
    Pprof,
    /// JSON of the Firefox Profiler.
    Firefox,
    /// A line a stack: `flamegraph.pl` and all that reads its input.
    Folded,
    /// JSON of Valgrind's DHAT.
    Dhat,
    /// Text of Valgrind's callgrind: KCachegrind, `callgrind_annotate`.
    Callgrind,
    /// JSON of speedscope.
    Speedscope,
    /// Protocol buffers of Perfetto's traces.
    Perfetto,
}

impl Format {
    /// Whether a terminal cannot show it.
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Pprof | Format::Perfetto)
    }

    /// Whether it shows when objects lived.
    pub fn has_lives(self) -> bool {
        self == Format::Firefox
    }

    /// Whether it shows something of a profile without call stacks.
    pub fn has_tracks(self) -> bool {
        self == Format::Perfetto
    }

    /// The name of a file of this format for a trace of this name, as its viewers expect it.
    pub fn file_name(self, trace: &str) -> String {
        match self {
            Format::Pprof => format!("{trace}.pb.gz"),
            Format::Firefox => format!("{trace}.firefox.json"),
            Format::Folded => format!("{trace}.folded"),
            Format::Dhat => format!("dhat.out.{trace}"),
            Format::Callgrind => format!("callgrind.out.{trace}"),
            Format::Speedscope => format!("{trace}.speedscope.json"),
            Format::Perfetto => format!("{trace}.perfetto-trace"),
        }
    }
}

/// When live objects are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Instant {
    /// At the end.
    End,
    /// When most bytes were alive.
    Peak,
}

impl Instant {
    /// The live objects then, and their bytes.
    pub fn measures(self) -> [Measure; 2] {
        match self {
            Instant::End => [Measure::EndObjects, Measure::EndBytes],
            Instant::Peak => [Measure::PeakObjects, Measure::PeakBytes],
        }
    }
}

/// One figure of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Count {
    /// Bytes allocated.
    AllocatedBytes,
    /// Objects allocated.
    AllocatedObjects,
    /// Live bytes at the chosen instant.
    LiveBytes,
    /// Live objects at the chosen instant.
    LiveObjects,
}

impl Count {
    /// What it is of a profile.
    pub fn measure(self, instant: Instant) -> Measure {
        match self {
            Count::AllocatedBytes => Measure::AllocatedBytes,
            Count::AllocatedObjects => Measure::AllocatedObjects,
            Count::LiveObjects => instant.measures()[0],
            Count::LiveBytes => instant.measures()[1],
        }
    }
}

/// What is chosen of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// When the live objects are counted, in formats that have one figure for them.
    pub instant: Instant,
    /// The figure, in formats that have one.
    pub count: Count,
}

/// What was allocated and what was alive then: objects and bytes of each.
pub(crate) fn four(instant: Instant) -> [Measure; 4] {
    let [objects, bytes] = instant.measures();
    [Measure::AllocatedObjects, Measure::AllocatedBytes, objects, bytes]
}
