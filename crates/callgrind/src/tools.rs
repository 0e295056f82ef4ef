//! The compilers and other tools of the build, and how they are run: a failing command becomes an error that holds
//! the command and the end of what it wrote; a missing one names the Debian package that has it.

use std::process::{Command, Stdio};

use crate::error::Error;

/// The language of a translation unit: which compiler driver takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C, and assembly that needs only the preprocessor.
    C,
    /// C++.
    Cxx,
}

/// How many lines of a failing tool's output are kept.
const KEPT: usize = 40;

/// The C and C++ compiler drivers.
#[derive(Debug, Clone)]
pub struct Compilers {
    c: Vec<String>,
    cxx: Vec<String>,
    /// The first line of the C compiler's `--version`.
    pub version: String,
}

impl Compilers {
    /// Those of the environment (`CC`, `CXX`; a wrapper in front is allowed), else `cc` and `c++`. The C++ one is only
    /// needed when `cxx` is set.
    ///
    /// # Errors
    /// [`Error::NoTool`] when one is not installed.
    pub fn find(cxx: bool) -> Result<Compilers, Error> {
        let words = |variable: &str, default: &str| -> Vec<String> {
            let value = std::env::var(variable).unwrap_or_default();
            let words: Vec<String> = value.split_whitespace().map(str::to_string).collect();
            if words.is_empty() { vec![default.to_string()] } else { words }
        };
        let (c, plus) = (words("CC", "cc"), words("CXX", "c++"));
        let version = version_line(&c, "gcc")?;
        if cxx {
            version_line(&plus, "g++")?;
        }
        Ok(Compilers { c, cxx: plus, version })
    }

    /// A command that runs the driver of a language.
    pub fn driver(&self, language: Language) -> Command {
        let words = self.command_line(language);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// The driver's command line, for `configure`.
    pub fn command_line(&self, language: Language) -> &[String] {
        match language {
            Language::C => &self.c,
            Language::Cxx => &self.cxx,
        }
    }
}

fn version_line(words: &[String], package: &'static str) -> Result<String, Error> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg("--version");
    let text = run(&mut command, &format!("reading the version of {}", words.join(" ")), package)?;
    Ok(text.lines().next().unwrap_or_default().to_string())
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
