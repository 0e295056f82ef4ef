//! Known deviations of managers from what the suite requires. An entry whose manager no longer deviates makes the suite
//! fail, so that the list stays true.

use heaptoll_experiment::manager::Manager;

/// One known deviation.
#[derive(Debug, Clone, Copy)]
pub struct Deviation {
    /// Names of the managers.
    pub managers: &'static [&'static str],
    /// Names of the cases.
    pub cases: &'static [&'static str],
    /// False where it depends on timing: then a run in which the case holds proves nothing.
    pub always: bool,
    /// True where the case hangs: it then gets little time.
    pub hangs: bool,
    /// What the manager does instead.
    pub reason: &'static str,
    /// How that is known.
    pub source: &'static str,
}

/// The cases in which a program forks while other threads are at work.
const FORKS_WITH_THREADS: [&str; 5] =
    ["fork_threaded", "fork_handlers", "fork_handlers_of_library", "fork_in_handler", "fork_streams"];

/// Why a guard serves no request for what the case has just freed.
const HELD_BY_STACK: &str =
    "a freed block stays as long as its address is in a register or on the stack, where the case has it";

/// All of them.
pub const DEVIATIONS: &[Deviation] = &[
    Deviation {
        managers: &["bump"],
        cases: &["reuse_small", "reuse_large", "reuse_when_full", "zero_realloc_leak", "census_freed"],
        always: true,
        hangs: false,
        reason: "its free does nothing: that is the algorithm",
        source: "Boehm, \"incr ptr / no free\"",
    },
    Deviation {
        managers: &["tithe-collect", "bw16", "bw26", "treadmill"],
        cases: &["reuse_when_full", "census_freed"],
        always: true,
        hangs: false,
        reason: "free does nothing, and the program still has the addresses of what it freed",
        source: "Zorn 1992, §2.2",
    },
    Deviation {
        managers: &["tithe-guard"],
        cases: &["reuse_when_full"],
        always: false,
        hangs: false,
        reason: HELD_BY_STACK,
        source: "docs/questions/guard.md",
    },
    Deviation {
        managers: &["tithe", "tithe-collect", "tithe-guard"],
        cases: &["fault_every_2", "fault_every_3", "fault_every_7"],
        always: false,
        hangs: false,
        reason: "where the system refuses memory they collect and try again, so that the program sees no failure",
        source: "docs/questions/tithe.md",
    },
    Deviation {
        managers: &["glibc", "snmalloc", "tcmalloc", "rpmalloc", "debian-gperftools"],
        cases: &["errno_posix_memalign"],
        always: true,
        hangs: false,
        reason: "posix_memalign without memory also sets errno to ENOMEM, which POSIX does not require",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["mimalloc3", "mimalloc2", "debian-mimalloc2"],
        cases: &["errno_overflow", "errno_huge", "errno_huge_aligned"],
        always: true,
        hangs: false,
        reason: "a refusal for size or overflow leaves errno alone, or sets EOVERFLOW",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["mimalloc2"],
        cases: &["errno_allocating"],
        always: true,
        hangs: false,
        reason: "a successful realloc of megabytes sets errno to EINVAL, from a system call that failed on the way",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["snmalloc"],
        cases: &["errno_allocating"],
        always: true,
        hangs: false,
        reason: "a successful calloc of megabytes sets errno to EINVAL, from a system call that failed on the way",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["debian-gperftools"],
        cases: &["errno_overflow"],
        always: true,
        hangs: false,
        reason: "calloc that detects an overflow leaves errno alone",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["jemalloc", "debian-jemalloc"],
        cases: &["errno_huge_aligned"],
        always: true,
        hangs: false,
        reason: "memalign and its kin that refuse leave errno alone",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["debian-jemalloc"],
        cases: &["errno_huge"],
        always: true,
        hangs: false,
        reason: "realloc that refuses leaves errno alone",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["debian-scudo"],
        cases: &["errno_huge_aligned"],
        always: true,
        hangs: false,
        reason: "memalign that refuses leaves errno alone",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["debian-scudo"],
        cases: &["out_of_address_space", "out_of_data", "reuse_when_full"],
        always: true,
        hangs: false,
        reason: "it reserves 180 GiB, and ends the program where it gets no memory",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["debian-scudo"],
        cases: &["cxx_bad_alloc", "cxx_new_handler"],
        always: true,
        hangs: false,
        reason: "operator new gives null, and calls no new-handler",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["debian-tbb"],
        cases: &["errno_huge_aligned"],
        always: true,
        hangs: false,
        reason: "pvalloc of SIZE_MAX sets EINVAL",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["debian-tbb"],
        cases: &["huge_realloc", "errno_huge"],
        always: true,
        hangs: true,
        reason: "realloc of a block to more than PTRDIFF_MAX never returns",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["jemalloc", "snmalloc", "tcmalloc", "debian-gperftools"],
        cases: &["huge_aligned"],
        always: true,
        hangs: false,
        reason: "pvalloc rounds sizes near SIZE_MAX up to 0 and gives a small block",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["rpmalloc"],
        cases: &["calloc_overflow", "reallocarray_overflow"],
        always: true,
        hangs: false,
        reason: "overflow is not detected, and a small block is returned (ENABLE_VALIDATE_ARGS is off by default)",
        source: "docs/questions/managers.md",
    },
    Deviation {
        managers: &["rpmalloc"],
        cases: &["huge_malloc", "huge_realloc", "errno_huge"],
        always: true,
        hangs: false,
        reason: "sizes near SIZE_MAX overflow inside and crash (ENABLE_VALIDATE_ARGS is off by default)",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["rpmalloc"],
        cases: &["huge_aligned", "errno_huge_aligned", "out_of_address_space", "out_of_data"],
        always: true,
        hangs: false,
        reason: "posix_memalign that fails writes a null pointer to its result",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["rpmalloc"],
        cases: &["posix_memalign_refuses"],
        always: true,
        hangs: false,
        reason: "posix_memalign takes an alignment of 0",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["rpmalloc"],
        cases: &["alignment_powers", "realloc_aligned", "cxx_operators"],
        always: true,
        hangs: false,
        reason: "alignments of 64 KiB and more are refused: a span is 64 KiB",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["debian-mimalloc2"],
        cases: &["alignment_powers"],
        always: true,
        hangs: false,
        reason: "aligned_alloc(256, 256) may give a block that is aligned to 128 only",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["debian-jemalloc", "debian-gperftools", "debian-tbb", "debian-scudo"],
        cases: &["binding"],
        always: true,
        hangs: false,
        reason: "reallocarray (of jemalloc pvalloc too) is not exported, and glibc answers; its reallocarray calls the manager's realloc",
        source: "docs/questions/managers.md: export all eleven",
    },
    Deviation {
        managers: &["debian-jemalloc", "jemalloc", "debian-gperftools", "debian-scudo"],
        cases: &["fork_streams"],
        always: false,
        hangs: true,
        reason: "the fork handlers lock the heap before fork takes the C library's list of streams: fork, fflush(NULL) and getline wait for each other for ever",
        source: "glibc bug 19431; seen by this suite",
    },
    Deviation {
        managers: &["debian-jemalloc"],
        cases: &["alignment_pages"],
        always: true,
        hangs: false,
        reason: "pvalloc is glibc's, with glibc's blocks: the manager's malloc_usable_size crashes on them",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["tcmalloc"],
        cases: &FORKS_WITH_THREADS,
        always: false,
        hangs: false,
        reason: "it has no fork handlers: a child forked while another thread holds one of its locks waits for ever",
        source: "no pthread_atfork in its sources; seen by this suite",
    },
    Deviation {
        managers: &["mimalloc3"],
        cases: &FORKS_WITH_THREADS,
        always: false,
        hangs: false,
        reason: "it has no fork handlers: a child forked while another thread allocates for the first time, by a thread that has not allocated yet, waits for ever for the lock of the list of heaps",
        source: "seen by this suite, in 3 of 149 runs of fork_streams; pthread_atfork is not among the symbols it imports",
    },
    Deviation {
        managers: &["snmalloc"],
        cases: &FORKS_WITH_THREADS,
        always: false,
        hangs: false,
        reason: "it has no fork handlers: a child forked while another thread allocates may wait for ever",
        source: "seen by this suite, once, in fork_threaded; pthread_atfork is not among the symbols it imports",
    },
    Deviation {
        managers: &["snmalloc"],
        cases: &["out_of_address_space", "out_of_data", "reuse_when_full"],
        always: true,
        hangs: false,
        reason: "it cannot start under 512 MiB and aborts (Failed to initialise snmalloc)",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["tcmalloc"],
        cases: &["out_of_address_space", "reuse_when_full"],
        always: true,
        hangs: false,
        reason: "it reserves address space in large pieces, and aborts where that is refused",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["snmalloc", "debian-jemalloc"],
        cases: &["zero_aligned"],
        always: true,
        hangs: false,
        reason: "an aligned block of no bytes is not aligned",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["snmalloc"],
        cases: &["cxx_operators"],
        always: true,
        hangs: false,
        reason: "an aligned operator new of no bytes gives a block that is not aligned",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["tcmalloc"],
        cases: &["cxx_operators"],
        always: true,
        hangs: false,
        reason: "aligned operator new of no bytes and sized delete of it: taken for a mismatch, aborts",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["mimalloc3", "mimalloc2", "debian-mimalloc2", "tcmalloc"],
        cases: &["cxx_bad_alloc", "cxx_new_handler"],
        always: true,
        hangs: false,
        reason: "ends the program where operator new cannot be served",
        source: "docs/questions/managers.md",
    },
    Deviation {
        managers: &["rpmalloc"],
        cases: &["cxx_bad_alloc", "cxx_new_handler"],
        always: true,
        hangs: false,
        reason: "operator new gives a null pointer where it should throw",
        source: "docs/questions/managers.md",
    },
    Deviation {
        managers: &["jemalloc", "snmalloc"],
        cases: &["cxx_new_handler"],
        always: true,
        hangs: false,
        reason: "its own C++ run-time does not see the program's handler",
        source: "docs/questions/managers.md",
    },
    Deviation {
        managers: &["debian-tbb"],
        cases: &FORKS_WITH_THREADS,
        always: false,
        hangs: false,
        reason: "a child forked while another thread allocates may hang in malloc or free",
        source: "seen by this suite, in 3 of some 30 runs of these cases",
    },
    Deviation {
        managers: &["bdw", "bdw-nofree"],
        cases: &["statistics"],
        always: true,
        hangs: false,
        reason: "libgc has none of glibc's statistics, and glibc reports its own heap",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["bdw", "bdw-nofree"],
        cases: &["control_header", "census_threaded"],
        always: true,
        hangs: false,
        reason: "there is no check: libgc offers none of its heap",
        source: "gc.h",
    },
    Deviation {
        managers: &["bdw", "bdw-nofree"],
        cases: &["census_freed", "census_classes"],
        always: true,
        hangs: false,
        reason: "libgc counts pages in use, not blocks: free blocks and garbage in them count as live, and there are no classes",
        source: "gc.h, GC_get_prof_stats",
    },
    Deviation {
        managers: &["bdw", "bdw-nofree"],
        cases: &["fault_every_1", "fault_every_2", "fault_every_3", "fault_every_7"],
        always: true,
        hangs: false,
        reason: "a peer has no seeded faults",
        source: "managers/bdw/bdw.c",
    },
    Deviation {
        managers: &["bdw"],
        cases: &["out_of_address_space", "out_of_data"],
        always: false,
        hangs: false,
        reason: "with the limit reached, GC_free of a large block crashes: libgc needs memory to record it",
        source: "seen by this suite",
    },
    Deviation {
        managers: &["bdw-nofree"],
        cases: &["reuse_when_full"],
        always: false,
        hangs: false,
        reason: "a free that is ignored reclaims nothing before the next collection, which may keep the block for a word that equals its address",
        source: "seen by this suite",
    },
];

/// A deviation caused by a layer.
#[derive(Debug, Clone, Copy)]
pub struct LayerDeviation {
    /// Which layers.
    pub layers: &'static [&'static str],
    /// Names of the cases.
    pub cases: &'static [&'static str],
    /// What differs.
    pub reason: &'static str,
    /// How that is known.
    pub source: &'static str,
}

/// Where layers are known to differ, in front of some managers or of all.
pub const LAYER_DEVIATIONS: &[LayerDeviation] = &[
    LayerDeviation {
        layers: &["sweep", "guard"],
        cases: &["census_classes"],
        reason: "its census has blocks and not the manager's size classes",
        source: "preload/layers/sweep/src/control.rs",
    },
    LayerDeviation {
        layers: &["sweep", "guard"],
        cases: &["statistics"],
        reason: "glibc's statistics are the manager's, which does not include the layer",
        source: "seen by this suite",
    },
    LayerDeviation {
        layers: &["sweep", "guard"],
        cases: &["event_listener"],
        reason: "it reports collections; the growth of the manager's heap it does not see",
        source: "seen by this suite",
    },
    LayerDeviation {
        layers: &["sweep", "guard"],
        cases: &["fault_every_1", "fault_every_2", "fault_every_3", "fault_every_7"],
        reason: "it has no seeded faults, and where a manager's request fails it collects and tries again",
        source: "seen by this suite",
    },
    LayerDeviation {
        layers: &["sweep", "guard"],
        cases: &["memalign_refuses"],
        reason: "an alignment that is no power of two is rounded up as glibc does, whatever the manager does",
        source: "seen by this suite",
    },
    LayerDeviation {
        layers: &["guard"],
        cases: &["reuse_when_full"],
        reason: HELD_BY_STACK,
        source: "preload/layers/sweep/src/guard.rs",
    },
    LayerDeviation {
        layers: &["guard"],
        cases: &["errno_allocating"],
        reason: "while freed blocks wait the manager maps more memory, and mimalloc 3 sets errno where it names that",
        source: "strace of the case",
    },
];

/// The deviation that covers a manager, or a stack with it, and a case. With layers a manager need not deviate as it
/// does without: they supply what it lacks, and call it in other ways than the program does.
pub fn known(manager: &Manager, case: &str) -> Option<Deviation> {
    let before: usize = manager.layers.iter().map(|layer| layer.word.len() + 1).sum();
    let name = manager.name.get(before..).unwrap_or(&manager.name);
    let own = DEVIATIONS.iter().find(|one| one.managers.contains(&name) && one.cases.contains(&case));
    if let Some(own) = own {
        return Some(Deviation { always: own.always && manager.layers.is_empty(), ..*own });
    }
    let of_layer = LAYER_DEVIATIONS.iter().find(|one| {
        one.cases.contains(&case)
            && manager.layers.iter().any(|layer| one.layers.contains(&layer.kind.name.as_str()))
    })?;
    Some(Deviation {
        managers: &[],
        cases: of_layer.cases,
        always: false,
        hangs: false,
        reason: of_layer.reason,
        source: of_layer.source,
    })
}

/// A list as a Markdown table; `subject` names its cases.
pub fn table(subject: &str, deviations: &[Deviation]) -> String {
    let mut text = format!("| manager | {subject} | what it does instead | source |\n|---|---|---|---|\n");
    for one in deviations {
        let sometimes = if one.always { "" } else { "sometimes: " };
        let row = [
            one.managers.join(", "),
            one.cases.join(", "),
            format!("{sometimes}{}", one.reason),
            one.source.into(),
        ];
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

/// The list of known deviations as a Markdown table.
pub fn markdown() -> String {
    table("cases", DEVIATIONS)
}

#[cfg(test)]
mod tests {
    use super::markdown;

    #[test]
    fn the_page_has_the_table_of_deviations() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/conformance.md");
        let text = std::fs::read_to_string(page).expect("the page of results");
        assert!(
            text.contains(&markdown()),
            "{page} has another table than heaptoll-conformance --deviations prints"
        );
    }
}
