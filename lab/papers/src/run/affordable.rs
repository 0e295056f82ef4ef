//! Checks a budget before anything is run and kept.

use std::collections::BTreeSet;

use crate::budget::{HasSize, Length, Speed, plan};
use crate::definition::Study;
use crate::within::{Within, least_s, within};

use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;
use heaptoll_units::took;

/// Refuses a time in which no step can be run, and reports how many claims the time is enough for where it is not
/// enough for all.
///
/// # Errors
/// No step can be run in that time.
pub fn check(
    studies: &[Study],
    seconds: f64,
    has_size: HasSize<'_>,
    messages: &dyn Messages,
) -> Result<(), Failure> {
    let plan = plan(studies, Length::Seconds(seconds), has_size, &Speed::default(), &BTreeSet::new());
    let claims = within(studies, &plan.planned);
    let Within { decided, tested } = claims;
    if decided != [0, 0] {
        if decided != tested {
            messages.note(&format!("--budget: {} is enough for {}", took(seconds), claims.words()));
        }
        return Ok(());
    }
    let least = match least_s(studies, has_size).filter(|_| tested != [0, 0]) {
        Some(least) => format!("; the first can be decided with about {}", took(least)),
        None => String::new(),
    };
    if plan.planned.is_empty() {
        return Err(Failure::Usage(format!(
            "--budget: in {} no step can be run{least} (--quick shows every step in its shortest form and decides \
             nothing that is timed)",
            took(seconds)
        )));
    }
    if tested != [0, 0] {
        messages.warning(&format!(
            "--budget: {} is too little for any claim that has a test{least} (--quick shows every step in its shortest \
             form and decides nothing that is timed)",
            took(seconds)
        ));
    }
    Ok(())
}
