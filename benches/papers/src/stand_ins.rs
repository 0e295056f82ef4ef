//! The managers here that stand for those of the papers.

/// A manager's design, where that may take time that glibc does not spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// Takes the head of a list. (`haertel` searches for runs of whole chunks only, which cfrac never requests; `lea`
    /// within a bin of sizes, where its exact lists have nothing.)
    Lists,
    /// Searches free blocks of all sizes for a fit for every request, however small: the time that takes grows with the
    /// heap. The text describes the search.
    Searches(&'static str),
    /// Frees nothing, so that every block comes from fresh memory.
    NeverReuses,
}

/// A manager of the papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandIn {
    /// Its name here.
    pub name: &'static str,
    /// The column of Detlefs, Dosser and Zorn that it stands for.
    pub detlefs: Option<&'static str>,
    /// Its design.
    pub design: Design,
}

const fn stand_in(name: &'static str, detlefs: Option<&'static str>, design: Design) -> StandIn {
    StandIn { name, detlefs, design }
}

/// All of them, in the order of the tables.
pub const ALL: [StandIn; 10] = [
    stand_in("kingsley", Some("ultrix"), Design::Lists),
    stand_in("haertel", Some("gnu_prime"), Design::Lists),
    stand_in("lea", Some("g++"), Design::Lists),
    stand_in("quickfit", Some("quickfit"), Design::Lists),
    stand_in(
        "knuth",
        None,
        Design::Searches("each malloc goes along the list of all free blocks, from where the last one ended"),
    ),
    stand_in(
        "bestfit",
        None,
        Design::Searches("each malloc goes along the list of all free blocks until one fits exactly"),
    ),
    stand_in(
        "cartesian",
        None,
        Design::Searches("each malloc and each free goes down a tree of all free blocks"),
    ),
    stand_in("pow2", None, Design::Lists),
    stand_in("buddy", None, Design::Lists),
    stand_in("bump", None, Design::NeverReuses),
];

/// The manager of that name, if it is one of the papers'.
pub fn find(name: &str) -> Option<&'static StandIn> {
    ALL.iter().find(|stand_in| stand_in.name == name)
}

/// The column of the paper that a manager stands for.
pub fn column(name: &str) -> Option<&'static str> {
    find(name)?.detlefs
}

/// The paper's name of a program of the catalog.
pub fn paper_program(name: &str) -> Option<&'static str> {
    match name {
        "cfrac" => Some("cfrac"),
        "gawk" => Some("gawk"),
        "perl" => Some("perl"),
        "espresso" => Some("espresso"),
        "make" => Some("make"),
        "ghostscript" => Some("ghost"),
        _ => None,
    }
}

/// A manager's design; one that is none of the papers' has no excuse.
pub fn design(name: &str) -> Design {
    find(name).map_or(Design::Lists, |stand_in| stand_in.design)
}
