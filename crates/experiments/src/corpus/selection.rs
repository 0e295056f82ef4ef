//! The programs of the corpus: of many kinds, in many languages, with objects that are blocks of malloc (no pools of their
//! own), and small enough that each takes some MiB at most.

use heaptoll_catalog::Size;

/// A program and the size of its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// Its name in the catalog.
    pub program: String,
    /// The size of its input; the nearest smaller one where the program has not this.
    pub size: Size,
}

/// The twenty programs with their sizes.
pub const SELECTION: [(&str, Size); 20] = [
    ("cfrac", Size::Quick),
    ("espresso", Size::Quick),
    ("gawk", Size::Quick),
    ("perl", Size::Quick),
    ("lua", Size::Quick),
    ("python", Size::Quick),
    ("ruby", Size::Quick),
    ("php", Size::Quick),
    ("make", Size::Quick),
    ("git", Size::Quick),
    ("cc1plus", Size::Quick),
    ("cppcheck", Size::Quick),
    ("jq", Size::Quick),
    ("xmllint", Size::Quick),
    ("sqlite", Size::Quick),
    ("xsltproc", Size::Quick),
    ("translate", Size::Quick),
    ("z3", Size::Quick),
    ("pdftotext", Size::Quick),
    ("kv", Size::Quick),
];

impl Selected {
    /// All twenty.
    pub fn all() -> Vec<Selected> {
        SELECTION
            .iter()
            .map(|(program, size)| Selected { program: (*program).to_owned(), size: *size })
            .collect()
    }

    /// A program of the selection as that has it; any other in the size `quick`.
    pub fn named(program: &str) -> Selected {
        let known = SELECTION.iter().find(|(name, _)| *name == program);
        Selected { program: program.to_owned(), size: known.map_or(Size::Quick, |(_, size)| *size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_selection_has_twenty_different_programs() {
        let names: BTreeSet<&str> = SELECTION.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), 20);
        assert_eq!(Selected::named("cfrac").size, SELECTION[0].1);
        assert_eq!(Selected::named("another").size, Size::Quick);
    }
}
