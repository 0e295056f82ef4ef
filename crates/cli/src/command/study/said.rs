//! What a command said on standard error: warnings and errors, without notes.

use heaptoll_report::format::printable;

/// Messages by their kind, each in one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// `warning:`.
    pub warnings: Vec<String>,
    /// `error:`.
    pub errors: Vec<String>,
}

impl Said {
    /// Of the text of a log. Lines without a label go on with the message before; those before the first are a
    /// program's own words, and left out.
    pub fn of(log: &str) -> Said {
        let mut said = Said::default();
        let mut open: Option<(bool, String)> = None;
        let mut close = |open: &mut Option<(bool, String)>| {
            if let Some((is_error, text)) = open.take() {
                let list = if is_error { &mut said.errors } else { &mut said.warnings };
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
        said
    }

    /// What it ended with, in a sentence.
    pub fn reason(&self) -> Option<&str> {
        self.errors.last().or(self.warnings.last()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_several_lines_are_one_and_notes_none() {
        let said = Said::of(
            "own words\nwarning: a\nnote: wrote x\nerror: nothing is left:\n  lea on ls: refused\nnote: b\nstray\nwarning: a\n",
        );
        assert_eq!(said.warnings, ["a"]);
        assert_eq!(said.errors, ["nothing is left: lea on ls: refused"]);
        assert_eq!(said.reason(), Some("nothing is left: lea on ls: refused"));
        assert_eq!(Said::of("").reason(), None);
    }

    #[test]
    fn what_steers_a_terminal_is_made_harmless() {
        assert!(!Said::of("warning: \u{1b}[2J").warnings[0].contains('\u{1b}'));
    }
}
