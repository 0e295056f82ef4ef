//! The sections of a replay's report: tables and charts.

use heaptoll_replay::findings::{Findings, Memory, Row, Time};
use heaptoll_replay::job::{Checkpoint, Latencies, Percentiles, Repetition};
use heaptoll_report::document::{Axis, Chart, Column, Form, Section, Series, Table};
use heaptoll_report::format::{NONE, count, interval, mib_from_bytes, percent_off, ratio, seconds};
use heaptoll_statistics::Interval;
use heaptoll_units::{MIB, bytes, tenths};

use super::verdict::{drift_text, verdict};

/// Time and memory of every manager.
pub fn summary(found: &Findings) -> Section {
    let mut order: Vec<usize> = (0..found.rows.len()).collect();
    let key = |row: &Row| row.time.map_or(f64::INFINITY, |time| time.ns_per_call);
    order.sort_by(|a, b| key(&found.rows[*a]).total_cmp(&key(&found.rows[*b])));
    let time = |index: usize, cell: &dyn Fn(&Time) -> String| found.rows[index].time.as_ref().map(cell);
    let memory = |index: usize, cell: &dyn Fn(&Memory) -> String| found.rows[index].memory.as_ref().map(cell);
    let ratio_of = |index: usize, ratio: Option<Interval>| match ratio {
        Some(ratio) => interval(&ratio),
        None => if index == 0 { "1" } else { NONE }.into(),
    };
    let table = Table::of(order)
        .text("manager", |at| found.rows[*at].name.clone())
        .figure("CPU s", |at| time(*at, &|time| seconds(time.cpu_s)))
        .figure("ns a call", |at| time(*at, &|time| format!("{:.1}", time.ns_per_call)))
        .figure("CPU ratio", |at| time(*at, &|time| ratio_of(*at, time.ratio)))
        .figure("faults", |at| time(*at, &|time| count(time.faults)))
        .figure("peak RSS MiB", |at| memory(*at, &|memory| mib_from_bytes(memory.peak_rss_bytes)))
        .figure("memory ratio", |at| memory(*at, &|memory| ratio_of(*at, memory.ratio)))
        .figure("peak / live", |at| memory(*at, &|memory| ratio(memory.peak_ratio)))
        .text("verdict", |at| verdict(*at, &found.rows[*at]))
        .note(format!(
            "CPU in the manager alone: the driver's own {:.1} ns a call are subtracted. Memory is the \
             heap's: the process's memory before its first call under a manager that does nothing is \
             subtracted. peak / live: most resident bytes divided by most requested bytes live.",
            found.own_ns
        ));
    Section::new("The same calls under every manager").with(table)
}

/// Latencies of single calls.
pub fn latency(found: &Findings) -> Option<Section> {
    let of = |caption: &str, kind: fn(&Latencies) -> &Percentiles| {
        let rows = found.rows.iter().filter_map(|row| Some((&row.name, kind(row.latency.as_ref()?))));
        Table::of(rows.filter(|(_, one)| one.calls > 0))
            .caption(caption)
            .text("manager", |(name, _)| name.as_str())
            .figure("50 %", |(_, one)| tenths(one.p50))
            .figure("90 %", |(_, one)| tenths(one.p90))
            .figure("99 %", |(_, one)| tenths(one.p99))
            .figure("99.9 %", |(_, one)| tenths(one.p99_9))
            .figure("99.99 %", |(_, one)| tenths(one.p99_99))
            .figure("longest", |(_, one)| tenths(one.max))
            .if_any()
    };
    let clock = found.rows.iter().find_map(|row| Some(row.latency.as_ref()?.clock_ns))?;
    let section = Section::new("Latency of single calls")
        .state(format!(
            "Each call is timed with serialising clock reads ({clock:.0} ns, subtracted). Medians over the \
             runs. The longest calls of a shared machine are its scheduler's."
        ))
        .with_all(of("Calls for a new block, ns", |all| &all.allocate))
        .with_all(of("Resizes, ns", |all| &all.resize))
        .with_all(of("Frees, ns", |all| &all.free));
    (!section.items.is_empty()).then_some(section)
}

/// Memory of every manager.
pub fn memory(found: &Findings) -> Option<Section> {
    let with: Vec<(&Row, &Memory)> =
        found.rows.iter().filter_map(|row| Some((row, row.memory.as_ref()?))).collect();
    let table = Table::of(&with)
        .text("manager", |(row, _)| row.name.clone())
        .figure("peak RSS MiB", |(_, memory)| mib_from_bytes(memory.peak_rss_bytes))
        .figure("final RSS MiB", |(_, memory)| mib_from_bytes(memory.end_rss_bytes))
        .figure("before the first call MiB", |(_, memory)| mib_from_bytes(memory.start_bytes))
        .figure("peak mapped MiB", |(_, memory)| {
            (memory.peak_heap_bytes > 0.0).then(|| mib_from_bytes(memory.peak_heap_bytes))
        })
        .figure("high-water it reports MiB", |(_, memory)| {
            memory.reported_high_water_bytes.map(mib_from_bytes)
        })
        .figure("peak / live", |(_, memory)| ratio(memory.peak_ratio))
        .figure("mean / live", |(_, memory)| memory.mean_ratio.map(ratio))
        .note(
            "RSS: resident memory of the heap, huge pages as a whole. Peak mapped: address space of \
             mappings with blocks, resident or not. Mean / live: resident divided by live bytes over \
             the whole trace, the cost of fragmentation, caches and headroom.",
        );
    let resident = chart(
        "Resident and live memory over the trace",
        "Live: what the program had requested and not freed. The distance to it is the manager's.",
        "MiB",
        &with,
        Some(|one: &Checkpoint| one.live_bytes as f64 / MIB),
        |one| one.rss_bytes as f64 / MIB,
    );
    let fragmentation = chart(
        "Fragmentation over the trace",
        "Resident memory of the heap divided by live bytes; 1 is the best possible with touched \
         blocks.",
        "resident / live",
        &with,
        None,
        |one| if one.live_bytes == 0 { 0.0 } else { one.rss_bytes as f64 / one.live_bytes as f64 },
    );
    Some(Section::new("Memory").with(table.if_any()?).with(resident).with(fragmentation))
}

fn chart(
    title: &str,
    caption: &str,
    y: &str,
    with: &[(&Row, &Memory)],
    live: Option<fn(&Checkpoint) -> f64>,
    figure: fn(&Checkpoint) -> f64,
) -> Chart {
    let points = |memory: &Memory, figure: fn(&Checkpoint) -> f64| {
        memory.checkpoints.iter().map(|one| (one.clock_bytes as f64 / MIB, figure(one))).collect()
    };
    let mut series: Vec<Series> =
        with.iter().map(|(row, memory)| Series::of(row.name.clone(), points(memory, figure))).collect();
    if let (Some(live), Some((_, memory))) = (live, with.first()) {
        series.push(Series::of("live", points(memory, live)));
    }
    Chart {
        title: title.into(),
        caption: caption.into(),
        form: Form::Lines,
        x: Axis::even("MiB allocated"),
        // A ratio is large where hardly anything is live: at the beginning and the end.
        y: Axis { title: y.into(), log: live.is_none(), ..Axis::default() },
        series,
    }
}

/// Whether memory drifts over repetitions.
pub fn drift(found: &Findings) -> Option<Section> {
    let with: Vec<(&Row, &[Repetition])> = found
        .rows
        .iter()
        .filter_map(|row| Some((row, row.drift.as_ref()?.repetitions.as_slice())))
        .filter(|(_, repetitions)| !repetitions.is_empty())
        .collect();
    let last = with.iter().map(|(_, repetitions)| repetitions.len()).max()?;
    let mut shown: Vec<usize> =
        [1, 10, 100, 1000, 10_000].into_iter().filter(|number| *number < last).collect();
    shown.push(last);
    let at = |repetitions: &[Repetition], number: usize, figure: fn(&Repetition) -> u64| {
        repetitions.get(number - 1).map(|one| mib_from_bytes(figure(one) as f64))
    };
    let table = Table::of(&with)
        .caption("Resident memory in a repetition: the most, and at its last call")
        .text("manager", |(row, _)| row.name.clone())
        .each(
            &shown,
            |number| Column::figures(&format!("peak {number} MiB")),
            |(_, all), number| at(all, **number, |one| one.high_water_bytes),
        )
        .each(
            &shown,
            |number| Column::figures(&format!("end {number} MiB")),
            |(_, all), number| at(all, **number, |one| one.end_rss_bytes),
        )
        .text("verdict", |(row, _)| drift_text(row))
        .note(
            "Peaks count as equal if they differ by less than 2 %, or by less than the error of the \
             kernel's mark (256 KiB a CPU).",
        );
    let series = with
        .iter()
        .map(|(row, repetitions)| Series {
            name: row.name.clone(),
            points: repetitions
                .iter()
                .enumerate()
                .map(|(at, one)| ((at + 1) as f64, one.high_water_bytes as f64 / MIB))
                .collect(),
            ..Series::default()
        })
        .collect();
    let section = Section::new("Does memory drift?").state(
        "The whole trace, repeated in the same process. Objects that the program never frees are freed \
         between repetitions, so each begins with nothing alive. Growth is fragmentation.",
    );
    Some(section.with(table).with(Chart {
        title: "Peak resident memory by repetition".into(),
        caption: "A line that keeps rising is unbounded fragmentation.".into(),
        form: Form::Lines,
        x: Axis::even("repetition"),
        y: Axis::even("MiB"),
        series,
    }))
}

/// The recorded run compared with its replay.
pub fn fidelity(found: &Findings) -> Option<Section> {
    let fidelity = found.fidelity.as_ref()?;
    let (recorded, replayed) = fidelity.max_live_bytes;
    let mut rows = vec![[
        "most bytes live".to_string(),
        count(recorded as f64),
        count(replayed as f64),
        if recorded == replayed {
            "the same".into()
        } else {
            percent_off(replayed as f64 / recorded.max(1) as f64)
        },
    ]];
    if let Some((recorded, replayed)) = fidelity.peak_heap_bytes {
        rows.push([
            "peak heap, mapped".into(),
            bytes(recorded as f64),
            bytes(replayed),
            format!("{:+.1} %", 100.0 * (replayed / recorded as f64 - 1.0)),
        ]);
    }
    if let Some((recorded, replayed)) = fidelity.peak_rss_bytes {
        let rest = (recorded as f64 - replayed).max(0.0);
        rows.push([
            "peak RSS".into(),
            format!("{} (whole process)", bytes(recorded as f64)),
            format!("{} (heap)", bytes(replayed)),
            format!("{} are not heap, or were not touched", bytes(rest)),
        ]);
    }
    if let Some((recorded, replayed)) = fidelity.cpu_s {
        rows.push([
            "CPU s".into(),
            format!("{} (whole process, while recorded)", seconds(recorded)),
            format!("{} (manager)", seconds(replayed)),
            format!("{:.0} % is the manager's", 100.0 * replayed / recorded.max(1e-9)),
        ]);
    }
    let table = Table::of(rows)
        .text("", |row| row[0].clone())
        .figure("recorded", |row| row[1].clone())
        .figure("replayed", |row| row[2].clone())
        .text("", |row| row[3].clone())
        .note(
            "Heap: anonymous mappings that contain blocks, with the brk segment; both sides are sampled \
             at the most live bytes, to 1 %. The kernel joins neighbouring mappings: what the recorded \
             program mapped itself next to its heap counts with it, and no replay has it.",
        );
    let title = format!("The recorded run and its replay under {}", fidelity.manager);
    Some(Section::new(title).with(table))
}
