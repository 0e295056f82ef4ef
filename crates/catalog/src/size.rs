//! How much work a program is given: four sizes, so that a test need not wait for a measurement's input.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::CatalogError;

/// The size of a program's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// About 10 ms of CPU: for what is a hundred times as slow, and for tests.
    Tiny,
    /// About 0.1 s of CPU: for tests.
    Quick,
    /// About 0.3 to 0.5 s of CPU: for a demonstration that must end in minutes.
    Demo,
    /// 1 to 4 s of CPU: for measurement.
    Full,
}

impl Size {
    /// Every size, smallest first.
    pub const ALL: [Size; 4] = [Size::Tiny, Size::Quick, Size::Demo, Size::Full];

    /// The name used in entries and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Size::Tiny => "tiny",
            Size::Quick => "quick",
            Size::Demo => "demo",
            Size::Full => "full",
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Size {
    type Err = CatalogError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Size::ALL
            .into_iter()
            .find(|size| size.name() == text)
            .ok_or_else(|| CatalogError::UnknownSize { size: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_reads_back_from_its_name() {
        for size in Size::ALL {
            assert_eq!(size.to_string().parse::<Size>().unwrap(), size);
        }
    }

    #[test]
    fn an_unknown_size_lists_the_known_ones() {
        let message = "huge".parse::<Size>().unwrap_err().to_string();
        assert!(message.contains("huge") && message.contains("tiny, quick, demo or full"), "{message}");
    }
}
