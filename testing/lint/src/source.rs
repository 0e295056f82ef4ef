//! Files of the repository, the identifiers in them, and which items are tests. Rust's own lexer reads C well enough for this.

use std::path::{Path, PathBuf};

use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, tokenize};

use crate::Error;

/// The identifiers of a file, each with its line (from 1); none of a file that is no code, by its name's ending.
pub fn identifiers<'a>(path: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    if !matches!(path.rsplit_once('.'), Some((_, "rs" | "c" | "h" | "cpp"))) {
        return found;
    }
    let (mut at, mut line) = (0, 1);
    for token in tokenize(text, FrontmatterAllowed::No) {
        let Some(piece) = text.get(at..at + token.len as usize) else { break };
        if matches!(token.kind, TokenKind::Ident | TokenKind::RawIdent) {
            found.push((line, piece));
        }
        line += piece.matches('\n').count();
        at += token.len as usize;
    }
    found
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

/// The text of a Rust file, and its syntax tree.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn parsed(root: &Path, file: &Path) -> Result<(String, syn::File), Error> {
    let path = root.join(file);
    let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
    let syntax = syn::parse_file(&text).map_err(|e| Error::Parse { path, message: e.to_string() })?;
    Ok((text, syntax))
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

/// Of the kinds of items that are marked as tests.
pub fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]` or `#[cfg(all(test, ...))]`; what a feature can switch on too is held to the limits.
pub fn is_for_tests_only(attribute: &syn::Attribute) -> bool {
    match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let text = list.tokens.to_string();
            text == "test" || text.starts_with("all (test") || text.starts_with("all(test")
        }
        _ => false,
    }
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
    fn identifiers_of_code_are_found_and_comments_and_strings_are_not() {
        let text = "// one\nfn two() { \"four five\"; r#\"six seven\"# } /* eight\nnine */ 'a'";
        assert_eq!(identifiers("x.rs", text), [(2, "fn"), (2, "two")]);
        assert!(identifiers("x.c", "#include <a.h>\nint one; /* two */").contains(&(2, "one")));
        assert_eq!(identifiers("x.md", "one\ntwo"), []);
    }
}
