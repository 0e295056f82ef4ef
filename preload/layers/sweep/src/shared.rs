//! What calls, collections, forks and the start share: the table of live blocks, the world, the reporter, the settings
//! that calls read, and how many bytes were allocated.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heaptoll_layer_core::sweep::side_tables::Tables;
use heaptoll_roots::World;
use heaptoll_runtime::StatsReporter;

use crate::LAYER;

/// Every live block: one that the manager has handed out and that was not freed.
pub static TABLES: Tables = Tables::new();
/// The threads of the process.
pub static WORLD: World = World::new();
/// Reports counters and events.
pub static REPORTER: StatsReporter = StatsReporter::layer(LAYER.name);
/// The program's frees are carried out.
pub static HONOUR: AtomicBool = AtomicBool::new(false);
/// The most pages that may hold blocks.
pub static LIMIT_PAGES: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Dead blocks are freed a few at a time, by later calls.
pub static LAZY: AtomicBool = AtomicBool::new(false);
/// Bytes allocated since the last collection, in the guard layer freed.
pub static SINCE: AtomicUsize = AtomicUsize::new(0);
/// How many may be before the next. 0 at first: the first call that counts any starts the layer.
pub static BUDGET: AtomicUsize = AtomicUsize::new(0);

static STARTED: AtomicBool = AtomicBool::new(false);

/// Whether collections are possible.
pub fn has_started() -> bool {
    STARTED.load(Ordering::Acquire)
}

/// Collections are possible from now on.
pub fn started() {
    STARTED.store(true, Ordering::Release);
}
