//! Call stacks in chunks: a table of millions of frames is cut into parts that state their position, so that a lost one
//! does not shift the others.
//!
//! Stacks are written while a program runs, as addresses, so that a trace which is cut off has them; at its end they are
//! written again with names. The frames with names get numbers of their own: whatever part of the file is lost, a stack
//! leads to frames that were written for it.

use serde::{Deserialize, Serialize};

use crate::header::{Frame, Site, Sites, SitesSoFar};

/// Frames or stacks of one part: a few hundred kB of JSON.
const PER_PART: usize = 2048;
/// Tables with more entries than this are taken for damage.
const ENTRIES_MAX: usize = 1 << 26;

/// A part of [`Sites`].
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Part {
    first_site: usize,
    sites: Vec<Site>,
    first_frame: usize,
    frames: Vec<Frame>,
}

/// What of both tables a file has.
#[derive(Debug, Default)]
pub(crate) struct WrittenSites {
    frames: usize,
}

impl WrittenSites {
    /// The parts of stacks that continue the tables: the first of each has this number.
    pub(crate) fn more(&mut self, more: &SitesSoFar) -> impl Iterator<Item = Part> {
        self.frames = self.frames.max(more.first_frame + more.sites.frames.len());
        parts(more.first_frame, &more.sites.frames, more.first_site, &more.sites.sites, 0)
    }

    /// The parts of whole tables, which replace what was written.
    pub(crate) fn all(&self, sites: &Sites) -> impl Iterator<Item = Part> {
        parts(self.frames, &sites.frames, 0, &sites.sites, self.frames as u32)
    }
}

/// Frames before the stacks that lead to them. Numbers of frames in the stacks are raised by `by`.
fn parts(
    first_frame: usize,
    frames: &[Frame],
    first_site: usize,
    sites: &[Site],
    by: u32,
) -> impl Iterator<Item = Part> {
    let frames = frames.chunks(PER_PART).enumerate().map(move |(at, frames)| Part {
        first_frame: first_frame + at * PER_PART,
        frames: frames.to_vec(),
        ..Part::default()
    });
    let raised = move |site: &Site| Site { frames: site.frames.iter().map(|frame| frame + by).collect() };
    let stacks = sites.chunks(PER_PART).enumerate().map(move |(at, sites)| Part {
        first_site: first_site + at * PER_PART,
        sites: sites.iter().map(raised).collect(),
        ..Part::default()
    });
    frames.chain(stacks)
}

/// Bytes that the part takes in memory, including the holes before it.
pub(crate) fn cost(into: &Sites, part: &Part) -> usize {
    let hole = |first: usize, have: usize, each: usize| first.saturating_sub(have).saturating_mul(each);
    (bytes_of(&part.frames, &part.sites))
        .saturating_add(hole(part.first_frame, into.frames.len(), size_of::<Frame>()))
        .saturating_add(hole(part.first_site, into.sites.len(), size_of::<Site>()))
}

/// Bytes that what the part replaces takes in memory.
pub(crate) fn replaced(into: &Sites, part: &Part) -> usize {
    fn overlap<T>(into: &[T], first: usize, count: usize) -> &[T] {
        into.get(first..).map_or(&[], |rest| &rest[..count.min(rest.len())])
    }
    let frames = overlap(&into.frames, part.first_frame, part.frames.len());
    bytes_of(frames, overlap(&into.sites, part.first_site, part.sites.len()))
}

fn bytes_of(frames: &[Frame], sites: &[Site]) -> usize {
    let of =
        |frame: &Frame| size_of::<Frame>() + frame.object.len() + frame.function.len() + frame.line.len();
    let frames: usize = frames.iter().map(of).sum();
    let stacks: usize = sites.iter().map(|site| size_of::<Site>() + 4 * site.frames.len()).sum();
    frames + stacks
}

/// Puts a part into its position.
pub(crate) fn insert(into: &mut Sites, part: Part) -> Option<()> {
    if part.first_site.max(part.first_frame) > ENTRIES_MAX {
        return None;
    }
    fill(&mut into.sites, part.first_site, part.sites);
    fill(&mut into.frames, part.first_frame, part.frames);
    Some(())
}

fn fill<T: Default + Clone>(into: &mut Vec<T>, first: usize, items: Vec<T>) {
    if into.len() < first + items.len() {
        into.resize(first + items.len(), T::default());
    }
    for (entry, item) in into[first..].iter_mut().zip(items) {
        *entry = item;
    }
}

/// Drops frames that are not in the table, so that readers need no check.
pub(crate) fn check(sites: &mut Sites) {
    let known = sites.frames.len() as u32;
    for site in &mut sites.sites {
        site.frames.retain(|&frame| frame < known);
    }
}

/// Drops from the table the frames to which no stack leads, after [`check`]: those without names, where stacks with names
/// replaced theirs.
pub(crate) fn compact(sites: &mut Sites) {
    let mut is_used = vec![false; sites.frames.len()];
    for frame in sites.sites.iter().flat_map(|site| &site.frames) {
        is_used[*frame as usize] = true;
    }
    let mut used = 0;
    let numbers: Vec<u32> = is_used
        .iter()
        .map(|is_used| {
            let number = used;
            used += u32::from(*is_used);
            number
        })
        .collect();
    let mut flags = is_used.iter();
    sites.frames.retain(|_| flags.next().copied().unwrap_or(true));
    for frame in sites.sites.iter_mut().flat_map(|site| &mut site.frames) {
        *frame = numbers[*frame as usize];
    }
}
