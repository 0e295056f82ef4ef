//! Messages in the log of a command on standard error: warnings and errors, without notes.

use heaptoll_report::format::printable;

/// Messages by their kind, each in one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logged {
    /// `warning:`.
    pub warnings: Vec<String>,
    /// `error:`.
    pub errors: Vec<String>,
}

impl Logged {
    /// Parses a log. Lines without a label continue the message before; those before the first are a program's own
    /// output, and left out.
    pub fn of(log: &str) -> Logged {
        let mut messages = Logged::default();
        let mut open: Option<(bool, String)> = None;
        let mut close = |open: &mut Option<(bool, String)>| {
            if let Some((is_error, text)) = open.take() {
                let list = if is_error { &mut messages.errors } else { &mut messages.warnings };
                if !list.contains(&text) {
                    list.push(text);
                }
            }
        };
        for line in log.lines() {
            if let Some(text) = line.strip_prefix("warning: ") {
                close(&mut open);
                open = Some((false, printable(text)));
            } else if let Some(text) = line.strip_prefix("error: ") {
                close(&mut open);
                open = Some((true, printable(text)));
            } else if line.starts_with("note: ") {
                close(&mut open);
            } else if let Some((_, text)) = &mut open {
                text.push(' ');
                text.push_str(&printable(line.trim()));
            }
        }
        close(&mut open);
        messages
    }

    /// Why it ended, in a sentence.
    pub fn reason(&self) -> Option<&str> {
        self.errors.last().or(self.warnings.last()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_several_lines_are_one_and_notes_none() {
        let messages = Logged::of(
            "own words\nwarning: a\nnote: wrote x\nerror: nothing is left:\n  lea on ls: refused\nnote: b\nstray\nwarning: a\n",
        );
        assert_eq!(messages.warnings, ["a"]);
        assert_eq!(messages.errors, ["nothing is left: lea on ls: refused"]);
        assert_eq!(messages.reason(), Some("nothing is left: lea on ls: refused"));
        assert_eq!(Logged::of("").reason(), None);
    }

    #[test]
    fn what_steers_a_terminal_is_made_harmless() {
        assert!(!Logged::of("warning: \u{1b}[2J").warnings[0].contains('\u{1b}'));
    }
}
