//! Valgrind's own messages about the processes that it runs: in a log a process, and on standard error before it has
//! one.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use heaptoll_units::limits;

/// Most bytes that are read of one log, and most logs that are read.
const LONGEST: u64 = 1 << 16;
const LOGS: usize = 256;
/// Most unrecognised lines that are passed on.
const OTHERS: usize = 6;

/// The messages of the logs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// For the user, each once, with the number of processes if several logged it.
    pub warnings: Vec<String>,
    /// Why Valgrind could not run a program, or stopped.
    pub fatal: Vec<String>,
}

/// Reads all logs in the folder. Logs that cannot be read are skipped.
pub fn read(folder: &Path) -> Findings {
    let mut logs: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        // Most processes log nothing.
        .filter(|entry| entry.metadata().is_ok_and(|about| about.len() > 0))
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
                name.strip_prefix("log.").is_some_and(|pid| pid.chars().all(|c| c.is_ascii_digit()))
            })
        })
        .collect();
    logs.sort();
    logs.truncate(LOGS);
    let texts = logs.iter().filter_map(|path| {
        let mut bytes = Vec::new();
        std::fs::File::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    });
    find(texts)
}

/// Valgrind's own lines in a program's standard error.
pub fn of_standard_error(text: &str) -> Findings {
    let own: Vec<&str> =
        text.lines().filter(|line| line.starts_with("valgrind:") || bare(line).is_some()).collect();
    find([own.join("\n")].into_iter())
}

/// A line without the process number in front, if it has one.
fn bare(line: &str) -> Option<&str> {
    for mark in ["==", "--", "**"] {
        if let Some((pid, rest)) = line.strip_prefix(mark).and_then(|line| line.split_once(mark))
            && pid.chars().all(|c| c.is_ascii_digit())
            && !pid.is_empty()
        {
            return Some(rest.trim());
        }
    }
    None
}

fn find(texts: impl Iterator<Item = String>) -> Findings {
    let mut warnings: BTreeMap<String, u32> = BTreeMap::new();
    let mut fatal: Vec<String> = Vec::new();
    for text in texts {
        let mut messages = std::collections::BTreeSet::new();
        let mut lines = text.lines().map(|line| bare(line).unwrap_or(line).trim());
        while let Some(line) = lines.next() {
            match classify(line) {
                Some(Message::Fatal(mut message)) => {
                    // The next line names the cause.
                    if message.ends_with("'impossible' happened:") {
                        message = [message.as_str(), lines.next().unwrap_or_default()].join(" ");
                    }
                    let why = reason(&message);
                    if !fatal.contains(&why) {
                        fatal.push(why);
                    }
                }
                Some(Message::Warning(message)) => {
                    messages.insert(message);
                }
                _ => {}
            }
        }
        for message in messages {
            *warnings.entry(message).or_default() += 1;
        }
    }
    let (known, others): (Vec<_>, Vec<_>) =
        warnings.into_iter().partition(|(message, _)| !message.starts_with(OTHER_MESSAGE));
    let left_out = others.len().saturating_sub(OTHERS);
    let mut warnings: Vec<String> = known
        .into_iter()
        .chain(others.into_iter().take(OTHERS))
        .map(|(message, count)| if count > 1 { format!("{message} (in {count} processes)") } else { message })
        .collect();
    if left_out > 0 {
        warnings.push(format!("Valgrind logged {left_out} more messages of this kind"));
    }
    Findings { warnings, fatal }
}

/// Parts of messages about a call that Valgrind makes around each call of the program, and that only a filter refuses.
const FILTERED: [&str; 2] = ["do_syscall_for_client", "sigprocmask error"];

/// Why Valgrind stopped, where its message shows that a limit or a filter is the cause.
fn reason(message: &str) -> String {
    if FILTERED.iter().any(|part| message.contains(part)) {
        return "a filter of system calls (seccomp) refuses a call that Valgrind makes".into();
    }
    let message = message.trim_end_matches(':');
    match limits::memory().filter(|_| message.contains("out of memory")) {
        Some(limits) => format!("{message}; {limits}"),
        None => message.to_owned(),
    }
}

const OTHER_MESSAGE: &str = "Valgrind: ";

enum Message {
    Fatal(String),
    Warning(String),
}

/// Replaces `process 77`: many processes may log the same message.
fn without_number(message: &str) -> String {
    match message.split_once("process ") {
        Some((before, after)) => {
            format!("{before}a process{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => message.into(),
    }
}

fn classify(line: &str) -> Option<Message> {
    let lower = line.to_ascii_lowercase();
    let has = |what: &str| lower.contains(what);
    if line.is_empty() || line.starts_with("at 0x") || line.starts_with("by 0x") {
        return None;
    }
    if let Some(message) = line.strip_prefix("heaptoll: ")
        && LOST.iter().any(|what| has(what))
    {
        return Some(Message::Warning(without_number(message)));
    }
    if has("failed to start tool") && !has("tool 'heaptoll'") {
        let nested = "the program runs Valgrind itself, which does not work under Valgrind: what it would have done there \
             is missing";
        return Some(Message::Warning(nested.into()));
    }
    if FATAL.iter().any(|what| has(what)) || lower.starts_with("valgrind:") {
        return Some(Message::Fatal(line.to_string()));
    }
    if let Some(difference) = difference_from_native(line, &lower) {
        return Some(Message::Warning(difference));
    }
    if NOISE.iter().any(|noise| has(noise)) || !lower.starts_with("warning") {
        return None;
    }
    Some(Message::Warning(format!("{OTHER_MESSAGE}{line}")))
}

/// Messages of the tracer without a ring. Its others are in the ring too.
const LOST: [&str; 6] = [
    "no ring can be made",
    "cannot be mapped",
    "there is no space",
    "there is no more space",
    "should read the ring, does not exist",
    "the ring has not been read",
];

/// Messages after which Valgrind ends.
const FATAL: [&str; 4] = [
    "the 'impossible' happened",
    "valgrind: fatal",
    "valgrind's memory management: out of memory",
    "assertion",
];

/// Continuations and advice of other messages, and messages that do not affect counts.
const NOISE: [&str; 14] = [
    "your program just tried",
    "did not recognise",
    "there are two possible",
    "warning: noted but unhandled ioctl",
    "this could cause spurious",
    "to suppress, use",
    "further instances of this message",
    "vex amd64->ir:   rex",
    "vex amd64->ir:   vex",
    "vex amd64->ir:   pfx",
    "valgrind: unrecognised instruction",
    "process terminating with",
    "you may be able to write",
    "nevertheless it's worth",
];

/// What the program did that it would not have done natively, in words, where a line reports that. `lower` is the line
/// in lower case.
fn difference_from_native(line: &str, lower: &str) -> Option<String> {
    let has = |what: &str| lower.contains(what);
    let after = |what: &str| lower.find(what).map_or("", |at| line[at + what.len()..].trim());
    if has("unhandled instruction bytes:") {
        return Some(format!(
            "the program came to an instruction that Valgrind does not know (bytes {}), and got SIGILL there, as a \
             native run would not",
            after("unhandled instruction bytes:")
        ));
    }
    if has("unhandled") && has("syscall:") {
        return Some(format!(
            "the program made system call {}, which Valgrind does not know: it failed with ENOSYS, as a native run's \
             would not",
            after("syscall:")
        ));
    }
    let words = if has("brk segment overflow") || has("cannot grow brk") || has("can't grow to") {
        "the brk segment could not grow any more under Valgrind: the manager went on with mmap, as a native run would \
         not"
    } else if has("can't execute setuid/setgid") {
        "a set-user-ID program was to be started, which Valgrind refuses: what it would have done is missing"
    } else if has("client switching stacks") {
        "the program switches stacks by itself"
    } else {
        return None;
    };
    Some(words.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Findings {
        find([text.to_string()].into_iter())
    }

    #[test]
    fn an_instruction_it_does_not_know_is_a_warning_with_its_bytes() {
        let found = of("vex amd64->IR: unhandled instruction bytes: 0x62 0xF1 0x7C 0x48\n\
                        vex amd64->IR:   REX=0 REX.W=0\n\
                        ==77== valgrind: Unrecognised instruction at address 0x109139.\n\
                        ==77==    at 0x109139: main (in /tmp/x)\n\
                        ==77== Your program just tried to execute an instruction that Valgrind\n\
                        ==77== did not recognise.  There are two possible reasons for this.\n");
        assert_eq!(found.warnings.len(), 1, "{found:?}");
        assert!(found.warnings[0].contains("0x62 0xF1") && found.warnings[0].contains("SIGILL"));
    }

    #[test]
    fn a_program_that_runs_valgrind_itself_is_no_failure_of_ours() {
        let found = of(
            "valgrind: failed to start tool 'memcheck' for platform 'amd64-linux': No such file or directory",
        );
        assert!(found.fatal.is_empty() && found.warnings[0].contains("runs Valgrind itself"), "{found:?}");
        assert!(
            !of("valgrind: failed to start tool 'heaptoll' for platform 'x86-linux': No").fatal.is_empty()
        );
    }

    #[test]
    fn processes_that_could_not_be_recorded_are_reported() {
        let line = |pid: u32| {
            format!(
                "=={pid}== heaptoll: no ring can be made in /dev/shm/x for process {pid}; what it does is not recorded\n"
            )
        };
        let found = find((7..9).map(line));
        let messages =
            "no ring can be made in /dev/shm/x for a process; what it does is not recorded (in 2 processes)";
        assert_eq!(found.warnings, [messages]);
        // This message comes through the ring.
        assert_eq!(of("==5== heaptoll: ./x, a 32-bit program, is executed: it runs\n"), Findings::default());
    }

    #[test]
    fn the_impossible_is_reported_with_its_cause() {
        let found = of("\nvalgrind: the 'impossible' happened:\n   Max number of threads is too low\n");
        assert_eq!(found.fatal, ["valgrind: the 'impossible' happened: Max number of threads is too low"]);
    }

    /// Before, these were Valgrind's own words alone.
    #[test]
    fn a_limit_or_a_filter_that_ends_valgrind_is_named() {
        let filtered = "valgrind: m_syswrap/syswrap-main.c:429 (do_syscall_for_client): Assertion 'err == 0' failed.\n\
                        valgrind: ML_(do_syscall_for_client_WRK): sigprocmask error 1\n";
        assert_eq!(
            of(filtered).fatal,
            ["a filter of system calls (seccomp) refuses a call that Valgrind makes"]
        );
        let found = of("==9== Valgrind's memory management: out of memory:\n").fatal;
        let limited = limits::memory().map(|limits| format!("; {limits}")).unwrap_or_default();
        assert_eq!(found, [format!("Valgrind's memory management: out of memory{limited}")]);
    }

    #[test]
    fn empty_logs_do_not_crowd_out_others() {
        let folder = tempfile::tempdir().expect("a folder");
        for pid in 0..2 * LOGS {
            std::fs::write(folder.path().join(format!("log.{pid}")), "").expect("writes");
        }
        std::fs::write(folder.path().join("log.99999"), "valgrind: the worst\n").expect("writes");
        assert_eq!(read(folder.path()).fatal, ["valgrind: the worst"]);
    }

    #[test]
    fn what_ends_valgrind_is_fatal() {
        for line in [
            "valgrind: mmap(0x400000, 102400000) failed in UME with error 12 (Cannot allocate memory).",
            "valgrind: the 'impossible' happened:",
            "==9== Valgrind: FATAL: no munmap in valgrind",
            "valgrind: m_mallocfree.c:303 (get_bszB_as_is): Assertion 'bszB_lo == bszB_hi' failed.",
        ] {
            let found = of(line);
            assert_eq!((found.fatal.len(), found.warnings.len()), (1, 0), "{line}");
        }
    }

    #[test]
    fn a_message_of_many_processes_is_reported_once() {
        let line = |pid: u32| format!("--{pid}-- WARNING: unhandled amd64-linux syscall: 439\n");
        let found = find((1..4).map(line));
        assert_eq!(found.warnings.len(), 1);
        assert!(found.warnings[0].contains("439") && found.warnings[0].ends_with("(in 3 processes)"));
    }

    #[test]
    fn of_what_has_no_meaning_of_its_own_not_more_than_a_few_lines_are_passed_on() {
        let text: String = (0..20).map(|n| format!("==5== Warning: strange thing {n}\n")).collect();
        let found = of(&text);
        assert_eq!(found.warnings.len(), OTHERS + 1);
        assert!(found.warnings[0].contains("strange thing"));
        assert_eq!(of("==5== \n==5==    by 0x123: f (x.c:1)\n"), Findings::default());
    }

    #[test]
    fn the_programs_own_words_are_not_valgrinds() {
        assert_eq!(of_standard_error("Assertion failed: x\nwarning: y\n"), Findings::default());
        let found = of_standard_error("valgrind: /x: cannot execute binary file\n");
        assert_eq!(found.fatal, ["valgrind: /x: cannot execute binary file"]);
    }
}
