//! Why a stack or a program cannot be measured: each states what happened, to what, and what to do next.

use std::io;
use std::path::PathBuf;

use heaptoll_units::limits;
use serde::{Deserialize, Serialize};

/// What can be had of a program that has an allocator of its own.
const FOLLOWED: &str = "`heaptoll exact instructions`, `heaptoll exact locality` and `heaptoll exact drag` follow the program's own allocator by its symbols, \
without preloading";

/// A preflight that did not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// The command is empty.
    #[error("no command was given; name the program to run after `--`")]
    NoCommand,
    /// Nothing of that name.
    #[error("program `{program}` was not found{}", searched(.program, .path))]
    ProgramMissing {
        /// As given.
        program: String,
        /// The `PATH` searched, when it was.
        path: Option<String>,
    },
    /// It exists and may not be executed.
    #[error("{} may not be executed ({reason}); try `chmod +x`, or run it through its interpreter", .program.display())]
    ProgramNotExecutable {
        /// The file.
        program: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// Neither ELF nor script.
    #[error("{} is neither an ELF program nor a script with a `#!` line ({reason}); run it through its interpreter", .program.display())]
    ProgramNotUnderstood {
        /// The file.
        program: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A script's interpreter is missing.
    #[error("{} is a script for `{interpreter}`, which was not found; install it or correct the `#!` line", .script.display())]
    InterpreterMissing {
        /// The script.
        script: PathBuf,
        /// What its first line names.
        interpreter: String,
    },
    /// No dynamic loader, so nothing can be preloaded.
    #[error("{} is statically linked, so no loader runs that could preload a manager; measure a dynamically linked \
    build. {FOLLOWED}", .program.display())]
    StaticProgram {
        /// The file.
        program: PathBuf,
    },
    /// A static one whose allocator is Go's.
    #[error(
        "{} is a Go program: Go has its own allocator and collector, which no manager can replace. Go's heap profile \
         shows its memory: write one with runtime/pprof's WriteHeapProfile, or fetch /debug/pprof/heap. Then type `heaptoll trace export heap.pb.gz --to html`", .program.display()
    )]
    GoProgram {
        /// The file.
        program: PathBuf,
    },
    /// Another libc.
    #[error("{} uses the loader {}, not glibc's, and cannot load managers built for glibc; measure a glibc build of \
    it", .program.display(), .loader.display())]
    ForeignLibc {
        /// The file.
        program: PathBuf,
        /// Its `PT_INTERP`.
        loader: PathBuf,
    },
    /// Secure-execution mode.
    #[error("{} is {how}, so the loader ignores LD_PRELOAD; measure a copy without that privilege, or run as the owner", .program.display())]
    PrivilegedProgram {
        /// The file.
        program: PathBuf,
        /// `set-user-ID to user 65534`, `set-group-ID ...`, `given file capabilities`.
        how: String,
    },
    /// Other CPU or word size.
    #[error("{} is built for {found}; this heaptoll and its managers are for {wanted}; use a build for {wanted}", .file.display())]
    WrongArchitecture {
        /// Program or manager.
        file: PathBuf,
        /// Its architecture.
        found: String,
        /// The architecture that it must have.
        wanted: String,
    },
    /// No such manager.
    #[error("manager {} cannot be read ({reason}); check the path given with -m", .manager.display())]
    ManagerUnreadable {
        /// As given.
        manager: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// Not something that can be preloaded.
    #[error("{} is not a shared object that can be preloaded ({reason}); give the path of a lib*.so file", .manager.display())]
    NotASharedObject {
        /// The file.
        manager: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// `LD_PRELOAD` cannot express the path.
    #[error("the path {} contains a space or a colon, which separate entries of LD_PRELOAD; use a symbolic link \
    without them", .object.display())]
    PathNotPreloadable {
        /// The object.
        object: PathBuf,
    },
    /// The trap that gives glibc's figures under another name.
    #[error("{} exports no malloc, so a run would measure glibc; build it with its malloc visible, or preload its \
    proxy library", .manager.display())]
    NoMalloc {
        /// The file.
        manager: PathBuf,
    },
    /// It lacks what every block it gives needs.
    #[error("{} exports malloc but not {missing}: glibc's heap would get its blocks; add the function to it", .manager.display())]
    HalfAFamily {
        /// The file.
        manager: PathBuf,
        /// `free`, `realloc` or `calloc`.
        missing: String,
    },
    /// The loader would not have it.
    #[error("the loader refuses {}: {message}; {advice}", .manager.display())]
    LoaderRefuses {
        /// The file.
        manager: PathBuf,
        /// The loader's words.
        message: String,
        /// What to do.
        advice: String,
    },
    /// It kills the simplest program.
    #[error("{} breaks even `sh -c :` when it is loaded ({what}){}; repair the manager", .manager.display(), quoted(.stderr))]
    CrashesAtLoad {
        /// The file.
        manager: PathBuf,
        /// `killed by signal 11`, `exit status 1`.
        what: String,
        /// The beginning of its standard error.
        stderr: String,
    },
    /// The load check never ended.
    #[error("`sh -c :` does not end within {seconds} s under {}; the manager hangs when it is loaded", .manager.display())]
    HangsAtLoad {
        /// The file.
        manager: PathBuf,
        /// Limit, seconds.
        seconds: u64,
    },
    /// A function of the family does not do what programs rely on.
    #[error("{function} of {} fails on a single call ({what}); repair the manager: `heaptoll-conformance {}` tests \
    each function", .manager.display(), .manager.display())]
    FunctionFails {
        /// The file.
        manager: PathBuf,
        /// `calloc`.
        function: String,
        /// `killed by signal 11`, `it gives no block`.
        what: String,
    },
    /// The program has its own malloc, which wins.
    #[error("{} has its own malloc ({}), which takes precedence over a preloaded one; measure a build with the \
    system's malloc. {FOLLOWED}", .program.display(), .object.display())]
    OwnAllocator {
        /// The program.
        program: PathBuf,
        /// The object whose malloc it uses.
        object: PathBuf,
    },
    /// Calls arrive at the layer, but the next malloc is not the manager's.
    #[error("in {} malloc is bound to {}, not to {}; a run would not measure the requested manager", .program.display(), .bound_to.display(), .manager.display())]
    BoundElsewhere {
        /// The program.
        program: PathBuf,
        /// Where malloc went.
        bound_to: PathBuf,
        /// Where it should go.
        manager: PathBuf,
    },
    /// No call came.
    #[error("no malloc call of {} reached the manager{}; a comparison would show only noise{}", .program.display(), maybe(.hint), followed(.hint))]
    NoCalls {
        /// The program.
        program: PathBuf,
        /// What may be the reason.
        hint: String,
    },
    /// The counting layer was not loaded in any process.
    #[error("{} never loaded the preloaded objects ({reason}); no manager can reach it", .program.display())]
    NeverReported {
        /// The program.
        program: PathBuf,
        /// What was seen.
        reason: String,
    },
    /// Most of the work happens where the manager does not reach.
    #[error(
        "{percent} % of the CPU time runs in processes without the manager ({detail}); measure that program itself, \
         or a build that the manager can reach"
    )]
    MostlyUnreached {
        /// Share of CPU time, per cent.
        percent: u32,
        /// Which processes and why.
        detail: String,
    },
    /// The program could not be started for the proof.
    #[error("{program} could not be started: {reason}; check that it runs by hand in the same directory")]
    CannotStart {
        /// The command.
        program: String,
        /// The system's reason.
        reason: String,
    },
    /// The manager loads alone, but not with these layers in front of it.
    #[error("{stack} breaks even `sh -c :` when it is loaded ({what}){}; take another layer or manager", quoted(.stderr))]
    StackBreaks {
        /// Its objects, the program's first: `/a.so in front of /m.so`.
        stack: String,
        /// `killed by signal 11`, `exit status 2`.
        what: String,
        /// The beginning of its standard error.
        stderr: String,
    },
    /// A layer was loaded and did not report what it forwards to.
    #[error("in {} the layer {} never reported its next allocator, so the objects after it are unknown; run `make \
    build` again", .program.display(), .layer.display())]
    LayerUnproved {
        /// The program.
        program: PathBuf,
        /// The layer.
        layer: PathBuf,
    },
    /// A layer of ours is missing.
    #[error("the layer {} is missing ({reason}); build it with `make build`, or set HEAPTOLL_LAYERS_DIR to its \
    directory", .layer.display())]
    LayerMissing {
        /// Where it was searched.
        layer: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The system gave no file, process or pipe for the preflight's own needs.
    #[error("the preflight could not {what}: {reason}; {advice}")]
    System {
        /// What it tried.
        what: String,
        /// The system's reason.
        reason: String,
        /// What to do.
        advice: String,
    },
    /// What only the stack can know: its file is not of the program, or its virtual machine is not there.
    #[error("{why}")]
    Stack {
        /// Why, and what to do.
        why: String,
    },
    /// Cancelled by the caller.
    #[error("the preflight was cancelled")]
    Cancelled,
}

impl Refusal {
    /// What the system refused, with what to do about its reason.
    pub(crate) fn system(what: &str, error: &io::Error) -> Refusal {
        let advice = limits::advice_or(error, "is the temporary directory (TMPDIR) writable and not full?");
        Refusal::System { what: what.to_owned(), reason: error.to_string(), advice }
    }
}

/// What a shell does with a line and `exec` does not.
const OF_A_SHELL: [char; 9] = ['|', '>', '<', ';', '&', '$', '`', '*', ' '];

/// Where it was searched and what to do, or the command that was meant when it is a line of a shell.
fn searched(program: &str, path: &Option<String>) -> String {
    // A path with a blank in it is a path.
    if program.contains(OF_A_SHELL) && !program.starts_with(['/', '.']) {
        let quoted = program.replace('\'', r"'\''");
        return format!(", because all of it is one word; to run a line of shell: -- sh -c '{quoted}'");
    }
    let place = path.as_ref().map_or_else(String::new, |path| format!(" in PATH ({path})"));
    format!("{place}; check the name, or give its path")
}

fn quoted(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(", and wrote: {stderr}") }
}

fn maybe(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!(" ({hint})") }
}

/// The advice where an allocator inside may be the reason.
fn followed(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!(". {FOLLOWED}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_processes_is_no_full_folder() {
        let text = |errno| Refusal::system("fork", &io::Error::from_raw_os_error(errno)).to_string();
        assert!(text(libc::EAGAIN).contains("ulimit -u") && !text(libc::EAGAIN).contains("directory"));
        assert!(text(libc::EMFILE).contains("ulimit -n"));
        assert!(text(libc::ENOSPC).contains("temporary directory"));
    }

    #[test]
    fn a_line_of_a_shell_is_answered_with_a_shell_and_not_with_the_path() {
        let quoted = |program: &str| {
            Refusal::ProgramMissing { program: program.into(), path: Some("/usr/bin:/bin".into()) }
                .to_string()
        };
        let line = quoted("sort x | uniq");
        assert!(line.ends_with("-- sh -c 'sort x | uniq'") && !line.contains("PATH"), "{line}");
        assert!(quoted("echo 'a'").contains(r"sh -c 'echo '\''a'\'''"), "{}", quoted("echo 'a'"));
        assert!(quoted("sorrt").contains("in PATH (/usr/bin:/bin); check the name"), "{}", quoted("sorrt"));
    }
}
