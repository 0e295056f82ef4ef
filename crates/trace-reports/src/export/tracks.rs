//! What a trace holds over time next to its events: samples of the process from outside, and the ledger.

use heaptoll_ledger::{EXTRA, Ledger, Snapshot, TERMS};
use heaptoll_profiles::{Counter, Slice, SliceTrack, Tracks, Unit};
use heaptoll_trace::Tables;
use heaptoll_trace_analysis::profile::Window;

use crate::ledger::line_name;

/// All tracks of a trace, `live` included, within the window.
pub fn of(tables: &Tables, live: Tracks, window: Window) -> Tracks {
    let mut tracks = live;
    let samples = |name: &str, of: fn(&heaptoll_trace::Sample) -> u64| Counter {
        name: name.to_owned(),
        unit: Unit::Bytes,
        points: tables
            .samples
            .iter()
            .map(|sample| (sample.time_ns, of(sample).saturating_mul(1024)))
            .collect(),
    };
    tracks.counters.push(samples("resident set", |sample| sample.rss_kib));
    tracks.counters.push(samples("heap's address space", |sample| sample.heap_kib));
    // A table that cannot be read has been warned of, or is of a later version.
    if let Some(Ok(ledger)) = tables.extra::<Ledger>(EXTRA) {
        tracks.counters.extend(terms(&ledger.snapshots));
        tracks.slices.push(snapshots(&ledger.snapshots));
    }
    let is_within = |time_ns: u64| (window.from_ns..window.to_ns).contains(&time_ns);
    for counter in &mut tracks.counters {
        counter.points.retain(|(time_ns, _)| is_within(*time_ns));
    }
    for track in &mut tracks.slices {
        track.slices.retain(|slice| is_within(slice.start_ns));
    }
    tracks.counters.retain(|counter| counter.points.iter().any(|(_, value)| *value > 0));
    tracks.slices.retain(|track| !track.slices.is_empty());
    tracks
}

/// The resident bytes of each line of the ledger.
fn terms(snapshots: &[Snapshot]) -> impl Iterator<Item = Counter> + '_ {
    TERMS.into_iter().map(|term| Counter {
        name: format!("ledger: {}", line_name(term)),
        unit: Unit::Bytes,
        points: snapshots.iter().map(|snapshot| (snapshot.time_ns, snapshot.amount(term).resident)).collect(),
    })
}

/// The recorder stops the program while it takes a snapshot: the pauses are its own.
fn snapshots(snapshots: &[Snapshot]) -> SliceTrack {
    let slice = |snapshot: &Snapshot| Slice {
        name: "stopped for a snapshot".into(),
        start_ns: snapshot.time_ns,
        length_ns: snapshot.took_ns,
        facts: vec![("live_bytes", snapshot.live_bytes), ("rss_bytes", snapshot.rss_bytes)],
    };
    SliceTrack { name: "heaptoll's snapshots".into(), slices: snapshots.iter().map(slice).collect() }
}
