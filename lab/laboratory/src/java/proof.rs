//! The proof that a program ran in a virtual machine under the requested collector and heap.

use std::path::Path;
use std::process::{Command, Stdio};

use thiserror::Error;

use super::collectors::collector_of;
use super::logs::{JavaLogError, logs};
use heaptoll_experiment::manager::{Manager, in_folder};
use heaptoll_units::size_text;

/// The variable by which a virtual machine is given options without a change of its command line.
const VARIABLE: &str = "JAVA_TOOL_OPTIONS";
/// The virtual machine rounds a heap up to whole regions or pages of its own: by so many bytes or that part at most.
const ROUNDING: (u64, u64) = (4 << 20, 64);

/// Why a collector of Java does not serve a program.
#[derive(Debug, Error)]
pub enum NotJava {
    /// No virtual machine wrote a log.
    #[error(
        "{program} started no Java virtual machine, or one that takes no options from JAVA_TOOL_OPTIONS: \
         {stack} only chooses Java's collector. For the memory of C take a manager such as mimalloc"
    )]
    NoMachine {
        /// The program.
        program: String,
        /// The requested stack.
        stack: String,
    },
    /// The virtual machine refuses.
    #[error(
        "Java does not start under {stack}: {message}; `{java} -XX:+PrintFlagsFinal -version` lists the collectors that this \
         JDK has (Debian's: apt-get install default-jdk-headless)"
    )]
    Refused {
        /// The requested stack.
        stack: String,
        /// Its own words.
        message: String,
        /// The command.
        java: String,
    },
    /// Another collector ran.
    #[error(
        "{stack} was asked for, but the program itself chose {found}; leave the collector out of its options"
    )]
    Collector {
        /// The requested stack.
        stack: String,
        /// What its log names.
        found: String,
    },
    /// Another heap.
    #[error(
        "{stack}: the heap may grow to {found}, not to {requested}, because the program's own options win; \
         leave out -Xmx and -XX:MaxHeapSize"
    )]
    Heap {
        /// The requested stack.
        stack: String,
        /// The log's.
        found: String,
        /// The option's.
        requested: String,
    },
    /// The log is none.
    #[error(transparent)]
    Log(#[from] JavaLogError),
}

/// What the logs of a proof run prove, in words, or why they do not.
///
/// # Errors
/// [`NotJava`].
pub fn proof(manager: &Manager, command: &[String], folder: &Path) -> Result<String, NotJava> {
    let wanted = collector_of(manager);
    let found = logs(folder)?;
    if found.is_empty() {
        return Err(why_none(manager, command));
    }
    let stack = || manager.name.clone();
    for java in &found {
        if java.log.collector != wanted {
            let found = java.log.collector.map_or("no collector", |collector| collector.name()).into();
            return Err(NotJava::Collector { stack: stack(), found });
        }
        let requested = requested_heap(manager);
        let limit = java.log.heap_limit_bytes;
        if let (Some(requested), Some(limit)) = (requested, limit)
            && !(requested..=requested.saturating_add(ROUNDING.0.max(requested / ROUNDING.1)))
                .contains(&limit)
        {
            return Err(NotJava::Heap {
                stack: stack(),
                found: size_text(limit),
                requested: size_text(requested),
            });
        }
    }
    let machines = found.len();
    let heap = found[0].log.heap_limit_bytes.map(|bytes| format!(", a heap of up to {}", size_text(bytes)));
    Ok(format!(
        "{} by the log of {machines} virtual machine{}{}",
        found[0].log.collector.map_or("no collector", |collector| collector.name()),
        if machines == 1 { "" } else { "s" },
        heap.unwrap_or_default()
    ))
}

/// The heap that a stack fixes, bytes.
fn requested_heap(manager: &Manager) -> Option<u64> {
    let (_, options) = manager.environment.iter().find(|(name, _)| name == VARIABLE)?;
    options.split(' ').find_map(|word| word.strip_prefix("-Xmx")?.parse().ok())
}

/// Why there is no log: the virtual machine refuses the options, or the program is none of Java.
fn why_none(manager: &Manager, command: &[String]) -> NotJava {
    let program = command.first().cloned().unwrap_or_default();
    let is_java = Path::new(&program).file_name().is_some_and(|name| name == "java");
    let Some(message) = is_java.then(|| refusal(manager, &program)).flatten() else {
        return NotJava::NoMachine { program, stack: manager.name.clone() };
    };
    NotJava::Refused { stack: manager.name.clone(), message, java: program }
}

/// What a virtual machine answers to a stack's options when it has nothing else to do; `None` where it takes them.
fn refusal(manager: &Manager, java: &str) -> Option<String> {
    let folder = tempfile::tempdir().ok()?;
    let output = Command::new(java)
        .arg("-version")
        .envs(in_folder(&manager.environment, folder.path()))
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let texts = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let worth = |line: &&str| {
        !line.trim().is_empty()
            && !["Picked up ", "Error occurred during", "Error: "]
                .iter()
                .any(|prefix| line.starts_with(prefix))
    };
    let line = texts.iter().flat_map(|text| text.lines()).find(worth).map(|line| line.trim().to_owned());
    (!output.status.success()).then(|| line.unwrap_or_else(|| output.status.to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::java::collectors::tests::stack;

    fn proved(word: &str, log: Option<&str>) -> Result<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        if let Some(log) = log {
            fs::write(folder.path().join("heaptoll-gc-3.log"), log).expect("a log");
        }
        proof(&stack(word), &["ls".into()], folder.path()).map_err(|why| why.to_string())
    }

    #[test]
    fn a_log_proves_collector_and_heap() {
        let log = "[1ns][info][gc] Using Serial\n[2ns][info][gc,init] Heap Max Capacity: 64M\n";
        assert_eq!(
            proved("jvm-serial,heap=64M", Some(log)),
            Ok("Serial by the log of 1 virtual machine, a heap of up to 64M".into())
        );
        assert!(proved("jvm-serial,heap=63M", Some(log)).is_ok(), "rounded up");
        let why = |word: &str| proved(word, Some(log)).expect_err(word);
        assert!(why("jvm-serial,heap=32M").contains("leave out -Xmx"));
        assert!(why("jvm-serial,heap=65M").contains("64M, not to 65M"));
        assert!(why("jvm-g1").contains("chose Serial"));
        assert!(proved("jvm-g1", Some("x\n")).expect_err("damaged").contains("line 1"));
        assert!(proved("jvm-g1", None).expect_err("no log").contains("ls started no Java virtual machine"));
    }

    /// The stand-in refuses as HotSpot does, so that no Java is needed.
    #[test]
    fn a_machine_without_the_collector_is_quoted() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let java = folder.path().join("java");
        let script = "#!/bin/sh\necho \"Picked up JAVA_TOOL_OPTIONS: $JAVA_TOOL_OPTIONS\" >&2\n\
            echo \"Unrecognized VM option 'UseShenandoahGC'\" >&2\nexit 1\n";
        fs::write(&java, script).expect("a script");
        fs::set_permissions(&java, fs::Permissions::from_mode(0o755)).expect("executable");
        let command = [java.display().to_string()];
        let empty = tempfile::tempdir().expect("a folder");
        let why = proof(&stack("jvm-shenandoah"), &command, empty.path()).expect_err("refused").to_string();
        assert!(
            why.contains("Unrecognized VM option 'UseShenandoahGC'") && why.contains("PrintFlagsFinal"),
            "{why}"
        );
    }
}
