//! The functions and call sites of both builds, where both were traced and recorded.

use super::counted::Counted;
use super::differences::Differences;
use super::functions::{self, Of};
use super::recorded::Recordings;
use super::sites::{self, SiteDifferences};
use super::stack_pair::StackPair;

/// Instructions by function, where both builds were counted and have functions.
pub fn functions(of: Of, counted: Option<&Counted>) -> Option<Differences> {
    let Counted { base: Ok(base), new: Ok(new), again, .. } = counted? else { return None };
    let again = again.as_ref().ok().map(|again| again.functions.as_slice());
    (!base.functions.is_empty() && !new.functions.is_empty())
        .then(|| functions::differences(of, &base.functions, &new.functions, again))
}

/// All functions of both builds with their instructions, where both have some.
pub fn function_stacks(counted: Option<&Counted>) -> Option<StackPair> {
    let Counted { base: Ok(base), new: Ok(new), .. } = counted? else { return None };
    (!base.functions.is_empty() && !new.functions.is_empty())
        .then(|| functions::stacks(&base.functions, &new.functions))
}

/// Memory by call site, where both builds were recorded; or why the recordings cannot be compared.
pub fn sites(recordings: &Recordings) -> Option<Result<SiteDifferences, String>> {
    let Recordings { base: Ok(base), new: Ok(new), .. } = recordings else { return None };
    Some(sites::differences(&base.traces, &new.traces).map_err(|error| error.to_string()))
}
