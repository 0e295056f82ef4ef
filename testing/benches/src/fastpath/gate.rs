//! The paths that each manager must have.

use crate::fastpath::tracer::{Operation, Path};

/// The requirement on a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Operations that must have neither loop nor call where a free list has a block.
    pub operations: &'static [Operation],
    /// The largest blocks that come from such a list, bytes.
    pub most_bytes: usize,
    /// Whether the shortest of the rounds decides: where there is no list, the heap must grow now and then.
    pub shortest: bool,
}

/// The gate of a manager. For lea it is free alone, which only links the block: a later malloc settles the rest. For
/// bump it is malloc, which has no list but an address to continue from. quickfit has lists for small sizes; lea does
/// the rest for it.
pub fn gate(manager: &str) -> Gate {
    let (operations, most_bytes): (&[Operation], usize) = match manager {
        "kingsley" | "pow2" => (&[Operation::Malloc, Operation::Free], usize::MAX),
        "quickfit" => (&[Operation::Malloc, Operation::Free], 64),
        "lea" => (&[Operation::Free], usize::MAX),
        "bump" => (&[Operation::Malloc], usize::MAX),
        _ => (&[], 0),
    };
    Gate { operations, most_bytes, shortest: manager == "bump" }
}

impl Gate {
    /// Whether nothing is required.
    pub fn is_open(&self) -> bool {
        self.operations.is_empty()
    }

    fn demands(&self, path: &Path) -> bool {
        self.operations.contains(&path.operation) && path.bytes <= self.most_bytes
    }
}

/// Whether the gate holds for one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is required of it.
    Free,
    /// Neither loop nor call.
    Held,
    /// Its loops and calls, and where.
    Broken(String),
}

impl Verdict {
    /// Judges all paths of a manager.
    pub fn of_all(manager: &str, paths: &[Path]) -> Vec<Verdict> {
        let gate = gate(manager);
        let same =
            |a: &Path, b: &Path| (a.operation, a.bytes, a.threads) == (b.operation, b.bytes, b.threads);
        let longer = |path: &Path| {
            paths.iter().any(|other| same(path, other) && other.instructions < path.instructions)
        };
        paths
            .iter()
            .map(|path| match !gate.demands(path) || gate.shortest && longer(path) {
                true => Verdict::Free,
                false => Verdict::strict(path),
            })
            .collect()
    }

    /// Judges one path of a manager.
    pub fn of(manager: &str, path: &Path) -> Verdict {
        if gate(manager).demands(path) { Verdict::strict(path) } else { Verdict::Free }
    }

    /// Judges a path as if it were gated.
    pub fn strict(path: &Path) -> Verdict {
        let mut faults = vec![];
        if let Some(first) = path.loops.first() {
            faults.push(format!("a loop: {} instructions run again, the first at {first}", path.loops.len()));
        }
        if let Some((from, to)) = path.calls.first() {
            faults.push(format!("{} calls, the first at {from} to {to}", path.calls.len()));
        }
        if path.system_calls > 0 {
            faults.push(format!("{} system calls", path.system_calls));
        }
        if faults.is_empty() {
            return Verdict::Held;
        }
        let threads = if path.threads { " (with a second thread)" } else { "" };
        Verdict::Broken(format!(
            "{} of {} bytes{threads} has {}; it takes {} instructions",
            path.operation,
            path.bytes,
            faults.join(" and "),
            path.instructions
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fastpath::CodeLocation;

    fn path(operation: Operation) -> Path {
        Path {
            operation,
            bytes: 40,
            threads: false,
            instructions: 20,
            stack_bytes: 0,
            loops: vec![CodeLocation { object: "x.so".into(), offset: 0x10 }],
            calls: vec![],
            system_calls: 0,
        }
    }

    #[test]
    fn lea_is_held_to_its_free_only() {
        assert_eq!(Verdict::of("lea", &path(Operation::Malloc)), Verdict::Free);
        assert!(matches!(Verdict::of("lea", &path(Operation::Free)), Verdict::Broken(_)));
        assert_eq!(Verdict::of("knuth", &path(Operation::Free)), Verdict::Free);
    }

    #[test]
    fn bump_may_grow_but_not_always() {
        let grows = path(Operation::Malloc);
        let goes_on = Path { instructions: 9, loops: vec![], ..grows.clone() };
        let verdicts = Verdict::of_all("bump", &[grows.clone(), goes_on.clone()]);
        assert_eq!(verdicts, [Verdict::Free, Verdict::Held]);
        assert!(matches!(Verdict::of_all("bump", std::slice::from_ref(&grows))[..], [Verdict::Broken(_)]));
        assert!(matches!(
            Verdict::of_all("pow2", &[goes_on, grows])[..],
            [Verdict::Held, Verdict::Broken(_)]
        ));
    }

    #[test]
    fn quickfit_is_held_to_the_sizes_it_has_lists_for() {
        let large = Path { bytes: 65, ..path(Operation::Free) };
        assert_eq!(Verdict::of("quickfit", &large), Verdict::Free);
        assert!(matches!(Verdict::of("quickfit", &path(Operation::Free)), Verdict::Broken(_)));
        assert!(gate("glibc").is_open() && !gate("pow2").is_open());
    }

    #[test]
    fn a_fault_is_reported_with_its_location() {
        let Verdict::Broken(text) = Verdict::strict(&path(Operation::Malloc)) else {
            panic!("it has a loop")
        };
        assert_eq!(
            text,
            "malloc of 40 bytes has a loop: 1 instructions run again, the first at x.so+0x10; it takes 20 instructions"
        );
    }
}
