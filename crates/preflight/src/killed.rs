//! A signal that killed a program, in words: what it means, and the limits under which the program ran.

use heaptoll_units::limits;
use rustix::process::Resource;

/// Stacks of threads are that large unless they are limited.
const USUAL_STACK: u64 = 8 << 20;

/// `killed by signal 25 (SIGXFSZ: a file grew beyond its limit, 4 KiB (ulimit -f))`. Limits are those of this process, which
/// the program has inherited.
pub fn killed_by(signal: i32) -> String {
    match meaning(signal, limits::set) {
        Some(meaning) => format!("killed by signal {signal} ({meaning})"),
        None => format!("killed by signal {signal}"),
    }
}

/// Whether it is a signal of a fault or a limit: others also end processes that are no longer needed.
pub fn is_fault(signal: i32) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGXCPU, SIGXFSZ};
    [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGXCPU, SIGXFSZ].contains(&signal)
}

/// What a signal means; `limit` gives a limit that is set.
fn meaning(signal: i32, limit: impl Fn(Resource) -> Option<u64>) -> Option<String> {
    let of = |resource, unit: fn(u64) -> String| limit(resource).map(|most| format!(" of {}", unit(most)));
    let bytes: fn(u64) -> String = heaptoll_units::whole_bytes;
    Some(match signal {
        libc::SIGXFSZ => {
            let size = of(Resource::Fsize, bytes).unwrap_or_default();
            format!("SIGXFSZ: a file grew beyond its limit{size}, see ulimit -f")
        }
        libc::SIGXCPU => {
            let time = of(Resource::Cpu, |seconds| format!("{seconds} s")).unwrap_or_default();
            format!("SIGXCPU: it used more CPU time than its limit{time}, see ulimit -t")
        }
        libc::SIGSYS => "SIGSYS: a filter of system calls (seccomp) forbids a call".to_owned(),
        libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT => {
            let stack = of(Resource::Stack, bytes).filter(|_| limit(Resource::Stack) < Some(USUAL_STACK));
            let limits = [
                ("address space", of(Resource::As, bytes), "-v"),
                ("data", of(Resource::Data, bytes), "-d"),
                ("stack", stack, "-s"),
            ];
            let set = limits.into_iter().filter_map(|(what, most, option)| {
                most.map(|most| format!("a limit{most} on its {what}, see ulimit {option}"))
            });
            let set: Vec<String> = set.collect();
            (!set.is_empty()).then(|| format!("it has {}", set.join(", and ")))?
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_named_with_the_limit_under_which_the_program_died() {
        let set = |resource| match resource {
            Resource::Fsize => Some(4096),
            Resource::Cpu => Some(1),
            Resource::As => Some(50 << 20),
            Resource::Stack => Some(64 << 10),
            _ => None,
        };
        let all = |signal| meaning(signal, set).unwrap_or_default();
        assert_eq!(all(25), "SIGXFSZ: a file grew beyond its limit of 4.00 KiB, see ulimit -f");
        assert_eq!(all(24), "SIGXCPU: it used more CPU time than its limit of 1 s, see ulimit -t");
        assert!(all(31).contains("seccomp"));
        let limited = "it has a limit of 50.0 MiB on its address space, see ulimit -v, and a limit of 64.0 KiB on its stack";
        for signal in [6, 7, 11] {
            assert!(all(signal).starts_with(limited), "{}", all(signal));
        }
        assert_eq!(all(9), "");
        assert_eq!(meaning(11, |resource| (resource == Resource::Stack).then_some(USUAL_STACK)), None);
        assert!(meaning(25, |_| None).is_some_and(|text| text.contains("beyond its limit, see")));
        assert_eq!(killed_by(9), "killed by signal 9");
    }
}
