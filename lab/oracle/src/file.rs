//! The file that the oracle layer follows, as the tool writes and reads it.

mod about;
mod body;
mod objects;

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use heaptoll_oracle_file::{HEADER_BYTES, Header, HeaderError, Section, UNREACHABLE_BYTES, Unreachable};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::live::{FreePoint, Live};
use crate::recording::{Object, Recording};
pub use about::{About, ObjectFile};
use body::{Body, objects_of};

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
    #[error(
        "{0} is not an oracle file of this version of heaptoll; record one with `heaptoll lab oracle -o {0} -- \
         PROGRAM`"
    )]
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

/// A file that was checked, and what it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct OracleFile {
    /// Allocations in it.
    pub allocations: u64,
    /// What it is of.
    pub about: About,
    /// When objects are used last, freed, and unreachable; without sites.
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
    let content =
        std::fs::read(path).map_err(|cause| OracleFileError::System { path: path.into(), cause })?;
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
    let about: About = serde_json::from_slice(about).map_err(|_| damaged())?;
    if about.unreachable.is_some() != header.has_unreachable {
        return Err(damaged());
    }
    let unreachable = unreachable_of(rest, &header, content.len() as u64).map_err(|_| damaged())?;
    let objects = objects::of(&content, &header, unreachable).ok_or_else(damaged)?;
    Ok(OracleFile { allocations: header.allocations, about, objects })
}

/// Where the schedule of unreachability is, if there is one. `rest` is what follows the header.
fn unreachable_of(rest: &[u8], header: &Header, length: u64) -> Result<Option<Unreachable>, HeaderError> {
    if !header.has_unreachable {
        return Ok(None);
    }
    let bytes = rest.first_chunk::<UNREACHABLE_BYTES>().ok_or(HeaderError::Cut)?;
    Unreachable::of(bytes, length).map(Some)
}

impl OracleFile {
    /// Requested bytes alive, with objects freed at a point.
    pub fn live(&self, point: FreePoint) -> Live {
        Live::of(&self.objects, point)
    }

    /// Most objects at once until they cannot be reached any more.
    pub fn most_reachable(&self) -> u64 {
        most_at_once(&self.objects, |object| object.unreachable)
    }

    /// Checks that the code that was recorded is still the same.
    ///
    /// # Errors
    /// [`OracleFileError::Changed`].
    pub fn require_same_code(&self, path: &Path) -> Result<(), OracleFileError> {
        for object in self.about.objects.iter().filter(|object| !object.sha256.is_empty()) {
            let now = ObjectFile::now(&object.path);
            let what = match () {
                () if now.sha256.is_empty() => "it no longer exists",
                () if now.sha256 != object.sha256 => "its content has changed",
                () => continue,
            };
            let object = object.path.clone();
            return Err(OracleFileError::Changed { path: path.into(), object, what: what.into() });
        }
        Ok(())
    }
}

fn completed(about: About, recording: &Recording, objects: Vec<String>) -> About {
    let count =
        |test: fn(&Object) -> bool| recording.objects.iter().filter(|object| test(object)).count() as u64;
    About {
        objects: objects.iter().map(|path| ObjectFile::now(path)).collect(),
        allocated_bytes: recording.objects.iter().map(|object| object.size).sum(),
        resized: count(|object| object.resized.is_some()),
        never_freed: count(|object| object.freed.is_none()),
        most_objects: most_at_once(&recording.objects, |object| object.freed),
        live: [FreePoint::LastUse, FreePoint::Free, FreePoint::Never]
            .map(|point| Live::of(&recording.objects, point)),
        ..about
    }
}

/// Most objects at once between their allocation and a point.
fn most_at_once(objects: &[Object], end: fn(&Object) -> Option<u64>) -> u64 {
    let count = objects.len();
    let mut freed = vec![0u64; count + 1];
    for object in objects {
        freed[end(object).map_or(count, |end| end as usize)] += 1;
    }
    let (mut alive, mut most) = (0u64, 0);
    for freed in &freed[..count] {
        alive = (alive + 1).saturating_sub(*freed);
        most = most.max(alive);
    }
    most
}

#[cfg(test)]
mod tests;
