//! The functions that a file defines, also those that no other object can bind to.

use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::error::ElfError;
use crate::file;

/// The names of all functions that a file defines, without versions, in its order; a name may come twice. Of a stripped
/// file they are those that it exports.
///
/// # Errors
/// [`ElfError`].
pub fn defined_names(path: &Path) -> Result<Vec<String>, ElfError> {
    let cache = file::open(path)?;
    let file = file::parse(&cache)?;
    let functions = file
        .dynamic_symbols()
        .chain(file.symbols())
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    let names = functions.filter_map(|symbol| Some(symbol.name().ok()?.split('@').next()?.to_owned()));
    Ok(names.collect())
}
