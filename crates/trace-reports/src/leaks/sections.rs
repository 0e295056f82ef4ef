//! Its sections.

use heaptoll_report::document::{Axis, Chart, Form, Item, Section, Series};
use heaptoll_report::format::NONE;
use heaptoll_trace_analysis::Sum;
use heaptoll_trace_analysis::leaks::{Growing, Kinds, LeakFigures as Figures, SiteLeaks, Slope};
use heaptoll_units::{bytes, mib, number, part, percent, whole_bytes};

use heaptoll_command::tables::{site_table, table_item};

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

fn cells(name: &str, sum: Sum, of: Sum) -> Vec<String> {
    vec![name.to_owned(), number(sum.objects), whole_bytes(sum.bytes), part(sum.bytes, of.bytes)]
}

/// The sums by kind.
pub fn kinds(figures: &Figures) -> Vec<Item> {
    let (kinds, all) = (&figures.kinds, figures.allocated);
    let mut rows = Vec::new();
    if figures.judged_at_bytes.is_some() {
        rows.push(cells("definitely lost", kinds.definite, all));
        rows.push(cells("indirectly lost", kinds.indirect, all));
        rows.push(cells("possibly lost", kinds.possible, all));
        rows.push(cells("reachable", kinds.reachable, all));
        rows.push(cells("  of these, not accessed in the second half of the run", kinds.idle, all));
        rows.push(cells("    of these, never accessed", kinds.untouched, all));
        if kinds.unjudged.objects > 0 {
            rows.push(cells("of unknown kind", kinds.unjudged, all));
        }
    } else {
        rows.push(cells("never freed", kinds.never_freed(), all));
    }
    if !figures.kept.is_empty() {
        rows.push(cells("kept by the C library", figures.kept_by_library(), all));
    }
    if kinds.freed_after_exit.objects > 0 {
        let name = match figures.judged_at_bytes {
            Some(_) => "  of all these, freed after exit",
            None => "live when exit began, freed after exit",
        };
        rows.push(cells(name, kinds.freed_after_exit, all));
    }
    if figures.freed_last.objects > 0 {
        rows.push(cells("freed at the end of the run", figures.freed_last, all));
    }
    if figures.suppressed.stacks > 0 {
        let suppressed = &figures.suppressed.kinds;
        rows.push(cells("suppressed", suppressed.never_freed(), all));
        if figures.judged_at_bytes.is_some() {
            rows.push(cells("  of these, definitely lost", suppressed.definite, all));
        }
    }
    table_item("", &["", "objects", "bytes", "of the bytes allocated"], rows).into_iter().collect()
}

/// The rows that have something of a kind, most bytes first, and a table of those listed.
fn listed(
    figures: &Figures,
    columns: &[&str],
    of: impl Fn(&SiteLeaks) -> Sum,
    more: impl Fn(&SiteLeaks) -> Vec<String>,
) -> Option<Item> {
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
    let cells = rows.into_iter().map(|(row, _)| {
        let mut cells = vec![row.name.clone()];
        cells.extend(more(row));
        cells
    });
    let columns: Vec<&str> = ["call site"].into_iter().chain(columns.iter().copied()).collect();
    site_table(&caption, &columns, cells.collect())
}

fn section(title: &str, text: &str, item: Option<Item>) -> Option<Section> {
    let text = if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    item.map(|item| Section { title: title.to_owned(), text, items: vec![item] })
}

fn sum(sum: Sum) -> [String; 2] {
    [number(sum.objects), whole_bytes(sum.bytes)]
}

/// What is definitely lost, with what is lost through it.
pub fn definite(figures: &Figures) -> Option<Section> {
    let lost = |row: &SiteLeaks| if row.kinds.definite.objects > 0 { row.lost() } else { Sum::default() };
    let more = |row: &SiteLeaks| [sum(row.kinds.definite), sum(row.led)].concat();
    let item = listed(
        figures,
        &["objects", "bytes", "objects lost through them", "bytes lost through them"],
        lost,
        more,
    );
    let text = "No pointer leads to these from registers, stacks, static data or live objects. If the source stores one, the \
                compiler may have removed a variable that is never read: compare with -O0. A pointer that is stored in \
                another form, such as with bits in its upper half, does not count.";
    section("Definitely lost", text, item)
}

/// What is possibly lost.
pub fn possible(figures: &Figures) -> Option<Section> {
    let item = listed(
        figures,
        &["objects", "bytes"],
        |row| row.kinds.possible,
        |row| sum(row.kinds.possible).to_vec(),
    );
    let text = "Only interior pointers lead to these, none to their starts.";
    section("Possibly lost", text, item)
}

/// What is reachable and not touched any more.
pub fn idle(figures: &Figures) -> Option<Section> {
    let more = |row: &SiteLeaks| {
        let share = row.idle_share.map_or_else(|| NONE.to_owned(), percent);
        [sum(row.kinds.idle).as_slice(), &[whole_bytes(row.kinds.untouched.bytes), share]].concat()
    };
    let columns = ["objects", "bytes", "never touched", "of the run untouched"];
    let item = listed(figures, &columns, |row| row.kinds.idle, more);
    section("Reachable, and not touched in the second half of the run", "", item)
}

/// All that is reachable.
pub fn reachable(figures: &Figures) -> Option<Section> {
    let of = |row: &SiteLeaks| row.kinds.reachable;
    let item = listed(figures, &["objects", "bytes"], of, |row| sum(of(row)).to_vec());
    section("Reachable at the end", "", item)
}

/// What was freed at the end of the run, where that is the larger part of what was live before.
pub fn freed_last(figures: &Figures) -> Option<Section> {
    let sites = &figures.freed_last_sites;
    if figures.freed_last.bytes <= figures.kinds.live_at_exit().bytes {
        return None;
    }
    let rows = sites.iter().map(|site| [vec![site.name.clone()], sum(site.freed).to_vec()].concat());
    let text = "The program freed these before it ended. A cache or list that only grows is here if the run is short.";
    section("Freed at the end", text, site_table("", &["call site", "objects", "bytes"], rows.collect()))
}

/// Of the kinds of a row, what was never freed and has no kind.
pub fn of_no_kind(figures: &Figures) -> fn(&Kinds) -> Sum {
    if figures.judged_at_bytes.is_some() { |kinds| kinds.unjudged } else { Kinds::never_freed }
}

/// What was never freed and has no kind.
pub fn unjudged(figures: &Figures) -> Option<Section> {
    let of = of_no_kind(figures);
    let item =
        listed(figures, &["objects", "bytes"], |row| of(&row.kinds), |row| sum(of(&row.kinds)).to_vec());
    section("Never freed", "", item)
}

/// What the C library keeps for itself.
pub fn kept(figures: &Figures) -> Option<Section> {
    let rows = figures
        .kept
        .iter()
        .take(LISTED)
        .map(|site| [[site.caller.clone(), site.name.clone()], sum(site.kinds.never_freed())].concat());
    let columns = ["function", "for", "objects", "bytes"];
    let text = "The C library allocated these for itself, and no program can free them. They are not leaks.";
    section("Kept by the C library", text, table_item("", &columns, rows.collect()))
}

/// What grows over the whole run.
pub fn growing(figures: &Figures) -> Option<Section> {
    let has_time = figures.growing.iter().any(|one| one.rise.per_s.is_some());
    let mut columns =
        vec!["call site", "live before the last frees", "growth a MiB allocated", "95 % interval"];
    if has_time {
        columns.extend(["growth a second", "95 % interval"]);
    }
    let rows = figures.growing.iter().take(LISTED).map(|one| {
        let mut cells = vec![one.name.clone(), whole_bytes(one.at_end.bytes)];
        cells.extend(slope(Some(&one.rise.per_mib)));
        if has_time {
            cells.extend(slope(one.rise.per_s.as_ref()));
        }
        cells
    });
    let caption = match figures.growing.len() > LISTED {
        true => format!("the {LISTED} steepest of {}", figures.growing.len()),
        false => String::new(),
    };
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
    let mut found = section(title, text, site_table(&caption, &columns, rows.collect()))?;
    found.items.push(Item::Chart(Chart {
        title: "Live bytes of growing sites".to_owned(),
        caption:
            "Each point is the minimum of a sixtieth of the run, in time or in bytes allocated. Objects that \
        live shorter do not show."
                .to_owned(),
        form: Form::Lines,
        x: Axis::even("part of the run, %"),
        y: Axis::even("MiB"),
        series: figures.growing.iter().take(CURVES).map(curve).collect(),
    }));
    Some(found)
}

fn slope(slope: Option<&Slope>) -> [String; 2] {
    slope.map_or([NONE.to_owned(), NONE.to_owned()], |slope| {
        [bytes(slope.value), format!("{} to {}", bytes(slope.low), bytes(slope.high))]
    })
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
