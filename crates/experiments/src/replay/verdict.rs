//! What the runs under a manager show, in words.

use heaptoll_replay::drift;
use heaptoll_replay::findings::Row;
use heaptoll_report::format::claim;
use heaptoll_statistics::FEWEST_PAIRS;
use heaptoll_statistics::Interval;
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
    let claims = [
        row.time.and_then(|time| time.ratio).and_then(|ratio| claim(&ratio, "CPU")),
        row.memory.as_ref().and_then(|memory| memory.ratio).and_then(|ratio| claim(&ratio, "memory")),
    ];
    let words = claims.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let measured = row.time.is_some() || row.memory.is_some();
    let memory = row.memory.as_ref().and_then(|memory| memory.ratio);
    let enough = |ratio: Option<Interval>| ratio.is_some_and(|ratio| ratio.pairs as usize >= FEWEST_PAIRS);
    let claims_text = match (index, measured, words.is_empty()) {
        (_, false, _) if row.failures.is_empty() => "not run".into(),
        (_, false, _) => "failed".into(),
        (0, ..) => "baseline".into(),
        (_, _, false) => words,
        _ if enough(memory) || enough(row.time.and_then(|time| time.ratio)) => "no difference seen".into(),
        _ => "too few runs to judge".into(),
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
        drift::Verdict::Settled { after } => format!("rose until repetition {after}, holds since"),
        drift::Verdict::Rising => format!("still rises at the end, {} a repetition", bytes(slope)),
        drift::Verdict::Falling => "falls".into(),
    }
}
