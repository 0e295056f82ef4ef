//! Managers that serve, that cannot, and that only seem to.

use std::path::Path;

use crate::support::*;
use heaptoll_elf::family::{COPIES, FAMILY, SIZED_FREES};
use heaptoll_preflight::{Refusal, check_load, inspect_manager};

#[test]
fn a_library_that_exports_no_malloc_is_refused() {
    let fixture = Fixture::new();
    // Like a collector built with hidden visibility: it defines malloc, and no object can bind to it.
    let hidden = fixture.so("libhidden.so", BUMP, &["-fvisibility=hidden"]);
    assert!(matches!(inspect_manager(&hidden), Err(Refusal::NoMalloc { .. })));
    let refusal = check(&["true"], &[&hidden]).expect_err("refused");
    assert!(refusal.to_string().contains("would measure glibc"), "{refusal}");
}

#[test]
fn a_manager_without_free_is_refused() {
    let fixture = Fixture::new();
    let half = fixture.so("libhalf.so", "#include <stddef.h>\nvoid *malloc(size_t n) { return 0; }\n", &[]);
    assert!(matches!(inspect_manager(&half), Err(Refusal::HalfAFamily { missing, .. }) if missing == "free"));
}

#[test]
fn what_is_no_shared_object_is_refused() {
    let fixture = Fixture::new();
    let missing = fixture.path("libmissing.so");
    assert!(matches!(inspect_manager(&missing), Err(Refusal::ManagerUnreadable { .. })));
    assert!(matches!(inspect_manager(fixture.0.path()), Err(Refusal::ManagerUnreadable { .. })));
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let whole = std::fs::read(&bump).expect("read");
    for (name, bytes) in [
        ("text.so", &b"/* GNU ld script */ INPUT(libx.so.1)"[..]),
        ("empty.so", b""),
        ("archive.so", b"!<arch>\n"),
        ("header.so", &whole[..40]),
        ("half.so", &whole[..whole.len() / 2]),
        ("most.so", &whole[..0x1100.min(whole.len() - 1)]),
    ] {
        let path = fixture.path(name);
        std::fs::write(&path, bytes).expect("written");
        let refusal = inspect_manager(&path).expect_err("refused");
        assert!(matches!(refusal, Refusal::NotASharedObject { .. }), "{name}: {refusal}");
    }
    let program = fixture.c("program", BUSY, &[]);
    assert!(matches!(inspect_manager(&program), Err(Refusal::NotASharedObject { .. })));
    let program = fixture.c("program", BUSY, &["-no-pie"]);
    assert!(matches!(inspect_manager(&program), Err(Refusal::NotASharedObject { .. })));
}

#[test]
fn no_damaged_manager_makes_the_reader_panic() {
    let fixture = Fixture::new();
    let whole = std::fs::read(fixture.so("libbump.so", BUMP, &[])).expect("read");
    let path = fixture.path("damaged.so");
    for step in 0..400 {
        let mut bytes = whole.clone();
        // Header, program headers and the dynamic tables lie in the first pages.
        let at = step * 7 % bytes.len().min(4096);
        bytes[at] ^= 0xff;
        std::fs::write(&path, &bytes).expect("written");
        let _ = inspect_manager(&path);
        std::fs::write(&path, &whole[..whole.len() * step / 400]).expect("written");
        assert!(inspect_manager(&path).is_err() || step > 300, "cut at {step}/400");
    }
}

#[test]
fn paths_that_the_loader_would_split_are_refused() {
    let fixture = Fixture::new();
    for name in ["lib bump.so", "lib:bump.so"] {
        let bump = fixture.so("libbump.so", BUMP, &[]);
        let odd = fixture.path(name);
        std::fs::rename(&bump, &odd).expect("renamed");
        assert!(matches!(check(&["true"], &[&odd]), Err(Refusal::PathNotPreloadable { .. })), "{name}");
    }
}

#[test]
fn a_manager_that_crashes_exits_or_hangs_at_load_is_refused() {
    let fixture = Fixture::new();
    let constructor = |body: &str| {
        format!(
            "{BUMP}\n#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) void up() {{ {body} }}"
        )
    };
    let crash = fixture.so("libcrash.so", &constructor("write(2, \"no luck\\n\", 8); abort();"), &[]);
    let refusal = check_load(&crash).expect_err("refused");
    assert!(
        matches!(&refusal, Refusal::CrashesAtLoad { what, stderr, .. } if what == "killed by signal 6" && stderr == "no luck"),
        "{refusal}"
    );
    let hangs = fixture.so("libhangs.so", &constructor("for (;;) pause();"), &[]);
    assert!(matches!(check_load(&hangs), Err(Refusal::HangsAtLoad { seconds: 5, .. })));
    let leaves = fixture.so("libleaves.so", &constructor("_exit(9);"), &[]);
    assert!(
        matches!(check(&["true"], &[&leaves]), Err(Refusal::CrashesAtLoad { what, .. }) if what == "exit status 9")
    );
}

/// gcc makes of malloc and memset in calloc a call of calloc; the program that called it first was measured until its
/// time limit, ten minutes each time.
#[test]
fn each_function_of_the_family_is_called_once() {
    let fixture = Fixture::new();
    let with = |name: &str, from: &str, to: &str| {
        assert!(BUMP.contains(from), "{from}");
        fixture.so(name, &BUMP.replace(from, to), &[])
    };
    let failing = |manager: &Path| match check(&["true"], &[manager]) {
        Err(Refusal::FunctionFails { function, what, .. }) => (function, what),
        other => panic!("{other:?}"),
    };
    let calls_itself = "volatile char c = 1; void *p = calloc(a, b); return c ? p : 0;";
    let endless = with("endless.so", "return a && b > SIZE_MAX / a ? 0 : take(16, a * b);", calls_itself);
    assert_eq!(failing(&endless), ("calloc".into(), "killed by signal 11".into()));
    let empty = with("empty.so", "return take(a < 16 ? 16 : a, n);", "return 0;");
    assert_eq!(failing(&empty), ("memalign".into(), "it gives no block".into()));
    let dirty = with(
        "dirty.so",
        "return a && b > SIZE_MAX / a ? 0 : take(16, a * b);",
        "char *p = take(16, a * b); if (p && a * b) *p = 1; return p;",
    );
    assert_eq!(failing(&dirty), ("calloc".into(), "the block is not clear".into()));
}

/// Debian's mimalloc 2.0 was refused for it.
#[test]
fn a_manager_whose_aligned_blocks_are_not_aligned_is_measured_nevertheless() {
    let fixture = Fixture::new();
    let source = BUMP.replace("return take(a < 16 ? 16 : a, n);", "return take(16, n);");
    assert_ne!(source, BUMP);
    let crooked = fixture.so("crooked.so", &source, &[]);
    let busy = fixture.c("busy", BUSY, &[]);
    check(&[text(&busy), "1000"], &[&crooked]).expect("proved");
}

#[test]
fn the_loaders_own_refusals_are_seen_though_it_goes_on() {
    let fixture = Fixture::new();
    let needy = fixture.so(
        "libneedy.so",
        &format!("{BUMP}\nextern int nobody_has_this(void);\n__attribute__((constructor)) void up() {{ nobody_has_this(); }}"),
        &["-Wl,-z,now"],
    );
    let refusal = check_load(&needy).expect_err("refused");
    assert!(refusal.to_string().contains("nobody_has_this"), "{refusal}");
    let tls = fixture.so("libtls.so", &format!("{BUMP}\n__attribute__((tls_model(\"initial-exec\"))) __thread char big[1 << 20]; char *at() {{ return big; }}"), &[]);
    assert_eq!(check_load(&tls), Ok(()), "preloaded at start there is space for any static storage");
    let lib = fixture.so("libgone.so", "int gone(void) { return 1; }\n", &[]);
    let user = fixture.so(
        "libuser.so",
        &format!("{BUMP}\nextern int gone(void);\nint use() {{ return gone(); }}"),
        &[text(&lib), "-Wl,--no-as-needed"],
    );
    std::fs::remove_file(&lib).expect("removed");
    let refusal = check_load(&user).expect_err("refused");
    assert!(
        matches!(&refusal, Refusal::LoaderRefuses { advice, .. } if advice.contains("is missing")),
        "{refusal}"
    );
}

#[test]
fn a_function_that_the_manager_lacks_is_named_when_the_program_wants_it() {
    let fixture = Fixture::new();
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let facts = inspect_manager(&bump).expect("facts");
    assert!(facts.missing.iter().any(|m| m == "posix_memalign"));
    // The layer makes it up, so that the proof run itself is sound.
    let source = r#"#include <stdlib.h>
        #include <malloc.h>
        int main() { void *p = 0; if (posix_memalign(&p, 256, 100) || (size_t)p % 256) return 1; free(p);
            p = valloc(10); if ((size_t)p % 4096) return 2; free(p); p = aligned_alloc(64, 640); free(p);
            p = pvalloc(5000); if ((size_t)p % 4096) return 4; free(p);
            p = reallocarray(0, 10, 10); p = reallocarray(p, 1000, 10); if (!p) return 3; free(p);
            if (reallocarray(0, (size_t)1 << 40, (size_t)1 << 40)) return 5;
            if (posix_memalign(&p, 3, 8) != 22) return 6;
            return 0; }"#;
    let probe = fixture.c("probe", source, &[]);
    let proof = check(&[text(&probe)], &[&bump]).expect("a proof");
    assert_eq!(proof.outcome, "exit status 0");
    let warnings = proof.warnings.join("\n");
    assert!(
        warnings.contains("aligned_alloc, posix_memalign, pvalloc, valloc, which the manager lacks"),
        "{warnings}"
    );
}

const NULL: &str = "libheaptoll_null.so";

/// Before, blocks that C23's functions freed were "never freed" under a layer, and a manager's were given to glibc.
#[test]
fn every_object_of_ours_that_has_malloc_has_the_whole_family_of_every_c_library() {
    let folders =
        ["layers", "managers"].map(|folder| std::fs::read_dir(heaptoll_testing::staged::file(folder)));
    let files =
        folders.into_iter().flat_map(|folder| folder.expect("staged").map(|file| file.unwrap().path()));
    let mut seen = 0;
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "so")) {
        let exports = heaptoll_elf::read(&path).expect("an object").exports;
        if exports.iter().any(|name| name == "malloc") {
            let lacks = |name: &&str| !exports.iter().any(|export| export == name);
            let missing: Vec<&str> = FAMILY.into_iter().chain(SIZED_FREES).filter(lacks).collect();
            assert!(missing.is_empty(), "{} lacks {missing:?}", path.display());
            // The null layer serves replays, which make no copies.
            let forwards =
                path.starts_with(heaptoll_testing::staged::file("layers")) && !path.ends_with(NULL);
            let copies = COPIES.iter().filter(|name| !lacks(name)).count();
            assert_eq!(copies, if forwards { COPIES.len() } else { 0 }, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} objects");
}

/// Each function of the C library that gives a block for `free`.
const GIVERS: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
static void is_block(void *block) { if (!block) abort(); free(block); }
static char *formatted(const char *format, ...) {
    char *text; va_list list; va_start(list, format); vasprintf(&text, format, list); va_end(list); return text;
}
int main(int argc, char **argv) {
    is_block(malloc(9));
    if (argc > 1) return 0;
    void *block; char *text = 0; size_t length = 0; wchar_t *wide; struct dirent **names;
    is_block(calloc(3, 3)); is_block(realloc(malloc(9), 99)); is_block(reallocarray(0, 9, 9));
    is_block(memalign(64, 9)); is_block(aligned_alloc(64, 64)); is_block(valloc(9)); is_block(pvalloc(9));
    posix_memalign(&block, 64, 9); is_block(block);
    is_block(strdup("text")); is_block(strndup("text", 2)); is_block(wcsdup(L"text"));
    asprintf(&text, "%d", 7); is_block(text); is_block(formatted("%d", 7));
    FILE *file = fmemopen("one\ntwo\n", 8, "r");
    text = 0; getline(&text, &length, file); is_block(text);
    text = 0; length = 0; getdelim(&text, &length, 'w', file); is_block(text); fclose(file);
    file = open_memstream(&text, &length); fputs("text", file); fclose(file); is_block(text);
    file = open_wmemstream(&wide, &length); fputws(L"text", file); fclose(file); is_block(wide);
    is_block(realpath("/", 0)); is_block(canonicalize_file_name("/"));
    is_block(getcwd(0, 0)); is_block(get_current_dir_name()); is_block(tempnam("/tmp", "x"));
    file = fopen("/proc/self/stat", "r"); fscanf(file, "%ms", &text); fclose(file); is_block(text);
    for (int n = scandir("/proc/self/task", &names, 0, alphasort); n > 0;) free(names[--n]);
    is_block(names);
    return 0;
}
"#;

/// Under mimalloc 3, whose own `strdup` calls no `malloc`, 200 500 lost copies were none.
#[test]
fn every_function_that_gives_a_block_is_counted_under_every_manager() {
    let fixture = Fixture::new();
    let givers = fixture.c("givers", GIVERS, &[]);
    let own = format!(
        "{BUMP}
        char *strndup(const char *s, size_t most) {{
            size_t n = strnlen(s, most); char *p = take(16, n + 1); memcpy(p, s, n); p[n] = 0; return p; }}
        char *strdup(const char *s) {{ return strndup(s, SIZE_MAX - 1); }}"
    );
    // A collector's own calls are in both.
    let calls = |manager: &[&Path]| {
        let [proof, idle] = [&[text(&givers)][..], &[text(&givers), "idle"]]
            .map(|command| check(command, manager).expect("a proof"));
        assert_eq!(proof.outcome, "exit status 0", "{manager:?}");
        (proof.malloc_calls - idle.malloc_calls, proof.free_calls - idle.free_calls)
    };
    let under_glibc = calls(&[]);
    assert!(under_glibc.0 > 26, "{under_glibc:?}");
    assert_eq!(calls(&[&fixture.so("libown.so", &own, &[])]), under_glibc, "strdup of its own");
    for manager in std::fs::read_dir(heaptoll_testing::staged::file("managers")).expect("staged") {
        let manager = manager.expect("an entry").path();
        if manager.extension().is_some_and(|extension| extension == "so") {
            let calls = calls(&[&manager]);
            // bdw's own may be more.
            assert!(calls.0 >= under_glibc.0 && calls.1 >= under_glibc.1, "{} {calls:?}", manager.display());
        }
    }
}

/// A layer's `strdup` called the C library's, past a library of the program's that wraps it: its output changed.
#[test]
fn a_library_that_wraps_strdup_is_called_under_a_layer() {
    let fixture = Fixture::new();
    let wrapper = "#define _GNU_SOURCE
        #include <dlfcn.h>
        char *strdup(const char *s) { char *(*f)(const char *) = dlsym(RTLD_NEXT, \"strdup\"); char *p = f(s);
            if (p) p[0] = 'L'; return p; }
        char *strndup(const char *s, unsigned long n) { char *(*f)(const char *, unsigned long) =
            dlsym(RTLD_NEXT, \"strndup\"); char *p = f(s, n); if (p) p[0] = 'N'; return p; }";
    let wrapper = fixture.so("libwrap.so", wrapper, &[]);
    let program = "#include <string.h>
        int main(void) { return strdup(\"hello\")[0] != 'L' || strndup(\"hello\", 3)[0] != 'N'; }";
    let program = fixture.c("copies", program, &["-fno-builtin", "-Wl,--no-as-needed", text(&wrapper)]);
    let proof = check(&[text(&program)], &[]).expect("a proof");
    assert_eq!(proof.outcome, "exit status 0");
}

/// A function that a later C library adds fails this test, with its name.
#[test]
fn the_c_library_here_has_no_function_of_the_family_that_is_not_known() {
    // Those that take no block, or a block and no memory; and functions that free what is not malloc's.
    let others = [
        "malloc_info",
        "malloc_stats",
        "malloc_trim",
        "memalignment",
        "freeaddrinfo",
        "freeifaddrs",
        "freelocale",
    ];
    let known = |name: &str| FAMILY.into_iter().chain(SIZED_FREES).chain(others).any(|one| one == name);
    let library = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let library = library.split_whitespace().find(|word| word.ends_with("/libc.so.6")).expect("a C library");
    let of_the_family = |name: &str| {
        let begins =
            ["malloc", "calloc", "realloc", "free", "aligned_"].iter().any(|one| name.starts_with(one));
        begins || name.contains("memalign") || name.ends_with("valloc")
    };
    let exports = heaptoll_elf::read(Path::new(library)).expect("an object").exports;
    let unknown = exports.iter().filter(|name| !name.starts_with('_') && of_the_family(name) && !known(name));
    let unknown: Vec<&String> = unknown.collect();
    assert!(unknown.is_empty(), "{library} has {unknown:?}");
    assert!(exports.iter().any(|name| name == "malloc"));
}

#[test]
fn a_sized_free_that_the_manager_lacks_is_named() {
    let fixture = Fixture::new();
    let bump = fixture.so("libbump.so", BUMP, &[]);
    // Stands for the C library of a later version.
    fixture.so(
        "liblater.so",
        "#include <stdlib.h>\nvoid free_sized(void *p, size_t n) { (void)p, (void)n; }\n",
        &[],
    );
    let source = "#include <stdlib.h>\nvoid free_sized(void *, size_t);\n\
                  int main() { free_sized(malloc(10), 10); return 0; }";
    let folder = fixture.0.path().display();
    let later = [format!("-L{folder}"), "-llater".to_owned(), format!("-Wl,-rpath,{folder}")];
    let probe = fixture.c("probe", source, &[&later[0], &later[1], &later[2]]);
    let warnings = check(&[text(&probe)], &[&bump]).expect("a proof").warnings.join("\n");
    assert!(warnings.contains("free_sized, which the manager lacks"), "{warnings}");
}

const OPERATORS: &str = r#"
    #include <new>
    #include <cstdlib>
    #include <cstdio>
    struct alignas(128) Wide { char c[128]; };
    struct Small { long a[3]; };
    static int handled;
    static void handler() { if (++handled == 3) std::set_new_handler(nullptr); }
    int main() {
        for (int i = 0; i < 50000; i++) {
            delete new Small; delete[] new Small[3]; delete new Wide; delete[] new (std::nothrow) char[100];
        }
        volatile size_t huge = (size_t)1 << 60;
        int caught = 0;
        try { delete[] new char[huge]; } catch (std::bad_alloc &) { caught++; }
        try { ::operator delete(::operator new(huge, std::align_val_t(256)), std::align_val_t(256)); }
        catch (std::bad_alloc &) { caught++; }
        if (new (std::nothrow) char[huge]) return 1;
        std::set_new_handler(handler);
        try { delete[] new char[huge]; } catch (std::bad_alloc &) { caught++; }
        printf("%d %d\n", caught, handled);
        return caught == 3 && handled == 3 ? 0 : 2;
    }"#;

#[test]
fn a_cxx_program_is_counted_whole_in_front_of_jemalloc() {
    let fixture = Fixture::new();
    let program = fixture.cxx("operators", OPERATORS, &["-std=c++17"]);
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let mut managers = vec![None, Some(bump.as_path())];
    if Path::new(JEMALLOC).exists() {
        managers.push(Some(Path::new(JEMALLOC)));
    } else {
        eprintln!("libjemalloc2 is not installed: not tested with it");
    }
    for manager in managers {
        let preload: Vec<&Path> = manager.into_iter().collect();
        let proof = check(&[text(&program)], &preload).expect("a proof");
        assert_eq!(proof.outcome, "exit status 0", "{manager:?}");
        assert!((200_000..200_100).contains(&proof.malloc_calls), "{manager:?}: {}", proof.malloc_calls);
        assert!((200_000..200_100).contains(&proof.free_calls), "{manager:?}: {}", proof.free_calls);
        assert_eq!(proof.preload, preload, "{manager:?}");
    }
}

#[test]
fn debians_managers_serve() {
    let fixture = Fixture::new();
    let busy = fixture.c("busy", BUSY, &[]);
    for name in
        ["libmimalloc.so.2.0", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libtbbmalloc_proxy.so.2"]
    {
        let path = Path::new("/usr/lib/x86_64-linux-gnu").join(name);
        if !path.exists() {
            eprintln!("{name} is not installed: not tested");
            continue;
        }
        let proof = check(&[text(&busy), "20000"], &[&path]).expect("a proof");
        assert!((20_000..20_100).contains(&proof.malloc_calls), "{name}: {}", proof.malloc_calls);
        assert_eq!(proof.warnings, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_program_that_links_an_allocator_gets_a_glibc_baseline() {
    let fixture = Fixture::new();
    let bump = fixture.so("libbump.so", BUMP, &[]);
    let linked = fixture.c("linked", BUSY, &[text(&bump), "-Wl,--no-as-needed"]);
    let proof = check(&[text(&linked), "3000"], &[]).expect("a proof");
    assert_eq!(proof.preload.len(), 1, "{proof:#?}");
    assert!(proof.preload[0].ends_with("libc.so.6"));
    assert!(proof.sentence.contains("libc.so.6 itself is preloaded because"), "{}", proof.sentence);
    assert!(proof.sentence.contains("libbump.so"), "{}", proof.sentence);
    let own = |proof: &heaptoll_preflight::Proof| {
        proof.linked.as_deref().is_some_and(|own| heaptoll_preflight::same_file(own, &bump))
    };
    assert!(own(&proof), "{proof:#?}");
    let preloaded = check(&[text(&linked), "3000"], &[&bump]).expect("a proof");
    assert_eq!(preloaded.preload, std::slice::from_ref(&bump));
    // The allocator of most calls counts, be they a child's.
    let busy = fixture.c("busy", BUSY, &[]);
    for (calls, others, is_own) in [("3000", "10", true), ("10", "3000", false)] {
        let script = format!("{} {calls}; {} {others}; true", text(&linked), text(&busy));
        let proof = check(&["sh", "-c", &script], &[]).expect("a proof");
        assert_eq!(own(&proof), is_own, "{script}: {proof:#?}");
    }
}

#[test]
fn redis_gets_a_glibc_baseline() {
    let redis = Path::new("/usr/bin/redis-server");
    if !redis.exists() {
        eprintln!("redis-server is not installed: not tested");
        return;
    }
    let fixture = Fixture::new();
    let mut request = request(
        &[text(redis), "--port", "0", "--unixsocket", text(&fixture.path("socket")), "--save", ""],
        &[],
    );
    request.directory = Some(fixture.0.path().to_path_buf());
    request.limit = std::time::Duration::from_secs(3);
    let proof = heaptoll_preflight::preflight(&request).expect("a proof");
    let names: Vec<_> = proof.preload.iter().filter_map(|p| p.file_name()).collect();
    assert!(names.contains(&"libc.so.6".as_ref()), "{proof:#?}");
    assert!(proof.malloc_calls > 1000 && !proof.finished);
    let main = &proof.processes[0];
    assert!(main.malloc_bound_to.as_ref().is_some_and(|p| p.ends_with("libc.so.6")), "{main:#?}");
    assert!(!main.new_bound_to.as_ref().is_some_and(|p| p.ends_with("libjemalloc.so.2")), "{main:#?}");
}

#[test]
fn the_start_up_layer_runs_everything_but_the_program() {
    let fixture = Fixture::new();
    let source = r#"#include <stdio.h>
        #include <stdlib.h>
        __attribute__((constructor)) void up() { puts("up"); fflush(stdout); system("echo child"); }
        __attribute__((destructor)) void down() { puts("down"); fflush(stdout); }
        int main() { puts("main"); return 3; }"#;
    let program = fixture.c("program", source, &[]);
    let start = layers().join("libheaptoll_start.so");
    let output = std::process::Command::new(&program).env("LD_PRELOAD", &start).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "up\nchild\n");
    assert_eq!(output.status.code(), Some(113), "a status of its own shows that main was about to begin");
    let count = layers().join(COUNT_LAYER);
    let both = format!("{}:{}", count.display(), start.display());
    let output = std::process::Command::new(&program).env("LD_PRELOAD", both).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "up\nchild\n");
}
