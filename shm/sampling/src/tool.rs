//! The tool's side: makes the control page, and reads what processes left.
//!
//! Files are read and not mapped: one that a program truncates would end the tool. Whatever is in them is checked, as a
//! program may have overwritten it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::string::String;
use std::vec::Vec;

use crate::estimate::Estimate;
use crate::layout::{
    AWAKE_AT, CONTROL, MAGIC, MOST_OBJECTS, MOST_SITES, OBJECT_WORDS, OBJECTS_AT, ObjectRecord, PAGE, PATH,
    SITE_WORDS, SITES_AT, SiteRecord, VERSION,
};
use crate::sums::Sums;

/// What the layers are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Mean distance of sample points, bytes: 1 samples every allocation.
    pub mean_bytes: u64,
    /// With it the same run of a program of one thread has the same samples each time.
    pub seed: Option<u64>,
    /// Whether they sample from the start.
    pub awake: bool,
}

/// The files of a run.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    control: File,
    settings: Settings,
}

/// A process image's samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessSamples {
    /// Process number.
    pub pid: u32,
    /// Number of the image among those of the process number, from 1: it counts `exec`.
    pub image: u32,
    /// The file it executes.
    pub exe: PathBuf,
    /// The object that its `malloc` is bound to.
    pub manager: PathBuf,
    /// When it began, Unix ns.
    pub started_unix_ns: u64,
    /// Objects in memory, in the order in which they were recorded.
    pub objects: Vec<ObjectWords>,
    /// Call stacks, by number; number 0 has those that are not known.
    pub sites: Vec<SiteSamples>,
    /// Samples whose call stack found no record: they are those of site 0.
    pub without_site: u64,
    /// Samples that do not count as live.
    pub not_followed: u64,
}

/// A recorded object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectWords {
    /// When, Unix s.
    pub recorded_unix_s: u64,
    /// As the layer defines it.
    pub words: Vec<u64>,
}

/// The samples of a call stack.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteSamples {
    /// How many objects were recorded before it.
    pub objects: usize,
    /// Return addresses, innermost first, and what follows them.
    pub words: Vec<u64>,
    /// All allocations.
    pub allocated: Estimate,
    /// Those that were not freed.
    pub live: Estimate,
}

impl ProcessSamples {
    /// Sampled objects.
    pub fn samples(&self) -> u64 {
        self.sites.iter().fold(0, |sum, site| sum.saturating_add(site.allocated.samples))
    }

    /// Estimated bytes of all allocations.
    pub fn allocated_bytes(&self) -> f64 {
        self.sites.iter().map(|site| site.allocated.bytes).sum()
    }
}

impl Folder {
    /// Makes the control page in a folder that only its user may enter.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path, settings: Settings) -> io::Result<Folder> {
        let mut page = std::vec![0; PAGE];
        page[..8].copy_from_slice(&MAGIC.to_le_bytes());
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        page[12..16].copy_from_slice(&u32::from(settings.awake).to_le_bytes());
        page[16..24].copy_from_slice(&settings.mean_bytes.to_le_bytes());
        page[24..32].copy_from_slice(&settings.seed.unwrap_or(0).to_le_bytes());
        page[32..36].copy_from_slice(&u32::from(settings.seed.is_some()).to_le_bytes());
        let control = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path.join(CONTROL))?;
        control.write_all_at(&page, 0)?;
        Ok(Folder { path: path.to_path_buf(), control, settings })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the layers were started with.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Has the layers sample from now on, or no longer.
    ///
    /// # Errors
    /// The system's.
    pub fn wake(&self, awake: bool) -> io::Result<()> {
        self.control.write_all_at(&u32::from(awake).to_ne_bytes(), AWAKE_AT)
    }

    /// Whether they sample now.
    ///
    /// # Errors
    /// The system's.
    pub fn is_awake(&self) -> io::Result<bool> {
        let mut word = [0; 4];
        self.control.read_exact_at(&mut word, AWAKE_AT)?;
        Ok(word != [0; 4])
    }

    /// How many process images could not make a file.
    ///
    /// # Errors
    /// The system's.
    pub fn without_file(&self) -> io::Result<u32> {
        let mut word = [0; 4];
        self.control.read_exact_at(&mut word, 36)?;
        Ok(u32::from_ne_bytes(word))
    }

    /// The samples of all process images, by number. Files of another kind are left out.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn processes(&self) -> io::Result<Vec<ProcessSamples>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let numbers = name.to_str().and_then(|name| name.split_once('.'));
            if let Some((pid, image)) = numbers
                && let (Ok(_), Ok(image)) = (pid.parse::<u32>(), image.parse())
            {
                all.extend(read(&self.path.join(&name), image));
            }
        }
        all.sort_by_key(|process| (process.started_unix_ns, process.pid, process.image));
        Ok(all)
    }
}

/// A little-endian word of a part of a file.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .map_or(0, |part| part.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    word(bytes, at) as u32
}

/// As many words as are in use.
fn words(bytes: &[u8], count: u32, most: usize) -> Vec<u64> {
    (0..(count as usize).min(most)).map(|at| word(bytes, at * 8)).collect()
}

/// Reads a process's file; `None` when it is none, or not begun.
fn read(path: &Path, image: u32) -> Option<ProcessSamples> {
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK | NOFOLLOW).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut head = [0; PAGE];
    file.read_exact_at(&mut head, 0).ok()?;
    if word(&head, 0) != MAGIC || half(&head, 8) != VERSION {
        return None;
    }
    let path = |length: usize| {
        let bytes = &head[length + 4..length + 4 + (half(&head, length) as usize).min(PATH)];
        PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
    };
    let sites = (half(&head, 24) as usize).min(MOST_SITES);
    let objects = (half(&head, 28) as usize).min(MOST_OBJECTS);
    let mut process = ProcessSamples {
        pid: half(&head, 12),
        image,
        exe: path(48),
        manager: path(52 + PATH),
        started_unix_ns: word(&head, 16),
        without_site: word(&head, 32),
        not_followed: word(&head, 40),
        ..ProcessSamples::default()
    };
    for record in
        records(&file, OBJECTS_AT, size_of::<ObjectRecord>(), objects).chunks(size_of::<ObjectRecord>())
    {
        let words = words(&record[16..], half(record, 0), OBJECT_WORDS);
        process.objects.push(ObjectWords { recorded_unix_s: word(record, 8), words });
    }
    for record in records(&file, SITES_AT, size_of::<SiteRecord>(), sites).chunks(size_of::<SiteRecord>()) {
        process.sites.push(site(record));
    }
    Some(process)
}

/// The records that the file has.
fn records(file: &File, at: usize, bytes: usize, count: usize) -> Vec<u8> {
    let mut all = std::vec![0; bytes * count];
    match file.read_exact_at(&mut all, at as u64) {
        Ok(()) => all,
        Err(_) => Vec::new(),
    }
}

fn site(record: &[u8]) -> SiteSamples {
    let sums = |at: usize| {
        let mut bytes = [0; Sums::BYTES];
        bytes.copy_from_slice(&record[at..at + Sums::BYTES]);
        Sums::read(&bytes)
    };
    let (allocated, freed) = (sums(0), sums(Sums::BYTES));
    let count = half(record, 2 * Sums::BYTES);
    SiteSamples {
        objects: half(record, 2 * Sums::BYTES + 4) as usize,
        words: words(&record[2 * Sums::BYTES + 8..], count, SITE_WORDS),
        allocated,
        live: allocated.minus(freed),
    }
}

/// `O_NONBLOCK` and `O_NOFOLLOW` of Linux on x86-64: no open waits for a FIFO or follows a link.
const NONBLOCK: i32 = 0o4000;
const NOFOLLOW: i32 = 0o400_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings { mean_bytes: 4096, seed: Some(3), awake: false }
    }

    #[test]
    fn a_folder_is_woken_and_put_to_sleep() {
        let folder = tempfile::tempdir().unwrap();
        let files = Folder::create(folder.path(), settings()).unwrap();
        assert!(!files.is_awake().unwrap());
        files.wake(true).unwrap();
        assert!(files.is_awake().unwrap());
        assert_eq!((files.without_file().unwrap(), files.processes().unwrap()), (0, Vec::new()));
        assert!(Folder::create(folder.path(), settings()).is_err(), "there is one");
    }

    #[test]
    fn files_that_no_layer_made_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let files = Folder::create(folder.path(), settings()).unwrap();
        for (name, bytes) in [("1.1", &b"short"[..]), ("2.1", &[0; 9000]), ("notes", b"x"), ("3.x", b"x")] {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        std::fs::create_dir(folder.path().join("4.1")).unwrap();
        std::os::unix::fs::symlink("control", folder.path().join("5.1")).unwrap();
        assert_eq!(files.processes().unwrap(), Vec::new());
        // One that is damaged: counts beyond all bounds, and a file that ends early.
        let mut page = std::vec![0xff; PAGE];
        page[..8].copy_from_slice(&MAGIC.to_le_bytes());
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        std::fs::write(folder.path().join("6.1"), page).unwrap();
        let all = files.processes().unwrap();
        assert_eq!((all.len(), all[0].sites.len(), all[0].samples()), (1, 0, 0));
    }
}
