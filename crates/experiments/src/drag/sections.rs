//! The tables of `heaptoll exact drag`.

use heaptoll_drag::figures::GroupFigures;
use heaptoll_drag::space::Space;
use heaptoll_drag::timeline::Interval;
use heaptoll_drag::{Clock, Figures};
use heaptoll_report::document::Item;
use heaptoll_report::format::NONE;
use heaptoll_units::{bytes, number, part, percent, whole_bytes};

use super::figures::Row;
use heaptoll_command::tables::{site_table, table, table_item};

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

fn shares(space: &Space) -> [String; 4] {
    let share = |part: u128| percent(part as f64 / space.held() as f64);
    [share(space.lag), share(space.in_use), share(space.drag), share(space.void)]
}

/// A row a manager.
pub fn managers(rows: &[(&Row, &Figures)], clock: Clock) -> Vec<Item> {
    let waits = rows.iter().any(|(_, figures)| figures.collector.is_some());
    let mut columns =
        vec!["manager", "objects", "kept on average", "lag", "use", "drag", "void", "not freed"];
    if waits {
        columns.push("freed, not reclaimed");
    }
    let line = |(row, figures): &(&Row, &Figures)| {
        let (all, end) = (&figures.all, end(figures, clock));
        let space = all.space(clock);
        let mut line = vec![row.manager.clone(), number(all.all.objects), average(space.held(), end)];
        line.extend(shares(space));
        line.push(number(all.not_freed.objects));
        if waits {
            line.push(match figures.collector {
                None => NONE.to_owned(),
                Some(collector) if collector.reclaims_at_free => "0 B".into(),
                Some(_) => format!("<= {}", average(space.unreclaimed, end)),
            });
        }
        line
    };
    let mut all = table("", &columns, rows.iter().map(line).collect());
    all.notes.push(format!("Shares are of the program's bytes times {}.", clock_label(clock)));
    if waits {
        all.notes.push(
            "Freed, not reclaimed: average bytes that were freed and not yet reusable (upper bound).".into(),
        );
    }
    let mut items = vec![Item::Table(all)];
    let images = rows.iter().filter_map(|(row, _)| {
        let all = row.all_images.as_ref()?;
        let space = all.space(clock);
        let mut line = vec![row.manager.clone(), all.images.to_string(), number(all.all.objects)];
        line.extend(shares(space));
        Some(line)
    });
    let columns = ["manager", "processes", "objects", "lag", "use", "drag", "void"];
    items.extend(table_item("all process images together", &columns, images.collect()));
    items
}

/// The bytes held in each tenth of the run.
pub fn over_time(figures: &Figures, clock: Clock) -> Option<Item> {
    let end = end(figures, clock);
    let samples = figures.over_time.on(clock);
    if figures.all.all.objects == 0 || end == 0 {
        return None;
    }
    let waits = samples.iter().any(|sample| sample.unreclaimed_bytes > 0.0);
    let rows = (0..PARTS).map(|tenth| {
        let border = |tenth: usize| (u128::from(end) * tenth as u128 / PARTS as u128) as f64;
        let (from, to) = (border(tenth), border(tenth + 1));
        let mean = |of: fn(&Interval) -> f64| {
            let inside = |sample: &Interval| {
                of(sample) * ((sample.to as f64).min(to) - (sample.from as f64).max(from)).max(0.0)
            };
            samples.iter().map(inside).sum::<f64>() / (to - from)
        };
        let held = mean(Interval::held_bytes);
        let idle = mean(|sample| sample.drag_bytes + sample.void_bytes);
        let mut row = vec![
            format!("{} to {} %", tenth * 100 / PARTS, (tenth + 1) * 100 / PARTS),
            whole(held),
            whole(mean(|sample| sample.use_bytes)),
            whole(idle),
            if held > 0.0 { percent(idle / held) } else { NONE.to_owned() },
        ];
        if waits {
            row.push(whole(mean(|sample| sample.unreclaimed_bytes)));
        }
        row
    });
    let mut columns = vec!["of the run", "held", "in use", "never touched again", "share"];
    if waits {
        columns.push("freed, not reclaimed");
    }
    let caption = format!("bytes on average, by {}", clock_label(clock));
    Some(Item::Table(table(&caption, &columns, rows.collect())))
}

fn group(group: &GroupFigures, end: u64, clock: Clock) -> Vec<String> {
    let space = group.space(clock);
    let mut line = vec![group.name.clone(), number(group.all.objects), average(space.held(), end)];
    line.extend(shares(space));
    line.push(part(group.never_touched.objects, group.all.objects));
    line.push(number(group.not_freed.objects));
    line
}

/// A row a size class.
pub fn sizes(figures: &Figures, clock: Clock) -> Option<Item> {
    let end = end(figures, clock);
    let rows = figures.classes.iter().map(|class| group(class, end, clock)).collect();
    let columns =
        ["size", "objects", "kept on average", "lag", "use", "drag", "void", "never touched", "not freed"];
    table_item("requested bytes (of a resized object the last)", &columns, rows)
}

/// Sites with the most drag, and those whose objects are never touched.
pub fn sites(figures: &Figures, clock: Clock) -> Vec<Item> {
    let end = end(figures, clock);
    let idle = |space: &Space| space.drag + space.void;
    let all = idle(figures.all.space(clock)).max(1);
    let line = |site: &GroupFigures| {
        let space = site.space(clock);
        let [_, in_use, drag, void] = shares(space);
        vec![
            site.name.clone(),
            number(site.stacks.unwrap_or(1)),
            number(site.all.objects),
            average(idle(space), end),
            percent(idle(space) as f64 / all as f64),
            in_use,
            drag,
            void,
            number(site.not_freed.objects),
        ]
    };
    let rows: Vec<_> = figures.sites.iter().take(SITES).map(line).collect();
    let more = figures.sites.len().saturating_sub(rows.len()) as u64;
    let caption = match (more, &figures.other_sites) {
        (0, None) => "most drag and void first".to_owned(),
        (more, others) => format!(
            "the {} with the most drag and void; {} more have less",
            rows.len(),
            others.as_ref().map_or_else(|| number(more), |others| format!("{more} and {}", others.name))
        ),
    };
    let columns = [
        "site",
        "stacks",
        "objects",
        "drag and void on average",
        "of all",
        "use",
        "drag",
        "void",
        "not freed",
    ];
    let mut items: Vec<Item> = site_table(&caption, &columns, rows).into_iter().collect();
    let mut void: Vec<&GroupFigures> =
        figures.sites.iter().filter(|site| site.never_touched.bytes > 0).collect();
    void.sort_by_key(|site| std::cmp::Reverse(site.space(clock).void));
    let rows = void.iter().take(VOID_SITES).map(|site| {
        vec![
            site.name.clone(),
            part(site.never_touched.objects, site.all.objects),
            number(site.never_touched.objects),
            whole_bytes(site.never_touched.bytes),
            average(site.space(clock).void, end),
        ]
    });
    let columns = ["site", "never touched", "objects", "bytes", "void on average"];
    items.extend(site_table("sites whose objects are never touched", &columns, rows.collect()));
    items
}

/// Reclamation by collectors, of freed blocks and of others.
pub fn collectors(rows: &[(&Row, &Figures)], clock: Clock) -> Option<Item> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .filter_map(|(row, figures)| {
            let collector = figures.collector?;
            let blocks = collector.freed_blocks;
            let space = figures.all.space(clock);
            Some(vec![
                row.manager.clone(),
                number(collector.collections),
                if collector.reclaims_at_free { "at the free" } else { "by collections" }.into(),
                number(blocks.by_free.objects),
                number(blocks.after_collection.objects),
                number(blocks.never.objects),
                number(figures.all.reclaimed.objects),
                percent(space.unreclaimed as f64 / (space.held() + space.unreclaimed).max(1) as f64),
            ])
        })
        .collect();
    let columns = [
        "manager",
        "collections",
        "freed blocks are reclaimed",
        "reused immediately",
        "after a collection",
        "never again",
        "reclaimed unfreed",
        "of all space, waiting",
    ];
    let mut item = table_item("", &columns, rows);
    if let Some(Item::Table(table)) = &mut item {
        table.notes.push(
            "From outside, a block is known to be reclaimed only when its address is reused or unmapped. \
             Immediately: no collection had ended since the free. Never again: not by the end of the run. \
             Whether those were reclaimed is unknown; they count as waiting."
                .into(),
        );
    }
    item
}

/// Stores of pointers, a row an owner.
pub fn pointers(rows: &[(&Row, &Figures)]) -> Vec<Item> {
    let lines = rows.iter().filter_map(|(row, figures)| {
        let pointers = figures.pointers?;
        let stores = pointers.stores;
        let owners =
            [("program", stores.program), ("allocator", stores.allocator), ("collector", stores.collector)];
        let lines = owners.into_iter().filter(|(_, stores)| stores.all > 0).map(move |(owner, stores)| {
            vec![
                format!("{}, {owner}", row.manager),
                number(stores.all),
                format!("{:.3}", stores.all as f64 * 1000.0 / figures.instructions.max(1) as f64),
                number(stores.older_to_younger),
                number(stores.younger_to_older),
                number(stores.to_itself),
                number(stores.from_elsewhere),
                number(stores.to_none),
            ]
        });
        Some(lines.collect::<Vec<_>>())
    });
    let columns = [
        "stored by",
        "stores",
        "per 1000 instructions",
        "older to younger",
        "younger to older",
        "to itself",
        "from no object",
        "to no object",
    ];
    let mut item = table_item("", &columns, lines.flatten().collect());
    if let Some(Item::Table(table)) = &mut item {
        table.notes.push(
            "A store counts as one of a pointer if its value lies in the heap. Older to younger: into an \
             older object, the address of a younger one. Instructions are the program's."
                .into(),
        );
    }
    item.into_iter().collect()
}
