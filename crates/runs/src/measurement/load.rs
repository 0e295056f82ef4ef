//! Whether the machine has other work than what is measured: times are then longer, and intervals wider.

use heaptoll_experiment::disturbance::Disturbance;
use heaptoll_experiment::experiment::Machine;

/// Shorter spans are not judged: the system counts in hundredths of a second.
const LEAST_S: f64 = 2.0;
/// The share of the processors that other work may use without a warning.
const SHARE: f64 = 0.2;

/// A warning about the load averages at the beginning of an experiment.
pub fn at_the_beginning(machine: &Machine) -> Option<String> {
    let (load, cores) = (machine.load[0], f64::from(machine.cores));
    (load > cores).then(|| {
        format!(
            "the machine has other work: a load average of {load:.1} on {} cores. Times are longer and intervals wider \
             than on an idle machine; memory and counts are right",
            machine.cores
        )
    })
}

/// Warnings about what disturbed the measurements.
pub fn meanwhile(found: &Disturbance, processors: usize) -> Vec<String> {
    let others = (found.seconds >= LEAST_S).then(|| others(found, processors as f64)).flatten();
    let held_s = found.throttled.unwrap_or(0.0) * found.seconds;
    let held = (held_s > 0.0).then(|| {
        format!(
            "the control group's limit of CPU time (cpu.max) delayed processes for {held_s:.1} s during the \
             measurement. Elapsed times are longer, and CPU times may be; raise the limit, or measure outside the group"
        )
    });
    others.into_iter().chain(held).collect()
}

fn others(found: &Disturbance, processors: f64) -> Option<String> {
    let used = (found.other_work + found.steal) * processors;
    (used > SHARE * processors).then(|| {
        format!(
            "other work took {used:.1} of {processors:.0} processors during the measurement: times are longer and \
             intervals wider than on an idle machine"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_gives_a_warning_and_an_idle_one_does_not() {
        let machine = |load| Machine { cores: 2, load: [load, 0.0, 0.0], ..Machine::default() };
        let busy = at_the_beginning(&machine(3503.0)).expect("a warning");
        assert!(busy.contains("3503.0 on 2 cores"), "{busy}");
        assert_eq!(at_the_beginning(&machine(1.9)), None);
    }

    #[test]
    fn other_work_and_a_limit_are_warned_of_where_they_were() {
        let found = |other_work| Disturbance { seconds: 10.0, other_work, ..Disturbance::default() };
        assert!(meanwhile(&found(0.8), 2)[0].contains("1.6 of 2 processors"));
        let stolen = Disturbance { steal: 0.5, ..found(0.0) };
        assert!(meanwhile(&stolen, 2)[0].contains("1.0 of 2 processors"));
        assert!(meanwhile(&found(0.15), 2).is_empty());
        assert!(meanwhile(&Disturbance { seconds: 1.0, ..found(0.8) }, 2).is_empty(), "too short a span");
        let held = Disturbance { throttled: Some(0.25), ..found(0.0) };
        assert!(meanwhile(&held, 2)[0].contains("delayed processes for 2.5 s"));
    }
}
