//! Tables, grids and raw rows on a page, written into its text.

use super::palette::Palette;
use crate::document::{Cell, Column, Grid, Link, Ratio, Raw, Table, Tone};
use crate::format::{printable, printable_lines};

/// Printable text that is no markup.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_escaped(&printable(text), &mut out);
    out
}

fn push_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&#38;"),
            '<' => out.push_str("&#60;"),
            '>' => out.push_str("&#62;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// A name, with its mark where it has one.
pub(super) fn push_chip(name: &str, palette: &Palette, out: &mut String) {
    let text = escaped(name);
    *out += &match palette.find(name) {
        Some(mark) => format!(
            "<span class=\"chip\"><svg viewBox=\"-7 -7 14 14\" aria-hidden=\"true\"><path d=\"{}\" \
             style=\"fill:{}\"/></svg><bdi>{text}</bdi></span>",
            mark.path, mark.color
        ),
        None => format!("<bdi>{text}</bdi>"),
    };
}

/// A link to a part of the page.
pub(super) fn push_link(link: &Link, out: &mut String) {
    *out += &format!("<a href=\"#{}\">{}</a> ", escaped(&link.id), escaped(&link.text));
}

fn push_notes(notes: &[String], out: &mut String) {
    if notes.is_empty() {
        return;
    }
    *out += "<ul class=\"notes\">";
    notes.iter().for_each(|note| *out += &format!("<li>{}</li>", escaped(note)));
    *out += "</ul>\n";
}

fn push_head(caption: &str, columns: &[Column], palette: &Palette, out: &mut String) {
    if !caption.is_empty() {
        *out += &format!("<caption>{}</caption>\n", escaped(caption));
    }
    if columns.iter().all(|column| column.title.is_empty()) {
        return;
    }
    *out += "<thead><tr>";
    for column in columns {
        *out += if column.figures { "<th class=\"num\">" } else { "<th>" };
        push_chip(&column.title, palette, out);
        *out += "</th>";
    }
    *out += "</tr></thead>\n";
}

/// A table of texts.
pub(super) fn push_table(table: &Table, out: &mut String) {
    *out += "<div class=\"scroll\"><table>\n";
    push_head(&table.caption, &table.columns, &Palette::default(), out);
    *out += "<tbody>";
    for row in &table.rows {
        *out += "<tr>";
        for (at, cell) in row.iter().enumerate() {
            let class = if is_figure(&table.columns, at) { " class=\"num\"" } else { "" };
            let cell = escaped(cell);
            *out += &match at {
                0 => format!("<th scope=\"row\"{class}>{cell}</th>"),
                _ => format!("<td{class}>{cell}</td>"),
            };
        }
        *out += "</tr>\n";
    }
    *out += "</tbody></table></div>\n";
    push_notes(&table.notes, out);
}

fn is_figure(columns: &[Column], at: usize) -> bool {
    columns.get(at).is_some_and(|column| column.figures)
}

/// A table whose cells have parts; one without a row is its notes.
pub(super) fn push_grid(grid: &Grid, palette: &Palette, out: &mut String) {
    if !grid.rows.is_empty() {
        *out += "<div class=\"scroll\"><table>\n";
        push_head(&grid.caption, &grid.columns, palette, out);
        *out += "<tbody>";
        for row in &grid.rows {
            let is_baseline = row.first().is_some_and(|cell| cell.tone == Tone::Strong);
            *out += if is_baseline { "<tr class=\"baseline\">" } else { "<tr>" };
            for (at, cell) in row.iter().enumerate() {
                push_cell(cell, at == 0, grid.columns.get(at), palette, out);
            }
            *out += "</tr>\n";
        }
        *out += "</tbody></table></div>\n";
    }
    push_notes(&grid.notes, out);
}

fn push_cell(cell: &Cell, is_name: bool, column: Option<&Column>, palette: &Palette, out: &mut String) {
    let is_figure = column.is_some_and(|column| column.figures);
    let is_code = column.is_some_and(|column| column.code);
    let mut class = class(cell.tone).to_owned();
    if is_figure {
        class += " num";
    }
    let tag = if is_name { "th" } else { "td" };
    *out += &format!("<{tag}{} class=\"{}\">", if is_name { " scope=\"row\"" } else { "" }, class.trim());
    // A text with a link of no other text is itself the link.
    let link = cell.links.iter().find(|link| link.text.is_empty());
    if let Some(link) = link {
        *out += &format!("<a href=\"#{}\">", escaped(&link.id));
    }
    match (is_code, is_name) {
        (true, _) => {
            *out += "<pre>";
            push_escaped(&printable_lines(&cell.text), out);
            *out += "</pre>";
        }
        (false, true) => push_chip(&cell.text, palette, out),
        (false, false) if cell.range.is_empty() => *out += &escaped(&cell.text),
        (false, false) => push_ratio(&cell.text, &cell.range, out),
    }
    *out += if link.is_some() { "</a>" } else { "" };
    push_rest(cell, out);
    *out += &format!("</{tag}>");
}

/// What a cell has besides its text.
fn push_rest(cell: &Cell, out: &mut String) {
    if let Some(Ratio { text, range, tone }) = &cell.ratio {
        *out += &format!(" <span class=\"over {}\">", class(*tone));
        push_ratio(text, range, out);
        *out += "</span>";
    }
    if !cell.published.is_empty() {
        *out += &format!(" <span class=\"paper\">{}</span>", escaped(&cell.published));
    }
    if !cell.missing.is_empty() {
        *out += &format!(" <span class=\"absent\">{}</span>", escaped(&cell.missing));
    }
    if !cell.tag.is_empty() {
        *out += &format!("<span class=\"tag\">{}</span>", escaped(&cell.tag));
    }
    for mark in &cell.marks {
        *out += &format!("<span class=\"mark\">{}</span>", escaped(mark));
    }
    cell.links.iter().filter(|link| !link.text.is_empty()).for_each(|link| push_link(link, out));
}

fn push_ratio(text: &str, range: &str, out: &mut String) {
    *out += &format!("<span class=\"ratio\">{}</span>", escaped(text));
    if !range.is_empty() {
        *out += &format!(" <span class=\"range\">{}</span>", escaped(range));
    }
}

/// A class of the style sheet.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Less => "less",
        Tone::More => "more",
        Tone::Dim => "same",
        Tone::Same | Tone::Strong => "",
    }
}

/// Raw rows, folded.
pub(super) fn push_raw(raw: &Raw, out: &mut String) {
    *out += &format!("<details><summary>{}</summary>\n", escaped(&raw.title));
    *out += "<div class=\"scroll tall\"><table class=\"small\">\n";
    push_head("", &raw.columns, &Palette::default(), out);
    *out += "<tbody>";
    for row in raw.rows() {
        *out += "<tr>";
        for (at, cell) in row.enumerate() {
            *out += if is_figure(&raw.columns, at) { "<td class=\"num\">" } else { "<td>" };
            push_escaped(cell, out);
        }
        *out += "\n";
    }
    *out += "</tbody></table></div></details>\n";
}
