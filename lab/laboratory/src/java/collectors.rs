//! The collectors of OpenJDK as stacks: `managers/NAME.toml` describes each.

use heaptoll_experiment::manager::Manager;

use crate::java::gc_log::Collector;

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

#[cfg(test)]
pub(super) mod tests {
    use heaptoll_experiment::manager::{find, known_with_java};
    use heaptoll_experiment::places::Places;

    use super::*;

    /// A stack of the staged build.
    pub fn stack(word: &str) -> Manager {
        let places = Places::find().expect("it is staged: run make stage-tests");
        find(&known_with_java(&places).expect("managers"), word).expect(word)
    }

    fn options_of(word: &str) -> String {
        let found = stack(word);
        assert_eq!(found.environment.len(), 1);
        found.environment[0].1.clone()
    }

    #[test]
    fn each_collector_has_a_heap_and_writes_a_log() {
        for collector in Collector::ALL {
            let set = options_of(&format!("{},heap=64M", name(collector)));
            assert!(set.starts_with("-XX:+Use") && set.ends_with(" -Xms67108864 -Xmx67108864"), "{set}");
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
