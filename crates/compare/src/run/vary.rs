//! `--vary`: one setting at several values, each a stack of its own in front of or of each manager that was named.

use std::collections::BTreeMap;
use std::str::FromStr;

use heaptoll_experiment::manager::{self, Manager, ManagerError};
use heaptoll_experiment::stack::{self, StackError};
use heaptoll_experiment::varied::Varied;
use heaptoll_units::{size, size_label};
use thiserror::Error;

use heaptoll_command::collector_options;

/// Values at most: each is a stack for each manager.
const MOST: usize = 64;

/// A setting and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vary {
    /// As a stack has it, up to its value: `quarantine`, `sweep,every`, or an option of managers.
    setting: String,
    /// Further settings: `,evict=random`.
    fixed: String,
    /// Each as it is written, and as a number; ascending.
    values: Vec<(String, i64)>,
}

/// The stacks of a run whose setting varies.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// The managers, each followed by its stacks with the setting.
    pub(super) managers: Vec<Manager>,
    /// What is varied, by stack.
    pub(super) varied: BTreeMap<String, Varied>,
    /// The named managers that do not take the setting, each with the reason.
    pub(super) without: Vec<(String, StackError)>,
}

/// Why a text names no setting with values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VaryError {
    /// No setting has several values, or more than one has.
    #[error(
        "`{0}` does not vary one setting; give a range or a list, as in quarantine=64K..2M or every=1M,4M"
    )]
    NoRange(String),
    /// A value that is no number.
    #[error("`{0}` is not a whole number or a size; give a range or a list, as in 64K..2M or 1,2,4")]
    NoNumber(String),
    /// A range that ends before it begins.
    #[error("{0} is empty; give the smaller value first")]
    Empty(String),
    /// More than heaptoll runs.
    #[error("{0} values are too many; give at most {MOST}, because each runs under each manager")]
    TooMany(usize),
}

impl FromStr for Vary {
    type Err = VaryError;

    fn from_str(text: &str) -> Result<Vary, VaryError> {
        // A word without `=` after one that has it is a further value.
        let mut pieces: Vec<String> = Vec::new();
        for word in text.split(',') {
            match pieces.last_mut().filter(|last| last.contains('=') && !word.contains('=')) {
                Some(last) => last.extend([",", word]),
                None => pieces.push(word.to_owned()),
            }
        }
        let varies = |piece: &String| piece.contains(',') || piece.contains("..");
        let at = pieces.iter().position(varies).filter(|at| !pieces[at + 1..].iter().any(varies));
        let (at, (name, range)) = at
            .and_then(|at| Some((at, pieces[at].split_once('=')?)))
            .ok_or_else(|| VaryError::NoRange(text.into()))?;
        let setting = pieces[..at].iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(",");
        let fixed = pieces[at + 1..].iter().map(|piece| format!(",{piece}")).collect();
        Ok(Vary { setting, fixed, values: values(range)? })
    }
}

/// The values of ranges and a list, ascending, each once; sizes if one is written with a unit.
fn values(text: &str) -> Result<Vec<(String, i64)>, VaryError> {
    let ranges = text.split(',').map(range).collect::<Result<Vec<Vec<i64>>, VaryError>>()?;
    let mut values: Vec<i64> = ranges.into_iter().flatten().collect();
    values.sort_unstable();
    values.dedup();
    if values.len() > MOST {
        return Err(VaryError::TooMany(values.len()));
    }
    let written = |value: i64| match u64::try_from(value) {
        Ok(bytes) if text.contains(char::is_alphabetic) => size_label(bytes),
        _ => value.to_string(),
    };
    Ok(values.into_iter().map(|value| (written(value), value)).collect())
}

/// A value, or those of a range: each twice the one before (half of it below 0), and the last.
fn range(text: &str) -> Result<Vec<i64>, VaryError> {
    let number = |text: &str| {
        let read = size(text).map_or_else(|| text.parse().ok(), |bytes| i64::try_from(bytes).ok());
        read.ok_or_else(|| VaryError::NoNumber(text.into()))
    };
    let Some((from, to)) = text.split_once("..") else { return Ok(vec![number(text)?]) };
    let (from, to) = (number(from)?, number(to)?);
    if from > to {
        return Err(VaryError::Empty(text.into()));
    }
    let double = |value: &i64| {
        let next = if *value < 0 { Some(value / 2) } else { value.checked_mul(2).map(|next| next.max(1)) };
        next.filter(|next| *next < to)
    };
    Ok(std::iter::successors(Some(from), double).chain([to]).collect())
}

impl Vary {
    /// The stacks of these managers, with the setting where one takes it and `is_named`.
    ///
    /// # Errors
    /// A manager does not take one of the values, or no named manager takes the setting.
    pub(super) fn stacks(
        &self,
        known: &[Manager],
        managers: Vec<Manager>,
        is_named: impl Fn(&Manager) -> bool,
    ) -> Result<Stacks, ManagerError> {
        let (mut all, mut varied, mut without) = (Vec::new(), BTreeMap::new(), Vec::new());
        for manager in managers {
            let stacks: Result<Vec<Manager>, ManagerError> = match is_named(&manager) {
                true => self.values.iter().map(|(value, _)| self.stack(known, &manager, value)).collect(),
                false => Ok(vec![]),
            };
            let name = manager.name.clone();
            all.push(manager);
            match stacks {
                // Of several managers the others may take it.
                Err(ManagerError::Stack(
                    error @ (StackError::Option { .. } | StackError::Nonsense { .. }),
                )) => without.push((name, error)),
                stacks => {
                    for (stack, (value, at)) in stacks?.into_iter().zip(&self.values) {
                        let (manager, setting) = (name.clone(), self.setting.clone());
                        let one = Varied { manager, setting, value: value.clone(), at: *at };
                        varied.insert(stack.name.clone(), one);
                        all.push(stack);
                    }
                }
            }
        }
        match without.first() {
            Some((_, error)) if varied.is_empty() => Err(error.clone().into()),
            _ => Ok(Stacks { managers: all, varied, without }),
        }
    }

    /// A manager with the setting at a value.
    fn stack(&self, known: &[Manager], manager: &Manager, value: &str) -> Result<Manager, ManagerError> {
        let Vary { setting, fixed, .. } = self;
        let set = format!("{setting}={value}{fixed}");
        let is_layer = setting.split(',').next().is_some_and(|name| stack::named(name).is_some());
        match is_layer {
            true => manager::find(known, &format!("{set}/{}", manager.name)),
            false => collector_options::with(known, manager, &set),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<String> {
        let vary: Vary = text.parse().expect(text);
        vary.values.into_iter().map(|(value, _)| value).collect()
    }

    #[test]
    fn a_range_doubles_from_its_first_value_to_its_last() {
        assert_eq!(written("quarantine=1B..8B"), ["1B", "2B", "4B", "8B"]);
        assert_eq!(written("quarantine=64K..200K"), ["64K", "128K", "200K"]);
        assert_eq!(written("purge_delay=0..5"), ["0", "1", "2", "4", "5"]);
        assert_eq!(written("heap=4M..4M"), ["4M"]);
        assert_eq!(written("every=4M,1M,64K..256K"), ["64K", "128K", "256K", "1M", "4M"]);
    }

    #[test]
    fn a_negative_value_stands_in_a_list_and_a_range() {
        assert_eq!(written("purge_delay=-1,0,1"), ["-1", "0", "1"]);
        assert_eq!(written("purge_delay=1K,-1"), ["-1", "1K"]);
        assert_eq!(written("purge_delay=-3..3"), ["-3", "-1", "0", "1", "2", "3"]);
        assert_eq!("purge_delay=-1K,2".parse::<Vary>(), Err(VaryError::NoNumber("-1K".into())));
    }

    #[test]
    fn what_varies_is_one_of_several_settings() {
        let vary: Vary = "sweep,free=honour,every=1M,4M,markers=1".parse().expect("it varies");
        assert_eq!((vary.setting.as_str(), vary.fixed.as_str()), ("sweep,free=honour,every", ",markers=1"));
    }

    #[test]
    fn what_varies_nothing_is_refused_with_what_to_give() {
        let refused = |text: &str| text.parse::<Vary>().expect_err(text);
        for wrong in ["", "quarantine", "quarantine=2M", "1..4", "sweep,every=1..2,heap=4M..8M"] {
            assert_eq!(refused(wrong), VaryError::NoRange(wrong.into()));
        }
        assert_eq!(refused("sweep,free=ignore..honour"), VaryError::NoNumber("ignore".into()));
        assert_eq!(refused("quarantine=..2M"), VaryError::NoNumber(String::new()));
        assert_eq!(refused("quarantine=2M..64K"), VaryError::Empty("2M..64K".into()));
        let many: Vec<String> = (1..=65).map(|value| value.to_string()).collect();
        assert_eq!(refused(&format!("markers={}", many.join(","))), VaryError::TooMany(65));
    }

    #[test]
    fn named_managers_that_take_the_setting_get_a_stack_a_value() {
        let known = [manager::glibc()];
        let managers = |words: &[&str]| {
            words.iter().map(|word| manager::find(&known, word).expect("a stack")).collect::<Vec<_>>()
        };
        let names = |vary: &str, words: &[&str], named: &str| {
            let vary: Vary = vary.parse().expect("it varies");
            let found = vary.stacks(&known, managers(words), |manager| manager.name == named);
            found.map(|Stacks { managers, varied, .. }| {
                let names: Vec<String> = managers.into_iter().map(|manager| manager.name).collect();
                (names.join(" "), varied.len())
            })
        };
        let of = |vary, words, named| names(vary, words, named).expect("stacks");
        let both = ["glibc", "sweep/glibc"];
        let quarantined = of("quarantine=1K,2K,evict=random", &both, "glibc");
        let stacks = "glibc quarantine=1K,evict=random/glibc quarantine=2K,evict=random/glibc sweep/glibc";
        assert_eq!(quarantined, (stacks.to_owned(), 2));
        // The option goes to the collector.
        let swept = of("every=1K,2K", &both, "sweep/glibc");
        assert_eq!(swept, ("glibc sweep/glibc sweep,every=1K/glibc sweep,every=2K/glibc".to_owned(), 2));
        let error = |vary: &str, named: &str| names(vary, &both, named).expect_err(vary).to_string();
        assert!(error("quarantine=1K,2K", "sweep/glibc").contains("decide when a block is free"));
        assert!(error("every=1K,2K", "glibc").contains("has no option `every`"));
        assert!(error("sweep,heap=1K,8K", "glibc").contains("heap=1K is not possible"));
        assert!(error("forward=1,2", "glibc").contains("takes no value"));
        assert!(error("sweep,heap=-1,8K", "glibc").contains("heap=-1 is not possible: give bytes"));
        // Of several, each that does not take it is given with the reason.
        let vary: Vary = "every=1K,2K".parse().expect("it varies");
        let without = vary.stacks(&known, managers(&both), |_| true).expect("stacks").without;
        let [(name, reason)] = &without[..] else { panic!("{without:?}") };
        assert!(name == "glibc" && reason.to_string().contains("has no option `every`"), "{reason}");
    }
}
