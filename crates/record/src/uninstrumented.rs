//! Processes that the program starts and into which the layer is not loaded: those that a poll sees, with the reason,
//! and those that never registered although a recorded process noted that it starts them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::proc;

/// The first polls come this often, ns; the interval grows by a tenth each time, to one second.
const INTERVAL_NS: u64 = 5_000_000;
const LONGEST_NS: u64 = 1_000_000_000;
/// Files that are named in warnings.
const SHOWN: usize = 6;
/// How many names of files that never registered are kept: these come from shared memory.
const KEPT: usize = 1000;
/// Generations of such processes that are searched.
const DEPTH: usize = 8;

/// How the entry of the environment begins that names the rings' file.
const VARIABLE: &[u8] = b"HEAPTOLL_RECORD=";

/// The state of these checks.
#[derive(Debug, Default)]
pub struct UninstrumentedPrograms {
    next_ns: u64,
    interval_ns: u64,
    /// Files that cannot be reached, each with one warning.
    seen: HashSet<PathBuf>,
    /// Files that were started without the layer's environment, each with one warning.
    cleared: HashSet<PathBuf>,
    /// Processes, with their files, that were seen once without that environment: they must be seen twice.
    suspects: HashSet<(i32, PathBuf)>,
    warnings: Vec<String>,
    /// Files that never registered, in order, and how many more images there were when no more were kept.
    unregistered: Vec<PathBuf>,
    unregistered_more: usize,
    /// What recorded processes execute by now, when it is not what was recorded.
    became: HashMap<i32, PathBuf>,
}

impl UninstrumentedPrograms {
    /// Polls when it is time to: the children of recorded processes, and what recorded processes execute by now.
    pub fn poll<'a>(&mut self, now_ns: u64, recorded: impl Iterator<Item = (i32, &'a Path)> + Clone) {
        if now_ns < self.next_ns {
            return;
        }
        self.interval_ns = (self.interval_ns + self.interval_ns / 10).clamp(INTERVAL_NS, LONGEST_NS);
        self.next_ns = now_ns + self.interval_ns;
        let known: HashSet<i32> = recorded.clone().map(|(pid, _)| pid).collect();
        self.became.retain(|pid, _| known.contains(pid));
        for (pid, exe) in recorded {
            if let Some(now) = proc::exe(pid).filter(|now| now != exe && self.is_unreachable(pid, now)) {
                self.became.insert(pid, now);
            }
            self.poll_descendants(pid, &known, DEPTH);
        }
    }

    fn poll_descendants(&mut self, pid: i32, known: &HashSet<i32>, depth: usize) {
        for child in proc::children(pid) {
            if known.contains(&child) {
                continue;
            }
            if let Some(exe) = proc::exe(child) {
                self.is_unreachable(child, &exe);
            }
            if depth > 0 {
                self.poll_descendants(child, known, depth - 1);
            }
        }
    }

    /// Whether the layer is not loaded into this file, which that process executes; adds a warning the first time.
    fn is_unreachable(&mut self, pid: i32, exe: &Path) -> bool {
        if self.seen.contains(exe) {
            return true;
        }
        let why = if proc::has_loader(exe) == Some(false) {
            "is statically linked"
        } else if is_privileged(exe) {
            "has privileges of its own (set-user-ID or set-group-ID)"
        } else {
            return self.is_without_environment(pid, exe);
        };
        self.seen.insert(exe.to_path_buf());
        self.warnings.push(format!(
            "{} {why}, so the loader puts no layer into it: what it allocates is in no trace",
            exe.display()
        ));
        true
    }

    /// Whether it was started without the variables that load the layer; adds a warning the first time.
    fn is_without_environment(&mut self, pid: i32, exe: &Path) -> bool {
        if !proc::lacks(pid, VARIABLE) {
            return false;
        }
        // In the middle of an exec a process has the new file and no environment yet: it must be seen twice.
        if self.suspects.insert((pid, exe.to_path_buf())) {
            return false;
        }
        if self.cleared.insert(exe.to_path_buf()) {
            self.warnings.push(format!(
                "{} was started without the environment that loads the layer (by env -i, sudo, ...): what it allocates is \
                 in no trace",
                exe.display()
            ));
        }
        true
    }

    /// What a recorded process executes by now without being recorded.
    pub fn became(&self, pid: i32) -> Option<&Path> {
        self.became.get(&pid).map(PathBuf::as_path)
    }

    /// A process executed this file, and no layer was loaded into it.
    pub fn unregistered(&mut self, path: &Path) {
        if self.unregistered.iter().any(|known| known == path) {
            return;
        }
        if self.unregistered.len() < KEPT {
            self.unregistered.push(path.to_path_buf());
        } else {
            self.unregistered_more = self.unregistered_more.saturating_add(1);
        }
    }

    /// The warnings for the user, who gave this command.
    pub fn into_warnings(self, command: &[OsString]) -> Vec<String> {
        let mut warnings = self.warnings;
        let named: Vec<_> = self.seen.union(&self.cleared).filter_map(|exe| exe.file_name()).collect();
        // A poll has seen some of them, and the reason.
        let mut unregistered = self
            .unregistered
            .iter()
            .filter(|path| path.file_name().is_none_or(|name| !named.contains(&name)));
        for path in unregistered.by_ref().take(SHOWN) {
            warnings.push(format!(
                "{} was started and not recorded ({}): what it allocates is in no trace",
                path.display(),
                reason(path, command)
            ));
        }
        let more = unregistered.count().saturating_add(self.unregistered_more);
        if more > 0 {
            warnings.push(format!("{more} other programs were started and not recorded either"));
        }
        warnings
    }
}

/// Why no layer is loaded into a file.
fn reason(path: &Path, command: &[OsString]) -> String {
    if proc::has_loader(path) == Some(false) {
        "it is statically linked".into()
    } else if is_privileged(path) {
        "it has privileges of its own".into()
    } else if let Some(setting) = preload_setting(command) {
        format!(
            "the command sets {setting}, which takes the place of the recorder's layer; set it for heaptoll instead: \
             {setting} heaptoll ..."
        )
    } else {
        "without LD_PRELOAD, or it ended before it was loaded".into()
    }
}

/// The setting `LD_PRELOAD=...` in a word of a command: of env, or of a shell.
fn preload_setting(command: &[OsString]) -> Option<String> {
    command.iter().find_map(|word| {
        let word = word.to_string_lossy();
        let setting = &word[word.find("LD_PRELOAD=")?..];
        setting.split([' ', ';', '\n']).next().map(str::to_owned)
    })
}

fn is_privileged(exe: &Path) -> bool {
    let Ok(file) = exe.metadata() else { return false };
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let (mode, executable_by_group) = (file.mode(), file.mode() & libc::S_IXGRP != 0);
    (mode & libc::S_ISUID != 0 && file.uid() != user)
        || (mode & libc::S_ISGID != 0 && executable_by_group && file.gid() != group)
}

/// How often processes are listed again because new ones started during the search.
const LISTINGS: usize = 50;

/// Processes that have inherited the name of the rings' file in their environment and could use it. One that starts
/// another and ends during the search, as a daemon does, is not lost: the result is empty only when a listing shows no
/// process that was not examined.
pub fn orphans(rings: &Path) -> Vec<i32> {
    inheriting(VARIABLE, rings)
}

/// Processes whose environment has this entry: `NAME=` and the path.
pub fn inheriting(variable: &[u8], path: &Path) -> Vec<i32> {
    let mut variable = variable.to_vec();
    variable.extend_from_slice(path.as_os_str().as_bytes());
    let own = std::process::id() as i32;
    let inherits = |pid: &i32| {
        *pid != own
            && proc::strings(*pid, "environ")
                .is_some_and(|bytes| bytes.split(|&byte| byte == 0).any(|entry| entry == variable))
            && proc::exe(*pid).is_some_and(|exe| proc::has_loader(&exe) != Some(false))
    };
    let mut seen = HashSet::new();
    for _ in 0..LISTINGS {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let new: Vec<i32> = pids.filter(|pid| seen.insert(*pid)).collect();
        let found: Vec<i32> = new.iter().copied().filter(inherits).collect();
        if new.is_empty() || !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_inherited_the_rings_are_found() {
        let rings = Path::new("/dev/shm/rings of this test");
        let mut child = std::process::Command::new("sleep")
            .arg("10")
            .env("HEAPTOLL_RECORD", rings)
            .spawn()
            .expect("sleep runs");
        // In the middle of its exec it has no environment yet.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while orphans(rings).is_empty() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(orphans(rings), [child.id() as i32]);
        child.kill().expect("kills");
        child.wait().expect("waits");
        assert!(orphans(rings).is_empty());
    }

    /// A daemon starts its child and ends: a recording once ended when it did so during the search.
    #[test]
    fn a_process_that_starts_another_and_ends_is_not_lost_in_between() {
        let folder = tempfile::tempdir().expect("a folder");
        let (code, program) = (folder.path().join("x.c"), folder.path().join("hops"));
        let (rings, stop) = (folder.path().join("rings"), folder.path().join("stop"));
        // The first process reaps the dead, and does not have the variable.
        let source = "#include <stdlib.h>\n#include <sys/prctl.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
            int main(int c, char **v) {\n\
                if (c > 3) { for (int i = 0; i < 20000 && access(v[1], F_OK); i++) { if (fork()) _exit(0); usleep(2000); } return 0; }\n\
                prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);\n\
                if (!fork()) { setenv(\"HEAPTOLL_RECORD\", v[2], 1); execl(v[0], v[0], v[1], v[2], \"hop\", NULL); _exit(1); }\n\
                while (wait(0) > 0);\n\
                return 0; }\n";
        std::fs::write(&code, source).expect("writes");
        let built = std::process::Command::new("cc").arg("-o").arg(&program).arg(&code).status();
        assert!(built.is_ok_and(|status| status.success()), "cc runs");
        let mut child = std::process::Command::new(&program).arg(&stop).arg(&rings).spawn().expect("it runs");
        while orphans(&rings).is_empty() && child.try_wait().expect("waits").is_none() {
            std::thread::yield_now();
        }
        let lost = (0..200).filter(|_| orphans(&rings).is_empty()).count();
        std::fs::write(&stop, "").expect("writes");
        child.wait().expect("waits");
        assert_eq!(lost, 0);
    }

    #[test]
    fn a_program_that_was_given_no_environment_is_named_once() {
        let mut child = std::process::Command::new("env")
            .args(["-i", "sleep", "10"])
            .env("HEAPTOLL_RECORD", "somewhere")
            .spawn()
            .expect("env runs");
        let pid = child.id() as i32;
        let mut uninstrumented = UninstrumentedPrograms::default();
        let mut poll = |number: u64| {
            uninstrumented.poll(number * LONGEST_NS, [(pid, Path::new("/usr/bin/env"))].into_iter());
            std::thread::sleep(std::time::Duration::from_millis(5));
            uninstrumented.became(pid).is_some()
        };
        // `env` becomes `sleep` when the scheduler lets it; then it is polled many times more.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(8);
        let mut number = 1;
        while !poll(number) && std::time::Instant::now() < until {
            number += 1;
        }
        for again in 1..100 {
            poll(number + again);
        }
        let became = uninstrumented.became(pid).map(Path::to_path_buf);
        child.kill().expect("kills");
        child.wait().expect("waits");
        assert!(became.is_some_and(|exe| exe.ends_with("sleep")));
        let warnings = uninstrumented.into_warnings(&[]);
        assert!(matches!(&warnings[..], [one] if one.contains("sleep was started without")), "{warnings:?}");
    }

    /// Before, the message had two guesses, and neither was the reason.
    #[test]
    fn a_setting_of_the_command_that_displaces_the_layer_is_named_with_what_to_type() {
        let command = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let why = |words: &[&str]| reason(Path::new("/bin/sh"), &command(words));
        for words in [&["env", "A=1", "LD_PRELOAD=./x.so", "p"][..], &["sh", "-c", "LD_PRELOAD=./x.so p"]] {
            assert!(why(words).ends_with(": LD_PRELOAD=./x.so heaptoll ..."), "{}", why(words));
        }
        assert_eq!(why(&["p"]), "without LD_PRELOAD, or it ended before it was loaded");
    }

    #[test]
    fn a_child_of_a_child_that_cannot_be_reached_is_named_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (code, program) = (folder.path().join("x.c"), folder.path().join("still"));
        std::fs::write(&code, "#include <unistd.h>\nint main(void) { sleep(10); return 0; }")
            .expect("writes");
        let built =
            std::process::Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&code).status();
        assert!(built.is_ok_and(|status| status.success()), "cc runs");
        let mut child = std::process::Command::new("sh")
            .args(["-c", "\"$0\" & wait"])
            .arg(&program)
            .env("HEAPTOLL_RECORD", "somewhere")
            .spawn()
            .expect("sh runs");
        let own = child.id() as i32;
        let exe = proc::exe(own).expect("its name");
        let mut uninstrumented = UninstrumentedPrograms::default();
        let mut now_ns = 0;
        while uninstrumented.warnings.is_empty() {
            now_ns += LONGEST_NS;
            uninstrumented.poll(now_ns, [(own, exe.as_path())].into_iter());
        }
        uninstrumented.poll(now_ns + LONGEST_NS, [(own, exe.as_path())].into_iter());
        for grandchild in proc::children(child.id() as i32) {
            // SAFETY: kill takes no pointers; the process is a descendant of this test.
            unsafe { libc::kill(grandchild, libc::SIGKILL) };
        }
        child.wait().expect("waits");
        let warnings = uninstrumented.into_warnings(&[]);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with(&format!("{} is statically linked", program.display())),
            "{warnings:?}"
        );
    }
}
