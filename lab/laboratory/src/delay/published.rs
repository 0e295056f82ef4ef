//! The paper's figures compared with ours.

use heaptoll_experiment::comparison::Ratios;
use heaptoll_report::document::{Section, Table};
use heaptoll_statistics::Interval;
use heaptoll_units::size_label;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::Delay;
use super::published_overhead::{Overhead, Quantity, overheads};
use heaptoll_runs::studied::ratio_cell;

/// A published overhead with what was measured here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedPair {
    /// The paper's.
    #[serde(flatten)]
    pub published: Overhead,
    /// The manager here.
    pub ours_manager: String,
    /// The ratio here; of a mean with its interval over programs, of which `pairs` is the number.
    pub ours: Option<Interval>,
}

/// Of fewer programs a mean's interval is too wide to compare a published mean with.
const FEWEST_PROGRAMS: u32 = 6;

/// The paper's figures that have one of ours to compare with: the same program, or the means.
pub fn published_pairs(found: &Delay) -> Vec<PublishedPair> {
    overheads()
        .flat_map(|published| {
            let managers = found.managers.iter().filter(|manager| published.is_of(manager));
            managers
                .filter_map(|manager| {
                    let ours = measured(found, &published, manager)?;
                    let ours = match published.quantity {
                        Quantity::Space => ours.peak_rss,
                        Quantity::Time | Quantity::LayerTime => ours.cpu,
                    };
                    Some(PublishedPair { published: published.clone(), ours_manager: manager.clone(), ours })
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn measured(found: &Delay, published: &Overhead, manager: &str) -> Option<Ratios> {
    let layer = published.quantity == Quantity::LayerTime;
    match &published.program {
        None => {
            let size = (!layer).then_some(published.size_bytes);
            let mean = found.means.iter().find(|mean| mean.manager == manager && mean.size_bytes == size)?;
            // The paper's mean is of other programs: how far programs differ counts, not how often these were run.
            Some(mean.between_programs)
        }
        Some(program) => {
            let same = |name: &str| name == *program || name == format!("{program}-server");
            let curve = found.curves.iter().find(|curve| curve.manager == manager && same(&curve.program))?;
            if layer {
                return Some(curve.layer);
            }
            let point = curve.points.iter().find(|point| point.size_bytes == published.size_bytes)?;
            Some(point.over_no_delay)
        }
    }
}

/// The section; nothing where no figures can be compared.
pub fn section(found: &Delay) -> Option<Section> {
    let program = |one: &PublishedPair| {
        let suite = || format!("mean, the paper's of {}", one.published.suite);
        one.published.program.clone().unwrap_or_else(suite)
    };
    let of = |one: &PublishedPair| match one.published.quantity {
        Quantity::Time => "time (ours: CPU)",
        Quantity::Space => "peak memory",
        Quantity::LayerTime => "time vs no quarantine (ours: CPU)",
    };
    let table = Table::of(published_pairs(found))
        .text("program", program)
        .text("manager", |one| one.ours_manager.clone())
        .figure("quarantine", |one| size_label(one.published.size_bytes))
        .text("of", of)
        .figure("theirs", |one| format!("{:.3}", one.published.ratio()))
        .figure("ours", |one| ratio_cell(one.ours))
        .text("", |one| verdict(&one.published, one.ours));
    let section = Section::new("Compared with Sareen and Blackburn (2022)").state(
        "The paper measured a Ryzen 9 5950X with the quarantine built into the allocator, versions of \
         2022, and its own inputs, without intervals. The paper's mean is over its programs, ours over \
         the programs here. The paper agrees if its mean lies in our interval over programs. Its time is \
         elapsed time; ours is CPU, which other work on the machine disturbs less.",
    );
    Some(section.with(table.if_any()?))
}

/// Whether their figure lies within our interval.
fn verdict(published: &Overhead, ours: Option<Interval>) -> &'static str {
    let theirs = published.ratio();
    match ours {
        None if published.program.is_none() => "too few programs to judge",
        None => "",
        // The pairs of a mean are its programs.
        Some(ours) if published.program.is_none() && ours.pairs < FEWEST_PROGRAMS => {
            "too few programs to judge"
        }
        Some(ours) if !ours.has_enough_pairs() => heaptoll_statistics::TOO_FEW,
        Some(ours) if theirs < ours.low => "more here",
        Some(ours) if theirs > ours.high => "less here",
        Some(_) => "paper agrees",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_whether_theirs_lies_within_ours() {
        let ours = |low, high, pairs| Some(Interval { ratio: 1.1, low, high, differs: true, pairs });
        let theirs = |ratio: f64, program: Option<&str>| Overhead {
            suite: "mimalloc-bench".into(),
            program: program.map(str::to_owned),
            manager: "TCMalloc".into(),
            size_bytes: 2 << 20,
            quantity: Quantity::Time,
            percent: (ratio - 1.0) * 100.0,
        };
        let of = |ratio: f64, ours| verdict(&theirs(ratio, Some("cfrac")), ours);
        assert_eq!(of(1.26, ours(1.05, 1.15, 10)), "less here");
        assert_eq!(of(1.01, ours(1.05, 1.15, 10)), "more here");
        assert_eq!(of(1.1, ours(1.05, 1.15, 10)), "paper agrees");
        assert_eq!(of(1.5, ours(1.05, 1.15, 3)), heaptoll_statistics::TOO_FEW);
        assert_eq!(of(1.5, None), "");
        let mean = |ours| verdict(&theirs(1.1, None), ours);
        assert_eq!(mean(ours(1.05, 1.15, 20)), "paper agrees");
        assert_eq!([mean(ours(1.05, 1.15, 4)), mean(None)], ["too few programs to judge"; 2]);
    }
}
