//! A program under callgrind (instructions inside each routine of the malloc family, and in total) and under
//! cachegrind.

use heaptoll_callgrind::cachegrind::{self, Cache};
use heaptoll_callgrind::outermost::{self, Outermost};
use heaptoll_callgrind::profile::BOUND_AT_START;
use heaptoll_catalog::Prepared;
use heaptoll_experiment::manager::Manager;
use heaptoll_reftrace::Routine;

use super::family::Family;
use super::setup::{Setup, ValgrindTool};
use crate::Error;
use crate::installation::scratch;

/// Callgrind's counts in the process image that executed most.
#[derive(Debug, Clone, Default)]
pub struct Profiled {
    /// All instructions.
    pub total: u64,
    /// By [`Routine::ALL`].
    pub routines: Vec<Outermost>,
    /// The profile itself.
    pub text: String,
}

/// Runs a program under callgrind.
///
/// # Errors
/// It fails, or Valgrind is missing.
pub fn count(setup: &Setup, program: &Prepared, manager: &Manager, bound: bool) -> Result<Profiled, Error> {
    let (tmp, out) = (scratch()?, scratch()?);
    let mut invocation = setup.invocation(program, manager, tmp.path());
    if bound {
        invocation.environment.push((BOUND_AT_START.0.into(), BOUND_AT_START.1.into()));
    }
    let options = ["--demangle=no".to_owned(), format!("--callgrind-out-file={}/%p", out.path().display())];
    let invocation = setup.valgrind_tool(ValgrindTool::Callgrind, &options, &invocation)?;
    setup.run(program, &manager.name, "callgrind", &invocation)?;
    let mut most = Profiled::default();
    for file in Setup::files(out.path())? {
        let text = std::fs::read_to_string(&file).map_err(Error::file("read", &file))?;
        let total = outermost::total(&text).unwrap_or(0);
        if total >= most.total {
            most = Profiled { total, routines: vec![], text };
        }
    }
    most.routines = routines(&most.text)?;
    Ok(most)
}

fn routines(profile: &str) -> Result<Vec<Outermost>, Error> {
    let family = Family::read(outermost::objects(profile))?;
    let member = |object: &str, function: &str| family.routine(object, function).map(|it| it as usize - 1);
    Ok(outermost::outermost(profile, Routine::ALL.len(), member))
}

/// Runs a program under cachegrind with these caches.
///
/// # Errors
/// It fails, or Valgrind is missing.
pub fn caches(
    setup: &Setup,
    program: &Prepared,
    manager: &Manager,
    first: Cache,
    last: Cache,
) -> Result<cachegrind::Profile, Error> {
    let (tmp, out) = (scratch()?, scratch()?);
    let invocation = setup.invocation(program, manager, tmp.path());
    let options = [
        "--cache-sim=yes".to_owned(),
        // Valgrind 3.19 may merge two conditions into one, and cachegrind then counts the instructions of the second
        // also if the first does not hold. The tracer and callgrind disable that.
        "--vex-guest-chase=no".to_owned(),
        format!("--D1={}", cachegrind::option(first)),
        format!("--LL={}", cachegrind::option(last)),
        format!("--cachegrind-out-file={}/%p", out.path().display()),
    ];
    let invocation = setup.valgrind_tool(ValgrindTool::Cachegrind, &options, &invocation)?;
    setup.run(program, &manager.name, "cachegrind", &invocation)?;
    let files = Setup::files(out.path())?;
    let profiles: Vec<_> = files.iter().map(|file| cachegrind::read(file)).collect::<Result<_, _>>()?;
    let most = profiles.into_iter().max_by_key(|profile| profile.instructions);
    most.ok_or_else(|| setup.failed(program, &manager.name, "cachegrind", "it left no profile".into()))
}
