//! `{tmp}` in the words of a program of the catalog's, or of a server: the scratch folder of one run.
//!
//! A user's own command is never filled: braces in it are the program's.

/// The word that stands for the scratch folder.
pub(crate) const TMP: &str = "{tmp}";
/// The word that stands for the text [`TMP`] itself.
const ESCAPED: &str = "{{tmp}}";

/// `text` with `{tmp}` replaced by `folder`, and `{{tmp}}` by `{tmp}`. All other braces stay as they are.
pub fn fill_scratch(text: &str, folder: &str) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        let (taken, put) = if rest.starts_with(ESCAPED) {
            (ESCAPED, TMP)
        } else if rest.starts_with(TMP) {
            (TMP, folder)
        } else {
            ("{", "{")
        };
        filled.push_str(put);
        rest = &rest[taken.len()..];
    }
    filled.push_str(rest);
    filled
}

/// `text` written so that [`fill_scratch`] gives it back as it is.
pub(crate) fn escape(text: &str) -> String {
    text.replace(TMP, ESCAPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_replaces_its_placeholder_and_no_other_brace_is_touched() {
        let cases = [
            ("-s {tmp}/s", "-s /x/s"),
            ("{tmp}{tmp}", "/x/x"),
            ("{{tmp}}", "{tmp}"),
            ("a{{tmp}}b{tmp}c", "a{tmp}b/xc"),
            ("{{{tmp}}}", "{{tmp}}"),
            ("${HOME} {} {tmp {tm}", "${HOME} {} {tmp {tm}"),
            ("{", "{"),
        ];
        for (text, filled) in cases {
            assert_eq!(fill_scratch(text, "/x"), filled, "{text}");
        }
    }

    #[test]
    fn what_is_escaped_comes_back() {
        for text in ["{tmp}", "a {tmp} {{tmp}} {", "{}"] {
            assert_eq!(fill_scratch(&escape(text), "/x"), text);
        }
    }

    #[test]
    fn a_folder_whose_own_name_has_braces_is_not_filled_again() {
        assert_eq!(fill_scratch("{tmp}/s", "/a/{tmp}"), "/a/{tmp}/s");
    }
}
