//! Instructions of each function of a run: in the JSON, on the page, and joined with those of another run by
//! `heaptoll diff`.

use super::figures::{FunctionFigures, Row};
use heaptoll_gate::functions;
use heaptoll_profiles::{Builder, Frame, Measure};
use heaptoll_reftrace_host::{FunctionCount, Traced};
use heaptoll_report::document::{Flame, FlameBase, Item, Part};

/// Functions with less than this part of all instructions, as a divisor, are one: a run has thousands that the loader
/// enters once.
const KEPT: u64 = 100_000;
/// The symbol of these.
pub const SMALLER: &str = "(smaller functions)";

impl FunctionFigures {
    fn amount(&self) -> u64 {
        self.instructions.max(self.library_instructions)
    }

    fn add(&mut self, other: &FunctionFigures) {
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.library_instructions = self.library_instructions.saturating_add(other.library_instructions);
    }
}

/// The functions of all process images of a run, those with most instructions first; those with a hundred thousandth of
/// all or less are one in each object.
pub fn of_run<S>(traced: &Traced<S>) -> Vec<FunctionFigures> {
    let functions = traced.images.iter().flat_map(|image| {
        let name = image.image.name().to_owned();
        image.functions.iter().map(move |function| FunctionFigures {
            image: name.clone(),
            object: function.object.clone(),
            symbol: function.symbol.clone(),
            instructions: function.instructions,
            library_instructions: function.for_it,
        })
    });
    merged(functions.collect())
}

fn merged(mut all: Vec<FunctionFigures>) -> Vec<FunctionFigures> {
    let total = all.iter().fold(0_u64, |sum, one| sum.saturating_add(one.instructions));
    let is_small = |one: &FunctionFigures| one.amount() <= total / KEPT;
    all.iter_mut().filter(|one| is_small(one)).for_each(|one| SMALLER.clone_into(&mut one.symbol));
    all.sort();
    let mut merged: Vec<FunctionFigures> = Vec::new();
    for one in all {
        match merged.last_mut().filter(|last| key(last) == key(&one)) {
            Some(last) => last.add(&one),
            None => merged.push(one),
        }
    }
    merged.sort_by(|a, b| b.instructions.cmp(&a.instructions).then_with(|| a.cmp(b)));
    merged
}

fn key(one: &FunctionFigures) -> (&str, &str, &str) {
    (&one.image, &one.object, &one.symbol)
}

/// As a comparison joins them.
pub fn counts(functions: &[FunctionFigures]) -> Vec<(String, FunctionCount)> {
    let count = |one: &FunctionFigures| FunctionCount {
        object: one.object.clone(),
        symbol: one.symbol.clone(),
        instructions: one.instructions,
        for_it: one.library_instructions,
    };
    functions.iter().map(|one| (one.image.clone(), count(one))).collect()
}

const CAPTION: &str = "The first row shows the object files. Below each are its functions with what they \
                       executed themselves, counted exactly. The second measure is what the libraries of C \
                       and C++ executed for a function; the first measure counts this at the libraries' \
                       functions.";

/// The functions under the first manager, and what changes under each other one.
pub(super) fn flames(rows: &[&Row]) -> Vec<Item> {
    let mut rows = rows.iter().filter(|row| !row.more.functions.is_empty());
    let Some(first) = rows.next() else { return Vec::new() };
    let mut items = vec![alone(first)];
    items.extend(rows.map(|row| {
        let title = format!("Instructions by function, from {} to {}", first.manager, row.manager);
        let items = vec![compared(first, row)];
        Item::Part(Part { title, items, folded: true, ..Part::default() })
    }));
    items
}

fn alone(row: &Row) -> Item {
    let mut builder = Builder::new(vec![Measure::Instructions, Measure::LibraryInstructions]);
    for one in &row.more.functions {
        let object = if one.object.is_empty() { "(code of no file)" } else { object_name(&one.object) };
        let function = match (one.symbol.is_empty(), one.object.is_empty()) {
            (false, _) => heaptoll_callsites::function_name(&one.symbol),
            (true, false) => "(no symbol)".to_owned(),
            (true, true) => "(made at run time)".to_owned(),
        };
        let frame = |function: String| Frame { function, object: one.object.clone(), ..Frame::default() };
        let stack = [frame(function), frame(object.to_owned())].map(|frame| builder.frame(frame));
        builder.stack(&stack, &[one.instructions, one.library_instructions]);
    }
    Item::Flame(Flame {
        title: format!("Instructions by function under {}", row.manager),
        caption: CAPTION.into(),
        profile: builder.finish(),
        first: Measure::Instructions,
        base: None,
    })
}

fn compared(base: &Row, row: &Row) -> Item {
    let pair = functions::stacks(&counts(&base.more.functions), &counts(&row.more.functions));
    Item::Flame(Flame {
        title: String::new(),
        caption: CAPTION.into(),
        profile: pair.new,
        first: Measure::Instructions,
        base: Some(Box::new(FlameBase {
            profile: pair.base,
            names: [base.manager.clone(), row.manager.clone()],
        })),
    })
}

fn object_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::super::figures::Runs;
    use super::*;

    fn function(object: &str, symbol: &str, instructions: u64, library_instructions: u64) -> FunctionFigures {
        FunctionFigures {
            image: "p".into(),
            object: object.into(),
            symbol: symbol.into(),
            instructions,
            library_instructions,
        }
    }

    #[test]
    fn functions_with_few_instructions_are_one_and_the_sums_stay() {
        let all = vec![
            function("/p", "main", 5, 900_000),
            function("/lib/libc.so.6", "malloc", 1_000_000, 0),
            function("/lib/ld.so", "a", 7, 0),
            function("/lib/ld.so", "b", 3, 1),
            function("/p", "c", 1, 0),
        ];
        let merged = merged(all);
        let found: Vec<(&str, &str, u64)> =
            merged.iter().map(|one| (one.object.as_str(), one.symbol.as_str(), one.instructions)).collect();
        let expected = [
            ("/lib/libc.so.6", "malloc", 1_000_000),
            ("/lib/ld.so", SMALLER, 10),
            ("/p", "main", 5),
            ("/p", SMALLER, 1),
        ];
        assert_eq!(found, expected);
        assert_eq!(merged[1].library_instructions, 1);
    }

    #[test]
    fn each_manager_is_compared_with_the_first() {
        let row = |manager: &str, amount| {
            let functions = vec![function("/p", "main", 100, 0), function(manager, "malloc", amount, 0)];
            let more = Runs { functions, ..Runs::default() };
            Row { manager: manager.into(), more, ..Row::default() }
        };
        let (first, second) = (row("glibc", 50), row("lea", 70));
        let items = flames(&[&first, &Row::default(), &second]);
        let [Item::Flame(alone), Item::Part(part)] = items.as_slice() else { panic!("{items:?}") };
        assert_eq!(alone.profile.total(Measure::Instructions), 150);
        let [Item::Flame(compared)] = part.items.as_slice() else { panic!("{part:?}") };
        assert_eq!(compared.profile.total(Measure::Instructions), 170);
        let base = compared.base.as_ref().expect("a base");
        assert_eq!((base.profile.total(Measure::Instructions), base.names[0].as_str()), (150, "glibc"));
        assert!(flames(&[&Row::default()]).is_empty());
    }
}
