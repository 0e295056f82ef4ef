//! What the values of a stack mean.

/// What is summed up for each stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Objects made.
    AllocatedObjects,
    /// Bytes they requested, with what they grew by later.
    AllocatedBytes,
    /// Objects made and alive at the end.
    EndObjects,
    /// Requested bytes alive at the end.
    EndBytes,
    /// Objects alive when the requested bytes of all live objects were at their maximum.
    PeakObjects,
    /// Requested bytes alive then.
    PeakBytes,
    /// Most requested bytes of this stack alive at once, whenever that was. A sum over stacks has no meaning.
    OwnPeakBytes,
    /// Objects of this stack alive at that time.
    OwnPeakObjects,
    /// Times from the allocation of each object to its free or to the end, added up.
    LifetimeNs,
    /// Bytes that calls requested: of a resize the whole new size, at the stack of the resize.
    RequestedBytes,
    /// Calls of allocations and of resizes.
    Calls,
    /// Objects never touched.
    UntouchedObjects,
    /// Their requested bytes.
    UntouchedBytes,
    /// Bytes of objects in a phase of their use, times what a clock shows while they are in it.
    Space(Phase, Clock),
    /// Free bytes of resident pages that live blocks keep; those of a page are shared by its stacks equally.
    PinnedBytes,
    /// Free bytes of pages on which blocks of this stack are the only live ones.
    PinnedAloneBytes,
    /// Live blocks on pages with free bytes.
    PinningObjects,
    /// Bytes requested in them.
    PinningBytes,
    /// Instructions executed.
    Instructions,
    /// Instructions that the libraries of C and C++ executed for this stack.
    LibraryInstructions,
}

/// A phase of an object's use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// From the last touch to the end.
    Drag,
    /// All of the life of an object that is never touched.
    Void,
    /// From the allocation to the first touch.
    Lag,
    /// From the first touch to the last.
    Use,
}

/// What time is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Clock {
    /// Thousands of instructions of the program.
    Instructions,
    /// KiB allocated.
    Bytes,
}

/// The unit of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes times thousands of instructions.
    ByteInstructions,
    /// Bytes times KiB allocated.
    ByteBytes,
}

impl Measure {
    /// Its name in lists and options: `allocated-bytes`.
    pub fn name(self) -> &'static str {
        match self {
            Measure::AllocatedObjects => "allocated-objects",
            Measure::AllocatedBytes => "allocated-bytes",
            Measure::EndObjects => "end-objects",
            Measure::EndBytes => "end-bytes",
            Measure::PeakObjects => "peak-objects",
            Measure::PeakBytes => "peak-bytes",
            Measure::OwnPeakBytes => "own-peak-bytes",
            Measure::OwnPeakObjects => "own-peak-objects",
            Measure::LifetimeNs => "lifetime-ns",
            Measure::RequestedBytes => "requested-bytes",
            Measure::Calls => "calls",
            Measure::UntouchedObjects => "untouched-objects",
            Measure::UntouchedBytes => "untouched-bytes",
            Measure::Space(Phase::Drag, Clock::Instructions) => "drag-instructions",
            Measure::Space(Phase::Void, Clock::Instructions) => "void-instructions",
            Measure::Space(Phase::Lag, Clock::Instructions) => "lag-instructions",
            Measure::Space(Phase::Use, Clock::Instructions) => "use-instructions",
            Measure::Space(Phase::Drag, Clock::Bytes) => "drag-bytes",
            Measure::Space(Phase::Void, Clock::Bytes) => "void-bytes",
            Measure::Space(Phase::Lag, Clock::Bytes) => "lag-bytes",
            Measure::Space(Phase::Use, Clock::Bytes) => "use-bytes",
            Measure::PinnedBytes => "pinned-bytes",
            Measure::PinnedAloneBytes => "pinned-alone-bytes",
            Measure::PinningObjects => "pinning-objects",
            Measure::PinningBytes => "pinning-bytes",
            Measure::Instructions => "instructions",
            Measure::LibraryInstructions => "library-instructions",
        }
    }

    /// Its name for people: `bytes allocated`.
    pub fn title(self) -> &'static str {
        match self {
            Measure::AllocatedObjects => "objects allocated",
            Measure::AllocatedBytes => "bytes allocated",
            Measure::EndObjects => "objects live at the end",
            Measure::EndBytes => "bytes live at the end",
            Measure::PeakObjects => "objects live at the peak",
            Measure::PeakBytes => "bytes live at the peak",
            Measure::OwnPeakBytes => "most bytes live",
            Measure::OwnPeakObjects => "objects live when its bytes were at their maximum",
            Measure::LifetimeNs => "lifetimes",
            Measure::RequestedBytes => "bytes requested",
            Measure::Calls => "calls",
            Measure::UntouchedObjects => "objects never touched",
            Measure::UntouchedBytes => "bytes of objects never touched",
            Measure::Space(Phase::Drag, _) => "drag: held after the last touch",
            Measure::Space(Phase::Void, _) => "void: held and never touched",
            Measure::Space(Phase::Lag, _) => "lag: held until the first touch",
            Measure::Space(Phase::Use, _) => "use: between first and last touch",
            Measure::PinnedBytes => "free bytes of the pages it keeps",
            Measure::PinnedAloneBytes => "free bytes of the pages it keeps alone",
            Measure::PinningObjects => "live blocks on these pages",
            Measure::PinningBytes => "bytes in these blocks",
            Measure::Instructions => "instructions",
            Measure::LibraryInstructions => "instructions of the libraries of C and C++ for it",
        }
    }

    /// Its unit.
    pub fn unit(self) -> Unit {
        match self {
            Measure::AllocatedObjects
            | Measure::EndObjects
            | Measure::PeakObjects
            | Measure::OwnPeakObjects
            | Measure::Calls
            | Measure::UntouchedObjects
            | Measure::PinningObjects
            | Measure::Instructions
            | Measure::LibraryInstructions => Unit::Count,
            Measure::AllocatedBytes
            | Measure::EndBytes
            | Measure::PeakBytes
            | Measure::OwnPeakBytes
            | Measure::RequestedBytes
            | Measure::UntouchedBytes
            | Measure::PinnedBytes
            | Measure::PinnedAloneBytes
            | Measure::PinningBytes => Unit::Bytes,
            Measure::LifetimeNs => Unit::Nanoseconds,
            Measure::Space(_, Clock::Instructions) => Unit::ByteInstructions,
            Measure::Space(_, Clock::Bytes) => Unit::ByteBytes,
        }
    }

    /// Whether the values of several stacks may be added. Maxima at different times may not.
    pub fn adds_up(self) -> bool {
        !matches!(self, Measure::OwnPeakBytes | Measure::OwnPeakObjects)
    }
}
