//! A layer that only writes a line to standard output when the program's end begins.

use heaptoll_next::ending::{Ending, prepare};

heaptoll_next::export_ending!();

fn witness(ending: Ending) {
    let line: &[u8] = match ending {
        Ending::Handlers => b"end\n",
        Ending::Immediate => b"immediate end\n",
    };
    // SAFETY: write reads `line` within its length.
    unsafe { libc::write(1, line.as_ptr().cast(), line.len()) };
}

extern "C" fn at_start() {
    prepare(witness, true);
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;
