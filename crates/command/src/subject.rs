//! The parts of every document about a trace: which process, how it ended, and why its figures are not whole.

use std::path::Path;

use heaptoll_preflight::own_heap_of_trace;
use heaptoll_report::format::{date, shell_command};
use heaptoll_trace_analysis::subject::Subject;
use heaptoll_units::{number, time_ns};

/// How the words begin with which recordings state that a process did not end by itself.
const ENDED_EARLY: [&str; 4] =
    ["killed", "not traced to its end", "its end was not recorded", "recorder stopped"];

/// Which run of what, in one line.
pub fn subtitle(subject: &Subject) -> String {
    let command =
        if subject.command.is_empty() { subject.exe.clone() } else { shell_command(&subject.command) };
    let lasted = time_ns(subject.wall_s * 1e9);
    match &subject.ended {
        Some(how) => format!("{command} ({how} after {lasted})"),
        None => format!("{command} (the trace stops after {lasted})"),
    }
}

/// Holes, damage, events that do not fit.
pub fn warnings(subject: &Subject, misfits: u64) -> Vec<String> {
    let mut warnings = incomplete(subject);
    warnings.extend(subject.ended.as_deref().and_then(ended_early));
    // What is no file of this machine is not looked for.
    if subject.imported.is_none() && !subject.takes_all_from_malloc {
        warnings.extend(own_heap_of_trace(Path::new(&subject.exe)));
    }
    warnings.extend(subject.imported.iter().map(|imported| {
        format!(
            "the trace comes from a recording of {}, which lacks {}",
            imported.from,
            imported.lacks.join("; ")
        )
    }));
    if misfits > 0 {
        warnings.push(format!(
            "{} events name unknown objects: lifetimes and live bytes lack them",
            number(misfits)
        ));
    }
    warnings
}

/// That a process did not end by itself, where its recording states so.
pub fn ended_early(how: &str) -> Option<String> {
    let is_early = ENDED_EARLY.iter().any(|words| how.starts_with(words));
    is_early.then(|| format!("the run is incomplete ({how}): the figures cover it until then"))
}

/// What is missing in a trace.
pub fn incomplete(subject: &Subject) -> Vec<String> {
    let mut warnings = subject.warnings.clone();
    for gap in &subject.gaps {
        warnings.push(match gap.events {
            Some(events) => format!("{} events are missing: {}", number(events), gap.why),
            None => format!("events are missing: {}", gap.why),
        });
    }
    if subject.ended.is_none() && warnings.is_empty() {
        warnings.push("the trace has no end: later events are unknown".to_owned());
    }
    if subject.ended.is_none() && subject.wall_s > 0.0 {
        let until = time_ns(subject.wall_s * 1e9);
        warnings.push(format!("the figures cover the run's first {until}"));
    }
    warnings
}

/// The manager's name as headings show it. `recorded` is empty where another tool made the recording.
pub fn manager_name(recorded: &str) -> &str {
    if recorded.is_empty() { "an unknown manager" } else { recorded }
}

/// Manager, time, machine.
pub fn facts(subject: &Subject, trace: &Path, events: u64) -> Vec<(String, String)> {
    let manager = match subject.manager_version.as_str() {
        "" => subject.manager.clone(),
        version => format!("{} {version}", subject.manager),
    };
    let mut facts = vec![
        ("trace", trace.display().to_string()),
        ("events", number(events)),
        ("executable", subject.exe.clone()),
        ("recorded over", manager),
    ];
    if subject.pid > 0 {
        facts.push(("process", subject.pid.to_string()));
    }
    if let Some(imported) = &subject.imported {
        facts.push(("imported from", imported.from.clone()));
    }
    if subject.started_unix_s > 0 {
        facts.push(("recorded", date(subject.started_unix_s as f64)));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use heaptoll_trace_analysis::subject::Hole;

    use super::*;

    #[test]
    fn missing_parts_are_reported() {
        let whole = Subject { ended: Some("exited with status 0".into()), ..Subject::default() };
        assert!(warnings(&whole, 0).is_empty());
        let killed = Subject { ended: Some("killed by signal 2".into()), ..Subject::default() };
        let words = "the run is incomplete (killed by signal 2): the figures cover it until then";
        assert_eq!(warnings(&killed, 0), [words]);
        let holes = vec![
            Hole { why: "disk full".into(), events: Some(12_345) },
            Hole { why: "chunk 3 is damaged".into(), events: None },
        ];
        let torn = Subject { gaps: holes, warnings: vec!["no end".into()], ..Subject::default() };
        let missing = warnings(&torn, 2).join("\n");
        for word in [
            "no end",
            "12\u{202f}345 events are missing: disk full",
            "chunk 3",
            "2 events name unknown objects",
        ] {
            assert!(missing.contains(word), "{missing}");
        }
        assert_eq!(warnings(&Subject::default(), 0).len(), 1, "cut off, with no other warning");
        let until = Subject { wall_s: 2.5, warnings: vec!["no end".into()], ..Subject::default() };
        assert_eq!(warnings(&until, 0)[1], "the figures cover the run's first 2.50 s");
    }

    #[test]
    fn leaks_of_a_python_whose_objects_are_all_mallocs_do_not_warn_of_its_own_allocator() {
        let of = |takes_all_from_malloc| {
            let exe = "/usr/bin/python3.11".into();
            let ended = Some("exited with status 0".into());
            warnings(&Subject { exe, ended, takes_all_from_malloc, ..Subject::default() }, 0).len()
        };
        assert_eq!([of(false), of(true)], [1, 0]);
    }

    #[test]
    fn the_subtitle_is_the_command_and_its_end() {
        let subject = Subject {
            command: vec!["gawk".into(), "a b".into()],
            wall_s: 1.5,
            ended: Some("killed by signal 9".into()),
            ..Subject::default()
        };
        assert_eq!(subtitle(&subject), "gawk 'a b' (killed by signal 9 after 1.50 s)");
    }
}
