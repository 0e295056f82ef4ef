//! `heaptoll-bench fairness`: is a peer that we build slower than the one Debian ships? Both run the same
//! allocation-heavy programs, in turns, and the CPU time of each pair of runs gives a ratio; callgrind counts the
//! instructions of each call. Versions differ, so the answer covers both our flags and upstream's changes.
//!
//! The rule is fixed before anything runs. Instructions a call are the gate, because they repeat to within 1 %: ours
//! over theirs is at most [`LIMIT`], for every pair and program. CPU time is noisy: ours counts as slower when the
//! whole interval lies above the limit, and an interval wider than [`WIDEST`] shows nothing either way.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_callgrind::profile::{self, Entries};
use heaptoll_callgrind::tools::{self, driver};
use heaptoll_statistics::median;

use crate::{Error, child, installation};

/// Slower than this is a defect of ours.
const LIMIT: f64 = 1.03;

/// The widest interval of a CPU ratio that shows anything, as half its width over the ratio.
const WIDEST: f64 = 0.03;

/// Compare the mimalloc 2 and jemalloc built here with Debian's; fails when ours takes over 3 % more instructions a
/// call, or is shown to take over 3 % more CPU time
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder with our objects
    #[arg(long, value_name = "DIR", default_value = "target/managers")]
    pub out: PathBuf,
    /// Pairs of timed runs for each comparison
    #[arg(long, short = 'n', value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(2..))]
    pub pairs: u16,
    /// Leave out the instruction counts, which need valgrind
    #[arg(long)]
    pub no_callgrind: bool,
    /// Folder of the project, for the programs
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))]
    pub project: PathBuf,
    /// Compare NAME=OURS,THEIRS (two shared objects) instead of our peers with Debian's packages
    #[arg(long, value_name = "NAME=OURS,THEIRS", value_parser = parse_pair)]
    pub pair: Vec<Pair>,
}

/// Two objects to compare.
#[derive(Debug, Clone)]
pub struct Pair {
    name: String,
    ours: PathBuf,
    theirs: PathBuf,
}

fn parse_pair(text: &str) -> Result<Pair, String> {
    let (name, objects) = text.split_once('=').ok_or("write NAME=OURS,THEIRS")?;
    let (ours, theirs) = objects.split_once(',').ok_or("write NAME=OURS,THEIRS")?;
    Ok(Pair { name: name.to_string(), ours: ours.into(), theirs: theirs.into() })
}

/// A program with a size for timing and a smaller one for counting.
struct Workload {
    name: &'static str,
    timed: Vec<String>,
    counted: Vec<String>,
}

/// The outcome of one comparison.
struct Finding {
    /// Geometric mean of ours over theirs, CPU seconds, with its 95 % interval.
    cpu: (f64, f64, f64),
    /// Median CPU seconds, ours and theirs.
    seconds: (f64, f64),
    /// Instructions in the allocator, ours and theirs.
    counts: Option<(Entries, Entries)>,
}

/// The verdict from the CPU time of a comparison.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The whole interval is above the limit.
    Slower,
    /// The whole interval is below 1.
    Faster,
    /// The whole interval is below the limit.
    NotSlower,
    /// The interval is too wide to show anything.
    TooWide,
    /// The interval has the limit in it.
    Undecided,
}

impl Verdict {
    fn of((ratio, low, high): (f64, f64, f64)) -> Verdict {
        match () {
            () if low > LIMIT => Verdict::Slower,
            () if (high - low) / 2.0 > WIDEST * ratio => Verdict::TooWide,
            () if high < 1.0 => Verdict::Faster,
            () if high <= LIMIT => Verdict::NotSlower,
            () => Verdict::Undecided,
        }
    }

    fn as_str(&self) -> &'static str {
        match self {
            Verdict::Slower => "SLOWER",
            Verdict::Faster => "faster",
            Verdict::NotSlower => "not slower",
            Verdict::TooWide => "not shown (interval wider than ±3 %)",
            Verdict::Undecided => "not shown (the limit is inside the interval)",
        }
    }
}

impl Finding {
    /// Instructions a call, ours over theirs; no number when one of them was never called.
    fn instructions(&self) -> Option<f64> {
        self.counts.map(|(ours, theirs)| match ours.calls.min(theirs.calls) {
            0 => f64::NAN,
            _ => ours.per_call() / theirs.per_call(),
        })
    }

    /// Whether this comparison passes: the rule at the head of this file.
    fn passes(&self) -> bool {
        // A ratio that is no number does not pass.
        self.instructions().is_none_or(|ratio| ratio <= LIMIT) && Verdict::of(self.cpu) != Verdict::Slower
    }
}

/// Runs all comparisons and prints them; `false` when one of ours does not pass.
///
/// # Errors
/// What keeps a comparison from running: an object, a program or a tool that is missing, a program that fails.
pub fn run(options: &Options) -> Result<bool, Error> {
    let dir = installation::scratch()?;
    let pairs = if options.pair.is_empty() { debian_pairs(&options.out)? } else { options.pair.clone() };
    let workloads = workloads(&options.project, dir.path())?;
    println!(
        "ours against theirs, CPU time of {} interleaved pairs (95 % interval) and instructions per call",
        options.pairs
    );
    println!(
        "the rule: at most {LIMIT} times the instructions a call; CPU time counts as slower when its interval lies above"
    );
    if options.no_callgrind {
        println!("instructions are left out: only CPU time can fail");
    }
    let mut fair = true;
    for pair in &pairs {
        for object in [&pair.ours, &pair.theirs] {
            if !object.exists() {
                return Err(Error::Unexpected(format!("{} does not exist", object.display())));
            }
        }
        println!("\n{}: {} against {}", pair.name, pair.ours.display(), pair.theirs.display());
        for workload in &workloads {
            let finding = compare_one(pair, workload, options, dir.path())?;
            fair &= finding.passes();
            print(workload.name, &finding);
        }
    }
    println!("\n{}", if fair { "passed" } else { "FAILED" });
    Ok(fair)
}

fn print(name: &str, finding: &Finding) {
    let (ratio, low, high) = finding.cpu;
    let (ours, theirs) = finding.seconds;
    let counts =
        finding.counts.zip(finding.instructions()).map_or(String::new(), |((ours, theirs), ratio)| {
            let (a, b) = (ours.per_call(), theirs.per_call());
            let over = if ratio <= LIMIT { "" } else { " TOO MANY" };
            format!(" | instructions a call {a:6.1} against {b:6.1} ({ratio:.3}){over}, {} calls", ours.calls)
        });
    println!(
        "  {name:9} CPU {ratio:.3} [{low:.3}, {high:.3}] ({ours:.3} s, {theirs:.3} s) {}{counts}",
        Verdict::of(finding.cpu).as_str()
    );
}

/// Our peers and the Debian packages of the same allocators.
fn debian_pairs(out: &Path) -> Result<Vec<Pair>, Error> {
    let known = [
        ("mimalloc2", "libmimalloc.so.2", "libmimalloc2.0"),
        ("jemalloc", "libjemalloc.so.2", "libjemalloc2"),
    ];
    let mut pairs = Vec::new();
    for (peer, file, package) in known {
        let ours = std::path::absolute(out.join(format!("{peer}.so"))).map_err(Error::file("find", out))?;
        if !ours.exists() {
            let message = format!("{} is not built; run: heaptoll-peers {peer}", ours.display());
            return Err(Error::Unexpected(message));
        }
        let theirs = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
            .iter()
            .map(|triplet| Path::new("/usr/lib").join(triplet).join(file))
            .find_map(|path| path.canonicalize().ok());
        match theirs {
            Some(theirs) => pairs.push(Pair { name: peer.to_string(), ours, theirs }),
            None => return Err(heaptoll_callgrind::Error::NoTool { tool: file.to_string(), package }.into()),
        }
    }
    Ok(pairs)
}

/// A tight loop of ours, the bundled cfrac, and two interpreters of Debian's.
fn workloads(project: &Path, dir: &Path) -> Result<Vec<Workload>, Error> {
    let scripts = project.join("testing/benches/fairness");
    let cfrac = project.join("programs/cfrac");
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(&cfrac).map_err(Error::file("read", &cfrac))? {
        let path = entry.map_err(Error::file("read", &cfrac))?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            sources.push(path);
        }
    }
    sources.sort();
    let pairs = compile("pairs", &[scripts.join("pairs.c")], dir)?;
    let cfrac = compile("cfrac", &sources, dir)?;
    let script = |name: &str| scripts.join(name).display().to_string();
    let words = |command: &[&str]| command.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (trees, awk) = (script("trees.lua"), script("words.awk"));
    let awk = |count: &str| words(&["gawk", "-v", &format!("n={count}"), "-f", &awk]);
    Ok(vec![
        Workload {
            name: "pairs",
            timed: words(&[&pairs, "60000000", "32"]),
            counted: words(&[&pairs, "200000", "32"]),
        },
        Workload {
            name: "cfrac",
            timed: words(&[&cfrac, "319983124962088174920455927385231151"]),
            counted: words(&[&cfrac, "543446120020547144337451684613"]),
        },
        Workload {
            name: "lua",
            timed: words(&["lua5.4", &trees, "17"]),
            counted: words(&["lua5.4", &trees, "12"]),
        },
        Workload { name: "gawk", timed: awk("500000"), counted: awk("30000") },
    ])
}

fn compile(name: &str, sources: &[PathBuf], dir: &Path) -> Result<String, Error> {
    let target = dir.join(name);
    let mut command = driver(false);
    // Without builtins, or the compiler drops pairs of malloc and free that it can see through.
    command.args(["-std=gnu11", "-O2", "-fno-builtin", "-o"]).arg(&target).args(sources);
    tools::run(&mut command, &format!("compiling {name}"), "gcc libc6-dev")?;
    Ok(target.display().to_string())
}

fn compare_one(pair: &Pair, workload: &Workload, options: &Options, dir: &Path) -> Result<Finding, Error> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // Warm the page cache, the binaries and the clock.
    for object in [&pair.ours, &pair.theirs] {
        cpu_seconds(&workload.timed, object, 0)?;
    }
    for round in 0..usize::from(options.pairs) {
        // The order alternates, and the environment's size moves the stack (the same for both of a pair).
        let padding = round * 83 % 4096;
        let measure = |object: &Path, into: &mut Vec<f64>| -> Result<(), Error> {
            into.push(cpu_seconds(&workload.timed, object, padding)?);
            Ok(())
        };
        if round % 2 == 0 {
            measure(&pair.ours, &mut ours)?;
            measure(&pair.theirs, &mut theirs)?;
        } else {
            measure(&pair.theirs, &mut theirs)?;
            measure(&pair.ours, &mut ours)?;
        }
    }
    let counts = if options.no_callgrind {
        None
    } else {
        let ours = profile::count(&workload.counted, &pair.ours, dir)?;
        Some((ours, profile::count(&workload.counted, &pair.theirs, dir)?))
    };
    let cpu = ratio(&ours, &theirs);
    Ok(Finding { cpu, seconds: (median(&ours), median(&theirs)), counts })
}

/// User and system seconds of one run with an object preloaded.
fn cpu_seconds(command: &[String], object: &Path, padding: usize) -> Result<f64, Error> {
    let mut run = Command::new(&command[0]);
    run.args(&command[1..]).env("LD_PRELOAD", object).env("HEAPTOLL_PADDING", "x".repeat(padding));
    Ok(child::run(run.stdin(Stdio::null()))?.cpu_s)
}

/// Geometric mean of the paired ratios and its 95 % interval (Student's t on the logarithms).
fn ratio(ours: &[f64], theirs: &[f64]) -> (f64, f64, f64) {
    let logs: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| (a / b).ln()).collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = t_quantile(n - 1.0) * (variance / n).sqrt();
    (mean.exp(), (mean - half).exp(), (mean + half).exp())
}

/// The 97.5 % quantile of Student's t, by the Cornish-Fisher expansion around the normal one. Within 0.3 % from four
/// degrees of freedom; below that the exact values.
fn t_quantile(freedom: f64) -> f64 {
    match freedom as u32 {
        0 => return f64::INFINITY,
        1 => return 12.706,
        2 => return 4.303,
        3 => return 3.182,
        _ => {}
    }
    let z: f64 = 1.959_964;
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_tables() {
        for (freedom, value) in [(4.0, 2.776), (5.0, 2.571), (9.0, 2.262), (14.0, 2.145), (30.0, 2.042)] {
            assert!((t_quantile(freedom) / value - 1.0).abs() < 0.003, "{freedom}: {}", t_quantile(freedom));
        }
    }

    #[test]
    fn a_constant_ratio_has_no_spread_and_noise_widens_it() {
        let theirs = [1.0, 2.0, 3.0, 4.0];
        let (ratio_of, low, high) = ratio(&theirs.map(|s| s * 1.1), &theirs);
        assert!((ratio_of - 1.1).abs() < 1e-9 && high - low < 1e-9);
        let (_, low, high) = ratio(&[1.2, 2.0, 3.6, 4.0], &theirs);
        assert!(low < 1.0 && high > 1.2);
    }

    #[test]
    fn intervals_are_judged_by_the_rule() {
        for (interval, verdict) in [
            ((1.05, 1.031, 1.07), Verdict::Slower),
            ((1.20, 1.10, 1.30), Verdict::Slower),
            ((1.039, 1.015, 1.064), Verdict::Undecided),
            ((1.0, 0.96, 1.04), Verdict::TooWide),
            ((0.9, 0.86, 0.94), Verdict::TooWide),
            ((0.937, 0.924, 0.950), Verdict::Faster),
            ((1.002, 0.976, 1.028), Verdict::NotSlower),
        ] {
            assert_eq!(Verdict::of(interval), verdict, "{interval:?}");
        }
    }

    #[test]
    fn instructions_fail_whatever_the_clock_shows() {
        let finding = |ours: u64, calls: u64| Finding {
            cpu: (0.9, 0.89, 0.91),
            seconds: (0.9, 1.0),
            counts: Some((Entries { instructions: ours, calls }, Entries { instructions: 1000, calls })),
        };
        assert!(finding(1030, 10).passes());
        assert!(!finding(1031, 10).passes());
        let uncalled = Entries { instructions: 0, calls: 0 };
        let called = Entries { instructions: 1000, calls: 10 };
        for counts in [(uncalled, called), (called, uncalled)] {
            assert!(!Finding { counts: Some(counts), ..finding(1000, 10) }.passes());
        }
        let slow = Finding { cpu: (1.05, 1.04, 1.06), counts: None, ..finding(1000, 10) };
        assert!(!slow.passes());
    }

    #[test]
    fn cpu_time_of_a_failing_program_is_an_error() {
        let object = Path::new("/dev/null");
        let failed = cpu_seconds(&["false".to_string()], object, 0);
        assert!(matches!(failed, Err(Error::Ended { .. })));
    }
}
