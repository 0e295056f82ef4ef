//! What a request needs of its programs, checked before anything runs.

use regex_lite::Regex;

use super::request::ChooseRequest;
use super::score::Preference;
use super::servers::p99_unit;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// Refuses what only servers have, where there is none, or none that reports it.
///
/// # Errors
/// The request wants such a thing, or names programs that cannot be found.
pub(super) fn check(request: &ChooseRequest, context: &Context) -> Result<(), Failure> {
    let workload = &request.run.workload;
    let wants_p99 = request.preference == Preference::P99 || request.p99_limit_ms.is_some();
    let wants_idle = request.preference == Preference::Idle;
    if !wants_p99 && !wants_idle && workload.after_load.is_none() && request.soak_s.is_none() {
        return Ok(());
    }
    let programs = workload.resolve(context)?;
    let refuse = |why: &str| Err(Failure::Usage(why.into()));
    if programs.iter().any(|program| program.serve.is_none()) {
        return refuse(
            "--p99, --burst, --idle, --soak and --prefer p99 or idle are for servers: give one with --serve, \
             or a server of the catalog. What a program keeps after its peak is in `left MiB` of `heaptoll run`",
        );
    }
    if request.soak_s.is_some() && programs.len() != 1 {
        return refuse("--soak is for one server: name only one");
    }
    let servers = || programs.iter().filter_map(|program| program.serve.as_ref());
    let reports_p99 = |figures: &str| {
        Regex::new(figures)
            .is_ok_and(|pattern| pattern.capture_names().flatten().any(|name| p99_unit(name).is_some()))
    };
    if wants_p99 && !servers().all(|serve| serve.figures.as_deref().is_some_and(reports_p99)) {
        return refuse(
            "the 99th percentile is unknown: give --figures a pattern with a group p99_ms, p99_us or p99_s \
             that matches the load's report",
        );
    }
    if wants_idle && servers().any(|serve| serve.idle_s.is_empty()) {
        return refuse("--prefer idle needs --idle, the times to measure at, as in --idle 1s,10s,60s");
    }
    Ok(())
}
