//! Made-up studies and figures for the tests of this module.

use super::definition::{Estimand, Quantity, Rule, Study};
use super::effect::{Effect, Missing};
use super::figures::{Cell, Figures};
use super::outcome::by_rule;
use heaptoll_facts::{Fact, Value};

/// A study of one timed step `t` and one counted step `c`, over a set's programs, with this in its file as well.
pub fn study(more: &str) -> Study {
    let steps = r#"
        name = "made"
        title = "Made up"
        source = "made up"
        about = []
        [[step]]
        id = "t"
        kind = "run"
        set = "made"
        programs = ["cfrac", "gawk", "perl", "make"]
        managers = ["a", "b", "c"]
        [[step]]
        id = "c"
        kind = "instructions"
        set = "made"
        programs = ["cfrac", "gawk", "perl", "make"]
        managers = ["a", "b", "c"]
    "#;
    Study::parse(&format!("{steps}\n{more}"), "made.toml").expect("a study")
}

/// A study with one claim of one test.
pub fn claiming(test: &str) -> Study {
    study(&format!(
        "[[claim]]\nid = \"it\"\nplace = \"§1\"\nwords = \"it is so\"\n[[claim.test]]\nwords = \"is it?\"\n{test}"
    ))
}

/// Figures from program, manager, place and value.
pub fn cells(step: &str, metric: &str, values: &[(&str, &str, Option<f64>, Value)]) -> Figures {
    let cell = |(program, manager, at, value): &(&str, &str, Option<f64>, Value)| {
        let [program, manager, metric] = [*program, *manager, metric].map(str::to_owned);
        Cell { step: step.into(), fact: Fact { program, manager, metric, at: *at, value: value.clone() } }
    };
    Figures { cells: values.iter().map(cell).collect() }
}

/// Repetitions about a value, which differ by a few thousandths in a way that depends on `seed`.
pub fn samples(value: f64, repetitions: usize, seed: u64) -> Value {
    let noise = |at: usize| ((at as u64 * 7 + seed * 13) % 11) as f64 / 11.0 - 0.5;
    Value::Samples((0..repetitions).map(|at| Some(value * (1.0 + 0.01 * noise(at)))).collect())
}

/// The same with repetitions that differ widely.
pub fn noisy(value: f64, repetitions: usize, seed: u64) -> Value {
    let noise = |at: usize| ((at as u64 * 7 + seed * 13) % 11) as f64 / 11.0 - 0.5;
    Value::Samples((0..repetitions).map(|at| Some(value * (2.0 * noise(at)).exp())).collect())
}

/// Every comparison of a quantity.
pub fn compare(quantity: &Quantity, study: &Study, figures: &Figures) -> Result<Vec<Effect>, Missing> {
    Ok(by_rule(Rule::All, Estimand::ProgramsLikeThese, quantity, study, figures)?.effects)
}

/// The geometric mean over programs of each pair of managers.
pub fn mean(quantity: &Quantity, study: &Study, figures: &Figures) -> Result<Vec<Effect>, Missing> {
    Ok(by_rule(Rule::Mean, Estimand::ProgramsLikeThese, quantity, study, figures)?.effects)
}

/// The slope of log figure over log place, of each pair of managers.
pub fn trend(quantity: &Quantity, study: &Study, figures: &Figures) -> Result<Vec<Effect>, Missing> {
    Ok(by_rule(Rule::Trend, Estimand::ProgramsLikeThese, quantity, study, figures)?.effects)
}
