//! The proof run: the program under the counting layer and the manager, and what follows from what was seen.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::binding::Report;
use crate::elsewhere;
use crate::evidence::{Evidence, Left};
use crate::judge::{self, Expected, Fault, ImageFinding, Source};
use crate::linked::{additions, is_mostly, linked};
use crate::manager::{
    check_family, check_load_of, inspect_manager, inspect_object, preload_list, whole_family,
};
use crate::objects;
use crate::peak::replaced_peak;
use crate::plan::Plan;
use crate::program::inspect_program;
use crate::proof::{ProcessProof, ProgramFacts, Proof};
use crate::refusal::Refusal;
use crate::request::{Request, Watch};
use crate::tree::{self, Ending, Run};

/// Fewer calls than this in a program that works are suspicious: start-up alone makes some.
const FEW_CALLS: u64 = 200;
/// What glibc writes when it gets a block that it did not make, before it aborts.
const FOREIGN_BLOCK: [&str; 4] = [
    "free(): invalid pointer",
    "free(): invalid size",
    "munmap_chunk(): invalid pointer",
    "realloc(): invalid pointer",
];
/// CPU time from which a program counts as working, seconds.
const WORKING: f64 = 0.05;
/// In warnings of how the program ended.
pub const IN_PROOF_RUN: &str = "in the proof run";

/// Proves that `request.preload` serves `request.command`, by static checks, a load check and one traced run.
///
/// # Errors
/// A [`Refusal`] when it does not, or when it cannot be known.
pub fn preflight(request: &Request) -> Result<Proof, Refusal> {
    let program = inspect_program(&request.command, &request.environment, request.directory.as_deref())?;
    let layer = layer_of(&request.count_layer)?;
    let layers: Vec<PathBuf> =
        request.layers.iter().map(|layer| forwarding(layer)).collect::<Result<_, _>>()?;
    let source = source_of(&request.preload)?;
    if program.own_exports.iter().any(|e| e == "malloc") {
        return Err(Refusal::OwnAllocator { program: program.path, object: program.binary });
    }
    let manager: Vec<PathBuf> = request.preload.iter().map(|p| absolute(p)).collect();
    check_load_of(&manager, &request.environment, &request.cancel)?;
    check_family(&layer, &manager, &request.environment, &request.cancel)?;
    if !layers.is_empty() {
        let all: Vec<PathBuf> = layers.iter().chain(&manager).cloned().collect();
        check_load_of(&all, &request.environment, &request.cancel)
            .map_err(|refusal| of_stack(refusal, &all))?;
    }
    let preload: Vec<PathBuf> = layers.iter().chain(&manager).cloned().collect();
    // The loader loads an object once: a counting layer further in is the one in front of all.
    let layers = layers.into_iter().filter(|other| !objects::same_file(other, &layer)).collect();
    let expected = Expected { layers, source };

    let mut sighting = ProofRun::of(request, &program, &layer, &preload, &expected)?;
    let linked = linked(sighting.reports(), &expected);
    let mut extended = preload.clone();
    let mut because = Vec::new();
    // Two objects at the most can be missing from the front: glibc and the C++ runtime.
    for _ in 0..2 {
        let additions = additions(sighting.reports(), &expected, &extended);
        if additions.is_empty() {
            break;
        }
        for (object, reason) in additions {
            because.push(format!("{} itself is preloaded because {reason}", object.display()));
            extended.push(object);
        }
        sighting = ProofRun::of(request, &program, &layer, &extended, &expected)?;
    }
    let linked = linked.filter(|allocator| is_mostly(&sighting.findings, allocator));
    Ok(Proof { linked, ..sighting.judge(request, &program, &expected, extended, because)? })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// A refusal to load a whole stack, whose manager alone was loaded before, is about the stack.
fn of_stack(refusal: Refusal, objects: &[PathBuf]) -> Refusal {
    match refusal {
        Refusal::CrashesAtLoad { what, stderr, .. } => {
            let names: Vec<String> = objects.iter().map(|object| object.display().to_string()).collect();
            let alone = if names.len() == 1 { " in front of glibc" } else { "" };
            Refusal::StackBreaks { stack: names.join(" in front of ") + alone, what, stderr }
        }
        other => other,
    }
}

/// A layer of the stack, which must take the program's calls to forward them.
fn forwarding(layer: &Path) -> Result<PathBuf, Refusal> {
    let layer = layer_of(layer)?;
    match inspect_manager(&layer) {
        Ok(_) => Ok(layer),
        Err(_) => Err(Refusal::LayerMissing { layer, reason: "it exports no malloc and free".to_owned() }),
    }
}

fn layer_of(layer: &Path) -> Result<PathBuf, Refusal> {
    let layer = absolute(layer);
    match inspect_object(&layer) {
        Ok(_) => Ok(layer),
        Err(path @ Refusal::PathNotPreloadable { .. }) => Err(path),
        Err(Refusal::ManagerUnreadable { reason, .. } | Refusal::NotASharedObject { reason, .. }) => {
            Err(Refusal::LayerMissing { layer, reason })
        }
        Err(refusal) => Err(Refusal::LayerMissing { layer, reason: refusal.to_string() }),
    }
}

/// The manager of a stack: its first object that exports `malloc`.
fn source_of(preload: &[PathBuf]) -> Result<Source, Refusal> {
    let mut manager = None;
    for object in preload {
        let facts = inspect_object(object)?;
        if manager.is_none() && facts.exports.iter().any(|e| e == "malloc") {
            manager = Some(whole_family(facts)?.path);
        }
    }
    match (manager, preload.last()) {
        (Some(manager), _) => Ok(Source::Object(manager)),
        (None, Some(last)) => Err(Refusal::NoMalloc { manager: last.clone() }),
        (None, None) => Ok(Source::Glibc),
    }
}

/// How long after it is loaded a program may take to its first call before it counts as one that makes none.
const FIRST_CALL: Duration = Duration::from_secs(2);

/// One proof run with everything it left.
struct ProofRun {
    run: Run,
    findings: Vec<ImageFinding>,
    left_out: u32,
}

impl ProofRun {
    fn of(
        request: &Request,
        program: &ProgramFacts,
        layer: &Path,
        preload: &[PathBuf],
        expected: &Expected,
    ) -> Result<ProofRun, Refusal> {
        let evidence = Evidence::make().map_err(|error| Refusal::system("make its files", &error))?;
        let mut stack = vec![layer.to_path_buf()];
        stack.extend_from_slice(preload);
        let own = |name: &OsString| name == "LD_PRELOAD" || Evidence::names(name);
        let mut environment: Vec<_> = request.environment.iter().filter(|(n, _)| !own(n)).cloned().collect();
        environment.push(("LD_PRELOAD".into(), preload_list(&stack)));
        environment.extend(evidence.environment());
        // A run that shows that something has to be preloaded besides proves nothing more.
        let enough = || !additions(evidence.own_reports().iter(), expected, preload).is_empty();
        // Reporting what is bound comes before the first call: a program stopped in between would be refused as one
        // that allocates nothing.
        let begun = || {
            let since = evidence.reported().and_then(|at| at.elapsed().ok());
            since.is_some_and(|since| since > FIRST_CALL || evidence.has_calls())
        };
        let watch = request.watch.clone().map(|watch| {
            let exempt = watch.exempt.iter().cloned().chain([evidence.folder().to_path_buf()]).collect();
            Watch { exempt, ..watch }
        });
        let plan = Plan {
            program: program.path.clone(),
            arguments: request.command.clone(),
            environment,
            directory: request.directory.clone(),
            stdin: request.stdin.clone(),
            limit: request.limit,
            hurry: request.hurry.as_deref(),
            trace: true,
            enough: &enough,
            begun: &begun,
            admit: &|user| evidence.admit(user),
            watch: watch.as_ref(),
        };
        let run = tree::run(&plan, &request.cancel)?;
        let Left { reports, slots, left_out } = evidence
            .left(&run)
            .map_err(|error| Refusal::system("read what the run left", &io::Error::other(error)))?;
        let findings = judge::findings(&run, &reports, &slots, expected, layer);
        if request.cancel.load(Ordering::Relaxed) {
            return Err(Refusal::Cancelled);
        }
        Ok(ProofRun { run, findings, left_out })
    }

    fn reports(&self) -> impl Iterator<Item = &Report> {
        self.findings.iter().filter_map(|w| w.report.as_ref())
    }

    /// What was seen of a program that made no call of malloc, and what may be the reason.
    fn why_no_calls(&self, program: &ProgramFacts) -> String {
        let seconds = self.run.elapsed.as_secs_f64();
        let seen = match self.run.ending {
            Ending::Stopped => format!(
                "the counting layer was loaded, and the proof run ended after {seconds:.1} s, before the program did"
            ),
            _ => format!(
                "the counting layer was loaded, and the program ended after {seconds:.1} s ({}), before it called the \
                 layer",
                self.run.end_in_words()
            ),
        };
        let reason = match self.run.ending {
            _ if !program.hidden_allocator.is_empty() => {
                format!("{} defines {} inside", program.binary.display(), program.hidden_allocator.join(", "))
            }
            // The end itself is the reason.
            Ending::Killed(_) => return seen,
            Ending::Stopped => {
                "a server that first allocates on a request must allocate once at its start. Otherwise the program \
                 may not allocate at all, or may have an allocator inside"
                    .to_owned()
            }
            Ending::Exited(_) => "it may not allocate at all, or may have an allocator inside".to_owned(),
        };
        format!("{seen}; {reason}")
    }

    fn judge(
        self,
        request: &Request,
        program: &ProgramFacts,
        expected: &Expected,
        preload: Vec<PathBuf>,
        because: Vec<String>,
    ) -> Result<Proof, Refusal> {
        self.refuse(program, expected)?;
        let reached: Vec<&ImageFinding> = self.findings.iter().filter(|w| w.fault.is_none()).collect();
        let sum =
            |calls: fn(&ImageFinding) -> u64| reached.iter().map(|w| calls(w)).fold(0, u64::saturating_add);
        let malloc_calls = sum(|w| w.process.malloc_calls);
        let free_calls = sum(|w| w.process.free_calls);
        if malloc_calls == 0 {
            return Err(Refusal::NoCalls { program: program.path.clone(), hint: self.why_no_calls(program) });
        }
        let bound_to = reached
            .iter()
            .find(|w| w.process.malloc_bound_to.is_some())
            .map_or_else(|| "the manager".to_owned(), |w| way_in_words(&w.process));
        let processes = reached.len();
        let mut sentence = format!(
            "malloc bound to {bound_to} in {processes} program image{}, {malloc_calls} calls seen",
            if processes == 1 { "" } else { "s" }
        );
        let finished = self.run.ending != Ending::Stopped;
        if !finished {
            sentence.push_str(&format!(" in the first {:.1} s", self.run.elapsed.as_secs_f64()));
        }
        for reason in &because {
            sentence.push_str("; ");
            sentence.push_str(reason);
        }
        let mut warnings = self.warnings(request, program, expected, malloc_calls);
        for finding in &reached {
            if let Some(new) = &finding.process.new_bound_to
                && !expected.holds(new)
                && !objects::is_cxx_runtime(new)
            {
                warnings.push(format!(
                    "{} takes operator new from {}, not from the manager",
                    finding.image.exe.display(),
                    new.display()
                ));
            }
        }
        Ok(Proof {
            preload,
            sentence,
            warnings,
            linked: None,
            elsewhere: elsewhere::of(reached.iter().map(|finding| &finding.process), &request.environment),
            malloc_calls,
            free_calls,
            ptrace: self.run.traced,
            together_bytes: self.run.together_bytes,
            watched: self.run.watched,
            finished,
            outcome: self.run.ending.to_string(),
            seconds: self.run.elapsed.as_secs_f64(),
            processes: self.findings.into_iter().map(|w| w.process).collect(),
        })
    }

    /// What makes a comparison meaningless.
    fn refuse(&self, program: &ProgramFacts, expected: &Expected) -> Result<(), Refusal> {
        let main = self.findings.iter().rfind(|w| w.image.pid == self.run.pid);
        match main.and_then(|w| w.fault.clone().map(|f| (w, f))) {
            Some((finding, Fault::OwnMalloc(object))) => {
                return Err(Refusal::OwnAllocator { program: finding.image.exe.clone(), object });
            }
            Some((finding, Fault::BoundTo(bound_to))) => {
                let manager = match (&expected.layers[..], &expected.source) {
                    // Not even the first layer was reached.
                    ([first, ..], _) if !finding.process.layers.contains(first) => first.clone(),
                    (_, Source::Glibc) => PathBuf::from("glibc"),
                    (_, Source::Object(path)) => path.clone(),
                };
                return Err(Refusal::BoundElsewhere {
                    program: finding.image.exe.clone(),
                    bound_to,
                    manager,
                });
            }
            Some((finding, Fault::Unproved(layer))) => {
                return Err(Refusal::LayerUnproved { program: finding.image.exe.clone(), layer });
            }
            _ => {}
        }
        if self.findings.iter().all(|w| w.report.is_none()) {
            let reason = main.map_or_else(
                || match self.run.ending {
                    Ending::Killed(_) | Ending::Stopped => format!("it was {}", self.run.end_in_words()),
                    ending => format!("it ended with {ending}"),
                },
                |w| w.process.unreached.clone().unwrap_or_default(),
            );
            let suffix =
                self.run.stderr.lines().next().map_or_else(String::new, |l| format!("; it wrote: {l}"));
            return Err(Refusal::NeverReported { program: program.path.clone(), reason: reason + &suffix });
        }
        let time = |w: &ImageFinding| w.process.cpu_s.unwrap_or(0.0);
        let all: f64 = self.findings.iter().map(time).sum();
        let unreached: f64 = self.findings.iter().filter(|w| w.fault.is_some()).map(time).sum();
        if unreached > all / 2.0 {
            return Err(Refusal::MostlyUnreached {
                percent: (unreached / all * 100.0).round() as u32,
                detail: self.unreached().join("; "),
            });
        }
        Ok(())
    }

    /// Functions of glibc's about its own heap that the program refers to and the manager lacks.
    fn not_served(&self, program: &ProgramFacts, expected: &Expected) -> Option<String> {
        let Source::Object(manager) = &expected.source else { return None };
        if program.own_heap_calls.is_empty() {
            return None;
        }
        let served = heaptoll_elf::read(manager).ok()?.exports;
        let lacking: Vec<&str> =
            program.own_heap_calls.iter().filter(|name| !served.contains(name)).map(String::as_str).collect();
        (!lacking.is_empty()).then(|| {
            format!(
                "the program refers to {}, which the manager lacks: glibc answers for its own heap, not for the \
                 measured one",
                lacking.join(", ")
            )
        })
    }

    /// What killed a program in which glibc found a block that another manager had made.
    fn foreign_free(&self, expected: &Expected) -> Option<String> {
        let Source::Object(_) = &expected.source else { return None };
        let wrote = self.run.stderr.lines().find(|line| FOREIGN_BLOCK.contains(line))?;
        Some(format!(
            ": glibc wrote \"{wrote}\", so a block of the manager may have reached glibc's free. A library opened \
             with RTLD_DEEPBIND, or bound to the C library otherwise, calls glibc's free"
        ))
    }

    /// Programs that are not reached, each with the reason, the number of times and the share of CPU time.
    fn unreached(&self) -> Vec<String> {
        let all: f64 = self.findings.iter().filter_map(|w| w.process.cpu_s).sum();
        let mut groups: BTreeMap<(PathBuf, String), (u32, f64)> = BTreeMap::new();
        for finding in &self.findings {
            if let Some(why) = &finding.process.unreached {
                let group = groups.entry((finding.image.exe.clone(), why.clone())).or_default();
                group.0 += 1;
                group.1 += finding.process.cpu_s.unwrap_or(0.0);
            }
        }
        groups
            .into_iter()
            .map(|((exe, why), (times, cpu))| {
                let times = if times == 1 { String::new() } else { format!(", {times} times") };
                let share = if all > 0.0 {
                    format!(", {:.0} % of the run's CPU time", cpu / all * 100.0)
                } else {
                    String::new()
                };
                format!("{} {why}{times}{share}", exe.display())
            })
            .collect()
    }

    fn warnings(
        &self,
        request: &Request,
        program: &ProgramFacts,
        expected: &Expected,
        calls: u64,
    ) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.unreached().into_iter().map(|u| format!("not reached by the manager: {u}")).collect();
        warnings.extend(judge::strays(&self.findings, expected));
        warnings.extend(judge::fallthroughs(&self.findings, expected));
        warnings.extend(self.not_served(program, expected));
        warnings.extend(replaced_peak(&self.run));
        let cpu: f64 = self.findings.iter().filter_map(|w| w.process.cpu_s).sum();
        if calls < FEW_CALLS && (cpu > WORKING || !program.hidden_allocator.is_empty()) {
            let inside = if program.hidden_allocator.is_empty() {
                "it may have an allocator inside".to_owned()
            } else {
                format!("it defines {} inside", program.hidden_allocator.join(", "))
            };
            warnings.push(format!(
                "the program made only {calls} malloc calls: {inside}, and managers will hardly differ"
            ));
        }
        match self.run.ending {
            Ending::Exited(0) | Ending::Stopped => {}
            Ending::Killed(_) => {
                let cause = self.foreign_free(expected).unwrap_or_default();
                warnings.push(format!("the program was {} {IN_PROOF_RUN}{cause}", self.run.end_in_words()));
            }
            ending => warnings.push(format!("the program ended with {ending} {IN_PROOF_RUN}")),
        }
        if !self.run.traced {
            warnings.push(
                "ptrace is not permitted here: processes that never load the manager cannot be named"
                    .to_owned(),
            );
        }
        if self.left_out > 0 {
            warnings
                .push(format!("{} processes were too many to count; their calls are missing", self.left_out));
        }
        if self.reports().any(|r| r.cut) {
            warnings.push(
                "a process loaded more objects than the report has space for; some were not checked"
                    .to_owned(),
            );
        }
        if request.environment.iter().any(|(n, _)| n == "LD_PRELOAD") {
            warnings.push("LD_PRELOAD was set in the environment and is replaced".to_owned());
        }
        warnings
    }
}

/// `/q.so, which forwards to /m.so`: where calls of a process go.
fn way_in_words(process: &ProcessProof) -> String {
    let objects: Vec<String> = process
        .layers
        .iter()
        .chain(&process.malloc_bound_to)
        .map(|object| object.display().to_string())
        .collect();
    objects.join(", which forwards to ")
}
