//! A program with an allocator that counts, built with the feature and without.

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counted;
static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all is System's.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static GLOBAL: heaptoll_alloc::Malloc<Counted> = heaptoll_alloc::Malloc::new(Counted);

fn main() {
    let words: Vec<String> = (0..100).map(|at| at.to_string()).collect();
    println!("{} {} {}", words.concat().len(), GLOBAL.calls_malloc(), CALLS.load(Ordering::Relaxed) > 100);
}
"#;

fn printed(folder: &Path, features: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["run", "--quiet", "--offline", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .args(features);
    // What an enclosing cargo has set is for its own build.
    let output = cargo.env_remove("CARGO_TARGET_DIR").env("CARGO_TARGET_DIR", folder.join("target")).output();
    let output = output.expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_named_allocator_serves_without_the_feature_and_malloc_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = format!(
        "[package]\nname = \"counted\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\nheaptoll-alloc = {{ path = \
         {:?} }}\n[features]\nmeasured = [\"heaptoll-alloc/malloc\"]\n[workspace]\n",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::write(folder.path().join("Cargo.toml"), manifest).expect("writes");
    std::fs::create_dir(folder.path().join("src")).expect("a folder");
    std::fs::write(folder.path().join("src/main.rs"), PROGRAM).expect("writes");
    assert_eq!(printed(folder.path(), &[]), "190 false true\n");
    assert_eq!(printed(folder.path(), &["--features", "measured"]), "190 true false\n");
}
