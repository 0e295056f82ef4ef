//! The facts that the process reports about its manager on request: the manager's own census through the control symbol
//! of `include/heaptoll.h`, Tithe's figures, glibc's `mallinfo2`.
//!
//! Only functions of the object that `malloc` comes from are called. They are looked up when the layer starts: a lookup
//! may allocate. They are called on a thread of the program that is about to record an event, outside of the manager,
//! with none of its locks held: where the event is of a call from within, there are no facts.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_alloc_ring::facts::{BYTES, Facts, Held, Mallinfo, Totals, request};
use heaptoll_next::family::{object_of, symbol};
use heaptoll_next::{Family, inside};

/// `struct heaptoll_census`.
#[repr(C)]
struct RawCensus {
    size: u32,
    class_capacity: u32,
    class_count: u32,
    exact: u32,
    mapped_bytes: u64,
    mapped_high_bytes: u64,
    live_bytes: u64,
    free_bytes: u64,
    metadata_bytes: u64,
    quarantined_bytes: u64,
    unused_bytes: u64,
    requested_bytes: u64,
    classes: *mut u8,
}

/// The beginning of `struct heaptoll_control`.
#[repr(C)]
struct Control {
    version: u32,
    size: u32,
    name: *const c_char,
    manager_version: *const c_char,
    census: Option<unsafe extern "C" fn(*mut RawCensus) -> c_int>,
    collect: Option<unsafe extern "C" fn() -> c_int>,
}

/// `struct tithe_stats`.
#[repr(C)]
struct TitheStats {
    size: u64,
    others: [u64; 9],
    blacklisted_bytes: u64,
}

/// `struct tithe_held`.
#[repr(C)]
#[derive(Default)]
struct TitheHeld {
    stacks: u64,
    statics: u64,
    mappings: u64,
    registers: u64,
}

/// The functions that return the facts.
#[derive(Clone, Copy)]
struct Sources {
    control: Option<&'static Control>,
    tithe_stats: Option<unsafe extern "C" fn(*mut TitheStats) -> c_int>,
    tithe_held: Option<unsafe extern "C" fn(*mut TitheHeld) -> c_int>,
    mallinfo2: Option<unsafe extern "C" fn() -> libc::mallinfo2>,
}

struct SourcesCell(UnsafeCell<Sources>);

// SAFETY: only `prepare` writes it, before READY, which is stored with release and loaded with acquire.
unsafe impl Sync for SourcesCell {}

static SOURCES: SourcesCell = SourcesCell(UnsafeCell::new(Sources {
    control: None,
    tithe_stats: None,
    tithe_held: None,
    mallinfo2: None,
}));
static READY: AtomicBool = AtomicBool::new(false);

/// Looks up the functions. Called once, while there is one thread; allocates.
pub fn prepare(family: &Family) {
    let Some(home) = object_of(family.malloc as *const () as usize) else { return };
    let own = |name: &CStr| symbol(name).filter(|&address| object_of(address as usize) == Some(home));
    // SAFETY: each address was looked up by the name whose type it is given, which include/heaptoll.h, include/tithe.h
    // or glibc's malloc.h declares; the control struct lives as long as the object.
    let sources = unsafe {
        let control = own(c"heaptoll_control_v1")
            .map(|f| transmute::<*mut _, unsafe extern "C" fn() -> *const Control>(f)())
            .and_then(|control| control.as_ref())
            .filter(|control| control.version >= 1 && control.size as usize >= size_of::<Control>());
        Sources {
            control,
            tithe_stats: own(c"tithe_stats")
                .map(|f| transmute::<*mut _, unsafe extern "C" fn(*mut TitheStats) -> c_int>(f)),
            tithe_held: own(c"tithe_held")
                .map(|f| transmute::<*mut _, unsafe extern "C" fn(*mut TitheHeld) -> c_int>(f)),
            // glibc's, not another manager's function of the name.
            mallinfo2: own(c"gnu_get_libc_version")
                .and_then(|_| own(c"mallinfo2"))
                .map(|f| transmute::<*mut _, unsafe extern "C" fn() -> libc::mallinfo2>(f)),
        }
    };
    // A failed lookup leaves a message: the first call takes it, the second frees it.
    // SAFETY: dlerror takes no pointers; no thread reads the sources before READY, which is stored below.
    unsafe {
        libc::dlerror();
        libc::dlerror();
        *SOURCES.0.get() = sources;
    }
    READY.store(true, Ordering::Release);
}

/// Answers a request, in place. The caller preserves `errno`.
pub fn answer(bytes: &mut [u8; 1024]) -> usize {
    if !READY.load(Ordering::Acquire) || inside::is_inside() {
        return 0;
    }
    let options = bytes[0];
    // SAFETY: `prepare` stores READY only after it has written the sources, which are never written again.
    let sources = unsafe { *SOURCES.0.get() };
    let facts = inside::call(|| sources.facts(options));
    bytes[..BYTES].copy_from_slice(&facts.to_bytes());
    BYTES
}

impl Control {
    fn census(&self) -> Option<Totals> {
        let mut raw = MaybeUninit::<RawCensus>::zeroed();
        // SAFETY: all zeroes are a valid census, with space for no classes; the manager fills in at most `size` bytes.
        let raw = unsafe {
            (*raw.as_mut_ptr()).size = size_of::<RawCensus>() as u32;
            if (self.census?)(raw.as_mut_ptr()) != 0 {
                return None;
            }
            raw.assume_init()
        };
        Some(Totals {
            exact: raw.exact != 0,
            mapped_bytes: raw.mapped_bytes,
            mapped_high_bytes: raw.mapped_high_bytes,
            live_bytes: raw.live_bytes,
            free_bytes: raw.free_bytes,
            metadata_bytes: raw.metadata_bytes,
            quarantined_bytes: raw.quarantined_bytes,
            unused_bytes: raw.unused_bytes,
            requested_bytes: raw.requested_bytes,
        })
    }

    /// A full collection, and the census after it.
    fn collected(&self) -> Option<Totals> {
        // SAFETY: include/heaptoll.h permits any thread to call it.
        if unsafe { (self.collect?)() } == 0 { self.census() } else { None }
    }
}

impl Sources {
    fn facts(&self, options: u8) -> Facts {
        let mut facts = Facts::default();
        if let Some(control) = self.control {
            // SAFETY: by include/heaptoll.h the name is a C string that is never null and lives as long as the object.
            let name = unsafe { CStr::from_ptr(control.name) }.to_bytes();
            let length = name.len().min(facts.name.len());
            facts.name[..length].copy_from_slice(&name[..length]);
            facts.census = control.census();
        }
        facts.blacklisted_bytes = self.tithe_stats.and_then(|function| {
            let size = size_of::<TitheStats>() as u64;
            let mut stats = TitheStats { size, others: [0; 9], blacklisted_bytes: 0 };
            // SAFETY: `stats` states its size, and the function writes no more.
            (unsafe { function(&mut stats) } == 0).then_some(stats.blacklisted_bytes)
        });
        if options & request::HELD != 0 {
            facts.held = self.tithe_held.and_then(|function| {
                let mut held = TitheHeld::default();
                // SAFETY: the function writes to `held`, a local variable of its type.
                (unsafe { function(&mut held) } == 0).then_some(Held {
                    stacks: held.stacks,
                    statics: held.statics,
                    mappings: held.mappings,
                    registers: held.registers,
                })
            });
        }
        if options & request::COLLECT != 0 {
            facts.collected = self.control.and_then(Control::collected);
        }
        facts.mallinfo = self.mallinfo2.map(|function| {
            // SAFETY: mallinfo2 takes no pointers; it takes the arenas' locks, of which this thread holds none.
            let info = unsafe { function() };
            Mallinfo {
                arena: info.arena as u64,
                hblkhd: info.hblkhd as u64,
                uordblks: info.uordblks as u64,
                fordblks: info.fordblks as u64,
                keepcost: info.keepcost as u64,
            }
        });
        facts
    }
}
