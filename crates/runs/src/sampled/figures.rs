//! The figures of a sampled profile: what each call site holds and allocated, each with its interval.

use std::ffi::OsString;

use heaptoll_callsites::{Frame, Rows};
use heaptoll_record::Manager;
use heaptoll_record::sampling::{Estimate, NamedProcess, largest_unseen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

schemars::labelled!(Figures, "heaptoll-sample/1");

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// Unbiased: right on average.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Estimates of a set of allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimated {
    /// Sampled objects, on which the estimates rest.
    pub samples: u64,
    /// Objects.
    pub objects: Value,
    /// Bytes, as requested.
    pub bytes: Value,
}

/// A call site: the stacks that read alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The frames that are shown: `insert (tree.cc:12) < main`.
    pub name: String,
    /// Call stacks of it that were sampled.
    pub stacks: u64,
    /// In use when the profile was made: allocated while the layer was awake, and not freed.
    pub live: Estimated,
    /// Allocated while the layer was awake.
    pub allocated: Estimated,
}

/// A sampled profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// The program and its arguments, of the first process; of another one its file.
    pub command: Vec<String>,
    /// The file that the process executes.
    pub exe: String,
    /// Process number.
    pub pid: i32,
    /// The manager that its `malloc` is bound to, below the layer.
    pub manager: String,
    /// Mean distance of sample points, bytes.
    pub mean_bytes: u64,
    /// A call site of small objects that is not listed holds less than this, bytes, with 95 % probability.
    pub unseen_bytes: f64,
    /// Samples whose call stack is not known.
    pub without_site: u64,
    /// Samples that do not count as live, as there was no place for them.
    pub not_followed: u64,
    /// All that is in use.
    pub live: Estimated,
    /// All that was allocated.
    pub allocated: Estimated,
    /// By call site: most bytes in use first, then most allocated.
    pub rows: Vec<Row>,
}

/// What is known of a run.
pub struct Run<'a> {
    /// The command.
    pub command: &'a [OsString],
    /// The manager that was to serve it.
    pub manager: &'a Manager,
    /// Mean distance of sample points, bytes.
    pub mean_bytes: u64,
    /// Frames that a row shows.
    pub frames: usize,
}

impl Estimated {
    fn of(estimate: Estimate) -> Estimated {
        // As many decimals as a reader of JSON restores exactly.
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        let value = |estimate: f64, (low, high): (f64, f64)| Value {
            estimate: rounded(estimate),
            low: rounded(low),
            high: rounded(high),
        };
        Estimated {
            samples: estimate.samples,
            objects: value(estimate.objects, estimate.objects_interval()),
            bytes: value(estimate.bytes, estimate.bytes_interval()),
        }
    }
}

/// The figures of a process.
pub fn figures(process: &NamedProcess, run: &Run) -> Figures {
    let mut rows = Rows::new(run.frames);
    let mut sums: Vec<(u64, Estimate, Estimate)> = Vec::new();
    for (site, sampled) in process.samples.iter().enumerate() {
        if sampled.allocated.samples == 0 {
            continue;
        }
        let stack = process.sites.sites.get(site).map_or(&[][..], |site| &site.frames);
        let row = rows.stack(stack, |number| {
            let frame = process.sites.frames.get(number as usize)?;
            Some(Frame {
                function: &frame.function,
                line: &frame.line,
                object: &frame.object,
                offset: frame.offset,
            })
        });
        if sums.len() <= row {
            sums.resize(row + 1, Default::default());
        }
        let (stacks, live, allocated) = &mut sums[row];
        *stacks += 1;
        *live = live.plus(sampled.live);
        *allocated = allocated.plus(sampled.allocated);
    }
    let mut listed: Vec<Row> = sums
        .into_iter()
        .enumerate()
        .map(|(row, (stacks, live, allocated))| Row {
            name: rows.name(row),
            stacks,
            live: Estimated::of(live),
            allocated: Estimated::of(allocated),
        })
        .collect();
    listed.sort_by(|a, b| {
        let key = |row: &Row| [row.live.bytes.estimate, row.allocated.bytes.estimate];
        key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal).then_with(|| a.name.cmp(&b.name))
    });
    let total = process.total();
    let exe = process.exe.display().to_string();
    Figures {
        command: run.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        exe,
        pid: process.pid,
        manager: run.manager.serving(&process.manager).name,
        mean_bytes: run.mean_bytes,
        unseen_bytes: largest_unseen(run.mean_bytes),
        without_site: process.without_site,
        not_followed: process.not_followed,
        live: Estimated::of(total.live),
        allocated: Estimated::of(total.allocated),
        rows: listed,
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_record::sampling::NamedSite;
    use heaptoll_trace::{Frame, Site, Sites};

    use super::*;

    fn estimate(samples: u64, bytes: f64) -> Estimate {
        Estimate {
            samples,
            objects: samples as f64,
            bytes,
            objects_variance: 1.0,
            bytes_variance: bytes * 1000.0,
        }
    }

    #[test]
    fn stacks_that_read_alike_are_one_row_and_the_largest_is_first() {
        let frame = |function: &str, offset| Frame { function: function.into(), offset, ..Frame::default() };
        let sites = Sites {
            sites: [vec![], vec![0, 2], vec![1, 2], vec![2]].map(|frames| Site { frames }).into(),
            frames: vec![frame("f", 1), frame("f", 2), frame("main", 3)],
        };
        let sampled = |live: u64, all: u64| NamedSite {
            allocated: estimate(all, all as f64 * 1000.0),
            live: estimate(live, live as f64 * 1000.0),
        };
        let process = NamedProcess {
            samples: vec![NamedSite::default(), sampled(1, 2), sampled(2, 3), sampled(2, 9)],
            sites,
            ..NamedProcess::default()
        };
        let run = Run { command: &[], manager: &Manager::default(), mean_bytes: 1000, frames: 3 };
        let figures = figures(&process, &run);
        let rows: Vec<_> =
            figures.rows.iter().map(|row| (row.name.as_str(), row.stacks, row.live.samples)).collect();
        assert_eq!(rows, [("f < main", 2, 3), ("main", 1, 2)]);
        assert_eq!(figures.manager, "unknown", "no object was proved");
        assert_eq!((figures.allocated.samples, figures.live.bytes.estimate), (14, 5000.0));
        let bytes = figures.rows[0].live.bytes;
        assert!(bytes.low < bytes.estimate && bytes.estimate < bytes.high, "{bytes:?}");
    }
}
