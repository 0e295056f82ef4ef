//! The C compiler and other tools, and how they are run: a failing command becomes an error that holds the command and
//! the end of what it wrote; a missing one names the Debian package that has it.

use std::process::{Command, Stdio};

use crate::error::Error;

/// How many lines of a failing tool's output are kept.
const KEPT: usize = 40;

/// The C or C++ compiler: `$CC` or `$CXX`, with a wrapper in front if it has one, or the usual names.
pub fn driver(plus: bool) -> Command {
    let (variable, default) = if plus { ("CXX", "c++") } else { ("CC", "cc") };
    let named = std::env::var(variable).unwrap_or_default();
    let mut words = named.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(default));
    command.args(words);
    command
}

/// Runs a command and returns what it wrote to stdout. `step` describes what it does, `package` provides it.
///
/// # Errors
/// [`Error::NoTool`] when it is not installed, [`Error::Step`] when it fails.
pub fn run(command: &mut Command, step: &str, package: &'static str) -> Result<String, Error> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(Error::NoTool { tool, package }),
        Err(e) => {
            let (status, message) = ("did not start".to_string(), e.to_string());
            return Err(Error::Step { step: step.to_string(), status, command: line, message });
        }
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // Compilers write errors to stderr; `configure` and similar scripts to stdout.
    let written =
        if output.stderr.iter().all(u8::is_ascii_whitespace) { output.stdout } else { output.stderr };
    let message = last_lines(&String::from_utf8_lossy(&written));
    Err(Error::Step { step: step.to_string(), status: output.status.to_string(), command: line, message })
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(KEPT)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_names_its_package() {
        let error = run(&mut Command::new("no-such-compiler-here"), "compiling", "g++").unwrap_err();
        assert!(matches!(&error, Error::NoTool { package: "g++", .. }), "{error}");
        assert!(error.to_string().contains("apt-get install g++"));
    }

    #[test]
    fn a_failure_keeps_the_command_and_its_last_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 100 >&2; echo the reason >&2; exit 3"]);
        let message = run(&mut command, "compiling a.c", "gcc").unwrap_err().to_string();
        assert!(message.contains("compiling a.c failed") && message.contains("the reason"), "{message}");
        assert!(message.contains("exit 3") && !message.contains("\n50\n"), "{message}");
    }
}
