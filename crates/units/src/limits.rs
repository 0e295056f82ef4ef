//! Limits of this process (`ulimit`), which what it starts inherits: the one that an error of the system comes from.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::count;

/// What to do about an error that a limit causes: the limit with its value, and the command that raises it. `None` where
/// the error comes from no limit.
pub fn advice(error: &io::Error) -> Option<String> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some(match set(Resource::Nofile) {
            Some(files) => format!("only {files} files may be open: raise the limit (`ulimit -n`)"),
            None => "too many files are open: raise the limit (`ulimit -n`)".into(),
        }),
        Errno::NFILE => Some(
            "too many files are open in the whole system: end some programs, or raise fs.file-max".into(),
        ),
        Errno::FBIG => set(Resource::Fsize)
            .map(|bytes| format!("files may not exceed {}: raise the limit (`ulimit -f`)", kib(bytes))),
        // A thread whose stack finds no memory is refused by the same error.
        Errno::AGAIN => Some(format!(
            "{}the limit of processes and threads is reached: end some, or raise it (`ulimit -u`, or pids.max of the control group)",
            memory().map(|limits| format!("{limits}; or ")).unwrap_or_default()
        )),
        Errno::NOMEM => {
            Some(memory().unwrap_or_else(|| "there is too little memory: end other programs".into()))
        }
        _ => None,
    }
}

/// The same; where the error comes from no limit, what else is to be done.
pub fn advice_or(error: &io::Error, other: &str) -> String {
    advice(error).unwrap_or_else(|| other.into())
}

/// The same after a semicolon, at the end of a sentence; empty where there is none.
pub fn after(error: &io::Error) -> String {
    advice(error).map(|advice| format!("; {advice}")).unwrap_or_default()
}

/// The limits of memory that are set, and the commands that raise them.
pub fn memory() -> Option<String> {
    let kinds = [(Resource::As, "address space", 'v'), (Resource::Data, "private memory", 'd')];
    let each = kinds.into_iter().filter_map(|(resource, what, option)| {
        let bytes = set(resource)?;
        Some(format!("{what} is limited to {}: raise the limit (`ulimit -{option}`)", kib(bytes)))
    });
    Some(each.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// A limit that is set: bytes, seconds or a number, as its kind is.
pub fn set(resource: Resource) -> Option<u64> {
    getrlimit(resource).current
}

/// In the unit of `ulimit`.
fn kib(bytes: u64) -> String {
    format!("{} KiB", count((bytes / 1024) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_limit_names_the_command_that_raises_it() {
        let of = |errno: Errno| advice(&errno.into());
        assert!(of(Errno::MFILE).is_some_and(|text| text.contains("ulimit -n")));
        assert!(of(Errno::AGAIN).is_some_and(|text| text.contains("ulimit -u")));
        assert!(of(Errno::NFILE).is_some_and(|text| !text.contains("ulimit")));
        assert_eq!((of(Errno::NOSPC), of(Errno::NOENT)), (None, None));
        let memory_is_limited = [Resource::As, Resource::Data].into_iter().any(|kind| set(kind).is_some());
        assert_eq!(memory().is_some(), memory_is_limited);
        assert!(of(Errno::NOMEM).is_some_and(|text| text.contains("ulimit") == memory_is_limited));
    }
}
