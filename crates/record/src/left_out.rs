//! What a recording could not take, as messages.

use heaptoll_alloc_ring::Shared;
use heaptoll_units::limits;

/// What the rings' file had no space for, as messages.
pub fn describe_left_out(shared: &mut Shared, corrupted: bool) -> Vec<String> {
    let left_out = shared.left_out();
    let damaged = (left_out.damaged || corrupted).then(|| {
        "the program overwrote the recording's list of processes or its counters, perhaps by a stray pointer: \
         missing events cannot be counted"
            .to_string()
    });
    let limited = format!(
        "processes were not recorded: their address space is limited (ulimit -v), and the recorder takes at most an \
         eighth; a limit of {} MiB is enough",
        shared.least_address_space() >> 20
    );
    let without_stacks = format!(
        "processes were recorded without call stacks, because their memory is too small; {}",
        limits::memory().unwrap_or_else(|| "they set the limit themselves (`ulimit -v`, `ulimit -d`)".into())
    );
    let counted = [
        (left_out.processes, "processes were not recorded: too many ran together for the available memory"),
        (left_out.threads, "threads were not recorded: too many ran together for the available memory"),
        (left_out.limited, limited.as_str()),
        (left_out.without_stacks, without_stacks.as_str()),
        (left_out.execs, "programs may have started unrecorded: there were too many to follow"),
        (
            left_out.events,
            "calls of signal handlers were not recorded: they interrupted the recording of another call",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"));
    damaged.into_iter().chain(counted).collect()
}
