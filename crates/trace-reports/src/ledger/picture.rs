//! The picture of the heap's pages: tiles in order of address, coloured by the call site that holds them.

use heaptoll_ledger::{Cell, Holder, Picture, Snapshot};
use heaptoll_report::document::{Key, Mosaic, Tile};
use heaptoll_report::format::{plural, seconds};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_units::{number, part, whole_bytes};

use super::pin_rows::Row;

/// Call sites with a colour of their own.
const COLOURS: usize = 6;
/// Steps of age.
const STEPS: usize = 5;
/// Characters of a call site in a tile's text: there are many tiles.
const NAME: usize = 90;

/// The picture of a snapshot whose call sites, those that hold most first, are `rows`.
pub fn mosaic(picture: &Picture, snapshot: &Snapshot, rows: &[Row], call_sites: &mut CallSites) -> Mosaic {
    let coloured: Vec<usize> = rows.iter().take(COLOURS).map(|row| row.row).collect();
    let all: u64 = rows.iter().map(|row| row.pin.bytes()).sum();
    let key = |row: &Row| Key {
        name: row.name.clone(),
        figure: format!("pins {}, {}", whole_bytes(row.pin.bytes()), part(row.pin.bytes(), all)),
    };
    let mut tiles = Vec::new();
    for (at, cell) in picture.cells.iter().enumerate() {
        let holders = by_row(&cell.holders, call_sites);
        let bytes = (picture.pages_of(at) * picture.page_bytes).max(1) as f64;
        let first = holders.first().map(|(row, _)| *row);
        tiles.push(Tile {
            key: first.and_then(|first| coloured.iter().position(|row| *row == first)),
            step: (cell.live_bytes > 0).then(|| step(cell.age_kib * 1024, snapshot.clock_bytes)),
            solid: cell.live_bytes as f64 / bytes,
            pale: cell.held_bytes as f64 / bytes,
            text: text(picture, at, cell, &holders, call_sites),
        });
    }
    let age = ["allocated in the last fifth of the run", "fourth", "third", "second", "first"];
    Mosaic {
        title: "The heap's pages, by the call site that pins them".into(),
        caption: caption(picture, snapshot),
        bands: [
            "live blocks".into(),
            "free, pinned by live blocks on its page".into(),
            "no live block on its page".into(),
        ],
        keys: rows.iter().take(COLOURS).map(key).collect(),
        steps: ("colour by age".into(), age.map(str::to_owned).into()),
        tiles,
    }
}

fn caption(picture: &Picture, snapshot: &Snapshot) -> String {
    let tile = match picture.cell_pages {
        1 => "A tile is a page".to_owned(),
        pages => format!("A tile is {pages} neighbouring pages"),
    };
    format!(
        "{tile} of {} KiB, in order of address, after {} s, when external fragmentation was largest: {} of \
         the heap, without what is not resident. The call site with most of a tile gives its colour (grey: \
         any other). Its levels are shares of its bytes, each drawn high enough to be visible.",
        picture.page_bytes / 1024,
        seconds(snapshot.time_ns as f64 / 1e9),
        plural(picture.pages as usize, "resident page"),
    )
}

/// In which fifth of the run blocks of this age were allocated: 0 is the last one.
fn step(age_bytes: u64, clock_bytes: u64) -> usize {
    let steps = u128::from(age_bytes) * STEPS as u128 / u128::from(clock_bytes.max(1));
    (steps as usize).min(STEPS - 1)
}

/// The holders of a cell; call stacks that read alike are one.
fn by_row(holders: &[Holder], call_sites: &mut CallSites) -> Vec<(usize, Holder)> {
    let mut all: Vec<(usize, Holder)> = Vec::new();
    for holder in holders {
        let row = call_sites.row(holder.site);
        match all.iter_mut().find(|(known, _)| *known == row) {
            Some((_, sum)) => {
                sum.live_bytes += holder.live_bytes;
                sum.held_bytes += holder.held_bytes;
            }
            None => all.push((row, *holder)),
        }
    }
    all
}

fn text(
    picture: &Picture,
    at: usize,
    cell: &Cell,
    holders: &[(usize, Holder)],
    call_sites: &CallSites,
) -> Vec<String> {
    let pages = picture.pages_of(at);
    let bytes = pages * picture.page_bytes;
    let first = at as u64 * picture.cell_pages + 1;
    let which = match pages {
        1 => format!("Page {}", number(first)),
        _ => format!("Pages {} to {}", number(first), number(first + pages - 1)),
    };
    let mut lines =
        vec![format!("{which} of {}: {:#x} to {:#x}", number(picture.pages), cell.start, cell.end)];
    let empty = cell.empty_pages * picture.page_bytes;
    lines.push(format!(
        "live {} ({}), free and pinned {} ({}), pages without a live block {} ({})",
        whole_bytes(cell.live_bytes),
        part(cell.live_bytes, bytes),
        whole_bytes(cell.held_bytes),
        part(cell.held_bytes, bytes),
        whole_bytes(empty),
        part(empty, bytes),
    ));
    for (row, holder) in holders {
        lines.push(format!(
            "{}: live {}, pins {}",
            short(&call_sites.name(*row)),
            whole_bytes(holder.live_bytes),
            whole_bytes(holder.held_bytes)
        ));
    }
    if cell.live_bytes > 0 {
        lines.push(format!("allocated since, on average: {}", whole_bytes(cell.age_kib * 1024)));
    }
    lines
}

fn short(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}
