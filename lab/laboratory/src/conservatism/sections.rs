//! Its sections.

use heaptoll_graphs::conservatism::{Cause, Count, Distance, InteriorRule, Level, PointFigures};
use heaptoll_report::document::{Axis, Chart, Columns, Form, Section, Series, Table};
use heaptoll_units::{bytes, mib, number, part, percent, whole_bytes};

use heaptoll_graphs::conservatism::ConservatismFigures as Figures;

/// What an amount is, on the average and at most.
fn level<R>(table: Columns<R>, of: impl Fn(&R) -> &Level) -> Columns<R> {
    let table = table.figure("mean", |row| bytes(of(row).mean_bytes));
    peak(table.figure("of live", |row| percent(of(row).of_live)), of)
}

fn peak<R>(table: Columns<R>, of: impl Fn(&R) -> &Level) -> Columns<R> {
    let text = |row: &R, text: fn(&Level) -> String| Some(of(row)).filter(|of| of.peak_bytes > 0).map(text);
    let table = table.figure("peak", |row| text(row, |level| whole_bytes(level.peak_bytes)));
    table.figure("of live then", |row| text(row, |level| part(level.peak_bytes, level.peak_live_bytes)))
}

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
    let rows = [
        ("not freed", &figures.live),
        ("reachable", &figures.reachable),
        ("used later", &figures.used),
        ("used later, or reachable from such objects", &figures.required),
        ("used later, not reachable", &figures.hidden),
        ("kept by conservatism, at least", &figures.at_least),
        ("kept by conservatism, at most", &figures.at_most),
    ];
    let levels = level(Table::of(rows).text("", |row| row.0), |row| row.1).note(
        "Lower bound: unreachable at an earlier root point, not touched since, and reachable again. Upper bound: \
         also everything that is unreachable from objects used later.",
    );
    let series = |name: &str, bytes: fn(&PointFigures) -> u64| Series {
        name: name.to_owned(),
        points: figures.points.iter().map(|point| (mib(point.clock_bytes), mib(bytes(point)))).collect(),
        ..Series::default()
    };
    let chart = |title: &str, series| Chart {
        title: title.to_owned(),
        caption: String::new(),
        form: Form::Steps,
        x: Axis::even("bytes allocated, MiB"),
        y: Axis::even("MiB"),
        series,
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
    let charts = [chart("The heap at root points", heap), chart("Kept by conservatism", price)];
    Section::default().state(text).with(levels).with_all(charts)
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
    let causes = Table::of(&figures.causes).text("led to by", |cause| cause_name(cause.cause));
    let causes = level(causes, |cause| &cause.kept)
        .figure("reached again", |cause| bytes(cause.again.mean_bytes))
        .figure("until the free", |cause| cause.until_free.mean_bytes.map(bytes))
        .figure("never freed", |cause| {
            (cause.kept.peak_bytes > 0).then(|| percent(cause.until_free.never_freed))
        });
    Section::new("Reachable, and never touched again").with(causes.note(
        "Reached again: the mean of objects that were unreachable before. Until the free: bytes allocated from the \
         root point to the program's free. A collector with exact roots keeps the first row too, if the words are pointers.",
    ))
}

/// What interior pointers keep.
pub fn interior(figures: &Figures) -> Section {
    let name = |rule| match rule {
        InteriorRule::OnStacks => "registers and stacks",
        InteriorRule::Nowhere => "none",
    };
    let table = Table::of(&figures.interior).text("interior pointers count in", |found| name(found.rule));
    let table = level(table, |found| &found.unused);
    let table = table.figure("used later", |found| bytes(found.used.mean_bytes));
    let text = "Reachable objects that a collector frees if it accepts interior pointers in fewer places. If a freed \
    object is used later, such a collector breaks the program.";
    Section::new("Interior pointers").state(text).with(peak(table, |found| &found.used))
}

/// Unreachability and the program's own free.
pub fn ends(figures: &Figures) -> Section {
    let ends = &figures.ends;
    let (all, freed) = (Count { objects: figures.objects, bytes: figures.bytes }, ends.freed);
    let rows = [
        ("freed", freed, all, None),
        ("  unreachable before the free", ends.before, freed, Some(&ends.before_by)),
        ("  words lead to it at the free", ends.pointed, freed, None),
        ("  reachable at the last root point", ends.undecided, freed, Some(&ends.undecided_within)),
        ("  not live at any root point", ends.between, freed, None),
        ("ended by realloc, or unseen", ends.otherwise, all, None),
        ("never freed", ends.never_freed, all, None),
        ("  unreachable at the end", ends.lost, ends.never_freed, None),
    ];
    let by = |row: &(&str, Count, Count, Option<&Distance>), figure: fn(&Distance) -> String| {
        row.3.filter(|_| row.1.objects > 0).map(figure).unwrap_or_default()
    };
    let table = Table::of(rows)
        .text("objects", |row| row.0)
        .figure("objects", |row| number(row.1.objects))
        .figure("of these", |row| part(row.1.objects, row.2.objects))
        .figure("bytes", |row| whole_bytes(row.1.bytes))
        .figure("of these", |row| part(row.1.bytes, row.2.bytes))
        .figure("by, mean", |row| by(row, |by| bytes(by.mean_bytes)))
        .figure("median", |row| by(row, |by| whole_bytes(by.median_bytes)))
        .figure("90 %", |row| by(row, |by| whole_bytes(by.percentile_90_bytes)));
    let text = "An object became unreachable before the free if no word led to it at an earlier root point; the \
    bytes allocated in between are the least distance. It became unreachable after the free if words of other objects still led to it. Objects reachable at the last root point became unreachable in the shown interval, or after the free.";
    Section::new("Unreachability and the program's own free").state(text).with(table)
}

#[cfg(test)]
mod tests {
    use heaptoll_graphs::conservatism::Level;

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
