//! Whether a study's file can be carried out: what it names is there, and what it requests can be measured. A name
//! spelled wrong would else be found after an hour of measuring, as a claim that was not measured.

use super::definition::{
    Against, Claim, Estimand, Exhibit, Fault, Form, ListRow, Quantity, Rule, Sentence, Side, Step, StepKind,
    Study, Test, filled,
};
use super::pairs::of_side;
use super::placed;
use super::variant::numbered;
use heaptoll_laboratory::published::table;

const SIZES: [&str; 4] = ["tiny", "quick", "demo", "full"];

/// What is wrong: where and what.
pub(super) type Wrong = (String, String);

pub(super) fn wrong<T>(place: impl Into<String>, what: impl Into<String>) -> Result<T, Wrong> {
    Err((place.into(), what.into()))
}

/// With the larger thing that the place is in.
pub(super) fn within<T>(place: &str, result: Result<T, Wrong>) -> Result<T, Wrong> {
    result.map_err(|(inner, what)| {
        (format!("{place}{}{inner}", if inner.is_empty() { "" } else { ", " }), what)
    })
}

fn twice<'a>(ids: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = std::collections::BTreeSet::new();
    ids.into_iter().find(|id| !seen.insert(*id))
}

/// What is wrong in a file.
pub(super) fn at_fault(file: &str, (place, what): Wrong) -> Fault {
    Fault::Wrong { file: file.into(), place, what }
}

impl Study {
    /// The first thing in it that cannot be. `file` is what the error calls it.
    pub fn check(&self, file: &str) -> Result<(), Fault> {
        self.checked().map_err(|wrong| at_fault(file, wrong))
    }

    fn checked(&self) -> Result<(), Wrong> {
        if self.name.trim().is_empty() {
            return wrong("name", "it has none; it is the word on the command line");
        }
        if let Some(id) = twice(self.steps.iter().map(|step| &step.id)) {
            return wrong(format!("step {id}"), "two steps have this id");
        }
        if let Some(id) = twice(self.exhibits.iter().map(|exhibit| &exhibit.id)) {
            return wrong(format!("exhibit {id}"), "two exhibits have this id");
        }
        if let Some(id) = twice(self.claims.iter().map(|claim| &claim.id)) {
            return wrong(format!("claim {id}"), "two claims have this id");
        }
        for step in &self.steps {
            within(&format!("step {}", step.id), check_step(step))?;
        }
        for exhibit in &self.exhibits {
            within(&format!("exhibit {}", exhibit.id), self.check_exhibit(exhibit))?;
        }
        for claim in &self.claims {
            within(&format!("claim {}", claim.id), self.check_claim(claim))?;
        }
        for sentence in &self.summary {
            let place = format!("abstract `{}`", sentence.words);
            let is_claim = |id: &&String| self.claims.iter().any(|claim| claim.id == **id);
            match sentence.claims.iter().find(|id| !is_claim(id)) {
                Some(id) => return wrong(place, format!("there is no claim `{id}`")),
                None if sentence.claims.is_empty() => return wrong(place, "no claim answers it"),
                None => within(&place, self.check_figures(sentence))?,
            }
        }
        Ok(())
    }

    /// Each figure is of a test of a claim that answers the sentence.
    fn check_figures(&self, sentence: &Sentence) -> Result<(), Wrong> {
        let has = |id: &str, test: usize| {
            let claim =
                self.claims.iter().find(|claim| claim.id == id && sentence.claims.contains(&claim.id));
            claim.filter(|claim| test < claim.tests.len()).map(|_| String::new())
        };
        match sentence.figures.iter().find(|words| filled(words, has).is_none()) {
            Some(words) => wrong("figures", format!("`{words}` names no test of a claim that answers it")),
            None => Ok(()),
        }
    }

    fn named_step(&self, id: &str) -> Result<&Step, Wrong> {
        let known: Vec<&str> = self.steps.iter().map(|step| step.id.as_str()).collect();
        self.step(id).map_or_else(
            || wrong("", format!("there is no step `{id}`; the study has {}", known.join(", "))),
            Ok,
        )
    }

    fn check_exhibit(&self, exhibit: &Exhibit) -> Result<(), Wrong> {
        for id in exhibit.steps() {
            self.named_step(id)?;
        }
        match exhibit.form {
            Form::List => {
                for row in &exhibit.rows {
                    within(&format!("row `{}`", row.words), self.check_row(exhibit, row))?;
                }
            }
            _ if exhibit.columns.is_empty() => {
                let step = self.named_step(&exhibit.step)?;
                check_metric(step, &exhibit.metric)?;
                let managers = exhibit.managers.iter().chain(&exhibit.relative_to);
                check_managers(step, managers)?;
                check_programs(step, exhibit.programs.iter().chain(&exhibit.program))?;
            }
            Form::Lines => return wrong("columns", "lines have none; they are of tables and bars"),
            Form::Table | Form::Bars => self.check_columns(exhibit)?,
        }
        if exhibit.form != Form::List && !exhibit.rows.is_empty() {
            return wrong("row", "rows are of lists only");
        }
        if exhibit.as_ratio && exhibit.relative_to.is_none() {
            return wrong("as_ratio", "name the manager that ratios are to, in `relative_to`");
        }
        if exhibit.relative_variant.is_some() && exhibit.relative_to.is_none() {
            return wrong("relative_variant", "name the manager that ratios are to, in `relative_to`");
        }
        within("published", check_published(exhibit))
    }

    fn check_columns(&self, exhibit: &Exhibit) -> Result<(), Wrong> {
        for column in &exhibit.columns {
            let place = format!("column `{}`", column.title);
            if column.metric.is_empty() {
                if column.missing.is_none() {
                    return wrong(place, "it has no metric; give the reason in `missing`");
                }
                continue;
            }
            let step = within(&place, self.named_step(column.step.as_deref().unwrap_or(&exhibit.step)))?;
            within(&place, check_metric(step, &column.metric))?;
            within(&place, check_managers(step, column.manager.iter()))?;
            within(&place, check_programs(step, column.names.values()))?;
            if let Some(over) = &column.over {
                let other = within(&place, self.named_step(over.step.as_deref().unwrap_or(&step.id)))?;
                within(&place, check_metric(other, &over.metric))?;
                within(&place, check_managers(other, over.manager.iter()))?;
            }
        }
        for row in &exhibit.programs {
            let (program, manager) =
                row.split_once(" under ").map_or((row.as_str(), None), |(a, b)| (a, Some(b)));
            let of = exhibit.steps().into_iter().filter_map(|id| self.step(id));
            let runs = |step: &Step| {
                step.programs.iter().any(|name| name == program)
                    && manager.is_none_or(|manager| step.managers.iter().any(|name| name == manager))
            };
            if !of.into_iter().any(runs) {
                return wrong("programs", format!("no step of it runs `{row}`"));
            }
        }
        Ok(())
    }

    fn check_row(&self, exhibit: &Exhibit, row: &ListRow) -> Result<(), Wrong> {
        match (&row.ours, &row.missing) {
            (None, None) => return wrong("", "it has no `ours`; give the reason in `missing`"),
            (Some(_), Some(_)) => return wrong("", "it has `ours`, and `missing` as well"),
            (Some(quantity), None) => {
                let step = within("ours", self.check_quantity(quantity))?;
                let of = if quantity.of.managers.is_empty() { &step.managers } else { &quantity.of.managers };
                let over = quantity.over.as_ref().map_or(1, |over| over.managers.len().max(1));
                if of.len() > 1 || (over > 1 && quantity.against == Against::Each) {
                    return wrong("ours", "a row is one comparison: name one manager on either side");
                }
            }
            (None, Some(_)) => {}
        }
        let found = placed::of_row(exhibit, row);
        match row.published.iter().find(|key| !found.iter().any(|placed| placed.program == **key)) {
            Some(key) => wrong("published", format!("the file has no line `{key}`")),
            None => Ok(()),
        }
    }

    fn check_quantity(&self, quantity: &Quantity) -> Result<&Step, Wrong> {
        let step = self.named_step(&quantity.step)?;
        let sides: Vec<(&str, &Side)> = std::iter::once(("of", &quantity.of))
            .chain(quantity.over.iter().map(|over| ("over", over)))
            .collect();
        for (name, side) in &sides {
            within(name, check_metric(step, side.metric.as_ref().unwrap_or(&quantity.metric)))?;
            within(name, check_managers(step, side.managers.iter()))?;
            let bases = match (&side.program, quantity.programs.as_slice()) {
                (Some(_), _) => vec![of_side("", side)],
                (None, []) => Vec::new(),
                (None, programs) => programs.iter().map(|base| of_side(base, side)).collect(),
            };
            within(name, check_programs(step, bases.iter()))?;
            if let (None, [], Some(variant)) = (&side.program, quantity.programs.as_slice(), &side.variant) {
                let ends =
                    |program: &String| program.strip_suffix(variant).is_some_and(|base| base.ends_with(':'));
                if !step.programs.iter().any(ends) {
                    return wrong(
                        *name,
                        format!("step {} runs no program in the variant `{variant}`", step.id),
                    );
                }
            }
        }
        if let Some(over) = &quantity.over {
            let of = &quantity.of;
            let same = over.variant == of.variant && over.program == of.program && over.metric == of.metric;
            let managers = over.managers.is_empty() || over.managers == of.managers && of.managers.len() == 1;
            if same && managers {
                return wrong(
                    "over",
                    "it is the same as `of`; name another manager, variant, program or metric",
                );
            }
        } else if quantity.against != Against::Each {
            return wrong("against", "there is nothing in `over`");
        }
        Ok(step)
    }

    fn check_claim(&self, claim: &Claim) -> Result<(), Wrong> {
        if let Some(id) = claim.exhibits.iter().find(|id| !self.exhibits.iter().any(|one| one.id == **id)) {
            return wrong("exhibits", format!("there is no exhibit `{id}`"));
        }
        match (&claim.not_built, claim.tests.as_slice()) {
            (None, []) => return wrong("", "nothing tests it; give the reason in `not_built`"),
            (Some(_), [_, ..]) => return wrong("not_built", "it is tested as well"),
            _ => {}
        }
        for (number, test) in claim.tests.iter().enumerate() {
            within(&format!("test {}", number + 1), self.check_test(test))?;
            let step = self.named_step(&test.quantity.step)?;
            if claim.estimand == Estimand::ProgramsLikeThese && step.set.is_none() {
                return wrong("estimand", format!("step {} has no `set` that programs are like", step.id));
            }
        }
        Ok(())
    }

    /// The programs of `order` on either side: both are named, and none is in both.
    fn check_others(&self, test: &Test) -> Result<(), Wrong> {
        match (test.rule, test.others.is_empty(), test.quantity.programs.is_empty()) {
            (Rule::Order, false, false) => {}
            (Rule::Order, _, _) => {
                return wrong("others", "the rule `order` needs `programs` in its quantity, and `others`");
            }
            (_, true, _) => return Ok(()),
            (_, false, _) => return wrong("others", "they are of the rule `order` only"),
        }
        if let Some(both) = test.others.iter().find(|one| test.quantity.programs.contains(one)) {
            return wrong("others", format!("`{both}` is among the quantity's programs as well"));
        }
        within("others", self.check_quantity(&test.whole_quantity())).map(|_| ())
    }

    fn check_test(&self, test: &Test) -> Result<(), Wrong> {
        within("quantity", self.check_quantity(&test.quantity))?;
        self.check_others(test)?;
        match (test.rule, test.above, test.below) {
            (Rule::Both | Rule::Trend, _, _) if test.outside => {
                return wrong("outside", "it is not of the rules `both` and `trend`");
            }
            (_, Some(above), Some(below)) if test.outside && above < below => {
                return wrong("", format!("everything is above {above} or below {below}"));
            }
            (_, Some(_), Some(_)) if test.outside => {}
            _ if test.outside => return wrong("outside", "it needs both `above` and `below`"),
            (Rule::Both, Some(_), Some(_)) => {}
            (Rule::Both, _, _) => return wrong("", "the rule `both` needs `above` and `below`"),
            (_, None, None) => return wrong("", "it needs `above`, `below` or both"),
            (_, Some(above), Some(below)) if above >= below => {
                return wrong("", format!("nothing is above {above} and below {below}"));
            }
            _ => {}
        }
        match (test.rule, test.share) {
            (Rule::Most, Some(share)) if !(0.0..1.0).contains(&share) => {
                wrong("share", format!("{share} is not a share: give 0 or more, below 1"))
            }
            (Rule::Most, _) | (_, None) => Ok(()),
            (_, Some(_)) => wrong("share", "it is of the rule `most` only"),
        }
    }
}

fn check_step(step: &Step) -> Result<(), Wrong> {
    let own = !matches!(step.kind, StepKind::Run | StepKind::Instructions | StepKind::Locality);
    match step {
        // Folders and anchors are called by it.
        _ if step.id.trim().is_empty() => wrong("id", "it has none; figures are kept by it"),
        _ if step.programs.is_empty() => wrong("programs", "it runs none"),
        _ if step.managers.is_empty() && !own => wrong("managers", "it has none"),
        _ if twice(step.programs.iter()).is_some() => wrong("programs", "one is named twice"),
        _ if twice(step.managers.iter()).is_some() => wrong("managers", "one is named twice"),
        _ if !SIZES.contains(&step.size.as_str()) => wrong("size", format!("one of {}", SIZES.join(", "))),
        _ if step.repetitions == Some(0) => wrong("repetitions", "at least 1"),
        _ if step.pairing.is_some() && step.kind != StepKind::Run => {
            wrong("pairing", "only runs of kind `run` are paired by it")
        }
        _ if !(step.heaviness > 0.0 && step.heaviness.is_finite()) => wrong("heaviness", "a number above 0"),
        _ => check_originals(step),
    }
}

/// Originals stand for programs of the step, and are none of them.
fn check_originals(step: &Step) -> Result<(), Wrong> {
    for (kin, original) in &step.originals {
        if !step.programs.contains(kin) {
            return wrong("originals", format!("`{kin}` is not among its programs"));
        }
        if step.programs.contains(original) {
            return wrong("originals", format!("`{original}` is among its programs as well"));
        }
    }
    Ok(())
}

fn check_metric(step: &Step, metric: &str) -> Result<(), Wrong> {
    let is_given = |option: &str| step.options.iter().any(|word| word == option);
    // Misses by cause need a simulation of the program alone, which steps do without unless they ask for it.
    let is_by_cause = metric.ends_with("_misses") || metric.ends_with("_more_percent");
    if step.kind == StepKind::Locality && is_by_cause && !is_given("--placement") {
        return wrong(
            "metric",
            format!("step {} needs --placement yes among its options for `{metric}`", step.id),
        );
    }
    match step.kind.command().metric(metric) {
        Some(_) => Ok(()),
        None => wrong("metric", format!("step {} gives no `{metric}`", step.id)),
    }
}

fn check_managers<'a>(step: &Step, names: impl Iterator<Item = &'a String>) -> Result<(), Wrong> {
    match names.into_iter().find(|name| !step.managers.is_empty() && !step.managers.contains(name)) {
        Some(name) => wrong("managers", format!("step {} does not run `{name}`", step.id)),
        None => Ok(()),
    }
}

fn check_programs<'a>(step: &Step, names: impl Iterator<Item = &'a String>) -> Result<(), Wrong> {
    // `churn` is also a program of which only `churn:1`, `churn:2` ... are run.
    let runs = |name: &String| {
        step.programs.contains(name)
            || step.programs.iter().any(|program| numbered(program).is_some_and(|(base, _)| base == name))
    };
    match names.into_iter().find(|name| !runs(name)) {
        Some(name) => wrong("programs", format!("step {} does not run `{name}`", step.id)),
        None => Ok(()),
    }
}

fn check_published(exhibit: &Exhibit) -> Result<(), Wrong> {
    let in_columns = exhibit.columns.iter().filter_map(|column| column.published.as_ref());
    let Some(published) = &exhibit.published else {
        return match in_columns.into_iter().next() {
            Some(name) => wrong("", format!("a column is to show `{name}`, and no file is named")),
            None if exhibit.rows.iter().any(|row| !row.published.is_empty()) => {
                wrong("", "a row names a line, and no file is named")
            }
            None => Ok(()),
        };
    };
    if exhibit.form == Form::Lines {
        return wrong("", "lines show no published values; give them a list or a table of their own");
    }
    let Some(table) = table(&published.file) else {
        return wrong("file", format!("studies/published has no `{}`", published.file));
    };
    let values: Vec<&str> =
        if published.value.is_empty() { Vec::new() } else { published.value.split(", ").collect() };
    let columns =
        published.program.iter().chain(&published.manager).chain(published.only.keys()).chain(in_columns);
    let mut columns = columns.map(String::as_str).chain(values.iter().copied());
    if let Some(name) = columns.find(|name| table.column(name).is_none()) {
        let has = table.columns.join(", ");
        return wrong("", format!("{} has no column `{name}`; it has {has}", published.file));
    }
    match (exhibit.form, values.len()) {
        (Form::List, 0) => wrong("value", "name the column, or columns, of the values"),
        (Form::Table | Form::Bars, 0) if exhibit.columns.is_empty() => {
            wrong("value", "name the column of the values")
        }
        (Form::Table | Form::Bars, _) if published.program.is_empty() => {
            wrong("program", "name the columns of the program")
        }
        _ => Ok(()),
    }
}

/// No two studies have a step of the same id, for figures are kept by it.
pub(super) fn apart(studies: &[Study], files: &[(&str, &str)]) -> Result<(), Fault> {
    for (number, study) in studies.iter().enumerate() {
        for step in &study.steps {
            if let Some(other) = studies[..number].iter().find(|other| other.step(&step.id).is_some()) {
                let what = format!(
                    "{} has a step of this id; figures are kept by it, so give it another",
                    other.name
                );
                let file = files.get(number).map(|(file, _)| file.to_string()).unwrap_or_default();
                return Err(Fault::Wrong { file, place: format!("step {}", step.id), what });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
