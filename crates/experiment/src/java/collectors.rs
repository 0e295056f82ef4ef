//! The collectors of OpenJDK as stacks.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::gc_log::Collector;

use super::names::{FOLDER, LOG, VARIABLE};
use crate::manager::{self, Group, Manager, ManagerError, ManagerSource, glibc};
use crate::places::Places;
use crate::stack::ManagerOption;

static OPTIONS: LazyLock<BTreeMap<String, BTreeMap<String, ManagerOption>>> =
    LazyLock::new(|| toml::from_str(include_str!("options.toml")).unwrap_or_default());

/// The name of a collector as a stack.
pub(super) const fn name(collector: Collector) -> &'static str {
    match collector {
        Collector::Serial => "jvm-serial",
        Collector::Parallel => "jvm-parallel",
        Collector::G1 => "jvm-g1",
        Collector::Shenandoah => "jvm-shenandoah",
        Collector::Z => "jvm-zgc",
    }
}

/// The collector that a stack chooses.
pub(super) fn collector_of(manager: &Manager) -> Option<Collector> {
    Collector::ALL.into_iter().find(|collector| name(*collector) == manager.base)
}

/// Whether a stack is a collector of the virtual machine.
pub fn is_java(manager: &Manager) -> bool {
    manager.kind == ManagerSource::Java
}

/// Whether the environment of a stack chooses a collector of the virtual machine.
pub fn is_set(environment: &[(String, String)]) -> bool {
    environment.iter().any(|(name, value)| name == VARIABLE && value.contains(FOLDER))
}

fn about(collector: Collector) -> &'static str {
    match collector {
        Collector::Serial => "Java's single-threaded collector: copies the young, marks and compacts the old",
        Collector::Parallel => "Java's throughput collector: the same with several threads",
        Collector::G1 => "Java's default: regions, marked while the program runs, evacuated in pauses",
        Collector::Shenandoah => "Java's Shenandoah: marks and copies while the program runs",
        Collector::Z => "Java's ZGC: marks and copies while the program runs, with coloured pointers",
    }
}

/// The option that selects it.
fn switch(collector: Collector) -> &'static str {
    match collector {
        Collector::Serial => "-XX:+UseSerialGC",
        Collector::Parallel => "-XX:+UseParallelGC",
        Collector::G1 => "-XX:+UseG1GC",
        Collector::Shenandoah => "-XX:+UseShenandoahGC",
        Collector::Z => "-XX:+UseZGC",
    }
}

/// Every manager known on this machine and the collectors of Java, for commands that run whole programs: these serve no
/// malloc.
///
/// # Errors
/// As [`manager::known`].
pub fn known(places: &Places) -> Result<Vec<Manager>, ManagerError> {
    Ok(manager::known(places)?.into_iter().chain(collectors()).collect())
}

/// All collectors of HotSpot, whether the JDK here has them or not: that is found for each program, which may bring a
/// virtual machine of its own.
pub fn collectors() -> impl Iterator<Item = Manager> {
    Collector::ALL.into_iter().map(stack)
}

fn stack(collector: Collector) -> Manager {
    let name = name(collector);
    // Only ZGC reports its pauses as phases alone.
    let phases = if collector == Collector::Z { ",gc+phases" } else { "" };
    let file = format!("{FOLDER}/{}%p{}", LOG.0, LOG.1);
    // Quoted twice: folders may have spaces for the virtual machine, and colons for the option.
    let log = format!("'-Xlog:gc,gc+init{phases}:file=\"{file}\":tn,level,tags:filecount=0'");
    Manager {
        name: name.into(),
        base: name.into(),
        object: None,
        environment: vec![(VARIABLE.into(), format!("{} {log}", switch(collector)))],
        version: "as the program's JDK".into(),
        origin: "the Java virtual machine that the program runs in".into(),
        about: about(collector).into(),
        kind: ManagerSource::Java,
        group: Group::Jvm,
        options: OPTIONS.get(name).cloned().unwrap_or_default(),
        ..glibc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::find;

    fn options_of(word: &str) -> String {
        let known: Vec<Manager> = collectors().collect();
        let found = find(&known, word).expect(word);
        assert_eq!(found.environment.len(), 1);
        found.environment[0].1.clone()
    }

    #[test]
    fn each_collector_has_a_heap_and_writes_a_log() {
        assert_eq!(OPTIONS.len(), Collector::ALL.len());
        for collector in Collector::ALL {
            let set = options_of(&format!("{},heap=64M", name(collector)));
            assert!(
                set.starts_with(switch(collector)) && set.ends_with(" -Xms67108864 -Xmx67108864"),
                "{set}"
            );
            assert!(set.contains("file=\"{tmp}/heaptoll-gc-%p.log\""), "{set}");
        }
    }

    #[test]
    fn several_options_are_one_variable() {
        assert!(
            options_of("jvm-g1,heap=64M,threads=2")
                .ends_with(" -Xms67108864 -Xmx67108864 -XX:ParallelGCThreads=2 -XX:ConcGCThreads=2")
        );
        assert!(options_of("jvm-serial,every=4M").ends_with(" -Xmn4194304"));
    }
}
