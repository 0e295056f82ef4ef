//! Every program of the catalog once under every manager: does it print the same?

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_catalog::Catalog;
use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::places::Places;
use serde_json::Value;

use crate::error::{Error, file};

/// The outcome of a program under a manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The same bytes as under the baseline, and those that the catalog expects.
    Same,
    /// Other bytes.
    Wrong,
    /// It failed: how.
    Failed(String),
    /// It failed with a message that it lacked memory.
    OutOfMemory,
    /// heaptoll would not run it under this manager: why.
    Refused(String),
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Output::Same => "same",
            Output::Wrong => "WRONG",
            Output::Failed(_) => "failed",
            Output::OutOfMemory => "out of memory",
            Output::Refused(_) => "refused",
        })
    }
}

/// A program, a manager and the outcome.
pub type Row = (String, String, Output);

/// Runs `heaptoll run` at `heaptoll` once for each program that is no server, over all `managers`.
///
/// # Errors
/// heaptoll cannot be started or does not write its JSON; the catalog cannot be read.
pub fn run(heaptoll: &Path, places: &Places, managers: &[Manager]) -> Result<Vec<Row>, Error> {
    let catalog = Catalog::load(&places.catalog())?;
    let work = tempfile::tempdir().map_err(|source| Error::Process { what: "heaptoll".into(), source })?;
    let mut rows = Vec::new();
    for program in catalog.programs().filter(|program| !program.is_server()) {
        eprintln!("{} under {} managers", program.name(), managers.len());
        let (document, messages) = experiment(heaptoll, work.path(), program.name(), managers)?;
        for manager in managers {
            let mut output = of(&document, &manager.name)
                .ok_or_else(|| Error::Answer { what: "heaptoll run".into(), answer: messages.clone() })?;
            if let Output::Failed(_) = output {
                // Run it again alone, so that the messages are about this manager.
                let (_, messages) =
                    experiment(heaptoll, work.path(), program.name(), std::slice::from_ref(manager))?;
                if lacks_memory(&messages) {
                    output = Output::OutOfMemory;
                }
            }
            rows.push((program.name().to_string(), manager.name.clone(), output));
        }
    }
    Ok(rows)
}

/// A line with the versions that were run.
///
/// # Errors
/// heaptoll cannot be started.
pub fn version(heaptoll: &Path, managers: &[Manager]) -> Result<String, Error> {
    let output = Command::new(heaptoll)
        .arg("--version")
        .output()
        .map_err(|source| Error::Process { what: heaptoll.display().to_string(), source })?;
    let versions: Vec<String> = managers.iter().map(|m| format!("{} {}", m.name, m.version)).collect();
    Ok(format!(
        "{}, size quick, one run each: {}",
        String::from_utf8_lossy(&output.stdout).trim(),
        versions.join(", ")
    ))
}

fn experiment(
    heaptoll: &Path,
    work: &Path,
    program: &str,
    managers: &[Manager],
) -> Result<(Value, String), Error> {
    let (json, db): (PathBuf, PathBuf) = (work.join("run.json"), work.join("run.db"));
    for old in [&json, &db] {
        if old.exists() {
            file("remove", old, std::fs::remove_file(old))?;
        }
    }
    let mut command = Command::new(heaptoll);
    command.args([
        "run",
        "--program",
        program,
        "--size",
        "quick",
        "-n",
        "1",
        "--warmup",
        "0",
        "--baseline",
        "glibc",
    ]);
    for manager in managers {
        command.arg("-m").arg(&manager.name);
    }
    command.arg("--db").arg(&db).arg("--json").arg(&json).stdin(Stdio::null());
    let output =
        command.output().map_err(|source| Error::Process { what: heaptoll.display().to_string(), source })?;
    let messages =
        format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let text = std::fs::read_to_string(&json).map_err(|_| Error::Answer {
        what: format!("heaptoll run --program {program}"),
        answer: messages.clone(),
    })?;
    Ok((serde_json::from_str(&text)?, messages))
}

/// The outcome under a manager in a document of `heaptoll run`.
fn of(document: &Value, manager: &str) -> Option<Output> {
    let experiment = &document["experiment"];
    let refused = experiment["refused"].as_array()?.iter().find(|one| one[1] == manager);
    if let Some(refused) = refused {
        return Some(Output::Refused(refused[2].as_str().unwrap_or_default().to_string()));
    }
    let timed = |stack: &str| {
        let mut all = experiment["observations"].as_array()?.iter();
        all.find(|one| one["stack"] == stack && one["phase"] == "timed")
    };
    let (own, baseline) = (timed(manager)?, timed("glibc")?);
    let outcome = &own["outcome"];
    Some(match outcome["kind"].as_str()? {
        "ok" if own["output_digest"] == baseline["output_digest"] => Output::Same,
        "ok" | "wrong_output" => Output::Wrong,
        kind => Output::Failed(format!("{kind} {}", outcome["detail"])),
    })
}

fn lacks_memory(messages: &str) -> bool {
    let messages = messages.to_lowercase();
    ["out of memory", "memory exhausted", "cannot allocate", "not enough memory", "memoryerror", "bad_alloc"]
        .iter()
        .any(|words| messages.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn outcomes_are_distinguished() {
        let row = |stack: &str, kind: &str, digest: &str| {
            let outcome = json!({"kind": kind, "detail": 11});
            json!({"stack": stack, "phase": "timed", "outcome": outcome, "output_digest": digest})
        };
        let document = json!({"experiment": {
            "refused": [["p", "not-served", "no malloc"]],
            "observations": [
                row("glibc", "ok", "a"), row("good", "ok", "a"), row("other", "ok", "b"),
                row("marked", "wrong_output", "b"), row("dead", "signal", "a"),
            ],
        }});
        assert_eq!(of(&document, "good"), Some(Output::Same));
        assert_eq!(of(&document, "other"), Some(Output::Wrong));
        assert_eq!(of(&document, "marked"), Some(Output::Wrong));
        assert_eq!(of(&document, "dead"), Some(Output::Failed("signal 11".into())));
        assert_eq!(of(&document, "not-served"), Some(Output::Refused("no malloc".into())));
        assert_eq!(of(&document, "absent"), None);
    }

    #[test]
    fn lack_of_memory_is_recognised() {
        assert!(lacks_memory("gawk: fatal: Cannot allocate 30 bytes"));
        assert!(!lacks_memory("killed by signal 11"));
    }
}
