//! Leaks that are known: patterns of functions and objects, a line each. A call stack with a frame that one of them
//! matches is left out of tables and gates; what is left out is summed up.

use std::path::{Path, PathBuf};

use heaptoll_callsites::{WholeFrame, short};
use thiserror::Error;

/// A file of suppressions that cannot be used.
#[derive(Debug, Error)]
pub enum SuppressionsError {
    /// The file cannot be read.
    #[error("cannot read the suppressions {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no pattern.
    #[error(
        "{}, line {line}: `{text}` is not a suppression: write `function PATTERN` or `object PATTERN`, with `*` for \
         any text",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is there.
        text: String,
    },
}

/// What of a frame a pattern is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Function,
    Object,
}

/// Patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suppressions {
    patterns: Vec<(Of, String)>,
}

impl Suppressions {
    /// Reads files.
    ///
    /// # Errors
    /// One cannot be read, or has a line that is no pattern.
    pub fn read<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<Suppressions, SuppressionsError> {
        let mut all = Suppressions::default();
        for path in paths {
            let text = std::fs::read_to_string(path)
                .map_err(|source| SuppressionsError::Read { path: path.clone(), source })?;
            all.add(&text, path)?;
        }
        Ok(all)
    }

    fn add(&mut self, text: &str, path: &Path) -> Result<(), SuppressionsError> {
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let pattern = line.split_once(char::is_whitespace).and_then(|(of, pattern)| match of {
                "function" => Some((Of::Function, pattern.trim().to_owned())),
                "object" => Some((Of::Object, pattern.trim().to_owned())),
                _ => None,
            });
            self.patterns.push(pattern.ok_or_else(|| SuppressionsError::Line {
                path: path.to_owned(),
                line: at + 1,
                text: line.to_owned(),
            })?);
        }
        Ok(())
    }

    /// Whether a call stack is left out.
    pub fn matches(&self, stack: &[WholeFrame]) -> bool {
        let matches = |frame: &WholeFrame| {
            self.patterns.iter().any(|(of, pattern)| match of {
                Of::Function => like(pattern, &frame.function) || like(pattern, &short(&frame.function)),
                Of::Object => {
                    let name = frame.object.rsplit('/').next().unwrap_or_default();
                    like(pattern, &frame.object) || like(pattern, name)
                }
            })
        };
        !self.patterns.is_empty() && stack.iter().any(matches)
    }
}

/// Whether a text is like a pattern, in which `*` stands for any text. The time is bounded by the product of their
/// lengths: only the last star is tried again.
fn like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut in_text, mut star) = (0, 0, None);
    while in_text < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, in_text));
            at += 1;
        } else if pattern.get(at) == Some(&text[in_text]) {
            (at, in_text) = (at + 1, in_text + 1);
        } else if let Some((star_at, from)) = star {
            star = Some((star_at, from + 1));
            (at, in_text) = (star_at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, object: &str) -> WholeFrame {
        WholeFrame { function: function.into(), object: object.into(), ..WholeFrame::default() }
    }

    #[test]
    fn patterns_match_any_frame_by_function_or_object() {
        let mut known = Suppressions::default();
        let text = "# ours\n\nfunction  cache_*_init\nobject *libfoo.so*\nfunction ns::Store::get\n";
        known.add(text, Path::new("s")).expect("patterns");
        for (function, object, is_known) in [
            ("cache_a_init", "/bin/x", true),
            ("cache_init", "/bin/x", false),
            ("f", "/usr/lib/libfoo.so.2", true),
            ("f", "/usr/lib/libfood.so", false),
            ("ns::Store::get(int, char const*)", "", true),
            ("", "", false),
        ] {
            let stack = [frame("malloc", "/lib/libc.so.6"), frame(function, object)];
            assert_eq!(known.matches(&stack), is_known, "{function} {object}");
        }
        assert!(!Suppressions::default().matches(&[frame("f", "")]));
    }

    #[test]
    fn a_line_that_is_no_pattern_is_named() {
        let refused = Suppressions::default().add("function f\nfun f\n", Path::new("my.supp"));
        assert!(refused.is_err_and(|error| error.to_string().contains("my.supp, line 2: `fun f`")));
    }

    #[test]
    fn stars_stand_for_any_text_and_hostile_patterns_end() {
        for (pattern, text, is_like) in [
            ("*", "", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("", "", true),
            ("", "a", false),
            ("**a", "bca", true),
        ] {
            assert_eq!(like(pattern, text), is_like, "{pattern} {text}");
        }
        assert!(!like(&"a*".repeat(500), &"b".repeat(5000)));
        assert!(!like(&format!("{}b", "*a".repeat(500)), &"a".repeat(5000)));
    }
}
