//! Its sections.

use heaptoll_report::document::{Axis, Chart, Form, Item, Section, Series};
use heaptoll_report::format::NONE;
use heaptoll_trace_analysis::graph::conservatism::{
    Cause, CauseFigures, Count, Distance, InteriorRule, Level, PointFigures,
};
use heaptoll_units::{bytes, mib, number, part, percent, whole_bytes};

use heaptoll_command::tables::table;
use heaptoll_trace_analysis::graph::conservatism::ConservatismFigures as Figures;

/// What an amount is, on the average and at most.
fn level(name: &str, level: &Level) -> Vec<String> {
    let mut row = vec![name.to_owned(), bytes(level.mean_bytes), percent(level.of_live)];
    row.extend(peak(level));
    row
}

fn peak(level: &Level) -> [String; 2] {
    match level.peak_bytes {
        0 => [NONE.to_owned(), NONE.to_owned()],
        most => [whole_bytes(most), part(most, level.peak_live_bytes)],
    }
}

/// The columns of [`level`].
const LEVEL: [&str; 5] = ["", "mean", "of live", "peak", "of live then"];

/// The part of the bytes used later that may be unreachable, so that figures of what is reachable hold.
const HIDDEN: f64 = 0.1;

/// Whether the trace lacks so many pointers that nothing follows from what is reachable.
pub fn hides(figures: &Figures) -> bool {
    figures.hidden.mean_bytes > HIDDEN * figures.used.mean_bytes
}

/// The warning that the figures do not hold; nothing where they do.
pub fn hidden_warning(figures: &Figures) -> Option<String> {
    hides(figures).then(|| {
        format!(
            "the figures are not valid: {} of the live bytes are used later but not reachable. The trace lacks some \
             of the program's pointers, for example encoded ones",
            percent(figures.hidden.of_live)
        )
    })
}

/// Of a trace without root points.
pub fn no_points() -> Section {
    let text = "The trace has no complete root point: the program allocates too little, or the trace is damaged. \
    `heaptoll record --roots-every SIZE` makes more of them.";
    Section { text: vec![text.to_owned()], ..Section::default() }
}

/// The bounds: what is used, what pointers lead to, what is reachable, and what is between.
pub fn levels(figures: &Figures) -> Section {
    let rows = vec![
        level("not freed", &figures.live),
        level("reachable", &figures.reachable),
        level("used later", &figures.used),
        level("used later, or reachable from such objects", &figures.required),
        level("used later, not reachable", &figures.hidden),
        level("kept by conservatism, at least", &figures.at_least),
        level("kept by conservatism, at most", &figures.at_most),
    ];
    let mut levels = table("", &LEVEL, rows);
    levels.notes.push(
        "Lower bound: unreachable at an earlier root point, not touched since, and reachable again. Upper bound: \
         also everything that is unreachable from objects used later."
            .to_owned(),
    );
    let series = |name: &str, bytes: fn(&PointFigures) -> u64| Series {
        name: name.to_owned(),
        points: figures.points.iter().map(|point| (mib(point.clock_bytes), mib(bytes(point)))).collect(),
        ..Series::default()
    };
    let chart = |title: &str, series| {
        Item::Chart(Chart {
            title: title.to_owned(),
            caption: String::new(),
            form: Form::Steps,
            x: Axis { title: "bytes allocated, MiB".to_owned(), ..Axis::default() },
            y: Axis { title: "MiB".to_owned(), ..Axis::default() },
            series,
        })
    };
    let heap = vec![
        series("not freed", |point| point.live_bytes),
        series("reachable", |point| point.reachable_bytes),
        series("used later, or reachable from such objects", |point| point.required_bytes),
        series("used later", |point| point.used_bytes),
    ];
    let price = vec![
        series("at most", |point| point.at_most_bytes),
        series("at least", |point| point.at_least_bytes),
    ];
    let text = match hides(figures) {
        false => format!(
            "Conservatism keeps between {} and {} of the live bytes on average.",
            percent(figures.at_least.of_live),
            percent(figures.at_most.of_live)
        ),
        true => "The cost of conservatism is unknown: many objects that the program uses later are not reachable by \
        pointers in the trace."
            .to_owned(),
    };
    Section {
        title: String::new(),
        text: vec![text],
        items: vec![
            Item::Table(levels),
            chart("The heap at root points", heap),
            chart("Kept by conservatism", price),
        ],
    }
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::UsedObjects => "objects used later",
        Cause::Registers => "registers only",
        Cause::Stacks => "stacks only",
        Cause::RegistersAndStacks => "registers and stacks",
        Cause::StaticData => "static data only",
        Cause::Mappings => "other mappings only",
        Cause::Several => "several kinds of roots",
    }
}

/// What is never touched again, by what leads to it.
pub fn causes(figures: &Figures) -> Section {
    let row = |cause: &CauseFigures| {
        let kept = &cause.kept;
        let mut row = level(cause_name(cause.cause), kept);
        row.push(bytes(cause.again.mean_bytes));
        row.push(cause.until_free.mean_bytes.map_or_else(|| NONE.to_owned(), bytes));
        row.push(if kept.peak_bytes == 0 { NONE.to_owned() } else { percent(cause.until_free.never_freed) });
        row
    };
    let mut columns = LEVEL.to_vec();
    columns[0] = "led to by";
    columns.extend(["reached again", "until the free", "never freed"]);
    let mut causes = table("", &columns, figures.causes.iter().map(row).collect());
    causes.notes.push(
        "Reached again: the mean of objects that were unreachable before. Until the free: bytes allocated from the \
         root point to the program's free. A collector with exact roots keeps the first row too, if the words are pointers."
            .to_owned(),
    );
    Section {
        title: "Reachable, and never touched again".into(),
        text: Vec::new(),
        items: vec![Item::Table(causes)],
    }
}

/// What interior pointers keep.
pub fn interior(figures: &Figures) -> Section {
    let rows = figures.interior.iter().map(|found| {
        let name = match found.rule {
            InteriorRule::OnStacks => "registers and stacks",
            InteriorRule::Nowhere => "none",
        };
        let mut row = level(name, &found.unused);
        row.push(bytes(found.used.mean_bytes));
        row.extend(peak(&found.used));
        row
    });
    let mut columns = LEVEL.to_vec();
    columns[0] = "interior pointers count in";
    columns.extend(["used later", "peak", "of live then"]);
    let text = "Reachable objects that a collector frees if it accepts interior pointers in fewer places. If a freed \
    object is used later, such a collector breaks the program."
        .to_owned();
    Section {
        title: "Interior pointers".into(),
        text: vec![text],
        items: vec![Item::Table(table("", &columns, rows.collect()))],
    }
}

/// Unreachability and the program's own free.
pub fn ends(figures: &Figures) -> Section {
    let ends = &figures.ends;
    let row = |name: &str, count: Count, of: Count, by: Option<&Distance>| {
        let mut row = vec![
            name.to_owned(),
            number(count.objects),
            part(count.objects, of.objects),
            whole_bytes(count.bytes),
            part(count.bytes, of.bytes),
        ];
        row.extend(match by.filter(|_| count.objects > 0) {
            Some(by) => {
                [bytes(by.mean_bytes), whole_bytes(by.median_bytes), whole_bytes(by.percentile_90_bytes)]
            }
            None => [String::new(), String::new(), String::new()],
        });
        row
    };
    let (all, freed) = (Count { objects: figures.objects, bytes: figures.bytes }, ends.freed);
    let rows = vec![
        row("freed", freed, all, None),
        row("  unreachable before the free", ends.before, freed, Some(&ends.before_by)),
        row("  words lead to it at the free", ends.pointed, freed, None),
        row("  reachable at the last root point", ends.undecided, freed, Some(&ends.undecided_within)),
        row("  not live at any root point", ends.between, freed, None),
        row("ended by realloc, or unseen", ends.otherwise, all, None),
        row("never freed", ends.never_freed, all, None),
        row("  unreachable at the end", ends.lost, ends.never_freed, None),
    ];
    let columns = ["objects", "objects", "of these", "bytes", "of these", "by, mean", "median", "90 %"];
    let text = "An object became unreachable before the free if no word led to it at an earlier root point; the \
    bytes allocated in between are the least distance. It became unreachable after the free if words of other objects still led to it. Objects reachable at the last root point became unreachable in the shown interval, or after the free."
        .to_owned();
    Section {
        title: "Unreachability and the program's own free".into(),
        text: vec![text],
        items: vec![Item::Table(table("", &columns, rows))],
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_trace_analysis::graph::conservatism::Level;

    use super::*;

    #[test]
    fn hidden_pointers_take_the_bounds_away() {
        let amount = |mean_bytes| Level { mean_bytes, of_live: mean_bytes / 1000.0, ..Level::default() };
        let figures = |hidden| Figures { used: amount(900.0), hidden: amount(hidden), ..Figures::default() };
        assert_eq!(hidden_warning(&figures(10.0)), None);
        assert!(levels(&figures(10.0)).text[0].contains("between"));
        assert!(hidden_warning(&figures(899.0)).is_some_and(|text| text.contains("89.9 %")));
        assert!(levels(&figures(899.0)).text[0].contains("unknown"));
    }
}
