//! Files of the repository, cut into identifiers and prose. Rust's own lexer reads C well enough for this: both have the
//! same comments, identifiers and string literals.

use std::path::{Path, PathBuf};

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

use crate::Error;

/// A part of a file that a rule applies to.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    Identifier(&'a str),
    /// A comment, a string literal with a space in it, or a line of a text file.
    Prose(&'a str),
}

/// A part and the line (from 1) on which it begins.
pub type Located<'a> = (usize, Part<'a>);

/// The parts of a file, by its name's ending.
pub fn parts<'a>(path: &str, text: &'a str) -> Vec<Located<'a>> {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("rs" | "c" | "h" | "cpp") => code(text),
        Some("toml") => toml(text),
        _ => text.lines().enumerate().map(|(line, text)| (line + 1, Part::Prose(text))).collect(),
    }
}

fn code(text: &str) -> Vec<Located<'_>> {
    let mut parts = Vec::new();
    let mut at = 0;
    let mut line = 1;
    for token in tokenize(text, FrontmatterAllowed::No) {
        let Some(piece) = text.get(at..at + token.len as usize) else { break };
        match token.kind {
            TokenKind::Ident | TokenKind::RawIdent => parts.push((line, Part::Identifier(piece))),
            TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => prose(&mut parts, line, piece),
            TokenKind::Literal { kind: LiteralKind::Str { .. } | LiteralKind::RawStr { .. }, .. }
                if piece.contains(' ') =>
            {
                prose(&mut parts, line, piece);
            }
            _ => {}
        }
        line += piece.matches('\n').count();
        at += token.len as usize;
    }
    parts
}

fn prose<'a>(parts: &mut Vec<Located<'a>>, first: usize, text: &'a str) {
    parts.extend(text.lines().enumerate().map(|(more, text)| (first + more, Part::Prose(text))));
}

/// Comments, and values with a space in them: a table's or a key's name is part of a format.
fn toml(text: &str) -> Vec<Located<'_>> {
    let value = |line: &str| line.split_once('=').is_none_or(|(_, value)| value.trim().contains(' '));
    text.lines()
        .enumerate()
        .filter(|(_, line)| line.contains('#') || value(line))
        .map(|(line, text)| (line + 1, Part::Prose(text)))
        .collect()
}

/// All files of the repository that people write, in order of their paths; relative to `root`.
///
/// # Errors
/// A folder cannot be read.
pub fn files(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let kept = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !matches!(&*name, "target" | "out" | ".git")
    };
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(kept) {
        let entry = entry.map_err(|e| Error::read(root)(e.into()))?;
        let name = entry.file_name().to_string_lossy();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        if entry.file_type().is_file()
            && (matches!(ending, Some("rs" | "c" | "h" | "cpp" | "md" | "toml")) || name == "Makefile")
            && let Ok(path) = entry.path().strip_prefix(root)
        {
            found.push(path.to_path_buf());
        }
    }
    Ok(found)
}

/// Whether a file is in one of these folders; true when there are none.
pub fn is_within(file: &Path, folders: &[PathBuf]) -> bool {
    folders.is_empty() || folders.iter().any(|folder| file.starts_with(folder))
}

/// The segments of an identifier: `free_bytesNow` has `free`, `bytes`, `now`.
pub fn segments(identifier: &str) -> Vec<String> {
    let mut segments: Vec<String> = Vec::new();
    let mut small_before = false;
    for c in identifier.chars() {
        if c == '_' {
            segments.push(String::new());
        } else {
            if segments.is_empty() || c.is_uppercase() && small_before {
                segments.push(String::new());
            }
            if let Some(last) = segments.last_mut() {
                last.extend(c.to_lowercase());
            }
        }
        small_before = c.is_lowercase() || c.is_ascii_digit();
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_cut_at_underscores_and_capitals() {
        assert_eq!(segments("free_bytes"), ["free", "bytes"]);
        assert_eq!(segments("FreeBytes"), ["free", "bytes"]);
        assert_eq!(segments("FREE_BYTES"), ["free", "bytes"]);
        assert_eq!(segments("_page2Map"), ["page2", "map"]);
        assert_eq!(segments("foretold"), ["foretold"]);
    }

    #[test]
    fn rust_is_cut_into_identifiers_and_prose() {
        let text = "// one\nfn two() { \"three\"; \"four five\"; r#\"six seven\"# } /* eight\nnine */ 'a'";
        assert_eq!(
            parts("x.rs", text),
            [
                (1, Part::Prose("// one")),
                (2, Part::Identifier("fn")),
                (2, Part::Identifier("two")),
                (2, Part::Prose("\"four five\"")),
                (2, Part::Prose("r#\"six seven\"#")),
                (2, Part::Prose("/* eight")),
                (3, Part::Prose("nine */")),
            ]
        );
    }

    #[test]
    fn c_is_cut_like_rust() {
        let text = "#include <a.h>\nint one; /* two */ // three\n";
        let cut = parts("x.c", text);
        assert!(cut.contains(&(2, Part::Identifier("one"))));
        assert!(cut.contains(&(2, Part::Prose("/* two */"))));
        assert!(cut.contains(&(2, Part::Prose("// three"))));
    }

    #[test]
    fn names_of_a_format_are_no_prose() {
        let text = "name = \"told\"\nabout = \"two words\"\n# a comment\n";
        assert_eq!(
            parts("x.toml", text),
            [(2, Part::Prose("about = \"two words\"")), (3, Part::Prose("# a comment"))]
        );
    }

    #[test]
    fn text_files_are_prose_by_line() {
        assert_eq!(parts("x.md", "one\ntwo"), [(1, Part::Prose("one")), (2, Part::Prose("two"))]);
    }
}
