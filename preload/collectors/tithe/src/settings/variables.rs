//! The table of the settings: what the parser knows, its messages show, and the manual has, in one place.

/// A setting: its name, what it allows, and what its row of the manual has.
pub struct Variable {
    /// Name in the environment.
    pub name: &'static str,
    /// What it allows, in messages and the manual.
    pub allowed: &'static str,
    /// The default, in Markdown. In backticks a value that can be set.
    #[cfg(test)]
    pub default: &'static str,
    /// What it does, in Markdown.
    #[cfg(test)]
    pub effect: &'static str,
}

/// A row of the table. Default and effect are for the manual only, and not in the library.
macro_rules! variable {
    ($name:literal, $allowed:literal, $default:literal, $effect:literal) => {
        Variable {
            name: $name,
            allowed: $allowed,
            #[cfg(test)]
            default: $default,
            #[cfg(test)]
            effect: $effect,
        }
    };
}

/// Every setting, in the order of the manual.
pub static VARIABLES: [Variable; 24] = [
    variable!(
        "TITHE_MODE",
        "hybrid, collect, explicit or guard",
        "`hybrid`",
        "`hybrid`: free reclaims immediately, collections take leaks. `collect`: free does nothing. `explicit`: \
         nothing is collected. `guard`: a freed block is held back until no word leads to it."
    ),
    variable!(
        "TITHE_POLICY",
        "proportional, fixed, zorn1992 or membalancer",
        "`proportional`",
        "When to collect; see below. Like the next three without effect in mode `explicit`."
    ),
    variable!(
        "TITHE_HEADROOM",
        "a percentage from 1 to 10000, without a sign",
        "`collect`: 48 %, up to 84 % where collections cost much; `hybrid`: 100 %; `guard`: 25 %",
        "Allocation before the next collection, in mode `guard` bytes that wait, as a share of what the last one read; \
         fixed if given. For `proportional` and `membalancer`."
    ),
    variable!(
        "TITHE_MIN_HEADROOM",
        "bytes from 64K to 64T (K, M, G and T are powers of 1024)",
        "`collect`: 256K, `hybrid`: 16M, `guard`: 1M",
        "Allocation before the first collection, and in addition to the percentage; for `membalancer` the least."
    ),
    variable!(
        "TITHE_MAX_HEAP",
        "bytes from 256K to 64T (K, M, G and T are powers of 1024)",
        "none",
        "Live blocks and headroom together stay below it. `fixed` needs it or TITHE_HEAP. It does not make malloc \
         fail."
    ),
    variable!(
        "TITHE_EVERY",
        "bytes from 1 to 64T (K, M, G and T are powers of 1024)",
        "none",
        "A collection each time this many bytes were handed out, in place of a policy; see below. Not in mode \
         `explicit`."
    ),
    variable!(
        "TITHE_RECLAIM",
        "a number of collections from 1 to 4294967296",
        "`1`",
        "K: each K-th collection reclaims, the rest only mark. Collections on request, memory pressure or the limit \
         always reclaim. Not in mode `explicit`."
    ),
    variable!(
        "TITHE_HEAP",
        "bytes from 16K to 64T (K, M, G and T are powers of 1024)",
        "none",
        "A hard limit of the heap: allocation beyond it fails. Without TITHE_POLICY and TITHE_EVERY, collections \
         come only when it is full. See below."
    ),
    variable!(
        "TITHE_SWEEP",
        "lazy or eager",
        "`lazy`",
        "`eager`: reclaims in the pause. `lazy`: sweeps a span when blocks of its size are needed. Not in mode \
         `explicit`."
    ),
    variable!(
        "TITHE_GENERATIONS",
        "on or off",
        "`collect`: `on`, but `off` with TITHE_PAUSE, TITHE_EVERY or a policy other than `proportional`; `hybrid`: `off`",
        "`on`: most collections are young; see below. Without Linux 6.7, and with TITHE_RECLAIM above 1 or \
         TITHE_HEAP, all are full."
    ),
    variable!(
        "TITHE_PAUSE",
        "milliseconds from 1 to 60000, with or without ms after them",
        "none",
        "Longer collections are incremental, in pauses of about this length; see below. Needs Linux 6.7. Not with \
         TITHE_EVERY, TITHE_RECLAIM, TITHE_HEAP, TITHE_SWEEP=eager or mode `explicit`. With TITHE_GENERATIONS=on \
         only full collections are incremental; 100ms is the default then."
    ),
    variable!(
        "TITHE_CHECK",
        "young",
        "none",
        "For tests: marks everything after each young or incremental collection, and ends the process by SIGABRT if \
         that missed a reachable block. Turns TITHE_GENERATIONS on, unless that or TITHE_PAUSE is set."
    ),
    variable!(
        "TITHE_MARKERS",
        "a number of threads from 1 to 64",
        "1 below four cores, else half of them, at most 4",
        "Threads that mark. Heaps below 16 MiB live use one."
    ),
    variable!(
        "TITHE_LOG",
        "a file that can be opened for appending, or - for standard error",
        "none",
        "Appends a line for each collection to the file; `-` is standard error. See below."
    ),
    variable!(
        "TITHE_WHY",
        "an address in hexadecimal that begins with 0x",
        "none",
        "Writes after each collection what keeps the block at this address alive."
    ),
    variable!(
        "TITHE_SIGNAL",
        "rtmax, rtmax-N (N up to 30), or a number from 1 to 64 but for 4, 7, 8, 9, 11, 19, 32 and 33 (faults, \
         signals that cannot be handled, those of the C library)",
        "the collector chooses",
        "The signal that stops threads. Choose one that the program does not use."
    ),
    variable!(
        "TITHE_PATIENCE",
        "milliseconds from 1 to 600000",
        "`2000`",
        "How long a thread may take to stop before the collection is abandoned and the heap grows."
    ),
    variable!(
        "TITHE_ABORT",
        "on or off",
        "`off`",
        "`on`: a wrong `free` or `realloc` ([tithe.md](../questions/tithe.md#wrong-calls)) ends the process by \
         SIGABRT. Under `heaptoll`: `-m tithe,abort=on`."
    ),
    variable!(
        "TITHE_WAITING",
        "bytes from 1M to 64T (K, M, G and T are powers of 1024)",
        "none",
        "Mode `guard`: freed blocks may wait up to this size, of large ones an eighth of theirs; what happens there is \
         TITHE_AT_BOUND."
    ),
    variable!(
        "TITHE_AT_BOUND",
        "collect, warn or release",
        "`collect`",
        "Mode `guard`, at TITHE_WAITING: `collect` collects more often, `warn` writes a warning once, `release` makes \
         the oldest blocks available and reports it."
    ),
    variable!(
        "TITHE_CLEAR",
        "on or off",
        "`on`",
        "Mode `guard`: `on` clears a block at its free, `off` leaves it as it is, and keeps what it leads to."
    ),
    variable!(
        "TITHE_FAULT",
        "on or off",
        "`off`",
        "Mode `guard`: `on` makes large blocks inaccessible at their free, up to 16384 at once. Needs TITHE_CLEAR=on."
    ),
    variable!(
        "TITHE_REPORT",
        "log or stderr",
        "`log`",
        "Mode `guard`: where a write to a freed block is reported; `stderr` also writes to standard error."
    ),
    variable!("TITHE_POISON", "0 or 1", "`0`", "For tests: `1` fills reclaimed blocks with the byte 0xdf."),
];
