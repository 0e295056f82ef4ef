//! From what was seen of a run to a verdict: where each process gets its memory, and whether that is the manager.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use heaptoll_stats_page::{SlotRecord, WriterKind};

use crate::binding::Report;
use crate::objects::{is_cxx_runtime, is_libc, same_file};
use crate::proof::ProcessProof;
use crate::tree::{Image, Run};
use heaptoll_elf::{self as elf, ElfError};

/// Where blocks are expected to come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// glibc itself, wherever the loader found it.
    Glibc,
    /// This object.
    Object(PathBuf),
}

impl Source {
    /// Whether an object, as the loader names it, is the expected one.
    pub fn is(&self, object: &Path) -> bool {
        match self {
            Source::Glibc => is_libc(object),
            Source::Object(path) => same_file(path, object),
        }
    }
}

/// The path that calls are expected to take after the counting layer.
#[derive(Debug, Clone)]
pub struct Expected {
    /// Layers that they pass, the program's first.
    pub layers: Vec<PathBuf>,
    /// The object that serves them.
    pub source: Source,
}

impl Expected {
    /// Whether an object is on that way.
    pub fn holds(&self, object: &Path) -> bool {
        self.source.is(object) || self.layers.iter().any(|layer| same_file(layer, object))
    }
}

/// One image with what it reported.
#[derive(Debug)]
pub struct ImageFinding {
    /// The `exec`.
    pub image: Image,
    /// Its latest report, its own process preferred to those forked from it.
    pub report: Option<Report>,
    /// What it comes to.
    pub process: ProcessProof,
    /// Why it is not reached.
    pub fault: Option<Fault>,
}

/// Why an image does not get its memory from the manager.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// It never loaded the layer; why, in words.
    Silent(String),
    /// It has its own malloc.
    OwnMalloc(PathBuf),
    /// Its malloc is another object's.
    BoundTo(PathBuf),
    /// A layer did not report what it forwards to.
    Unproved(PathBuf),
}

impl Fault {
    /// As a message.
    pub fn message(&self) -> String {
        match self {
            Fault::Silent(why) => why.clone(),
            Fault::OwnMalloc(object) => {
                format!("uses the malloc of {}, which takes precedence over preloading", object.display())
            }
            Fault::BoundTo(object) => format!("has its malloc bound to {}", object.display()),
            Fault::Unproved(layer) => {
                format!("loaded {}, which never reported its next allocator", layer.display())
            }
        }
    }
}

/// Brings images, reports and counts together.
pub fn findings(
    run: &Run,
    reports: &[Report],
    slots: &[SlotRecord],
    expected: &Expected,
    layer: &Path,
) -> Vec<ImageFinding> {
    let (images, changes) = if run.traced {
        (run.images.clone(), run.changes.clone())
    } else {
        images_from_reports(reports, slots)
    };
    let image_at = |pid: i32, time: u64| {
        if run.traced {
            return run.image_at(pid, time);
        }
        changes.iter().rfind(|c| c.0 == pid && c.1 <= time).map(|c| c.2)
    };
    let mut latest: BTreeMap<usize, &Report> = BTreeMap::new();
    for report in reports {
        let Some(number) = image_at(report.pid, report.time_ns) else { continue };
        let own = images.get(number).is_some_and(|i| i.pid == report.pid);
        if own || !latest.contains_key(&number) {
            latest.insert(number, report);
        }
    }
    let mut counts: BTreeMap<usize, (u64, u64, u64)> = BTreeMap::new();
    for slot in slots.iter().filter(is_counting) {
        // Without ptrace a forked child is known by its parent.
        let number =
            image_at(slot.pid, slot.claimed_ns).or_else(|| image_at(slot.parent_pid, slot.claimed_ns));
        if let Some(number) = number {
            let count = counts.entry(number).or_default();
            // Any figure may stand in a page that processes share.
            count.0 = count.0.saturating_add(slot.malloc_calls).saturating_add(slot.realloc_calls);
            count.1 = count.1.saturating_add(slot.free_calls);
            count.2 = count.2.saturating_add(slot.requested_bytes);
        }
    }
    images
        .into_iter()
        .enumerate()
        .map(|(number, image)| {
            let report = latest.get(&number).map(|&r| r.clone());
            let fault = fault(&image, report.as_ref(), expected, layer);
            let (malloc_calls, free_calls, requested_bytes) =
                counts.get(&number).copied().unwrap_or_default();
            let bound = |symbol: &str| {
                let report = report.as_ref()?;
                let default = report.default.get(symbol)?;
                if *default == report.layer {
                    report.next.get(symbol).cloned()
                } else {
                    Some(default.clone())
                }
            };
            let (layers, end) =
                report.as_ref().map(|report| way(report, bound("malloc"))).unwrap_or_default();
            let process = ProcessProof {
                exe: image.exe.clone(),
                pid: image.pid,
                layers,
                malloc_bound_to: end,
                new_bound_to: bound("_Znwm"),
                malloc_calls,
                free_calls,
                requested_bytes,
                anonymous_bytes: image.anonymous_bytes,
                cpu_s: run.traced.then_some(image.cpu_ns as f64 / 1e9),
                unreached: fault.as_ref().map(Fault::message),
            };
            ImageFinding { image, report, process, fault }
        })
        .collect()
}

/// Slots of the counting layer; other layers have some, too.
fn is_counting(slot: &&SlotRecord) -> bool {
    slot.kind == WriterKind::Layer && slot.writer == "count"
}

/// The layers that calls pass from `first` on, and where they end.
fn way(report: &Report, first: Option<PathBuf>) -> (Vec<PathBuf>, Option<PathBuf>) {
    let mut layers = Vec::new();
    let mut at = first;
    while let Some(next) = at.as_ref().and_then(|object| report.forwards_to.get(object))
        // The bound ends the walk when a damaged report has a cycle.
        && layers.len() <= report.forwards_to.len()
    {
        layers.extend(at.replace(next.clone()));
    }
    (layers, at)
}

/// Without ptrace only those images are known that reported their start. Each began at the latest when it claimed its
/// slot, which it does before it reports.
fn images_from_reports(reports: &[Report], slots: &[SlotRecord]) -> (Vec<Image>, Vec<(i32, u64, usize)>) {
    let mut images = Vec::new();
    let mut changes = Vec::new();
    for report in reports.iter().filter(|r| !r.at_exit) {
        let mine = slots.iter().filter(is_counting).filter(|s| s.pid == report.pid);
        let claimed = mine.map(|s| s.claimed_ns).filter(|&c| c <= report.time_ns).max();
        changes.push((report.pid, claimed.unwrap_or(report.time_ns), images.len()));
        images.push(Image {
            pid: report.pid,
            exe: report.exe.clone(),
            user: report.user,
            loader: true,
            secure: false,
            preload: None,
            cpu_ns: 0,
            anonymous_bytes: 0,
        });
    }
    (images, changes)
}

fn fault(image: &Image, report: Option<&Report>, expected: &Expected, layer: &Path) -> Option<Fault> {
    match report {
        Some(report) => misbinding(report, expected),
        None => Some(Fault::Silent(silence(image, layer))),
    }
}

/// The misbinding that a report shows in its process.
pub fn misbinding(report: &Report, expected: &Expected) -> Option<Fault> {
    let default = report.default.get("malloc").cloned().unwrap_or_default();
    if default != report.layer {
        return Some(Fault::OwnMalloc(default));
    }
    let mut next = report.next.get("malloc").cloned().unwrap_or_default();
    for layer in &expected.layers {
        if !same_file(layer, &next) {
            return Some(Fault::BoundTo(next));
        }
        match report.forwards_to.get(&next) {
            Some(forwards_to) => next = forwards_to.clone(),
            None => return Some(Fault::Unproved(layer.clone())),
        }
    }
    (!expected.source.is(&next)).then_some(Fault::BoundTo(next))
}

/// Why an image did not load the layer, as far as is visible from outside.
fn silence(image: &Image, layer: &Path) -> String {
    if let Err(ElfError::Foreign(machine)) = elf::read(&image.exe) {
        return format!("is built for {machine}");
    }
    if !image.loader {
        return "is statically linked".to_owned();
    }
    if image.secure {
        return "runs with privileges (set-user-ID or the like), so the loader ignores LD_PRELOAD".to_owned();
    }
    let layer = layer.as_os_str();
    let preloaded = image
        .preload
        .as_deref()
        .is_some_and(|p| p.as_bytes().split(|&b| b == b':').any(|o| OsStr::from_bytes(o) == layer));
    if !preloaded {
        return "was started with an environment from which LD_PRELOAD was removed".to_owned();
    }
    if let Ok(elf) = elf::read(&image.exe)
        && elf.loader.as_deref().is_some_and(|l| l.contains("ld-musl"))
    {
        return "uses another C library than glibc".to_owned();
    }
    "ended before it loaded anything, could not load it, or may not write its report".to_owned()
}

/// Objects that use an allocator of their own or another one than the manager: plug-ins opened with `RTLD_DEEPBIND`,
/// libraries linked with `-Bsymbolic`.
pub fn strays(findings: &[ImageFinding], expected: &Expected) -> Vec<String> {
    let mut seen: BTreeMap<(PathBuf, PathBuf), BTreeSet<String>> = BTreeMap::new();
    for report in findings.iter().filter_map(|w| w.report.as_ref()) {
        for (owner, symbol, object) in &report.elsewhere {
            // The manager and the runtime libraries may call themselves; the operators of the C++ runtime end in
            // malloc, which is judged by itself.
            let expected_binding = expected.holds(owner)
                || is_libc(owner)
                || expected.holds(object)
                || is_cxx_runtime(object)
                || report.default.get("malloc") == Some(object);
            if !expected_binding {
                seen.entry((owner.clone(), object.clone())).or_default().insert(symbol.clone());
            }
        }
    }
    seen.into_iter()
        .map(|((owner, object), symbols)| {
            let symbols = symbols.into_iter().collect::<Vec<_>>().join(", ");
            if owner == object {
                format!("{} calls its own {symbols}: these blocks do not come from the manager", owner.display())
            } else {
                format!(
                    "{} is bound to the {symbols} of {} (RTLD_DEEPBIND or similar): these blocks do not come from \
                     the manager",
                    owner.display(),
                    object.display()
                )
            }
        })
        .collect()
}

/// Functions that the program refers to and the manager lacks: where they come from instead.
pub fn fallthroughs(findings: &[ImageFinding], expected: &Expected) -> Vec<String> {
    let mut seen: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for report in findings.iter().filter(|w| w.fault.is_none()).filter_map(|w| w.report.as_ref()) {
        for (symbol, object) in &report.next {
            // glibc's reallocarray only calls realloc; operators are judged apart.
            let harmless = symbol == "reallocarray" && is_libc(object);
            if !symbol.starts_with("_Z")
                && !harmless
                && !expected.holds(object)
                && report.referenced.contains(symbol)
            {
                seen.entry(object.clone()).or_default().insert(symbol.clone());
            }
        }
    }
    seen.into_iter()
        .map(|(object, symbols)| {
            let symbols = symbols.into_iter().collect::<Vec<_>>().join(", ");
            format!(
                "the program refers to {symbols}, which the manager lacks: in measured runs {} answers with its own \
                 heap",
                object.display()
            )
        })
        .collect()
}
