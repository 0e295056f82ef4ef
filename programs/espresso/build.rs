//! Compiles UC Berkeley's espresso from the C sources that the crate `espresso-logic` carries, and its driver.
//!
//! The crate is a dependency for a target that does not exist: cargo locks it and checks its sum, but neither compiles
//! it nor has to download it for this build. `cargo metadata` locates it, and downloads it when it is missing.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cargo_metadata::{Metadata, MetadataCommand};

const CRATE: &str = "espresso-logic";

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("cargo::error={}", problem.to_string().trim().replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let metadata = metadata(&here.join("Cargo.toml"))?;
    let sources = sources(&metadata)?;
    // A binary of the sources must carry their notices.
    println!("cargo::rustc-env=ESPRESSO_LICENSE={}", sources.with_file_name("LICENSE").display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/minimise.c");
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-changed={}", metadata.workspace_root.join("Cargo.lock"));

    // The linker resolves from left to right: the driver calls espresso.
    compiler(&sources).file("src/minimise.c").extra_warnings(true).try_compile("heaptoll_minimise")?;
    compiler(&sources).files(c_files(&sources)?).flag("-w").try_compile("espresso")?;
    Ok(())
}

/// It is measured, so it is compiled as a distribution would, whatever cargo's profile.
fn compiler(sources: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.std("c11").opt_level(2).debug(false).force_frame_pointer(false);
    build.flag("-isystem").flag(sources);
    build
}

/// Cargo's description of the workspace; without the network first, then with it. The lock file is never changed.
fn metadata(manifest: &Path) -> Result<Metadata, Box<dyn Error>> {
    let query = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        MetadataCommand::new().manifest_path(manifest).other_options(options).exec()
    };
    query(&["--offline", "--locked"]).or_else(|_| query(&["--locked"])).map_err(|problem| {
        format!(
            "cargo could not locate the crate {CRATE}; run `cargo fetch --locked` and build again: {problem}"
        )
        .into()
    })
}

/// The folder of the C sources.
fn sources(metadata: &Metadata) -> Result<PathBuf, Box<dyn Error>> {
    let package = metadata
        .packages
        .iter()
        .filter(|package| package.name.as_str() == CRATE)
        .max_by(|one, other| one.version.cmp(&other.version))
        .ok_or_else(|| format!("the crate {CRATE} is no dependency any more"))?;
    let folder = package.manifest_path.with_file_name("espresso-src").into_std_path_buf();
    if folder.join("espresso.h").is_file() {
        Ok(folder)
    } else {
        Err(format!("{CRATE} {} has no C sources in {}", package.version, folder.display()).into())
    }
}

/// All C files but the one with upstream's `main`, in the order of their names.
fn c_files(sources: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(sources)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "c") && !path.ends_with("main.c") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
