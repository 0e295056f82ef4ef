//! Which manager here stands for which of the papers'.

/// A manager of the papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandIn {
    /// Its name here.
    pub name: &'static str,
    /// The column of Detlefs, Dosser and Zorn that it stands for.
    pub detlefs: Option<&'static str>,
    /// Whether it looks for a fit among free blocks of all sizes for every request, however small: the time that takes
    /// grows with the heap. (`haertel` does for runs of whole chunks only, which cfrac never asks for; `lea` within a
    /// bin of sizes.)
    pub searches: bool,
}

const fn stand_in(name: &'static str, detlefs: Option<&'static str>, searches: bool) -> StandIn {
    StandIn { name, detlefs, searches }
}

/// All of them, in the order of the tables.
pub const ALL: [StandIn; 10] = [
    stand_in("kingsley", Some("ultrix"), false),
    stand_in("haertel", Some("gnu_prime"), false),
    stand_in("lea", Some("g++"), false),
    stand_in("quickfit", Some("quickfit"), false),
    stand_in("knuth", None, true),
    stand_in("bestfit", None, true),
    stand_in("cartesian", None, true),
    stand_in("pow2", None, false),
    stand_in("buddy", None, false),
    stand_in("bump", None, false),
];

/// The manager of that name, if it is one of the papers'.
pub fn find(name: &str) -> Option<&'static StandIn> {
    ALL.iter().find(|stand_in| stand_in.name == name)
}

/// The column of the paper that a manager stands for.
pub fn column(name: &str) -> Option<&'static str> {
    find(name)?.detlefs
}

/// What the paper calls a program of the catalog.
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
