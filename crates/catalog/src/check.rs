//! The checks of an entry's fields: an entry that makes no sense is refused when it is loaded, with its file, the field
//! and what to write instead.

use std::path::Path;

use regex_lite::Regex;

use crate::CatalogError;
use crate::placeholder::Template;

/// The checks of an entry's fields, with what an error needs to name the place.
pub(crate) struct Check<'a> {
    pub(crate) file: &'a Path,
    pub(crate) variant: Option<&'a String>,
}

impl Check<'_> {
    pub(crate) fn error(
        &self,
        field: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> CatalogError {
        let field = match self.variant {
            Some(variant) => format!("{field}` of variant `{variant}"),
            None => field.to_owned(),
        };
        CatalogError::field(self.file, field, problem, remedy)
    }

    pub(crate) fn name(&self, name: &str, field: &str) -> Result<(), CatalogError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain) {
            return Ok(());
        }
        Err(self.error(
            field,
            format!("`{name}` is not a name"),
            "use lower-case letters, digits, `-`, `_` and `.`",
        ))
    }

    pub(crate) fn template(&self, text: &str, field: &str) -> Result<Template, CatalogError> {
        Template::parse(text).map_err(|problem| {
            let remedy =
                "the placeholders are {share}, {bin}, {added}, {tmp}, {input:NAME} and {PARAMETER}; write {{ and }} \
                 for plain braces";
            self.error(field, problem, remedy)
        })
    }

    pub(crate) fn templates(&self, texts: &[String], field: &str) -> Result<Vec<Template>, CatalogError> {
        texts.iter().map(|text| self.template(text, field)).collect()
    }

    pub(crate) fn command(&self, texts: &[String], field: &str) -> Result<Vec<Template>, CatalogError> {
        if texts.first().is_none_or(|program| program.is_empty()) {
            return Err(self.error(field, "the command is empty", "give the program, then its arguments"));
        }
        self.templates(texts, field)
    }

    pub(crate) fn pattern(&self, pattern: &str, field: &str, named: bool) -> Result<(), CatalogError> {
        let regex = Regex::new(pattern)
            .map_err(|error| self.error(field, error.to_string(), "correct the regular expression"))?;
        if named && regex.capture_names().flatten().next().is_none() {
            return Err(self.error(
                field,
                "the pattern names no group",
                "write (?<name>...) around each figure",
            ));
        }
        Ok(())
    }

    pub(crate) fn digest(&self, digest: &str, field: &str) -> Result<(), CatalogError> {
        if digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Ok(());
        }
        Err(self.error(
            field,
            format!("`{digest}` is not a SHA-256 digest"),
            "give 64 lower-case hexadecimal digits, as sha256sum does",
        ))
    }

    /// The name of a signal, without `SIG`.
    pub(crate) fn signal(&self, signal: &str, field: &str) -> Result<(), CatalogError> {
        const KNOWN: [&str; 5] = ["TERM", "INT", "QUIT", "HUP", "USR1"];
        if KNOWN.contains(&signal) {
            return Ok(());
        }
        Err(self.error(
            field,
            format!("`{signal}` is not a signal that stops a server"),
            format!("give one of {}", KNOWN.join(", ")),
        ))
    }
}
