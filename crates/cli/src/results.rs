//! Which command wrote a file of JSON, among those whose results are facts.

use heaptoll_command::failure::Failure;
use heaptoll_compare::comparative::Comparable;
use heaptoll_compare::diff::JsonFile;
use heaptoll_experiment::extension::require;

use crate::laboratory;

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
