//! The manager that ratios are taken to when none is named, and what the words of managers name.

use std::path::Path;

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::named::Named;
use heaptoll_preflight::same_file;

/// Its name.
pub const DEFAULT: &str = "glibc";

/// What these words name; a baseline that is not the default was named.
pub fn named(known: &[Manager], managers: &[String], baseline: &str, programs: &[String]) -> Named {
    let baseline = (baseline != DEFAULT).then(|| baseline.to_owned());
    Named { managers: manager::names_of(known, managers.iter().chain(&baseline)), programs: programs.into() }
}

/// Describes what the program uses without heaptoll, and if `chooses` takes the stack that has this object as the
/// baseline in glibc's place. It runs as glibc does: both in lockstep, or neither. Gives what to tell the user.
pub fn own(experiment: &mut Experiment, program: &str, linked: &Path, chooses: bool) -> String {
    let is_lockstep = experiment.is_in_lockstep(program);
    let takes_turns = experiment.turns(program) > 1;
    let (default, others): (Vec<_>, Vec<_>) = experiment
        .stacks
        .iter_mut()
        .filter(|stack| stack.program == program)
        .partition(|stack| stack.name == experiment.baseline);
    let own = others.into_iter().find(|stack| {
        let is_linked = stack.preload.first().is_some_and(|first| same_file(Path::new(first), linked));
        is_linked && stack.environment.is_empty() && stack.heap.is_none()
    });
    let object = own.as_ref().and_then(|own| own.preload.first().cloned());
    let object = object.unwrap_or_else(|| linked.display().to_string());
    let info = experiment.programs.iter_mut().find(|info| info.name == program);
    info.into_iter().for_each(|info| info.linked = Some(object.clone()));
    match (own, default.into_iter().next()) {
        (Some(own), Some(default)) if chooses && !takes_turns && (!is_lockstep || own.apart.is_none()) => {
            own.apart = own.apart.take().or_else(|| default.apart.take());
            experiment.baseline.clone_from(&own.name);
        }
        _ => {}
    }
    format!("{program} uses {object} without heaptoll; the baseline is {}", experiment.baseline)
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::experiment::{ProgramInfo, StackInfo};

    use super::*;
    use crate::preparation::pairing::tests::in_lockstep;

    /// Before, redis, which links jemalloc, was compared with glibc, and nothing said so.
    #[test]
    fn the_baseline_is_the_allocator_that_the_program_links_unless_one_was_named() {
        let stack = |name: &str, preload: &[&str], apart: Option<&str>| StackInfo {
            program: "prog".into(),
            name: name.into(),
            preload: preload.iter().map(|object| (*object).to_owned()).collect(),
            apart: apart.map(str::to_owned),
            ..StackInfo::default()
        };
        let linked = Path::new("/lib/libj.so.2");
        let own_of = |apart: [Option<&str>; 2], chooses, preload: &str| {
            let stacks =
                vec![stack("glibc", &["/lib/libc.so.6"], apart[0]), stack("j", &[preload], apart[1])];
            let programs = vec![ProgramInfo { name: "prog".into(), ..ProgramInfo::default() }];
            let mut made = in_lockstep(programs, stacks);
            let text = own(&mut made, "prog", linked, chooses);
            assert!(text.ends_with(&format!("the baseline is {}", made.baseline)), "{text}");
            assert_eq!(made.programs[0].linked.as_deref(), Some("/lib/libj.so.2"));
            (made.is_in_lockstep("prog"), made.baseline)
        };
        let (both, neither, one) =
            ([None; 2], [Some("it is a server"), None], [None, Some("it starts threads")]);
        assert_eq!(own_of(both, true, "/lib/libj.so.2"), (true, "j".into()));
        assert_eq!(own_of(neither, true, "/lib/libj.so.2"), (false, "j".into()));
        for (apart, chooses, preload) in
            [(both, false, "/lib/libj.so.2"), (both, true, "/lib/other.so"), (one, true, "/lib/libj.so.2")]
        {
            assert_eq!(own_of(apart, chooses, preload), (true, DEFAULT.into()), "{preload}");
        }
    }
}
