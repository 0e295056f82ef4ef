//! The tables of `heaptoll exact locality`, with the charts that belong to them.

use heaptoll_locality::over_time::Sample;
use heaptoll_locality::placement::Parts;
use heaptoll_locality::simulation::Accessor;
use heaptoll_locality::study::{Cause, Point, Row, Study, TIGHT, Window, tight};
use heaptoll_report::document::{Column, Columns, Section, Table};
use heaptoll_report::format::count;
use heaptoll_units::{about, percent, size_text, small, whole_bytes};

use super::curves;
use super::text::{millions, over, signed_count, signed_rate};

/// All sections of one program; tables have columns for caches of these sizes.
pub fn sections(study: &Study, sizes: &[u64]) -> Vec<Section> {
    let mut all = vec![references(study), machine(study)];
    all.extend(causes(study));
    all.extend([fully_associative(study), associative(study, sizes), memories(study)]);
    all.extend(over_time(study));
    all.push(by_owner(study));
    all
}

fn managers(study: &Study) -> Columns<&Row> {
    Table::of(&study.rows).text("manager", |row| row.about.manager.clone())
}

/// References by accessor, and the memory they touch.
fn references(study: &Study) -> Section {
    let collectors = study.rows.iter().any(|row| row.references.collections() > 0);
    let others: Vec<String> = study
        .rows
        .iter()
        .filter(|row| row.about.images > 1)
        .map(|row| {
            format!(
                "{}: of {} process images, the one with the most instructions is shown; the others made {} \
                 of the references.",
                row.about.manager,
                row.about.images,
                percent(row.about.others_share)
            )
        })
        .collect();
    let table = managers(study)
        .caption("Data references by accessor, millions, and what they touch")
        .figure("program's M", |row| millions(row.references.program))
        .figure("allocator's M", |row| millions(row.references.allocator))
        .when(collectors, |table| table.figure("collector's M", |row| millions(row.references.collections())))
        .figure("system calls' M", |row| millions(row.references.system))
        .figure("lines touched", |row| whole_bytes(row.lines_touched * study.line_bytes))
        .figure("pages touched", |row| whole_bytes(row.pages_touched * study.page_bytes))
        .figure("program's instructions M", |row| millions(row.about.instructions[0]));
    Section::new("References to memory").with(table.notes(others))
}

/// The machine's caches, level by level.
fn machine(study: &Study) -> Section {
    let Some(baseline) = study.rows.first() else { return Section::default() };
    let total = |row: &Row| row.stall_cycles.total();
    let names: Vec<String> =
        study.machine.levels.iter().map(|one| format!("{}/{}", size_text(one.bytes), one.ways)).collect();
    let share = |row: &Row, cycles: u64| match total(row) {
        0 => None,
        all => Some(percent(cycles as f64 / all as f64)),
    };
    let waits: Vec<String> = study
        .machine
        .cycles
        .iter()
        .enumerate()
        .map(|(at, cycles)| match names.get(at + 1) {
            Some(name) => format!("{cycles} for {name}"),
            None => format!("{cycles} for memory"),
        })
        .collect();
    let table = managers(study)
        .caption("Misses of each level per 1000 references of the program, and what they cost")
        .each(
            names.iter().enumerate(),
            |(_, name)| Column::figures(name),
            |row, (at, _)| row.machine.get(*at).map(|level| small(row.per_thousand(level.misses))),
        )
        .figure("stall cycles M", |row| millions(total(row)))
        .figure("vs baseline", |row| over(total(row), total(baseline)))
        .figure("program's", |row| share(row, row.stall_cycles.program + row.stall_cycles.system))
        .figure("allocator's", |row| share(row, row.stall_cycles.allocator))
        .figure("collector's", |row| share(row, row.stall_cycles.collections()))
        .note(format!(
            "Stall cycles are an estimate: each reference waits its turn, {}; hits of the first level \
             wait for nothing. Real machines overlap waiting, prefetch, and hide stores. System calls \
             count as the program's.",
            waits.join(", ")
        ));
    let title = format!("Caches {}", study.machine);
    Section { text: machine_sentences(study), ..Section::new(title) }.with(table)
}

fn machine_sentences(study: &Study) -> Vec<String> {
    let [baseline, others @ ..] = &study.rows[..] else { return vec![] };
    let total = |row: &Row| row.stall_cycles.total();
    let mut comparable: Vec<&Row> = others.iter().filter(|row| row.other_work.is_none()).collect();
    comparable.sort_by_key(|row| total(row));
    let one = |row: &Row| format!("{}x under {}", over(total(row), total(baseline)), row.about.manager);
    let compared = format!("Estimated waiting for memory, compared with {}", baseline.about.manager);
    match &comparable[..] {
        _ if total(baseline) == 0 => vec![],
        [] => vec![],
        [only] => vec![format!("{compared}: {}.", one(only))],
        [least, .., most] => vec![format!("{compared}: from {} to {}.", one(least), one(most))],
    }
}

/// Placement, pollution and own references.
fn causes(study: &Study) -> Option<Section> {
    let [baseline, others @ ..] = &study.rows[..] else { return None };
    let first = baseline.placement.as_ref()?;
    if others.is_empty() {
        return None;
    }
    // One table a cache: managers under each other are what is compared.
    let table = |title: String, counts: bool, at: &dyn Fn(&Row) -> Option<Cause>| {
        let per = |row: &Row, count: i64| row.per_thousand(count.unsigned_abs()) * count.signum() as f64;
        let plain = |row: &Row, value: i64| match counts {
            true => signed_count(value).trim_start_matches('+').to_owned(),
            false => small(per(row, value)).replacen('-', "\u{2212}", 1),
        };
        let signed = |row: &Row, value: i64| match counts {
            true => signed_count(value),
            false => signed_rate(per(row, value)),
        };
        let all = at(baseline)?;
        // The baseline's row has the number of misses, the others the difference.
        let first = (baseline, all.parts, None);
        let rows = others.iter().filter_map(|row| {
            let Cause { parts, more, .. } = at(row)?;
            Some((row, parts, Some(more?)))
        });
        let part = |row: &Row, own: &Parts, more: &Option<Parts>, of: fn(&Parts) -> i64| match more {
            None => plain(row, of(own)),
            Some(more) => signed(row, of(more)),
        };
        let table = Table::of(std::iter::once(first).chain(rows))
            .caption(title)
            .text("manager", |(row, ..)| row.about.manager.clone())
            .figure("all", |(row, own, _)| plain(row, own.total()))
            .figure("more", |(row, _, more)| match more {
                None => "baseline".into(),
                Some(more) => signed(row, more.total()),
            })
            .figure("= placement", |(row, own, more)| part(row, own, more, |one| one.placement))
            .figure("+ pollution", |(row, own, more)| part(row, own, more, |one| one.pollution))
            .figure("+ allocator", |(row, own, more)| part(row, own, more, |one| one.allocator))
            .figure("+ collector", |(row, own, more)| part(row, own, more, |one| one.collector));
        Some(table.table())
    };
    let level = |row: &Row, at: usize| row.placement.as_ref()?.machine.get(at).cloned();
    let parts = |row: &Row, at: usize| level(row, at).map(|cause| cause.parts);
    let mut tables = Vec::new();
    for (at, cause) in first.machine.iter().enumerate() {
        // Once all is in a cache, those beyond it see the same first touches.
        if at > 0 && study.rows.iter().all(|row| parts(row, at) == parts(row, at - 1)) {
            continue;
        }
        let title = format!("{}: misses per 1000 references of the program", cause.cache);
        tables.extend(table(title, false, &|row| level(row, at)));
    }
    let title = "Estimated stall cycles per 1000 references of the program";
    tables.extend(table(title.into(), false, &|row| Some(row.placement.as_ref()?.stall_cycles.clone())));
    // The other memories are in the JSON.
    let half = TIGHT.iter().position(|(part, of)| part * 2 == *of);
    if let Some((at, cause)) = half.and_then(|at| Some((at, first.memories.get(at)?))) {
        let title = format!(
            "Page faults in half the memory that the program touches under {} ({})",
            baseline.about.manager,
            about(cause.bytes)
        );
        tables.extend(table(title, true, &|row| row.placement.as_ref()?.memories.get(at).cloned()));
    }
    let mut text = vec![
        "The program makes the same references under every manager; only their addresses differ. Placement: \
         misses of its own references, simulated alone. Pollution: extra misses from sharing the cache with \
         the manager (negative if the manager prefetched for the program). The rest are the manager's own \
         misses. The baseline's row has the number of misses, the others the difference; each row adds up."
            .to_owned(),
    ];
    text.extend(others.iter().filter_map(|row| cause_sentence(baseline, row)));
    let section = Section { text, ..Section::new("Placement and the manager's own work, separately") };
    Some(section.with_all(tables).with_all(curves::placement(study)))
}

/// One manager against the baseline, by the waiting that its misses cause.
fn cause_sentence(baseline: &Row, row: &Row) -> Option<String> {
    if row.other_work.is_some() {
        return None;
    }
    let cycles = |row: &Row| Some(small(row.per_thousand(row.placement.as_ref()?.stall_cycles.misses)));
    let more = row.placement.as_ref()?.stall_cycles.more?;
    let of = |part: i64| signed_rate(row.per_thousand(part.unsigned_abs()) * part.signum() as f64);
    let mut parts = vec![
        format!("{} for where it puts objects", of(more.placement)),
        format!("{} for sharing the cache", of(more.pollution)),
        format!("{} for its allocator's own references", of(more.allocator)),
    ];
    if more.collector != 0 {
        parts.push(format!("{} for its collector's", of(more.collector)));
    }
    Some(format!(
        "{}: an estimated {} cycles of waiting per 1000 references of the program, compared with {}'s {}: \
         {}.",
        row.about.manager,
        cycles(row)?,
        baseline.about.manager,
        cycles(baseline)?,
        parts.join(", ")
    ))
}

/// A point with its interval where it is an estimate.
fn estimated(row: &Row, point: &Point) -> String {
    let value = small(row.per_thousand(point.misses));
    if point.low == point.high {
        return value;
    }
    let off = |end: u64| row.per_thousand(end.abs_diff(point.misses));
    format!("{value} ±{}", small(off(point.low).max(off(point.high))))
}

fn size(point: &Point) -> String {
    size_text(point.bytes)
}

/// A column for each point of a curve.
fn along<R>(
    table: Columns<R>,
    points: Option<&Vec<Point>>,
    title: impl Fn(&Point) -> String,
    cell: impl Fn(&R, usize) -> Option<String>,
) -> Columns<R> {
    let points = points.into_iter().flatten().enumerate();
    table.each(points, |(_, point)| Column::figures(&title(point)), |row, (at, _)| cell(row, *at))
}

/// The curve of all sizes.
fn fully_associative(study: &Study) -> Section {
    let exact = study.rows.iter().filter_map(|row| row.exact_up_to_bytes).min();
    let note = exact.map(|exact| {
        format!(
            "Up to {} every line is counted. Beyond, misses are estimated from a sample of the lines, ± the \
             further end of their 95 % interval.",
            size_text(exact)
        )
    });
    let caption = format!("Misses per 1000 references of the program, lines of {} bytes", study.line_bytes);
    let points = study.rows.first().map(|row| &row.caches_at);
    let table = along(managers(study).caption(caption).notes(note), points, size, |row, at| {
        Some(estimated(row, row.caches_at.get(at)?))
    });
    let charts = curves::fully_associative(study);
    Section::new("Fully associative caches of every size").with(table).with_all(charts)
}

/// Caches with sets.
fn associative(study: &Study, sizes: &[u64]) -> Section {
    let table = |ways: u32, caption: &str| {
        let have = |bytes: &u64| study.rows.iter().any(|row| row.associative(*bytes, ways).is_some());
        let sizes: Vec<u64> = sizes.iter().copied().filter(have).collect();
        let shown = managers(study).caption(caption).each(
            &sizes,
            |bytes| Column::figures(&size_text(**bytes)),
            |row, bytes| {
                let cache = row.associative(**bytes, ways)?;
                Some(small(row.per_thousand(cache.misses.total())))
            },
        );
        (!sizes.is_empty()).then(|| shown.table())
    };
    Section::new("Set-associative caches")
        .with_all(table(1, "Direct-mapped: misses per 1000 references of the program"))
        .with_all(table(8, "8 ways"))
        .with_all(curves::direct_mapped(study))
        .with_all(curves::ways(study))
}

/// Page faults and TLBs.
fn memories(study: &Study) -> Section {
    let Some(baseline) = study.rows.first() else { return Section::default() };
    let touched = baseline.pages_touched;
    let parts: Vec<(u64, (u64, u64))> = tight(touched).zip(TIGHT).chain([(touched, (1, 1))]).collect();
    let title = |point: &Point| match parts.iter().find(|(pages, _)| *pages == point.entries) {
        Some((_, (1, 1))) => format!("{} (all)", about(point.bytes)),
        Some((_, (part, of))) => format!("{} ({part}/{of})", about(point.bytes)),
        None => size_text(point.bytes),
    };
    let caption = format!("Page faults, pages of {}", whole_bytes(study.page_bytes));
    let faults = managers(study).caption(caption).note(format!(
        "All memory of the process, with the least recently used page replaced. In brackets: the \
         part of the memory touched under {}, {}.",
        baseline.about.manager,
        whole_bytes(touched * study.page_bytes)
    ));
    let faults = along(faults, Some(&baseline.memories_at), title, |row, at| {
        Some(count(row.memories_at.get(at)?.misses as f64))
    });
    let tlb = managers(study)
        .caption("TLB misses per 1000 references of the program, by entries")
        .note("In brackets: the memory that the entries reach.");
    let entries = |point: &Point| format!("{} ({})", point.entries, size_text(point.bytes));
    let tlb = along(tlb, Some(&baseline.tlbs_at), entries, |row, at| {
        Some(small(row.per_thousand(row.tlbs_at.get(at)?.misses)))
    });
    let section = Section { text: memory_sentences(study), ..Section::new("Memory and TLB of every size") };
    section.with(faults).with(tlb).with_all(curves::memories(study))
}

/// Managers whose faults are of another order of magnitude.
fn memory_sentences(study: &Study) -> Vec<String> {
    let [baseline, others @ ..] = &study.rows[..] else { return vec![] };
    let half = (baseline.pages_touched / 2).max(1);
    let at = |row: &Row| {
        row.memories_at.iter().find(|point| point.entries == half).map_or(0, |point| point.misses)
    };
    let own = at(baseline);
    let far: Vec<String> = others
        .iter()
        .filter(|row| row.other_work.is_none() && own > 0 && at(row) >= own.saturating_mul(10))
        .map(|row| format!("{} ({}x)", row.about.manager, over(at(row), own)))
        .collect();
    if far.is_empty() {
        return vec![];
    }
    vec![format!(
        "In half the memory that the program touches under {}, page faults are of another order of magnitude under {}.",
        baseline.about.manager,
        heaptoll_report::format::and_list(&far)
    )]
}

/// Working sets.
fn over_time(study: &Study) -> Option<Section> {
    let window = study.rows.iter().find_map(|row| Some(row.over_time.as_ref()?.window))?;
    let most = |row: &Row, of: fn(&Sample) -> u64, bytes: u64| {
        let most = row.over_time.as_ref()?.samples.iter().map(of).max()?;
        Some(heaptoll_units::bytes(most as f64 * bytes as f64))
    };
    let mean = |row: &Row, of: fn(&Window) -> f64, bytes: u64| {
        let mean = row.windows.iter().find(|one| one.window == window)?;
        Some(heaptoll_units::bytes(of(mean) * bytes as f64))
    };
    let (line, page) = (study.line_bytes, study.page_bytes);
    let table = managers(study)
        .caption(format!("Memory touched within {} references of the program", count(window as f64)))
        .figure("lines, mean", |row| mean(row, |one| one.mean_lines, line))
        .figure("lines, most", |row| most(row, |one| one.lines, line))
        .figure("pages, mean", |row| mean(row, |one| one.mean_pages, page))
        .figure("pages, most", |row| most(row, |one| one.pages, page))
        .figure("program's pages, most", |row| most(row, |one| one.program_pages, page));
    Some(Section::new("Working sets over the run").with(table).with_all(curves::over_time(study)))
}

/// Misses by accessor, and a chart of them for each manager.
fn by_owner(study: &Study) -> Section {
    let rows = study.rows.iter().flat_map(|row| {
        let made = Accessor::ALL.into_iter().filter(move |accessor| *row.references.get(*accessor) > 0);
        made.map(move |accessor| (row, accessor))
    });
    let table = Table::of(rows)
        .caption("Fully associative: misses per 1000 references of the program")
        .text("manager", |(row, _)| row.about.manager.clone())
        .text("references of", |(_, accessor)| accessor.name());
    let points = study.rows.first().map(|row| &row.caches_at);
    let table = along(table, points, size, |(row, accessor), at| {
        Some(small(row.per_thousand(*row.caches_at.get(at)?.by.get(*accessor))))
    });
    Section::new("Whose misses they are").with(table).with_all(study.rows.iter().filter_map(curves::by_owner))
}
