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
    /// Times from the last use of each object to its free or to the end, times its bytes.
    DragByteNs,
    /// Instructions executed.
    Instructions,
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
    /// Bytes times nanoseconds.
    ByteNanoseconds,
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
            Measure::DragByteNs => "drag-byte-ns",
            Measure::Instructions => "instructions",
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
            Measure::OwnPeakBytes => "most bytes live at once",
            Measure::OwnPeakObjects => "objects live when its bytes were at their maximum",
            Measure::LifetimeNs => "lifetimes",
            Measure::DragByteNs => "drag",
            Measure::Instructions => "instructions",
        }
    }

    /// Its unit.
    pub fn unit(self) -> Unit {
        match self {
            Measure::AllocatedObjects
            | Measure::EndObjects
            | Measure::PeakObjects
            | Measure::OwnPeakObjects
            | Measure::Instructions => Unit::Count,
            Measure::AllocatedBytes | Measure::EndBytes | Measure::PeakBytes | Measure::OwnPeakBytes => {
                Unit::Bytes
            }
            Measure::LifetimeNs => Unit::Nanoseconds,
            Measure::DragByteNs => Unit::ByteNanoseconds,
        }
    }

    /// Whether the values of several stacks may be added. Maxima at different times may not.
    pub fn adds_up(self) -> bool {
        !matches!(self, Measure::OwnPeakBytes | Measure::OwnPeakObjects)
    }
}
