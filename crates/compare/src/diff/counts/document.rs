//! The document of two instruction counts: for each program a sentence, its functions, and its routines of the malloc
//! family.

use heaptoll_report::document::{Document, Section, Table};
use heaptoll_units::{number, percent};

use super::figures::{DiffCountsFigures, Pair};
use heaptoll_gate::diagnosis::{Causes, place, sections};
use heaptoll_gate::metric::Metric;

/// The document. `command` repeats it.
pub fn document(figures: &DiffCountsFigures, command: &str) -> Document {
    let several = figures.pairs.len() > 1;
    let mut all = vec![Section {
        title: "What changed".into(),
        text: figures.pairs.iter().map(sentence).collect(),
        items: vec![],
    }];
    for pair in &figures.pairs {
        let prefix = if several { format!("{}, {}: ", pair.program, pair.manager) } else { String::new() };
        let found = sections(causes(pair)).into_iter().chain(routines(pair));
        all.extend(found.map(|section| Section { title: format!("{prefix}{}", section.title), ..section }));
    }
    Document {
        title: "What changed between two counts of instructions".into(),
        subtitle: format!("from {} to {}", figures.base, figures.new),
        warnings: figures.warnings.clone(),
        sections: all,
        facts: vec![("base".into(), figures.base.clone()), ("new build".into(), figures.new.clone())],
        command: command.into(),
        ..Document::default()
    }
}

fn causes(pair: &Pair) -> Causes<'_> {
    Causes {
        functions: Some(&pair.functions),
        library: Some(&pair.library),
        function_stacks: Some(&pair.stacks),
        sites: None,
    }
}

fn sentence(pair: &Pair) -> String {
    let found = &pair.functions;
    let name = format!("{} under {}", pair.program, pair.manager);
    let (base, new) = (number(found.base), number(found.new));
    if found.difference == 0 && found.grown.is_empty() && found.only_new.parts == 0 {
        return format!("{name}: {base} instructions in both, the same in every function.");
    }
    if found.difference == 0 {
        return format!("{name}: {base} instructions in both, but not in the same functions.");
    }
    let sign = if found.difference < 0 { "\u{2212}" } else { "+" };
    let share = percent(found.difference.unsigned_abs() as f64 / found.base.max(1) as f64);
    let place = place(&causes(pair), Metric::Instructions);
    format!(
        "{name}: {sign}{} instructions ({sign}{share}), from {base} to {new}{}.",
        number(found.difference.unsigned_abs()),
        place.map(|place| format!("; most by {place}")).unwrap_or_default()
    )
}

fn routines(pair: &Pair) -> Option<Section> {
    let signed = |base: u64, new: u64| {
        let sign = match new.cmp(&base) {
            std::cmp::Ordering::Greater => "+",
            std::cmp::Ordering::Less => "\u{2212}",
            std::cmp::Ordering::Equal => "",
        };
        format!("{sign}{}", number(new.abs_diff(base)))
    };
    let table = Table::of(&pair.routines)
        .text("routine", |one| one.routine.clone())
        .figure("calls, base", |one| number(one.base_calls))
        .figure("calls, new", |one| number(one.new_calls))
        .figure("more calls", |one| signed(one.base_calls, one.new_calls))
        .figure("instructions, base", |one| number(one.base_instructions))
        .figure("instructions, new", |one| number(one.new_instructions))
        .figure("more", |one| signed(one.base_instructions, one.new_instructions));
    Some(Section::new("Routines of the malloc family").with(table.if_any()?))
}
