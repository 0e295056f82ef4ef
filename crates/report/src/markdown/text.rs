//! Text that is shown in Markdown as it is, whatever characters it has.
//!
//! Characters that have a meaning in CommonMark or in GitHub's flavour of it get a backslash. What GitHub replaces after
//! that (names of users, numbers of issues, emoji) is broken by an empty comment, which shows nothing.

use crate::format::printable;

/// Between two characters: shows nothing, and is no text.
const BREAK: &str = "<!-- -->";

/// Text within a line.
pub(super) fn inline(text: &str) -> String {
    escaped(printable(text).trim())
}

/// Text that begins a line, where more characters have a meaning: of lists, quotes, headings, rules.
pub(super) fn line(text: &str) -> String {
    let text = printable(text);
    let text = text.trim();
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let rest = &text[digits..];
    if digits > 0 && rest.starts_with(['.', ')']) {
        return format!("{}\\{}", &text[..digits], escaped(rest));
    }
    let is_heading = text.starts_with('#') && !text.chars().all(|c| c == '#');
    let lead = if is_heading || text.starts_with(['>', '>', '-', '+', '=']) { "\\" } else { "" };
    format!("{lead}{}", escaped(text))
}

/// Text in a cell of a table, with Markdown of its own.
pub fn marked_cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|").replace('<', "&lt;")
}

/// Names from a program in a cell: as code, which nothing in them ends.
pub(super) fn code_cell(text: &str) -> String {
    let text = printable(text);
    let text = text.trim();
    // A backslash before a bar does not mean the same to all that read tables.
    if text.is_empty() || (text.contains('|') && text.contains('\\')) {
        return escaped(text);
    }
    let fence = "`".repeat(longest_run(text, '`') + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{}{space}{fence}", text.replace('|', "\\|"))
}

/// Text within an HTML element.
pub(super) fn html(text: &str) -> String {
    let text = printable(text);
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Markdown reads what stands within a line of HTML.
            c if c.is_ascii_punctuation() && !matches!(c, ',' | '.' | '(' | ')' | '-' | '/' | '%') => {
                out.push_str(&format!("&#{};", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// The longest run of a character.
pub(super) fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let left = rest.as_str();
        if has_meaning(c, before, left) {
            out.push('\\');
        }
        out.push(c);
        if is_reference(c, before, left) {
            out.push_str(BREAK);
        }
        before = Some(c);
    }
    out
}

/// Whether Markdown would read the character as its own.
fn has_meaning(c: char, before: Option<char>, left: &str) -> bool {
    let next = left.chars().next();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    match c {
        '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '$' => true,
        // Within a word it has none.
        '_' => !(is_word(before) && is_word(next)),
        '<' => next.is_some_and(|c| !c.is_whitespace()),
        '&' => next.is_some_and(|c| c == '#' || c.is_alphanumeric()),
        // At its end they belong to a heading.
        '#' => left.chars().all(|c| c == '#'),
        // An address becomes a link.
        ':' => left.starts_with("//"),
        '.' => before == Some('w') && next.is_some(),
        _ => false,
    }
}

/// Whether GitHub would read a user's name, an issue's number or an emoji from here.
fn is_reference(c: char, before: Option<char>, left: &str) -> bool {
    let next = left.chars().next();
    let is_inside = before.is_some_and(char::is_alphanumeric);
    match c {
        '@' => !is_inside && next.is_some_and(char::is_alphanumeric),
        '#' => !is_inside && next.is_some_and(|c| c.is_ascii_digit()),
        ':' => left.split_once(':').is_some_and(|(name, _)| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-');
            !name.is_empty() && name.chars().all(is_name)
        }),
        _ => false,
    }
}
