//! The programs of named sets, by which steps and quantities name many at once.

use heaptoll_catalog::Set;

use super::check::{Wrong, within, wrong};
use super::definition::{Quantity, Step, Study};
use super::pairs::requested;

/// The sets of the catalog that is part of the program.
const SETS: [&str; 2] = [
    include_str!("../../../programs/sets/interpreters.toml"),
    include_str!("../../../programs/sets/twenty.toml"),
];

/// The set of this name; none of a user's own catalog.
pub(super) fn set(name: &str) -> Option<Set> {
    SETS.iter().filter_map(|text| toml::from_str(text).ok()).find(|set: &Set| set.name == name)
}

impl Study {
    /// Names all programs of its steps' sets, and of its quantities that leave some out.
    pub(super) fn name_programs(&mut self) -> Result<(), Wrong> {
        for step in &mut self.steps {
            within(&format!("step {}", step.id), of_set(step))?;
        }
        let Study { steps, exhibits, claims, .. } = self;
        let rows = exhibits.iter_mut().flat_map(|exhibit| {
            let place = format!("exhibit {}", exhibit.id);
            exhibit.rows.iter_mut().filter_map(move |row| Some((place.clone(), row.ours.as_mut()?)))
        });
        let tests = claims.iter_mut().flat_map(|claim| {
            let place = format!("claim {}", claim.id);
            claim.tests.iter_mut().map(move |test| (place.clone(), &mut test.quantity))
        });
        for (place, quantity) in rows.chain(tests) {
            if let Some(step) = steps.iter().find(|step| step.id == quantity.step) {
                within(&place, all_but(quantity, step))?;
            }
        }
        Ok(())
    }
}

fn of_set(step: &mut Step) -> Result<(), Wrong> {
    let Some(name) = &step.set else { return left_out(&mut step.without, &[]).map(drop) };
    let Some(set) = set(name) else {
        return match step.programs.as_slice() {
            [] => wrong("set", format!("heaptoll has no set `{name}`; list its programs")),
            _ => Ok(()),
        };
    };
    let without = left_out(&mut step.without, &set.programs)?;
    let others = std::mem::take(&mut step.programs);
    step.programs = set.programs.into_iter().filter(|name| !without.contains(name)).collect();
    step.programs.extend(others.into_iter().filter(|name| !step.programs.contains(name)).collect::<Vec<_>>());
    if step.reserves.is_empty() {
        step.reserves = set.reserves;
    }
    Ok(())
}

fn all_but(quantity: &mut Quantity, step: &Step) -> Result<(), Wrong> {
    if quantity.without.is_empty() {
        return Ok(());
    }
    if !quantity.programs.is_empty() {
        return wrong("without", "it names its programs; leave those out");
    }
    let all = requested(quantity, step);
    let without = left_out(&mut quantity.without, &all)?;
    quantity.programs = all.into_iter().filter(|name| !without.contains(name)).collect();
    Ok(())
}

/// Takes the names to leave out, each of which is among `all`.
fn left_out(without: &mut Vec<String>, all: &[String]) -> Result<Vec<String>, Wrong> {
    match without.iter().find(|name| !all.contains(name)) {
        Some(name) => wrong("without", format!("`{name}` is not among the programs")),
        None => Ok(std::mem::take(without)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(step: &str, quantity: &str) -> Result<Study, String> {
        let text = format!(
            "name = \"made\"\ntitle = \"t\"\nsource = \"s\"\nabout = []\n[[step]]\nid = \"d\"\nkind = \"delay\"\n{step}\n\
             [[claim]]\nid = \"it\"\nplace = \"p\"\nwords = \"w\"\n[[claim.test]]\nwords = \"q\"\nrule = \"mean\"\n\
             above = 1.0\nquantity = {{ step = \"d\", metric = \"time_ratio\", {quantity} of = {{}} }}"
        );
        Study::parse(&text, "made.toml").map_err(|fault| fault.to_string())
    }

    /// The list of twenty programs stood sixteen times in the studies.
    #[test]
    fn a_set_fills_the_programs_of_a_step_and_a_quantity_may_leave_some_out() {
        let twenty = set("twenty").expect("a set");
        let study =
            named("set = \"twenty\"\nprograms = [\"redis\"]", "without = [\"redis\"],").expect("a study");
        assert_eq!(study.steps[0].programs, [&twenty.programs[..], &["redis".to_owned()]].concat());
        assert_eq!(study.steps[0].reserves, twenty.reserves);
        assert_eq!(study.claims[0].tests[0].quantity.programs, twenty.programs);
        let most = named("set = \"twenty\"\nwithout = [\"z3\"]", "").expect("a study");
        assert_eq!(most.steps[0].programs, twenty.programs[..19]);
        assert!(most.steps[0].without.is_empty() && most.claims[0].tests[0].quantity.programs.is_empty());
        assert!(named("set = \"mine\"\nprograms = [\"lua\"]", "").is_ok(), "of a user's own catalog");
    }

    #[test]
    fn what_is_left_out_is_there_and_a_set_is_known() {
        let place = |step, quantity| named(step, quantity).expect_err("it is wrong");
        assert!(
            place("set = \"mine\"", "")
                .ends_with("step d, set: heaptoll has no set `mine`; list its programs")
        );
        let twice = place("set = \"twenty\"", "programs = [\"lua\"], without = [\"z3\"],");
        assert!(twice.ends_with("claim it, without: it names its programs; leave those out"), "{twice}");
        for (step, quantity) in [
            ("programs = [\"lua\"]\nwithout = [\"lua\"]", ""),
            ("set = \"twenty\"\nwithout = [\"redis\"]", ""),
            ("programs = [\"lua\"]", "without = [\"redis\"],"),
        ] {
            let error = place(step, quantity);
            assert!(error.contains("without: `") && error.ends_with("is not among the programs"), "{error}");
        }
    }
}
