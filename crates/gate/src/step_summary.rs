//! The summary of a step on GitHub: Markdown appended to the file that the runner names.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use heaptoll_report::document::Document;
use heaptoll_report::{ReportError, markdown};

/// The variable that names the file.
pub const VARIABLE: &str = "GITHUB_STEP_SUMMARY";
/// GitHub shows no summary of more than 1 MiB; other steps may have written before.
const MOST_BYTES: usize = 512 << 10;

/// Appends a document to the file; of one that is too long as many sections as fit.
///
/// # Errors
/// The file cannot be written.
pub fn append(path: &Path, document: &Document) -> Result<(), ReportError> {
    let text = fitting(document, MOST_BYTES);
    let error = |source| ReportError::file(path, source);
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(error)?;
    // The runner's file may end within a line.
    file.write_all(format!("\n{text}").as_bytes()).map_err(error)
}

fn fitting(document: &Document, most_bytes: usize) -> String {
    let text = markdown::render(document);
    if text.len() <= most_bytes {
        return text;
    }
    let mut shorter = document.clone();
    while shorter.sections.pop().is_some() {
        let note = "The other sections are too long for a summary: write them with --markdown or --html.";
        let mut noted = shorter.clone();
        noted.warnings.push(note.to_owned());
        let text = markdown::render(&noted);
        if text.len() <= most_bytes {
            return text;
        }
    }
    "The summary of this gate is too long: write it with --markdown or --html.\n".to_owned()
}

#[cfg(test)]
mod tests {
    use heaptoll_report::document::Section;

    use super::*;

    fn document() -> Document {
        let section =
            |title: &str, text: String| Section { title: title.into(), text: vec![text], items: vec![] };
        Document {
            title: "Within all limits".into(),
            sections: vec![section("First", "short".into()), section("Second", "long ".repeat(1000))],
            ..Document::default()
        }
    }

    #[test]
    fn a_summary_is_added_to_what_other_steps_wrote() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("summary.md");
        std::fs::write(&path, "before").expect("writes");
        append(&path, &document()).expect("appends");
        let text = std::fs::read_to_string(&path).expect("reads");
        assert!(text.starts_with("before\n## Within all limits"), "{text}");
        let error = append(&folder.path().join("none/summary.md"), &document()).expect_err("no folder");
        assert!(error.to_string().contains("none/summary.md"), "{error}");
    }

    #[test]
    fn a_summary_that_is_too_long_keeps_its_first_sections() {
        let text = fitting(&document(), 2000);
        assert!(text.contains("First") && !text.contains("Second") && text.contains("too long"), "{text}");
        assert!(fitting(&document(), 10).starts_with("The summary of this gate is too long"));
    }
}
