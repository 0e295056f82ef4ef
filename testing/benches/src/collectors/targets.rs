//! The targets of Tithe's modes, and how far a figure is from one.

use serde::Serialize;

/// A few MiB decide nothing on a program of 3 MiB: so much more than glibc costs nothing, KiB.
const FREE_KIB: f64 = 4096.0;

/// Memory over the baseline's, the first 4 MiB of difference not counted: 1 + max(0, ours - base - 4 MiB) / base.
pub fn excess(ours_kib: f64, base_kib: f64) -> f64 {
    1.0 + (ours_kib - base_kib - FREE_KIB).max(0.0) / base_kib
}

/// A limit of CPU and one of excess memory, both over glibc's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limit {
    /// CPU.
    pub cpu: f64,
    /// Excess memory.
    pub memory: f64,
}

/// The target of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Target {
    /// The manager.
    pub manager: &'static str,
    /// Geometric means over the programs.
    pub mean: Limit,
    /// Any single program.
    pub single: Limit,
    /// A program with a limit of its own.
    pub except: Option<(&'static str, Limit)>,
}

/// The targets of Tithe's three modes.
pub const TARGETS: [Target; 3] = [
    Target {
        manager: "tithe-explicit",
        mean: Limit { cpu: 0.93, memory: 1.10 },
        single: Limit { cpu: 1.10, memory: 1.5 },
        except: None,
    },
    Target {
        manager: "tithe",
        mean: Limit { cpu: 0.95, memory: 1.15 },
        single: Limit { cpu: 1.15, memory: 1.6 },
        except: None,
    },
    Target {
        manager: "tithe-collect",
        mean: Limit { cpu: 1.15, memory: 1.40 },
        single: Limit { cpu: 1.5, memory: 2.0 },
        except: Some(("make", Limit { cpu: 3.0, memory: 1.6 })),
    },
];

/// The target of a manager, if it has one.
pub fn target(manager: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.manager == manager)
}

impl Target {
    /// The limit of a program.
    pub fn of_program(&self, program: &str) -> Limit {
        match self.except {
            Some((name, limit)) if name == program => limit,
            _ => self.single,
        }
    }
}

/// `pass`, or by how much it is missed.
pub fn verdict(value: f64, limit: f64) -> String {
    if value <= limit { "pass".into() } else { format!("miss by {:.1} %", (value / limit - 1.0) * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_four_mebibytes_are_free() {
        assert_eq!(excess(3000.0 + 4096.0, 3000.0), 1.0);
        assert_eq!(excess(1000.0, 3000.0), 1.0);
        assert_eq!(excess(3000.0 + 4096.0 + 1500.0, 3000.0), 1.5);
    }

    #[test]
    fn make_has_a_limit_of_its_own_in_one_mode() {
        let collect = target("tithe-collect").expect("a target");
        assert_eq!(collect.of_program("make").cpu, 3.0);
        assert_eq!(collect.of_program("perl").cpu, 1.5);
        assert!(target("bdw").is_none());
        assert_eq!(verdict(1.2, 1.0), "miss by 20.0 %");
        assert_eq!(verdict(1.0, 1.0), "pass");
    }
}
