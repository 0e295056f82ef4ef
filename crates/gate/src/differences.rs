//! What a total of two builds differs by, split over named parts: functions, or call sites. The split closes: what the
//! rows, the rest and the parts of one build only add to the difference of the totals, exactly.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows that are kept of the parts that grew most; of those that shrank most; and of the parts of one build only.
const KEPT: usize = 20;

/// A total of two builds and its parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Differences {
    /// The total of the base.
    pub base: u64,
    /// The total of the new build.
    pub new: u64,
    /// `new` less `base`.
    pub difference: i64,
    /// Of sampled profiles, the 95 % interval of `difference`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[i64; 2]>,
    /// Parts of both builds that grew most, most first.
    pub grown: Vec<Row>,
    /// Parts of both builds that shrank most, most first.
    pub shrunk: Vec<Row>,
    /// All other parts of both builds.
    pub rest: Rest,
    /// Of these, parts of sampled profiles whose interval holds 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undecided: u64,
    /// Parts that only the base has: removed, renamed, or inlined in the new build.
    pub only_base: Unmatched,
    /// Parts that only the new build has: added, renamed, or inlined in the base.
    pub only_new: Unmatched,
}

/// A part of both builds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// What it is.
    pub part: Part,
    /// Its amount in the base.
    pub base: u64,
    /// Its amount in the new build.
    pub new: u64,
    /// `new` less `base`.
    pub difference: i64,
    /// `difference` over that of the totals; `None` where the totals are equal.
    pub share: Option<f64>,
    /// By how much two runs of the base differ in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub varies: u64,
    /// Of sampled profiles, the 95 % interval of `difference`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[i64; 2]>,
}

fn is_zero(amount: &u64) -> bool {
    *amount == 0
}

/// What a part is called, and how sure it is that both builds have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// A function's name or a call stack as text, of the new build where it has the part.
    pub name: String,
    /// File name of the executable or library that the function is in; empty for call stacks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// All functions of a call stack, from the allocation outward; empty for functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// How many of them its name has, so that no other call stack has the same name.
    #[serde(skip)]
    pub shown: usize,
    /// The name of the base, where it is another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_name: String,
    /// How many innermost functions join two call stacks that are not the same as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_by: Option<u32>,
}

/// Parts that are not listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rest {
    /// How many.
    pub parts: u64,
    /// Their amount in the base.
    pub base: u64,
    /// Their amount in the new build.
    pub new: u64,
    /// `new` less `base`.
    pub difference: i64,
}

/// Parts of one build only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unmatched {
    /// How many.
    pub parts: u64,
    /// Their amount together.
    pub amount: u64,
    /// Those with most, most first.
    pub largest: Vec<Single>,
}

/// A part of one build.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Single {
    /// What it is.
    pub part: Part,
    /// Its amount.
    pub amount: u64,
    /// Of sampled profiles, the 95 % interval of what the new build has more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[i64; 2]>,
}

/// A part with its amounts, before it is sorted in.
#[derive(Debug, Clone, PartialEq)]
pub enum Amounts {
    /// Of both builds: base, new.
    Both(u64, u64),
    /// Of the base alone.
    Base(u64),
    /// Of the new build alone.
    New(u64),
}

impl Amounts {
    /// Those of the base and of the new build; 0 where it has none.
    pub fn both(&self) -> (u64, u64) {
        match *self {
            Amounts::Both(base, new) => (base, new),
            Amounts::Base(base) => (base, 0),
            Amounts::New(new) => (0, new),
        }
    }
}

/// Whether no difference is certain.
pub fn holds_0([low, high]: [i64; 2]) -> bool {
    low <= 0 && high >= 0
}

/// `new` less `base`; what no signed number holds is the largest.
pub fn less(new: u64, base: u64) -> i64 {
    i64::try_from(i128::from(new) - i128::from(base)).unwrap_or(if new > base { i64::MAX } else { i64::MIN })
}

impl Rest {
    fn take(&mut self, base: u64, new: u64) {
        self.parts += 1;
        (self.base, self.new) = (self.base.saturating_add(base), self.new.saturating_add(new));
        self.difference = less(self.new, self.base);
    }
}

impl Differences {
    /// Sorts parts in. Their order does not matter: equal amounts are ordered by name.
    pub fn new(parts: impl IntoIterator<Item = (Part, Amounts)>) -> Differences {
        Differences::estimated(parts.into_iter().map(|(part, amounts)| (part, amounts, None)))
    }

    /// The same of sampled profiles: each part with the interval of what the new build has more. Those whose interval
    /// holds 0 are not listed.
    pub fn estimated(parts: impl IntoIterator<Item = (Part, Amounts, Option<[i64; 2]>)>) -> Differences {
        let mut all = Differences::default();
        let (mut rows, mut only_base, mut only_new) = (Vec::new(), Vec::new(), Vec::new());
        for (part, amounts, interval) in parts {
            let (base, new) = amounts.both();
            (all.base, all.new) = (all.base.saturating_add(base), all.new.saturating_add(new));
            match amounts {
                _ if interval.is_some_and(holds_0) => {
                    all.undecided += 1;
                    all.rest.take(base, new);
                }
                Amounts::Both(..) => {
                    let difference = less(new, base);
                    rows.push(Row { part, base, new, difference, interval, ..Row::default() });
                }
                Amounts::Base(amount) => only_base.push(Single { part, amount, interval }),
                Amounts::New(amount) => only_new.push(Single { part, amount, interval }),
            }
        }
        all.difference = less(all.new, all.base);
        (all.only_base, all.only_new) = (unmatched(only_base), unmatched(only_new));
        all.list(rows);
        all
    }

    /// Lists the rows that matter and adds up the others.
    fn list(&mut self, mut rows: Vec<Row>) {
        rows.sort_by(|a, b| b.difference.cmp(&a.difference).then_with(|| a.part.cmp(&b.part)));
        let share = |row: Row, total: i64| Row {
            share: (total != 0).then(|| row.difference as f64 / total as f64),
            ..row
        };
        let grown = rows.iter().take(KEPT).take_while(|row| row.difference > 0).count();
        let shrunk = rows.iter().rev().take(KEPT).take_while(|row| row.difference < 0).count();
        let last = rows.split_off(rows.len() - shrunk);
        let rest = rows.split_off(grown);
        self.grown = rows.into_iter().map(|row| share(row, self.difference)).collect();
        self.shrunk = last.into_iter().rev().map(|row| share(row, self.difference)).collect();
        rest.iter().for_each(|row| self.rest.take(row.base, row.new));
    }

    /// The parts by what they add for certain, most first: those of both builds by what their difference is beyond that
    /// of two runs of the base, one of the new build alone by what it has beyond all that only the base has, since it may
    /// be a part of that with another name.
    pub fn added(&self) -> Vec<Added<'_>> {
        let rows = self.grown.iter().map(|row| Added {
            part: &row.part,
            base: Some(row.base),
            new: row.new,
            more: row.difference.unsigned_abs(),
            certain: certain(row.interval, row.difference.unsigned_abs().saturating_sub(row.varies)),
            interval: row.interval,
        });
        let singles = self.only_new.largest.iter().map(|single| Added {
            part: &single.part,
            base: None,
            new: single.amount,
            more: single.amount,
            certain: certain(single.interval, single.amount).saturating_sub(self.only_base.amount),
            interval: single.interval,
        });
        let mut all: Vec<Added> = rows.chain(singles).filter(|added| added.certain > 0).collect();
        all.sort_by(|a, b| b.certain.cmp(&a.certain).then_with(|| a.part.cmp(b.part)));
        all
    }

    /// Sum of the differences of everything that is listed, and of the rest: that of the totals.
    pub fn sum(&self) -> i128 {
        let rows = self.grown.iter().chain(&self.shrunk);
        rows.map(|row| i128::from(row.difference)).sum::<i128>() + i128::from(self.rest.new)
            - i128::from(self.rest.base)
            + i128::from(self.only_new.amount)
            - i128::from(self.only_base.amount)
    }
}

/// A part that adds to the total.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Added<'a> {
    /// What it is.
    pub part: &'a Part,
    /// Its amount in the base; `None` where only the new build has it.
    pub base: Option<u64>,
    /// Its amount in the new build.
    pub new: u64,
    /// By how much it is more.
    pub more: u64,
    /// What it adds at least.
    pub certain: u64,
    /// Of sampled profiles, the 95 % interval of `more`.
    pub interval: Option<[i64; 2]>,
}

/// What is added at least: of an estimate, the lower end of its interval.
fn certain(interval: Option<[i64; 2]>, exact: u64) -> u64 {
    interval.map_or(exact, |[low, _]| u64::try_from(low).unwrap_or(0))
}

fn unmatched(mut singles: Vec<Single>) -> Unmatched {
    singles.sort_by(|a, b| b.amount.cmp(&a.amount).then_with(|| a.part.cmp(&b.part)));
    let (parts, amount) =
        (singles.len() as u64, singles.iter().fold(0, |sum: u64, single| sum.saturating_add(single.amount)));
    singles.truncate(KEPT);
    singles.retain(|single| single.amount > 0);
    Unmatched { parts, amount, largest: singles }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(name: &str) -> Part {
        Part { name: name.into(), ..Part::default() }
    }

    #[test]
    fn what_grew_most_comes_first_and_equal_parts_are_ordered_by_name() {
        let both = |name, base, new| (part(name), Amounts::Both(base, new));
        let parts = [both("b", 5, 9), both("a", 5, 9), both("c", 9, 1), both("d", 3, 3), both("e", 100, 200)];
        let found = Differences::new(parts.clone());
        let names = |rows: &[Row]| rows.iter().map(|row| row.part.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&found.grown), names(&found.shrunk)),
            (vec!["e".to_owned(), "a".into(), "b".into()], vec!["c".to_owned()])
        );
        assert_eq!((found.difference, found.rest.parts, found.rest.base), (100, 1, 3));
        assert_eq!(found.grown[0].share, Some(1.0));
        assert_eq!(Differences::new(parts.into_iter().rev()), found);
    }

    #[test]
    fn a_new_part_counts_for_what_no_removed_one_explains() {
        let parts = |removed| {
            [
                (part("kept"), Amounts::Both(50, 60)),
                (part("added"), Amounts::New(100)),
                (part("removed"), Amounts::Base(removed)),
            ]
        };
        let names = |removed| {
            let found = Differences::new(parts(removed));
            found.added().iter().map(|added| (added.part.name.clone(), added.certain)).collect::<Vec<_>>()
        };
        assert_eq!(names(0), [("added".to_owned(), 100), ("kept".into(), 10)]);
        assert_eq!(names(95), [("kept".to_owned(), 10), ("added".into(), 5)]);
        assert_eq!(names(100), [("kept".to_owned(), 10)]);
    }

    /// Before, a sampled site with two samples more stood in the table as if it were exact.
    #[test]
    fn parts_whose_interval_holds_0_are_counted_and_not_listed_and_the_split_closes() {
        let found = Differences::estimated([
            (part("more"), Amounts::Both(10, 90), Some([50, 110])),
            (part("open"), Amounts::Both(10, 12), Some([-5, 9])),
            (part("seen twice"), Amounts::New(2), Some([-1, 7])),
            (part("new"), Amounts::New(40), Some([20, 60])),
        ]);
        assert_eq!((found.undecided, found.rest.parts), (2, 2));
        assert_eq!(found.sum(), i128::from(found.difference));
        let added: Vec<_> =
            found.added().iter().map(|added| (added.part.name.clone(), added.certain)).collect();
        assert_eq!(added, [("more".to_owned(), 50), ("new".into(), 20)]);
        assert_eq!(found.grown[0].interval, Some([50, 110]));
    }

    #[test]
    fn amounts_beyond_signed_numbers_are_no_trouble() {
        assert_eq!((less(u64::MAX, 0), less(0, u64::MAX), less(3, 5)), (i64::MAX, i64::MIN, -2));
    }

    proptest! {
        #[test]
        fn the_parts_add_to_the_difference_of_the_totals(
            amounts in prop::collection::vec((0_u8..3, 0_u64..1000, 0_u64..1000), 0..150)
        ) {
            let parts = amounts.iter().enumerate().map(|(at, &(kind, a, b))| {
                let amounts = match kind {
                    0 => Amounts::Both(a, b),
                    1 => Amounts::Base(a),
                    _ => Amounts::New(b),
                };
                (part(&format!("f{at}")), amounts)
            });
            let found = Differences::new(parts);
            prop_assert_eq!(found.sum(), i128::from(found.new) - i128::from(found.base));
            prop_assert_eq!(found.sum(), i128::from(found.difference));
        }
    }
}
