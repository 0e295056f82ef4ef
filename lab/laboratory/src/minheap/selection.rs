//! Selects the collectors to search, and the allocators of the baselines.

use heaptoll_compare::smallest_heap::{has_heap, sets_heap};
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_units::{read_percent, size, size_text};

use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;

/// Allocators under the mark-sweep layer, as in the paper (§4.1); each where it is built.
pub const ALLOCATORS: [&str; 2] = ["mimalloc3", "tcmalloc"];
/// The stacks whose smallest heaps are searched: those named, or every collector here that takes a fixed heap and the
/// sweep layer over the allocators of the baselines.
///
/// # Errors
/// A name that is unknown, or a stack without a heap that can be fixed.
pub fn collectors(
    known: &[Manager],
    words: &[String],
    allocators: &[Manager],
    messages: &dyn Messages,
) -> Result<Vec<Manager>, Failure> {
    if words.is_empty() {
        // Of a manager's modes the one that only collects is the collector; the other honours frees.
        let own = manager::everything(known)
            .into_iter()
            .filter(|one| one.collects() && has_heap(one) && !["tithe", "bdw"].contains(&one.name.as_str()));
        let swept = allocators
            .iter()
            .filter_map(|allocator| manager::find(known, &format!("sweep/{}", allocator.name)).ok());
        return Ok(own.chain(swept).collect());
    }
    let mut chosen: Vec<Manager> = Vec::new();
    for word in words {
        let named = manager::choose(known, [word.as_str()])?;
        let is_group = named.len() != 1 || named[0].name != *word;
        for one in named {
            if sets_heap(&one) {
                return Err(Failure::Usage(format!("{word}: leave out heap=, which the search varies")));
            }
            match has_heap(&one) {
                true if chosen.iter().any(|other| other.name == one.name) => {}
                true => chosen.push(one),
                false if is_group && one.name != *word => {
                    messages.note(&format!("{} is left out: its heap cannot be fixed", one.name));
                }
                false => {
                    return Err(Failure::Usage(format!(
                        "{} has no heap that can be fixed (option heap=); take a collector that has one, or \
                         put the sweep layer in front: sweep/{}",
                        one.name, one.name
                    )));
                }
            }
        }
    }
    if chosen.is_empty() {
        return Err(Failure::Usage(
            "none of these has a heap that can be fixed; take for instance sweep/mimalloc3".into(),
        ));
    }
    Ok(chosen)
}

/// The allocators under the baselines: those named, or those of the paper that are built here.
///
/// # Errors
/// An unknown name, or a collector.
pub fn allocators(known: &[Manager], words: &[String]) -> Result<Vec<Manager>, Failure> {
    if words.is_empty() {
        return Ok(ALLOCATORS.iter().filter_map(|name| manager::find(known, name).ok()).collect());
    }
    let mut found = Vec::new();
    for word in words {
        // The parser of stacks refuses a manager that makes no sense under the layer, with its reason.
        manager::find(known, &format!("sweep/{word}"))?;
        found.push(manager::find(known, word)?);
    }
    Ok(found)
}

/// The allocators whose footprint can be compared with the heaps of these collectors: none where all are Java's, for the
/// objects of a program in Java are not malloc's.
///
/// # Errors
/// Baselines were named all the same.
pub fn comparable(
    allocators: Vec<Manager>,
    collectors: &[Manager],
    named: &[String],
) -> Result<Vec<Manager>, Failure> {
    match collectors.iter().all(Manager::is_java) && !collectors.is_empty() {
        false => Ok(allocators),
        true if named.is_empty() => Ok(vec![]),
        true => Err(Failure::Usage(
            "a baseline is a footprint in malloc's memory, which does not contain the objects of a program \
             in Java; leave out --baseline"
                .into(),
        )),
    }
}

/// Sizes, `32K,64K,128K`.
#[derive(Debug, Clone)]
pub struct Periods(pub Vec<u64>);

impl std::str::FromStr for Periods {
    type Err = String;

    fn from_str(text: &str) -> Result<Periods, String> {
        let sizes: Option<Vec<u64>> =
            text.split(',').map(|word| size(word).filter(|bytes| *bytes > 0)).collect();
        sizes.map(Periods).ok_or_else(|| "give sizes, as in 32K,64K,128K".into())
    }
}

/// A share, from a percentage.
pub fn tolerance(text: &str) -> Result<f64, String> {
    read_percent(text)
        .filter(|share| (0.0..=0.5).contains(share))
        .ok_or_else(|| "give a percentage from 0 to 50; 0 is as close as one page".into())
}

/// The periods of the baselines over an allocator, each with whether the program's own frees are honoured.
pub fn periods(every: &[u64]) -> impl Iterator<Item = (u64, bool)> {
    let explicit = every.iter().min().map(|every| (*every, true));
    every.iter().map(|every| (*every, false)).chain(explicit)
}

/// The stack of a baseline: `sweep,every=32K/mimalloc3`; with the program's own frees honoured as well, which leaves
/// the collections only what it leaks.
pub fn baseline_name(allocator: &str, every: u64, honour: bool) -> String {
    format!("sweep,every={}{}/{allocator}", size_text(every), if honour { ",free=honour" } else { "" })
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::manager::{ManagerSource, glibc};

    use heaptoll_command::context::Silent;

    use super::*;

    #[test]
    fn the_stack_of_a_baseline_has_its_period() {
        assert_eq!(baseline_name("glibc", 32 << 10, false), "sweep,every=32K/glibc");
    }

    #[test]
    fn what_has_no_heap_is_refused_with_what_would_have_one() {
        let known = [glibc()];
        let selection = |word: &str| {
            collectors(&known, &[word.into()], &[], &Silent).map_err(|failure| failure.to_string())
        };
        assert!(selection("glibc").is_err_and(|message| message.contains("sweep/glibc")));
        assert!(selection("sweep,heap=1M/glibc").is_err_and(|message| message.contains("leave out heap=")));
        assert_eq!(selection("sweep/glibc").map(|all| all.len()), Ok(1));
        assert!(allocators(&known, &["nope".into()]).is_err());
    }

    #[test]
    fn collectors_of_java_have_no_baseline() {
        let java = [Manager { kind: ManagerSource::Java, ..glibc() }];
        let none = comparable(vec![glibc()], &java, &[]).map(|left| left.len());
        assert_eq!(none.map_err(|failure| failure.to_string()), Ok(0));
        assert!(comparable(vec![glibc()], &java, &["glibc".into()]).is_err());
        let of_c = [manager::find(&[glibc()], "sweep/glibc").expect("a stack")];
        assert!(comparable(vec![glibc()], &of_c, &[]).is_ok_and(|left| left.len() == 1));
    }

    #[test]
    fn percentages_and_periods_are_read() {
        assert_eq!([tolerance("1"), tolerance("0.5%"), tolerance("0 %")], [Ok(0.01), Ok(0.005), Ok(0.0)]);
        assert!(tolerance("60").is_err() && tolerance("x").is_err() && tolerance("NaN").is_err());
        assert_eq!("32K,1M".parse::<Periods>().map(|all| all.0), Ok(vec![32 << 10, 1 << 20]));
        assert!("32K,,1M".parse::<Periods>().is_err() && "0".parse::<Periods>().is_err());
    }
}
