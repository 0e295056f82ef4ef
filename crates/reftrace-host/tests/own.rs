//! Allocators under names of their own, under the real tracer.

use std::path::{Path, PathBuf};
use std::process::Command;

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::places::Places;
use heaptoll_launcher::Ended;
use heaptoll_reftrace::{Owner, Reference, Routine, Sink, event::Event};
use heaptoll_reftrace_host::allocator_symbols::Table;
use heaptoll_reftrace_host::{FamilyCalls, Options, Traced, Tracer, trace};

/// A call that has returned.
#[derive(Debug)]
struct Call {
    routine: Routine,
    family: u8,
    arguments: [u64; 3],
    block: u64,
    served_by: Option<u8>,
}

#[derive(Debug, Default)]
struct Calls(Vec<Call>);

impl Sink for Calls {
    fn references(&mut self, _: Owner, _: &[Reference]) {}

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Leave { routine, family, arguments, result: block, served_by, .. } = *event {
            self.0.push(Call { routine, family, arguments, block, served_by });
        }
    }
}

fn compiled(folder: &Path, source: &str, flags: &[&str]) -> PathBuf {
    let (file, binary) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&file, format!("#include <stdlib.h>\n#include <stdint.h>\n{source}")).expect("writes");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-fno-builtin", "-w", "-o"]).args([&binary, &file]).args(flags);
    assert!(compiler.status().expect("there is a compiler").success());
    binary
}

fn traced(binary: &Path, symbols: &str) -> Traced<Calls> {
    let places = Places::at(&heaptoll_testing::staged::home());
    let tracer = Tracer::find(&places).expect("the tracer is staged: run `make build`");
    let invocation = Invocation { command: vec![binary.as_os_str().to_owned()], ..Invocation::default() };
    let options = Options { symbols: symbols.into(), ..Options::default() };
    let traced = trace(&tracer, &places.launcher(), &invocation, &options, &Interrupt::default(), |_| {
        Calls::default()
    })
    .expect("it is traced");
    assert_eq!(traced.finished.ended, Ended::Exit(0), "{:?}", traced.warnings);
    traced
}

fn ours() -> Table {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("allocator-symbols.toml");
    Table::read(&file).expect("the tool's table")
}

/// Never inlined, whatever the compiler knows of it.
const OWN: &str = r#"
#define OWN __attribute__((noipa))
static char arena[1 << 20] __attribute__((aligned(4096)));
static size_t used;
static void *take(size_t n) { void *p = arena + used; used += (n + 15) & ~15; return p; }
"#;

/// Whatever its alignment, count or heap, a call has the arguments that the routine of C would have.
#[test]
fn arguments_are_recorded_in_the_order_of_c() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = format!(
        "{OWN}
        OWN static void *mi_malloc_aligned(size_t n, size_t a) {{ return take(n); }}
        OWN static void *mi_heap_calloc_aligned(void *h, size_t c, size_t n, size_t a) {{ return take(c * n); }}
        OWN void *mi_zalloc(size_t n) {{ return take(n); }}
        OWN void *sn_rust_realloc(void *p, size_t a, size_t old, size_t n) {{ return take(n); }}
        OWN int mi_posix_memalign(void **p, size_t a, size_t n) {{ *p = take(n); return 0; }}
        OWN void *_rjem_mallocx(size_t n, int flags) {{ return take(n); }}
        OWN void *sn_rust_alloc(size_t a, size_t n) {{ return take(n); }}
        OWN void *mi_heap_malloc(void *h, size_t n) {{ return take(n); }}
        OWN void _rjem_sdallocx(void *p, size_t n, int flags) {{}}
        int main(void) {{
            void *p = mi_malloc_aligned(40, 32), *q = mi_heap_calloc_aligned(&used, 7, 6, 64), *r = mi_zalloc(24), *s;
            p = sn_rust_realloc(p, 16, 40, 99);
            mi_posix_memalign(&s, 128, 33);
            _rjem_sdallocx(q, 42, 0);
            return 0;
        }}"
    );
    let traced = traced(&compiled(folder.path(), &source, &[]), &ours().lines(|_| true));
    let image = &traced.images[0];
    let found: Vec<_> = image.sink.0.iter().filter(|call| call.family != 0).collect();
    let [aligned, heap, zeroed, resized, placed, freed] = &found[..] else { panic!("{found:?}") };
    assert_eq!((aligned.routine, aligned.arguments[0], aligned.arguments[1]), (Routine::Memalign, 32, 40));
    assert_eq!((heap.routine, heap.arguments[0], heap.arguments[1]), (Routine::Memalign, 64, 42));
    assert_eq!((zeroed.routine, zeroed.arguments[0], zeroed.arguments[1]), (Routine::Calloc, 1, 24));
    assert_eq!(
        (resized.routine, resized.arguments[0], resized.arguments[1]),
        (Routine::Realloc, aligned.block, 99)
    );
    assert_eq!((placed.routine, placed.arguments[1], placed.arguments[2]), (Routine::PosixMemalign, 128, 33));
    assert!(placed.block > resized.block, "the block, not the status: {placed:?}");
    assert_eq!((freed.routine, freed.arguments[0]), (Routine::Free, heap.block));
    let names: Vec<_> = found.iter().filter_map(|call| ours().name(call.family).map(str::to_owned)).collect();
    assert_eq!(names, ["mimalloc", "mimalloc", "mimalloc", "snmalloc", "mimalloc", "jemalloc"]);
    // The place of the resized block is what no routine was seen to free, and all blocks were seen to be made.
    assert!(image.families.values().all(|calls| calls.unknown == 0), "{:?}", image.families);
    assert!(image.inlined.is_empty());
}

/// Rust's functions forward to an allocator, which a table need not know.
#[test]
fn a_call_that_another_family_serves_is_one_call_that_forwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "__attribute__((noipa)) void *taken(size_t n) __asm__(\"_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc\");
        void *taken(size_t n) { return malloc(n); }
        __attribute__((noipa)) void given(void *p) __asm__(\"_ZN7__rustc14__rust_dealloc17h0123456789abcdefE\");
        void given(void *p) { free(p); }
        int main(void) { for (int i = 0; i < 50; i++) given(taken(i)); free(malloc(9)); return 0; }";
    let binary = compiled(folder.path(), source, &[]);
    let table = ours();
    let all = traced(&binary, &table.lines(|_| true));
    let families = &all.images[0].families;
    let rust = table.families().len() as u8;
    assert_eq!(
        families[&rust],
        FamilyCalls { allocations: 50, frees: 50, bytes: 1225, forwarded: 100, ..FamilyCalls::default() }
    );
    assert_eq!(families[&0].frees, 1);
    let served: Vec<_> =
        all.images[0].sink.0.iter().filter(|call| call.family == rust).map(|call| call.served_by).collect();
    assert!(served.len() == 100 && served.iter().all(|by| *by == Some(0)), "{served:?}");
    // Without them the calls are malloc's.
    let without = traced(&binary, &table.lines(|family| !family.forwards));
    assert_eq!(without.images[0].families[&0].frees, 51);
}

#[test]
fn code_that_only_routines_call_shows_that_one_was_inlined() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |main: &str| {
        let source = format!(
            "{OWN}
            OWN static void *_mi_malloc_generic(void *h, size_t n) {{ return take(n); }}
            OWN void *mi_malloc(size_t n) {{ return _mi_malloc_generic(arena, n); }}
            OWN void *part(size_t n) __asm__(\"mi_calloc.part.0\");
            void *part(size_t n) {{ return take(n); }}
            OWN void *same(size_t n) __asm__(\"mi_zalloc.lto_priv.0\");
            void *same(size_t n) {{ return take(n); }}
            int main(void) {{ {main} return 0; }}"
        );
        let traced = traced(&compiled(folder.path(), &source, &[]), &ours().lines(|_| true));
        let image = &traced.images[0];
        (
            image.inlined.keys().copied().collect::<Vec<_>>(),
            image.families.get(&1).map(|calls| calls.allocations),
        )
    };
    assert_eq!(
        of("mi_malloc(8); same(8);"),
        (vec![], Some(2)),
        "from a routine; and under a name made unique"
    );
    assert_eq!(of("mi_malloc(8); _mi_malloc_generic(arena, 8);"), (vec![1], Some(1)));
    assert_eq!(of("part(8);"), (vec![1], None), "a copy for some callers");
}

/// A program of 70 501 objects was told that it makes 60 501: mimalloc copies texts without a call of malloc.
#[test]
fn a_copy_by_an_allocators_own_strdup_is_a_block() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = format!(
        "{OWN}
        OWN void *malloc(size_t n) {{ return take(n); }}
        OWN void free(void *p) {{}}
        OWN char *strdup(const char *s) {{ size_t n = 0; while (s[n]) n++; char *p = take(n + 1);
            for (size_t i = 0; i <= n; i++) p[i] = s[i]; return p; }}
        OWN char *strndup(const char *s, size_t most) {{ return s ? take(most + 1) : 0; }}
        int main(void) {{ free(strdup(\"copied\")); free(strndup(\"copied\", 3)); strndup(0, 3); free(malloc(40)); return 0; }}"
    );
    let binary = compiled(folder.path(), &source, &[]);
    let traced = traced(&binary, "");
    let calls = &traced.images[0].sink.0;
    let made = calls
        .iter()
        .filter(|call| call.routine == Routine::Malloc)
        .map(|call| (call.arguments[0], call.block > 0));
    assert_eq!(made.collect::<Vec<_>>(), [(7, true), (4, true), (0, false), (40, true)]);
    assert_eq!(
        traced.images[0].families[&0],
        FamilyCalls { allocations: 4, frees: 3, bytes: 51, ..FamilyCalls::default() }
    );
}

/// `mi_free` may free a menu item.
#[test]
fn names_that_others_have_too_are_no_routines_without_a_sign_of_their_family() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "__attribute__((noipa)) void *mi_new(size_t n) { return malloc(n); }
        __attribute__((noipa)) void mi_free(void *p) { free(p); }
        int main(void) { for (int i = 0; i < 9; i++) mi_free(mi_new(8)); return 0; }";
    let traced = traced(&compiled(folder.path(), source, &[]), &ours().lines(|_| true));
    let families = &traced.images[0].families;
    assert!(!families.contains_key(&1) && families[&0].frees >= 9, "{families:?}");
}

/// Linkers make what is hidden local, which glibc's malloc is in a static program that is position independent.
#[test]
fn a_static_programs_malloc_may_be_local() {
    let folder = tempfile::tempdir().expect("a folder");
    let source =
        "int main(void) { for (int i = 1; i < 300; i++) free(realloc(malloc(i), 2 * i)); return 0; }";
    for flags in [["-static", "-no-pie"], ["-static-pie", "-fPIE"]] {
        let binary = compiled(folder.path(), source, &flags);
        let localize =
            ["--localize-symbol=malloc", "--localize-symbol=__libc_malloc", "--localize-symbol=__malloc"];
        let made = Command::new("objcopy").args(localize).arg(&binary).status().expect("there is objcopy");
        assert!(made.success());
        let traced = traced(&binary, "");
        let calls = traced.images[0].families[&0];
        assert!(
            calls.allocations >= 2 * 299 && calls.frees >= 299 && calls.unknown == 0,
            "{flags:?} {calls:?}"
        );
    }
}

/// Found when it was designed: the tracer reads the place of posix_memalign's block.
#[test]
fn a_table_that_is_wrong_does_not_hurt_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "__attribute__((noipa)) int odd(size_t n) { return 0; }
        int main(void) { for (int i = 0; i < 9; i++) odd(i + 1); odd(1UL << 62); return 0; }";
    let binary = compiled(folder.path(), source, &[]);
    let traced_by = |lines: &str| traced(&binary, lines);
    let traced = traced_by("1 7 0 1 2 odd\n");
    assert_eq!(traced.images[0].families[&1].allocations, 10);
    assert!(traced.images[0].sink.0.iter().all(|call| call.block == 0));
    let odd = traced_by("1 7 0 1\nno line\n256 1 0 - - odd\n1 99 0 - - odd\n1 1 4 - - odd\n1 1 0 - - \n");
    let warnings = odd.images[0].warnings.join("\n");
    assert!(warnings.contains("a line of the symbols is not understood"), "{warnings}");
    assert!(!odd.images[0].families.contains_key(&1));
}
