//! glibc's own tests of malloc, from an unpacked source package, each a program of its own under each manager.
//!
//! Nothing of glibc's is in this repository: its tests and their library (`support/`) are compiled where they lie, with
//! the few definitions in `glibc/` here that replace its build system and internal headers. A manager must pass the
//! tests that glibc passes; where it fails, the list in [`crate::exceptions`] must have an entry with the reason.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use heaptoll_callgrind::tools::driver;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;

use crate::deviation::Deviation;
use crate::error::{Error, file};
use crate::exceptions::{self, LEFT_OUT};
use crate::process::{self, End, Ending};
use crate::suite::{compile, in_parallel};
use crate::table;
use crate::verdict::{Verdict, judge};

/// Seconds that a test may take: longer than its driver allows, which kills what the test leaves behind.
const LIMIT_S: u64 = 1200;
/// The driver's message when it has killed a test that took too long.
const TIMED_OUT: &str = "Timed out: killed the child process";
/// The table shows CPU seconds from this number on.
const SHOWN_S: f64 = 5.0;

/// Internal headers that can be used by themselves, and their folders.
const HEADERS: [&str; 12] = [
    "include/libc-diag.h",
    "include/array_length.h",
    "include/file_change_detection.h",
    "include/scratch_buffer.h",
    "include/alloc_buffer.h",
    "include/intprops.h",
    "include/verify.h",
    "include/libc-pointer-arith.h",
    "sysdeps/generic/malloc-alignment.h",
    "sysdeps/generic/malloc-size.h",
    "sysdeps/x86_64/stackinfo.h",
    "malloc/dynarray.h",
];
/// The library of the tests, by the beginnings of files' names.
const SUPPORT: [(&str, &[&str]); 2] =
    [("support", &[""]), ("malloc", &["alloc_buffer_", "dynarray_", "scratch_buffer_"])];
const FLAGS: [&str; 8] = [
    "-w",
    "-O2",
    "-g",
    "-std=gnu11",
    "-fno-builtin",
    "-pthread",
    "-DMODULE_NAME=testsuite",
    "-DTEST_NO_MALLOPT",
];

/// The managers and stacks that are tested unless others are named; those that are not built are left out.
pub const DEFAULT_STACKS: [&str; 23] = [
    "glibc",
    "tithe",
    "tithe-explicit",
    "tithe-collect",
    "knuth",
    "bestfit",
    "cartesian",
    "kingsley",
    "haertel",
    "buddy",
    "lea",
    "quickfit",
    "pow2",
    "bump",
    "bw16",
    "bw26",
    "treadmill",
    "mimalloc3",
    "quarantine=1M,check=on/glibc",
    "quarantine=1M,check=on/mimalloc3",
    "sweep,free=honour/glibc",
    "sweep/glibc",
    "sweep,free=honour/mimalloc3",
];

/// The outcome of one test under one manager.
#[derive(Debug)]
pub struct Cell {
    /// The test.
    pub test: String,
    /// The manager.
    pub manager: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// Its time on processors.
    pub cpu: Duration,
}

impl Cell {
    /// `tst-calloc under knuth: ok, 0.2 s of CPU`, and why, where that is not expected.
    fn line(&self) -> String {
        let (sign, seconds) = (table::sign(&self.verdict), self.cpu.as_secs_f64());
        let line = format!("{} under {}: {sign}, {seconds:.1} s of CPU", self.test, self.manager);
        match &self.verdict {
            Verdict::Holds => line,
            Verdict::NotApplicable(why)
            | Verdict::Known(why)
            | Verdict::Fails(why)
            | Verdict::NoLongerDeviates(why) => format!("{line}: {why}"),
        }
    }
}

/// The tests, compiled.
#[derive(Debug)]
pub struct Tests {
    folder: PathBuf,
    /// Their names, sorted.
    pub names: Vec<String>,
}

/// The definitions that replace glibc's build system.
fn stand_ins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("glibc")
}

/// The C sources of a folder whose names have one of these beginnings, sorted.
fn sources(folder: &Path, beginnings: &[&str]) -> Result<Vec<PathBuf>, Error> {
    let mut found: Vec<PathBuf> = file("read", folder, std::fs::read_dir(folder))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "c"))
        .filter(|path| beginnings.iter().any(|beginning| stem(path).starts_with(beginning)))
        .collect();
    found.sort();
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

impl Tests {
    /// Compiles the tests of the unpacked source package `source` into the folder `work`.
    ///
    /// # Errors
    /// A folder that is no such package, a compiler that is missing, or a test that it rejects.
    pub fn build(source: &Path, work: &Path) -> Result<Tests, Error> {
        let malloc = source.join("malloc");
        let tests: Vec<PathBuf> = sources(&malloc, &["tst-", "mallocbug"])?
            .into_iter()
            .filter(|path| !LEFT_OUT.iter().any(|(names, _)| names.contains(&stem(path).as_str())))
            .collect();
        let headers = work.join("include");
        file("create", &headers, std::fs::create_dir_all(&headers))?;
        for name in HEADERS.iter().chain(&["support", "malloc"]) {
            let link = headers.join(Path::new(name).file_name().unwrap_or_default());
            file("link", &link, symlink(source.join(name), &link))?;
        }
        for name in ["config.h", "libc-config.h"] {
            let empty = headers.join(name);
            file("write", &empty, std::fs::write(&empty, ""))?;
        }
        let compiler = |unit: &Path| {
            let mut command = driver(false);
            command.args(FLAGS).arg("-D_GNU_SOURCE").arg("-include").arg(stand_ins().join("prelude.h"));
            command.arg("-I").arg(&headers).arg("-I").arg(source.join("support")).arg(unit);
            command
        };
        let archive = support(source, work, &compiler)?;
        in_parallel(&tests, |test| {
            compile(compiler(test).arg(&archive).arg("-o").arg(work.join(stem(test))), "gcc")
        })
        .into_iter()
        .collect::<Result<Vec<()>, Error>>()?;
        Ok(Tests { folder: work.to_owned(), names: tests.iter().map(|test| stem(test)).collect() })
    }

    fn run(&self, test: &str, manager: &Manager, places: &Places) -> Result<End, Error> {
        let environment = environment(test, manager.environment.clone());
        let limit = Duration::from_secs(LIMIT_S);
        process::run(&self.folder.join(test), &[], &manager.preload(places), &environment, limit)
    }
}

/// The environment of a test, from that of the manager.
fn environment(test: &str, mut all: Vec<(String, String)>) -> Vec<(String, String)> {
    match test {
        "tst-mxfast" => {
            // As in its makefile: without fast bins.
            let tunables = "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0";
            all.push(("GLIBC_TUNABLES".into(), tunables.into()));
        }
        // They wait for the abort that a double free causes under glibc, which these settings enable.
        "tst-tcfree1" | "tst-tcfree2" => {
            all.iter_mut()
                .filter(|(name, _)| name == "HEAPTOLL_QUARANTINE")
                .for_each(|(_, value)| *value += ",abort=on");
            all.push(("TITHE_ABORT".into(), "on".into()));
        }
        _ => {}
    }
    all
}

/// Compiles the library of the tests into an archive. A file that needs more of glibc than is available here is left
/// out: a test that needs it does not link, and is reported.
fn support(
    source: &Path,
    work: &Path,
    compiler: &(dyn Fn(&Path) -> Command + Sync),
) -> Result<PathBuf, Error> {
    let mut units = vec![stand_ins().join("paths.c")];
    for (folder, beginnings) in SUPPORT {
        units.extend(sources(&source.join(folder), beginnings)?);
    }
    // Programs of their own.
    let program = |unit: &PathBuf| {
        let name = stem(unit);
        ["tst-", "test-", "links-", "support_paths"].iter().any(|start| name.starts_with(start))
            || name.ends_with("-container")
    };
    units.retain(|unit| !program(unit));
    let objects: Vec<PathBuf> = in_parallel(&units, |unit| {
        let object = work.join(stem(unit)).with_extension("o");
        compile(compiler(unit).arg("-c").arg("-o").arg(&object), "gcc").map(|()| object)
    })
    .into_iter()
    .filter_map(|made| match made {
        Err(Error::Tool(heaptoll_callgrind::Error::Step { .. })) => None,
        other => Some(other),
    })
    .collect::<Result<_, _>>()?;
    let archive = work.join("libsupport.a");
    compile(Command::new("ar").arg("rcs").arg(&archive).args(&objects), "binutils")?;
    Ok(archive)
}

/// The managers of [`DEFAULT_STACKS`] that are built.
///
/// # Errors
/// The managers cannot be listed.
pub fn default_stacks(places: &Places) -> Result<Vec<Manager>, Error> {
    let known = manager::known(places)?;
    Ok(DEFAULT_STACKS.iter().filter_map(|word| manager::find(&known, word).ok()).collect())
}

/// Runs these tests under these managers, several at once.
///
/// # Errors
/// Only the system's.
pub fn run(tests: &Tests, names: &[&str], managers: &[Manager], places: &Places) -> Result<Vec<Cell>, Error> {
    let jobs: Vec<(&str, &Manager)> =
        names.iter().flat_map(|test| managers.iter().map(move |manager| (*test, manager))).collect();
    in_parallel(&jobs, |(test, manager)| {
        let end = tests.run(test, manager, places)?;
        let known = exceptions::known(&manager.name, test).filter(|known| covers(known, &end));
        let verdict = match judge(&end, known) {
            // A failed check is reported on standard output.
            Verdict::Fails(why) => Verdict::Fails(format!("{why}; {}", last_lines(&end.stdout))),
            other => other,
        };
        let cell = Cell { test: (*test).into(), manager: manager.name.clone(), verdict, cpu: end.cpu };
        // The whole takes minutes, and a hang should be visible at once.
        eprintln!("{}", cell.line());
        Ok(cell)
    })
    .into_iter()
    .collect()
}

/// Whether an exception covers such an end: never a crash of the driver, and a test that took too long only where it
/// hangs by the list.
fn covers(known: &Deviation, end: &End) -> bool {
    match end.ending {
        Ending::Status(_) => known.hangs || !end.stdout.contains(TIMED_OUT),
        Ending::Hung => known.hangs,
        Ending::Signal(_) => false,
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

/// Test by manager; below it a line for each that is not as expected.
pub fn table(cells: &[Cell]) -> String {
    let grid: Vec<_> = cells
        .iter()
        .map(|cell| {
            let (sign, seconds) = (table::sign(&cell.verdict), cell.cpu.as_secs_f64());
            let text = if seconds < SHOWN_S { sign.into() } else { format!("{sign} {seconds:.0} s") };
            (cell.test.clone(), cell.manager.clone(), text)
        })
        .collect();
    let unexpected = cells.iter().filter(|cell| !cell.verdict.is_expected());
    unexpected.fold(table::matrix("test", &grid), |text, cell| text + "\n" + &cell.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(ending: Ending, stdout: &str) -> End {
        End {
            ending,
            stdout: stdout.into(),
            stderr: String::new(),
            took: Duration::ZERO,
            cpu: Duration::ZERO,
        }
    }

    #[test]
    fn a_double_free_is_to_end_the_program_where_a_manager_can() {
        let quarantine = || vec![("HEAPTOLL_QUARANTINE".to_string(), "size=1M,check=on".to_string())];
        let set = environment("tst-tcfree1", quarantine());
        assert_eq!(set[0].1, "size=1M,check=on,abort=on");
        assert!(set.contains(&("TITHE_ABORT".into(), "on".into())));
        assert_eq!(environment("tst-calloc", quarantine()), quarantine());
    }

    #[test]
    fn an_exception_covers_neither_a_hang_nor_a_crash() {
        let known = exceptions::known("knuth", "tst-free-errno").expect("an exception");
        assert!(covers(known, &end(Ending::Status(1), "error: 1 test failures\n")));
        assert!(!covers(known, &end(Ending::Status(1), &format!("{TIMED_OUT}\n"))));
        assert!(!covers(known, &end(Ending::Hung, "")));
        assert!(!covers(known, &end(Ending::Signal(libc::SIGSEGV), "")));
        assert!(covers(&Deviation { hangs: true, ..*known }, &end(Ending::Hung, "")));
    }

    #[test]
    fn exceptions_name_tested_managers_once_for_each_test() {
        let mut seen = Vec::new();
        for one in exceptions::EXCEPTIONS {
            for pair in
                one.managers.iter().flat_map(|manager| one.cases.iter().map(move |test| (manager, test)))
            {
                assert!(DEFAULT_STACKS.contains(pair.0), "{} is not tested", pair.0);
                assert!(!seen.contains(&pair), "{pair:?} is listed twice");
                seen.push(pair);
            }
        }
    }
}
