//! What is written: the sections of a recording, and where each one is.

use std::collections::{HashMap, HashSet};

use heaptoll_oracle_file::{
    AllocationWord, HEADER_BYTES, Header, NEVER, NameWord, Section, SiteWord, UNREACHABLE_BYTES, Unreachable,
};

use super::about::About;
use crate::recording::{Object, Recording};
use crate::schedule::Schedule;

/// What follows the header.
pub(super) struct Body {
    pub header: Header,
    unreachable_place: Vec<u8>,
    words: Vec<u8>,
    schedule: Vec<u8>,
    sites: Vec<u8>,
    objects: Vec<u8>,
    text: Vec<u8>,
    about: Vec<u8>,
    frees: Vec<u8>,
    unreachable: Vec<u8>,
}

impl Body {
    pub fn of(recording: &Recording, names: &[NameWord], text: &[u8], about: &About) -> Body {
        let schedule = Schedule::of(&recording.objects, |object| object.last_use);
        let never = |object: &Object| object.unreachable.unwrap_or(u64::MAX);
        let has_unreachable = about.unreachable.is_some();
        let unreachable = has_unreachable.then(|| Schedule::of(&recording.objects, never));
        let words = allocation_words(recording);
        let sites = site_words(recording, &about.executable);
        let objects: Vec<u8> = names.iter().flat_map(|name| name.word().to_le_bytes()).collect();
        let about = serde_json::to_vec(about).unwrap_or_default();
        let freed = |object: &Object| object.freed.map_or(NEVER, |freed| freed as u32);
        let frees = bytes_of(recording.objects.iter().map(freed));
        let mut at = (HEADER_BYTES + if has_unreachable { UNREACHABLE_BYTES } else { 0 }) as u64;
        let mut section = |bytes: usize, entry: usize| {
            let section = Section { start: at, count: (bytes / entry) as u64 };
            at += bytes as u64;
            section
        };
        let schedule_bytes = bytes_of(schedule.words.into_iter());
        let header = Header {
            has_unreachable,
            digest: [0; 32],
            allocations: recording.objects.len() as u64,
            slots: schedule.slots.into(),
            words: section(words.len(), 8),
            schedule: section(schedule_bytes.len(), 4),
            sites: section(sites.len(), 8),
            objects: section(objects.len(), 8),
            text: section(text.len(), 1),
            about: section(about.len(), 1),
            frees: section(frees.len(), 4),
        };
        let (slots, unreachable) = match unreachable {
            Some(Schedule { words, slots }) => (slots.into(), bytes_of(words.into_iter())),
            None => (0, vec![]),
        };
        let place = Unreachable { slots, schedule: section(unreachable.len(), 4) };
        let unreachable_place = if has_unreachable { place.bytes().to_vec() } else { vec![] };
        let (schedule, text) = (schedule_bytes, text.into());
        Body { header, unreachable_place, words, schedule, sites, objects, text, about, frees, unreachable }
    }

    /// In the order of their sections.
    pub fn parts(&self) -> [&[u8]; 9] {
        [
            &self.unreachable_place,
            &self.words,
            &self.schedule,
            &self.sites,
            &self.objects,
            &self.text,
            &self.about,
            &self.frees,
            &self.unreachable,
        ]
    }
}

fn allocation_words(recording: &Recording) -> Vec<u8> {
    let mut words = Vec::with_capacity(8 * recording.objects.len());
    for object in &recording.objects {
        let word = AllocationWord { size: object.size, site: object.site, resized: object.resized.is_some() };
        words.extend(word.word().to_le_bytes());
        if let Some(old) = object.resized {
            words.extend(old.to_le_bytes());
        }
    }
    words
}

fn site_words(recording: &Recording, executable: &str) -> Vec<u8> {
    let paths = paths_of(recording, executable);
    let numbers = paths.iter().zip(0..u16::MAX).map(|(path, number)| (path.as_str(), number));
    let known: HashMap<&str, u16> = numbers.filter(|(path, _)| !path.is_empty()).collect();
    let mut words = Vec::with_capacity(8 * recording.sites.len());
    for site in &recording.sites {
        let object = known.get(site.object.as_str()).copied();
        words.extend(SiteWord { address: site.address, object }.word().to_le_bytes());
    }
    words
}

fn bytes_of(words: impl Iterator<Item = u32>) -> Vec<u8> {
    words.flat_map(u32::to_le_bytes).collect()
}

/// The program's own file and those of the recording's sites: their paths once each, and their names with the text that
/// contains them.
pub(super) fn objects_of(recording: &Recording, executable: &str) -> (Vec<String>, Vec<NameWord>, Vec<u8>) {
    let (mut names, mut text): (Vec<NameWord>, Vec<u8>) = Default::default();
    let paths = paths_of(recording, executable);
    for path in &paths {
        let name = path.rsplit('/').next().unwrap_or_default();
        names.push(NameWord { start: text.len() as u32, length: name.len() as u32 });
        text.extend(name.as_bytes());
    }
    (paths, names, text)
}

/// The program's own file, then those of the sites as they come first.
fn paths_of(recording: &Recording, executable: &str) -> Vec<String> {
    let mut paths = vec![executable.to_owned()];
    let mut seen: HashSet<&str> = HashSet::from([executable, ""]);
    for site in &recording.sites {
        if seen.insert(&site.object) {
            paths.push(site.object.clone());
        }
    }
    paths
}
