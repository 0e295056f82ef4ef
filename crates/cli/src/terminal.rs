//! The terminal: whether it takes colour, how wide it is, and messages on it.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use heaptoll_report::format::printable_lines;
use heaptoll_report::terminal::Style;

use heaptoll_command::failure::Failure;

fn wants_no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// How to write tables to standard output.
pub fn style() -> Style {
    style_of(&std::io::stdout())
}

/// How to write tables to a stream.
pub fn style_of(stream: &(impl IsTerminal + AsFd)) -> Style {
    let terminal = stream.is_terminal();
    let columns = || std::env::var("COLUMNS").ok()?.parse::<u16>().ok();
    Style {
        color: terminal && !wants_no_colour(),
        width: if terminal { width(stream).or_else(columns) } else { columns() },
        unicode: is_utf8(),
    }
}

/// Columns of the terminal on a stream.
fn width(stream: &impl AsFd) -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}

/// Whether the locale speaks UTF-8; unset counts as yes, as most terminals do today.
fn is_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    set.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// The text with a backslash before each line that GitHub's or Azure's runners would take for a command: names and
/// messages in it may be those of a pull request's program.
fn without_runner_commands(text: &str) -> Cow<'_, str> {
    let commands =
        |line: &str| ["::", "##[", "##vso["].iter().any(|start| line.trim_start().starts_with(start));
    if !text.lines().any(commands) {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| if commands(line) { format!("\\{line}") } else { line.to_owned() };
    Cow::Owned(text.split_inclusive('\n').map(line).collect())
}

/// Whether standard output is for a file that an option names.
static IS_RESERVED: AtomicBool = AtomicBool::new(false);

/// From now on results are not printed: standard output is for [`print_file`] alone.
pub fn reserve_output() {
    IS_RESERVED.store(true, Ordering::Relaxed);
}

/// Whether standard output is for a file that an option names.
pub fn is_output_reserved() -> bool {
    IS_RESERVED.load(Ordering::Relaxed)
}

/// Writes a result, unless standard output is for a file.
///
/// # Errors
/// Standard output is full. A reader that has gone (`| head`) is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    if is_output_reserved() {
        return Ok(());
    }
    match write(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(crate::exit::cannot_print),
    }
}

/// Writes a file whose name is `-`.
///
/// # Errors
/// Standard output is full, or its reader has gone: what it has is no whole file.
pub fn print_file(text: &str) -> Result<(), Failure> {
    write(text).map_err(crate::exit::cannot_print)
}

fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(without_runner_commands(text).as_bytes())?;
    out.flush()
}

/// Writes a result on standard error, where standard output is a program's.
pub fn print_to_errors(text: &str) {
    // Nothing can be done when standard error itself is gone.
    let _ = std::io::stderr().lock().write_all(without_runner_commands(text).as_bytes());
}

fn print_labelled(label: &str, colour: &str, text: &str) {
    let mut err = std::io::stderr().lock();
    let coloured = err.is_terminal() && !wants_no_colour();
    let label = if coloured { format!("\x1b[1;{colour}m{label}\x1b[0m") } else { label.to_string() };
    let text = without_runner_commands(&printable_lines(text)).into_owned();
    // Nothing can be done when standard error itself is gone.
    let _ = writeln!(err, "{label} {text}");
}

/// An error, on standard error.
pub fn error(text: &str) {
    print_labelled("error:", "31", text);
}

/// A warning, on standard error.
pub fn warning(text: &str) {
    print_labelled("warning:", "33", text);
}

/// A remark, on standard error.
pub fn note(text: &str) {
    print_labelled("note:", "36", text);
}

/// The command that a user may want next, on standard error.
pub fn next(command: &str) {
    print_labelled("next:", "36", command);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symbols and names of a pull request's programs were commands to GitHub's runner.
    #[test]
    fn no_line_is_a_command_to_a_runner() {
        let text = "first\n  ::error::broken\n##[group]x\nlast :: word\n";
        assert_eq!(without_runner_commands(text), "first\n\\  ::error::broken\n\\##[group]x\nlast :: word\n");
        assert!(matches!(without_runner_commands("plain\n"), Cow::Borrowed(_)));
    }
}
