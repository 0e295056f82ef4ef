//! Its sections.

use heaptoll_callsites::Sum;
use heaptoll_report::document::{Axis, Chart, Columns, Form, Item, Section, Series, Table};
use heaptoll_trace_analysis::leaks::{Growing, Kinds, LeakFigures as Figures, SiteLeaks, Slope};
use heaptoll_units::{bytes, mib, number, part, percent, whole_bytes};

/// Rows listed of a table.
const LISTED: usize = 20;
/// Curves of a chart.
const CURVES: usize = 8;

/// What the trace does not show, and how to record one that does.
pub fn hints(figures: &Figures) -> Vec<String> {
    let mut hints = Vec::new();
    if !figures.pointers {
        hints.push(
            "The trace has no pointers, so it cannot tell lost from reachable objects. Use `heaptoll leaks -- \
             PROGRAM`, or record with `heaptoll record --graph --sites`."
                .to_owned(),
        );
    }
    if !figures.sites {
        hints.push("The trace has no call stacks: record with --sites to name the code.".to_owned());
    }
    hints
}

/// The sums by kind.
pub fn kinds(figures: &Figures) -> Vec<Item> {
    let kinds = &figures.kinds;
    let mut rows = Vec::new();
    if figures.judged_at_bytes.is_some() {
        rows.push(("definitely lost", kinds.definite));
        rows.push(("indirectly lost", kinds.indirect));
        rows.push(("possibly lost", kinds.possible));
        rows.push(("reachable", kinds.reachable));
        rows.push(("  of these, not accessed in the second half of the run", kinds.idle));
        rows.push(("    of these, never accessed", kinds.untouched));
        if kinds.unjudged.objects > 0 {
            rows.push(("of unknown kind", kinds.unjudged));
        }
    } else {
        rows.push(("never freed", kinds.never_freed()));
    }
    if !figures.kept.is_empty() {
        rows.push(("kept by the C library", figures.kept_by_library()));
    }
    if kinds.freed_after_exit.objects > 0 {
        let name = match figures.judged_at_bytes {
            Some(_) => "  of all these, freed after exit",
            None => "live when exit began, freed after exit",
        };
        rows.push((name, kinds.freed_after_exit));
    }
    if figures.freed_last.objects > 0 {
        rows.push(("freed at the end of the run", figures.freed_last));
    }
    if figures.suppressed.stacks > 0 {
        let suppressed = &figures.suppressed.kinds;
        rows.push(("suppressed", suppressed.never_freed()));
        if figures.judged_at_bytes.is_some() {
            rows.push(("  of these, definitely lost", suppressed.definite));
        }
    }
    let share = |row: &(&str, Sum)| part(row.1.bytes, figures.allocated.bytes);
    let table = sums(Table::of(rows).text("", |row| row.0), |row| row.1);
    table.figure("of the bytes allocated", share).if_any().map(Item::Table).into_iter().collect()
}

/// The rows that have something of a kind, most bytes first, and a table of those listed.
fn listed(figures: &Figures, of: impl Fn(&SiteLeaks) -> Sum) -> Columns<&SiteLeaks> {
    let mut rows: Vec<(&SiteLeaks, Sum)> =
        figures.rows.iter().map(|row| (row, of(row))).filter(|(_, sum)| sum.objects > 0).collect();
    rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    let all = rows.len();
    // Rows are in the order of what is worst: where the last one has some of it, those left out may have.
    let is_cut = figures.other_rows > 0 && figures.rows.last().is_some_and(|row| of(row).objects > 0);
    rows.truncate(LISTED);
    let caption = match all > rows.len() {
        true => format!(
            "the {} with the most bytes of {}{}",
            rows.len(),
            number(all as u64),
            if is_cut { " or more" } else { "" }
        ),
        false => String::new(),
    };
    Table::of(rows.into_iter().map(|(row, _)| row))
        .caption(caption)
        .sites("call site", |row| row.name.clone())
}

fn section<R>(title: &str, text: &str, table: Columns<R>) -> Option<Section> {
    let text = if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    table.if_any().map(|table| Section { text, ..Section::new(title) }.with(table))
}

/// Adds the columns of a sum.
fn sums<R>(table: Columns<R>, of: impl Fn(&R) -> Sum) -> Columns<R> {
    let table = table.figure("objects", |row| number(of(row).objects));
    table.figure("bytes", |row| whole_bytes(of(row).bytes))
}

/// What is definitely lost, with what is lost through it.
pub fn definite(figures: &Figures) -> Option<Section> {
    let lost = |row: &SiteLeaks| if row.kinds.definite.objects > 0 { row.lost() } else { Sum::default() };
    let table = sums(listed(figures, lost), |row| row.kinds.definite)
        .figure("objects lost through them", |row| number(row.led.objects))
        .figure("bytes lost through them", |row| whole_bytes(row.led.bytes));
    let text = "No pointer leads to these from registers, stacks, static data or live objects. If the source stores one, the \
                compiler may have removed a variable that is never read: compare with -O0. A pointer that is stored in \
                another form, such as with bits in its upper half, does not count.";
    section("Definitely lost", text, table)
}

fn of_kind(figures: &Figures, of: fn(&Kinds) -> Sum) -> Columns<&SiteLeaks> {
    sums(listed(figures, |row| of(&row.kinds)), |row| of(&row.kinds))
}

/// What is possibly lost.
pub fn possible(figures: &Figures) -> Option<Section> {
    let text = "Only interior pointers lead to these, none to their starts.";
    section("Possibly lost", text, of_kind(figures, |kinds| kinds.possible))
}

/// What is reachable and not touched any more.
pub fn idle(figures: &Figures) -> Option<Section> {
    let table = of_kind(figures, |kinds| kinds.idle)
        .figure("never touched", |row| whole_bytes(row.kinds.untouched.bytes))
        .figure("of the run untouched", |row| row.idle_share.map(percent));
    section("Reachable, and not touched in the second half of the run", "", table)
}

/// All that is reachable.
pub fn reachable(figures: &Figures) -> Option<Section> {
    section("Reachable at the end", "", of_kind(figures, |kinds| kinds.reachable))
}

/// What was freed at the end of the run, where that is the larger part of what was live before.
pub fn freed_last(figures: &Figures) -> Option<Section> {
    if figures.freed_last.bytes <= figures.kinds.live_at_exit().bytes {
        return None;
    }
    let table = Table::of(&figures.freed_last_sites).sites("call site", |site| site.name.clone());
    let text = "The program freed these before it ended. A cache or list that only grows is here if the run is short.";
    section("Freed at the end", text, sums(table, |site| site.freed))
}

/// Of the kinds of a row, what was never freed and has no kind.
pub fn of_no_kind(figures: &Figures) -> fn(&Kinds) -> Sum {
    if figures.judged_at_bytes.is_some() { |kinds| kinds.unjudged } else { Kinds::never_freed }
}

/// What was never freed and has no kind.
pub fn unjudged(figures: &Figures) -> Option<Section> {
    section("Never freed", "", of_kind(figures, of_no_kind(figures)))
}

/// What the C library keeps for itself.
pub fn kept(figures: &Figures) -> Option<Section> {
    let table = Table::of(figures.kept.iter().take(LISTED)).text("function", |site| site.caller.clone());
    let table = table.figure("for", |site| site.name.clone());
    let text = "The C library allocated these for itself, and no program can free them. They are not leaks.";
    section("Kept by the C library", text, sums(table, |site| site.kinds.never_freed()))
}

/// What grows over the whole run.
pub fn growing(figures: &Figures) -> Option<Section> {
    let has_time = figures.growing.iter().any(|one| one.rise.per_s.is_some());
    let caption = match figures.growing.len() > LISTED {
        true => format!("the {LISTED} steepest of {}", figures.growing.len()),
        false => String::new(),
    };
    let value = |slope: &Slope| bytes(slope.value);
    let ends = |slope: &Slope| format!("{} to {}", bytes(slope.low), bytes(slope.high));
    let table = Table::of(figures.growing.iter().take(LISTED))
        .caption(caption)
        .sites("call site", |one| one.name.clone())
        .figure("live before the last frees", |one| whole_bytes(one.at_end.bytes))
        .figure("growth a MiB allocated", |one| value(&one.rise.per_mib))
        .figure("95 % interval", |one| ends(&one.rise.per_mib))
        .when(has_time, |table| {
            let table = table.figure("growth a second", |one| one.rise.per_s.as_ref().map(value));
            table.figure("95 % interval", |one| one.rise.per_s.as_ref().map(ends))
        });
    let had = figures.growing.iter().fold(Sum::default(), |sum, one| sum.plus(one.at_end));
    // Some of what was freed last may be of others.
    let (title, text) = match figures.freed_last.bytes > had.bytes / 2 {
        true => (
            "Growing until the last frees",
            "The least live bytes of these rise in each fifth of the run, until the program's last frees. If it only \
             builds one structure, a longer run shows where growth ends.",
        ),
        false => (
            "Growing over the whole run",
            "The least live bytes of these rise in each fifth of the run. If the program only builds one structure, \
             a longer run shows where growth ends.",
        ),
    };
    Some(section(title, text, table)?.with(Chart {
        title: "Live bytes of growing sites".to_owned(),
        caption:
            "Each point is the minimum of a sixtieth of the run, in time or in bytes allocated. Objects that \
        live shorter do not show."
                .to_owned(),
        form: Form::Lines,
        x: Axis::even("part of the run, %"),
        y: Axis::even("MiB"),
        series: figures.growing.iter().take(CURVES).map(curve).collect(),
    }))
}

fn curve(one: &Growing) -> Series {
    let floors = &one.rise.floors_bytes;
    let share = |at: usize| 100.0 * (at + 1) as f64 / floors.len() as f64;
    let points = floors.iter().enumerate();
    Series {
        name: one.name.clone(),
        points: points.map(|(at, floor)| (share(at), mib(*floor))).collect(),
        ..Series::default()
    }
}
