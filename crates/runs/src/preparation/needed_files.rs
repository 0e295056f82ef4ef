//! The files that layers need made before a run: whether one is of the program can only tell who made it.

use std::sync::OnceLock;

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::manager::{Manager, filled};

/// Why the file of a stack's layer does not serve a program; `None` where it does, or the stack needs none.
pub type Check = Box<dyn FnMut(&Manager, &ProgramInfo) -> Option<String>>;

static HANDED_IN: OnceLock<fn() -> Check> = OnceLock::new();

/// Hands in what makes the check for the stacks of a program.
pub fn hand_in(check: fn() -> Check) {
    HANDED_IN.get_or_init(|| check);
}

/// The check for the stacks of a program. Where none was handed in, no stack that needs a file is served.
pub(super) fn check() -> Check {
    HANDED_IN.get().map_or_else(|| Box::new(unchecked) as Check, |check| check())
}

fn unchecked(manager: &Manager, program: &ProgramInfo) -> Option<String> {
    manager.layers.iter().find_map(|layer| {
        let file = layer.kind.file.as_ref()?;
        let (_, path) = layer.settings.iter().find(|(name, _)| *name == file.option)?;
        let (path, by) = (filled(path, &program.name), &file.made_by);
        Some(format!("{path} cannot be compared with this program here: `{by}`, which makes it, is not installed"))
    })
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::manager::{find, glibc};

    use super::*;

    #[test]
    fn a_file_that_nothing_here_can_check_is_refused() {
        let why = |stack: &str| check()(&find(&[glibc()], stack).expect(stack), &ProgramInfo::default());
        assert!(why("oracle=free,file=/a.oracle/glibc").is_some_and(|why| why.contains("/a.oracle cannot be")));
        assert_eq!((why("oracle=record/glibc"), why("quarantine=1M/glibc")), (None, None));
    }
}
