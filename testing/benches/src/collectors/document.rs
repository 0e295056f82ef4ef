//! The outputs of the figures: a section of a Markdown document between two marks, which the next measurement replaces,
//! and a JSON file.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Error;

/// Where to write.
#[derive(Debug, Clone, clap::Args)]
pub struct Outputs {
    /// Markdown document whose generated section is replaced [default: none; the section goes to standard output]
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// JSON file for the figures
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl Outputs {
    /// Writes a section and its figures; the section to standard output where no document was named.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn write(&self, section: &str, markdown: &str, figures: &impl Serialize) -> Result<(), Error> {
        self.keep(section, markdown, figures)?;
        if self.markdown.is_some() {
            return Ok(());
        }
        let written = writeln!(std::io::stdout(), "{markdown}");
        written.map_err(Error::file("write", Path::new("standard output")))
    }

    /// As [`Outputs::write`], but only into files: what there is so far.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn keep(&self, section: &str, markdown: &str, figures: &impl Serialize) -> Result<(), Error> {
        if let Some(path) = &self.json {
            let text = serde_json::to_string_pretty(figures)?;
            make_folder(path)?;
            std::fs::write(path, text + "\n").map_err(Error::file("write", path))?;
        }
        let Some(path) = &self.markdown else { return Ok(()) };
        let before = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::file("read", path)(error)),
        };
        std::fs::write(path, replaced(&before, section, markdown)).map_err(Error::file("write", path))
    }
}

/// Makes the folder that a file is to be in.
///
/// # Errors
/// The system's reason.
pub fn make_folder(path: &Path) -> Result<(), Error> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => std::fs::create_dir_all(folder).map_err(Error::file("make", folder)),
        None => Ok(()),
    }
}

/// The document with the section put in, in place of the old one or at the end.
fn replaced(document: &str, section: &str, markdown: &str) -> String {
    let (begin, end) =
        (format!("<!-- generated: {section} -->"), format!("<!-- end of generated: {section} -->"));
    let new = format!("{begin}\n{}\n{end}", markdown.trim_end());
    match (document.find(&begin), document.find(&end)) {
        (Some(from), Some(to)) if from < to => {
            format!("{}{new}{}", &document[..from], &document[to + end.len()..])
        }
        _ if document.is_empty() => new + "\n",
        _ => format!("{}\n\n{new}\n", document.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_put_in_once_and_then_replaced() {
        let first = replaced("# Title\n\nWords.\n", "table", "old");
        assert!(first.starts_with("# Title\n\nWords.\n\n<!-- generated: table -->\nold\n"));
        let second = replaced(&(first + "\nMore words.\n"), "table", "new\n");
        assert!(second.contains("\nnew\n") && !second.contains("old"));
        assert!(second.ends_with("<!-- end of generated: table -->\n\nMore words.\n"), "{second}");
        assert_eq!(replaced(&second, "table", "new\n"), second);
    }
}
