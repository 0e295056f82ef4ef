//! How the layer starts: when all libraries have been initialised. The sequence begins with the program's `main`: what
//! comes before it depends on the libraries that the manager brings along.

use core::ffi::CStr;

use heaptoll_layer_core::oracle::pages::{Pages, Retire};
use heaptoll_layer_core::oracle::reader::Reader;
use heaptoll_layer_core::oracle::sequence::Sequence;
use heaptoll_layer_core::oracle::settings::{ALLOWED, Check, Point, Settings};
use heaptoll_layer_core::oracle::sites::Sites;
use heaptoll_next::settings::{refuse, variable};
use heaptoll_oracle_file::{Header, MOST_SLOTS, Section};
use heaptoll_runtime::{AtFork, at_fork};
use heaptoll_stats_page::Slot;

use crate::file::{self, Path};
use crate::follow;
use crate::loaded::{self, Process};
use crate::oracle::{self, Oracle, Reclaim};
use crate::state::{State, oracle, set_state, state};
use crate::stop::stop_because;

const VARIABLE: &CStr = c"HEAPTOLL_ORACLE";

/// How the program is started.
pub struct Start {
    /// Variables that it does not see besides heaptoll's own: names separated by `+`.
    pub hidden: &'static [u8],
    /// What calls do from `main` on; [`State::Forward`] from now on.
    pub at_main: State,
}

/// Reads the settings and opens the recorded file; `None` where there are no settings.
pub fn start() -> Option<Start> {
    let settings = match variable(VARIABLE).map(Settings::read) {
        None => return None,
        Some(Ok(settings)) => settings,
        Some(Err(wrong)) => refuse(VARIABLE, wrong, ALLOWED),
    };
    // The statistics page's variable is among those that the program does not see.
    let slot = oracle::attach();
    // Resolved here, where what the look-up allocates is not part of the sequence.
    let _ = heaptoll_next::next();
    let hidden = settings.hidden;
    // SAFETY: nothing reads the cell before `main_begins`.
    let follows = settings.point.follows() && unsafe { open(&settings, slot, oracle()) };
    if !follows {
        let at_main = if settings.point == Point::Keep { State::Keep } else { State::Forward };
        return Some(Start { hidden, at_main });
    }
    if at_fork::<Forks>() != 0 {
        stop_because("the C library has no memory for a handler of forks");
    }
    if settings.check == Check::Pages {
        follow::report_touches();
    }
    Some(Start { hidden, at_main: State::Follow })
}

/// There is no sequence: all calls are forwarded from here on.
pub fn nothing_to_follow() {
    set_state(State::Forward);
}

/// The program's `main` begins, and with it the sequence.
pub fn main_begins(state: State) {
    set_state(state);
}

/// Opens the recorded file and makes what follows it; false where the file is of another program: one that the recorded
/// one started, or that started it.
///
/// # Safety
/// `oracle` may be written to, and nothing reads it.
unsafe fn open(settings: &Settings, slot: &'static Slot, oracle: *mut Oracle) -> bool {
    let Some(path) = Path::new(settings.file) else { stop_because("the path of its file is too long") };
    let Some(header) = file::header(path) else {
        stop_because("its file is not there, is cut, or is of another version of heaptoll; record it again")
    };
    let no_memory = || -> ! { stop_because("it has no memory for its tables, or its file cannot be read") };
    let (Some(sites), Some(objects), Some(text)) =
        (file::words(path, header.sites), file::words(path, header.objects), file::bytes(path, header.text))
    else {
        no_memory()
    };
    if !loaded::is_program(objects, text) {
        return false;
    }
    let (slots, schedule) = schedule(settings.point, path, &header);
    // SAFETY: 0 is an address, and null a pointer.
    let (addresses, blocks) =
        unsafe { (file::cells::<usize>(sites.len()), file::cells(slots.min(MOST_SLOTS.into()) as usize)) };
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
            reclaim: Reclaim::new(settings.point, path, schedule, blocks),
            pages,
            allocated: 0,
            slot,
            allocates_directly: settings.check == Check::Off
                && matches!(settings.point, Point::Free | Point::Never),
            frees_directly: settings.check == Check::Off && settings.point == Point::Free,
        });
    }
    true
}

/// By which words objects are freed, and how many slots these use. Other points have none.
fn schedule(point: Point, path: Path, header: &Header) -> (u64, Section) {
    match point {
        Point::LastUse => (header.slots, header.schedule),
        Point::Unreachable => match file::unreachable(path, header) {
            Some(unreachable) => (unreachable.slots, unreachable.schedule),
            None => stop_because(
                "its file has no points of unreachability; record it with `heaptoll lab oracle --graph`",
            ),
        },
        _ => (0, Section::default()),
    }
}

struct Forks;

/// A child has a sequence of its own, which was not recorded: it frees when it wants.
impl AtFork for Forks {
    fn before() {}

    fn in_parent() {}

    fn in_child() {
        if state() == State::Follow {
            // SAFETY: the state was `Follow`, and the child has one thread.
            let checked = unsafe { (*oracle()).pages.is_some() };
            set_state(if checked { State::Abandoned } else { State::Forward });
        }
    }
}
