//! Writes every output of a made-up experiment, and of made-up studies, into a folder, for inspection.
//!
//! `cargo run -p heaptoll-report --features testing --example outputs -- FOLDER`

use std::error::Error;
use std::path::PathBuf;

use heaptoll_report::experiment::{Extras, document};
use heaptoll_report::flat_table::FlatTable;
use heaptoll_report::testing::{Shape, experiment, studies};
use heaptoll_report::{csv, files, html, json, markdown, parquet, terminal};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder")?);
    std::fs::create_dir_all(&folder)?;
    let extras = Extras { bounds: true, collections: true, explain: true, sections_before: 0 };
    for (name, shape) in [
        ("single", Shape::Single),
        ("suite", Shape::Suite),
        ("server", Shape::Server),
        ("troubled", Shape::Troubled),
    ] {
        let (experiment, comparison) = experiment(shape);
        let shown = document(&experiment, &comparison, extras);
        for width in [40, 80, 100, 120] {
            let style = terminal::Style { color: true, width: Some(width), unicode: true };
            let text = terminal::render_document(&shown, &style);
            std::fs::write(folder.join(format!("{name}-{width}.txt")), text)?;
        }
        files::write_atomically(&folder.join(format!("{name}.json")), |out| {
            json::write(&experiment, &comparison, out)
        })?;
        files::write_atomically(&folder.join(format!("{name}.csv")), |out| {
            csv::write(FlatTable::of_runs(&experiment), out)
        })?;
        files::write_atomically(&folder.join(format!("{name}.parquet")), |out| {
            parquet::write(FlatTable::of_runs(&experiment), out)
        })?;
        std::fs::write(folder.join(format!("{name}.html")), html::document::render(&shown)?)?;
    }
    std::fs::write(folder.join("studies.html"), html::document::render(&studies())?)?;
    std::fs::write(folder.join("studies.md"), markdown::render(&studies()))?;
    let style = terminal::Style { color: true, width: Some(100), unicode: true };
    std::fs::write(folder.join("studies-100.txt"), terminal::render_document(&studies(), &style))?;
    Ok(())
}
