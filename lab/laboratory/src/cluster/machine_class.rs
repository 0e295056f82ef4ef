//! A class of machines: what must be equal for figures of two of them to be averaged.

use std::fmt;

use heaptoll_experiment::machine;
use heaptoll_experiment::shards::named_for;
use heaptoll_locality::machine::Machine as Caches;
use heaptoll_units::size_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Share of the class's memory that a machine must have, in eighths: firmware and the kernel keep some, and not the same
/// on each.
const LEAST_EIGHTHS: u64 = 7;

/// What machines of one class have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineClass {
    /// Its name in reports.
    pub name: String,
    /// CPU model name.
    pub cpu: String,
    /// Logical processors that a shard may use: of its cpuset, not of the machine.
    pub processors: u32,
    /// Data caches, from the first level: bytes and ways, as in `32K/8`. Empty where the kernel does not report them.
    pub caches: Vec<String>,
    /// Physical memory, KiB; a machine of the class has seven eighths of it or more.
    pub memory_kib: u64,
    /// Kernel release.
    pub kernel: String,
    /// The system's setting of transparent huge pages.
    pub thp: String,
    /// CPU frequency governor, or `unknown`.
    pub governor: String,
    /// Address-space randomisation as the kernel has it.
    pub aslr: String,
}

/// In what a machine is not of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub what: &'static str,
    /// On this machine.
    pub here: String,
    /// In the class.
    pub class: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {} here and {} in the plan", self.what, self.here, self.class)
    }
}

impl MachineClass {
    /// The class of this machine, named for its processor.
    pub fn here() -> MachineClass {
        let machine = machine::read();
        let caches = Caches::at_hand().map_or(vec![], |caches| caches.levels);
        let cache =
            |level: &heaptoll_locality::machine::Level| format!("{}/{}", size_text(level.bytes), level.ways);
        MachineClass {
            name: named_for(&machine.cpu),
            processors: machine.cores,
            caches: caches.iter().map(cache).collect(),
            memory_kib: machine.memory_kib,
            cpu: machine.cpu,
            kernel: machine.kernel,
            thp: machine.thp,
            governor: machine.governor,
            aslr: machine.aslr,
        }
    }

    /// In what a machine of class `here` is not of this one; empty where it is.
    pub fn differences(&self, here: &MachineClass) -> Vec<Difference> {
        let processors = |class: &MachineClass| class.processors.to_string();
        let memory = |class: &MachineClass| format!("{} MiB", class.memory_kib / 1024);
        let caches = |class: &MachineClass| match class.caches.as_slice() {
            [] => "unknown".to_owned(),
            known => known.join(", "),
        };
        let unequal = [
            ("the processor", here.cpu.clone(), self.cpu.clone()),
            ("the number of usable processors", processors(here), processors(self)),
            ("the list of caches", caches(here), caches(self)),
            ("the kernel", here.kernel.clone(), self.kernel.clone()),
            ("the setting of transparent huge pages", here.thp.clone(), self.thp.clone()),
            ("the frequency governor", here.governor.clone(), self.governor.clone()),
            ("address randomisation", here.aslr.clone(), self.aslr.clone()),
        ];
        let mut found: Vec<Difference> = unequal
            .into_iter()
            .filter(|(_, here, class)| here != class)
            .map(|(what, here, class)| Difference { what, here, class })
            .collect();
        if here.memory_kib < self.memory_kib / 8 * LEAST_EIGHTHS {
            found.push(Difference { what: "the memory", here: memory(here), class: memory(self) });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_of_its_own_class() {
        let here = MachineClass::here();
        assert!(here.differences(&MachineClass::here()).is_empty());
        assert!(here.processors > 0 && !here.name.is_empty());
    }

    #[test]
    fn what_differs_is_named_with_both_values() {
        let class = MachineClass { kernel: "6.1".into(), thp: "never".into(), ..MachineClass::default() };
        let here = MachineClass { kernel: "6.5".into(), thp: "always".into(), ..MachineClass::default() };
        let found: Vec<String> = class.differences(&here).iter().map(Difference::to_string).collect();
        assert_eq!(
            found,
            [
                "the kernel is 6.5 here and 6.1 in the plan",
                "the setting of transparent huge pages is always here and never in the plan"
            ]
        );
    }

    #[test]
    fn a_little_less_memory_is_the_same_class_and_half_is_not() {
        let of = |memory_kib| MachineClass { memory_kib, ..MachineClass::default() };
        assert!(of(8 << 20).differences(&of((8 << 20) - (1 << 19))).is_empty());
        assert!(of(8 << 20).differences(&of(64 << 20)).is_empty(), "more is enough");
        assert_eq!(of(8 << 20).differences(&of(4 << 20))[0].what, "the memory");
    }
}
