//! The paper's findings compared with ours.

use heaptoll_report::document::{Section, Table};
use heaptoll_report::format::{and_list, plural};
use heaptoll_units::size_label;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::{Frequency, Ratio};
use super::period::Question;
use super::published_gain::{Gain, gains};

/// A published count with ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedPair {
    /// The paper's.
    #[serde(flatten)]
    pub published: Gain,
    /// The collector here.
    pub collector: String,
    /// Programs that gain as much here, where a difference is claimed.
    pub gaining: Vec<String>,
    /// Programs that lose as much.
    pub losing: Vec<String>,
    /// Programs that collect often enough to be counted.
    pub of_programs: u32,
}

/// The paper's counts for which these periods were measured.
pub fn published_pairs(found: &Frequency) -> Vec<PublishedPair> {
    let mut all = Vec::new();
    for published in gains() {
        for collector in &found.collectors {
            let of = found.programs.iter().filter(|one| one.collector == *collector && one.often_enough);
            let ratios: Vec<(&str, _)> = of
                .filter_map(|study| {
                    let same = |ratio: &&Ratio| {
                        ratio.question == Question::Collections
                            && ratio.period.every_bytes == published.every_bytes
                            && ratio.over.every_bytes == published.over_every_bytes
                    };
                    Some((study.program.as_str(), study.ratios.iter().find(same)?.of_mutator()?))
                })
                .collect();
            if ratios.is_empty() {
                continue;
            }
            let beyond = published.beyond_percent / 100.0;
            let names = |wanted: &dyn Fn(f64) -> bool| {
                let seen = ratios.iter().filter(|(_, ratio)| ratio.differs && wanted(ratio.ratio));
                seen.map(|(name, _)| name.to_string()).collect::<Vec<_>>()
            };
            all.push(PublishedPair {
                collector: collector.clone(),
                gaining: names(&|ratio| ratio < 1.0 - beyond),
                losing: names(&|ratio| ratio > 1.0 + beyond),
                of_programs: ratios.len() as u32,
                published: published.clone(),
            });
        }
    }
    all
}

/// The section; nothing where no figures can be compared.
pub fn section(found: &Frequency) -> Option<Section> {
    let named = |one: &PublishedPair, names: &[String]| match names.len() {
        0 => format!("none of {}", plural(one.of_programs as usize, "program")),
        some => format!("{some} of {} ({})", plural(one.of_programs as usize, "program"), and_list(names)),
    };
    let counted = |published: &Gain| {
        let [from, to] = [published.over_every_bytes, published.every_bytes].map(size_label);
        format!("more than {} % between {from} and {to}", published.beyond_percent)
    };
    let table = Table::of(published_pairs(found))
        .text("collector", |one| one.collector.clone())
        .text("counted", |one| counted(&one.published))
        .figure("theirs gain", |one| one.published.programs.to_string())
        .text("ours gain", |one| named(one, &one.gaining))
        .text("ours lose", |one| named(one, &one.losing));
    let section = Section::new("Compared with Sareen and Blackburn (2022)").state(
        "The paper's programs are from DaCapo, on a virtual machine whose mark-sweep collector takes \
         its blocks from mimalloc. There fop, batik and jython gained, zxing lost, and the others \
         changed little. Ours are C and C++ programs under a conservative collector.",
    );
    Some(section.with(table.if_any()?))
}
