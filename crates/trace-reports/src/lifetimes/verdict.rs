//! Sentences on whether generations would pay for this program.

use heaptoll_trace_analysis::lifetimes::{Clock, LifetimeFigures, NurseryFigures};
use heaptoll_units::{bytes, number, part, percent, whole_bytes};

/// Below this share of surviving bytes, a collection of the nursery gives back ten times what it keeps.
const PAYS: f64 = 0.1;
/// Above this, most of a collection's work is for objects that stay.
const DOES_NOT_PAY: f64 = 0.3;
/// Zorn's "fewer than 10 %".
const FEW: f64 = 0.1;
/// An age at which Zorn's statement is repeated, bytes.
const LONG: u64 = 100 << 10;
/// A run that allocates less than this many times [`LONG`] shows nothing about long lives.
const RUN: u64 = 10;
/// Fewer collections than this are no ground to judge from.
const COLLECTIONS: u64 = 3;

/// The sentences, the most important first.
pub fn sentences(figures: &LifetimeFigures) -> Vec<String> {
    if figures.all.objects == 0 {
        return vec!["The trace has no allocations: there are no lifetimes to report.".to_owned()];
    }
    let mut sentences = vec![long_lived(figures)];
    if figures.still_live.objects > 0 {
        sentences.push(never_freed(figures));
    }
    sentences.push(generations(figures));
    sentences
}

/// What Zorn (1992) found, for this program.
fn long_lived(figures: &LifetimeFigures) -> String {
    if figures.clock_bytes < RUN * LONG {
        return format!(
            "The run allocates only {}: too little to show which objects live long.",
            whole_bytes(figures.clock_bytes)
        );
    }
    let bytes = figures.survival.iter().find(|survival| survival.clock == Clock::Bytes);
    let Some(younger) = bytes.and_then(|survival| survival.younger_than(LONG)) else { return String::new() };
    let (objects, weight) = (1.0 - younger.objects, 1.0 - younger.bytes);
    let never = figures.still_live.objects as f64 / figures.all.objects as f64;
    let compared = match objects {
        few if few < FEW => "as in all of Zorn's programs (1992) but the one that never frees",
        _ if never >= objects / 2.0 => "as in the one of Zorn's programs (1992) that never frees",
        _ => "unlike Zorn's programs (1992), where fewer than a tenth lived long",
    };
    format!(
        "{} of the objects are still live after {} more are allocated, {compared}; by bytes, {}.",
        percent(objects),
        whole_bytes(LONG),
        percent(weight)
    )
}

fn never_freed(figures: &LifetimeFigures) -> String {
    let (held, all) = (&figures.still_live, &figures.all);
    format!(
        "{} of the objects ({}) and {} of their bytes ({}) are never freed; they count as surviving every age.",
        part(held.objects, all.objects),
        number(held.objects),
        part(held.bytes, all.bytes),
        whole_bytes(held.bytes)
    )
}

/// The verdict, by the nursery of middle size that was collected often enough.
fn generations(figures: &LifetimeFigures) -> String {
    // 4 MiB when it is often full, else the largest that is.
    let enough = |nursery: &&NurseryFigures| nursery.collections >= COLLECTIONS;
    let chosen = figures.nurseries.iter().filter(enough).find(|nursery| nursery.nursery_bytes == 4 << 20);
    let Some(nursery) = chosen.or_else(|| figures.nurseries.iter().rfind(enough)) else {
        let smallest = figures.nurseries.first().map_or(0, |nursery| nursery.nursery_bytes);
        return format!(
            "Even a nursery of {} would hardly ever be full: generations make no difference.",
            whole_bytes(smallest)
        );
    };
    let (Some(share), Some(promoted)) = (nursery.survival_bytes, nursery.promoted_per_collection_bytes)
    else {
        return format!(
            "Almost all bytes are in objects too large for a nursery of {}: generations make no difference.",
            whole_bytes(nursery.nursery_bytes)
        );
    };
    let verdict = match share {
        share if share < PAYS => "generations pay",
        share if share <= DOES_NOT_PAY => "generations may pay, depending on the cost of survivors",
        _ => "generations do not pay",
    };
    format!(
        "Each collection of a nursery of {} would promote {} of it ({}): {verdict}.",
        whole_bytes(nursery.nursery_bytes),
        percent(share),
        bytes(promoted)
    )
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Event, EventKind};
    use heaptoll_trace_analysis::lifetimes::{By, Lifetimes};
    use heaptoll_trace_analysis::subject::Subject;

    use super::*;

    fn event(kind: EventKind, slot: u32, size: u64) -> Event {
        Event {
            kind,
            moved: false,
            align_log2: 0,
            thread: 0,
            slot,
            site: 0,
            size,
            usable: size,
            time_ns: 0,
            latency_ns: 0,
        }
    }

    /// Makes objects of 64 KiB, and frees each when `keep` more were made.
    fn queue(objects: u32, keep: u32) -> String {
        let mut lifetimes = Lifetimes::new(By::Size);
        for object in 0..objects {
            lifetimes.event(&event(EventKind::Malloc, object, 64 << 10));
            if object >= keep {
                lifetimes.event(&event(EventKind::Free, object - keep, 0));
            }
        }
        sentences(&lifetimes.figures(Subject::default(), None)).join(" ")
    }

    #[test]
    fn short_lives_make_generations_pay() {
        let text = queue(1000, 1);
        assert!(text.contains("as in all of Zorn's programs (1992) but"), "{text}");
        assert!(
            text.contains("Each collection of a nursery of 4.00 MiB would promote 1.6 % of it"),
            "{text}"
        );
        assert!(text.contains("generations pay"), "{text}");
    }

    #[test]
    fn long_lives_do_not() {
        let text = queue(10_000, 100);
        assert!(text.contains("unlike Zorn's programs"), "{text}");
        assert!(text.contains("generations do not pay"), "{text}");
    }

    #[test]
    fn a_program_that_never_frees_is_the_channel_router() {
        let text = queue(1000, 1000);
        assert!(text.contains("100 % of the objects are still live after"), "{text}");
        assert!(text.contains("the one of Zorn's programs (1992) that never frees"), "{text}");
        assert!(text.contains("would promote 100 % of it"), "{text}");
    }

    #[test]
    fn nothing_is_made_of_little() {
        assert!(queue(3, 1).contains("generations make no difference"));
        assert!(queue(0, 1).contains("no lifetimes to report"));
        let mut lifetimes = Lifetimes::new(By::Size);
        (0..9).for_each(|slot| lifetimes.event(&event(EventKind::Malloc, slot, 64 << 20)));
        let text = sentences(&lifetimes.figures(Subject::default(), None)).join(" ");
        assert!(text.contains("generations make no difference"), "{text}");
        assert!(queue(3, 1).contains("too little to show which objects live long"));
    }
}
