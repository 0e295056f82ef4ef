//! The first sentences: what intervals show that each manager saves against the baseline, and what the program
//! uses without heaptoll.

use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_statistics::{Interval, State};
use heaptoll_units::{first_few, groups};

use super::heaps;
use super::overall::{Found, found, with_collections};
use super::program::{COARSE, detectable};
use crate::format::{self, and_list};

/// Managers that a sentence names at most; where there are no more, it has all verdicts.
const NAMED: usize = 3;

/// A figure of a manager.
type Ratio = fn(&Found) -> Option<Interval>;
const CPU: (&str, Ratio) = ("CPU", |one| one.cpu);
const MEMORY: (&str, Ratio) = ("memory", |one| one.memory);

/// What the managers save.
pub(super) fn answer(comparison: &Comparison) -> Option<String> {
    let mut others = found(comparison);
    others.retain(|one| one.stack != comparison.baseline && !heaps::is_limited(comparison, one.stack));
    keep(comparison, &others)
        .or_else(|| savings(comparison, &others))
        .or_else(|| verdicts(comparison, &others))
}

/// What the program uses without heaptoll, where that is not glibc.
pub(super) fn linked(experiment: &Experiment) -> Option<String> {
    let [program] = &experiment.programs[..] else { return None };
    let object = program.linked.as_deref()?;
    let mut stacks = experiment.stacks.iter().filter(|stack| stack.environment.is_empty());
    let own = stacks.find(|stack| stack.preload.first().is_some_and(|first| first == object));
    let name = own.map_or(object, |own| &own.name);
    let uses = format!("{} without heaptoll uses {object}", program.name);
    Some(match own {
        Some(_) if name == experiment.baseline => format!("{uses}, which is {name}, the baseline."),
        Some(_) => format!("{uses}, which is {name}; `--baseline {name}` compares with that."),
        None => format!("{uses}; `--baseline {name}` compares with that."),
    })
}

/// That no manager saves anything, where the table can show differences.
fn keep(comparison: &Comparison, others: &[Found]) -> Option<String> {
    let [table] = &comparison.tables[..] else { return None };
    let detectable = detectable(table)?;
    let is_no_less = |ratio: Option<Interval>| {
        ratio.is_some_and(|ratio| matches!(ratio.state(), State::More | State::None))
    };
    let is_precise = 1.0 - detectable[1].1 <= COARSE;
    let is_enough = others.len() > if is_precise { 1 } else { NAMED };
    if !is_enough || !others.iter().all(|one| is_no_less(one.cpu) && is_no_less(one.memory)) {
        return None;
    }
    let more = |(noun, ratio): (&str, Ratio)| {
        let found = others.iter().filter(|one| ratio(one).is_some_and(|ratio| ratio.differs)).count();
        match found {
            0 => String::new(),
            1 => format!("; 1 takes more {noun}"),
            all if all == others.len() => format!("; all take more {noun}"),
            some => format!("; {some} take more {noun}"),
        }
    };
    let keep = if is_precise { format!("Keep {}: none", comparison.baseline) } else { "None".into() };
    let than = if is_precise { String::new() } else { format!(" than {}", comparison.baseline) };
    Some(format!(
        "{keep} of {} takes measurably less CPU or memory{than}{}{}. \
         A CPU difference of {} would have been detected about half the time.",
        others.len(),
        more(MEMORY),
        more(CPU),
        format::detectable_in_words(detectable),
    ))
}

/// Who certainly saves CPU time and memory.
fn savings(comparison: &Comparison, others: &[Found]) -> Option<String> {
    let [cpu, memory] =
        [(CPU, MEMORY), (MEMORY, CPU)].map(|(of, price)| saving(comparison, others, of, price));
    if others.len() <= NAMED || cpu.is_none() && memory.is_none() {
        return None;
    }
    let or_none =
        |found: Option<String>, noun| found.unwrap_or(format!("no manager takes measurably less {noun}"));
    Some(format!("Against {}, {}; {}.", comparison.baseline, or_none(cpu, CPU.0), or_none(memory, MEMORY.0)))
}

/// The manager that certainly takes least, with the price; where intervals overlap, those that certainly take less.
fn saving(
    comparison: &Comparison,
    others: &[Found],
    (noun, of): (&str, Ratio),
    (other, price): (&str, Ratio),
) -> Option<String> {
    let less = others.iter().filter(|one| !one.fails).filter_map(|one| Some((one, of(one)?)));
    let mut less: Vec<(&Found, Interval)> = less.filter(|(_, ratio)| ratio.state() == State::Less).collect();
    less.sort_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    let (first, least) = *less.first()?;
    let is_above = |one: &Found| of(one).is_none_or(|ratio| ratio.low > least.high);
    let is_least = others.iter().filter(|one| one.stack != first.stack).all(is_above);
    let written = |(one, ratio): &(&Found, Interval)| {
        format!("{} takes {}", with_collections(comparison, one.stack), format::changed(ratio, noun))
    };
    if is_least || less.len() == 1 {
        let first_of_all = if is_least { ", the least" } else { "" };
        let price = price(first).and_then(|ratio| format::claim(&ratio, other));
        let price = price.map_or(String::new(), |price| format!(", and {price}"));
        return Some(format!("{}{first_of_all}{price}", written(&less[0])));
    }
    Some(format!("{}, not ranked", first_few(less.iter().map(written), NAMED)))
}

/// The verdict of each; stacks of one verdict are named together.
fn verdicts(comparison: &Comparison, others: &[Found]) -> Option<String> {
    let verdicts =
        groups(others.iter().map(|one| (one.verdict.as_str(), with_collections(comparison, one.stack))));
    let left_out: usize = verdicts.iter().skip(NAMED).map(|(_, stacks)| stacks.len()).sum();
    let more = if left_out > 0 { format!("; {left_out} more below") } else { String::new() };
    let named =
        verdicts.iter().take(NAMED).map(|(verdict, stacks)| format!("{verdict} ({})", and_list(stacks)));
    let named: Vec<String> = named.collect();
    (!verdicts.is_empty()).then(|| format!("Against {}: {}{more}.", comparison.baseline, named.join("; ")))
}
