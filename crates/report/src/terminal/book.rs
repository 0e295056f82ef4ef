//! A [`Book`] in the terminal: the verdicts, then each paper's tables. Charts are for the page; their tables are here.

use super::style::{Style, Tone, right};
use crate::book::{Answer, Book, Claim, Exhibit, Pair, Pairs, PaperSection, Standing};

/// Tables with more columns of values than this are set with a row a value: no terminal is as wide.
const ACROSS: usize = 2;

/// Everything: verdicts first, then the papers' sections.
pub fn render_book(book: &Book, style: &Style) -> String {
    let mut out = render_verdicts(book, style);
    for paper in &book.papers {
        out.push('\n');
        out += &render_paper(paper, style);
    }
    out
}

/// The front: what this is, and whether each claim holds.
pub fn render_verdicts(book: &Book, style: &Style) -> String {
    let mut out = style.paragraph("", &book.title, Tone::Bold);
    if !book.dateline.is_empty() {
        out += &style.paragraph("", &book.dateline.join(" · "), Tone::Dim);
    }
    for warning in &book.warnings {
        out += &style.paragraph("!", warning, Tone::Bad);
    }
    for paper in book.papers.iter().filter(|paper| !paper.claims.is_empty()) {
        out.push('\n');
        out += &style.paragraph("", &paper.title, Tone::Bold);
        let mut table = style.table(&["Today", "The claim", "What decided"]);
        for claim in &paper.claims {
            table.add_row([
                style.cell(claim.answer.label(), tone(claim)),
                style.cell(&claim.words, Tone::Plain),
                style.cell(&claim.reason, Tone::Dim),
            ]);
        }
        style.pad(&mut table);
        out += &style.lines(&table);
    }
    out.push('\n');
    out + &style.paragraph("", &tally(book), Tone::Bold)
}

/// Green where the answer agrees with the paper, red where it contradicts it.
fn tone(claim: &Claim) -> Tone {
    match claim.standing() {
        Standing::BorneOut => Tone::Good,
        Standing::Contradicted => Tone::Bad,
        Standing::Undecided | Standing::NotMeasured => Tone::Dim,
    }
}

/// `38 claims: 20 hold, 6 fail, ...`.
fn tally(book: &Book) -> String {
    let claims: Vec<&Claim> = book.papers.iter().flat_map(|paper| &paper.claims).collect();
    let count = |answer: Answer| claims.iter().filter(|claim| claim.answer == answer).count();
    let parts = [Answer::Holds, Answer::Fails, Answer::Undecided, Answer::NotMeasured]
        .into_iter()
        .filter(|answer| count(*answer) > 0)
        .map(|answer| match (answer, count(answer)) {
            (Answer::Holds, many) if many > 1 => format!("{many} hold"),
            (Answer::Fails, many) if many > 1 => format!("{many} fail"),
            (answer, many) => format!("{many} {}", answer.label()),
        });
    let parts: Vec<String> = parts.collect();
    let whole = if claims.len() == 1 { "1 claim".into() } else { format!("{} claims", claims.len()) };
    if parts.is_empty() { whole } else { format!("{whole}: {}", parts.join(", ")) }
}

fn render_paper(paper: &PaperSection, style: &Style) -> String {
    let mut out = style.paragraph("", &paper.title, Tone::Bold);
    out += &style.paragraph("", &paper.source, Tone::Dim);
    for text in &paper.about {
        out += &style.paragraph("", text, Tone::Plain);
    }
    for exhibit in &paper.exhibits {
        out.push('\n');
        out += &render_exhibit(exhibit, style);
    }
    out
}

fn render_exhibit(exhibit: &Exhibit, style: &Style) -> String {
    let mut out = style.paragraph("", &exhibit.title, Tone::Bold);
    for text in &exhibit.text {
        out += &style.paragraph("", text, Tone::Plain);
    }
    out += &render_pairs(&exhibit.table, style);
    for note in &exhibit.notes {
        out += &style.paragraph("-", note, Tone::Dim);
    }
    out
}

fn render_pairs(table: &Pairs, style: &Style) -> String {
    if table.rows.is_empty() {
        return style.paragraph("-", "Nothing was measured for this.", Tone::Dim);
    }
    let baseline = format!("Ratio to {}", table.baseline);
    let cells = || table.rows.iter().flat_map(|(_, cells)| cells);
    let parts = Parts {
        paper: cells().any(|cell| !cell.paper.is_empty()),
        ratio: cells().any(|cell| cell.ratio.is_some()),
    };
    let columns = table.columns.len().saturating_sub(1);
    let corner = table.columns.first().map_or("", String::as_str);
    let mut headings = vec![corner.to_owned()];
    if columns > ACROSS {
        headings.push(String::new());
        headings.extend(parts.paper.then(|| "Paper".into()));
        headings.push("Today".into());
        headings.extend(parts.ratio.then(|| baseline.clone()));
    } else {
        for heading in table.columns.iter().skip(1) {
            let of =
                |what: &str| if heading.is_empty() { what.to_owned() } else { format!("{heading}: {what}") };
            headings.extend(parts.paper.then(|| of("paper")));
            headings.push(of("today"));
            headings.extend(parts.ratio.then(|| baseline.clone()));
        }
    }
    let mut drawn = style.table(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    let mut reasons: Vec<String> = Vec::new();
    for (name, cells) in &table.rows {
        if columns <= ACROSS {
            let row = cells.iter().flat_map(|cell| values(cell, parts, &mut reasons)).collect::<Vec<_>>();
            drawn.add_row(std::iter::once(name).chain(&row).map(|text| style.cell(text, Tone::Plain)));
            continue;
        }
        let shown = cells.iter().enumerate().filter(|(_, cell)| **cell != Pair::default());
        for (place, (at, cell)) in shown.enumerate() {
            let name = if place == 0 { name.clone() } else { String::new() };
            let row = [name, table.columns.get(at + 1).cloned().unwrap_or_default()];
            let row = row.into_iter().chain(values(cell, parts, &mut reasons));
            drawn.add_row(row.map(|text| style.cell(&text, Tone::Plain)));
        }
    }
    style.pad(&mut drawn);
    let names = if columns > ACROSS { 2 } else { 1 };
    right(&mut drawn, &(names..headings.len()).collect::<Vec<_>>());
    let mut out = style.lines(&drawn);
    for (at, reason) in reasons.iter().enumerate() {
        out += &style.paragraph(&format!("[{}]", at + 1), reason, Tone::Dim);
    }
    out
}

/// What the cells of a table have in addition to our value.
#[derive(Clone, Copy)]
struct Parts {
    /// A published value.
    paper: bool,
    /// A ratio.
    ratio: bool,
}

/// The published value, ours with its interval, and the ratio; a number in brackets leads to why there is none of ours.
fn values(cell: &Pair, parts: Parts, reasons: &mut Vec<String>) -> Vec<String> {
    let with =
        |text: &str, range: &str| if range.is_empty() { text.to_owned() } else { format!("{text} {range}") };
    let ours = if !cell.ours.is_empty() {
        with(&cell.ours, &cell.range)
    } else if cell.missing.is_empty() {
        crate::format::NONE.to_owned()
    } else {
        let at = reasons.iter().position(|known| *known == cell.missing).unwrap_or_else(|| {
            reasons.push(cell.missing.clone());
            reasons.len() - 1
        });
        format!("{} [{}]", crate::format::NONE, at + 1)
    };
    let ratio = cell.ratio.as_ref().map_or_else(String::new, |ratio| with(&ratio.text, &ratio.range));
    let mut values: Vec<String> = parts.paper.then(|| cell.paper.clone()).into_iter().collect();
    values.push(ours);
    values.extend(parts.ratio.then_some(ratio));
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::book;

    fn plain(width: Option<u16>) -> Style {
        Style { color: false, width, unicode: true }
    }

    #[test]
    fn where_nothing_is_published_there_is_no_column_of_it() {
        let mut book = book();
        assert!(render_book(&book, &plain(None)).contains("paper"));
        let exhibits = book.papers.iter_mut().flat_map(|paper| &mut paper.exhibits);
        for (_, cells) in exhibits.flat_map(|exhibit| &mut exhibit.table.rows) {
            cells.iter_mut().for_each(|cell| cell.paper = String::new());
        }
        let text = render_book(&book, &plain(None));
        assert!(!text.contains(": paper") && !text.contains("Paper  "), "{text}");
    }

    #[test]
    fn verdicts_come_first_and_are_counted() {
        let book = book();
        let text = render_book(&book, &plain(None));
        let first = book.papers[0].claims[0].words.as_str();
        let table = book.papers[0].exhibits[0].title.as_str();
        assert!(text.find(first).expect("the claim") < text.find(table).expect("the table"), "{text}");
        let claims: usize = book.papers.iter().map(|paper| paper.claims.len()).sum();
        assert!(text.contains(&format!("{claims} claims: ")), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
    }

    #[test]
    fn a_wide_table_has_a_row_a_value_with_the_published_one() {
        let pair =
            |ours: &str, paper: &str| Pair { ours: ours.into(), paper: paper.into(), ..Pair::default() };
        let missing = Pair { missing: "not installed".into(), ..Pair::default() };
        let table = Pairs {
            columns: ["program", "a", "b", "c"].map(String::from).into(),
            rows: vec![("gawk".into(), vec![pair("1.5", "1.4"), Pair::default(), missing])],
            ..Pairs::default()
        };
        let text = render_pairs(&table, &plain(None));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["program", "Paper", "Today"]);
        assert_eq!(lines[2], ["gawk", "a", "1.4", "1.5"]);
        assert_eq!(lines[3], ["c", "–", "[1]"]);
        assert_eq!(lines[4], ["[1]", "not", "installed"]);
    }

    #[test]
    fn a_narrow_terminal_is_kept_to() {
        let text = render_verdicts(&book(), &plain(Some(60)));
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }

    #[test]
    fn answers_are_counted_in_words() {
        let mut book = Book::default();
        assert_eq!(tally(&book), "0 claims");
        let claim = |answer| Claim { answer, ..Claim::default() };
        let claims = [Answer::Holds, Answer::Holds, Answer::Fails, Answer::Undecided].map(claim).into();
        book.papers.push(PaperSection { claims, ..PaperSection::default() });
        assert_eq!(tally(&book), "4 claims: 2 hold, 1 fails, 1 undecided");
    }
}
