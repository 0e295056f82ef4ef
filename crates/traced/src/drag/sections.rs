//! The tables of `heaptoll exact drag`.

use heaptoll_drag::figures::GroupFigures;
use heaptoll_drag::space::Space;
use heaptoll_drag::timeline::Interval;
use heaptoll_drag::{Clock, Figures};
use heaptoll_report::document::{Columns, Item, Table};
use heaptoll_units::{bytes, number, part, percent, whole_bytes};

use super::figures::Row;

/// Call sites listed.
const SITES: usize = 20;
/// Sites of untouched objects listed.
const VOID_SITES: usize = 10;
/// Parts of the run in the table over time.
const PARTS: usize = 10;

/// The clock at the end.
pub fn end(figures: &Figures, clock: Clock) -> u64 {
    match clock {
        Clock::Instructions => figures.instructions,
        Clock::Bytes => figures.bytes_allocated,
    }
}

fn clock_label(clock: Clock) -> &'static str {
    match clock {
        Clock::Instructions => "instructions of the program",
        Clock::Bytes => "bytes allocated",
    }
}

/// Bytes on average over the whole run.
fn average(space: u128, end: u64) -> String {
    whole(space as f64 / end.max(1) as f64)
}

fn whole(value: f64) -> String {
    if value > 0.0 && value < 0.5 { "< 1 B".into() } else { bytes(value.round()) }
}

fn share(part: u128, space: &Space) -> String {
    percent(part as f64 / space.held() as f64)
}

/// Adds the columns of what was held: before the first use, and [`used`].
fn shares<R>(table: Columns<R>, of: impl Fn(&R) -> &Space) -> Columns<R> {
    used(table.figure("lag", |row| share(of(row).lag, of(row))), of)
}

/// Adds the columns of what was held from the first use on, and of what was never used.
fn used<R>(table: Columns<R>, of: impl Fn(&R) -> &Space) -> Columns<R> {
    let table = table.figure("use", |row| share(of(row).in_use, of(row)));
    let table = table.figure("drag", |row| share(of(row).drag, of(row)));
    table.figure("void", |row| share(of(row).void, of(row)))
}

/// A row a manager.
pub fn managers(rows: &[(&Row, &Figures)], clock: Clock) -> Vec<Item> {
    let waits = rows.iter().any(|(_, figures)| figures.collector.is_some());
    let held = |figures: &Figures| average(figures.all.space(clock).held(), end(figures, clock));
    let waiting = |figures: &Figures| {
        let bytes = || average(figures.all.space(clock).unreclaimed, end(figures, clock));
        let text = |at_free| if at_free { "0 B".into() } else { format!("<= {}", bytes()) };
        figures.collector.map(|collector| text(collector.reclaims_at_free))
    };
    let table = Table::of(rows)
        .text("manager", |(row, _)| row.manager.clone())
        .figure("objects", |(_, figures)| number(figures.all.all.objects))
        .figure("kept on average", |(_, figures)| held(figures));
    let table = shares(table, |(_, figures)| figures.all.space(clock))
        .figure("not freed", |(_, figures)| number(figures.all.not_freed.objects))
        .note(format!("Shares are of the program's bytes times {}.", clock_label(clock)))
        .when(waits, |table| {
            table.figure("freed, not reclaimed", |(_, figures)| waiting(figures)).note(
                "Freed, not reclaimed: average bytes that were freed and not yet reusable (upper bound).",
            )
        });
    let images = rows.iter().filter_map(|(row, _)| Some((&row.manager, row.all_images.as_ref()?)));
    let images = Table::of(images)
        .caption("all process images together")
        .text("manager", |(manager, _)| manager.as_str())
        .figure("processes", |(_, all)| all.images.to_string())
        .figure("objects", |(_, all)| number(all.all.objects));
    let images = shares(images, |(_, all)| all.space(clock)).if_any();
    [table.table()].into_iter().chain(images).map(Item::Table).collect()
}

/// The bytes held in each tenth of the run.
pub fn over_time(figures: &Figures, clock: Clock) -> Option<Item> {
    let end = end(figures, clock);
    let samples = figures.over_time.on(clock);
    if figures.all.all.objects == 0 || end == 0 {
        return None;
    }
    let waits = samples.iter().any(|sample| sample.unreclaimed_bytes > 0.0);
    let border = |tenth: usize| (u128::from(end) * tenth as u128 / PARTS as u128) as f64;
    let mean = |tenth: usize, of: fn(&Interval) -> f64| {
        let (from, to) = (border(tenth), border(tenth + 1));
        let inside = |sample: &Interval| {
            of(sample) * ((sample.to as f64).min(to) - (sample.from as f64).max(from)).max(0.0)
        };
        samples.iter().map(inside).sum::<f64>() / (to - from)
    };
    let held = |tenth: usize| mean(tenth, Interval::held_bytes);
    let idle = |tenth: usize| mean(tenth, |sample| sample.drag_bytes + sample.void_bytes);
    let table = Table::of(0..PARTS)
        .caption(format!("bytes on average, by {}", clock_label(clock)))
        .text("of the run", |tenth| format!("{} to {} %", tenth * 100 / PARTS, (tenth + 1) * 100 / PARTS))
        .figure("held", |tenth| whole(held(*tenth)))
        .figure("in use", |tenth| whole(mean(*tenth, |sample| sample.use_bytes)))
        .figure("never touched again", |tenth| whole(idle(*tenth)))
        .figure("share", |tenth| {
            Some(held(*tenth)).filter(|held| *held > 0.0).map(|held| percent(idle(*tenth) / held))
        })
        .when(waits, |table| {
            table.figure("freed, not reclaimed", |tenth| {
                whole(mean(*tenth, |sample| sample.unreclaimed_bytes))
            })
        });
    Some(table.into())
}

/// A row a size class.
pub fn sizes(figures: &Figures, clock: Clock) -> Option<Item> {
    let end = end(figures, clock);
    let table = Table::of(&figures.classes)
        .caption("requested bytes (of a resized object the last)")
        .text("size", |class| class.name.clone())
        .figure("objects", |class| number(class.all.objects))
        .figure("kept on average", |class| average(class.space(clock).held(), end));
    let table = shares(table, |class| class.space(clock))
        .figure("never touched", |class| part(class.never_touched.objects, class.all.objects))
        .figure("not freed", |class| number(class.not_freed.objects));
    table.if_any().map(Item::Table)
}

/// Sites with the most drag, and those whose objects are never touched.
pub fn sites(figures: &Figures, clock: Clock) -> Vec<Item> {
    let end = end(figures, clock);
    let idle = |space: &Space| space.drag + space.void;
    let all = idle(figures.all.space(clock)).max(1);
    let listed = &figures.sites[..figures.sites.len().min(SITES)];
    let more = (figures.sites.len() - listed.len()) as u64;
    let caption = match (more, &figures.other_sites) {
        (0, None) => "most drag and void first".to_owned(),
        (more, others) => format!(
            "the {} with the most drag and void; {} more have less",
            listed.len(),
            others.as_ref().map_or_else(|| number(more), |others| format!("{more} and {}", others.name))
        ),
    };
    let drag = Table::of(listed)
        .caption(caption)
        .sites("site", |site| site.name.clone())
        .figure("stacks", |site| number(site.stacks.unwrap_or(1)))
        .figure("objects", |site| number(site.all.objects))
        .figure("drag and void on average", |site| average(idle(site.space(clock)), end))
        .figure("of all", |site| percent(idle(site.space(clock)) as f64 / all as f64));
    let drag =
        used(drag, |site| site.space(clock)).figure("not freed", |site| number(site.not_freed.objects));
    let mut void: Vec<&GroupFigures> =
        figures.sites.iter().filter(|site| site.never_touched.bytes > 0).collect();
    void.sort_by_key(|site| std::cmp::Reverse(site.space(clock).void));
    let void = Table::of(void.into_iter().take(VOID_SITES))
        .caption("sites whose objects are never touched")
        .sites("site", |site| site.name.clone())
        .figure("never touched", |site| part(site.never_touched.objects, site.all.objects))
        .figure("objects", |site| number(site.never_touched.objects))
        .figure("bytes", |site| whole_bytes(site.never_touched.bytes))
        .figure("void on average", |site| average(site.space(clock).void, end));
    drag.if_any().into_iter().chain(void.if_any()).map(Item::Table).collect()
}

/// Reclamation by collectors, of freed blocks and of others.
pub fn collectors(rows: &[(&Row, &Figures)], clock: Clock) -> Option<Item> {
    let waiting =
        |space: &Space| percent(space.unreclaimed as f64 / (space.held() + space.unreclaimed).max(1) as f64);
    Table::of(rows.iter().filter_map(|(row, figures)| Some((row, figures, figures.collector?))))
        .text("manager", |(row, ..)| row.manager.clone())
        .figure("collections", |(.., collector)| number(collector.collections))
        .figure("freed blocks are reclaimed", |(.., collector)| match collector.reclaims_at_free {
            true => "at the free",
            false => "by collections",
        })
        .figure("reused immediately", |(.., collector)| number(collector.freed_blocks.by_free.objects))
        .figure("after a collection", |(.., one)| number(one.freed_blocks.after_collection.objects))
        .figure("never again", |(.., collector)| number(collector.freed_blocks.never.objects))
        .figure("reclaimed unfreed", |(_, figures, _)| number(figures.all.reclaimed.objects))
        .figure("of all space, waiting", |(_, figures, _)| waiting(figures.all.space(clock)))
        .note(
            "From outside, a block is known to be reclaimed only when its address is reused or unmapped. \
             Immediately: no collection had ended since the free. Never again: not by the end of the run. \
             Whether those were reclaimed is unknown; they count as waiting.",
        )
        .if_any()
        .map(Item::Table)
}

/// Stores of pointers, a row an owner.
pub fn pointers(rows: &[(&Row, &Figures)]) -> Vec<Item> {
    let lines = rows.iter().filter_map(|(row, figures)| {
        let stores = figures.pointers?.stores;
        let owners =
            [("program", stores.program), ("allocator", stores.allocator), ("collector", stores.collector)];
        let owners = owners.into_iter().filter(|(_, stores)| stores.all > 0);
        Some(owners.map(move |(owner, stores)| (&row.manager, owner, stores, figures.instructions.max(1))))
    });
    let table = Table::of(lines.flatten())
        .text("stored by", |(manager, owner, ..)| format!("{manager}, {owner}"))
        .figure("stores", |(.., stores, _)| number(stores.all))
        .figure("per 1000 instructions", |(.., stores, instructions)| {
            format!("{:.3}", stores.all as f64 * 1000.0 / *instructions as f64)
        })
        .figure("older to younger", |(.., stores, _)| number(stores.older_to_younger))
        .figure("younger to older", |(.., stores, _)| number(stores.younger_to_older))
        .figure("to itself", |(.., stores, _)| number(stores.to_itself))
        .figure("from no object", |(.., stores, _)| number(stores.from_elsewhere))
        .figure("to no object", |(.., stores, _)| number(stores.to_none))
        .note(
            "A store counts as one of a pointer if its value lies in the heap. Older to younger: into an \
             older object, the address of a younger one. Instructions are the program's.",
        );
    table.if_any().map(Item::Table).into_iter().collect()
}
