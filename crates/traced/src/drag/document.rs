//! The document of `heaptoll exact drag`.

use heaptoll_drag::{Clock, Figures as ImageFigures};
use heaptoll_report::document::{Document, Item, Section};
use heaptoll_units::{bytes, number, objects, percent};

use super::figures::{ExactDragFigures, Program, Row};
use super::{charts, sections};
use heaptoll_runs::traced::{self, Shown, warnings_of};

/// Smaller differences between managers are not reported.
const SAME: f64 = 0.001;
/// Nor are so few instructions: another object to load and to search is more work for the loader.
const STARTED: u64 = 200_000;

/// The whole document.
pub fn document(figures: &ExactDragFigures) -> Document {
    let title = match figures.programs.as_slice() {
        [one] => format!("When {} uses its objects", one.program),
        many => format!("When {} programs use their objects", many.len()),
    };
    let programs = figures.programs.iter().map(|one| Shown {
        program: &one.program,
        command: &one.command,
        warnings: warnings(one),
        sections: of_program(one, figures.clock),
    });
    traced::document(title, figures.complete, programs.collect())
}

fn warnings(program: &Program) -> Vec<String> {
    let of_rows = program.managers.iter().flat_map(|row| {
        let doubts = doubts(row).into_iter().map(move |doubt| format!("{}: {doubt}", row.manager));
        warnings_of(&row.manager, row.problem.as_ref(), &row.warnings).into_iter().chain(doubts)
    });
    of_rows.chain(program.warnings.iter().cloned()).collect()
}

fn of_program(program: &Program, clock: Clock) -> Vec<Section> {
    let rows: Vec<(&Row, &ImageFigures)> =
        program.managers.iter().filter_map(|row| Some((row, row.figures.as_ref()?))).collect();
    let Some(&(row, figures)) = rows.first() else { return Vec::new() };
    let section = |title: &str, text: Vec<String>, items: Vec<Item>| {
        (!items.is_empty()).then(|| Section { title: title.into(), text, items })
    };
    let of =
        |title: &str| if rows.len() > 1 { format!("{title} (under {})", row.manager) } else { title.into() };
    let mut over_time: Vec<Item> = sections::over_time(figures, clock).into_iter().collect();
    over_time.extend(charts::over_time(&rows, clock));
    let mut sites: Vec<Item> = sections::sites(figures, clock);
    sites.extend(charts::sites(figures, clock));
    sites.extend(row.more.stacks.clone().map(|stacks| charts::stacks(stacks, clock)));
    [
        section("Lag, use, drag and void", findings(row, figures, clock), sections::managers(&rows, clock)),
        section(&of("Over time"), Vec::new(), over_time),
        section(&of("By size"), Vec::new(), sections::sizes(figures, clock).into_iter().collect()),
        section(&of("By call site"), Vec::new(), sites),
        section("What collectors keep", Vec::new(), sections::collectors(&rows, clock).into_iter().collect()),
        section("Stores of pointers", barrier(figures), sections::pointers(&rows)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The finding in a few sentences.
fn findings(row: &Row, figures: &ImageFigures, clock: Clock) -> Vec<String> {
    let (all, space) = (&figures.all, figures.all.space(clock));
    if all.all.objects == 0 {
        return vec!["No object was made.".into()];
    }
    let share = |part: u128| percent(part as f64 / space.held().max(1) as f64);
    let image = row.image.as_ref().and_then(|image| image.command.first());
    let mut findings = vec![format!(
        "Of the memory of the objects{}, {} is in use and {} is drag (kept after the last touch). {} waits \
         for its first touch (lag), and {} is never touched (void).",
        match (&row.all_images, image) {
            (Some(_), Some(image)) => format!(" of {image}"),
            _ => String::new(),
        },
        share(space.in_use),
        share(space.drag),
        share(space.lag),
        share(space.void)
    )];
    if all.never_touched.objects > 0 {
        findings.push(format!(
            "{} of {} ({}) are never touched.",
            number(all.never_touched.objects),
            objects(all.all.objects),
            bytes(all.never_touched.bytes as f64)
        ));
    }
    let kept = all.not_freed_space(clock);
    if all.not_freed.objects > 0 {
        findings.push(format!(
            "{} ({}) {} not freed at the end: {} of drag and void.",
            objects(all.not_freed.objects),
            bytes(all.not_freed.bytes as f64),
            if all.not_freed.objects == 1 { "is" } else { "are" },
            percent((kept.drag + kept.void) as f64 / (space.drag + space.void).max(1) as f64)
        ));
    }
    findings
}

fn barrier(figures: &ImageFigures) -> Vec<String> {
    let Some(pointers) = &figures.pointers else { return Vec::new() };
    vec![format!(
        "The program stores {:.3} pointers per 1000 of its instructions. {:.3} lead from an older object to \
         a younger one, which a generational collector's write barrier must remember.",
        pointers.program_per_1000_instructions, pointers.older_to_younger_per_1000_instructions
    )]
}

/// Reasons to doubt a row's figures.
fn doubts(row: &Row) -> Vec<String> {
    let Some(figures) = &row.figures else { return Vec::new() };
    let mut doubts = Vec::new();
    if figures.all.lost.objects > 0 {
        doubts.push(format!(
            "the addresses of {} were reused without a recorded free; those objects are assumed to end there",
            objects(figures.all.lost.objects)
        ));
    }
    if figures.unknown_frees > 0 {
        doubts.push(format!(
            "{} of unknown blocks: made before a fork, past malloc and its kin, or by the C library for a \
             thread that ends",
            if figures.unknown_frees == 1 {
                "1 free".into()
            } else {
                format!("{} frees", number(figures.unknown_frees))
            }
        ));
    }
    if figures.unplaced > 0 {
        doubts.push(format!("{} at addresses that cannot be", objects(figures.unplaced)));
    }
    doubts
}

/// Checks that the program itself does the same under all managers.
pub fn differs(rows: &[Row], clock: Clock) -> Vec<String> {
    let whole = rows.iter().filter(|row| row.problem.is_none());
    let mut whole = whole.filter_map(|row| Some((row, row.figures.as_ref()?)));
    let Some((base, expected)) = whole.next() else { return Vec::new() };
    let off = |a: u128, b: u128| {
        let part = a.abs_diff(b) as f64 / b.max(1) as f64;
        (part > SAME).then(|| percent(part))
    };
    whole
        .filter_map(|(row, figures)| {
            let (objects, all) = (figures.all.all.objects, expected.all.all.objects);
            let (in_use, expected_use) = (figures.all.space(clock).in_use, expected.all.space(clock).in_use);
            let (what, part) = off(objects.into(), all.into())
                .map(|part| ("makes a different number of objects", part))
                .or_else(|| {
                    let few = figures.instructions.abs_diff(expected.instructions) <= STARTED;
                    let part =
                        off(figures.instructions.into(), expected.instructions.into()).filter(|_| !few)?;
                    Some(("executes a different number of instructions", part))
                })
                .or_else(|| Some(("uses its objects differently", off(in_use, expected_use)?)))?;
            Some(format!(
                "under {} the program itself {what} than under {} ({part} off): start-up of the manager and \
                 effects of addresses count as the program's",
                row.manager, base.manager
            ))
        })
        .collect()
}
