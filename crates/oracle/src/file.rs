//! The file that the oracle layer follows, as the tool writes and reads it.

use std::collections::{HashMap, HashSet};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use heaptoll_oracle_file::{
    AllocationWord, FREE, HEADER_BYTES, Header, HeaderError, NEVER, NameWord, Section, SiteWord,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::deaths::Deaths;
use crate::live::{Live, Moment};
use crate::recording::{Object, Recording};

/// Why a file is no oracle of this program.
#[derive(Debug, Error)]
pub enum OracleFileError {
    /// It cannot be read or written.
    #[error("{path}: {cause}")]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// Another file.
    #[error("{0} is no oracle file of this version of heaptoll; record one with `heaptoll oracle -o {0} -- PROGRAM`")]
    Another(PathBuf),
    /// Damaged.
    #[error("{0} is cut or damaged; record it again")]
    Damaged(PathBuf),
    /// Code that was recorded has changed.
    #[error("{path}: it was recorded with another {object}: {what}; record it again")]
    Changed {
        /// The oracle file.
        path: PathBuf,
        /// The object file.
        object: String,
        /// What differs.
        what: String,
    },
}

/// An object file that allocations are called from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectFile {
    /// Its path.
    pub path: String,
    /// SHA-256 of its content, hexadecimal; empty where it could not be read.
    pub sha256: String,
}

impl ObjectFile {
    /// The file as it is now.
    pub fn now(path: &str) -> ObjectFile {
        let sha256 = std::fs::read(path).map(|content| format!("{:x}", Sha256::digest(content))).unwrap_or_default();
        ObjectFile { path: path.to_owned(), sha256 }
    }
}

/// What a recording is of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// Version of heaptoll.
    pub heaptoll: String,
    /// The program's name.
    pub program: String,
    /// Its command.
    pub command: Vec<String>,
    /// The file that is executed: of a script its interpreter.
    pub executable: String,
    /// Exit status of the recorded run.
    pub status: i32,
    /// SHA-256 of its output, hexadecimal.
    pub output_sha256: String,
    /// Object files that allocations are called from.
    pub objects: Vec<ObjectFile>,
    /// Bytes allocated.
    pub allocated_bytes: u64,
    /// Allocations that are a `realloc` of an object.
    pub resized: u64,
    /// Objects that the program never frees.
    pub never_freed: u64,
    /// Most objects at once between allocation and free.
    pub most_objects: u64,
    /// Requested bytes alive at last use, at the program's free, and if nothing is freed.
    pub live: [Live; 3],
}

/// A file that was checked, and what it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct OracleFile {
    /// Allocations in it.
    pub allocations: u64,
    /// What it is of.
    pub about: About,
    /// When objects are used last and freed; without sites.
    pub objects: Vec<Object>,
}

/// Writes a recording. `about` is completed by what the recording itself shows.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, recording: &Recording, about: About) -> Result<OracleFile, OracleFileError> {
    let system = |cause| OracleFileError::System { path: path.into(), cause };
    let (objects, names, text) = objects_of(recording, &about.executable);
    let about = completed(about, recording, objects);
    let body = Body::of(recording, &names, &text, &about);
    let mut file = std::fs::File::create(path).map_err(system)?;
    file.write_all(&[0; HEADER_BYTES]).map_err(system)?;
    let mut digest = Sha256::new();
    for part in body.parts() {
        digest.update(part);
        file.write_all(part).map_err(system)?;
    }
    let header = Header { digest: digest.finalize().into(), ..body.header };
    file.seek(SeekFrom::Start(0)).map_err(system)?;
    file.write_all(&header.bytes()).map_err(system)?;
    file.sync_data().map_err(system)?;
    let objects = recording.objects.iter().map(|object| Object { site: 0, ..*object }).collect();
    Ok(OracleFile { allocations: header.allocations, about, objects })
}

/// Reads a file and checks that it is whole.
///
/// # Errors
/// [`OracleFileError`].
pub fn read(path: &Path) -> Result<OracleFile, OracleFileError> {
    let content = std::fs::read(path).map_err(|cause| OracleFileError::System { path: path.into(), cause })?;
    let damaged = || OracleFileError::Damaged(path.into());
    let Some((head, rest)) = content.split_first_chunk::<HEADER_BYTES>() else {
        return Err(OracleFileError::Another(path.into()));
    };
    let header = Header::of(head, content.len() as u64).map_err(|error| match error {
        HeaderError::Magic => OracleFileError::Another(path.into()),
        HeaderError::Cut => damaged(),
    })?;
    if header.digest != <[u8; 32]>::from(Sha256::digest(rest)) {
        return Err(damaged());
    }
    let Section { start, count } = header.about;
    let about = content.get(start as usize..(start + count) as usize).ok_or_else(damaged)?;
    let about = serde_json::from_slice(about).map_err(|_| damaged())?;
    let objects = objects(&content, &header).ok_or_else(damaged)?;
    Ok(OracleFile { allocations: header.allocations, about, objects })
}

/// The objects of a file; `None` where its sections contradict one another.
fn objects(content: &[u8], header: &Header) -> Option<Vec<Object>> {
    let bytes = |section: Section, entry: u64| {
        content.get(section.start as usize..(section.start + section.count * entry) as usize)
    };
    let mut words = bytes(header.words, 8)?.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let frees = bytes(header.frees, 4)?.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let mut objects = Vec::with_capacity(usize::try_from(header.allocations).ok()?.min(content.len()));
    for freed in frees {
        let word = AllocationWord::of(words.next()?);
        let resized = if word.resized { Some(words.next()?) } else { None };
        let freed = (freed != NEVER).then_some(freed.into());
        objects.push(Object { size: word.size, site: 0, resized, last_use: u64::MAX, freed });
    }
    let deaths = bytes(header.deaths, 4)?.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    last_uses(deaths, &mut objects).filter(|()| objects.len() as u64 == header.allocations)?;
    Some(objects)
}

/// Follows `deaths` as the layer does. What it does not free is used to the end.
fn last_uses(deaths: impl Iterator<Item = u32>, objects: &mut [Object]) -> Option<()> {
    let end = objects.len() as u64;
    let mut in_slot: HashMap<u32, usize> = HashMap::new();
    let mut next = 0usize;
    for word in deaths {
        if word & FREE == 0 {
            in_slot.insert(word, next);
            next += 1;
        } else {
            let dead = in_slot.remove(&(word & !FREE))?;
            objects.get_mut(dead)?.last_use = next as u64;
        }
    }
    for object in objects.iter_mut().filter(|object| object.last_use == u64::MAX) {
        object.last_use = end;
    }
    (next as u64 == end).then_some(())
}

impl OracleFile {
    /// Requested bytes alive, with objects freed at a moment.
    pub fn live(&self, moment: Moment) -> Live {
        Live::of(&self.objects, moment)
    }

    /// Checks that the code that was recorded is still the same.
    ///
    /// # Errors
    /// [`OracleFileError::Changed`].
    pub fn require_same_code(&self, path: &Path) -> Result<(), OracleFileError> {
        for object in self.about.objects.iter().filter(|object| !object.sha256.is_empty()) {
            let now = ObjectFile::now(&object.path);
            let what = match () {
                () if now.sha256.is_empty() => "it is not there any more",
                () if now.sha256 != object.sha256 => "its content has changed",
                () => continue,
            };
            let object = object.path.clone();
            return Err(OracleFileError::Changed { path: path.into(), object, what: what.into() });
        }
        Ok(())
    }
}

/// The program's own file and those of the recording's sites: their paths once each, and their names with the text that
/// contains them.
fn objects_of(recording: &Recording, executable: &str) -> (Vec<String>, Vec<NameWord>, Vec<u8>) {
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

fn completed(about: About, recording: &Recording, objects: Vec<String>) -> About {
    let count = |test: fn(&Object) -> bool| recording.objects.iter().filter(|object| test(object)).count() as u64;
    About {
        objects: objects.iter().map(|path| ObjectFile::now(path)).collect(),
        allocated_bytes: recording.objects.iter().map(|object| object.size).sum(),
        resized: count(|object| object.resized.is_some()),
        never_freed: count(|object| object.freed.is_none()),
        most_objects: most_objects(recording),
        live: [Moment::LastUse, Moment::Free, Moment::Never].map(|moment| Live::of(&recording.objects, moment)),
        ..about
    }
}

/// Most objects at once between allocation and free.
fn most_objects(recording: &Recording) -> u64 {
    let count = recording.objects.len();
    let mut freed = vec![0u64; count + 1];
    for object in &recording.objects {
        freed[object.freed.map_or(count, |freed| freed as usize)] += 1;
    }
    let (mut alive, mut most) = (0u64, 0);
    for freed in &freed[..count] {
        alive = (alive + 1).saturating_sub(*freed);
        most = most.max(alive);
    }
    most
}

/// What follows the header.
struct Body {
    header: Header,
    words: Vec<u8>,
    deaths: Vec<u8>,
    sites: Vec<u8>,
    objects: Vec<u8>,
    text: Vec<u8>,
    about: Vec<u8>,
    frees: Vec<u8>,
}

impl Body {
    fn of(recording: &Recording, names: &[NameWord], text: &[u8], about: &About) -> Body {
        let deaths = Deaths::of(recording);
        let words = allocation_words(recording);
        let sites = site_words(recording, &about.executable);
        let objects: Vec<u8> = names.iter().flat_map(|name| name.word().to_le_bytes()).collect();
        let about = serde_json::to_vec(about).unwrap_or_default();
        let freed = |object: &Object| object.freed.map_or(NEVER, |freed| freed as u32);
        let frees: Vec<u8> = recording.objects.iter().flat_map(|object| freed(object).to_le_bytes()).collect();
        let mut at = HEADER_BYTES as u64;
        let mut section = |bytes: usize, entry: usize| {
            let section = Section { start: at, count: (bytes / entry) as u64 };
            at += bytes as u64;
            section
        };
        let deaths_bytes: Vec<u8> = deaths.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let header = Header {
            digest: [0; 32],
            allocations: recording.objects.len() as u64,
            slots: deaths.slots.into(),
            words: section(words.len(), 8),
            deaths: section(deaths_bytes.len(), 4),
            sites: section(sites.len(), 8),
            objects: section(objects.len(), 8),
            text: section(text.len(), 1),
            about: section(about.len(), 1),
            frees: section(frees.len(), 4),
        };
        Body { header, words, deaths: deaths_bytes, sites, objects, text: text.into(), about, frees }
    }

    /// In the order of their sections.
    fn parts(&self) -> [&[u8]; 7] {
        [&self.words, &self.deaths, &self.sites, &self.objects, &self.text, &self.about, &self.frees]
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

#[cfg(test)]
mod tests;
