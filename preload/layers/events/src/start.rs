//! The start: finds the managers, once the file is open.

use crate::attachment::{entry, file};
use crate::listen;

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

/// Runs once, before `main` and after the constructors of the objects that follow in the preload order: their managers
/// accept listeners by then.
extern "C" fn at_start() {
    if let Some(file) = file()
        && let Some(entry) = entry(file)
    {
        let (observed, unobserved) = listen::to_all();
        file.set_observed(entry - 1, observed, unobserved);
    }
}
