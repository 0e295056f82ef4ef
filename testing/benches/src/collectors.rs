//! Collectors compared with allocators and with each other, next to Tithe's targets: `docs/results/collectors.md`. Each
//! section but those of marking and of the ledger is a view of what `heaptoll run --json` wrote.

mod curve;
mod document;
mod frontier;
mod guard;
mod ledger;
mod marking;
mod measured;
mod summary;
mod table;
mod targets;
mod threads;

use clap::Subcommand;

use crate::Error;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// CPU and memory of programs over glibc's, and the targets of Tithe's modes
    Table(table::Options),
    /// CPU against memory over heap sizes, ours and Boehm's: means, and a verdict a program
    Curve(curve::Options),
    /// Where the CPU of each program goes, by samples of perf
    Ledger(measured::SizedOptions),
    /// The guard and others that hold freed memory back, next to its targets: writes docs/results/guard.md
    Guard(measured::SizedOptions),
    /// Throughput of one thread and of two
    Threads(threads::Options),
    /// How fast live small objects are marked: Tithe and the sweep layer over other managers
    Marking(marking::Options),
}

/// Runs one of them. False when some runs did not end well, and the table names them.
///
/// # Errors
/// The table could not be made.
pub fn run(command: &Command) -> Result<bool, Error> {
    match command {
        Command::Table(options) => table::run(options),
        Command::Curve(options) => curve::run(options),
        Command::Guard(options) => guard::run(options),
        Command::Ledger(options) => ledger::run(options),
        Command::Marking(options) => marking::run(options),
        Command::Threads(options) => threads::run(options),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use heaptoll_catalog::Catalog;

    use super::document::replaced;
    use super::measured::Measured;
    use super::{curve, guard, table};

    /// Without the runs over heap sizes their section stays as it is. The guard's page is there when its run is.
    #[test]
    fn the_pages_have_what_the_stored_runs_give() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let results = root.join("docs/results");
        let stored = |name: &str| {
            let file = results.join("published").join(name);
            file.exists().then(|| Measured::read(&file).expect("a stored run"))
        };
        let mut sections = table::sections(&stored("collectors.json.xz").expect("the run")).to_vec();
        sections.extend(stored("collectors-heaps.json.xz").map(|runs| ("curve", curve::section(&runs))));
        let mut pages = vec![("collectors.md", sections)];
        if let Some(runs) = stored("guard.json.xz") {
            let catalog = Catalog::load(&root.join("programs")).expect("the catalog");
            let set = |name: &str| catalog.set(name).expect("a set").programs.clone();
            pages
                .push(("guard.md", vec![("table", guard::section(&runs, &set("twenty"), &set(guard::KIN)))]));
        }
        for (name, sections) in pages {
            let file = results.join(name);
            let page = std::fs::read_to_string(&file).expect("the page");
            let expected =
                sections.iter().fold(page.clone(), |page, (section, text)| replaced(&page, section, text));
            if std::env::var_os("WRITE_DOCS").is_some() {
                std::fs::write(&file, &expected).expect("the page");
            } else {
                assert!(page == expected, "{name} is not what the stored runs give; WRITE_DOCS=1 writes it");
            }
        }
    }
}
