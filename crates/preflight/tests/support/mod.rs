//! The fixture of the tests: layers built once, small C programs and managers compiled on the spot.
#![allow(dead_code)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heaptoll_preflight::{Proof, Refusal, Request, preflight};

/// The counting layer's file.
pub const COUNT_LAYER: &str = "libheaptoll_count.so";

/// The directory of the layers in the staged build.
pub fn layers() -> PathBuf {
    heaptoll_testing::staged::file("layers")
}

/// A temporary directory with a compiler.
pub struct Fixture(pub tempfile::TempDir);

impl Fixture {
    pub fn new() -> Fixture {
        Fixture(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn build(&self, compiler: &str, suffix: &str, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let code = self.path(&format!("{name}.{suffix}"));
        std::fs::write(&code, source).expect("the source is written");
        let out = self.path(name);
        // Without -fno-builtin the compiler removes pairs of malloc and free.
        let output = Command::new(compiler)
            .args(["-O1", "-fno-builtin", "-w", "-o"])
            .arg(&out)
            .arg(&code)
            .args(flags)
            .output()
            .expect("the compiler runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        out
    }

    pub fn c(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        self.build("cc", "c", name, source, flags)
    }

    pub fn cxx(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        self.build("c++", "cc", name, source, flags)
    }

    /// A shared object.
    pub fn so(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        self.c(name, source, &[&["-shared", "-fPIC"], flags].concat())
    }

    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the script is written");
        mode(&path, 0o755);
        path
    }
}

pub fn mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the mode is set");
}

/// A manager under its own name: bump allocation, free does nothing.
pub const BUMP: &str = r#"
#include <stddef.h>
#include <string.h>
#include <errno.h>
#include <stdint.h>
static char heap[256 << 20] __attribute__((aligned(4096)));
static size_t top;
static void *take(size_t a, size_t n) {
    size_t old, start;
    do { old = __atomic_load_n(&top, __ATOMIC_RELAXED);
         start = (old + 16 + a - 1) & ~(a - 1);
         if (n > sizeof heap || start + n > sizeof heap) { errno = ENOMEM; return 0; }
    } while (!__atomic_compare_exchange_n(&top, &old, start + n, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    ((size_t *)(heap + start))[-1] = n;
    return heap + start;
}
void *malloc(size_t n) { return take(16, n); }
void free(void *p) { if (p && ((char *)p < heap || (char *)p >= heap + sizeof heap)) __builtin_trap(); }
void *calloc(size_t a, size_t b) { return a && b > SIZE_MAX / a ? 0 : take(16, a * b); }
void *realloc(void *p, size_t n) { void *q = take(16, n); if (p && q) { size_t o = ((size_t *)p)[-1];
    for (size_t i = 0; i < o && i < n; i++) ((char *)q)[i] = ((char *)p)[i]; } return q; }
void *memalign(size_t a, size_t n) { return take(a < 16 ? 16 : a, n); }
"#;

/// A program that makes `n` blocks.
pub const BUSY: &str = r#"
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    for (int i = 0; i < n; i++) { char *p = malloc(i % 500 + 1); p[0] = 1; free(p); }
    return 0;
}
"#;

pub const JEMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";

/// A request with the usual surroundings.
pub fn request(command: &[&str], preload: &[&Path]) -> Request {
    Request {
        command: command.iter().map(OsString::from).collect(),
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        directory: None,
        stdin: None,
        layers: vec![],
        preload: preload.iter().map(|p| p.to_path_buf()).collect(),
        count_layer: layers().join(COUNT_LAYER),
        limit: Duration::from_secs(20),
        watch: None,
        cancel: Arc::new(AtomicBool::new(false)),
        hurry: None,
    }
}

pub fn check(command: &[&str], preload: &[&Path]) -> Result<Proof, Refusal> {
    preflight(&request(command, preload))
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are text")
}
