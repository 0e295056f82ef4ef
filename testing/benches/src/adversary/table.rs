//! The table of factors, for the terminal and for Markdown.

use heaptoll_units::text_table::Table;

use crate::adversary::bounds;
use crate::adversary::game::{GameError, Outcome, STRATEGIES};

/// Outcomes of the strategies against one manager.
#[derive(Debug)]
pub struct Row {
    /// The manager.
    pub manager: String,
    /// One game a strategy, in the order of [`STRATEGIES`].
    pub games: Vec<Result<Outcome, GameError>>,
}

impl Row {
    /// The game with the highest factor.
    pub fn worst(&self) -> Option<&Outcome> {
        self.games.iter().flatten().max_by(|a, b| a.factor.total_cmp(&b.factor))
    }
}

fn figure(outcome: &Outcome) -> String {
    let mark = if outcome.stopped.is_empty() { "" } else { "+" };
    format!("{:.2}{mark}", outcome.factor)
}

fn header() -> Vec<String> {
    let mut header = vec!["manager".to_string(), "header B".into()];
    header.extend(STRATEGIES.iter().map(|name| name.to_string()));
    header.extend(["worst", "with headers", "by addresses", "measured by"].map(String::from));
    header
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.manager.clone()];
    let worst = row.worst();
    cells.push(worst.map_or_else(String::new, |outcome| outcome.overhead_bytes.to_string()));
    cells.extend(row.games.iter().map(|game| game.as_ref().map_or_else(|_| "failed".into(), figure)));
    cells.extend(match worst {
        Some(worst) => [
            worst.strategy.clone(),
            format!("{:.2}", worst.factor_grain),
            format!("{:.2}", worst.factor_addresses),
            worst.memory_from.clone(),
        ],
        None => [const { String::new() }; 4],
    });
    cells
}

/// The table.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(header());
    rows.iter().for_each(|row| table.row(cells(row)));
    table.figures(1..2 + STRATEGIES.len());
    table
}

/// The bounds for the games' M and n in units.
pub fn bounds(live: u64, largest: u64) -> String {
    let lines = [
        ("any manager that moves nothing can be driven to (Robson 1974)", bounds::robson(live, largest)),
        ("first fit by address needs no more than (Robson 1977)", bounds::first_fit(live, largest)),
        (
            "powers of two never combined, as many times M as there are sizes (Boehm)",
            bounds::power_of_two_classes(live, largest),
        ),
        ("best fit can be driven to about (Robson 1977)", bounds::best_fit(live, largest)),
        ("growing only when no free block suffices needs no more than", bounds::any_fit(live, largest)),
    ];
    lines.iter().map(|(what, factor)| format!("{factor:>9.2}  {what}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(strategy: &str, factor: f64, stopped: &str) -> Outcome {
        Outcome {
            object: "/lib/x.so".into(),
            strategy: strategy.into(),
            stopped: stopped.into(),
            unit_bytes: 64,
            overhead_bytes: 16,
            page_bytes: 4096,
            live_bytes: 1 << 20,
            largest_bytes: 1 << 14,
            most_requested_bytes: 1 << 20,
            most_taken_bytes: 1 << 20,
            memory_bytes: 1 << 22,
            memory_from: "census".into(),
            resident_bytes: 0,
            census_bytes: 1 << 22,
            address_bytes: 1 << 22,
            span_bytes: 1 << 22,
            pieces: 1,
            factor,
            factor_grain: factor,
            factor_addresses: factor,
            bound_factor: 5.0,
            share: factor / 5.0,
            mallocs: 1,
            frees: 1,
        }
    }

    #[test]
    fn the_worst_is_named_and_what_stopped_is_marked() {
        let hung = GameError::Hung { strategy: "pages".into(), seconds: 90.0, grace: 30 };
        let row = Row {
            manager: "knuth".into(),
            games: vec![
                Ok(outcome("robson", 5.0, "")),
                Ok(outcome("roving", 240.0, "at the limit")),
                Ok(outcome("best-fit", 1.3, "")),
                Ok(outcome("classes", 1.0, "")),
                Err(hung),
                Ok(outcome("buddy", 4.0, "")),
            ],
        };
        let text = table(&[row]).markdown();
        let last = text.lines().last().unwrap_or_default().trim_matches('|').split('|');
        assert_eq!(
            last.map(str::trim).collect::<Vec<_>>().join(" "),
            "knuth 16 5.00 240.00+ 1.30 1.00 failed 4.00 roving 240.00 240.00 census"
        );
        assert!(text.lines().all(|line| line.matches('|').count() == 13), "{text}");
    }
}
