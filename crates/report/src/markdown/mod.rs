//! A [`Document`] as Markdown of GitHub's flavour, for a pull request, an issue or a note: its sentences and tables.
//! Charts need the page; what each would show is named, and the tables have the figures.

mod text;

pub use text::marked_cell;

use crate::document::{Chart, Document, Item, Part, Section, Table, tally};
use crate::format::printable;

/// Tables with more rows are folded: a comment should be read without scrolling.
const LONG: usize = 40;
/// Of a part in a part; there is no deeper one.
const DEEPEST: usize = 6;

/// Renders a document; every block ends with a line end.
pub fn render(document: &Document) -> String {
    let mut out = Blocks::default();
    out.heading(2, &document.title);
    out.paragraph(&document.subtitle);
    out.warnings(&document.warnings);
    for section in &document.sections {
        out.section(section);
    }
    if !document.facts.is_empty() {
        let facts: Vec<String> =
            document.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        out.folded("Facts", |out| out.list(&facts));
    }
    if !document.command.is_empty() {
        out.paragraph("The command that repeats it:");
        out.code(&document.command);
    }
    out.text
}

/// Markdown so far. Blocks are apart by an empty line, so no text can become part of the block before it.
#[derive(Default)]
struct Blocks {
    text: String,
}

impl Blocks {
    fn block(&mut self, lines: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(lines);
        self.text.push('\n');
    }

    fn heading(&mut self, level: usize, title: &str) {
        let title = text::inline(title);
        if !title.is_empty() {
            self.block(&format!("{} {title}", "#".repeat(level)));
        }
    }

    fn paragraph(&mut self, words: &str) {
        let line = text::line(words);
        if !line.is_empty() {
            self.block(&line);
        }
    }

    fn list(&mut self, entries: &[String]) {
        let lines = entries.iter().map(|entry| text::line(entry)).filter(|line| !line.is_empty());
        let lines: Vec<String> = lines.map(|line| format!("- {line}")).collect();
        if !lines.is_empty() {
            self.block(&lines.join("\n"));
        }
    }

    fn warnings(&mut self, warnings: &[String]) {
        let lines = warnings.iter().map(|warning| text::line(warning)).filter(|line| !line.is_empty());
        let lines: Vec<String> = lines.map(|line| format!("> {line}")).collect();
        if !lines.is_empty() {
            self.block(&format!("> [!WARNING]\n{}", lines.join("\n>\n")));
        }
    }

    /// A part that is unfolded on demand. The empty lines have its contents read as Markdown again.
    fn folded(&mut self, summary: &str, contents: impl FnOnce(&mut Blocks)) {
        self.block(&format!("<details>\n<summary>{}</summary>", text::html(summary)));
        contents(self);
        self.block("</details>");
    }

    fn code(&mut self, command: &str) {
        let command = printable(command);
        let fence = "`".repeat(text::longest_run(&command, '`').max(2) + 1);
        self.block(&format!("{fence}sh\n{command}\n{fence}"));
    }

    fn section(&mut self, section: &Section) {
        self.heading(3, &section.title);
        section.text.iter().for_each(|text| self.paragraph(text));
        self.items(&section.items, 4);
    }

    fn items(&mut self, items: &[Item], level: usize) {
        for item in items {
            match item {
                Item::Table(table) => self.table(&table.flat()),
                Item::Tally(shares) => self.paragraph(&tally(shares)),
                Item::Commands(commands) => commands.iter().for_each(|command| self.code(command)),
                Item::Part(part) if part.folded => {
                    self.folded(&part.title, |out| out.contents(part, level));
                }
                Item::Part(part) => {
                    self.heading(level, &part.title);
                    self.contents(part, level);
                }
                Item::Warnings(warnings) => self.warnings(warnings),
                Item::Chart(_) | Item::Flame(_) | Item::Mosaic(_) => {}
            }
        }
        let charts = items.iter().filter_map(|item| match item {
            Item::Chart(chart) => Some(named(chart)),
            Item::Flame(flame) => Some(Some(flame.title.clone())),
            Item::Mosaic(mosaic) => Some(Some(mosaic.title.clone())),
            _ => None,
        });
        let charts: Vec<String> = charts.flatten().collect();
        if !charts.is_empty() {
            self.paragraph(&format!("Charts on the page (--html): {}.", charts.join("; ")));
        }
    }

    fn contents(&mut self, part: &Part, level: usize) {
        part.text.iter().for_each(|text| self.paragraph(text));
        self.items(&part.items, (level + 1).min(DEEPEST));
    }

    fn table(&mut self, table: &Table) {
        if table.rows.len() > LONG {
            let caption = if table.caption.is_empty() { "Table".to_owned() } else { table.caption.clone() };
            let summary = format!("{caption} ({} rows)", table.rows.len());
            self.folded(&summary, |out| out.rows(table));
        } else {
            self.paragraph(&table.caption);
            self.rows(table);
        }
    }

    fn rows(&mut self, table: &Table) {
        let headings = table.columns.iter().map(|column| text::inline(&column.title));
        let rules = table.columns.iter().map(|column| if column.figures { "--:" } else { ":--" }.to_owned());
        let mut lines = vec![row(headings), row(rules)];
        lines.extend(table.rows.iter().map(|cells| {
            row(cells.iter().enumerate().map(|(at, cell)| {
                let is_code = table.columns.get(at).is_some_and(|column| column.lines > 0);
                if is_code { text::code_cell(&cell.text) } else { text::inline(&cell.text) }
            }))
        }));
        if !table.columns.is_empty() {
            self.block(&lines.join("\n"));
        }
        self.list(&table.notes);
    }
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn named(chart: &Chart) -> Option<String> {
    (!chart.title.is_empty()).then(|| chart.title.clone())
}

#[cfg(test)]
mod tests;
