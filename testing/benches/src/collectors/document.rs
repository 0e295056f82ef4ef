//! A section of a Markdown document between two marks, which the next measurement replaces.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::Error;

/// Where to write.
#[derive(Debug, Clone, clap::Args)]
pub struct Outputs {
    /// Markdown document whose generated sections are replaced [default: none; they go to standard output]
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

impl Outputs {
    /// Writes a section; to standard output where no document was named.
    ///
    /// # Errors
    /// The document cannot be read or written.
    pub fn write(&self, section: &str, text: &str) -> Result<(), Error> {
        let Some(path) = &self.markdown else {
            let written = writeln!(std::io::stdout(), "{text}");
            return written.map_err(Error::file("write", Path::new("standard output")));
        };
        let before = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::file("read", path)(error)),
        };
        std::fs::write(path, replaced(&before, section, text)).map_err(Error::file("write", path))
    }
}

/// The document with the section put in, in place of the old one or at the end.
pub fn replaced(document: &str, section: &str, markdown: &str) -> String {
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
