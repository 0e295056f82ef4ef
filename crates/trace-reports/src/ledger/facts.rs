//! Where the memory is: `heaptoll ledger` of one recording, by the causes of Detlefs, Dosser and Zorn (1994, Results).
//!
//! Their conservatism and their storage that is freed and accessible are one column: an address that the program kept
//! and a number that looks like one cannot be distinguished without the types of its data (docs/questions/ledger.md).

use heaptoll_facts::{Comparative, Facts, Metric, Value};
use heaptoll_ledger::{Snapshot, Term};

use super::figures::LedgerFigures;
use heaptoll_command::subject::manager_name;

/// The metric of a line of the sum.
fn cause(term: Term) -> &'static str {
    match term {
        Term::Live => "live_kib",
        Term::Metadata => "structures_kib",
        Term::Internal => "internal_kib",
        Term::External | Term::Caches | Term::Fresh | Term::Quarantine => "external_kib",
        Term::Dead | Term::Headroom => "headroom_kib",
        Term::Held => "held_kib",
        Term::Unused => "granularity_kib",
        Term::Blacklisted => "blacklisted_kib",
        Term::Unrecorded
        | Term::Inherited
        | Term::Code
        | Term::StaticData
        | Term::Stacks
        | Term::Shared
        | Term::Recorder
        | Term::Kernel
        | Term::OtherAnonymous => "not_heap_kib",
    }
}

/// The resident set, the causes in which it is, and what no cause has.
const PARTS: [Metric; 11] = [
    Metric::count("rss_kib", "resident at the peak"),
    Metric::count("live_kib", "live blocks, as requested"),
    Metric::count("structures_kib", "the manager's structures"),
    Metric::count("internal_kib", "bytes of live blocks that nobody requested"),
    Metric::count("external_kib", "free bytes on live pages, and free pages"),
    Metric::count("headroom_kib", "dead blocks that a collection now reclaims"),
    Metric::count("held_kib", "dead blocks that a collection now does not reclaim"),
    Metric::count("granularity_kib", "mapped and never carved: the heap's step of growth"),
    Metric::count("blacklisted_kib", "avoided, since words could be taken for addresses in it"),
    Metric::count("not_heap_kib", "what is not the heap"),
    Metric::count("rest_kib", "what the others leave"),
];

/// Facts of the snapshot at the peak; none of a trace without snapshots.
impl Comparative for LedgerFigures {
    const METRICS: &'static [Metric] = &PARTS;

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        let LedgerFigures::Pages { program, manager, peak, snapshots, .. } = self else { return facts };
        let Some(snapshot) = peak.and_then(|peak| snapshots.get(peak)) else { return facts };
        let mut writer = facts.of(program, manager_name(manager));
        let mut put = |metric: Metric, bytes: f64| writer.put(metric.id, None, Value::Single(bytes / 1024.0));
        let [rss, causes @ .., rest] = PARTS;
        put(rss, snapshot.rss_bytes as f64);
        let mut left = snapshot.rss_bytes as f64;
        for metric in causes {
            let resident = resident(snapshot, metric.id) as f64;
            left -= resident;
            put(metric, resident);
        }
        put(rest, left);
        facts
    }
}

fn resident(snapshot: &Snapshot, metric: &str) -> u64 {
    let lines = snapshot.lines.iter().filter(|line| cause(line.term) == metric);
    lines.map(|line| line.amount.resident).sum()
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::Fact;
    use heaptoll_facts::testing::{measured, number, one};

    use super::*;

    const TERMS: &str = r#"[
        {"term": "live", "resident": 4096, "how": "counted"},
        {"term": "external", "resident": 1024, "how": "counted"},
        {"term": "caches", "resident": 2048, "how": "counted"},
        {"term": "headroom", "resident": 5120, "how": "estimated"},
        {"term": "held", "resident": 6144, "how": "estimated"},
        {"term": "code", "resident": 7168, "how": "counted"},
        {"term": "recorder", "resident": 1024, "how": "counted"}
    ]"#;

    fn found(rss: u64) -> Vec<Fact> {
        let lines: serde_json::Value = serde_json::from_str(TERMS).expect("lines");
        let snapshot = |rss: u64| -> Snapshot {
            let text = serde_json::json!({
                "time_ns": 1, "clock_bytes": 1, "rss_bytes": rss, "vm_rss_bytes": rss, "difference_bytes": 0,
                "lines": lines, "live_blocks": 1, "live_bytes": 1, "heap_bytes": 1, "heap_ranges": 1, "huge_bytes": 0,
                "huge_free_bytes": 0, "reserved_bytes": 0, "no_pagemap": null,
                "defects": { "unmapped_blocks": 0, "unmapped_bytes": 0, "unmapped_address": 0,
                    "overlapping_blocks": 0, "overlapping_bytes": 0 },
                "census": null, "took_ns": 1,
            });
            serde_json::from_value(text).expect("a snapshot")
        };
        let found = LedgerFigures::Pages {
            program: "cfrac".into(),
            manager: "bw26".into(),
            collector: true,
            collected: true,
            peak: Some(1),
            most_live: Some(0),
            call_sites: Vec::new(),
            replays: None,
            max_live_bytes: Some(1),
            max_rss_bytes: 1,
            peak_is_known: true,
            live_peak: None,
            first_run: None,
            static_variables: Vec::new(),
            snapshots: vec![snapshot(1), snapshot(rss)],
        };
        measured(&found)
    }

    #[test]
    fn causes_are_those_of_the_largest_resident_set_and_leave_nothing() {
        let whole = found(26_624);
        let kib = |metric: &str| number(one(&whole, metric, None));
        assert_eq!([kib("rss_kib"), kib("live_kib"), kib("external_kib")], [26.0, 4.0, 3.0]);
        assert_eq!([kib("headroom_kib"), kib("held_kib"), kib("not_heap_kib")], [5.0, 6.0, 8.0]);
        assert_eq!([kib("structures_kib"), kib("rest_kib")], [0.0, 0.0]);
        assert_eq!(number(one(&found(27_648), "rest_kib", None)), 1.0, "what no line has is shown");
    }
}
