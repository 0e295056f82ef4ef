//! Where the CPU of a program goes under glibc and with every free ignored: malloc, marking, roots, the kernel, and the
//! program itself, which a collector's heap makes slower or faster by what it leaves in the caches.
//!
//! perf samples one run under each. Only the shares of the classes are taken from it; the whole is the table's ratio,
//! which many runs were measured for.

use std::path::Path;
use std::process::{Command, Stdio};

use heaptoll_catalog::{Prepared, fill_scratch};
use heaptoll_report::format;

use super::measured::SizedOptions;
use super::summary::over;
use super::table::PLAN;
use super::targets::COLLECT;
use crate::installation::{Installation, scratch};
use crate::table::table;
use crate::{Error, Stack, child};

/// Samples a second of CPU; no multiple of the kernel's tick.
const FREQUENCY: &str = "3989";
const CLASSES: [&str; 5] = ["malloc", "marking", "roots", "kernel", "program"];
/// What the names of functions have, of those that find roots, and that mark; the first of these lists counts.
const ROOTS: [&str; 4] = ["heaptoll_roots", "::Roots::", "gather_roots", "::stopped::"];
const MARKING: [&str; 4] =
    ["heaptoll_marking", "heaptoll_tithe::mark", "heaptoll_tithe::remembered", "heaptoll_tithe::collection"];
/// The same of glibc's malloc, besides names that end with `free`: `freelocale` is another.
const MALLOC: [&str; 8] =
    ["malloc", "_int_free", "calloc", "realloc", "memalign", "_chunk", "systrim", "tcache"];

/// Runs it: the programs of the table, the dearest first.
///
/// # Errors
/// There is no table and no perf, or a program fails under it.
pub fn run(options: &SizedOptions) -> Result<bool, Error> {
    let perf = Command::new("perf").arg("--version").output();
    perf.map_err(Error::system("there is no perf; install it with: apt-get install linux-perf"))?;
    let installation = Installation::find()?;
    let measured = options.source.measured(&PLAN)?;
    let stacks = [installation.stack("glibc")?, installation.stack(COLLECT)?];
    let cpu = |program: &str| over(&measured, program, COLLECT).cpu.map(|cpu| cpu.ratio);
    let mut programs: Vec<(&str, f64)> =
        measured.programs().filter_map(|program| Some((program, cpu(program)?))).collect();
    programs.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut rows = vec![];
    for (program, ratio) in programs {
        eprintln!("{program}: a run under glibc, and one under {COLLECT}");
        let prepared = installation.program(program, options.size)?;
        let [glibc, ours] = [shares(&prepared, &stacks[0])?, shares(&prepared, &stacks[1])?];
        rows.push(row(program, ratio, glibc, ours));
    }
    options.outputs.write("ledger", &section(rows))?;
    Ok(true)
}

/// Both runs in percent of glibc's CPU.
fn row(program: &str, ratio: f64, glibc: [f64; 5], ours: [f64; 5]) -> Vec<String> {
    let cells = (0..CLASSES.len()).map(|class| {
        let [glibc, ours] = [glibc[class], ours[class] * ratio].map(|share| share * 100.0);
        if glibc == 0.0 { format!("{ours:.0}") } else { format!("{glibc:.0} → {ours:.0}") }
    });
    [program.to_owned(), format::ratio(ratio)].into_iter().chain(cells).collect()
}

fn section(rows: Vec<Vec<String>>) -> String {
    let headings = [&["program", "CPU"][..], &CLASSES].concat();
    format!(
        "*CPU* is the ratio of the table above; how it is shared out is by the samples of one run (perf, {FREQUENCY} a \
         second of CPU). A cell: percent of glibc's CPU, under glibc → under {COLLECT}.\n\n{}",
        table(&headings, 1, rows).markdown()
    )
}

/// The share of each class in the samples of a run.
fn shares(program: &Prepared, stack: &Stack) -> Result<[f64; 5], Error> {
    let folder = scratch()?;
    let data = folder.path().join("perf.data");
    child::run(&mut recording(program, stack, folder.path(), &data)?)?;
    let mut script = Command::new("perf");
    script.args(["script", "-F", "ip,sym,dso", "-i"]).arg(&data);
    let output = script.output().map_err(Error::system("start `perf script`"))?;
    let mut counts = [0u32; 5];
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines() {
        if let Some((symbol, object)) = line.trim().rsplit_once(" (") {
            counts[class(symbol, object.trim_end_matches(')'))] += 1;
        }
    }
    match counts.iter().sum::<u32>() {
        all if all > 0 && output.status.success() => {
            Ok(counts.map(|count| f64::from(count) / f64::from(all)))
        }
        _ => Err(Error::failed(
            format!("perf on {} under {}", program.name, stack.name),
            String::from_utf8_lossy(&output.stderr).trim(),
        )),
    }
}

/// The program under perf, which is not under the manager.
fn recording(program: &Prepared, stack: &Stack, scratch: &Path, data: &Path) -> Result<Command, Error> {
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-e", "cpu-clock", "-F", FREQUENCY, "-o"]).arg(data);
    command.args(["--", "env"]);
    for (name, value) in program.environment.iter().chain(&stack.environment) {
        command.arg(format!("{name}={value}"));
    }
    let mut preload = std::ffi::OsString::from("LD_PRELOAD=");
    preload.push(stack.ld_preload());
    command.arg(preload);
    command.args(program.command.iter().map(|word| fill_scratch(word, &scratch.display().to_string())));
    let stdin = match &program.stdin {
        Some(path) => std::fs::File::open(path).map_err(Error::file("read", path))?.into(),
        None => Stdio::null(),
    };
    command.current_dir(scratch).stdin(stdin);
    Ok(command)
}

/// The place of a sample's class in [`CLASSES`].
fn class(symbol: &str, object: &str) -> usize {
    let has = |words: &[&str]| words.iter().any(|word| symbol.contains(word));
    let name = object.rsplit('/').next().unwrap_or(object);
    let class = match name {
        // The kernel and its modules; what the kernel maps into a process is the process's.
        _ if name.starts_with('[') && !["[vdso]", "[unknown]", "[heap]"].contains(&name) => "kernel",
        "tithe.so" if has(&ROOTS) => "roots",
        "tithe.so" if has(&MARKING) => "marking",
        "tithe.so" => "malloc",
        "libc.so.6"
            if has(&MALLOC) || symbol.split('@').next().is_some_and(|name| name.ends_with("free")) =>
        {
            "malloc"
        }
        _ => "program",
    };
    CLASSES.iter().position(|one| *one == class).unwrap_or(CLASSES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_belongs_to_whose_function_it_is() {
        let of = |symbol, object| CLASSES[class(symbol, object)];
        assert_eq!(of("clear_page_rep", "[kernel.kallsyms]"), "kernel");
        assert_eq!(of("_int_malloc", "/usr/lib/x86_64-linux-gnu/libc.so.6"), "malloc");
        assert_eq!(of("cfree@GLIBC_2.2.5", "/usr/lib/x86_64-linux-gnu/libc.so.6"), "malloc");
        assert_eq!(of("freelocale", "/usr/lib/x86_64-linux-gnu/libc.so.6"), "program");
        assert_eq!(of("__memcpy_avx", "/usr/lib/x86_64-linux-gnu/libc.so.6"), "program");
        assert_eq!(of("free_node", "/usr/bin/gawk"), "program");
        assert_eq!(of("__vdso_gettimeofday", "[vdso]"), "program");
        let tithe = |symbol| of(symbol, "/stage/managers/tithe.so");
        assert_eq!(tithe("heaptoll_marking::marker::Marker<H,_>::drain"), "marking");
        assert_eq!(tithe("heaptoll_tithe::mark::large"), "marking");
        assert_eq!(tithe("heaptoll_tithe::markers::Roots::visit"), "roots");
        assert_eq!(tithe("heaptoll_tithe::collection::passes::<impl Heap>::gather_roots"), "roots");
        assert_eq!(tithe("heaptoll_tithe::heap::small::<impl Heap>::refill"), "malloc");
    }

    #[test]
    fn a_row_is_in_percent_of_the_baseline_whatever_the_samples() {
        let cells = row("cfrac", 1.5, [0.2, 0.0, 0.0, 0.1, 0.7], [0.2, 0.2, 0.1, 0.1, 0.4]);
        assert_eq!(cells, ["cfrac", "1.50", "20 → 30", "30", "15", "10 → 15", "70 → 60"]);
    }
}
