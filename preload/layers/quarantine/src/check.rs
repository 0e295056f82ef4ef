//! `check=on`: blocks are filled when they come in and checked when they leave, and at the end of the process. Blocks
//! that were written to are reported on standard error and counted; so is a block that is freed while it is held. An
//! address that is plainly no block is reported, and goes no further: the manager would read its own words before it.
//! `abort=on`: the first finding ends the process.

use core::ffi::c_void;
use core::fmt::Write;
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};

use heaptoll_layer_core::findings::Findings;
use heaptoll_layer_core::quarantine::checked::{Admission, Checked, Damage, Stays};
use heaptoll_next::family::{Family, Free, UsableSize};
use heaptoll_next::forward;
use heaptoll_next::memory;
use heaptoll_next::stderr_line::StderrLine;
use heaptoll_stacks::{CallStacks, LOWEST_ADDRESS, readable};

use crate::QUARANTINE;

static CHECKED: Checked = Checked::new();
static STACKS: CallStacks = CallStacks::new();
static ON: AtomicBool = AtomicBool::new(false);
static FINDINGS: Findings = Findings::new();
/// What the addresses of all blocks are multiples of.
static ALIGNMENT: AtomicUsize = AtomicUsize::new(WORD);
static USABLE_SIZE: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static FREE: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static SITES: AtomicPtr<Frames> = AtomicPtr::new(ptr::null_mut());

/// Every manager aligns to words, and most to two. Which it is shows in a few of the smallest blocks.
const WORD: usize = size_of::<usize>();
const SAMPLES: usize = 16;
/// Call stacks whose frames are kept, and frames of each.
const MOST_SITES: usize = 1 << 20;
const FRAMES: usize = 8;
type Frames = [usize; FRAMES];

/// Turns checking on, with the functions that the manager has.
pub fn prepare(family: &Family, usable_size: UsableSize, aborts: bool) {
    FREE.store(family.free as *mut (), Relaxed);
    USABLE_SIZE.store(usable_size as *mut (), Relaxed);
    ALIGNMENT.store(alignment(family.free), Relaxed);
    FINDINGS.configure(true, aborts);
    // Without memory for them, sites are unknown; only pages that are written to cost any.
    if let Some(sites) = memory::map(MOST_SITES * size_of::<Frames>())
        && STACKS.prepare(prepare as *const () as usize)
    {
        SITES.store(sites.cast().as_ptr(), Relaxed);
    }
    ON.store(true, Relaxed);
}

/// What the manager aligns its smallest blocks to.
fn alignment(free: Free) -> usize {
    let blocks: [*mut c_void; SAMPLES] = core::array::from_fn(|_| forward::malloc(WORD));
    let all = blocks.iter().fold(0, |all, &block| all | block as usize);
    for block in blocks {
        // SAFETY: `forward::malloc` returned the block, or null; no other code has it.
        unsafe { free(block) };
    }
    if all.is_multiple_of(2 * WORD) { 2 * WORD } else { WORD }
}

/// Why no block can begin at an address, where that can be seen without knowing the manager's blocks.
fn misplaced(address: usize) -> Option<&'static str> {
    if !address.is_multiple_of(ALIGNMENT.load(Relaxed)) {
        Some("it is not aligned as blocks are")
    } else if !readable(address) {
        Some("no memory is there")
    } else if STACKS.is_on_stack(address) {
        Some("it lies on the thread's stack")
    } else {
        None
    }
}

/// The manager's usable size, of addresses where a block may begin; 0 of others.
pub unsafe extern "C" fn usable_size(block: *mut c_void) -> usize {
    if misplaced(block as usize).is_some() {
        return 0;
    }
    // SAFETY: USABLE_SIZE is of this type; the block is the manager's, as its callers guarantee.
    unsafe { transmute::<*mut (), UsableSize>(USABLE_SIZE.load(Relaxed))(block) }
}

/// Whether blocks are checked.
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// The slot in which a call stack's frames are kept.
fn frames(site: u32) -> Option<*mut Frames> {
    let sites = SITES.load(Relaxed);
    let known = !sites.is_null() && (1..MOST_SITES).contains(&(site as usize));
    known.then(|| sites.wrapping_add(site as usize))
}

/// The number of the current call stack.
fn site() -> u32 {
    STACKS.site(|site, addresses| {
        if let Some(slot) = frames(site) {
            let mut kept = [0; FRAMES];
            for (kept, &address) in kept.iter_mut().zip(addresses) {
                *kept = address;
            }
            // SAFETY: a slot of the mapping; one thread defines a site, before any other receives its number.
            unsafe { slot.write(kept) };
        }
    })
}

/// A block comes in.
pub fn enters(block: *mut c_void, bytes: usize) -> bool {
    let site = site();
    if let Some(reason) = misplaced(block as usize) {
        let mut line = StderrLine::new();
        let _ = write!(line, "freed what is no block: {block:p}: {reason}; freed");
        freed_at(&mut line, site);
        FINDINGS.emit(line);
        return false;
    }
    // SAFETY: the program has given the block back and does not use it any more.
    match unsafe { CHECKED.enters(block, bytes, site) } {
        Admission::New | Admission::Unknown => true,
        Admission::Again(held) => {
            let mut line = StderrLine::new();
            let _ = write!(
                line,
                "freed twice: the {}-byte block at {:#x}, which the quarantine holds already; first freed",
                held.bytes, held.block
            );
            freed_at(&mut line, held.site);
            line.put(b", then");
            freed_at(&mut line, site);
            FINDINGS.emit(line);
            false
        }
    }
}

/// A block leaves, for the manager; unless a fork keeps it from that.
pub unsafe extern "C" fn leaves(block: *mut c_void) {
    // SAFETY: the block is the manager's, and the quarantine has just released it; FREE is of this type.
    unsafe {
        match CHECKED.leaves(block) {
            Ok(damage) => damage.iter().for_each(report_damage),
            Err(Stays) => return,
        }
        transmute::<*mut (), Free>(FREE.load(Relaxed))(block);
    }
}

/// Checks what is still held at the end.
pub fn at_end() {
    // SAFETY: all blocks leave by `leaves`.
    unsafe { CHECKED.scan(|damage| report_damage(&damage)) };
}

/// Takes the lock over a fork, so that no other thread is at work here.
pub fn before_fork() {
    if is_on() {
        CHECKED.before_fork();
    }
}

/// After it, on both sides.
pub fn after_fork() {
    if is_on() {
        CHECKED.after_fork();
    }
}

fn report_damage(damage: &Damage) {
    QUARANTINE.writer().slot().written_after_free.fetch_add(1, Relaxed);
    let Damage { held, change } = damage;
    let mut line = change.line(held.block, held.bytes);
    line.put(b"; freed");
    freed_at(&mut line, held.site);
    FINDINGS.emit(line);
}

/// ` at planted+0x11a3 (discard) < planted+0x1203 (main)`, from the innermost outwards.
fn freed_at(line: &mut StderrLine, site: u32) {
    let Some(slot) = frames(site) else { return line.put(b" at an unknown place") };
    // SAFETY: `site` wrote the slot before it returned the site's number.
    let frames = unsafe { slot.read() };
    let mut between: &[u8] = b" at ";
    // Small numbers record how the walk ended.
    for &address in frames.iter().take_while(|&&address| address >= LOWEST_ADDRESS) {
        line.put(between);
        line.code_address(address);
        between = b" < ";
    }
    if between == b" at " {
        line.put(b" at an unknown place");
    }
}
