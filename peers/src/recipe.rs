//! How each peer is compiled: the translation units, flags and link options with which its upstream builds its own
//! replacement library, and the small shims here that fill gaps in the malloc family.
//!
//! Flags are upstream's release flags, no more: a peer tuned further would not be the one that users install. All use
//! the initial-exec thread-local model, since every manager here is preloaded and never loaded late.

use std::path::PathBuf;

use heaptoll_callgrind::tools::Language;
use regex_lite::Regex;

use crate::error::{Error, IoContext};
use crate::peer::Peer;
use crate::source::Source;

/// Where the text of a translation unit is.
#[derive(Debug, Clone)]
pub enum Text {
    /// A file of the source crate, relative to the crate's folder.
    File(String),
    /// A shim from `shim/`: a file name and its text.
    Shim(&'static str, &'static str),
}

/// One thing to compile.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Its text.
    pub text: Text,
    /// Its language.
    pub language: Language,
    /// Its compile flags, but for include folders.
    pub flags: Vec<String>,
}

/// Everything needed to build one peer.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Translation units, the longest to compile first.
    pub units: Vec<Unit>,
    /// Include folders, relative to the source crate's folder.
    pub includes: Vec<&'static str>,
    /// Whether upstream's `configure` and `make` produce the objects (jemalloc).
    pub configure: Option<Configure>,
    /// Which driver links.
    pub linker: Language,
    /// Link options.
    pub link: Vec<&'static str>,
    /// Whether the exports are limited by `shim/export.map`.
    pub limit_exports: bool,
    /// Whether `calloc` detects that its product overflows, as C requires.
    pub checks_overflow: bool,
}

/// An upstream `configure` and `make` run.
#[derive(Debug, Clone)]
pub struct Configure {
    /// The folder to copy and build in, relative to the crate's.
    pub tree: &'static str,
    /// The `configure` script that goes into it, relative to the crate's folder.
    pub script: &'static str,
    /// Arguments of `configure`.
    pub arguments: Vec<String>,
    /// Arguments of `make`.
    pub make: Vec<&'static str>,
    /// A file to leave empty in the tree instead of generating it.
    pub empty: &'static str,
    /// The folder with the objects, and how their names end.
    pub objects: (&'static str, &'static str),
}

/// The linker script of the C++ peers.
pub const EXPORT_MAP: &str = include_str!("../shim/export.map");

const SHIM_FLAGS: [&str; 4] = ["-O2", "-fPIC", "-fvisibility=hidden", "-fno-builtin"];

/// The C++ run-time goes into the object, so that a C program need not load it (half a millisecond per process). The
/// unwinder may not: an exception thrown by one copy and caught with another aborts.
const STATIC_CXX: &str = "-static-libstdc++";

impl Recipe {
    /// The recipe of a peer.
    ///
    /// # Errors
    /// [`Error::Layout`] when the crate is laid out otherwise than known.
    pub fn of(peer: Peer, source: &Source) -> Result<Recipe, Error> {
        match peer {
            Peer::Mimalloc3 => Ok(mimalloc("c_src/mimalloc/v3/src/static.c", "c_src/mimalloc/v3/include")),
            Peer::Mimalloc2 => Ok(mimalloc("c_src/mimalloc/v2/src/static.c", "c_src/mimalloc/v2/include")),
            Peer::Snmalloc => Ok(snmalloc()),
            Peer::Rpmalloc => Ok(rpmalloc()),
            Peer::Jemalloc => Ok(jemalloc(source, &[])),
            Peer::Tcmalloc => tcmalloc(source),
            Peer::JemallocProf => Ok(jemalloc(source, &["--enable-prof"])),
        }
    }

    /// The flags in one line for the note: those of the first unit, or of `configure`, then the link options.
    pub fn flags(&self) -> String {
        let compile = match &self.configure {
            Some(configure) => format!("configure {}", configure.arguments.join(" ")),
            None => self.units.first().map(|unit| unit.flags.join(" ")).unwrap_or_default(),
        };
        format!("{compile} | -shared {}", self.link.join(" "))
    }
}

fn owned(flags: &[&str]) -> Vec<String> {
    flags.iter().map(ToString::to_string).collect()
}

/// C23's functions for an allocator that lacks them.
fn sized_frees() -> Unit {
    shim("sized_frees.c", include_str!("../../managers/common/sized_frees.c"))
}

fn shim(name: &'static str, text: &'static str) -> Unit {
    Unit { text: Text::Shim(name, text), language: Language::C, flags: owned(&SHIM_FLAGS) }
}

/// mimalloc's CMake release build of the shared library, from the single unit that upstream offers for overriding. A
/// macro `strdup`, as old C libraries have, keeps upstream from exporting its own: it would be faster than under other
/// managers, whose blocks the C library's `strdup` fills.
fn mimalloc(unit: &str, include: &'static str) -> Recipe {
    let flags = [
        "-std=gnu11",
        "-O3",
        "-DNDEBUG",
        "-DMI_MALLOC_OVERRIDE=1",
        "-DMI_SHARED_LIB",
        "-DMI_SHARED_LIB_EXPORT",
        "-DMI_BUILD_RELEASE",
        "-DMI_CMAKE_BUILD_TYPE=release",
        "-Dstrdup=strdup",
        "-Dstrndup=strndup",
        "-fPIC",
        "-fvisibility=hidden",
        "-ftls-model=initial-exec",
        "-fno-builtin-malloc",
        "-w",
    ];
    Recipe {
        units: vec![
            Unit { text: Text::File(unit.to_string()), language: Language::C, flags: owned(&flags) },
            sized_frees(),
        ],
        includes: vec![include],
        configure: None,
        linker: Language::C,
        link: vec!["-lpthread"],
        limit_exports: false,
        checks_overflow: true,
    }
}

/// snmalloc's CMake release build of `snmallocshim`, with `reallocarray` left in.
fn snmalloc() -> Recipe {
    let flags = [
        "-std=c++20",
        "-O3",
        "-DNDEBUG",
        "-fno-rtti",
        "-fomit-frame-pointer",
        "-ffunction-sections",
        "-ftls-model=initial-exec",
        "-fvisibility=hidden",
        "-fPIC",
        "-DSNMALLOC_USE_CXX11_THREAD_ATEXIT_DIRECT",
        "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1",
        "-DSNMALLOC_CHECK_LOADS=false",
        "-DSNMALLOC_PAGEID=false",
        "-DSNMALLOC_HAS_LINUX_FUTEX_H",
        "-DSNMALLOC_HAS_LINUX_RANDOM_H",
        "-DSNMALLOC_PLATFORM_HAS_GETENTROPY",
        "-DSNMALLOC_PTHREAD_ATFORK_WORKS",
        "-DSNMALLOC_EXPORT=__attribute__((visibility(\"default\")))",
        "-w",
    ];
    let mut flags = owned(&flags);
    if cfg!(target_arch = "x86_64") {
        flags.extend(owned(&["-mcx16", "-mprfchw"]));
    }
    let unit = |file: &str| Unit {
        text: Text::File(format!("upstream/src/snmalloc/override/{file}.cc")),
        language: Language::Cxx,
        flags: flags.clone(),
    };
    Recipe {
        units: vec![
            unit("new"),
            unit("malloc"),
            shim("snmalloc_operators.c", include_str!("../shim/snmalloc_operators.c")),
        ],
        includes: vec!["upstream/src"],
        configure: None,
        linker: Language::Cxx,
        link: vec![STATIC_CXX, "-latomic", "-lpthread"],
        limit_exports: true,
        checks_overflow: true,
    }
}

/// rpmalloc's release build of `rpmallocwrap`, without upstream's fast-math flags: the allocator computes nothing in
/// floating point, and linking with them would switch denormal numbers off in the program under measurement.
fn rpmalloc() -> Recipe {
    let flags = [
        "-std=c11",
        "-O3",
        "-funroll-loops",
        "-DNDEBUG",
        "-DBUILD_RELEASE=1",
        "-D_GNU_SOURCE=1",
        "-DENABLE_PRELOAD=1",
        "-DENABLE_OVERRIDE=1",
        "-fPIC",
        "-fvisibility=hidden",
        "-ftls-model=initial-exec",
        "-fno-builtin-malloc",
        "-w",
    ];
    Recipe {
        units: vec![
            Unit {
                text: Text::File("rpmalloc/rpmalloc/rpmalloc.c".to_string()),
                language: Language::C,
                flags: owned(&flags),
            },
            shim("rpmalloc_operators.c", include_str!("../shim/rpmalloc_operators.c")),
            sized_frees(),
        ],
        includes: vec!["rpmalloc/rpmalloc"],
        configure: None,
        linker: Language::C,
        link: vec!["-ldl", "-lpthread"],
        limit_exports: false,
        // Upstream's default: ENABLE_VALIDATE_ARGS is off, so neither calloc nor reallocarray checks.
        checks_overflow: false,
    }
}

const NAMESPACE: &str = "include/jemalloc/internal/private_namespace.h";

/// jemalloc's own `configure` with its defaults; the position-independent objects are linked here, so that the C++
/// run-time stays inside.
fn jemalloc(source: &Source, more: &[&str]) -> Recipe {
    let version = source.build_metadata().unwrap_or("0.0.0-0-g0").to_string();
    Recipe {
        units: vec![
            shim("jemalloc_reallocarray.c", include_str!("../shim/jemalloc_reallocarray.c")),
            sized_frees(),
        ],
        includes: vec![],
        configure: Some(Configure {
            tree: "jemalloc",
            script: "configure/configure",
            arguments: [
                &[
                    &format!("--with-version={version}"),
                    "--disable-static",
                    "--enable-doc=no",
                    "--enable-cxx",
                ],
                more,
            ]
            .concat()
            .into_iter()
            .map(str::to_string)
            .collect(),
            // -g0 after upstream's -g3: debug information takes a third of the time and is stripped anyway.
            make: vec!["build_lib_shared", "EXTRA_CFLAGS=-g0", "EXTRA_CXXFLAGS=-g0", "-o", NAMESPACE],
            // Upstream compiles everything twice to list its internal names and put a prefix before them. They are
            // hidden here, so the prefix would change nothing.
            empty: NAMESPACE,
            objects: ("src", ".pic.o"),
        }),
        linker: Language::Cxx,
        // glibc has dlsym in a library of its own until 2.34.
        link: vec![STATIC_CXX, "-lm", "-ldl", "-lpthread"],
        limit_exports: true,
        checks_overflow: true,
    }
}

/// Google's TCMalloc, unpatched, with the pages of its default build (8 KiB). The crate's build script knows which
/// files belong to it; its bridge for Rust is left out and upstream's own override put in.
fn tcmalloc(source: &Source) -> Result<Recipe, Error> {
    let script = source.path("build.rs")?;
    let text = std::fs::read_to_string(&script).context("read", &script)?;
    let files = tcmalloc_files(&text);
    if files.len() < 100 {
        return Err(Error::Layout { what: format!("only {} source files", files.len()), path: script });
    }
    let flags = owned(&[
        "-std=c++17",
        "-O2",
        "-DNDEBUG",
        "-DNOMINMAX",
        "-DTCMALLOC_INTERNAL_8K_PAGES",
        "-fPIC",
        "-ftls-model=initial-exec",
        "-fvisibility=hidden",
        "-fvisibility-inlines-hidden",
        "-ffunction-sections",
        "-fdata-sections",
        "-fno-builtin-malloc",
        "-w",
    ]);
    let mut units = vec![Unit {
        text: Text::File("c_src/tcmalloc/tcmalloc/tcmalloc.cc".to_string()),
        language: Language::Cxx,
        flags: flags.clone(),
    }];
    // Weak defaults of `free_sized` stand there. If they were hidden, the linker would hide those that replace them.
    let has_weak = |file: &str| file.ends_with("/malloc_extension.cc");
    let visible: Vec<String> =
        flags.iter().filter(|flag| !flag.starts_with("-fvisibility")).cloned().collect();
    units.extend(files.into_iter().map(|file| Unit {
        flags: if has_weak(&file) { visible.clone() } else { flags.clone() },
        text: Text::File(file),
        language: Language::Cxx,
    }));
    units.push(shim("tcmalloc_rseq.c", include_str!("../shim/tcmalloc_rseq.c")));
    Ok(Recipe {
        units,
        includes: vec!["c_src/tcmalloc", "c_src/abseil-cpp"],
        configure: None,
        linker: Language::Cxx,
        // It never throws: where `operator new` fails it ends the program. So the unwinder can be inside too.
        link: vec![STATIC_CXX, "-static-libgcc", "-Wl,--wrap=syscall", "-Wl,--gc-sections", "-lpthread"],
        limit_exports: true,
        checks_overflow: true,
    })
}

/// The allocator's files named in the crate's build script; TCMalloc's own before Abseil's, which compile faster.
fn tcmalloc_files(build_script: &str) -> Vec<String> {
    let Ok(regex) = Regex::new(r#""(c_src/[^"]+\.(?:cc|S))""#) else { return Vec::new() };
    let mut files: Vec<String> = regex
        .captures_iter(build_script)
        .map(|found| found[1].to_string())
        .filter(|file| !file.contains("_bridge.") && !file.ends_with("/tcmalloc.cc"))
        .collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.starts_with("c_src/tcmalloc/")));
    files.dedup();
    files
}

/// Folders to search for headers, as absolute paths.
pub fn include_dirs(recipe: &Recipe, source: &Source) -> Result<Vec<PathBuf>, Error> {
    recipe.includes.iter().map(|dir| source.path(dir)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridge_for_rust_stays_out_of_tcmalloc() {
        let script = r#"["c_src/abseil-cpp/absl/base/a.cc", "c_src/tcmalloc/tcmalloc/arena.cc",
            "c_src/tcmalloc/tcmalloc/internal/percpu_rseq_asm.S", "c_src/malloc_bridge.cc", "c_src/abseil-cpp"]"#;
        let files = tcmalloc_files(script);
        assert_eq!(
            files,
            [
                "c_src/tcmalloc/tcmalloc/arena.cc",
                "c_src/tcmalloc/tcmalloc/internal/percpu_rseq_asm.S",
                "c_src/abseil-cpp/absl/base/a.cc"
            ]
        );
    }

    #[test]
    fn no_recipe_keeps_assertions_or_the_slow_thread_local_model() {
        for recipe in [mimalloc("a.c", "b"), snmalloc(), rpmalloc()] {
            let flags = recipe.flags();
            assert!(flags.contains("-DNDEBUG") && flags.contains("-ftls-model=initial-exec"), "{flags}");
            assert!(flags.contains("-O3"), "{flags}");
        }
    }
}
