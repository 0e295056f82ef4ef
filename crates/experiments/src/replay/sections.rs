//! The sections of a replay's report: tables and charts.

use heaptoll_replay::findings::{Findings, Memory, Row};
use heaptoll_replay::job::{Checkpoint, Latencies, Percentiles, Repetition};
use heaptoll_report::document::{Axis, Chart, Column, Form, Item, Section, Series, Table};
use heaptoll_report::format::{NONE, count, interval, mib_from_bytes, percent_off, ratio, seconds};
use heaptoll_units::{MIB, bytes, tenths};

use super::verdict::{drift_text, verdict};

/// Time and memory of every manager.
pub fn summary(found: &Findings) -> Section {
    let mut order: Vec<usize> = (0..found.rows.len()).collect();
    let key = |row: &Row| row.time.map_or(f64::INFINITY, |time| time.ns_per_call);
    order.sort_by(|a, b| key(&found.rows[*a]).total_cmp(&key(&found.rows[*b])));
    let rows = order
        .into_iter()
        .map(|index| {
            let row = &found.rows[index];
            let time = |cell: &dyn Fn(&heaptoll_replay::findings::Time) -> String| {
                row.time.as_ref().map_or(NONE.into(), cell)
            };
            let memory = |cell: &dyn Fn(&Memory) -> String| row.memory.as_ref().map_or(NONE.into(), cell);
            let ratio_of = |ratio: Option<heaptoll_statistics::Interval>| {
                ratio.map_or(if index == 0 { "1".into() } else { NONE.into() }, |ratio| interval(&ratio))
            };
            vec![
                row.name.clone(),
                time(&|time| seconds(time.cpu_s)),
                time(&|time| format!("{:.1}", time.ns_per_call)),
                time(&|time| ratio_of(time.ratio)),
                time(&|time| count(time.faults)),
                memory(&|memory| mib_from_bytes(memory.peak_rss_bytes)),
                memory(&|memory| ratio_of(memory.ratio)),
                memory(&|memory| ratio(memory.peak_ratio)),
                verdict(index, row),
            ]
        })
        .collect();
    let table = Table {
        caption: String::new(),
        columns: vec![
            Column::text("manager"),
            Column::figures("CPU s"),
            Column::figures("ns a call"),
            Column::figures("CPU ratio"),
            Column::figures("faults"),
            Column::figures("peak RSS MiB"),
            Column::figures("memory ratio"),
            Column::figures("peak / live"),
            Column::text("verdict"),
        ],
        rows,
        notes: vec![format!(
            "CPU in the manager alone: the driver's own {:.1} ns a call are subtracted. Memory is the \
             heap's: the process's memory before its first call under a manager that does nothing is \
             subtracted. peak / live: most resident bytes divided by most requested bytes live.",
            found.own_ns
        )],
    };
    Section {
        title: "The same calls under every manager".into(),
        text: vec![],
        items: vec![Item::Table(table)],
    }
}

/// Latencies of single calls.
pub fn latency(found: &Findings) -> Option<Section> {
    let of = |caption: &str, kind: fn(&Latencies) -> &Percentiles| {
        let rows: Vec<Vec<String>> = found
            .rows
            .iter()
            .filter_map(|row| Some((row, kind(row.latency.as_ref()?))))
            .filter(|(_, one)| one.calls > 0)
            .map(|(row, one)| {
                let cells = [one.p50, one.p90, one.p99, one.p99_9, one.p99_99, one.max].map(tenths);
                std::iter::once(row.name.clone()).chain(cells).collect()
            })
            .collect();
        (!rows.is_empty()).then(|| {
            Item::Table(Table {
                caption: caption.into(),
                columns: std::iter::once(Column::text("manager"))
                    .chain(["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "longest"].map(Column::figures))
                    .collect(),
                rows,
                notes: vec![],
            })
        })
    };
    let clock = found.rows.iter().find_map(|row| Some(row.latency.as_ref()?.clock_ns))?;
    let items: Vec<Item> = [
        of("Calls for a new block, ns", |all| &all.allocate),
        of("Resizes, ns", |all| &all.resize),
        of("Frees, ns", |all| &all.free),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!items.is_empty()).then(|| Section {
        title: "Latency of single calls".into(),
        text: vec![format!(
            "Each call is timed with serialising clock reads ({clock:.0} ns, subtracted). Medians over the \
             runs. The longest calls of a shared machine are its scheduler's."
        )],
        items,
    })
}

/// Memory of every manager.
pub fn memory(found: &Findings) -> Option<Section> {
    let with: Vec<(&Row, &Memory)> =
        found.rows.iter().filter_map(|row| Some((row, row.memory.as_ref()?))).collect();
    let some = |value: f64| if value > 0.0 { mib_from_bytes(value) } else { NONE.into() };
    let rows: Vec<Vec<String>> = with
        .iter()
        .map(|(row, memory)| {
            vec![
                row.name.clone(),
                mib_from_bytes(memory.peak_rss_bytes),
                mib_from_bytes(memory.end_rss_bytes),
                mib_from_bytes(memory.start_bytes),
                some(memory.peak_heap_bytes),
                memory.reported_high_water_bytes.map_or(NONE.into(), mib_from_bytes),
                ratio(memory.peak_ratio),
                memory.mean_ratio.map_or(NONE.into(), ratio),
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| Section {
        title: "Memory".into(),
        text: vec![],
        items: vec![
            Item::Table(Table {
                caption: String::new(),
                columns: vec![
                    Column::text("manager"),
                    Column::figures("peak RSS MiB"),
                    Column::figures("final RSS MiB"),
                    Column::figures("before the first call MiB"),
                    Column::figures("peak mapped MiB"),
                    Column::figures("high-water it reports MiB"),
                    Column::figures("peak / live"),
                    Column::figures("mean / live"),
                ],
                rows,
                notes: vec![
                    "RSS: resident memory of the heap, huge pages as a whole. Peak mapped: address space of \
                     mappings with blocks, resident or not. Mean / live: resident divided by live bytes over \
                     the whole trace, the cost of fragmentation, caches and headroom."
                        .into(),
                ],
            }),
            Item::Chart(chart(
                "Resident and live memory over the trace",
                "Live: what the program had requested and not freed. The distance to it is the manager's.",
                "MiB",
                &with,
                Some(|one: &Checkpoint| one.live_bytes as f64 / MIB),
                |one| one.rss_bytes as f64 / MIB,
            )),
            Item::Chart(chart(
                "Fragmentation over the trace",
                "Resident memory of the heap divided by live bytes; 1 is the best possible with touched \
                 blocks.",
                "resident / live",
                &with,
                None,
                |one| if one.live_bytes == 0 { 0.0 } else { one.rss_bytes as f64 / one.live_bytes as f64 },
            )),
        ],
    })
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
    let mut series: Vec<Series> = with
        .iter()
        .map(|(row, memory)| Series {
            name: row.name.clone(),
            points: points(memory, figure),
            ..Series::default()
        })
        .collect();
    if let (Some(live), Some((_, memory))) = (live, with.first()) {
        series.push(Series { name: "live".into(), points: points(memory, live), ..Series::default() });
    }
    Chart {
        title: title.into(),
        caption: caption.into(),
        form: Form::Lines,
        x: Axis { title: "MiB allocated".into(), ..Axis::default() },
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
    let rows = with
        .iter()
        .map(|(row, repetitions)| {
            let at = |number: &usize, figure: fn(&Repetition) -> u64| {
                repetitions.get(number - 1).map_or(NONE.into(), |one| mib_from_bytes(figure(one) as f64))
            };
            std::iter::once(row.name.clone())
                .chain(shown.iter().map(|number| at(number, |one| one.high_water_bytes)))
                .chain(shown.iter().map(|number| at(number, |one| one.end_rss_bytes)))
                .chain([drift_text(row)])
                .collect()
        })
        .collect();
    let columns = std::iter::once(Column::text("manager"))
        .chain(shown.iter().map(|number| Column::figures(&format!("peak {number} MiB"))))
        .chain(shown.iter().map(|number| Column::figures(&format!("end {number} MiB"))))
        .chain([Column::text("verdict")])
        .collect();
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
    Some(Section {
        title: "Does memory drift?".into(),
        text: vec![
            "The whole trace, repeated in the same process. Objects that the program never frees are freed \
             between repetitions, so each begins with nothing alive. Growth is fragmentation."
                .into(),
        ],
        items: vec![
            Item::Table(Table {
                caption: "Resident memory in a repetition: the most, and at its last call".into(),
                columns,
                rows,
                notes: vec![
                    "Peaks count as equal if they differ by less than 2 %, or by less than the error of the \
                     kernel's mark (256 KiB a CPU)."
                        .into(),
                ],
            }),
            Item::Chart(Chart {
                title: "Peak resident memory by repetition".into(),
                caption: "A line that keeps rising is unbounded fragmentation.".into(),
                form: Form::Lines,
                x: Axis { title: "repetition".into(), ..Axis::default() },
                y: Axis { title: "MiB".into(), ..Axis::default() },
                series,
            }),
        ],
    })
}

/// The recorded run compared with its replay.
pub fn fidelity(found: &Findings) -> Option<Section> {
    let fidelity = found.fidelity.as_ref()?;
    let (recorded, replayed) = fidelity.max_live_bytes;
    let mut rows = vec![vec![
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
        rows.push(vec![
            "peak heap, mapped".into(),
            bytes(recorded as f64),
            bytes(replayed),
            format!("{:+.1} %", 100.0 * (replayed / recorded as f64 - 1.0)),
        ]);
    }
    if let Some((recorded, replayed)) = fidelity.peak_rss_bytes {
        let rest = (recorded as f64 - replayed).max(0.0);
        rows.push(vec![
            "peak RSS".into(),
            format!("{} (whole process)", bytes(recorded as f64)),
            format!("{} (heap)", bytes(replayed)),
            format!("{} are not heap, or were not touched", bytes(rest)),
        ]);
    }
    if let Some((recorded, replayed)) = fidelity.cpu_s {
        rows.push(vec![
            "CPU s".into(),
            format!("{} (whole process, while recorded)", seconds(recorded)),
            format!("{} (manager)", seconds(replayed)),
            format!("{:.0} % is the manager's", 100.0 * replayed / recorded.max(1e-9)),
        ]);
    }
    Some(Section {
        title: format!("The recorded run and its replay under {}", fidelity.manager),
        text: vec![],
        items: vec![Item::Table(Table {
            caption: String::new(),
            columns: vec![
                Column::text(""),
                Column::figures("recorded"),
                Column::figures("replayed"),
                Column::text(""),
            ],
            rows,
            notes: vec![
                "Heap: anonymous mappings that contain blocks, with the brk segment; both sides are sampled \
                 at the most live bytes, to 1 %. The kernel joins neighbouring mappings: what the recorded \
                 program mapped itself next to its heap counts with it, and no replay has it."
                    .into(),
            ],
        })],
    })
}
