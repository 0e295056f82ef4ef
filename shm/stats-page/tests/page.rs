//! The page as C code sees it, and its contents after processes have ended.

use std::path::Path;
use std::process::Command;

use heaptoll_stats_page::{StatsPage, Writer, WriterKind};

/// Every member of the Rust side's slot, to be compared with the C header.
const MEMBERS: &str = "state kind pid parent_pid claimed_ns reserved_0 writer exe mapped_bytes mapped_high_bytes \
    live_bytes live_high_bytes malloc_calls realloc_calls free_calls new_calls delete_calls failed_calls \
    requested_bytes collections pause_total_ns pause_max_ns collected_bytes searches search_steps search_longest used_bytes used_high_bytes held_bytes held_high_bytes held_releases written_after_free refused_calls collector_cpu_ns unread_places reserved_1";

fn include() -> String {
    format!("-I{}/../../include", env!("CARGO_MANIFEST_DIR"))
}

fn compile(directory: &Path, compiler: &str, standard: &str, file: &str, source: &str) -> std::path::PathBuf {
    let code = directory.join(file);
    std::fs::write(&code, source).expect("written");
    let out = directory.join(format!("{file}.out"));
    let output = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", &include(), "-o"])
        .args([&out, &code])
        .output()
        .expect("the compiler runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    out
}

#[test]
fn c_and_rust_agree_on_every_offset() {
    use core::mem::offset_of;
    use heaptoll_stats_page::{Header, Slot};
    let directory = tempfile::tempdir().expect("a directory");
    let prints: String = MEMBERS
        .split_whitespace()
        .map(|m| format!("printf(\"%zu \", offsetof(struct heaptoll_stats_slot, {m}));\n"))
        .collect();
    let source = format!(
        "#include <stdio.h>\n#include \"heaptoll.h\"\nint main(void) {{ {prints}\n\
         printf(\"%zu\", offsetof(struct heaptoll_stats_header, claimed)); return 0; }}\n"
    );
    macro_rules! offsets {
        ($($member:ident)*) => { vec![$(offset_of!(Slot, $member)),*] };
    }
    let mut expected = offsets!(state kind pid parent_pid claimed_ns reserved_0 writer exe mapped_bytes
        mapped_high_bytes live_bytes live_high_bytes malloc_calls realloc_calls free_calls new_calls delete_calls
        failed_calls requested_bytes collections pause_total_ns pause_max_ns collected_bytes searches search_steps search_longest used_bytes used_high_bytes held_bytes held_high_bytes held_releases written_after_free refused_calls collector_cpu_ns unread_places reserved_1);
    expected.push(offset_of!(Header, claimed));
    for (compiler, standard, file) in [("cc", "-std=c11", "a.c"), ("c++", "-std=c++11", "b.cc")] {
        let program = compile(directory.path(), compiler, standard, file, &source);
        let output = Command::new(program).output().expect("it runs");
        let seen: Vec<usize> = String::from_utf8_lossy(&output.stdout)
            .split_whitespace()
            .map(|w| w.parse().expect("a number"))
            .collect();
        assert_eq!(seen, expected, "{compiler}");
    }
}

/// A manager in C that follows the header's text literally.
const C_WRITER: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "heaptoll.h"
int main(void) {
    const char *path = getenv(HEAPTOLL_STATS_VARIABLE);
    struct stat status;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) return 1;
    char *map = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    struct heaptoll_stats_header *header = (void *)map;
    if (header->magic != HEAPTOLL_STATS_MAGIC || header->version != HEAPTOLL_STATS_VERSION) return 2;
    if (header->header_bytes != HEAPTOLL_STATS_HEADER_BYTES || header->slot_bytes != HEAPTOLL_STATS_SLOT_BYTES) return 3;
    const uint32_t slots = header->slots;
    if (slots > ((size_t)status.st_size - HEAPTOLL_STATS_HEADER_BYTES) / HEAPTOLL_STATS_SLOT_BYTES) return 5;
    uint32_t number = __atomic_fetch_add(&header->claimed, 1, __ATOMIC_ACQ_REL);
    if (number >= slots) return 4;
    struct heaptoll_stats_slot *slot =
        (void *)(map + HEAPTOLL_STATS_HEADER_BYTES + (size_t)number * HEAPTOLL_STATS_SLOT_BYTES);
    madvise((void *)((size_t)slot & ~(size_t)4095), 4096, 23 /* MADV_POPULATE_WRITE */);
    slot->kind = HEAPTOLL_KIND_MANAGER;
    slot->pid = getpid();
    strcpy(slot->writer, "written in C");
    slot->mapped_high_bytes = 123456789;
    slot->collections = 7;
    slot->collected_bytes = 42;
    __atomic_store_n(&slot->state, HEAPTOLL_SLOT_IN_USE, __ATOMIC_RELEASE);
    _exit(0);
}
"#;

#[test]
fn a_c_writer_is_read_and_the_writers_without_a_slot_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "cc", "-std=gnu11", "w.c", C_WRITER);
    let page = StatsPage::create(&directory.path().join("page"), 2).expect("a page");
    assert!(StatsPage::create(page.path(), 2).is_err(), "an existing file is left alone");
    for round in 0..2 {
        let codes: Vec<_> = (0..3)
            .map(|_| {
                Command::new(&program).env("HEAPTOLL_STATS", page.path()).status().expect("it runs").code()
            })
            .collect();
        assert_eq!(codes, [Some(0), Some(0), Some(4)], "round {round}");
        let slots = page.read().expect("read");
        assert_eq!(slots.len(), 2);
        for slot in &slots {
            assert_eq!((slot.kind, slot.writer.as_str()), (WriterKind::Manager, "written in C"));
            assert_eq!(
                (slot.mapped_high_bytes, slot.collections, slot.collected_bytes),
                (123_456_789, 7, 42)
            );
        }
        assert_eq!(page.left_out().expect("read"), 1);
        page.clear().expect("cleared");
        assert!(page.read().expect("read").is_empty());
    }
    std::fs::write(page.path(), "overwritten by the program, long enough to hold a header").expect("written");
    assert!(page.read().is_err());
}

/// The writer finds its page through the environment, which is shared by the whole process: so there is one test of it,
/// and it runs in a child of the test program.
#[test]
fn the_rust_writer_counts_per_process() {
    static WRITER: Writer =
        Writer::new(WriterKind::Layer, "a name that is longer than the thirty-one bytes kept");
    use std::sync::atomic::Ordering::Relaxed;
    if std::env::var_os("HEAPTOLL_STATS").is_some() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        WRITER.slot().malloc_calls.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        assert!(WRITER.attached() && WRITER.owned_by_caller());
        // SAFETY: the child only counts, with atomics, and ends by a signal without unwinding or running handlers;
        // waitpid writes to `status`, a local variable.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                WRITER.slot().malloc_calls.fetch_add(5, Relaxed);
                let own = WRITER.owned_by_caller();
                libc::kill(libc::getpid(), if own { libc::SIGKILL } else { libc::SIGABRT });
            }
            let mut status = 0;
            libc::waitpid(child, &mut status, 0);
            assert_eq!(libc::WTERMSIG(status), libc::SIGKILL);
        }
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let page = StatsPage::create(&directory.path().join("page"), 64).expect("a page");
    let run = |path: &Path| {
        Command::new(std::env::current_exe().expect("own path"))
            .args(["--exact", "the_rust_writer_counts_per_process"])
            .env("HEAPTOLL_STATS", path)
            .output()
            .expect("it runs")
    };
    let output = run(page.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let slots = page.read().expect("read");
    let calls: Vec<u64> = slots.iter().map(|s| s.malloc_calls).collect();
    assert_eq!(calls, [8000, 5], "{slots:?}");
    assert_eq!(slots[0].writer, "a name that is longer than the ");
    assert_eq!(slots[1].parent_pid, slots[0].pid);
    assert!(slots[0].exe.contains("page") && slots[1].claimed_ns > slots[0].claimed_ns);
    // A file that is not a page: the assertion on `attached` fails in the child, and the file is unchanged.
    let foreign = directory.path().join("foreign");
    std::fs::write(&foreign, vec![7u8; 10_000]).expect("written");
    let output = run(&foreign);
    assert_eq!(output.status.code(), Some(101));
    assert_eq!(std::fs::read(&foreign).expect("read"), vec![7u8; 10_000]);
}
