//! Text and figures of exact counts, the same in the terminal and on the page.

use heaptoll_experiment::comparison::{Counted, ExactTable};

use crate::format::{self, NONE};

/// A sentence for each stack whose counts and time disagree.
pub fn disagreements(table: &ExactTable) -> Vec<String> {
    let disagree = table.rows.iter().filter(|row| !row.words.is_empty());
    disagree.map(|row| format!("{}: {}", row.stack, row.words)).collect()
}

/// How to read the table.
pub fn sentence(table: &ExactTable) -> String {
    let baseline = table.rows.first().map_or("", |row| row.stack.as_str());
    let less = if table.less_startup { " without start-up" } else { "" };
    let caches = table.rows.iter().take(1).flat_map(|row| &row.misses).map(|cache| cache.cache.clone());
    let simulated = match format::and_list(&caches.collect::<Vec<_>>()) {
        none if none.is_empty() => none,
        caches => format!(
            "; {caches}: simulated misses of the machine's data caches; pages: different ones referred to"
        ),
    };
    format!(
        "Exact counts are of one traced run each: counts under {baseline}, ratios to them under the others. \
         Instructions: in user mode{less}{simulated}. Faults are medians of the measured runs. None of these \
         is time, and none includes branches, instruction fetches, huge pages or the kernel's work."
    )
}

/// A cell: the baseline's count, the others' ratio to it.
pub fn cell(counted: Option<&Counted>) -> String {
    match counted {
        None => NONE.into(),
        Some(Counted { ratio: Some(ratio), .. }) => heaptoll_units::factor(*ratio),
        Some(Counted { count, ratio: None }) => short(*count),
    }
}

/// A count in few digits: `812`, `31.4 k`, `612 M`.
fn short(count: u64) -> String {
    let scaled = |by: f64, unit: &str| {
        format!("{} {unit}", format::significant((count as f64 / by * 1e3).round() / 1e3))
    };
    match count {
        0..=9_999 => count.to_string(),
        10_000..=9_999_999 => scaled(1e3, "k"),
        10_000_000..=9_999_999_999 => scaled(1e6, "M"),
        _ => scaled(1e9, "G"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short_and_ratios_have_three_decimals() {
        let of = |count, ratio| cell(Some(&Counted { count, ratio }));
        assert_eq!(
            [0, 812, 31_400, 612_345_678, 12_345_678_901].map(|count| of(count, None)).join(", "),
            "0, 812, 31.40 k, 612.3 M, 12.35 G"
        );
        assert_eq!([0.97, 1.0004, 12.3].map(|ratio| of(7, Some(ratio))).join(" "), "0.970 1.000 12.3");
        assert_eq!(cell(None), NONE);
    }
}
