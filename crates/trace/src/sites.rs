//! Call stacks in chunks: a table of millions of frames is cut into parts that state their position, so that a lost one
//! does not shift the others.

use serde::{Deserialize, Serialize};

use crate::header::{Frame, Site, Sites};

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

/// The parts of a table.
pub(crate) fn parts(sites: &Sites) -> impl Iterator<Item = Part> {
    let frames = sites.frames.chunks(PER_PART).enumerate().map(|(at, frames)| Part {
        first_frame: at * PER_PART,
        frames: frames.to_vec(),
        ..Part::default()
    });
    let stacks = sites.sites.chunks(PER_PART).enumerate().map(|(at, sites)| Part {
        first_site: at * PER_PART,
        sites: sites.to_vec(),
        ..Part::default()
    });
    frames.chain(stacks)
}

/// Bytes that the part takes in memory, including the holes before it.
pub(crate) fn cost(into: &Sites, part: &Part) -> usize {
    let hole = |first: usize, have: usize, each: usize| first.saturating_sub(have).saturating_mul(each);
    let frames: usize = part
        .frames
        .iter()
        .map(|frame| size_of::<Frame>() + frame.object.len() + frame.function.len() + frame.line.len())
        .sum();
    let stacks: usize = part.sites.iter().map(|site| size_of::<Site>() + 4 * site.frames.len()).sum();
    (frames + stacks)
        .saturating_add(hole(part.first_frame, into.frames.len(), size_of::<Frame>()))
        .saturating_add(hole(part.first_site, into.sites.len(), size_of::<Site>()))
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
