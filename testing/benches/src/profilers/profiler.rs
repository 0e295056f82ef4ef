//! The heap profilers, and how each is switched on for a program that knows nothing of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use heaptoll_experiment::places::Places;
use heaptoll_sampling::layout::VARIABLE;
use heaptoll_sampling::tool::{Folder, Settings};

use super::subject::Subject;
use crate::compile::{OBJECT, compile};
use crate::installation::heaptoll;
use crate::{Error, child};

/// Writes gperftools' sampled profile when the program ends; the library itself does so only on request.
const DUMP: &str = include_str!("../../c/gperftools_dump.cc");
/// Where Debian has gperftools' library, which has its profiler.
const GPERFTOOLS: &str = "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4";

/// A heap profiler.
#[derive(Debug, Clone)]
pub enum Profiler {
    /// The sampling layer over glibc.
    Heaptoll {
        /// This tool.
        tool: PathBuf,
        /// Its layer.
        layer: PathBuf,
    },
    /// jemalloc's, built with `--enable-prof`.
    Jemalloc(PathBuf),
    /// That of Debian's gperftools, and what writes its profile.
    Gperftools(PathBuf),
}

impl Profiler {
    /// Those that are there; what is not is in the sentences.
    ///
    /// # Errors
    /// The shim for gperftools does not compile though its headers are there.
    pub fn all(places: &Places, peers: &Path, folder: &Path) -> Result<(Vec<Profiler>, Vec<String>), Error> {
        let tool = heaptoll()?;
        let mut found = vec![Profiler::Heaptoll { tool, layer: places.layer("sample") }];
        let mut lacking = Vec::new();
        let jemalloc = peers.join("jemalloc-prof.so");
        match jemalloc.is_file() {
            true => found.push(Profiler::Jemalloc(jemalloc)),
            false => lacking.push(format!(
                "{} is not there: heaptoll-peers --out {} profiling",
                jemalloc.display(),
                peers.display()
            )),
        }
        match Path::new("/usr/include/gperftools/malloc_extension.h").exists()
            && Path::new(GPERFTOOLS).exists()
        {
            true => found.push(Profiler::Gperftools(compile(folder, "gperftools_dump.cc", DUMP, &OBJECT)?)),
            false => {
                lacking.push("gperftools is not there: apt-get install libgoogle-perftools-dev".to_owned())
            }
        }
        Ok((found, lacking))
    }

    /// Its name in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Profiler::Heaptoll { .. } => "heaptoll",
            Profiler::Jemalloc(_) => "jemalloc",
            Profiler::Gperftools(_) => "gperftools",
        }
    }

    /// Runs a program with one sample in about so many bytes, a power of two; returns its profile, which lies in a folder.
    ///
    /// # Errors
    /// The program ends badly, or leaves no profile.
    pub fn profile(
        &self,
        subject: &Subject,
        mean_bytes: u64,
        seed: u64,
        folder: &Path,
    ) -> Result<PathBuf, Error> {
        let path = folder.join(format!("profile-{seed}"));
        match self {
            Profiler::Heaptoll { tool, .. } => {
                let path = path.with_extension("pb.gz");
                let (tool, rate) = (tool.display().to_string(), mean_bytes.to_string());
                let output = path.display().to_string();
                let words = [&tool, "record", "--force", "--sample", &rate, "-o", &output, "--"];
                child::run(subject.command(&words)?.env("HEAPTOLL_SAMPLE_SEED", seed.to_string()))?;
                Ok(path)
            }
            Profiler::Jemalloc(_) => {
                let settings =
                    format!("{},prof_final:true,prof_prefix:{}", jemalloc(mean_bytes), path.display());
                let mut command = subject.command(&[])?;
                child::run(command.env("LD_PRELOAD", self.preload()).env("MALLOC_CONF", settings))?;
                dumped(folder, &path)
            }
            Profiler::Gperftools(_) => {
                let mut command = subject.command(&[])?;
                command.env("LD_PRELOAD", self.preload()).env("TCMALLOC_PROFILE", &path);
                child::run(command.env("TCMALLOC_SAMPLE_PARAMETER", mean_bytes.to_string()))?;
                Ok(path)
            }
        }
    }

    /// Has a command run over the profiler's manager, sampling or not, without a profile at its end. `before` are words in
    /// front of the program, to which nothing is preloaded.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn sampling(
        &self,
        subject: &Subject,
        mean_bytes: Option<u64>,
        before: &[&str],
        folder: &Path,
    ) -> Result<Command, Error> {
        let mut settings: Vec<OsString> = Vec::new();
        let mut set = |name: &str, value: OsString| {
            let mut word = OsString::from(format!("{name}="));
            word.push(value);
            settings.push(word);
        };
        match (self, mean_bytes) {
            (Profiler::Heaptoll { .. }, None) => {}
            (Profiler::Heaptoll { layer, .. }, Some(mean_bytes)) => {
                let run = Settings { mean_bytes, seed: Some(1), awake: true };
                Folder::create(folder, run).map_err(Error::system("make the layer's files"))?;
                set("LD_PRELOAD", layer.into());
                set(&VARIABLE.to_string_lossy(), folder.into());
            }
            (Profiler::Jemalloc(_), rate) => {
                set("LD_PRELOAD", self.preload());
                set("MALLOC_CONF", rate.map_or("prof:false".to_owned(), jemalloc).into());
            }
            (Profiler::Gperftools(_), rate) => {
                set("LD_PRELOAD", self.preload());
                set("TCMALLOC_SAMPLE_PARAMETER", rate.unwrap_or(0).to_string().into());
            }
        }
        // By env, so that what is in front runs without them.
        let words: Vec<String> = settings.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let words =
            before.iter().copied().chain(std::iter::once("env")).chain(words.iter().map(String::as_str));
        subject.command(&words.collect::<Vec<_>>())
    }

    fn preload(&self) -> OsString {
        match self {
            Profiler::Heaptoll { layer: object, .. } | Profiler::Jemalloc(object) => object.into(),
            Profiler::Gperftools(dump) => {
                let mut objects = OsString::from(GPERFTOOLS);
                objects.push(":");
                objects.push(dump);
                objects
            }
        }
    }
}

/// jemalloc's settings for a rate: it knows powers of two.
fn jemalloc(mean_bytes: u64) -> String {
    format!("prof:true,lg_prof_sample:{}", mean_bytes.max(1).ilog2())
}

/// The profile that jemalloc named itself: `PREFIX.PID.0.f.heap`.
fn dumped(folder: &Path, prefix: &Path) -> Result<PathBuf, Error> {
    let start = format!("{}.", prefix.file_name().unwrap_or_default().to_string_lossy());
    let files = std::fs::read_dir(folder).map_err(Error::system(folder.display().to_string()))?;
    let found = files.filter_map(Result::ok).map(|file| file.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&start) && name.ends_with(".heap")
    });
    found.ok_or_else(|| {
        Error::Unexpected(format!("jemalloc left no {start}*.heap: is it built with --enable-prof?"))
    })
}
