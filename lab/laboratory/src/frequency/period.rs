//! The periods of a collector, as its stack names them, and which of them are compared.

use heaptoll_units::size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::collecting::FIXED;
use crate::layered;

/// How often is collected, and how often what is found dead is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Period {
    /// Bytes allocated between collections.
    pub every_bytes: u64,
    /// One collection in as many reclaims.
    pub reclaim: u64,
}

/// The three experiments of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// How often is collected; each collection reclaims.
    Collections,
    /// The same, while only some reclaim.
    Identifications,
    /// How often is reclaimed, at the shortest period.
    Reclamations,
}

/// A stack's part in this study: its collector and period. `None` for one whose settings do not fix how often it
/// collects.
///
/// `sweep,every=8M,reclaim=4,free=honour/mimalloc3` is `sweep,free=honour/mimalloc3` every 8 MiB; each fourth reclaims.
pub fn part(stack: &str) -> Option<(String, Period)> {
    let (manager, layer) = layered::part(stack, |kind| kind.collects)?;
    let word = layer.as_ref().map_or(&manager, |layer| &layer.word);
    let words: Vec<&str> = word.split(',').collect();
    let setting = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let every_bytes = size(setting("every")?)?;
    let reclaim = setting("reclaim").map_or(Some(1), |text| text.parse().ok())?;
    // What is varied, and what the study always sets.
    let varied = |word: &str| word.starts_with("every=") || word.starts_with("reclaim=");
    let set = |word: &str| FIXED.iter().any(|(name, value)| word.split_once('=') == Some((name, value)));
    let kept: Vec<&str> = words.iter().filter(|word| !varied(word) && !set(word)).copied().collect();
    let collector = match layer {
        None => kept.join(","),
        Some(_) => format!("{}/{manager}", kept.join(",")),
    };
    Some((collector, Period { every_bytes, reclaim }))
}

/// The comparisons that these periods allow: which question, which period, over which.
pub fn comparisons(periods: &[Period]) -> Vec<(Question, Period, Period)> {
    let mut periods = periods.to_vec();
    periods.sort_unstable();
    periods.dedup();
    let Some(&Period { every_bytes: shortest, .. }) = periods.first() else { return vec![] };
    let most = periods.iter().map(|period| period.reclaim).max().unwrap_or(1);
    let rows = |reclaim: u64, question: Question| {
        let over = Period { every_bytes: shortest, reclaim };
        let longer = periods.iter().filter(move |period| period.reclaim == reclaim && **period != over);
        let there = periods.contains(&over);
        longer.filter(move |_| there).map(move |period| (question, *period, over))
    };
    let mut all: Vec<_> = rows(1, Question::Collections).collect();
    if most > 1 {
        all.extend(rows(most, Question::Identifications));
    }
    let over = Period { every_bytes: shortest, reclaim: 1 };
    if periods.contains(&over) {
        let rarer = periods.iter().filter(|period| period.every_bytes == shortest && **period != over);
        all.extend(rarer.map(|period| (Question::Reclamations, *period, over)));
    }
    all
}
