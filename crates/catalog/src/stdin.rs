//! What is connected to a program's standard input.

use crate::CatalogError;
use crate::check::Check;
use crate::entry::Entry;
use crate::placeholder::Template;

/// Where standard input comes from.
#[derive(Debug, Clone)]
pub(crate) enum Stdin {
    /// A generated input, by its name.
    Input(String),
    /// A file that is there: one of a program that was added, or next to the entry.
    File(Template),
}

impl Stdin {
    /// The entry's: the name of an input, or a path, which has a placeholder.
    ///
    /// # Errors
    /// A placeholder that there is not.
    pub(crate) fn of(check: &Check<'_>, entry: &Entry) -> Result<Option<Stdin>, CatalogError> {
        let of = |text: &String| match text.contains('{') {
            true => check.template(text, "stdin").map(Stdin::File),
            false => Ok(Stdin::Input(text.clone())),
        };
        entry.stdin.as_ref().map(of).transpose()
    }

    /// The path, where it is no input.
    pub(crate) fn file(&self) -> Option<&Template> {
        match self {
            Stdin::File(path) => Some(path),
            Stdin::Input(_) => None,
        }
    }
}
