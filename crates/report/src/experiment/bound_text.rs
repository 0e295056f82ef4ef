//! Lower bounds of overhead as text, the same in the terminal and on the page.

use heaptoll_experiment::comparison::{BoundRow, Bounds, ProgramBounds};

use crate::document::{Cell, Tone};
use crate::format;

/// Whether there is anything to show: one run makes no bound, nor does one manager without known costs.
pub fn is_shown(bounds: &ProgramBounds) -> bool {
    let has_bound = |bounds: &Bounds| bounds.rows.iter().any(|row| row.bound.is_some());
    [&bounds.wall, &bounds.cpu].into_iter().flatten().any(has_bound)
}

/// What the bounds are taken over, and how to read them.
pub fn sentence(bounds: &ProgramBounds) -> String {
    let baseline = |name: &str, bounds: &Option<Bounds>| {
        let bounds = bounds.as_ref()?;
        let row = bounds.rows.iter().find(|row| row.stack == bounds.baseline)?;
        let left = if row.attributed_s > 0.0 { " are left under " } else { " under " };
        Some(format!("{name} {} s{left}{}", format::seconds(bounds.baseline_s), bounds.baseline))
    };
    // Its interval is some hundred times narrower than the others', and a reader wonders why.
    let of_itself = |bounds: &Option<Bounds>| {
        let bounds = bounds.as_ref()?;
        let row = bounds.rows.iter().find(|row| row.stack == bounds.baseline && row.bound.is_some())?;
        Some(row.stack.clone())
    };
    let mut own: Vec<String> = [&bounds.wall, &bounds.cpu].into_iter().filter_map(of_itself).collect();
    own.dedup();
    let own = match own.is_empty() {
        true => String::new(),
        false => format!(
            ". The bound of {} compares each of its runs with the rest of the same run, so noise between \
             runs does not widen its interval",
            format::and_list(&own)
        ),
    };
    let baselines: Vec<String> =
        [baseline("in time", &bounds.wall), baseline("in CPU", &bounds.cpu)].into_iter().flatten().collect();
    format!(
        "Lower bound on cost relative to free memory management. Free management would cost at most the \
         cheapest stack's cost less its pauses and other known costs: {}{own}",
        baselines.join(", ")
    )
}

fn find<'a>(bounds: &'a Option<Bounds>, stack: &str) -> Option<&'a BoundRow> {
    bounds.as_ref()?.rows.iter().find(|row| row.stack == stack)
}

/// A bound, or what stands in for one.
pub fn cell(bounds: &Option<Bounds>, stack: &str) -> Cell {
    let words = match find(bounds, stack) {
        // These baselines were not chosen: no side of 1 is the better one.
        Some(BoundRow { bound: Some(interval), .. }) => {
            return Cell::ratio(Some(interval), "").toned(Tone::Same);
        }
        Some(row) if bounds.as_ref().is_some_and(|b| b.baseline == stack) && row.attributed_s == 0.0 => {
            "baseline"
        }
        Some(_) => format::TOO_FEW,
        None => format::NONE,
    };
    Cell::text(words).toned(Tone::Dim)
}

/// What was taken out of a stack's cost.
pub fn taken(bounds: &ProgramBounds, stack: &str) -> String {
    let [wall, cpu] = [&bounds.wall, &bounds.cpu].map(|bounds| find(bounds, stack));
    let any = |which: fn(&BoundRow) -> bool| wall.is_some_and(which) || cpu.is_some_and(which);
    let kinds: Vec<&str> = [
        (any(|row| row.attributed.collections), "collections"),
        (any(|row| row.attributed.malloc_and_free), "malloc and free"),
    ]
    .into_iter()
    .filter(|(is, _)| *is)
    .map(|(_, word)| word)
    .collect();
    let seconds = |name: &str, row: Option<&BoundRow>| {
        row.filter(|row| row.attributed_s > 0.0)
            .map(|row| format!("{} s{name}", format::seconds(row.attributed_s)))
    };
    let amounts: Vec<String> = [seconds("", wall), seconds(" of CPU", cpu)].into_iter().flatten().collect();
    match (kinds.is_empty(), amounts.is_empty()) {
        (true, _) => "nothing".into(),
        (false, true) => format!("{}: none", kinds.join(", ")),
        (false, false) => format!("{}: {}", kinds.join(", "), amounts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::comparison::Attributed;
    use heaptoll_statistics::Interval;

    use super::*;

    fn bounds() -> ProgramBounds {
        let interval =
            |ratio| Interval { ratio, low: ratio - 0.01, high: ratio + 0.01, differs: true, pairs: 8 };
        let row = |stack: &str, total_s, attributed_s, bound| BoundRow {
            stack: stack.into(),
            total_s,
            attributed_s,
            attributed: Attributed { collections: attributed_s > 0.0, malloc_and_free: false },
            bound,
        };
        ProgramBounds {
            program: "p".into(),
            wall: Some(Bounds {
                baseline: "sweep/glibc".into(),
                baseline_s: 1.0,
                rows: vec![
                    row("glibc", 1.2, 0.0, Some(interval(1.2))),
                    row("sweep/glibc", 1.5, 0.5, Some(interval(1.5))),
                ],
            }),
            cpu: Some(Bounds {
                baseline: "glibc".into(),
                baseline_s: 1.2,
                rows: vec![row("glibc", 1.2, 0.0, None), row("sweep/glibc", 1.5, 0.0, None)],
            }),
            notes: vec![],
        }
    }

    #[test]
    fn a_line_states_what_was_taken_out() {
        let bounds = bounds();
        let line = |stack| {
            let [wall, cpu] = [&bounds.wall, &bounds.cpu].map(|bounds| cell(bounds, stack));
            format!("{} {}|{}|{}", wall.text, wall.range, cpu.text, taken(&bounds, stack))
        };
        assert_eq!(line("glibc"), "1.20 (1.19–1.21)|baseline|nothing");
        assert_eq!(line("sweep/glibc"), "1.50 (1.49–1.51)|too few repetitions|collections: 0.500 s");
        let sentence = sentence(&bounds);
        assert!(
            sentence.contains("in time 1.00 s are left under sweep/glibc, in CPU 1.20 s under glibc"),
            "{sentence}"
        );
        assert!(is_shown(&bounds));
    }

    #[test]
    fn one_manager_of_which_nothing_is_taken_out_shows_nothing() {
        let mut alone = bounds();
        alone.wall = None;
        alone.cpu.as_mut().expect("CPU").rows.truncate(1);
        assert!(!is_shown(&alone));
    }
}
