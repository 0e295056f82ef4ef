//! Long names on few lines: call sites would fill a screen with one row.

use super::style::Style;
use crate::document::Table;
use crate::format::printable;

/// Characters of a name where no width is to be kept to, as in a file or a pipe: there it is one line.
const UNBOUNDED: usize = 100;
/// Characters that a name gets on the narrowest terminal.
const LEAST: usize = 24;

/// How many characters wide and how many lines high the cells of a column may be; none where both are free.
pub(super) fn limits(table: &Table, at: usize, style: &Style) -> Option<(usize, usize)> {
    let column = table.columns.get(at).filter(|column| column.lines > 0)?;
    let Some(width) = style.width else { return Some((UNBOUNDED, 1)) };
    Some((usize::from(width).saturating_sub(taken(table, at) + 2).max(LEAST), column.lines))
}

/// Whether the figures of a row leave a long name no space on the terminal.
pub(super) fn is_too_narrow(table: &Table, style: &Style) -> bool {
    let is_short_of = |width: u16| {
        let mut long = table.columns.iter().enumerate().filter(|(_, column)| column.lines > 0);
        long.any(|(at, _)| usize::from(width) < taken(table, at) + 2 + LEAST)
    };
    style.width.is_some_and(is_short_of)
}

/// Characters that the other columns need, with two spaces between columns.
fn taken(table: &Table, at: usize) -> usize {
    let others = (0..table.columns.len()).filter(|other| *other != at);
    others.map(|other| 2 + narrowest(table, other)).sum()
}

/// A heading, on several lines where it would take width from a column that is short of it.
pub(super) fn heading(table: &Table, at: usize, style: &Style) -> String {
    let title = table.columns.get(at).map_or("", |column| &column.title);
    let has_multiline_neighbour =
        table.columns.iter().enumerate().any(|(other, column)| other != at && column.lines > 0);
    if style.width.is_none() || !has_multiline_neighbour {
        return title.to_owned();
    }
    fit(title, (narrowest(table, at).max(1), title.len()))
}

/// Characters that a column needs: its widest cell, or the longest word of its heading.
fn narrowest(table: &Table, at: usize) -> usize {
    let title = table.columns.get(at).map_or("", |column| &column.title);
    let cells = table.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.as_str());
    cells.chain(title.split(' ')).map(|text| text.chars().count()).max().unwrap_or(0)
}

/// A text within limits: broken between frames or words where that is possible, with `…` for what is cut off.
pub(super) fn fit(text: &str, (width, lines): (usize, usize)) -> String {
    let mut left: Vec<char> = printable(text).chars().collect();
    let mut out: Vec<String> = Vec::new();
    while !left.is_empty() {
        if left.len() <= width {
            out.push(left.drain(..).collect());
        } else if out.len() + 1 == lines {
            out.push(left.drain(..).take(width.saturating_sub(1)).chain(['…']).collect());
        } else {
            let end = break_before(&left, width);
            out.push(left.drain(..end).collect::<String>().trim_end().to_owned());
            let blanks = left.iter().take_while(|c| **c == ' ').count();
            left.drain(..blanks);
        }
    }
    out.join("\n")
}

/// Where a line that is too long ends: before a frame, after a word, or where it is full.
fn break_before(text: &[char], width: usize) -> usize {
    let half = (width / 2).max(1);
    let frame = (half..=width).rev().find(|&at| text[at..].starts_with(&['<', ' ']) && text[at - 1] == ' ');
    frame
        .or_else(|| (1..=width).rev().find(|&at| text[at] == ' ' || text[at - 1] == ' '))
        .unwrap_or(width)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_takes_its_lines_and_no_more() {
        let name = "insert (tree.cc:12, x3) < read_all < main";
        assert_eq!(fit(name, (60, 2)), name);
        assert_eq!(fit(name, (30, 2)), "insert (tree.cc:12, x3)\n< read_all < main");
        assert_eq!(fit(name, (30, 1)), "insert (tree.cc:12, x3) < rea…");
        assert_eq!(fit("abcdefghij", (4, 2)), "abcd\nefg…");
        assert_eq!(fit("", (4, 2)), "");
        for width in 1..50 {
            let fitted = fit(name, (width, 2));
            assert!(fitted.lines().count() <= 2 && fitted.lines().all(|line| line.chars().count() <= width));
        }
    }

    #[test]
    fn figures_leave_a_name_what_the_terminal_has() {
        let table = Table::of(["x"]).sites("site", |name| *name);
        let table = table.figure("bytes at the peak", |_| "1.00 MiB").figure("n", |_| "7").table();
        let style = |width| Style { color: false, width, unicode: true };
        assert_eq!(limits(&table, 0, &style(Some(100))), Some((100 - 10 - 3 - 2, 2)));
        assert_eq!(limits(&table, 0, &style(None)), Some((UNBOUNDED, 1)));
        assert_eq!(limits(&table, 0, &style(Some(20))), Some((LEAST, 2)));
        assert_eq!(
            [None, Some(100), Some(38)].map(|width| is_too_narrow(&table, &style(width))),
            [false, false, true]
        );
        assert_eq!(limits(&table, 1, &style(Some(100))), None);
        assert_eq!(heading(&table, 1, &style(Some(100))), "bytes at\nthe peak");
        assert_eq!(heading(&table, 1, &style(None)), "bytes at the peak");
        assert_eq!(heading(&table, 0, &style(Some(100))), "site");
    }
}
