//! Deliberate errors in the protocol: a single step of the sources, named by its line, is changed while it runs.

use std::cell::RefCell;
use std::panic::Location;
use std::path::Path;

use core::sync::atomic::Ordering;

/// What is changed about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    Nothing,
    /// Its order.
    Order(Ordering),
    /// It is left out.
    Skip,
    /// A read and a write in one step become two.
    Torn,
    /// A store happens only after the thread's next one.
    Late,
    /// The value that is loaded or stored is larger by this.
    Add(u64),
}

/// One error.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// The source, below `shm/alloc-ring/src`.
    pub file: &'static str,
    /// A part of the line, which is in no other line; or parts of lines that follow each other, with " … " between them:
    /// the last is meant.
    pub line: &'static str,
    /// The error.
    pub change: Change,
}

/// A mutant whose line was found.
struct Placed {
    file: String,
    line: u32,
    change: Change,
    /// How often its step was changed.
    hits: u64,
}

thread_local! {
    static PLACED: RefCell<Option<Placed>> = const { RefCell::new(None) };
}

impl Change {
    /// The order with which the step runs.
    pub(crate) fn order(self, order: Ordering) -> Ordering {
        if let Change::Order(weaker) = self { weaker } else { order }
    }

    pub(crate) fn added(self) -> u64 {
        if let Change::Add(more) = self { more } else { 0 }
    }
}

/// Makes the steps of this thread's models wrong from now on, or right again.
///
/// # Panics
/// When the line is not in the source, or in several places: the source has changed, and the mutant with it.
pub fn place(mutant: Option<&Mutant>) {
    let placed = mutant.map(|mutant| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shm/alloc-ring/src");
        let source = std::fs::read_to_string(folder.join(mutant.file)).expect("the source is there");
        let file = format!("/alloc-ring/src/{}", mutant.file);
        Placed { file, line: line_of(&source, mutant), change: mutant.change, hits: 0 }
    });
    PLACED.set(placed);
}

/// The number of a mutant's line in its source.
fn line_of(source: &str, mutant: &Mutant) -> u32 {
    let mut lines = source.lines().enumerate();
    let parts: Vec<&str> = mutant.line.split(" … ").collect();
    let mut found = 0;
    for part in &parts {
        let line = lines.find(|(_, line)| line.contains(part));
        found = line.unwrap_or_else(|| panic!("{} has no line {part}", mutant.file)).0;
    }
    let again = parts.len() == 1 && lines.any(|(_, line)| line.contains(parts[0]));
    assert!(!again, "{} has several lines {}", mutant.file, mutant.line);
    found as u32 + 1
}

/// How often the mutant's step was changed.
pub fn hits() -> u64 {
    PLACED.with_borrow(|placed| placed.as_ref().map_or(0, |placed| placed.hits))
}

/// What is changed about the step at a place of the sources.
pub(crate) fn change_at(place: &Location<'_>) -> Change {
    PLACED.with_borrow_mut(|placed| match placed {
        Some(placed) if place.line() == placed.line && place.file().ends_with(&placed.file) => {
            placed.hits += 1;
            placed.change
        }
        _ => Change::Nothing,
    })
}
