//! The result of a traced run: its process images, and what was recorded of each.

use std::collections::{BTreeMap, BTreeSet};

use heaptoll_experiment::launch::Finished;
use heaptoll_reftrace::decoder::Damage;
use heaptoll_reftrace::{Clock, Routine};

use crate::family_calls::FamilyCalls;

/// One process image: from `exec` (or `fork`) to the next `exec` or the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its process number.
    pub pid: i32,
    /// That of its parent.
    pub parent: i32,
    /// The image's index among those of this process number, from 0.
    pub number: u32,
    /// Path of the executable, then its arguments; truncated where they are very long.
    pub command: Vec<String>,
}

impl Image {
    /// The executable's name without its folder.
    pub fn name(&self) -> &str {
        let path = self.command.first().map(String::as_str).unwrap_or_default();
        path.rsplit('/').next().unwrap_or(path)
    }
}

/// How an image ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageEnding {
    /// It recorded its end, with this exit status.
    Ended(i32),
    /// The process continued as another image.
    Exec,
    /// It was killed by a signal, whether or not it recorded its end.
    Killed,
    /// It did not record its end: a signal killed it, or it became another image that was not recorded.
    Unrecorded,
    /// It was not recorded to its end, and why.
    Incomplete(String),
}

impl std::fmt::Display for ImageEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImageEnding::Ended(status) => write!(f, "exit status {status}"),
            ImageEnding::Exec => write!(f, "exec"),
            ImageEnding::Killed => write!(f, "killed"),
            ImageEnding::Unrecorded => write!(f, "its end was not recorded"),
            ImageEnding::Incomplete(why) => write!(f, "not traced to its end: {why}"),
        }
    }
}

/// Calls of the malloc family from outside of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls of routines that return a block, `realloc` among them.
    pub allocations: u64,
    /// Calls of routines that only free.
    pub frees: u64,
}

/// What one function of an image executed itself, without those that it called, and what the standard library did for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionCount {
    /// Path of the object that has it; empty for code made at run time.
    pub object: String,
    /// Its symbol as the object has it, mangled; empty for code without one.
    pub symbol: String,
    /// Instructions, of all threads.
    pub instructions: u64,
    /// Instructions of the libraries of C and C++, of all threads, from a call by this function until another function
    /// outside of them called. That they executed before any call is of a function `(before any call)` of no object.
    pub for_it: u64,
}

/// What was recorded of one image.
#[derive(Debug)]
pub struct TracedImage<S> {
    /// The image.
    pub image: Image,
    /// The sink that received its references and events.
    pub sink: S,
    /// What each owner executed, by the numbers of [`heaptoll_reftrace::Owner`], all threads together.
    pub totals: [Clock; 3],
    /// The part of that before `main`, if the image's `main` was seen to begin.
    pub before_main: Option<[Clock; 3]>,
    /// Calls of the malloc family.
    pub calls: Calls,
    /// Calls of each family of routines by its number, 0 being that of C.
    pub families: BTreeMap<u8, FamilyCalls>,
    /// Writable memory that it mapped or took by brk, bytes, all together.
    pub writable_bytes: u64,
    /// Families of which a routine was inlined, so that some of its calls were not seen; with the objects.
    pub inlined: BTreeMap<u8, BTreeSet<String>>,
    /// Instructions of each function, once each, by object and symbol, where they were requested and the image recorded
    /// its end. Of paths and symbols that are together longer than 8183 bytes the rest is cut: functions that are the
    /// same up to there are one.
    pub functions: Vec<FunctionCount>,
    /// How it ended.
    pub ending: ImageEnding,
    /// A word that no tracer writes: nothing after it was decoded.
    pub damage: Option<Damage>,
    /// The object file in which each routine was first entered; of several families, that of C.
    pub routine_objects: BTreeMap<Routine, String>,
    /// System calls that failed in a way in which they would not in a native run: (number, errno), how often.
    pub refused: BTreeMap<(u32, u32), u64>,
    /// The tracer's messages for the user.
    pub warnings: Vec<String>,
}

impl<S> TracedImage<S> {
    /// Instructions of all owners.
    pub fn instructions(&self) -> u64 {
        self.totals.iter().map(|clock| clock.instructions).fold(0, u64::saturating_add)
    }

    /// Whether it was recorded from its first word to its last.
    pub fn is_whole(&self) -> bool {
        self.damage.is_none() && matches!(self.ending, ImageEnding::Ended(_) | ImageEnding::Exec)
    }
}

/// The result of a traced run.
#[derive(Debug)]
pub struct Traced<S> {
    /// How the program ended, what it printed, what it used in total (under the tracer).
    pub finished: Finished,
    /// Every process image, in the order in which they were found: a parent before its children.
    pub images: Vec<TracedImage<S>>,
    /// Why heaptoll itself ended the run early, if it did: what was recorded until then is kept.
    pub stopped: Option<String>,
    /// Why Valgrind ended a process before its end.
    pub gave_up: Vec<String>,
    /// Messages for the user about the whole run: from Valgrind's log, and rings that could not be read.
    pub warnings: Vec<String>,
}

impl<S> Traced<S> {
    /// The image that executed most instructions, which a run's figures describe.
    pub fn main(&self) -> Option<&TracedImage<S>> {
        self.images.get(self.main_at()?)
    }

    /// Its index.
    pub fn main_at(&self) -> Option<usize> {
        // The first of several with as many.
        let images = self.images.iter().enumerate().rev();
        images.max_by_key(|(_, image)| image.instructions()).map(|(at, _)| at)
    }

    /// What each owner executed, summed over all images.
    pub fn totals(&self) -> [Clock; 3] {
        self.images.iter().fold(Default::default(), |sums: [Clock; 3], image| {
            std::array::from_fn(|owner| sums[owner].plus(image.totals[owner]))
        })
    }

    /// Whether every image was recorded to its end.
    pub fn is_whole(&self) -> bool {
        self.stopped.is_none() && self.images.iter().all(TracedImage::is_whole)
    }
}
