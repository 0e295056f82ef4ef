//! The layers there are, and what each can be set to.

use std::path::PathBuf;

use super::option::Values;
use crate::places::Places;

/// What a layer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// Holds freed blocks back.
    Quarantine,
    /// Collects over the manager's malloc.
    Sweep,
    /// Frees objects at a recorded point.
    Oracle,
    /// Forwards and nothing else: what any layer costs.
    Forward,
    /// The recording layer; without a recorder it only forwards.
    Record,
    /// Counts calls.
    Count,
}

/// A layer with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// What it does.
    pub kind: LayerKind,
    /// As written, sizes in their shortest form: `quarantine=2M,check=on`.
    pub word: String,
    /// The value of its name, and options: `("size", "2097152")`, `("check", "on")`.
    pub settings: Vec<(String, String)>,
}

impl Layer {
    /// What its value or an option is set to.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// When the oracle layer frees objects (preload/layers/core/src/oracle.rs).
pub(super) const POINTS: [&str; 7] =
    ["free", "last-use", "unreachable", "delay", "collect", "never", "record"];

/// Every layer, in the order in which they are listed.
pub const LAYERS: [LayerKind; 6] = [
    LayerKind::Quarantine,
    LayerKind::Sweep,
    LayerKind::Oracle,
    LayerKind::Forward,
    LayerKind::Record,
    LayerKind::Count,
];

impl LayerKind {
    /// Its name in a stack.
    pub const fn as_str(self) -> &'static str {
        match self {
            LayerKind::Quarantine => "quarantine",
            LayerKind::Sweep => "sweep",
            LayerKind::Oracle => "oracle",
            LayerKind::Forward => "forward",
            LayerKind::Record => "record",
            LayerKind::Count => "count",
        }
    }

    /// The variable that carries its settings, where it has any.
    pub const fn variable(self) -> Option<&'static str> {
        match self {
            LayerKind::Quarantine => Some("HEAPTOLL_QUARANTINE"),
            LayerKind::Sweep => Some("HEAPTOLL_SWEEP"),
            LayerKind::Oracle => Some("HEAPTOLL_ORACLE"),
            _ => None,
        }
    }

    /// One line about it.
    pub const fn about(self) -> &'static str {
        match self {
            LayerKind::Quarantine => "delays frees until SIZE bytes wait, then frees them all",
            LayerKind::Sweep => "a conservative mark-sweep collector over the manager's malloc",
            LayerKind::Oracle => {
                "frees objects at a point that `heaptoll lab oracle` recorded, whatever the program frees"
            }
            LayerKind::Forward => "forwards and does nothing else: what any layer costs",
            LayerKind::Record => "forwards as the recording layer does without a recorder",
            LayerKind::Count => "counts calls",
        }
    }

    /// How it is written with a value that any program bears: `quarantine=2M`.
    pub const fn example(self) -> &'static str {
        match self {
            LayerKind::Quarantine => "quarantine=2M",
            LayerKind::Oracle => "oracle=record",
            _ => self.as_str(),
        }
    }

    /// How it is written: `quarantine=SIZE`.
    pub fn pattern(self) -> String {
        match self {
            LayerKind::Quarantine => "quarantine=SIZE".into(),
            LayerKind::Oracle => format!("oracle={}", POINTS.join("|")),
            _ => self.as_str().into(),
        }
    }

    /// Its options and what they may be.
    pub fn options(self) -> Vec<(&'static str, Values)> {
        let words = |all: &[&str]| Values::Words(all.iter().map(|&word| word.to_owned()).collect());
        match self {
            LayerKind::Quarantine => vec![
                ("check", words(&["on", "off"])),
                ("abort", words(&["on", "off"])),
                ("evict", words(&["all", "random"])),
                ("realloc", words(&["delay", "manager"])),
                ("seed", Values::Number(0, u64::MAX)),
            ],
            LayerKind::Sweep => vec![
                ("every", Values::Size(1)),
                ("heap", Values::Size(4096)),
                ("reclaim", Values::Number(1, 1 << 32)),
                ("free", words(&["ignore", "honour"])),
                ("markers", Values::Number(1, 64)),
                ("sweep", words(&["eager", "lazy"])),
            ],
            LayerKind::Oracle => vec![
                ("bytes", Values::Size(1)),
                ("file", Values::Path),
                ("check", words(&["off", "pages", "poison"])),
            ],
            _ => vec![],
        }
    }

    /// Whether it changes when blocks are free.
    pub const fn delays(self) -> bool {
        matches!(self, LayerKind::Quarantine | LayerKind::Sweep | LayerKind::Oracle)
    }

    /// Its shared object.
    pub fn object(self, places: &Places) -> PathBuf {
        places.layer(self.as_str())
    }

    /// The layer that a part of a word names.
    pub(super) fn of(part: &str) -> Option<LayerKind> {
        let name = part.split(['=', ',']).next().unwrap_or(part);
        LAYERS.into_iter().find(|kind| kind.as_str() == name)
    }
}
