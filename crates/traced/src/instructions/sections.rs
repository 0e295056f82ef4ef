//! The tables of `heaptoll exact instructions`.

use heaptoll_instruction_counts::{ClassFigures, Figures, SizeClass};
use heaptoll_report::document::{Columns, Item, Table};
use heaptoll_report::format::{count, ratio};
use heaptoll_units::{bytes, part, tenths, three_digits, whole_bytes};

use super::check;
use super::figures::Row;

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
    Table::of(figures(rows))
        .text("manager", |(row, _)| name(row))
        .figure("a malloc", |(_, figures)| figures.tables.instructions_per_malloc.map(tenths))
        .figure("a free", |(_, figures)| figures.tables.instructions_per_free.map(tenths))
        .figure("a realloc", |(_, figures)| figures.tables.instructions_per_realloc.map(tenths))
        .figure("an object", |(_, figures)| figures.tables.instructions_per_object.map(tenths))
        .figure("% of application", |(_, figures)| figures.tables.percent_of_application.map(three_digits))
        .figure("mapped at most", |(_, figures)| bytes(figures.heap.high_water_bytes as f64))
        .figure("pages with blocks", |(_, figures)| bytes(figures.heap.pages_with_blocks_bytes as f64))
        .figure("/ live", |(_, figures)| figures.heap.expansion.map(ratio))
        .note(
            "Instructions, collections included. A malloc: any call that makes a block, realloc of null too \
             (Table IV of Detlefs, Dosser & Zorn 1994); a free: free and operator delete (V); an object: all \
             allocation instructions divided by objects made (VI); % of application: all allocation instructions \
             divided by the program's own (VII).",
        )
        .note(
            "Mapped at most: address space, including what a manager reserves ready for use. Pages with blocks: \
             the most mapped pages that ever had a block. / live: these divided by the most bytes requested and \
             not freed (X).",
        )
        .into()
}

/// Table 2 of Zorn 1992, and what the application executes.
pub fn shares(rows: &[&Row]) -> Item {
    let all = figures(rows);
    let baseline = rows.first().copied();
    let collects = all.iter().any(|(_, figures)| figures.amounts.owners.collector.instructions > 0);
    let same = |row: &Row| {
        let ratio = check::against(row, baseline?)?;
        Some(format!("{:+.3} %", 100.0 * (ratio - 1.0)))
    };
    let program = |figures: &Figures| figures.amounts.owners.program.instructions;
    Table::of(all)
        .text("manager", |(row, _)| name(row))
        .figure("instructions", |(_, figures)| count(figures.amounts.instructions() as f64))
        .figure("application", |(_, figures)| count(program(figures) as f64))
        .figure("vs baseline", |(row, _)| same(row))
        .figure("% in malloc", |(_, figures)| figures.tables.percent_in_malloc.map(three_digits))
        .figure("% in free", |(_, figures)| figures.tables.percent_in_free.map(three_digits))
        .when(collects, |table| {
            table
                .figure("% in collector", |(_, figures)| figures.tables.percent_in_collector.map(three_digits))
                .figure("collections", |(_, figures)| count(figures.amounts.collections as f64))
        })
        .figure("before main", |(row, _)| row.startup().map(|startup| count(startup as f64)))
        .note(
            "Shares of all instructions (Table 2 of Zorn 1992). Free includes realloc, as there; a collection \
             counts in the call that it is made in. Vs baseline: application instructions after main, if known; \
             they should be the same under every manager. Before main: the program's part of start-up, loader \
             and constructors.",
        )
        .into()
}

/// What collections execute, by the phases that their managers announce.
pub fn phases(rows: &[&Row]) -> Option<Item> {
    let all = figures(rows).into_iter().filter(|(_, figures)| figures.amounts.phases.total() > 0);
    let each = |figures: &Figures, instructions: u64| {
        (instructions > 0).then(|| count(per(instructions, figures.amounts.collections).round()))
    };
    let share = |figures: &Figures, instructions: u64| {
        let percent = 100.0 * per(instructions, figures.amounts.owners.program.instructions);
        (instructions > 0).then(|| three_digits(percent))
    };
    let stop = |figures: &Figures| {
        let phases = &figures.amounts.phases;
        phases.stop + phases.roots + phases.resume + phases.other
    };
    Table::of(all)
        .caption("Instructions of a collection")
        .text("manager", |(row, _)| name(row))
        .figure("collections", |(_, figures)| count(figures.amounts.collections as f64))
        .figure("stop, roots", |(_, figures)| each(figures, stop(figures)))
        .figure("mark", |(_, figures)| each(figures, figures.amounts.phases.mark))
        .figure("sweep", |(_, figures)| each(figures, figures.amounts.phases.sweep))
        .figure("stop, roots %", |(_, figures)| share(figures, stop(figures)))
        .figure("mark %", |(_, figures)| share(figures, figures.amounts.phases.mark))
        .figure("sweep %", |(_, figures)| share(figures, figures.amounts.phases.sweep))
        .note(
            "By the phases that the manager announces. Stop, roots: stopping and resuming the world, and finding \
             the roots of the process, its threads and mappings, without the kernel's work. Mark: the words of \
             roots too. A manager that sweeps when it allocates has no sweep here. %: of the application's \
             instructions.",
        )
        .if_any()
        .map(Item::Table)
}

/// All process images, where there were several.
pub fn together(rows: &[&Row]) -> Option<Item> {
    Table::of(rows.iter().filter_map(|row| Some((*row, row.all_images.as_ref()?))))
        .caption("All process images together")
        .text("manager", |(row, _)| name(row))
        .figure("images", |(_, sums)| count(sums.images as f64))
        .figure("instructions", |(_, sums)| count(sums.amounts.instructions() as f64))
        .figure("a malloc", |(_, sums)| sums.tables.instructions_per_malloc.map(tenths))
        .figure("a free", |(_, sums)| sums.tables.instructions_per_free.map(tenths))
        .figure("an object", |(_, sums)| sums.tables.instructions_per_object.map(tenths))
        .figure("% of application", |(_, sums)| sums.tables.percent_of_application.map(three_digits))
        .note("All other tables are of the process image that executes most instructions.")
        .if_any()
        .map(Item::Table)
}

/// Every routine under every manager.
pub fn calls(rows: &[&Row]) -> Option<Item> {
    let all = figures(rows);
    let mut names: Vec<&str> =
        all.iter().flat_map(|(_, figures)| &figures.routines).map(|one| one.routine.as_str()).collect();
    let order = |name: &&str| heaptoll_reftrace::Routine::ALL.iter().position(|one| one.name() == *name);
    names.sort_by_key(order);
    names.dedup();
    let lines = names.into_iter().flat_map(|routine| {
        all.iter().filter_map(move |(row, figures)| {
            Some((routine, row, figures.routines.iter().find(|one| one.routine == routine)?))
        })
    });
    let collects =
        all.iter().any(|(_, figures)| figures.routines.iter().any(|one| one.collector_instructions > 0));
    Table::of(lines)
        .caption("Instructions, loads and stores of a call")
        .text("routine", |(routine, row, _)| format!("{routine}, {}", name(row)))
        .figure("calls", |(.., one)| count(one.calls as f64))
        .figure("mean", |(.., one)| tenths(one.per_call.mean))
        .figure("loads", |(.., one)| tenths(per(one.cost.loads, one.calls)))
        .figure("stores", |(.., one)| tenths(per(one.cost.stores, one.calls)))
        .figure("50 %", |(.., one)| count(one.per_call.p50 as f64))
        .figure("90 %", |(.., one)| count(one.per_call.p90 as f64))
        .figure("99 %", |(.., one)| count(one.per_call.p99 as f64))
        .figure("dearest", |(.., one)| count(one.per_call.max as f64))
        .when(collects, |table| {
            table.figure("in collections", |(.., one)| part(one.collector_instructions, one.cost.instructions))
        })
        .note(
            "Calls from outside the family, with all that they call. Mean, loads and stores are averages of a \
             call; 50 %, 90 % and 99 % of the calls take no more instructions than shown. The most expensive \
             call often sets up the heap.",
        )
        .if_any()
        .map(Item::Table)
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
    let figure = |all: &[ClassFigures], size: &SizeClass, of: fn(&ClassFigures) -> String| {
        all.iter().find(|one| one.class == *size).map(of).unwrap_or_default()
    };
    let table = Table::of(classes).caption(name(row)).text("size", |size| class(*size));
    let add = |table: Columns<SizeClass>, (group, all): (&str, &Vec<ClassFigures>)| {
        table
            .figure(&format!("{group}s"), |size| figure(all, size, |one| count(one.calls as f64)))
            .figure("mean", |size| figure(all, size, |one| tenths(one.per_call.mean)))
            .figure("50 %", |size| figure(all, size, |one| count(one.per_call.p50 as f64)))
            .figure("99 %", |size| figure(all, size, |one| count(one.per_call.p99 as f64)))
            .figure("maximum", |size| figure(all, size, |one| count(one.per_call.max as f64)))
    };
    groups.into_iter().fold(table, add).table()
}
