//! The tables that are printed.

use heaptoll_units::text_table::Table;

use crate::misuse::Record;
use crate::security::{Attack, Outcome};
use crate::verdict::{Cell, Verdict};

/// A verdict in a cell.
pub fn sign(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "ok",
        Verdict::NotApplicable(_) => "-",
        Verdict::Known(_) => "known",
        Verdict::Fails(_) => "FAILS",
        Verdict::NoLongerDeviates(_) => "NO LONGER",
    }
}

fn names<'a>(all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in all {
        if !seen.iter().any(|known| known == name) {
            seen.push(name.to_string());
        }
    }
    seen
}

/// A table of text: one row a `row`, one column a `column`, in order of appearance.
pub fn matrix(corner: &str, cells: &[(String, String, String)]) -> String {
    let columns = names(cells.iter().map(|(_, column, _)| column.as_str()));
    let mut table = Table::new([vec![corner.to_string()], columns.clone()].concat());
    for row in names(cells.iter().map(|(row, ..)| row.as_str())) {
        let of = |column: &String| {
            let cell = cells.iter().find(|(r, c, _)| *r == row && c == column);
            cell.map(|(.., text)| text.clone()).unwrap_or_default()
        };
        table.row([vec![row.clone()], columns.iter().map(of).collect()].concat());
    }
    table.markdown().trim_end().to_owned()
}

/// Case by manager, and below it a line for each unexpected verdict.
pub fn verdicts(cells: &[Cell]) -> String {
    let grid: Vec<_> =
        cells.iter().map(|c| (c.case.clone(), c.manager.clone(), sign(&c.verdict).to_string())).collect();
    let mut text = matrix("case", &grid);
    for cell in cells {
        let (word, why) = match &cell.verdict {
            Verdict::Fails(why) => ("fails", why),
            Verdict::NoLongerDeviates(why) => ("no longer deviates", why),
            _ => continue,
        };
        text.push_str(&format!("\n{} under {} {word}: {why}", cell.case, cell.manager));
    }
    text
}

/// Defect by manager, and below it the messages.
pub fn misuses(records: &[Record]) -> String {
    let grid: Vec<_> =
        records.iter().map(|r| (r.case.clone(), r.manager.clone(), r.outcome.to_string())).collect();
    let mut text = matrix("defect", &grid);
    for record in records {
        text.push_str(&format!(
            "\n{} under {}: {}: {}",
            record.case, record.manager, record.outcome, record.message
        ));
        for note in &record.notes {
            text.push_str(&format!(" ({note})"));
        }
    }
    text
}

/// Attack by stack, a row of how many of them gained nothing, and the messages below.
pub fn attacks(attacks: &[Attack]) -> String {
    let mut grid: Vec<_> =
        attacks.iter().map(|a| (a.case.clone(), a.stack.clone(), a.outcome.to_string())).collect();
    for stack in names(attacks.iter().map(|attack| attack.stack.as_str())) {
        let of_stack: Vec<Outcome> =
            attacks.iter().filter(|attack| attack.stack == stack).map(|attack| attack.outcome).collect();
        let count = |outcome: Outcome| of_stack.iter().filter(|one| **one == outcome).count();
        let averted = [Outcome::Detected, Outcome::Stopped, Outcome::Prevented, Outcome::Zeroes];
        let averted = averted.map(count).iter().sum::<usize>();
        grid.push(("averted".into(), stack, format!("{averted} of {}", of_stack.len())));
    }
    let mut text = matrix("attack", &grid);
    let reports = [Outcome::Detected, Outcome::DetectedLate];
    for attack in attacks.iter().filter(|attack| reports.contains(&attack.outcome)) {
        text.push_str(&format!(
            "\n{} under {}: {}: {}",
            attack.case, attack.stack, attack.outcome, attack.message
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_are_counted_by_stack_and_messages_follow() {
        let attack = |case: &str, stack: &str, outcome| Attack {
            case: case.into(),
            stack: stack.into(),
            outcome,
            message: "freed twice".into(),
        };
        let text = attacks(&[
            attack("double_free", "glibc", Outcome::Detected),
            attack("double_free", "bump", Outcome::Prevented),
            attack("read_after_free", "glibc", Outcome::NotDetected),
            attack("read_after_free", "bump", Outcome::Stopped),
        ]);
        let averted = text.lines().find(|line| line.contains("averted")).expect("a row");
        assert!(averted.contains("1 of 2") && averted.contains("2 of 2"), "{text}");
        assert!(text.ends_with("double_free under glibc: detected: freed twice"), "{text}");
    }

    #[test]
    fn rows_and_columns_keep_their_order_and_holes() {
        let cell =
            |row: &str, column: &str, text: &str| (row.to_string(), column.to_string(), text.to_string());
        let text = matrix("x", &[cell("b", "m", "1"), cell("a", "m", "2"), cell("a", "k", "3")]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["|", "x", "|", "m", "|", "k", "|"]);
        assert!(lines[2].contains("| b") && lines[3].contains("| 3"), "{text}");
    }
}
