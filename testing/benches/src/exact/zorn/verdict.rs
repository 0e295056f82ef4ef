//! Whether page faults rise by an order of magnitude, in text computed from the figures.

/// Faults of a collector compared with those of the explicit allocator, at the same memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Ten times as many or more.
    OrderOfMagnitude,
    /// More, but less than ten times.
    More,
    /// As many, or fewer.
    NotMore,
}

/// The quotient of two counts; a divisor of 0 counts as 1.
pub fn ratio(now: u64, before: u64) -> f64 {
    now as f64 / before.max(1) as f64
}

impl Verdict {
    /// The verdict on two numbers of faults.
    pub fn of(collector: u64, explicit: u64) -> Verdict {
        match ratio(collector, explicit) {
            ratio if ratio >= 10.0 => Verdict::OrderOfMagnitude,
            ratio if ratio > 1.0 => Verdict::More,
            _ => Verdict::NotMore,
        }
    }

    /// The text of the table.
    pub fn label(self) -> &'static str {
        match self {
            Verdict::OrderOfMagnitude => "yes",
            Verdict::More => "no, but more",
            Verdict::NotMore => "no, not more",
        }
    }
}

/// A sentence a manager: on how many programs its faults rise by an order of magnitude, and on which.
pub fn summary(verdicts: &[(String, String, Verdict)]) -> Vec<String> {
    let mut managers: Vec<&str> = Vec::new();
    for (manager, ..) in verdicts {
        if !managers.contains(&manager.as_str()) {
            managers.push(manager);
        }
    }
    let sentence = |manager: &&str| {
        let own: Vec<_> = verdicts.iter().filter(|(one, ..)| one == manager).collect();
        let of = |verdict: Verdict| {
            own.iter().filter(move |(.., one)| *one == verdict).map(|(_, program, _)| program.as_str())
        };
        let rising: Vec<&str> = of(Verdict::OrderOfMagnitude).collect();
        let which = if rising.is_empty() { String::new() } else { format!(" ({})", rising.join(", ")) };
        format!(
            "{manager}: page faults rise by an order of magnitude on {} of {} programs{which}; they rise by less on {}, and \
             not on {}",
            rising.len(),
            own.len(),
            of(Verdict::More).count(),
            of(Verdict::NotMore).count(),
        )
    };
    managers.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_times_is_an_order_of_magnitude() {
        assert_eq!(Verdict::of(1000, 100), Verdict::OrderOfMagnitude);
        assert_eq!(Verdict::of(999, 100), Verdict::More);
        assert_eq!((Verdict::of(100, 100), Verdict::of(0, 0)), (Verdict::NotMore, Verdict::NotMore));
        assert_eq!(Verdict::of(10, 0), Verdict::OrderOfMagnitude);
    }

    #[test]
    fn the_summary_counts_programs_of_each_manager() {
        let one = |manager: &str, program: &str, verdict| (manager.to_owned(), program.to_owned(), verdict);
        let lines = summary(&[
            one("a", "x", Verdict::OrderOfMagnitude),
            one("b", "x", Verdict::NotMore),
            one("a", "y", Verdict::More),
        ]);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("a: ") && lines[0].contains("on 1 of 2 programs (x)"), "{}", lines[0]);
        assert!(lines[1].contains("on 0 of 1 programs;") && lines[1].ends_with("not on 1"), "{}", lines[1]);
    }
}
