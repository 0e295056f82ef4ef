//! Programs in Java: their pauses come from the logs of their virtual machines, and take their place among the events.

use heaptoll_event_log::{Collection, ProcessEvents};
use heaptoll_experiment::manager::Manager;

use heaptoll_command::failure::Failure;

use crate::java::JavaLog;

/// The young generation in the run that counts what a program allocates.
pub const FIRST_PERIOD: u64 = 16 << 20;
/// The smallest young generation.
pub const LEAST_PERIOD: u64 = 1 << 20;

/// Whether the collectors are Java's.
///
/// # Errors
/// Some are, and others collect the heap of C: one program cannot have both.
pub fn are_java(stacks: &[Manager]) -> Result<bool, Failure> {
    match stacks.iter().filter(|stack| stack.is_java()).count() {
        0 => Ok(false),
        all if all == stacks.len() => Ok(true),
        _ => Err(Failure::Usage(
            "Java's collectors cannot be combined with C's, because a program has one or the other; make two \
             commands of it".into(),
        )),
    }
}

/// Adds the pauses that logs have to the processes with requests, as collections.
pub fn add_pauses(processes: &mut [ProcessEvents], logs: &[JavaLog]) {
    for JavaLog { pid, log } in logs {
        let of = processes.iter_mut().filter(|process| process.pid == *pid);
        let Some(process) = of.max_by_key(|process| process.requests.len()) else { continue };
        process.collections.extend(log.pauses.iter().map(|pause| Collection {
            start_ns: pause.start_ns,
            end_ns: pause.end_ns,
            number: pause.collection.saturating_add(1),
            live_bytes: 0,
            collector: 0,
            reason: 0,
        }));
        process.collections.sort_by_key(|collection| collection.start_ns);
    }
}

/// From the first request of a process to its last, ns.
fn span(process: &ProcessEvents) -> Option<(u64, u64)> {
    let last = process.requests.iter().map(|request| request.end_ns).max()?;
    Some((process.requests.iter().map(|request| request.start_ns).min()?, last))
}

/// Bytes that the virtual machines allocated while requests went on, by their logs.
pub fn allocated(processes: &[ProcessEvents], logs: &[JavaLog]) -> u64 {
    let of = |JavaLog { pid, log }: &JavaLog| {
        let spans = processes.iter().filter(|process| process.pid == *pid).filter_map(span);
        spans.map(|(from, to)| log.allocated_bytes(from, to)).max().unwrap_or(0)
    };
    logs.iter().map(of).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use heaptoll_event_log::Request;
    use heaptoll_experiment::manager::{self, ManagerSource};

    use super::*;

    fn process(pid: u32, requests: &[(u64, u64)]) -> ProcessEvents {
        let request = |(start_ns, end_ns): &(u64, u64)| Request {
            start_ns: *start_ns,
            end_ns: *end_ns,
            kind: 0,
            thread: 1,
            cpu_ns: None,
        };
        ProcessEvents {
            pid,
            parent_pid: 1,
            exe: "java".into(),
            started_ns: 0,
            observed: 0,
            unobserved: 0,
            requests: requests.iter().map(request).collect(),
            collections: vec![],
        }
    }

    fn log(pid: u32, text: &str) -> JavaLog {
        JavaLog { pid, log: crate::java::GcLog::read(text.as_bytes()).expect("a log") }
    }

    #[test]
    fn pauses_become_collections_of_the_process_that_has_requests() {
        let text = "[1ns][info][gc] Using Serial\n\
            [5000000ns][info][gc] GC(0) Pause Young (Allocation Failure) 10M->2M(64M) 1.000ms\n\
            [8000000ns][info][gc] GC(1) Pause Young (Allocation Failure) 12M->3M(64M) 1.000ms\n\
            [9900000ns][info][gc] GC(2) Pause Young (Allocation Failure) 13M->3M(64M) 1.000ms\n";
        // The launcher's image and the machine's have one number.
        let mut processes = [process(7, &[]), process(7, &[(4_500_000, 4_600_000), (8_500_000, 9_000_000)])];
        let logs = [log(7, text), log(8, text)];
        add_pauses(&mut processes, &logs);
        assert!(processes[0].collections.is_empty());
        let found: Vec<_> =
            processes[1].collections.iter().map(|one| (one.start_ns, one.end_ns, one.number)).collect();
        assert_eq!(found, [(4_000_000, 5_000_000, 1), (7_000_000, 8_000_000, 2), (8_900_000, 9_900_000, 3)]);
        // Of the two collections within the requests' time.
        assert_eq!(allocated(&processes, &logs), 10 << 20);
    }

    #[test]
    fn collectors_of_java_and_of_c_are_not_mixed() {
        let java = |name: &str| Manager { name: name.into(), kind: ManagerSource::Java, ..manager::glibc() };
        let known = [manager::glibc(), java("jvm-g1"), java("jvm-serial")];
        let stacks = |words: &[&str]| -> Vec<Manager> {
            words.iter().map(|word| manager::find(&known, word).expect("a stack")).collect()
        };
        assert!(are_java(&stacks(&["jvm-g1", "jvm-serial"])).is_ok_and(|java| java));
        assert!(are_java(&stacks(&["sweep/glibc"])).is_ok_and(|java| !java));
        let mixed = are_java(&stacks(&["sweep/glibc", "jvm-g1"])).map_err(|failure| failure.to_string());
        assert!(mixed.is_err_and(|why| why.contains("two commands")));
    }
}
