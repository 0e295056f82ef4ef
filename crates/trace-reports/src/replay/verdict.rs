//! What the runs under a manager show, in words.

use heaptoll_replay::drift;
use heaptoll_replay::findings::Row;
use heaptoll_report::format;
use heaptoll_units::bytes;

/// What went wrong under a manager, as a cell.
pub fn trouble(row: &Row) -> String {
    let failures = row.failures.iter().map(|(what, times)| format!("{times}x {what}"));
    failures.collect::<Vec<_>>().join("; ")
}

/// The verdict of a row.
pub fn verdict(index: usize, row: &Row) -> String {
    if row.refused.is_some() {
        return "not replayed".into();
    }
    let (time, memory) = (row.time.as_ref(), row.memory.as_ref());
    let measured = time.is_some() || memory.is_some();
    let words = || {
        let ratios = [time.map(|time| (time.ratio, "CPU")), memory.map(|memory| (memory.ratio, "memory"))];
        format::verdict(&ratios.into_iter().flatten().collect::<Vec<_>>())
    };
    let claims_text = match (index, measured) {
        (_, false) if row.failures.is_empty() => "not run".into(),
        (_, false) => "failed".into(),
        (0, _) => "baseline".into(),
        _ => words(),
    };
    if row.failures.is_empty() || !measured {
        claims_text
    } else {
        format!("fails at times; else {claims_text}")
    }
}

/// What repetitions show, as text.
pub fn drift_text(row: &Row) -> String {
    let Some(found) = &row.drift else { return "–".into() };
    let slope = found.slope_bytes;
    match found.verdict {
        drift::Verdict::TooFew => format!("fewer than {} repetitions show nothing", drift::FEWEST),
        drift::Verdict::Steady => "does not drift".into(),
        drift::Verdict::Settled { after } => format!("rose until repetition {after}, then stable"),
        drift::Verdict::Rising => format!("still rises at the end, {} a repetition", bytes(slope)),
        drift::Verdict::Falling => "falls".into(),
    }
}
