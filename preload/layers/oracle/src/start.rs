//! How the layer starts: when all libraries have been initialised. The sequence begins with the program's `main`: what
//! comes before it depends on the libraries that the manager brings along.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Relaxed, Release};

use heaptoll_next::settings::{refuse, variable};
use heaptoll_oracle_core::pages::{Pages, Retire};
use heaptoll_oracle_core::reader::Reader;
use heaptoll_oracle_core::sequence::Sequence;
use heaptoll_oracle_core::settings::{ALLOWED, Check, Point, Settings};
use heaptoll_oracle_core::sites::Sites;
use heaptoll_oracle_file::MOST_SLOTS;
use heaptoll_runtime::{AtFork, at_fork};

use crate::file::{self, Path};
use crate::follow::{Oracle, Reclaim};
use crate::loaded::{self, Process};
use crate::stop::stop_because;
use crate::{environment, follow};

const VARIABLE: &CStr = c"HEAPTOLL_ORACLE";

/// What calls do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Calls are forwarded: `main` has not begun, there is nothing to follow, or this is a child of fork.
    Forward = 0,
    /// The sequence is followed.
    Follow = 1,
    /// A child of fork whose blocks are not the manager's.
    Abandoned = 2,
}

static STATE: AtomicU8 = AtomicU8::new(State::Forward as u8);

struct OracleCell(UnsafeCell<MaybeUninit<Oracle>>);

// SAFETY: `start` writes it before `main_begins` stores `Follow`; after that only the thread that started uses it, which
// `follow::allocate` tests.
unsafe impl Sync for OracleCell {}

static ORACLE: OracleCell = OracleCell(UnsafeCell::new(MaybeUninit::uninit()));

/// What calls do now.
#[inline(always)]
pub fn state() -> State {
    match STATE.load(Relaxed) {
        1 => State::Follow,
        2 => State::Abandoned,
        _ => State::Forward,
    }
}

/// The oracle, once the state is [`State::Follow`].
#[inline(always)]
pub fn oracle() -> *mut Oracle {
    ORACLE.0.get().cast()
}

/// Reads the settings and opens the recorded file. Whether there is a sequence that is to be followed from `main` on.
pub fn start() -> bool {
    let settings = match variable(VARIABLE).map(Settings::read) {
        None => return false,
        Some(Ok(settings)) => settings,
        Some(Err(wrong)) => refuse(VARIABLE, wrong, ALLOWED),
    };
    // The statistics page's variable is among those that the program does not see.
    follow::attach();
    environment::hide(settings.hidden);
    // Resolved here, where what the look-up allocates is not part of the sequence.
    let _ = heaptoll_next::next();
    if settings.point == Point::Record {
        return false;
    }
    // SAFETY: nothing reads the cell before `main_begins`.
    if !unsafe { open(&settings, oracle()) } {
        return false;
    }
    if at_fork::<Forks>() != 0 {
        stop_because("the C library has no memory for a handler of forks");
    }
    if settings.check == Check::Pages {
        follow::report_touches();
    }
    true
}

/// The sequence begins.
pub fn main_begins() {
    STATE.store(State::Follow as u8, Release);
}

/// Opens the recorded file and makes what follows it; false where the file is of another program: one that the recorded
/// one started, or that started it.
///
/// # Safety
/// `oracle` may be written to, and nothing reads it.
unsafe fn open(settings: &Settings, oracle: *mut Oracle) -> bool {
    let Some(path) = Path::new(settings.file) else { stop_because("the path of its file is too long") };
    let Some(header) = file::header(path) else {
        stop_because("its file is not there, is cut, or is of another version of heaptoll; record it again")
    };
    let no_memory = || -> ! { stop_because("it has no memory for its tables, or its file cannot be read") };
    let (Some(sites), Some(objects), Some(text)) = (
        file::words(path, header.sites),
        file::words(path, header.objects),
        file::bytes(path, header.text),
    ) else {
        no_memory()
    };
    if !loaded::is_program(objects, text) {
        return false;
    }
    // SAFETY: 0 is an address, and null a pointer.
    let (addresses, blocks) = unsafe {
        let slots = if settings.point == Point::LastUse { header.slots.min(MOST_SLOTS.into()) } else { 0 };
        (file::cells::<usize>(sites.len()), file::cells(slots as usize))
    };
    let (Some(addresses), Some(blocks)) = (addresses, blocks) else { no_memory() };
    let retire = if settings.check == Check::Poison { Retire::Poison } else { Retire::Guard };
    let pages = if settings.check == Check::Off { None } else { Pages::new(retire) };
    if settings.check != Check::Off && pages.is_none() {
        stop_because("the system refuses the addresses for blocks that are used once");
    }
    let sites = Sites { sites, objects, text, addresses, loaded: Process };
    // SAFETY: the caller passes a place that may be written to.
    unsafe {
        oracle.write(Oracle {
            thread: heaptoll_runtime::thread_pointer(),
            sequence: Sequence::new(Reader::new(path, header.words), sites),
            reclaim: Reclaim::new(settings.point, path, header.deaths, blocks),
            pages,
            allocated: 0,
        });
    }
    true
}

struct Forks;

/// A child has a sequence of its own, which was not recorded: it frees when it wants.
impl AtFork for Forks {
    fn before() {}

    fn in_parent() {}

    fn in_child() {
        if STATE.load(Relaxed) == State::Follow as u8 {
            // SAFETY: the state was `Follow`, and the child has one thread.
            let checked = unsafe { (*oracle()).pages.is_some() };
            STATE.store(if checked { State::Abandoned } else { State::Forward } as u8, Release);
        }
    }
}
