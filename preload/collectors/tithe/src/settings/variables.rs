//! The table of the settings: what the parser knows, its messages show, and the manual has, in one place.

/// A setting: its name, what it allows, and what its row of the manual has.
pub struct Variable {
    /// Name in the environment.
    pub name: &'static str,
    /// What it allows, as messages and the manual state it.
    pub allowed: &'static str,
    /// What holds without it, in Markdown. In backticks a value that can be set.
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
pub static VARIABLES: [Variable; 19] = [
    variable!(
        "TITHE_MODE",
        "hybrid, collect or explicit",
        "`hybrid`",
        "`hybrid`: free reclaims at once, collections take what the program leaked. `collect`: free does nothing, \
         collections take everything. `explicit`: free reclaims, nothing is ever collected."
    ),
    variable!(
        "TITHE_POLICY",
        "proportional, fixed, zorn1992 or membalancer",
        "`proportional`",
        "When to collect; see below. Without effect in mode `explicit`, as the next three."
    ),
    variable!(
        "TITHE_HEADROOM",
        "a percentage from 1 to 10000, without a sign",
        "`collect`: 48 %, up to 84 % where collections cost much; `hybrid`: 100 %",
        "How much may be allocated before the next collection, as a part of what the last one had to read. A value \
         given here is fixed. For `proportional` and `membalancer`."
    ),
    variable!(
        "TITHE_MIN_HEADROOM",
        "bytes from 64K to 64T (K, M, G and T are powers of 1024)",
        "`collect`: 256K, `hybrid`: 16M",
        "How much may be allocated before the first collection, and on top of the percentage before each further \
         one; for `membalancer`, at least."
    ),
    variable!(
        "TITHE_MAX_HEAP",
        "bytes from 256K to 64T (K, M, G and T are powers of 1024)",
        "none",
        "Live blocks and headroom together stay below it. `fixed` needs it or TITHE_HEAP; the other policies respect \
         it. It does not make malloc fail: see below, and TITHE_HEAP."
    ),
    variable!(
        "TITHE_EVERY",
        "bytes from 1 to 64T (K, M, G and T are powers of 1024)",
        "none",
        "A collection each time so many bytes were handed out, whatever became of them. It takes the place of a \
         policy; see below. Not in mode `explicit`."
    ),
    variable!(
        "TITHE_RECLAIM",
        "a number of collections from 1 to 4294967296",
        "`1`",
        "K: of the collections that were due, each K-th reclaims what it found dead. The others mark, and leave all \
         as it was. Those that the program requested, or that memory pressure or the limit caused, always reclaim. \
         Not in mode `explicit`."
    ),
    variable!(
        "TITHE_HEAP",
        "bytes from 16K to 64T (K, M, G and T are powers of 1024)",
        "none",
        "A hard limit of the heap: what would go beyond it fails. Without TITHE_POLICY and TITHE_EVERY, a collection \
         comes when the heap is full, and at no other time. See below."
    ),
    variable!(
        "TITHE_SWEEP",
        "lazy or eager",
        "`lazy`",
        "`eager`: what is dead is reclaimed before the threads are resumed, so that no work of the collector is left \
         between pauses. `lazy`: a span is swept when blocks of its size are needed. Not in mode `explicit`."
    ),
    variable!(
        "TITHE_GENERATIONS",
        "on or off",
        "`collect`: `on`, but `off` with TITHE_EVERY or a policy other than `proportional`; `hybrid`: `off`",
        "`on`: most collections are young. They keep the blocks that an earlier one has found live, and read of these only \
         what the program wrote since. Needs Linux 6.7 or later; without it, and with TITHE_RECLAIM above 1 or \
         TITHE_HEAP, all collections are full. See below."
    ),
    variable!(
        "TITHE_PAUSE",
        "milliseconds from 1 to 60000, with or without ms after them",
        "none",
        "Collections that would stop the program for longer are incremental: they mark while it runs, in pauses of about this \
         length. Needs Linux 6.7 or later; without it, collections are whole. Not with TITHE_EVERY, TITHE_RECLAIM, \
         TITHE_HEAP, TITHE_SWEEP=eager or TITHE_GENERATIONS=on, nor in mode `explicit`. See below."
    ),
    variable!(
        "TITHE_CHECK",
        "young",
        "none",
        "After each young or incremental collection everything is marked, and the process ends with a message by SIGABRT where the \
         collection would have freed a block that is reachable. Sets TITHE_GENERATIONS where neither that nor \
         TITHE_PAUSE is set. For tests."
    ),
    variable!(
        "TITHE_MARKERS",
        "a number of threads from 1 to 64",
        "1 below four cores, else half of them, at most 4",
        "Threads that mark. Heaps with less than 16 MiB live are marked by one in any case: more would cost time."
    ),
    variable!(
        "TITHE_LOG",
        "a file that can be opened for appending, or - for standard error",
        "none",
        "One line for each collection is appended to the file; `-` is standard error. See below."
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
        "The signal that stops the threads. Not 4, 7, 8, 9, 11, 19, 32, 33: faults, signals that cannot be handled, \
         those of the C library. Choose one that the program does not use."
    ),
    variable!(
        "TITHE_PATIENCE",
        "milliseconds from 1 to 600000",
        "`2000`",
        "How long a thread may take to stop. Then the collection is abandoned, and the heap grows."
    ),
    variable!(
        "TITHE_ABORT",
        "on or off",
        "`off`",
        "`on`: a wrong `free` or `realloc` ([tithe.md](../questions/tithe.md#wrong-calls)) ends the process with its \
         message by SIGABRT, as under glibc. Under `heaptoll` it is an option: `-m tithe,abort=on`."
    ),
    variable!(
        "TITHE_POISON",
        "0 or 1",
        "`0`",
        "`1`: reclaimed blocks are filled with the byte 0xdf. For tests."
    ),
];
