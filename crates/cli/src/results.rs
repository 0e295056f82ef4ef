//! Files of JSON whose results are facts: which command wrote one, and how it is shown.

use std::path::Path;

use heaptoll_command::failure::Failure;
use heaptoll_compare::comparative::Comparable;
use heaptoll_compare::diff::JsonFile;
use heaptoll_compare::result;
use heaptoll_experiment::extension::require;
use heaptoll_report::flat_table::FlatTable;
use heaptoll_report::format::and_list;
use heaptoll_report::terminal::render_document;

use crate::outputs::Outputs;
use crate::{exit, laboratory, terminal};

/// The command; none where it is another. What only the laboratory reads is handed over to it.
///
/// # Errors
/// It is the laboratory's, and there is none.
pub fn writer_of<'a>(file: &JsonFile, known: &'a [Comparable]) -> Result<Option<&'a Comparable>, Failure> {
    let schema = file.schema();
    let command = known.iter().find(|known| known.schema == schema);
    if command.is_none() && laboratory::has_written(&schema) {
        require(&format!("{}, whose schema is {schema},", file.name()))?;
    }
    Ok(command)
}

/// Shows the facts of a command's JSON.
///
/// # Errors
/// It cannot be read, or is of none of these commands.
pub fn show(path: &Path, outputs: &Outputs, known: &[Comparable]) -> Result<u8, Failure> {
    let file = JsonFile::read(path)?;
    let Some(command) = writer_of(&file, known)? else {
        let all: Vec<String> = known.iter().map(|command| command.name.to_owned()).collect();
        return Err(Failure::Usage(format!(
            "{} is JSON of no command whose figures are shown here: take a file of --json of {}",
            path.display(),
            and_list(&all)
        )));
    };
    let facts = file.facts(command)?;
    let document = result::document(&facts, command, &file.name());
    let printed = terminal::print(&render_document(&document, &terminal::style()));
    let pages = outputs.pages.write(&document);
    let rows = outputs.write_rows(|| FlatTable::of_facts(command.name, &facts));
    printed?;
    Ok(if pages && rows { 0 } else { exit::TROUBLE })
}
