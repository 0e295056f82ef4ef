//! What came of a traced run: the process images it consisted of, and what was heard of each.

use std::collections::BTreeMap;

use heaptoll_lab::launch::Finished;
use heaptoll_reference::decoder::Damage;
use heaptoll_reference::{Clock, Routine};

/// One process image: from `exec` (or `fork`) to the next `exec` or the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its process number.
    pub pid: i32,
    /// That of its parent.
    pub parent: i32,
    /// The how manieth image of this process number it is, from 0.
    pub number: u32,
    /// Path of the executable, then its arguments; cut off where they are very long.
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
    /// It told its end, with this exit status.
    Ended(i32),
    /// The process went on as another image.
    Exec,
    /// It was killed by a signal, with or without a word.
    Killed,
    /// Nobody heard its end, and why.
    Untold(String),
}

impl std::fmt::Display for ImageEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImageEnding::Ended(status) => write!(f, "exit status {status}"),
            ImageEnding::Exec => write!(f, "exec"),
            ImageEnding::Killed => write!(f, "killed"),
            ImageEnding::Untold(why) => write!(f, "not heard to its end: {why}"),
        }
    }
}

/// Calls of the malloc family from outside of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Of routines that give a block, `realloc` among them.
    pub allocations: u64,
    /// Of routines that only give back.
    pub frees: u64,
}

/// What was heard of one image.
#[derive(Debug)]
pub struct TracedImage<S> {
    /// Which.
    pub image: Image,
    /// What it was told to.
    pub sink: S,
    /// What each owner executed, by the numbers of [`heaptoll_reference::Owner`], all threads together.
    pub totals: [Clock; 3],
    /// What of that came before `main`, where its `main` was seen to begin.
    pub before_main: Option<[Clock; 3]>,
    /// Calls of the malloc family.
    pub calls: Calls,
    /// How it ended.
    pub ending: ImageEnding,
    /// A word that no tracer writes: nothing behind it was heard.
    pub damage: Option<Damage>,
    /// The object file in which each routine of the malloc family was first entered.
    pub routine_objects: BTreeMap<Routine, String>,
    /// System calls that a native run would not see fail that way: (number, errno), how often.
    pub refused: BTreeMap<(u32, u32), u64>,
    /// What the tracer says the user should know.
    pub warnings: Vec<String>,
}

impl<S> TracedImage<S> {
    /// Instructions of all owners.
    pub fn instructions(&self) -> u64 {
        self.totals.iter().map(|clock| clock.instructions).fold(0, u64::saturating_add)
    }

    /// Whether it was heard from its first word to its last.
    pub fn is_whole(&self) -> bool {
        self.damage.is_none() && matches!(self.ending, ImageEnding::Ended(_) | ImageEnding::Exec)
    }
}

/// What came of a traced run.
#[derive(Debug)]
pub struct Traced<S> {
    /// How the program ended, what it printed, what all of it used (under the tracer).
    pub finished: Finished,
    /// Every process image, in the order in which they were noticed: a parent before its children.
    pub images: Vec<TracedImage<S>>,
    /// Why heaptoll itself ended the run early, if it did: what was heard until then is kept.
    pub stopped: Option<String>,
    /// What the user should know of the run as a whole: what Valgrind's log says, what was not heard.
    pub warnings: Vec<String>,
}

impl<S> Traced<S> {
    /// The image that executed most instructions: what a run's figures are of.
    pub fn main(&self) -> Option<&TracedImage<S>> {
        // The first of equals.
        self.images.iter().rev().max_by_key(|image| image.instructions())
    }

    /// What each owner executed in all images together.
    pub fn totals(&self) -> [Clock; 3] {
        self.images.iter().fold(Default::default(), |sums: [Clock; 3], image| {
            std::array::from_fn(|owner| sums[owner].plus(image.totals[owner]))
        })
    }

    /// Whether every image was heard to its end.
    pub fn is_whole(&self) -> bool {
        self.stopped.is_none() && self.images.iter().all(TracedImage::is_whole)
    }
}
