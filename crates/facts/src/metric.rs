//! Metrics: what facts are about.

use crate::Place;

/// What facts are about. Its unit is part of its name.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name, or what the names of several end in.
    pub id: &'static str,
    /// What the names of several begin with.
    pub beginnings: &'static [&'static str],
    /// Whether a name follows that the user chose.
    pub is_open: bool,
    /// Whether it counts pieces or memory, and measures no time.
    pub is_count: bool,
    /// What its places are, where it has many.
    pub place: Place,
    /// What it is.
    pub about: &'static str,
}

impl Metric {
    /// A metric of pieces or memory.
    pub const fn count(id: &'static str, about: &'static str) -> Metric {
        Metric { id, beginnings: &[""], is_open: false, is_count: true, place: Place::Number, about }
    }

    /// A metric of time.
    pub const fn time(id: &'static str, about: &'static str) -> Metric {
        Metric { is_count: false, ..Metric::count(id, about) }
    }

    /// With such places.
    pub const fn at(self, place: Place) -> Metric {
        Metric { place, ..self }
    }

    /// One for each of these beginnings of a name.
    pub const fn of(self, beginnings: &'static [&'static str]) -> Metric {
        Metric { beginnings, ..self }
    }

    /// One for each name that a user chooses.
    pub const fn open(self) -> Metric {
        Metric { is_open: true, ..self }
    }

    /// Whether this is a name of it.
    pub fn is(&self, name: &str) -> bool {
        let rest = |beginning: &&str| name.strip_prefix(beginning)?.strip_prefix(self.id);
        self.beginnings.iter().filter_map(rest).any(|rest| rest.is_empty() != self.is_open)
    }
}

/// The metrics of a table of metrics and where each is found.
pub const fn metrics<T, const N: usize>(table: &[(Metric, T); N]) -> [Metric; N] {
    let mut all = [Metric::count("", ""); N];
    let mut at = 0;
    while at < N {
        all[at] = table[at].0;
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_its_names_and_no_other() {
        let plain = Metric::time("cpu_s", "");
        assert!(plain.is("cpu_s") && !plain.is("cpu_s_more") && !plain.is("a_cpu_s"));
        let several = Metric::time("_ratio", "").of(&["near", "last"]);
        assert!(several.is("near_ratio") && several.is("last_ratio") && !several.is("first_ratio"));
        let open = Metric::time("figure_", "").open();
        assert!(open.is("figure_rounds") && !open.is("figure_") && !open.is("rounds"));
    }
}
