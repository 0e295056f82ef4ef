//! The shared file as the tool makes it, and the tool's requests to all producers.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heaptoll_process::address_space::leaves_enough;

use super::arrival::{Arrival, path};
use super::counter::SampledCounter;
use super::error::RingError;
use super::execs::{Execs, Unregistered};
use super::folder::{self, Candidate};
use super::map::Map;
use super::proc::{self, ProcessIdentity};
use crate::address_space::FEWEST_RINGS;
use crate::atomic::{AtomicU32, Ordering};
use crate::flags::Flags;
use crate::layout::{Geometry, LIMITED_ENTRIES, MAGIC, Registry, StopPoint, VERSION, gate, state};
use crate::sys::{self, Descriptor, Instant};

/// The properties of a new file.
#[derive(Debug, Clone)]
pub struct Options {
    /// What producers are to record.
    pub flags: Flags,
    /// Rings. Seven eighths are for threads' own, one eighth for threads to share.
    pub rings: usize,
    /// Binary logarithm of the words of a ring.
    pub ring_log2: u32,
    /// Binary logarithm of the words of a block, at least 6.
    pub block_log2: u32,
    /// Process images that can be registered at once.
    pub processes: usize,
    /// Maximum memory of all rings together, bytes.
    pub memory: u64,
    /// Where one process image waits for the tool, if one is to.
    pub stop: Option<StopPoint>,
    /// The folder. `None`: the first of `$XDG_RUNTIME_DIR`, `/dev/shm`, `$TMPDIR`, `/tmp` in which the file can be
    /// made.
    pub folder: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            flags: Flags::default(),
            rings: 2048,
            ring_log2: 17,
            block_log2: 12,
            processes: 16384,
            memory: folder::MOST,
            stop: None,
            folder: None,
        }
    }
}

/// Counts of what could not be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Processes that found no entry.
    pub processes: u32,
    /// Threads that found no ring.
    pub threads: u32,
    /// Events of signal handlers that interrupted the recording of another event and could not be recorded.
    pub events: u32,
    /// Execs that could not be noted: it is unknown whether their images have registered.
    pub execs: u32,
    /// Processes whose limit of address space leaves too little.
    pub limited: u32,
    /// Processes recorded without call stacks, for the same reason.
    pub without_stacks: u32,
    /// The counters or the list of new processes were overwritten: the true counts may be larger.
    pub damaged: bool,
}

/// The shared file. Dropping it deletes it, and producers detach instead of waiting.
#[derive(Debug)]
pub struct Shared {
    pub(crate) map: Arc<Map>,
    swept: Instant,
    /// No entry from this index on has been used.
    highest: usize,
    /// Whether producers are paused.
    paused: AtomicBool,
    execs: Execs,
    /// Images that have arrived.
    arrived: u32,
    /// The counters that registration writes, in this order: processes, threads, events and execs left out, images, limited,
    /// without stacks.
    counted: [SampledCounter; 7],
    /// Whether the list of new processes had an invalid entry.
    forged: bool,
}

/// The file for a tool whose address space is limited, which maps all of it: fewer process entries and rings, one at
/// least.
fn within(mut geometry: Geometry, limit: usize) -> Geometry {
    let fits = |geometry: &Geometry| leaves_enough(geometry.bytes(geometry.rings), limit);
    if !fits(&geometry) {
        geometry.processes = geometry.processes.min(LIMITED_ENTRIES);
    }
    while !fits(&geometry) && geometry.rings > FEWEST_RINGS {
        geometry.rings = (geometry.rings / 2).max(FEWEST_RINGS);
    }
    geometry
}

/// Producers are paused until this is dropped.
#[derive(Debug)]
pub struct Paused<'a> {
    shared: &'a Shared,
}

impl Shared {
    /// Makes the file: sparse, so that only the used parts take memory, and for this user only. Parts that are touched
    /// without being reserved individually are reserved.
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
        let geometry = sys::address_space_limit().map_or(geometry, |limit| within(geometry, limit));
        let wanted = options.memory.min((geometry.rings * geometry.ring_bytes()) as u64);
        let fixed = (geometry.entry_group(0).end + geometry.first_ring() - geometry.directory()) as u64;
        let mut tried = Vec::new();
        for candidate in folder::candidates(options.folder.as_deref(), fixed, wanted) {
            if !candidate.suffices(wanted) {
                tried.push((candidate.folder, io::Error::other("less than 2 MiB are free")));
                continue;
            }
            match Shared::create_in(&candidate, geometry, options.flags) {
                Ok(shared) => {
                    if let Some(stop) = options.stop {
                        // No process has the file's name yet.
                        let place = &shared.map.header().stop.0;
                        place.image.store(stop.image, Ordering::Relaxed);
                        place.events.store(stop.events, Ordering::Relaxed);
                    }
                    return Ok(shared);
                }
                Err(error) => tried.push(error),
            }
        }
        Err(RingError::NoFolder(tried))
    }

    fn create_in(
        candidate: &Candidate,
        geometry: Geometry,
        flags: Flags,
    ) -> Result<Shared, (PathBuf, io::Error)> {
        let (path, file) = make_file(&candidate.folder)?;
        let made = Map::create(path.clone(), file, geometry, flags).inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        });
        let map = made.map_err(|error| (path, error))?;
        Ok(Shared::over(map, candidate.budget_bytes))
    }

    /// Fills in the header of a file that is all zero. The rings may have `budget_bytes` of memory.
    pub(crate) fn over(map: Map, budget_bytes: u64) -> Shared {
        let (header, geometry, flags) = (map.header(), map.geometry, map.flags);
        header.version.store(VERSION, Ordering::Relaxed);
        header.flags.store(flags.bits(), Ordering::Relaxed);
        header.tool_pid.store(process::id() as i32, Ordering::Relaxed);
        header.processes.store(geometry.processes as u32, Ordering::Relaxed);
        header.rings.store(geometry.rings as u32, Ordering::Relaxed);
        header.ring_log2.store(geometry.ring_log2, Ordering::Relaxed);
        header.block_log2.store(geometry.block_log2, Ordering::Relaxed);
        header.created_ns.store(map.created_ns, Ordering::Relaxed);
        header.namespace.store(map.namespace, Ordering::Relaxed);
        let blocks = budget_bytes / geometry.block_bytes() as u64;
        header.budget.store(u32::try_from(blocks).unwrap_or(u32::MAX), Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Shared {
            map: Arc::new(map),
            swept: Instant::now(),
            highest: 0,
            paused: AtomicBool::new(false),
            execs: Execs::default(),
            arrived: 0,
            counted: Default::default(),
            forged: false,
        }
    }

    /// The file's path, for `HEAPTOLL_RECORD`.
    pub fn path(&self) -> &Path {
        &self.map.path
    }

    /// What producers are to record.
    pub fn flags(&self) -> Flags {
        self.map.flags
    }

    /// `CLOCK_MONOTONIC` when the file was made, ns: the zero of all recorded times.
    pub fn created_ns(&self) -> u64 {
        self.map.created_ns
    }

    /// The current time in ns since the file was made.
    pub fn now_ns(&self) -> u64 {
        crate::sys::now_ns().saturating_sub(self.created_ns())
    }

    /// Makes every producer record the time with its next event. Called about every ms.
    pub fn tick(&self) {
        self.map.header().beat.0.fetch_add(1, Ordering::Relaxed);
        let paused = self.paused.load(Ordering::Relaxed);
        self.each_gate(|gate| {
            let before = gate.fetch_add(gate::TICK, Ordering::AcqRel);
            // The tool has not paused it: the gate was overwritten, and nothing else would resume the process.
            if before & gate::PAUSE != 0 && !paused {
                gate.fetch_and(!gate::PAUSE, Ordering::AcqRel);
                sys::futex_wake(gate);
            }
        });
    }

    /// Makes every producer stop at its next event. Events being recorded are completed; calls that have begun
    /// continue. Processes whose arrival has not been returned run on.
    pub fn pause(&self) -> Paused<'_> {
        self.paused.store(true, Ordering::Relaxed);
        self.each_gate(|gate| {
            gate.fetch_or(gate::PAUSE, Ordering::AcqRel);
        });
        Paused { shared: self }
    }

    /// Process images that have registered since the last call, in order. Of a process that has a new image, by exec,
    /// the old image has [gone](crate::Tap::gone).
    pub fn arrivals(&mut self) -> Vec<Arrival> {
        self.count();
        let mut next = self.map.header().registry.0.newest.swap(0, Ordering::AcqRel);
        let mut found = Vec::new();
        let mut indices = HashSet::new();
        // A corrupted program may have overwritten the list.
        while next != 0
            && next as usize <= self.map.geometry.processes
            && found.len() < self.map.geometry.processes
        {
            let index = next as usize - 1;
            if !self.map.has_entry(index) {
                break;
            }
            next = self.map.process(index).next.load(Ordering::Relaxed);
            // Each entry counts once, even if the list is circular.
            if self.map.live().contains(&index) || !indices.insert(index) {
                continue;
            }
            if !self.is_filled_in(index) {
                self.forged = true;
                continue;
            }
            found.push(self.arrival(index));
            self.highest = self.highest.max(index + 1);
        }
        found.reverse();
        for arrival in &mut found {
            arrival.image = self.arrived;
            self.arrived = self.arrived.wrapping_add(1);
        }
        self.execs.arrived(&self.map, &found);
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
        heaptoll_assertions::assert_expensive!(
            live.iter().collect::<HashSet<_>>().len() == live.len(),
            "an entry is live once"
        );
        drop(live);
        if self.swept.elapsed() > SWEEP {
            self.sweep();
            self.swept = Instant::now();
        }
        found
    }

    fn arrival(&self, index: usize) -> Arrival {
        let process = self.map.process(index);
        let at = ProcessIdentity::from_entry(&self.map, index);
        let parent = process.parent_pid.load(Ordering::Relaxed);
        Arrival {
            index,
            image: 0,
            pid: at.pid(),
            parent_pid: if at.foreign() { proc::parent(at.pid()).unwrap_or(0) } else { parent },
            forked: process.forked.load(Ordering::Relaxed) != 0,
            exe: path(&process.exe, &process.exe_bytes),
            manager: path(&process.manager, &process.manager_bytes),
            started_ns: process.started_ns.load(Ordering::Relaxed).saturating_sub(self.created_ns()),
            was_there: at.was_there(),
        }
    }

    /// Whether a process has filled in an entry, as far as can be seen; false for an overwritten or unclaimed one.
    fn is_filled_in(&self, index: usize) -> bool {
        let process = self.map.process(index);
        let word = process.state.load(Ordering::Acquire);
        word & 255 == state::CLAIMED
            && (1..=MOST_PID).contains(&(word >> 8))
            && process.started_ns.load(Ordering::Relaxed) != 0
    }

    /// Samples the counters that registration writes.
    fn count(&mut self) {
        let Registry {
            processes_left_out,
            threads_left_out,
            events_left_out,
            execs_left_out,
            images,
            limited,
            without_stacks,
            ..
        } = &self.map.header().registry.0;
        let counters = [
            processes_left_out,
            threads_left_out,
            events_left_out,
            execs_left_out,
            images,
            limited,
            without_stacks,
        ];
        for (sampled, counter) in self.counted.iter_mut().zip(counters) {
            sampled.sample(counter.load(Ordering::Relaxed));
        }
    }

    /// Frees the entries of processes that were killed before they could register.
    fn sweep(&mut self) {
        let live = self.map.live();
        for index in 0..(self.highest + 64).min(self.map.geometry.processes) {
            if !self.map.has_entry(index) {
                return;
            }
            let entry = &self.map.process(index).state;
            let claim = entry.load(Ordering::Acquire);
            if claim & 255 == state::CLAIMED
                && !live.contains(&index)
                && !ProcessIdentity::from_entry(&self.map, index).runs()
                // In this order: a process that has ended adds itself to the list no more.
                && self.map.header().registry.0.newest.load(Ordering::Acquire) == 0
            {
                let _ = entry.compare_exchange(claim, state::FREE, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Sleeps until a ring is half full, a process registers, or the time has elapsed.
    pub fn wait(&self, longest: Duration) {
        let bell = &self.map.header().doorbell.0;
        bell.store(1, Ordering::SeqCst);
        if self.map.header().registry.0.newest.load(Ordering::SeqCst) == 0 {
            sys::futex_wait(bell, 1, u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
        }
        bell.store(0, Ordering::Relaxed);
    }

    /// A limit of address space under which a process is recorded, bytes: the lowest power of two.
    pub fn least_address_space(&self) -> usize {
        let fits = |log: &u32| self.map.geometry.may_map(FEWEST_RINGS, 1 << log);
        1 << (0..usize::BITS - 1).find(fits).unwrap_or(usize::BITS - 1)
    }

    /// Counts of what could not be recorded so far.
    pub fn left_out(&mut self) -> LeftOut {
        self.count();
        let [processes, threads, events, execs, images, limited, without_stacks] = self.counted;
        LeftOut {
            processes: processes.value(),
            threads: threads.value(),
            events: events.value(),
            execs: execs.value(),
            limited: limited.value(),
            without_stacks: without_stacks.value(),
            // Each image counts itself before it arrives.
            damaged: self.forged
                || self.counted.iter().any(|sampled| sampled.is_damaged())
                || self.arrived > images.value(),
        }
    }

    /// Execs, and processes that were started, whose images have ended without having registered: no ring has their
    /// events. `all`: nothing more comes, so those that still run are returned, too. Called after [`Shared::arrivals`].
    pub fn unregistered(&mut self, all: bool) -> Vec<Unregistered> {
        self.execs.unregistered(&self.map, all)
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
        // If the file cannot be removed, nothing can be done about it here.
        let _ = std::fs::remove_file(&self.map.path);
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.shared.paused.store(false, Ordering::Relaxed);
        self.shared.each_gate(|gate| {
            gate.fetch_and(!gate::PAUSE, Ordering::AcqRel);
            sys::futex_wake(gate);
        });
    }
}

/// [`Process::detached`](crate::layout::Process::detached) of an image that another has replaced.
pub(crate) const REPLACED: u32 = 2;
/// Linux gives no larger process number.
const MOST_PID: u64 = 1 << 22;
/// A file of this age that no tool has locked was left by a killed one.
const STALE: Duration = Duration::from_secs(60);
/// How often the table is scanned for entries whose processes never registered.
const SWEEP: Duration = Duration::from_millis(500);

/// Makes an empty file of a new name.
fn make_file(folder: &Path) -> Result<(PathBuf, File), (PathBuf, io::Error)> {
    clear(folder);
    for n in 0..1000 {
        let path = folder.join(format!("heaptoll-{}-{n}.rings", process::id()));
        // The layer keeps the path in a small array.
        if path.as_os_str().len() > 255 {
            return Err((path, io::ErrorKind::InvalidFilename.into()));
        }
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err((folder.to_owned(), error)),
        }
    }
    Err((folder.to_owned(), io::ErrorKind::AlreadyExists.into()))
}

/// Removes files of tools that were killed, and whose programs ended before they noticed.
fn clear(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.as_bytes().starts_with(b"heaptoll-") || !name.as_bytes().ends_with(b".rings") {
            continue;
        }
        // A new one may not be locked yet.
        // SAFETY: geteuid takes no pointers and cannot fail.
        let user = unsafe { libc::geteuid() };
        let old = entry.metadata().is_ok_and(|about| {
            let age = about.modified().ok().and_then(|time| time.elapsed().ok());
            about.is_file() && about.uid() == user && age.is_some_and(|age| age > STALE)
        });
        if old
            && let Ok(path) = CString::new(entry.path().as_os_str().as_bytes())
            && Descriptor::open(&path).is_ok_and(|file| file.locked() == Some(false))
        {
            sys::unlink(&path);
        }
    }
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

    /// Before, a tool under `ulimit -v` of less than 3 GB could not map its file, and refused to record.
    #[test]
    fn a_limited_address_space_makes_a_smaller_file() {
        let usual = Options::default();
        let geometry = Geometry {
            processes: usual.processes,
            rings: usual.rings,
            ring_log2: usual.ring_log2,
            block_log2: usual.block_log2,
        };
        let of = |limit| {
            let found = within(geometry, limit);
            assert!(found.sensible() && (found.rings == 1 || leaves_enough(found.bytes(found.rings), limit)));
            (found.processes, found.rings)
        };
        assert_eq!(of(1 << 40), (16384, 2048));
        assert_eq!(of(3 << 30), (LIMITED_ENTRIES, 256));
        assert_eq!(of(1 << 28), (LIMITED_ENTRIES, 16));
        assert_eq!((of(1 << 20), of(0)), ((LIMITED_ENTRIES, 1), (LIMITED_ENTRIES, 1)));
    }

    #[test]
    fn the_file_is_sparse_and_for_the_user_only() {
        let shared = Shared::create(&Options::default()).expect("a file can be made");
        let about = shared.path().metadata().expect("it is there");
        assert_eq!(about.mode() & 0o777, 0o600);
        assert!(about.len() > 2 << 30 && about.blocks() * 512 < 1 << 20, "{} blocks", about.blocks());
    }
}
