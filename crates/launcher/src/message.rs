//! The launcher's two messages: "started, process N" and "ended, with this usage". Lines of text, because both
//! ends are ours, the volume is nothing, and a person with `strace` can read them.

use crate::usage::Usage;

/// How the program's first process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Exit status.
    Exit(i32),
    /// Signal number.
    Signal(i32),
    /// Killed by the launcher at the time limit.
    Timeout,
    /// Killed by the launcher at heaptoll's request (SIGTERM to the launcher).
    Cancelled,
    /// `execve` failed with this errno.
    ExecFailed(i32),
    /// A `prctl`, `fork` or the like failed in the launcher with this errno, before exec.
    SetupFailed(i32),
}

/// One line from the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The program is forked and waits for its gate to open.
    Ready,
    /// The program has been exec'd as this process.
    Started(i32),
    /// Everything is over.
    Ended(Ended, Usage),
}

/// A line that is no message: the launcher died or is of another version.
#[derive(Debug, PartialEq, Eq)]
pub struct MessageError(pub String);

impl std::fmt::Display for MessageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the launcher sent `{}`, which this heaptoll does not understand; reinstall both together",
            self.0
        )
    }
}

impl std::error::Error for MessageError {}

impl std::fmt::Display for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Message::Ready => write!(f, "ready"),
            Message::Started(pid) => write!(f, "started {pid}"),
            Message::Ended(ended, u) => {
                let (word, number) = match ended {
                    Ended::Exit(n) => ("exit", *n),
                    Ended::Signal(n) => ("signal", *n),
                    Ended::Timeout => ("timeout", 0),
                    Ended::Cancelled => ("cancelled", 0),
                    Ended::ExecFailed(n) => ("exec-failed", *n),
                    Ended::SetupFailed(n) => ("setup-failed", *n),
                };
                write!(f, "ended {word} {number} {u}")
            }
        }
    }
}

impl std::str::FromStr for Message {
    type Err = MessageError;

    fn from_str(line: &str) -> Result<Message, MessageError> {
        parse(line).ok_or_else(|| MessageError(line.to_string()))
    }
}

fn parse(line: &str) -> Option<Message> {
    let mut words = line.split_ascii_whitespace();
    match words.next()? {
        "ready" => Some(Message::Ready),
        "started" => Some(Message::Started(words.next()?.parse().ok()?)),
        "ended" => {
            let word = words.next()?;
            let number: i32 = words.next()?.parse().ok()?;
            let ended = match word {
                "exit" => Ended::Exit(number),
                "signal" => Ended::Signal(number),
                "timeout" => Ended::Timeout,
                "cancelled" => Ended::Cancelled,
                "exec-failed" => Ended::ExecFailed(number),
                "setup-failed" => Ended::SetupFailed(number),
                _ => return None,
            };
            Some(Message::Ended(ended, Usage::of_words(words)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_their_line() {
        let usage = Usage { wall_ns: 1, ..Usage::default() };
        for ended in
            [Ended::Exit(3), Ended::Signal(11), Ended::Timeout, Ended::Cancelled, Ended::ExecFailed(2)]
        {
            let message = Message::Ended(ended, usage);
            assert_eq!(message.to_string().parse(), Ok(message));
        }
        assert_eq!("started 42".parse(), Ok(Message::Started(42)));
        assert_eq!(Message::Ready.to_string().parse(), Ok(Message::Ready));
    }

    #[test]
    fn other_lines_are_refused() {
        for line in ["", "ended", "ended exit 0 1 2", "started x", "hello 1"] {
            assert!(line.parse::<Message>().is_err(), "{line}");
        }
    }
}
