//! The live layer under C and C++ programs whose demand is known, and under a real one compared with Valgrind's DHAT.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_stats_page::{SlotRecord, StatsPage};

fn layer() -> PathBuf {
    heaptoll_staged::file("layers/libheaptoll_live.so")
}

/// A folder with a compiler and a page.
struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new() -> Fixture {
        Fixture(tempfile::tempdir().expect("a folder"))
    }

    fn program(&self, compiler: &str, file: &str, source: &str) -> Command {
        let (code, out) = (self.0.path().join(file), self.0.path().join("program"));
        std::fs::write(&code, source).expect("writes the source");
        // Without -fno-builtin the compiler removes pairs of malloc and free.
        let output = Command::new(compiler)
            .args(["-O1", "-fno-builtin", "-w", "-o"])
            .arg(&out)
            .arg(&code)
            .arg("-lpthread")
            .output()
            .expect("the compiler runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Command::new(out)
    }

    /// Runs a command under the layer, with `below` preloaded after it, and returns what it wrote on the page.
    fn run(&self, command: &mut Command, below: Option<&Path>) -> Vec<SlotRecord> {
        let path = self.0.path().join("page");
        let _ = std::fs::remove_file(&path);
        let page = StatsPage::create(&path, 64).expect("a page");
        let preload: Vec<String> = std::iter::once(layer())
            .chain(below.map(Path::to_path_buf))
            .map(|path| path.display().to_string())
            .collect();
        let output = command
            .env("LD_PRELOAD", preload.join(":"))
            .env(heaptoll_stats_page::VARIABLE, page.path())
            .stdout(Stdio::null())
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        page.read().expect("the page").into_iter().filter(|slot| slot.writer == "live").collect()
    }

    fn run_c(&self, source: &str) -> Vec<SlotRecord> {
        self.run(&mut self.program("cc", "program.c", &format!("{HEAD}{source}")), None)
    }
}

const HEAD: &str = "#define _GNU_SOURCE\n#include <errno.h>\n#include <malloc.h>\n#include <pthread.h>\n\
    #include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/wait.h>\n#include <unistd.h>\n";

#[test]
fn every_way_to_allocate_counts_requested_bytes() {
    let slots = Fixture::new().run_c(
        "int main(void) {\n\
           void *a = malloc(1000), *b = calloc(10, 30), *c = aligned_alloc(64, 640), *d = memalign(4096, 7), *e;\n\
           if (posix_memalign(&e, 1024, 53)) return 1;\n\
           void *f = valloc(11), *g = realloc(NULL, 5), *h = reallocarray(NULL, 4, 21), *i = malloc(0);\n\
           /* 2100 bytes live */\n\
           free(a); free(b); free(c); free(d); free(e); free(f); free(g); free(h); free(i); free(NULL);\n\
           a = malloc(500);\n\
           _exit(0); }",
    );
    assert_eq!(slots.len(), 1);
    let slot = &slots[0];
    assert_eq!((slot.live_high_bytes, slot.live_bytes), (2100, 500));
    assert_eq!((slot.malloc_calls, slot.realloc_calls, slot.free_calls), (10, 0, 9));
    assert_eq!((slot.requested_bytes, slot.failed_calls), (2600, 0));
}

/// glibc's `reallocarray` comes back through `realloc`, which is the layer's: it was counted twice, and for some
/// time both blocks were live.
#[test]
fn reallocarray_is_one_call() {
    let slots = Fixture::new().run_c(
        "int main(void) { void *p = malloc(1000); p = reallocarray(p, 3, 1000); if (!p) return 1; _exit(0); }",
    );
    let slot = &slots[0];
    assert_eq!((slot.malloc_calls, slot.realloc_calls, slot.requested_bytes), (1, 1, 4000));
    assert_eq!((slot.live_high_bytes, slot.live_bytes), (3000, 3000));
}

#[test]
fn a_resized_block_is_one_block_and_a_refused_one_stays() {
    let slots = Fixture::new().run_c(
        "int main(void) {\n\
           char *p = malloc(1000000); if (!p) return 1;\n\
           p = realloc(p, 3000000); if (!p) return 2;\n\
           if (realloc(p, SIZE_MAX / 4)) return 3;\n\
           if (reallocarray(p, SIZE_MAX, 2) || errno != ENOMEM) return 4;\n\
           p[2999999] = 1;\n\
           p = realloc(p, 10); p = realloc(p, 0);\n\
           if (malloc(SIZE_MAX / 4) || calloc(SIZE_MAX, 2)) return 5;\n\
           void *q; if (posix_memalign(&q, 3, 8) != EINVAL) return 6;\n\
           _exit(0); }",
    );
    let slot = &slots[0];
    assert_eq!((slot.live_high_bytes, slot.live_bytes), (3_000_000, 0));
    assert_eq!((slot.malloc_calls, slot.realloc_calls, slot.failed_calls), (4, 5, 5));
}

/// Threads pass blocks to one another, so that one's address is soon another's.
#[test]
fn many_threads_lose_and_invent_nothing() {
    let slots = Fixture::new().run_c(
        "static void *slots[64]; static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
         static void *work(void *seed) {\n\
           unsigned x = (unsigned)(uintptr_t)seed;\n\
           for (int i = 0; i < 100000; i++) {\n\
             x = x * 1103515245u + 12345u;\n\
             void *mine = malloc(1 + (x >> 16) % 100);\n\
             if (x & 4096) mine = realloc(mine, 1 + (x >> 20) % 300);\n\
             pthread_mutex_lock(&lock);\n\
             void *other = slots[(x >> 8) % 64]; slots[(x >> 8) % 64] = mine;\n\
             pthread_mutex_unlock(&lock);\n\
             free(other);\n\
           }\n\
           return NULL; }\n\
         int main(void) {\n\
           pthread_t threads[4];\n\
           for (uintptr_t i = 0; i < 4; i++) if (pthread_create(&threads[i], NULL, work, (void *)(i + 1))) return 1;\n\
           for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);\n\
           for (int i = 0; i < 64; i++) { free(slots[i]); slots[i] = NULL; }\n\
           for (int i = 0; i < 64; i++) slots[i] = malloc(100000);\n\
           _exit(0); }",
    );
    let slot = &slots[0];
    // What is left besides are the C library's own thread structures.
    assert!((6_400_000..6_402_000).contains(&slot.live_bytes), "{}", slot.live_bytes);
    assert_eq!(slot.live_high_bytes, slot.live_bytes);
    assert!((400_064..400_080).contains(&slot.malloc_calls), "{}", slot.malloc_calls);
}

#[test]
fn a_child_begins_with_what_it_inherited() {
    let slots = Fixture::new().run_c(
        "static void *hammer(void *unused) { for (;;) free(malloc(64)); }\n\
         int main(void) {\n\
           char *big = malloc(1000000), *peak = malloc(4000000); free(peak);\n\
           pthread_t thread; if (pthread_create(&thread, NULL, hammer, NULL)) return 1;\n\
           for (int i = 0; i < 50; i++) {\n\
             pid_t child = fork();\n\
             if (child == 0) { free(big); void *own = malloc(300000); free(own); _exit(0); }\n\
             int status; if (waitpid(child, &status, 0) != child || status) return 2;\n\
           }\n\
           _exit(0); }",
    );
    assert_eq!(slots.len(), 51);
    let parent =
        slots.iter().find(|slot| slots.iter().any(|child| child.parent_pid == slot.pid)).expect("a parent");
    assert!((5_000_000..5_002_000).contains(&parent.live_high_bytes), "{}", parent.live_high_bytes);
    for child in slots.iter().filter(|slot| slot.pid != parent.pid) {
        // Its parent's peak of five million is not its own, nor are blocks that it frees lost on the parent.
        assert!((1_000_000..1_002_000).contains(&child.live_high_bytes), "{}", child.live_high_bytes);
        assert!(child.live_bytes < 2000, "{}", child.live_bytes);
        assert_eq!((child.malloc_calls, child.free_calls), (1, 2));
    }
}

#[test]
fn operators_of_cxx_count() {
    let fixture = Fixture::new();
    let mut program = fixture.program(
        "c++",
        "program.cc",
        "#include <new>\n#include <unistd.h>\nstruct alignas(256) Wide { char c[512]; };\n\
         int main() {\n\
           volatile unsigned long huge = ~0ul / 4; char *volatile a = new char[1000000]; Wide *w = new Wide[100]; int *n = new (std::nothrow) int;\n\
           delete n; delete[] w; delete[] a;\n\
           try { a = new char[huge]; _exit(1); } catch (std::bad_alloc &) { }\n\
           a = new char[10];\n\
           _exit(0); }",
    );
    let slots = fixture.run(&mut program, None);
    // The C++ runtime keeps a reserve for exceptions, and throwing takes a little.
    let slot = &slots[0];
    let reserve = 80_000;
    assert!((1_051_204..1_051_204 + reserve).contains(&slot.live_high_bytes), "{}", slot.live_high_bytes);
    assert!(slot.live_bytes < reserve, "{}", slot.live_bytes);
    // The call that failed went on to the runtime's operators: `new[]`, from there `new`, from there `malloc`.
    assert_eq!((slot.new_calls, slot.delete_calls, slot.failed_calls), (6, 3, 3));
}

/// Demand is the program's own, whatever is below.
#[test]
fn another_manager_below_changes_nothing() {
    let fixture = Fixture::new();
    let places = heaptoll_experiment::places::Places::find().expect("an installation: run `make build`");
    let rpmalloc = places.managers().join("rpmalloc.so");
    // It does not read its environment, which is longer by the manager's path.
    let run = |below| {
        let mut cfrac = Command::new(places.programs().join("cfrac"));
        let slots = fixture.run(cfrac.arg("543446120020547144337451684613"), below);
        let slot = &slots[0];
        assert!(slot.malloc_calls > 2_500_000 && slot.live_high_bytes > 50_000, "{slot:?}");
        (slot.live_high_bytes, slot.requested_bytes, slot.malloc_calls, slot.realloc_calls, slot.free_calls)
    };
    assert_eq!(run(None), run(Some(&rpmalloc)));
}

/// Valgrind's heap profiler counts requested bytes too, in its own way.
#[test]
fn dhat_sees_the_same_maximum() {
    let fixture = Fixture::new();
    let script = "BEGIN { for (i = 0; i < 20000; i++) a[i] = \"x\" i; delete a; print length(a) }";
    let slots = fixture.run(Command::new("gawk").arg(script).env("LC_ALL", "C"), None);
    let dhat = Command::new("valgrind")
        .args(["--tool=dhat", "--dhat-out-file=/dev/null", "gawk", script])
        .env("LC_ALL", "C")
        .output()
        .expect("valgrind is installed (scripts/setup bench)");
    let report = String::from_utf8_lossy(&dhat.stderr).into_owned();
    let line = report.lines().find(|line| line.contains("At t-gmax:")).unwrap_or_else(|| panic!("{report}"));
    let bytes =
        line.split("t-gmax:").nth(1).and_then(|rest| rest.trim().split(' ').next()).expect("a figure");
    let theirs: f64 = bytes.replace(',', "").parse().expect("a number");
    let ours = slots[0].live_high_bytes as f64;
    assert!((ours / theirs - 1.0).abs() < 0.001, "{ours} against {theirs}");
}
