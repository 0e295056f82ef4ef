//! The tables of `heaptoll exact locality`, with the charts that belong to them.

use heaptoll_locality::placement::Parts;
use heaptoll_locality::simulation::Accessor;
use heaptoll_locality::study::{Cause, Point, Row, Study, TIGHT, tight};
use heaptoll_report::document::{Column, Item, Section, Table};
use heaptoll_report::format::{NONE, count};
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

fn columns(first: &str, figures: impl IntoIterator<Item = String>) -> Vec<Column> {
    std::iter::once(Column::text(first))
        .chain(figures.into_iter().map(|title| Column::figures(&title)))
        .collect()
}

fn rows(study: &Study, cells: impl Fn(&Row) -> Vec<String>) -> Vec<Vec<String>> {
    let named = |row: &Row| std::iter::once(row.about.manager.clone()).chain(cells(row)).collect();
    study.rows.iter().map(named).collect()
}

/// References by accessor, and the memory they touch.
fn references(study: &Study) -> Section {
    let collectors = study.rows.iter().any(|row| row.references.collections() > 0);
    let mut titles = vec!["program's M", "allocator's M"];
    if collectors {
        titles.push("collector's M");
    }
    titles.extend(["system calls' M", "lines touched", "pages touched", "program's instructions M"]);
    let cells = |row: &Row| {
        let made = &row.references;
        let mut cells = vec![millions(made.program), millions(made.allocator)];
        if collectors {
            cells.push(millions(made.collections()));
        }
        cells.extend([
            millions(made.system),
            whole_bytes(row.lines_touched * study.line_bytes),
            whole_bytes(row.pages_touched * study.page_bytes),
            millions(row.about.instructions[0]),
        ]);
        cells
    };
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
    Section {
        title: "References to memory".into(),
        text: vec![],
        items: vec![Item::Table(Table {
            caption: "Data references by accessor, millions, and what they touch".into(),
            columns: columns("manager", titles.into_iter().map(String::from)),
            rows: rows(study, cells),
            notes: others,
        })],
    }
}

/// The machine's caches, level by level.
fn machine(study: &Study) -> Section {
    let Some(baseline) = study.rows.first() else { return Section::default() };
    let total = |row: &Row| row.stall_cycles.total();
    let names: Vec<String> =
        study.machine.levels.iter().map(|one| format!("{}/{}", size_text(one.bytes), one.ways)).collect();
    let titles = names.iter().cloned().chain(
        ["stall cycles M", "vs baseline", "program's", "allocator's", "collector's"].map(String::from),
    );
    let cells = |row: &Row| {
        let stalls = &row.stall_cycles;
        let share = |cycles: u64| match total(row) {
            0 => NONE.to_owned(),
            all => percent(cycles as f64 / all as f64),
        };
        row.machine
            .iter()
            .map(|level| small(row.per_thousand(level.misses)))
            .chain([
                millions(total(row)),
                over(total(row), total(baseline)),
                share(stalls.program + stalls.system),
                share(stalls.allocator),
                share(stalls.collections()),
            ])
            .collect()
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
    Section {
        title: format!("Caches {}", study.machine),
        text: machine_sentences(study),
        items: vec![Item::Table(Table {
            caption: "Misses of each level per 1000 references of the program, and what they cost".into(),
            columns: columns("manager", titles),
            rows: rows(study, cells),
            notes: vec![format!(
                "Stall cycles are an estimate: each reference waits its turn, {}; hits of the first level \
                 wait for nothing. Real machines overlap waiting, prefetch, and hide stores. System calls \
                 count as the program's.",
                waits.join(", ")
            )],
        })],
    }
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
        let Parts { placement, pollution, allocator, collector } = all.parts;
        let mut lines =
            vec![vec![baseline.about.manager.clone(), plain(baseline, all.parts.total()), "baseline".into()]];
        lines[0].extend([placement, pollution, allocator, collector].map(|part| plain(baseline, part)));
        for row in others {
            let Some(Cause { parts, more: Some(more), .. }) = at(row) else { continue };
            let mut line =
                vec![row.about.manager.clone(), plain(row, parts.total()), signed(row, more.total())];
            let more = [more.placement, more.pollution, more.allocator, more.collector];
            line.extend(more.map(|part| signed(row, part)));
            lines.push(line);
        }
        Some(Item::Table(Table {
            caption: title,
            columns: columns(
                "manager",
                ["all", "more", "= placement", "+ pollution", "+ allocator", "+ collector"].map(String::from),
            ),
            rows: lines,
            notes: vec![],
        }))
    };
    let level = |row: &Row, at: usize| row.placement.as_ref()?.machine.get(at).cloned();
    let parts = |row: &Row, at: usize| level(row, at).map(|cause| cause.parts);
    let mut items: Vec<Item> = Vec::new();
    for (at, cause) in first.machine.iter().enumerate() {
        // Once all is in a cache, those beyond it see the same first touches.
        if at > 0 && study.rows.iter().all(|row| parts(row, at) == parts(row, at - 1)) {
            continue;
        }
        let title = format!("{}: misses per 1000 references of the program", cause.cache);
        items.extend(table(title, false, &|row| level(row, at)));
    }
    let title = "Estimated stall cycles per 1000 references of the program";
    items.extend(table(title.into(), false, &|row| Some(row.placement.as_ref()?.stall_cycles.clone())));
    // The other memories are in the JSON.
    let half = TIGHT.iter().position(|(part, of)| part * 2 == *of);
    if let Some((at, cause)) = half.and_then(|at| Some((at, first.memories.get(at)?))) {
        let title = format!(
            "Page faults in half the memory that the program touches under {} ({})",
            baseline.about.manager,
            about(cause.bytes)
        );
        items.extend(table(title, true, &|row| row.placement.as_ref()?.memories.get(at).cloned()));
    }
    items.extend(curves::placement(study).into_iter().map(Item::Chart));
    let mut text = vec![
        "The program makes the same references under every manager; only their addresses differ. Placement: \
         misses of its own references, simulated alone. Pollution: extra misses from sharing the cache with \
         the manager (negative if the manager prefetched for the program). The rest are the manager's own \
         misses. The baseline's row has the number of misses, the others the difference; each row adds up."
            .to_owned(),
    ];
    text.extend(others.iter().filter_map(|row| cause_sentence(baseline, row)));
    Some(Section { title: "Placement and the manager's own work, separately".into(), text, items })
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

fn sizes_of(points: &[Point]) -> Vec<String> {
    points.iter().map(|point| size_text(point.bytes)).collect()
}

/// The curve of all sizes.
fn fully_associative(study: &Study) -> Section {
    let cells = |row: &Row| row.caches_at.iter().map(|point| estimated(row, point)).collect();
    let titles = study.rows.first().map_or(vec![], |row| sizes_of(&row.caches_at));
    let mut notes = vec![];
    let sampled = study.rows.iter().filter(|row| row.exact_up_to_bytes.is_some());
    if let Some(exact) = sampled.filter_map(|row| row.exact_up_to_bytes).min() {
        notes.push(format!(
            "Up to {} every line is counted. Beyond, misses are estimated from a sample of the lines, ± the \
             further end of their 95 % interval.",
            size_text(exact)
        ));
    }
    let mut items = vec![Item::Table(Table {
        caption: format!("Misses per 1000 references of the program, lines of {} bytes", study.line_bytes),
        columns: columns("manager", titles),
        rows: rows(study, cells),
        notes,
    })];
    items.extend(curves::fully_associative(study).map(Item::Chart));
    Section { title: "Fully associative caches of every size".into(), text: vec![], items }
}

/// Caches with sets.
fn associative(study: &Study, sizes: &[u64]) -> Section {
    let table = |ways: u32, caption: &str| {
        let have = |bytes: &u64| study.rows.iter().any(|row| row.associative(*bytes, ways).is_some());
        let sizes: Vec<u64> = sizes.iter().copied().filter(have).collect();
        let cells = |row: &Row| {
            let cell = |bytes: &u64| match row.associative(*bytes, ways) {
                Some(cache) => small(row.per_thousand(cache.misses.total())),
                None => NONE.to_owned(),
            };
            sizes.iter().map(cell).collect()
        };
        (!sizes.is_empty()).then(|| {
            Item::Table(Table {
                caption: caption.into(),
                columns: columns("manager", sizes.iter().map(|bytes| size_text(*bytes))),
                rows: rows(study, cells),
                notes: vec![],
            })
        })
    };
    let mut items: Vec<Item> =
        [table(1, "Direct-mapped: misses per 1000 references of the program"), table(8, "8 ways")]
            .into_iter()
            .flatten()
            .collect();
    items.extend(curves::direct_mapped(study).map(Item::Chart));
    items.extend(curves::ways(study).map(Item::Chart));
    Section { title: "Set-associative caches".into(), text: vec![], items }
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
    let faults = |row: &Row| row.memories_at.iter().map(|point| count(point.misses as f64)).collect();
    let tlb = |row: &Row| row.tlbs_at.iter().map(|point| small(row.per_thousand(point.misses))).collect();
    let mut items = vec![
        Item::Table(Table {
            caption: format!("Page faults, pages of {}", whole_bytes(study.page_bytes)),
            columns: columns("manager", baseline.memories_at.iter().map(title)),
            rows: rows(study, faults),
            notes: vec![format!(
                "All memory of the process, with the least recently used page replaced. In brackets: the \
                 part of the memory touched under {}, {}.",
                baseline.about.manager,
                whole_bytes(touched * study.page_bytes)
            )],
        }),
        Item::Table(Table {
            caption: "TLB misses per 1000 references of the program, by entries".into(),
            columns: columns(
                "manager",
                baseline
                    .tlbs_at
                    .iter()
                    .map(|point| format!("{} ({})", point.entries, size_text(point.bytes))),
            ),
            rows: rows(study, tlb),
            notes: vec!["In brackets: the memory that the entries reach.".into()],
        }),
    ];
    items.extend(curves::memories(study).map(Item::Chart));
    Section { title: "Memory and TLB of every size".into(), text: memory_sentences(study), items }
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
    let cells = |row: &Row| {
        let samples = row.over_time.as_ref().map(|scale| &scale.samples[..]).unwrap_or_default();
        let most = |of: fn(&heaptoll_locality::over_time::Sample) -> u64| samples.iter().map(of).max();
        let mean = row.windows.iter().find(|one| one.window == window);
        let bytes = |value: Option<f64>| value.map_or(NONE.to_owned(), heaptoll_units::bytes);
        let (line, page) = (study.line_bytes as f64, study.page_bytes as f64);
        vec![
            bytes(mean.map(|one| one.mean_lines * line)),
            bytes(most(|one| one.lines).map(|lines| lines as f64 * line)),
            bytes(mean.map(|one| one.mean_pages * page)),
            bytes(most(|one| one.pages).map(|pages| pages as f64 * page)),
            bytes(most(|one| one.program_pages).map(|pages| pages as f64 * page)),
        ]
    };
    let titles = ["lines, mean", "lines, most", "pages, mean", "pages, most", "program's pages, most"];
    let mut items = vec![Item::Table(Table {
        caption: format!("Memory touched within {} references of the program", count(window as f64)),
        columns: columns("manager", titles.map(String::from)),
        rows: rows(study, cells),
        notes: vec![],
    })];
    items.extend(curves::over_time(study).into_iter().map(Item::Chart));
    Some(Section { title: "Working sets over the run".into(), text: vec![], items })
}

/// Misses by accessor, and a chart of them for each manager.
fn by_owner(study: &Study) -> Section {
    let titles = study.rows.first().map_or(vec![], |row| sizes_of(&row.caches_at));
    let of = |row: &Row| {
        let made = Accessor::ALL.into_iter().filter(|accessor| *row.references.get(*accessor) > 0);
        let line = |accessor: Accessor| {
            let cells = row.caches_at.iter().map(|point| small(row.per_thousand(*point.by.get(accessor))));
            [row.about.manager.clone(), accessor.name().into()]
                .into_iter()
                .chain(cells)
                .collect::<Vec<String>>()
        };
        made.map(line).collect::<Vec<Vec<String>>>()
    };
    let mut columns = columns("manager", titles);
    columns.insert(1, Column::text("references of"));
    let mut items = vec![Item::Table(Table {
        caption: "Fully associative: misses per 1000 references of the program".into(),
        columns,
        rows: study.rows.iter().flat_map(of).collect(),
        notes: vec![],
    })];
    items.extend(study.rows.iter().filter_map(curves::by_owner).map(Item::Chart));
    Section { title: "Whose misses they are".into(), text: vec![], items }
}
