//! The machine whose data caches are simulated, and their misses in the form in which rows store them.

use heaptoll_experiment::observation::{ByOwner, GeometryMisses};
use heaptoll_locality::hierarchy::all;
use heaptoll_locality::image::Levels;
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::Split;
use heaptoll_units::size_text;

/// The machine, and the source of its figures.
///
/// # Errors
/// The text describes no machine.
pub fn choose(cache: Option<&str>, latency: Option<&str>) -> Result<(Machine, &'static str), String> {
    let (machine, origin) = match cache {
        Some(text) => (text.parse::<Machine>().map_err(|error| error.to_string())?, "as given"),
        None => match Machine::at_hand() {
            Some(machine) => (machine, "the data caches of this machine, as its kernel reports them"),
            None => (
                Machine::usual(),
                "a usual machine, because the kernel does not report the caches of \
                                        this one",
            ),
        },
    };
    let machine = match latency {
        Some(text) => machine.with_latencies(text).map_err(|error| error.to_string())?,
        None => machine,
    };
    Ok((machine, origin))
}

/// References or misses by owner: system calls count as the program's.
pub fn owners(split: &Split<u64>) -> ByOwner {
    ByOwner {
        program: split.program + split.system,
        allocator: split.allocator,
        collector: split.collections(),
    }
}

/// Misses of its caches.
pub fn misses(machine: &Machine, levels: &Levels) -> Vec<GeometryMisses> {
    let caches = machine.levels.iter().zip(&machine.cycles).zip(levels);
    caches
        .map(|((level, cycles), misses)| GeometryMisses {
            cache: format!("{}/{}", size_text(level.bytes), level.ways),
            misses: owners(&all(misses)),
            wait_cycles: Some(*cycles),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_requested_or_detected() {
        let (machine, origin) = choose(Some("32K/8,1M/16"), Some("10,300")).expect("a machine");
        assert_eq!((machine.cycles, origin), (vec![10, 300], "as given"));
        assert!(choose(Some("32K"), None).is_err());
        assert!(choose(Some("32K/8"), Some("1,2")).is_err());
        assert!(choose(None, None).is_ok());
    }
}
