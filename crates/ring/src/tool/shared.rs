//! The file as the tool makes it, and what the tool tells all producers.

use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, process};

use super::error::RingError;
use super::map::{self, Map};
use super::proc::{self, Whereabouts};
use crate::flags::Flags;
use crate::layout::{Geometry, MAGIC, VERSION, gate, state};
use crate::sys::{self, Descriptor};

/// What the file is to be like.
#[derive(Debug, Clone)]
pub struct Options {
    /// What producers are to tell.
    pub flags: Flags,
    /// Rings: as many threads have one of their own, an eighth of them less.
    pub rings: usize,
    /// Binary logarithm of the words of a ring.
    pub ring_log2: u32,
    /// Binary logarithm of the words of a block, at least 6.
    pub block_log2: u32,
    /// Process images that can be there at once.
    pub processes: usize,
    /// The folder. `None`: `$XDG_RUNTIME_DIR`, `/dev/shm`, `$TMPDIR`, `/tmp`, the first that takes it.
    pub folder: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            flags: Flags::default(),
            rings: 2048,
            ring_log2: 17,
            block_log2: 13,
            processes: 16384,
            folder: None,
        }
    }
}

/// A process image that has registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Its entry: for [`Tap::new`](crate::Tap::new).
    pub index: usize,
    /// Counts images; the entry's number may be used again, this is not.
    pub image: u32,
    /// Process number, as the tool sees it. 0 for a process of another namespace that has ended already.
    pub pid: i32,
    /// Its parent's.
    pub parent_pid: i32,
    /// The executable, or the end of its path.
    pub exe: PathBuf,
    /// ns since the file was made.
    pub started_ns: u64,
}

/// What could not be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Processes that found no entry.
    pub processes: u32,
    /// Threads that found no ring.
    pub threads: u32,
    /// Events of signal handlers that interrupted the telling of another one, where they could not be told.
    pub events: u32,
}

/// The shared file. Dropped, it is deleted, and producers detach instead of waiting.
#[derive(Debug)]
pub struct Shared {
    pub(crate) map: Arc<Map>,
    swept: Instant,
    /// No entry from here on has been used.
    highest: usize,
}

/// Producers stand still until this is dropped.
#[derive(Debug)]
pub struct Paused<'a> {
    shared: &'a Shared,
}

impl Shared {
    /// Makes the file: sparse, so that only what is used takes memory, and for this user only.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn create(options: &Options) -> Result<Shared, RingError> {
        let geometry = Geometry {
            processes: options.processes,
            rings: options.rings,
            ring_log2: options.ring_log2,
            block_log2: options.block_log2,
        };
        if !geometry.sensible() {
            return Err(RingError::Options);
        }
        let (path, file) = make_file(options.folder.as_deref())?;
        let bytes = geometry.bytes(geometry.rings);
        let failed = |what, error| RingError::Io(path.clone(), what, error);
        let prepared = (|| {
            file.set_len(bytes as u64).map_err(|error| failed("size", error))?;
            hold(&file).map_err(|error| failed("lock", error))?;
            map::map(&file, bytes).map_err(|error| failed("map", error))
        })();
        let base = match prepared {
            Ok(base) => base,
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                return Err(error);
            }
        };
        let map =
            Map { path, file, geometry, base, highest: AtomicUsize::new(0), live: Mutex::new(Vec::new()) };
        let header = map.header();
        header.version.store(VERSION, Ordering::Relaxed);
        header.flags.store(options.flags.bits(), Ordering::Relaxed);
        header.tool_pid.store(process::id() as i32, Ordering::Relaxed);
        header.processes.store(geometry.processes as u32, Ordering::Relaxed);
        header.rings.store(geometry.rings as u32, Ordering::Relaxed);
        header.ring_log2.store(geometry.ring_log2, Ordering::Relaxed);
        header.block_log2.store(geometry.block_log2, Ordering::Relaxed);
        header.created_ns.store(sys::now_ns(), Ordering::Relaxed);
        header.namespace.store(sys::namespace(), Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(Shared { map: Arc::new(map), swept: Instant::now(), highest: 0 })
    }

    /// The file, for `HEAPTOLL_RECORD`.
    pub fn path(&self) -> &Path {
        &self.map.path
    }

    /// What producers were told to tell.
    pub fn flags(&self) -> Flags {
        self.map.header().flags()
    }

    /// `CLOCK_MONOTONIC` when the file was made, ns: the zero of all times that are told.
    pub fn created_ns(&self) -> u64 {
        self.map.header().created_ns.load(Ordering::Relaxed)
    }

    /// The time that is told: ns since the file was made.
    pub fn now_ns(&self) -> u64 {
        crate::sys::now_ns().saturating_sub(self.created_ns())
    }

    /// Has every producer note the time at its next event. To be called about every ms.
    pub fn tick(&self) {
        self.map.header().beat.0.fetch_add(1, Ordering::Relaxed);
        self.each_gate(|gate| {
            gate.fetch_add(gate::TICK, Ordering::AcqRel);
        });
    }

    /// Has every producer stop at its next event. Events that were being told are told; calls that have begun go on.
    /// Processes whose arrival has not been given run.
    pub fn pause(&self) -> Paused<'_> {
        self.each_gate(|gate| {
            gate.fetch_or(gate::PAUSE, Ordering::AcqRel);
        });
        Paused { shared: self }
    }

    /// Process images that have registered since the last call, in order. A process that was followed and now has a
    /// new image, by exec, has [gone](crate::Tap::gone) in its old one.
    pub fn arrivals(&mut self) -> Vec<Arrival> {
        let mut next = self.map.header().registry.0.newest.swap(0, Ordering::AcqRel);
        let mut found = Vec::new();
        // What a program that has run wild wrote into the list must not lead astray.
        while next != 0
            && next as usize <= self.map.geometry.processes
            && found.len() < self.map.geometry.processes
        {
            let index = next as usize - 1;
            found.push(self.arrival(index));
            self.highest = self.highest.max(index + 1);
            next = self.map.process(index).next.load(Ordering::Relaxed);
        }
        found.reverse();
        let mut live = self.map.live();
        for arrival in &found {
            let now = self.map.process(arrival.index);
            for &index in live.iter() {
                let before = self.map.process(index);
                if before.state.load(Ordering::Relaxed) == now.state.load(Ordering::Relaxed)
                    && before.namespace.load(Ordering::Relaxed) == now.namespace.load(Ordering::Relaxed)
                    && now.namespace.load(Ordering::Relaxed) != 0
                {
                    before.detached.store(REPLACED, Ordering::Relaxed);
                }
            }
            live.push(arrival.index);
        }
        drop(live);
        if self.swept.elapsed() > SWEEP {
            self.sweep();
            self.swept = Instant::now();
        }
        found
    }

    fn arrival(&self, index: usize) -> Arrival {
        let process = self.map.process(index);
        let length = process.exe_bytes.load(Ordering::Relaxed) as usize;
        let exe: Vec<u8> = process.exe.iter().take(length).map(|byte| byte.load(Ordering::Relaxed)).collect();
        let at = Whereabouts::of(&self.map, index);
        let parent = process.parent_pid.load(Ordering::Relaxed);
        Arrival {
            index,
            image: process.image.load(Ordering::Relaxed),
            pid: at.pid(),
            parent_pid: if at.foreign() { proc::parent(at.pid()).unwrap_or(parent) } else { parent },
            exe: PathBuf::from(OsStr::from_bytes(&exe)),
            started_ns: process.started_ns.load(Ordering::Relaxed).saturating_sub(self.created_ns()),
        }
    }

    /// Frees the entries of processes that were killed before they could register.
    fn sweep(&mut self) {
        let live = self.map.live();
        for index in 0..(self.highest + 64).min(self.map.geometry.processes) {
            let entry = &self.map.process(index).state;
            let claim = entry.load(Ordering::Acquire);
            if claim & 255 == state::CLAIMED
                && !live.contains(&index)
                && !Whereabouts::of(&self.map, index).runs()
                // In this order: what has ended puts itself into the list no more.
                && self.map.header().registry.0.newest.load(Ordering::Acquire) == 0
            {
                let _ = entry.compare_exchange(claim, state::FREE, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Sleeps until a ring is half full, a process registers, or the time is over.
    pub fn wait(&self, longest: Duration) {
        let bell = &self.map.header().doorbell.0;
        bell.store(1, Ordering::SeqCst);
        if self.map.header().registry.0.newest.load(Ordering::SeqCst) == 0 {
            sys::futex_wait(bell, 1, u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
        }
        bell.store(0, Ordering::Relaxed);
    }

    /// What could not be recorded so far.
    pub fn left_out(&self) -> LeftOut {
        let registry = &self.map.header().registry.0;
        LeftOut {
            processes: registry.processes_left_out.load(Ordering::Relaxed),
            threads: registry.threads_left_out.load(Ordering::Relaxed),
            events: registry.events_left_out.load(Ordering::Relaxed),
        }
    }

    fn each_gate(&self, act: impl Fn(&AtomicU32)) {
        for &index in self.map.live().iter() {
            act(&self.map.process(index).gate.0);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.map.header().closed.store(1, Ordering::Release);
        // Nobody can do anything about a file that will not go.
        let _ = std::fs::remove_file(&self.map.path);
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.shared.each_gate(|gate| {
            gate.fetch_and(!gate::PAUSE, Ordering::AcqRel);
            sys::futex_wake(gate);
        });
    }
}

/// [`Process::detached`](crate::layout::Process::detached) of an image that another has replaced.
pub(crate) const REPLACED: u32 = 2;
/// A file of this age that no tool has locked was left behind.
const STALE: Duration = Duration::from_secs(60);
/// How often entries are looked for whose processes never registered.
const SWEEP: Duration = Duration::from_millis(500);

/// Makes an empty file of a new name.
fn make_file(folder: Option<&Path>) -> Result<(PathBuf, File), RingError> {
    let folders = match folder {
        Some(folder) => vec![folder.to_owned()],
        None => {
            let named = |variable| env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from);
            [named("XDG_RUNTIME_DIR"), Some("/dev/shm".into()), named("TMPDIR"), Some("/tmp".into())]
                .into_iter()
                .flatten()
                .collect()
        }
    };
    let mut tried = Vec::new();
    for folder in folders {
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        clear(&folder);
        for n in 0..1000 {
            let path = folder.join(format!("heaptoll-{}-{n}.rings", process::id()));
            // The layer keeps the path in a small array.
            if path.as_os_str().len() > 255 {
                tried.push((path, io::Error::from(io::ErrorKind::InvalidFilename)));
                break;
            }
            match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => {
                    tried.push((folder, error));
                    break;
                }
            }
        }
    }
    Err(RingError::NoFolder(tried))
}

/// Removes files of tools that were killed, and whose programs ended before they noticed.
fn clear(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.as_bytes().starts_with(b"heaptoll-") || !name.as_bytes().ends_with(b".rings") {
            continue;
        }
        // A new one may not be locked yet.
        let old = entry
            .metadata()
            .and_then(|about| about.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE));
        if old
            && let Ok(path) = CString::new(entry.path().as_os_str().as_bytes())
            && Descriptor::open(&path).is_ok_and(|file| file.locked() == Some(false))
        {
            sys::unlink(&path);
        }
    }
}

/// Locks the first byte, for as long as the file is open: by this a producer knows that the tool lives.
fn hold(file: &File) -> io::Result<()> {
    // SAFETY: zero is a valid `flock`; the kernel only reads it.
    let done = unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = libc::F_WRLCK as i16;
        lock.l_whence = libc::SEEK_SET as i16;
        lock.l_len = 1;
        libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn files_of_killed_tools_are_removed_and_others_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options { rings: 2, folder: Some(folder.path().to_owned()), ..Options::default() };
        let living = Shared::create(&options).expect("a file can be made");
        let old = SystemTime::now() - 2 * STALE;
        File::options().write(true).open(living.path()).and_then(|file| file.set_modified(old)).expect("set");
        for (name, age) in
            [("heaptoll-1-0.rings", old), ("heaptoll-2-0.rings", SystemTime::now()), ("other", old)]
        {
            File::create(folder.path().join(name)).and_then(|file| file.set_modified(age)).expect("made");
        }
        let second = Shared::create(&options).expect("a file can be made");
        assert!(!folder.path().join("heaptoll-1-0.rings").exists(), "the killed tool's");
        assert!(folder.path().join("heaptoll-2-0.rings").exists(), "perhaps not locked yet");
        assert!(folder.path().join("other").exists());
        assert!(living.path().exists() && second.path().exists());
        drop(living);
        drop(second);
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 2);
    }

    #[test]
    fn a_folder_that_takes_no_file_is_named() {
        let folder = PathBuf::from("/proc/no/such");
        let error =
            Shared::create(&Options { folder: Some(folder), ..Options::default() }).expect_err("no folder");
        assert!(error.to_string().contains("/proc/no/such"), "{error}");
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        for (ring_log2, block_log2, rings) in
            [(6, 6, 1), (7, 5, 1), (17, 13, 0), (30, 13, 1), (17, 13, 1 << 20)]
        {
            let options = Options { ring_log2, block_log2, rings, ..Options::default() };
            assert!(matches!(Shared::create(&options), Err(RingError::Options)));
        }
    }

    #[test]
    fn the_file_is_sparse_and_for_the_user_only() {
        use std::os::unix::fs::MetadataExt;
        let shared = Shared::create(&Options::default()).expect("a file can be made");
        let about = shared.path().metadata().expect("it is there");
        assert_eq!(about.mode() & 0o777, 0o600);
        assert!(about.len() > 2 << 30 && about.blocks() * 512 < 64 << 10, "{} blocks", about.blocks());
    }
}
