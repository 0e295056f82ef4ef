//! Freed blocks of the guard layer: how they come to wait, what is wrong with a free, and what is found when they leave.

use core::ffi::c_void;
use core::fmt::Write;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heaptoll_layer_core::findings::Findings;
use heaptoll_layer_core::sweep::held;
use heaptoll_layer_core::sweep::side_tables::Tables;
use heaptoll_next::stderr_line::StderrLine;

use crate::shared::{REPORTER, SINCE, TABLES};

/// Freed blocks that wait; blocks that are not freed are in [`TABLES`].
pub static FREED: Tables = Tables::of_freed();
/// Bytes of those that waited after the last pass.
static KEPT: AtomicUsize = AtomicUsize::new(0);
pub static FINDINGS: Findings = Findings::new();

/// Takes in a block that the program frees; returns its bytes. What is no block of the program's is reported, and
/// nothing is done. The thread is inside.
pub fn take(block: *mut c_void) -> usize {
    let start = block as usize;
    let Some(bytes) = start.is_multiple_of(size_of::<usize>()).then(|| TABLES.remove(start)).flatten() else {
        report_wrong(start, "freed twice", "freed");
        return 0;
    };
    // SAFETY: the table had the block, so the manager gave it with `bytes`, and the program has freed it.
    unsafe { held::clear(start..start + bytes) };
    if FREED.insert(start, bytes).is_err() {
        // No memory to record that it waits: it stays for ever, as a block that is not freed.
        let _ = TABLES.insert(start, bytes);
        return 0;
    }
    bytes
}

/// Reports a call with an address that is no block of the program's: `again` is what it did if a freed block begins
/// there, which waits.
#[cold]
#[inline(never)]
pub fn report_wrong(address: usize, again: &str, otherwise: &str) {
    let mut line = StderrLine::new();
    // A line that is full is cut off, so the results are ignored.
    let _ = match FREED.bytes_of(address) {
        Some(bytes) => write!(line, "{again}: the {bytes}-byte block at {address:#x}, which waits already"),
        None => write!(line, "{otherwise} what is no block: {address:#x}"),
    };
    if !FINDINGS.aborts() {
        line.put(b"; the call is ignored");
    }
    FINDINGS.emit(line);
}

/// Reports the block if it was written since it was freed; returns whether it was.
pub fn check(start: usize, bytes: usize) -> bool {
    // SAFETY: a freed block, which the manager has not got back, is readable.
    let change = unsafe { held::changed(start..start + bytes) };
    if let Some(change) = &change {
        REPORTER.slot().written_after_free.fetch_add(1, Relaxed);
        FINDINGS.emit(change.line(start, bytes));
    }
    change.is_some()
}

/// A pass has found words that lead to freed blocks, of `kept` bytes.
pub fn passed(kept: usize) {
    report_waiting();
    KEPT.store(kept, Relaxed);
    let slot = REPORTER.slot();
    slot.held_bytes.store(kept as u64, Relaxed);
    slot.held_releases.fetch_add(1, Relaxed);
}

/// Reports how much waits, and the most that ever did.
fn report_waiting() {
    let waiting = KEPT.load(Relaxed).saturating_add(SINCE.load(Relaxed)) as u64;
    let slot = REPORTER.slot();
    slot.held_bytes.store(waiting, Relaxed);
    slot.held_high_bytes.fetch_max(waiting, Relaxed);
}

/// The process ends: what waits is checked. No pass is under way, nor will be.
pub fn at_end() {
    report_waiting();
    FREED.for_each(|start, bytes| {
        check(start, bytes);
    });
}
