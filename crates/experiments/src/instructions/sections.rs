//! The tables of `heaptoll exact instructions`.

use heaptoll_instruction_counts::{ClassFigures, Figures, SizeClass, SpreadFigures, Tables};
use heaptoll_report::document::{Column, Item, Table};
use heaptoll_report::format::{NONE, count, ratio};
use heaptoll_units::{bytes, part, tenths, three_digits, whole_bytes};

use super::check;
use super::figures::Row;
use heaptoll_command::tables::table;

fn maybe(value: Option<f64>, words: fn(f64) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), words)
}

/// The rows with figures.
pub fn figures<'a>(rows: &[&'a Row]) -> Vec<(&'a Row, &'a Figures)> {
    rows.iter().filter_map(|row| Some((*row, row.figures.as_ref()?))).collect()
}

/// A manager's name, marked when its figures are not of a whole run.
fn name(row: &Row) -> String {
    if row.is_whole() { row.manager.clone() } else { format!("{} (not whole)", row.manager) }
}

/// Tables IV to VII and X of Detlefs, Dosser & Zorn 1994.
pub fn tables(rows: &[&Row]) -> Item {
    let cells = figures(rows).into_iter().map(|(row, figures)| {
        let tables = &figures.tables;
        vec![
            name(row),
            maybe(tables.instructions_per_malloc, tenths),
            maybe(tables.instructions_per_free, tenths),
            maybe(tables.instructions_per_realloc, tenths),
            maybe(tables.instructions_per_object, tenths),
            maybe(tables.percent_of_application, three_digits),
            bytes(figures.heap.high_water_bytes as f64),
            bytes(figures.heap.pages_with_blocks_bytes as f64),
            maybe(figures.heap.expansion, ratio),
        ]
    });
    let columns = [
        "manager",
        "a malloc",
        "a free",
        "a realloc",
        "an object",
        "% of application",
        "mapped at most",
        "pages with blocks",
        "/ live",
    ];
    let mut table = table("", &columns, cells.collect());
    table.notes = vec![
        "Instructions, collections included. A malloc: any call that makes a block, realloc of null too \
         (Table IV of Detlefs, Dosser & Zorn 1994); a free: free and operator delete (V); an object: all \
         allocation instructions divided by objects made (VI); % of application: all allocation instructions \
         divided by the program's own (VII)."
            .to_owned(),
        "Mapped at most: address space, including what a manager reserves ready for use. Pages with blocks: \
         the most mapped pages that ever had a block. / live: these divided by the most bytes requested and \
         not freed (X)."
            .to_owned(),
    ];
    Item::Table(table)
}

/// Table 2 of Zorn 1992, and what the application executes.
pub fn shares(rows: &[&Row]) -> Item {
    let all = figures(rows);
    let baseline = rows.first().copied();
    let collects = all.iter().any(|(_, figures)| figures.amounts.owners.collector.instructions > 0);
    let cells = all.iter().map(|(row, figures)| {
        let (tables, owners) = (&figures.tables, &figures.amounts.owners);
        let same = baseline.and_then(|baseline| check::against(row, baseline));
        let mut cells = vec![
            name(row),
            count(figures.amounts.instructions() as f64),
            count(owners.program.instructions as f64),
            same.map_or_else(|| NONE.to_owned(), |ratio| format!("{:+.3} %", 100.0 * (ratio - 1.0))),
            maybe(tables.percent_in_malloc, three_digits),
            maybe(tables.percent_in_free, three_digits),
        ];
        if collects {
            cells.push(maybe(tables.percent_in_collector, three_digits));
            cells.push(count(figures.amounts.collections as f64));
        }
        let before = row.startup().map_or_else(|| NONE.to_owned(), |startup| count(startup as f64));
        cells.push(before);
        cells
    });
    let mut columns =
        vec!["manager", "instructions", "application", "vs baseline", "% in malloc", "% in free"];
    if collects {
        columns.extend(["% in collector", "collections"]);
    }
    columns.push("before main");
    let mut table = table("", &columns, cells.collect());
    table.notes.push(
        "Shares of all instructions (Table 2 of Zorn 1992). Free includes realloc, as there; a collection \
         counts in the call that it is made in. Vs baseline: application instructions after main, if known; \
         they should be the same under every manager. Before main: the program's part of start-up, loader \
         and constructors."
            .to_owned(),
    );
    Item::Table(table)
}

/// What collections execute, by the phases that their managers announce.
pub fn phases(rows: &[&Row]) -> Option<Item> {
    let all = figures(rows);
    let cells = all.iter().filter(|(_, figures)| figures.amounts.phases.total() > 0).map(|(row, figures)| {
        let (phases, collections) = (&figures.amounts.phases, figures.amounts.collections);
        let each = |instructions: u64| match instructions {
            0 => NONE.to_owned(),
            some => count(per(some, collections).round()),
        };
        let share = |instructions: u64| {
            let percent = 100.0 * per(instructions, figures.amounts.owners.program.instructions);
            if instructions == 0 { NONE.to_owned() } else { three_digits(percent) }
        };
        vec![
            name(row),
            count(collections as f64),
            each(phases.stop + phases.roots + phases.resume + phases.other),
            each(phases.mark),
            each(phases.sweep),
            share(phases.stop + phases.roots + phases.resume + phases.other),
            share(phases.mark),
            share(phases.sweep),
        ]
    });
    let cells: Vec<Vec<String>> = cells.collect();
    if cells.is_empty() {
        return None;
    }
    let columns =
        ["manager", "collections", "stop, roots", "mark", "sweep", "stop, roots %", "mark %", "sweep %"];
    let mut table = table("Instructions of a collection", &columns, cells);
    table.notes.push(
        "By the phases that the manager announces. Stop, roots: stopping and resuming the world, and finding \
         the roots of the process, its threads and mappings, without the kernel's work. Mark: the words of \
         roots too. A manager that sweeps when it allocates has no sweep here. %: of the application's \
         instructions."
            .to_owned(),
    );
    Some(Item::Table(table))
}

/// All process images, where there were several.
pub fn together(rows: &[&Row]) -> Option<Item> {
    let cells = rows.iter().filter_map(|row| {
        let sums = row.all_images.as_ref()?;
        let tables: &Tables = &sums.tables;
        Some(vec![
            name(row),
            count(sums.images as f64),
            count(sums.amounts.instructions() as f64),
            maybe(tables.instructions_per_malloc, tenths),
            maybe(tables.instructions_per_free, tenths),
            maybe(tables.instructions_per_object, tenths),
            maybe(tables.percent_of_application, three_digits),
        ])
    });
    let cells: Vec<Vec<String>> = cells.collect();
    if cells.is_empty() {
        return None;
    }
    let columns =
        ["manager", "images", "instructions", "a malloc", "a free", "an object", "% of application"];
    let mut table = table("All process images together", &columns, cells);
    table.notes.push("All other tables are of the process image that executes most instructions.".to_owned());
    Some(Item::Table(table))
}

/// Every routine under every manager.
pub fn calls(rows: &[&Row]) -> Option<Item> {
    let all = figures(rows);
    let mut names: Vec<&str> =
        all.iter().flat_map(|(_, figures)| &figures.routines).map(|one| one.routine.as_str()).collect();
    let order = |name: &&str| heaptoll_reftrace::Routine::ALL.iter().position(|one| one.name() == *name);
    names.sort_by_key(order);
    names.dedup();
    let mut cells = Vec::new();
    for routine in names {
        for (row, figures) in &all {
            let Some(one) = figures.routines.iter().find(|one| one.routine == routine) else { continue };
            cells.push(vec![
                format!("{routine}, {}", name(row)),
                count(one.calls as f64),
                tenths(one.per_call.mean),
                tenths(per(one.cost.loads, one.calls)),
                tenths(per(one.cost.stores, one.calls)),
                count(one.per_call.p50 as f64),
                count(one.per_call.p90 as f64),
                count(one.per_call.p99 as f64),
                count(one.per_call.max as f64),
                part(one.collector_instructions, one.cost.instructions),
            ]);
        }
    }
    let collects =
        all.iter().any(|(_, figures)| figures.routines.iter().any(|one| one.collector_instructions > 0));
    let mut columns = vec![
        "routine",
        "calls",
        "mean",
        "loads",
        "stores",
        "50 %",
        "90 %",
        "99 %",
        "dearest",
        "in collections",
    ];
    if !collects {
        columns.pop();
        cells.iter_mut().for_each(|cells| {
            cells.pop();
        });
    }
    let mut table = table("Instructions, loads and stores of a call", &columns, cells);
    table.notes.push(
        "Calls from outside the family, with all that they call. Mean, loads and stores are averages of a \
         call; 50 %, 90 % and 99 % of the calls take no more instructions than shown. The most expensive \
         call often sets up the heap."
            .to_owned(),
    );
    (!table.rows.is_empty()).then_some(Item::Table(table))
}

fn per(part: u64, calls: u64) -> f64 {
    part as f64 / calls.max(1) as f64
}

/// The label of a class.
fn class(class: SizeClass) -> String {
    match class {
        SizeClass::Null => "no block".to_owned(),
        SizeClass::Unknown => "not known".to_owned(),
        SizeClass::Size { up_to_bytes: 0, .. } => "0 B".to_owned(),
        SizeClass::Size { from_bytes, up_to_bytes } if up_to_bytes <= 1024 => {
            format!("{from_bytes} to {up_to_bytes} B")
        }
        SizeClass::Size { up_to_bytes, .. } => format!("to {}", whole_bytes(up_to_bytes)),
    }
}

/// A table a manager: sizes down, what is done across.
pub fn by_size(rows: &[&Row]) -> Vec<Item> {
    figures(rows).into_iter().map(|(row, figures)| Item::Table(of_manager(row, figures))).collect()
}

fn of_manager(row: &Row, figures: &Figures) -> Table {
    let sizes = &figures.by_doubling;
    let resizes = !sizes.resize.is_empty();
    let mut groups = vec![("malloc", &sizes.allocate), ("free", &sizes.free)];
    if resizes {
        groups.push(("realloc", &sizes.resize));
    }
    let mut classes: Vec<SizeClass> =
        groups.iter().flat_map(|(_, all)| all.iter()).map(|one| one.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let cells = |one: &ClassFigures| {
        let SpreadFigures { mean, p50, p99, max, .. } = one.per_call;
        [count(one.calls as f64), tenths(mean), count(p50 as f64), count(p99 as f64), count(max as f64)]
    };
    let rows = classes.into_iter().map(|size| {
        let of = groups.iter().flat_map(|(_, all)| match all.iter().find(|one| one.class == size) {
            Some(one) => cells(one),
            None => [""; 5].map(str::to_owned),
        });
        std::iter::once(class(size)).chain(of).collect()
    });
    let mut columns = vec![Column::text("size")];
    for (group, _) in &groups {
        columns.push(Column::figures(&format!("{group}s")));
        columns.extend(["mean", "50 %", "99 %", "maximum"].map(Column::figures));
    }
    Table { caption: name(row), columns, rows: rows.collect(), notes: vec![] }
}
