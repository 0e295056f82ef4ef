//! The machine and the plan.

use heaptoll_experiment::experiment::Experiment;

use super::nodes;
use crate::format::{self, plural};

/// When and how it was measured, in one line.
pub(super) fn plan(experiment: &Experiment) -> String {
    let settings = &experiment.settings;
    format!(
        "heaptoll {} · {} · {} after {} warm-up · seed {}",
        experiment.heaptoll_version,
        format::date(experiment.created_unix_s),
        plural(settings.repetitions as usize, "repetition"),
        settings.warmup,
        settings.seed
    )
}

/// Where it was measured.
pub(super) fn lines(experiment: &Experiment) -> Vec<String> {
    let machine = &experiment.machine;
    let set = &experiment.settings.thp;
    let mut lines = vec![format!(
        "{}, {}, {} MiB · {}, Linux {}, glibc {} · THP {} · load {:.2}",
        machine.cpu,
        plural(machine.cores as usize, "core"),
        format::mib_from_kib(machine.memory_kib as f64),
        machine.distribution,
        machine.kernel,
        machine.libc,
        if set.is_empty() { &machine.thp } else { set },
        machine.load[0]
    )];
    lines.extend(nodes::measured_by(experiment));
    lines
}

/// What measuring costs, and what could not be counted.
pub(super) fn limits(experiment: &Experiment) -> Vec<String> {
    let why = experiment.machine.no_hardware_counters.as_ref();
    let own = experiment.own_cost.map(|(s, kib)| {
        format!("Heaptoll's own cost: {} an invocation, above fork and exec.", format::own_cost(s, kib))
    });
    own.into_iter().chain(why.map(|why| format!("No hardware counters: {why}."))).collect()
}

/// The machine and the settings by name.
pub(super) fn facts(experiment: &Experiment) -> Vec<(String, String)> {
    let machine = &experiment.machine;
    let settings = &experiment.settings;
    let thp = match settings.thp.as_str() {
        "" => format!("{} (the system's setting)", machine.thp),
        set => format!("{set} (set for each process; the system has {})", machine.thp),
    };
    let aslr = match machine.aslr.as_str() {
        "0" => "off",
        "1" => "on, without the heap",
        "2" => "on",
        other => other,
    };
    let plan = format!(
        "{} after {} warm-up, seed {}, time limit {} s",
        plural(settings.repetitions as usize, "repetition"),
        settings.warmup,
        settings.seed,
        settings.timeout_s
    );
    let cores = plural(machine.cores as usize, "core");
    let counters = machine.no_hardware_counters.as_deref();
    [
        ("Processor", format!("{}, {cores} usable", machine.cpu)),
        ("Memory", format!("{} MiB", format::mib_from_kib(machine.memory_kib as f64))),
        ("System", format!("{}, Linux {}", machine.distribution, machine.kernel)),
        ("glibc", machine.libc.clone()),
        ("Transparent huge pages", thp),
        ("Frequency governor", machine.governor.clone()),
        ("Address randomisation", aslr.to_owned()),
        ("Load at the start", machine.load.map(|load| format!("{load:.2}")).join(", ")),
        ("Hardware counters", counters.map_or("yes".to_owned(), |why| format!("none: {why}"))),
        ("Plan", plan),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into()
}
