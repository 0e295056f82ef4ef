//! Checks what must be the same under every manager: the application's instructions and its calls.
//!
//! "This number ... remains constant across all the allocators used" (Detlefs, Dosser & Zorn 1994, of application
//! instructions). It does where a program depends neither on addresses nor on time. The dynamic loader does: another
//! object to load and to search is more work for it, so what comes before `main` is taken off where it is known.

use heaptoll_experiment::exact::{LAZY_BINDING, OTHER_WORK};
use heaptoll_instruction_counts::{Figures, Group};
use heaptoll_report::format::count;

use super::figures::{Disagreement, Program, Row};

/// The ratio of a row's application instructions to the baseline's.
pub fn against(row: &Row, baseline: &Row) -> Option<f64> {
    let (mine, theirs) = both(row, baseline)?;
    (theirs > 0).then(|| mine as f64 / theirs as f64)
}

/// The application instructions of a row and of the baseline; what comes before `main` is taken off both where it is
/// known of both.
fn both(row: &Row, baseline: &Row) -> Option<(u64, u64)> {
    match (row.application_proper(), baseline.application_proper()) {
        (Some(mine), Some(theirs)) => Some((mine, theirs)),
        _ => Some((row.application()?, baseline.application()?)),
    }
}

/// Warnings about a program's rows; the first one is the baseline.
pub fn warnings(rows: &[Row]) -> Vec<String> {
    let Some((baseline, others)) = rows.split_first() else { return vec![] };
    let mut messages: Vec<String> = rows.iter().filter_map(disagreement).collect();
    if !baseline.is_whole() {
        return messages;
    }
    for row in others.iter().filter(|row| row.is_whole()) {
        messages.extend(application(row, baseline));
        messages.extend(calls(row, baseline));
    }
    messages
}

/// A warning that runs of the same cell differ.
fn disagreement(row: &Row) -> Option<String> {
    let by = row.more.differ_by.filter(|_| row.more.agree == Some(false))?;
    if by == Disagreement::default() {
        return Some(format!(
            "{}: {} runs agree in application and allocation instructions, but not in how these spread over \
             routines, sizes and processes",
            row.manager, row.more.runs
        ));
    }
    Some(format!(
        "{}: {} runs do not agree; they differ by up to {} application and {} allocation instructions. \
         Effects of time, thread order and changing files cannot be pinned",
        row.manager,
        row.more.runs,
        count(by.application as f64),
        count(by.allocation as f64)
    ))
}

fn application(row: &Row, baseline: &Row) -> Option<String> {
    let off = against(row, baseline)? - 1.0;
    let (mine, theirs) = both(row, baseline)?;
    if mine.abs_diff(theirs) as f64 <= LAZY_BINDING.max(OTHER_WORK * theirs as f64) {
        return None;
    }
    let started = row.application_proper().is_some() && baseline.application_proper().is_some();
    let (mine, theirs) = (row.figures.as_ref()?, baseline.figures.as_ref()?);
    let threads = |figures: &Figures| figures.threads_started.saturating_sub(figures.manager_threads_started);
    let why = if threads(mine) > threads(theirs) {
        "the manager has started threads that cannot be recognised as its own: these figures include their \
         work"
    } else if row.more.agree == Some(false) || baseline.more.agree == Some(false) {
        "its runs do not repeat, so managers cannot be blamed"
    } else if threads(mine) > 0 {
        "threads wait for each other, and how often they poll depends on their order"
    } else if calls(row, baseline).is_some() {
        "it also makes other calls, so its behaviour depends on addresses, usable sizes or time"
    } else if !started {
        "these figures include what comes before main, where the loader has more to do with another object"
    } else {
        "its calls are the same, so the addresses differ (pointer hashes, copies and searches by alignment), \
         or the manager works outside its own routines"
    };
    let more = if row.more.agree.is_none() { "; -n 2 shows whether its runs repeat at all" } else { "" };
    Some(format!(
        "{}: {:.2} % {} application instructions than under {}. It should be as many; likely {why}{more}",
        row.manager,
        100.0 * off.abs(),
        if off > 0.0 { "more" } else { "fewer" },
        baseline.manager,
    ))
}

/// Calls of one group: those that ended, failed, and were given no block. Where the program has threads, calls with
/// blocks that are not known are left out: the C library's own heap has such, when it empties a thread's cache.
fn counts(figures: &Figures, group: Group) -> [u64; 3] {
    let of_group = figures.routines.iter().filter(|one| one.group == group);
    of_group.fold([0; 3], |sum, one| {
        let calls = one.calls - if figures.threads_started > 0 { one.unknown_calls } else { 0 };
        [sum[0] + calls, sum[1] + one.failed_calls, sum[2] + one.null_calls]
    })
}

/// Calls that are not as many as the baseline's. Routines of one group count together: where `free` and `operator
/// delete` are one function, both are counted as `free`.
fn calls(row: &Row, baseline: &Row) -> Option<String> {
    let (mine, theirs) = (row.figures.as_ref()?, baseline.figures.as_ref()?);
    let ends = [
        (Group::Allocate, "calls that make a block"),
        (Group::Free, "calls that free"),
        (Group::Resize, "calls that resize"),
        (Group::Query, "calls that query a size"),
    ];
    let kinds = ["", " and failed", " of no block"];
    let mut differences = Vec::new();
    for (group, name) in ends {
        for (kind, (mine, theirs)) in
            kinds.iter().zip(counts(mine, group).into_iter().zip(counts(theirs, group)))
        {
            // A few are the loader's and the manager's constructors'.
            if mine.abs_diff(theirs) as f64 > OTHER_WORK * theirs.max(mine).max(10_000) as f64 {
                differences.push(format!(
                    "{} {name}{kind} instead of {}",
                    count(mine as f64),
                    count(theirs as f64)
                ));
            }
        }
    }
    (!differences.is_empty()).then(|| {
        format!(
            "{}: not the same calls as under {}: {}",
            row.manager,
            baseline.manager,
            differences.join(", ")
        )
    })
}

/// Calls of the baseline without the usual effect, which the program itself causes.
pub fn oddities(program: &Program) -> Vec<String> {
    let Some(figures) = program.managers.iter().find_map(|row| row.figures.as_ref()) else { return vec![] };
    let mut messages = Vec::new();
    for one in &figures.routines {
        let mut odd = |number: u64, what: &str| {
            if number > 0 {
                messages.push(format!(
                    "{} of {} calls of {} {what}.",
                    count(number as f64),
                    count(one.calls as f64),
                    one.routine
                ));
            }
        };
        odd(one.failed_calls, "failed");
        odd(one.null_calls, "were given no block");
        odd(one.unknown_calls, "were given a block that no call made");
        odd(one.abandoned_calls, "were left by longjmp");
    }
    messages
}

#[cfg(test)]
mod tests {
    use heaptoll_instruction_counts::{Amounts, Instructions, Owners, RoutineFigures, SpreadFigures};

    use super::super::figures::Runs;
    use super::*;

    /// Instructions in hundreds.
    fn row(manager: &str, application: u64, startup: Option<u64>, mallocs: u64) -> Row {
        let figures = figures(100 * application, mallocs);
        let startup = startup.map(|startup| 100 * startup);
        Row {
            manager: manager.into(),
            figures: Some(Figures { startup_instructions: startup, ..figures }),
            more: Runs { runs: 1, ..Runs::default() },
            ..Row::default()
        }
    }

    fn figures(application: u64, mallocs: u64) -> Figures {
        let program = Instructions { instructions: application, loads: 0, stores: 0 };
        let owners = Owners { program, ..Owners::default() };
        let malloc = RoutineFigures {
            routine: "malloc".into(),
            group: Group::Allocate,
            calls: mallocs,
            failed_calls: 0,
            null_calls: 0,
            unknown_calls: 0,
            abandoned_calls: 0,
            abandoned_instructions: 0,
            cost: Instructions::default(),
            collector_instructions: 0,
            per_call: SpreadFigures::default(),
            classes: vec![],
        };
        Figures {
            amounts: Amounts { owners, ..Amounts::default() },
            routines: vec![malloc],
            ..Figures::default()
        }
    }

    #[test]
    fn what_is_the_same_is_not_mentioned() {
        let rows = [row("glibc", 1_000_000, None, 50_000), row("lea", 1_000_900, None, 50_009)];
        assert_eq!(warnings(&rows), Vec::<String>::new());
    }

    /// Before, what comes before `main` made the difference of what comes after it as many times larger.
    #[test]
    fn a_few_lookups_more_in_a_short_program_are_not_mentioned() {
        let messages = |mine, theirs, startup| {
            let rows = [row("glibc", theirs, Some(startup), 5), row("kingsley", mine, Some(startup), 5)];
            warnings(&rows).len()
        };
        for startup in [1095, 1_000_000] {
            let of = |more| messages(startup + 205 + more, startup + 205, startup);
            assert_eq!([of(6), of(500), of(501)], [0, 0, 1], "{startup}");
        }
    }

    #[test]
    fn start_up_is_taken_off_where_it_is_known() {
        let rows =
            [row("glibc", 1_000_000, Some(100_000), 5), row("snmalloc", 3_000_000, Some(2_100_000), 5)];
        assert_eq!(against(&rows[1], &rows[0]), Some(1.0));
        assert_eq!(warnings(&rows), Vec::<String>::new());
        let rows = [row("glibc", 1_000_000, None, 5), row("snmalloc", 3_000_000, Some(2_100_000), 5)];
        let messages = warnings(&rows).join("\n");
        assert!(
            messages.contains("snmalloc: 200.00 % more") && messages.contains("before main"),
            "{messages}"
        );
    }

    #[test]
    fn other_work_is_reported_with_its_likely_reason() {
        let rows = [row("glibc", 1_000_000, Some(0), 50_000), row("lea", 990_000, Some(0), 40_000)];
        let messages = warnings(&rows);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(
            messages[0].starts_with("lea: 1.00 % fewer") && messages[0].contains("other calls"),
            "{messages:?}"
        );
        assert!(messages[1].contains("calls that make a block instead of"), "{messages:?}");
    }

    #[test]
    fn one_function_that_is_free_and_delete_makes_no_other_calls() {
        let mut rows =
            [row("glibc", 1_000_000, Some(0), 50_000), row("mimalloc3", 1_000_000, Some(0), 50_000)];
        for (row, (frees, deletes)) in rows.iter_mut().zip([(20_148, 30_000), (50_000, 0)]) {
            let figures = row.figures.as_mut().expect("made above");
            figures.threads_started = 4;
            let like = figures.routines[0].clone();
            for (routine, calls) in [("free", frees), ("operator delete", deletes)] {
                let (routine, unknown_calls) = (routine.into(), calls % 1000);
                let one =
                    RoutineFigures { routine, group: Group::Free, calls, unknown_calls, ..like.clone() };
                figures.routines.push(one);
            }
        }
        assert_eq!(warnings(&rows), Vec::<String>::new());
    }

    #[test]
    fn runs_that_do_not_agree_are_reported() {
        let mut other = row("lea", 1_100_000, Some(0), 50_000);
        other.more.agree = Some(false);
        other.more.differ_by = Some(Disagreement { application: 12_345, allocation: 7 });
        let messages = warnings(&[row("glibc", 1_000_000, Some(0), 50_000), other]).join("\n");
        assert!(
            messages.contains("12\u{202f}345 application") && messages.contains("do not repeat"),
            "{messages}"
        );
    }

    #[test]
    fn threads_that_only_one_manager_has_are_its_own() {
        let mut other = row("bdw", 1_030_000, Some(0), 50_000);
        if let Some(figures) = &mut other.figures {
            figures.threads_started = 1;
        }
        let messages = warnings(&[row("glibc", 1_000_000, Some(0), 50_000), other.clone()]).join("\n");
        assert!(
            messages.contains("bdw: 3.00 % more") && messages.contains("has started threads"),
            "{messages}"
        );
        if let Some(figures) = &mut other.figures {
            figures.manager_threads_started = 1;
        }
        let messages = warnings(&[row("glibc", 1_000_000, Some(0), 50_000), other]).join("\n");
        assert!(
            messages.contains("bdw: 3.00 % more") && !messages.contains("threads"),
            "what they do is not in it: {messages}"
        );
    }

    #[test]
    fn a_run_that_failed_is_compared_with_nothing() {
        let mut other = row("lea", 10, Some(0), 1);
        other.problem = Some("killed by signal 11".into());
        assert!(warnings(&[row("glibc", 1_000_000, Some(0), 50_000), other]).is_empty());
    }
}
