//! The page by which the tool controls the layers of a run, and the folder that it lies in.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use heaptoll_sampling::layout::{CONTROL, Control, MAGIC, PAGE, VERSION};
use heaptoll_sampling::{MOST_MEAN, Random};

use crate::sample::system;

/// Bytes of the folder's path at most, and of the name of a file in it.
const PATH: usize = 512;
const NAME: usize = 32;

/// The control page, once the layer has found it.
pub struct RunControl {
    page: AtomicPtr<Control>,
    /// A copy: the page may be overwritten.
    mean_bytes: AtomicUsize,
    seed: AtomicU64,
    /// A copy as well: programs that set their title write over their environment.
    folder: UnsafeCell<[u8; PATH]>,
    folder_bytes: AtomicUsize,
}

// SAFETY: `attach` alone writes the folder, before it stores the page with release; others read it after they have loaded
// the page with acquire.
unsafe impl Sync for RunControl {}

impl Default for RunControl {
    fn default() -> RunControl {
        RunControl::new()
    }
}

impl RunControl {
    /// Not found yet.
    pub const fn new() -> RunControl {
        RunControl {
            page: AtomicPtr::new(core::ptr::null_mut()),
            mean_bytes: AtomicUsize::new(0),
            seed: AtomicU64::new(0),
            folder: UnsafeCell::new([0; PATH]),
            folder_bytes: AtomicUsize::new(0),
        }
    }

    /// Maps the page in a folder; false: there is none that this layer can use. Call it once.
    pub fn attach(&self, folder: &[u8]) -> bool {
        if folder.len() + NAME > PATH || folder.is_empty() {
            return false;
        }
        // SAFETY: only this call, which is the only one, refers to the folder until the page is stored.
        unsafe { (&mut *self.folder.get())[..folder.len()].copy_from_slice(folder) };
        self.folder_bytes.store(folder.len(), Ordering::Relaxed);
        let page = self.with_path(CONTROL.as_bytes(), |path| system::map(&system::open(path, 0).ok()?, PAGE));
        let Some(page) = page else { return false };
        let page = page.cast::<Control>();
        // SAFETY: the mapping is as long as a page, and a `Control` is valid whatever its bytes are.
        let control = unsafe { page.as_ref() };
        let mean = control.mean_bytes;
        if control.magic != MAGIC || control.version != VERSION || mean == 0 || mean > MOST_MEAN {
            return false;
        }
        self.mean_bytes.store(mean as usize, Ordering::Relaxed);
        let seed = if control.is_seeded != 0 { control.seed } else { system::random() };
        self.seed.store(seed, Ordering::Relaxed);
        self.page.store(page.as_ptr(), Ordering::Release);
        true
    }

    fn page(&self) -> Option<&Control> {
        // SAFETY: null, or the mapping that `attach` has stored, which is never unmapped.
        unsafe { self.page.load(Ordering::Acquire).as_ref() }
    }

    /// Whether allocations are sampled now.
    pub fn is_awake(&self) -> bool {
        self.page().is_some_and(|page| page.awake.load(Ordering::Relaxed) != 0)
    }

    /// Mean distance of sample points, bytes.
    pub fn mean_bytes(&self) -> u64 {
        self.mean_bytes.load(Ordering::Relaxed) as u64
    }

    /// The sequence of the thread of this number, of a process. It takes no system call: threads may begin within a
    /// sandbox.
    pub fn random(&self, process: u32, thread: u64) -> Random {
        let is_seeded = self.page().is_some_and(|page| page.is_seeded != 0);
        let process = if is_seeded { 0 } else { u64::from(process) };
        Random::of_thread(self.seed.load(Ordering::Relaxed), process << 32 ^ thread)
    }

    /// Counts a process image that can make no file.
    pub fn count_without_file(&self) {
        if let Some(page) = self.page() {
            page.without_file.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls `with` with the path of a file in the folder. The name has less than 31 bytes.
    pub fn with_path<T>(&self, name: &[u8], with: impl FnOnce(&CStr) -> Option<T>) -> Option<T> {
        let mut path = [0; PATH];
        let folder_bytes = self.folder_bytes.load(Ordering::Relaxed);
        // SAFETY: `attach` wrote the folder before any other call refers to it.
        let folder = unsafe { &*self.folder.get() };
        path[..folder_bytes].copy_from_slice(&folder[..folder_bytes]);
        path[folder_bytes] = b'/';
        path.get_mut(folder_bytes + 1..folder_bytes + 1 + name.len())?.copy_from_slice(name);
        with(CStr::from_bytes_until_nul(&path).ok()?)
    }
}
