//! Placeholders in the strings of an entry: `{share}`, `{bin}`, `{added}`, `{tmp}`, `{input:NAME}` and `{PARAMETER}`.
//!
//! A template is split once, so that an entry with a misspelt placeholder is refused when it is loaded and not in the
//! middle of an experiment. `{{` and `}}` stand for single braces.

use std::fmt;

use crate::scratch_word::escape;

/// One piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text that stays as it is.
    Literal(String),
    /// `{share}`: the folder of the entry, where its scripts are.
    Share,
    /// `{bin}`: the folder of the bundled binaries.
    Bin,
    /// `{added}`: the folder of the programs that the user has added.
    Added,
    /// `{tmp}`: a scratch folder, fresh for every invocation.
    Tmp,
    /// `{input:NAME}`: the path of a generated input.
    Input(String),
    /// `{NAME}`: a parameter of the size.
    Parameter(String),
}

/// A string with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// Splits `text`. The error states what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if after.starts_with(brace) {
                literal.push_str(brace);
                rest = &after[1..];
                continue;
            }
            if brace == "}" {
                return Err(format!("`}}` without `{{` in `{text}`"));
            }
            let end = after.find('}').ok_or_else(|| format!("`{{` without `}}` in `{text}`"))?;
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Self::piece(&after[..end], text)?);
            rest = &after[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Template { pieces })
    }

    fn piece(name: &str, text: &str) -> Result<Piece, String> {
        let plain = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        match name {
            "share" => Ok(Piece::Share),
            "bin" => Ok(Piece::Bin),
            "added" => Ok(Piece::Added),
            "tmp" => Ok(Piece::Tmp),
            _ => match name.strip_prefix("input:") {
                Some(input) if plain(input) => Ok(Piece::Input(input.to_owned())),
                None if plain(name) => Ok(Piece::Parameter(name.to_owned())),
                _ => Err(format!("`{{{name}}}` in `{text}` is not a placeholder")),
            },
        }
    }

    /// The pieces in order.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Puts the pieces together, each replaced by what `resolve` returns. The result is still to be filled by
    /// [`fill_scratch`](crate::fill_scratch), which puts a folder where `{tmp}` stood in the template and nowhere else.
    pub(crate) fn render<E>(
        &self,
        mut resolve: impl FnMut(&Piece) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(&escape(text)),
                Piece::Tmp => out.push_str(&resolve(piece)?),
                other => out.push_str(&escape(&resolve(other)?)),
            }
        }
        Ok(out)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}"))?,
                Piece::Share => f.write_str("{share}")?,
                Piece::Bin => f.write_str("{bin}")?,
                Piece::Added => f.write_str("{added}")?,
                Piece::Tmp => f.write_str("{tmp}")?,
                Piece::Input(name) => write!(f, "{{input:{name}}}")?,
                Piece::Parameter(name) => write!(f, "{{{name}}}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_placeholder_is_found() {
        let template = Template::parse("-f{share}/a.awk {bin} {tmp}/s {input:log.txt} n={lines}").unwrap();
        let found: Vec<_> =
            template.pieces().iter().filter(|p| !matches!(p, Piece::Literal(_))).cloned().collect();
        assert_eq!(
            found,
            [
                Piece::Share,
                Piece::Bin,
                Piece::Tmp,
                Piece::Input("log.txt".into()),
                Piece::Parameter("lines".into())
            ]
        );
    }

    #[test]
    fn broken_placeholders_are_refused() {
        for text in ["{", "a}b", "{}", "{input:}", "{a b}", "{input:a/b}", "{output:x}", "x{{{"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_with_doubled_braces_renders_as_itself(text in "[ -~]{0,40}") {
            let doubled = text.replace('{', "{{").replace('}', "}}");
            let template = Template::parse(&doubled).unwrap();
            let rendered = template.render(|piece| Err(format!("{piece:?}"))).unwrap();
            prop_assert_eq!(rendered, text);
        }

        #[test]
        fn a_template_prints_as_something_that_parses_to_itself(text in "([a-z{}/ ]|\\{share\\}|\\{input:[a-z]{1,3}\\}|\\{[a-z]{1,5}\\}){0,12}") {
            if let Ok(template) = Template::parse(&text) {
                prop_assert_eq!(Template::parse(&template.to_string()).unwrap(), template);
            }
        }

        #[test]
        fn parsing_never_panics(text in "\\PC{0,60}") {
            let _ = Template::parse(&text);
        }
    }
}
