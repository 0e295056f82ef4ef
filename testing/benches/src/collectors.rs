//! Collectors compared with allocators and with each other, next to Tithe's targets: `docs/results/collectors.md`. Each
//! section but those of marking and of the ledger is a view of what `heaptoll run --json` wrote.

mod curve;
mod document;
mod frontier;
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
    Ledger(ledger::Options),
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
        Command::Ledger(options) => ledger::run(options),
        Command::Marking(options) => marking::run(options),
        Command::Threads(options) => threads::run(options),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::document::replaced;
    use super::measured::Measured;
    use super::{curve, table};

    /// Without the runs over heap sizes their section stays as it is.
    #[test]
    fn the_page_has_what_the_stored_runs_give() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let file = |name: &str| results.join("published").join(name);
        let stored = |name: &str| Measured::read(&file(name)).expect("a stored run");
        let mut sections: Vec<(&str, String)> = vec![];
        sections.extend(table::sections(&stored("collectors.json.xz")));
        let heaps = "collectors-heaps.json.xz";
        sections.extend(file(heaps).exists().then(|| ("curve", curve::section(&stored(heaps)))));
        let file = results.join("collectors.md");
        let page = std::fs::read_to_string(&file).expect("the page");
        let expected =
            sections.iter().fold(page.clone(), |page, (section, text)| replaced(&page, section, text));
        if std::env::var_os("WRITE_DOCS").is_some() {
            std::fs::write(&file, &expected).expect("the page");
        } else {
            assert!(page == expected, "the page is not what the stored runs give; WRITE_DOCS=1 writes it");
        }
    }
}
