//! A process's samples: the control page, the live ones, the filter in front of them, and the file of the sums.

use core::ffi::{CStr, c_char};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use heaptoll_next::memory;
use heaptoll_process::address_space;
use heaptoll_sampling::layout::FILE_BYTES;
use heaptoll_sampling::{Random, Weight};

use crate::sample::control::RunControl;
use crate::sample::file::{ProcessFile, Records};
use crate::sample::filter::{Filter, GROUP_BYTES};
use crate::sample::live::{Live, LiveSample};
use crate::sample::observer::Observer;
use crate::sample::system;

const NEW: u32 = 0;
const BEGINNING: u32 = 1;
const BEGUN: u32 = 2;
const FAILED: u32 = 3;
const ENDED: u32 = 4;

/// What a child of fork finds wiped.
#[repr(C)]
struct State {
    phase: AtomicU32,
    /// Threads that have begun to count.
    threads: AtomicU64,
    file: ProcessFile,
    live: Live,
}

/// A process's sampler, in a static of the layer.
pub struct Sampler {
    control: RunControl,
    state: AtomicPtr<State>,
    filter: Filter,
    /// The path of the object that the layer forwards to; null before it is attached.
    manager: AtomicPtr<c_char>,
}

/// A sampled block that its thread has taken out, before the manager gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken(LiveSample);

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler::new()
    }
}

impl Sampler {
    /// It samples nothing yet.
    pub const fn new() -> Sampler {
        Sampler {
            control: RunControl::new(),
            state: AtomicPtr::new(core::ptr::null_mut()),
            filter: Filter::new(),
            manager: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Attaches to the tool's folder, and makes this process's file; false: nothing will be sampled. Call it once, while
    /// there is one thread. `manager`: the path of the object that the layer forwards to.
    pub fn attach(&'static self, folder: &[u8], manager: &'static CStr) -> bool {
        self.manager.store(manager.as_ptr().cast_mut(), Ordering::Release);
        if !self.control.attach(folder) {
            return false;
        }
        let memory = address_space::fits(size_of::<State>() + FILE_BYTES)
            .then(|| memory::map_wiped_in_child(size_of::<State>()))
            .flatten();
        let Some(memory) = memory else {
            self.control.count_without_file();
            return false;
        };
        self.state.store(memory.cast::<State>().as_ptr(), Ordering::Release);
        self.records().is_some()
    }

    /// The control page.
    pub fn control(&self) -> &RunControl {
        &self.control
    }

    fn state(&self) -> Option<&State> {
        // SAFETY: null, or the mapping that `attach` has stored, which is never unmapped; zeroes are a valid state.
        unsafe { NonNull::new(self.state.load(Ordering::Acquire)).map(|state| state.as_ref()) }
    }

    /// The random sequence of a thread that begins to count.
    pub fn random(&self) -> Random {
        let thread = self.state().map_or(0, |state| state.threads.fetch_add(1, Ordering::Relaxed));
        let process = self.records().map_or(0, |records| records.header().pid.load(Ordering::Relaxed));
        self.control.random(process, thread)
    }

    /// This process's file, which is made at the first call after a fork.
    pub fn records(&self) -> Option<Records<'_>> {
        let state = self.state()?;
        match state.phase.load(Ordering::Acquire) {
            BEGUN => state.file.records(),
            NEW => self.begin(state),
            _ => None,
        }
    }

    #[cold]
    fn begin<'a>(&self, state: &'a State) -> Option<Records<'a>> {
        state.phase.compare_exchange(NEW, BEGINNING, Ordering::AcqRel, Ordering::Acquire).ok()?;
        let manager = self.manager.load(Ordering::Acquire);
        // SAFETY: `attach`, which has set the state, stored a static C string before.
        let records = state.file.begin(&self.control, unsafe { CStr::from_ptr(manager) });
        if records.is_none() {
            self.control.count_without_file();
        }
        state.phase.store(if records.is_some() { BEGUN } else { FAILED }, Ordering::Release);
        records
    }

    /// `exit` begins: the sums of this process stay as they are. A child of vfork has its parent's, and changes nothing.
    pub fn exit_begins(&self) {
        if let Some(state) = self.state()
            && let Some(records) = state.file.records()
            && records.header().pid.load(Ordering::Relaxed) == system::process()
        {
            state.phase.store(ENDED, Ordering::Release);
        }
    }

    /// An allocation is sampled: its call stack is number `site` of `records`.
    pub fn allocated<O: Observer>(&self, records: Records<'_>, block: usize, bytes: usize, site: u32) {
        let Some(state) = self.state() else { return };
        let weight = Weight::of(bytes as u64, self.control.mean_bytes());
        let record = records.site(site);
        record.allocated.add(&weight);
        if !records.has_site(site) {
            records.header().without_site.fetch_add(1, Ordering::Relaxed);
        }
        if state.live.insert(block, LiveSample { bytes, site }).is_ok() {
            self.filter.add(block);
            O::allocated(block, bytes, weight.bytes as u64);
        } else {
            record.freed.add(&weight);
            records.header().not_followed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Has all blocks in a range pass the filter from now on.
    pub fn always_hold(&self, blocks: core::ops::Range<usize>) {
        let first = blocks.start & !(GROUP_BYTES - 1);
        (first..blocks.end).step_by(GROUP_BYTES).for_each(|block| self.filter.add(block));
    }

    /// Whether a block may be a sampled one, or one that always passes.
    #[inline(always)]
    pub fn may_hold(&self, block: usize) -> bool {
        self.filter.may_hold(block)
    }

    /// Takes out a block that its program is about to give back: afterwards its address may be another's. `None`: it was
    /// not sampled.
    pub fn take(&self, block: usize) -> Option<Taken> {
        let sample = self.state()?.live.remove(block)?;
        self.filter.remove(block);
        Some(Taken(sample))
    }

    /// The block was given back.
    pub fn freed<O: Observer>(&self, block: usize, Taken(sample): Taken) {
        O::freed(block);
        if let Some(records) = self.records() {
            records.site(sample.site).freed.add(&Weight::of(sample.bytes as u64, self.control.mean_bytes()));
        }
    }

    /// The block stays with the program: it could not be resized.
    pub fn put_back(&self, block: usize, Taken(sample): Taken) {
        let Some(state) = self.state() else { return };
        if state.live.insert(block, sample).is_ok() {
            self.filter.add(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::ffi::{CString, OsStr};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use heaptoll_sampling::tool::{Folder, Settings};

    use super::*;

    /// A folder that goes with its value. The crate for them takes longer to compile than all that is tested here.
    struct Temporary(CString);

    impl Temporary {
        fn new() -> Temporary {
            let template = std::env::temp_dir().join("heaptoll-sampler-XXXXXX");
            let template = CString::new(template.into_os_string().into_encoded_bytes()).unwrap().into_raw();
            // SAFETY: `template` is from `into_raw` just above, and `mkdtemp` keeps its length.
            let name = unsafe { (!libc::mkdtemp(template).is_null()).then_some(CString::from_raw(template)) };
            Temporary(name.expect("a folder"))
        }

        fn path(&self) -> &Path {
            Path::new(OsStr::from_bytes(self.0.as_bytes()))
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            std::fs::remove_dir_all(self.path()).ok();
        }
    }

    fn sampler(folder: &Folder) -> &'static Sampler {
        let sampler: &'static Sampler = Box::leak(Box::new(Sampler::new()));
        assert!(sampler.attach(folder.path().as_os_str().as_bytes(), c"/lib/libc.so.6"));
        sampler
    }

    #[test]
    fn what_the_layer_adds_the_tool_reads() {
        let temporary = Temporary::new();
        let settings = Settings { mean_bytes: 4096, seed: Some(9), awake: true };
        let folder = Folder::create(temporary.path(), settings).unwrap();
        let sampler = sampler(&folder);
        assert!(sampler.control().is_awake());
        assert_eq!(sampler.random(), Random::of_thread(9, 0));
        assert_eq!(sampler.random(), Random::of_thread(9, 1));
        let records = sampler.records().unwrap();
        records.define(0, &[4096, 8192, 0, 3, 0x61_6263]);
        records.define(2, &[5000, 6000]);
        // Two of one stack, of which one is freed, and one that is larger than the records have numbers for.
        sampler.allocated::<()>(records, 0x1000, 100, 2);
        sampler.allocated::<()>(records, 0x2000, 100, 2);
        sampler.allocated::<()>(records, 0x3000, 1 << 30, u32::MAX);
        assert!(sampler.may_hold(0x1000) && sampler.take(0x1010).is_none());
        sampler.always_hold(0x50_0040..0x50_2000);
        assert!((0x50_0000..0x50_2000).step_by(16).all(|block| sampler.may_hold(block)));
        assert!(!sampler.may_hold(0x50_2100));
        let taken = sampler.take(0x1000).unwrap();
        assert!(!sampler.may_hold(0x1000));
        sampler.put_back(0x1000, taken);
        let taken = sampler.take(0x1000).unwrap();
        sampler.freed::<()>(0x1000, taken);
        let read = folder.processes().unwrap();
        assert_eq!((read.len(), read[0].pid, read[0].image), (1, std::process::id(), 1));
        let process = &read[0];
        assert_eq!(process.exe, std::env::current_exe().unwrap());
        assert_eq!(process.manager.as_os_str(), "/lib/libc.so.6");
        assert_eq!(process.objects[0].words, [4096, 8192, 0, 3, 0x61_6263]);
        assert_eq!((process.sites.len(), process.without_site, process.not_followed), (3, 1, 0));
        assert_eq!(process.sites[2].words, [5000, 6000]);
        let weight = Weight::of(100, 4096);
        let (allocated, live) = (process.sites[2].allocated, process.sites[2].live);
        assert_eq!((allocated.samples, allocated.bytes), (2, 2.0 * weight.bytes));
        assert_eq!((live.samples, live.bytes), (1, weight.bytes));
        assert_eq!(process.sites[0].live.bytes, (1_u64 << 30) as f64);
        sampler.exit_begins();
        let taken = sampler.take(0x2000).unwrap();
        sampler.freed::<()>(0x2000, taken);
        assert!(sampler.records().is_none());
        assert_eq!(folder.processes().unwrap()[0].sites[2].live, live, "freed by a destructor");
        folder.wake(false).unwrap();
        assert!(!sampler.control().is_awake());
    }

    #[test]
    fn a_folder_that_is_none_is_refused() {
        let temporary = Temporary::new();
        let refused: &'static Sampler = Box::leak(Box::new(Sampler::new()));
        assert!(
            !refused.attach(temporary.path().as_os_str().as_bytes(), c"/lib/libc.so.6"),
            "no control page"
        );
        let refused: &'static Sampler = Box::leak(Box::new(Sampler::new()));
        assert!(!refused.attach(&[b'x'; 600], c"") && !refused.attach(b"", c""));
        assert!(refused.records().is_none() && refused.take(16).is_none());
        std::fs::write(temporary.path().join("control"), [7; 4096]).unwrap();
        let refused: &'static Sampler = Box::leak(Box::new(Sampler::new()));
        assert!(!refused.attach(temporary.path().as_os_str().as_bytes(), c"/lib/libc.so.6"), "another page");
    }

    #[test]
    fn each_image_of_a_process_number_has_a_file_of_its_own() {
        let temporary = Temporary::new();
        let settings = Settings { mean_bytes: 1, seed: None, awake: false };
        let folder = Folder::create(temporary.path(), settings).unwrap();
        for _ in 0..3 {
            sampler(&folder);
        }
        let images: std::vec::Vec<u32> = folder.processes().unwrap().iter().map(|one| one.image).collect();
        assert_eq!(images, [1, 2, 3]);
    }
}
