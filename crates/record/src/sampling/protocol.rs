//! What goes over the socket: a word and the end of a line from the client, and in answer a line, `ok` with the lengths of
//! the parts that follow, or `error` and why.

use std::io::{self, Read, Write};

/// Bytes of a line at most.
const LINE: usize = 1024;
/// Bytes of an answer's part at most: a profile of all call stacks that a layer keeps has less.
const PART: usize = 1 << 30;

/// What a client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// The layers sample from now on.
    Start,
    /// They sample no longer.
    Stop,
    /// The profile so far.
    Dump,
    /// Whether they sample, and how much there is.
    Status,
}

impl Command {
    const ALL: [(Command, &'static str); 4] = [
        (Command::Start, "start"),
        (Command::Stop, "stop"),
        (Command::Dump, "dump"),
        (Command::Status, "status"),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Command::ALL.iter().find(|(command, _)| *command == self).map_or("", |(_, word)| word)
    }

    fn of_word(word: &str) -> Option<Command> {
        Command::ALL.iter().find(|(_, known)| *known == word).map(|(command, _)| *command)
    }
}

/// What the client gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// For the user.
    pub text: String,
    /// The profile; empty where none was requested.
    pub profile: Vec<u8>,
}

/// Reads a line, without its end.
fn line(from: &mut impl Read) -> io::Result<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while text.len() < LINE {
        from.read_exact(&mut byte)?;
        if byte[0] == b'\n' {
            return String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into());
        }
        text.push(byte[0]);
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Writes a request.
pub fn write_command(command: Command, to: &mut impl Write) -> io::Result<()> {
    to.write_all(format!("{}\n", command.word()).as_bytes())
}

/// Reads a request; `None`: it is none that this version knows.
pub fn read_command(from: &mut impl Read) -> io::Result<Option<Command>> {
    Ok(Command::of_word(&line(from)?))
}

/// Writes an answer, or why there is none.
pub fn write_answer(answer: Result<&Answer, &str>, to: &mut impl Write) -> io::Result<()> {
    match answer {
        Ok(answer) => {
            to.write_all(format!("ok {} {}\n", answer.text.len(), answer.profile.len()).as_bytes())?;
            to.write_all(answer.text.as_bytes())?;
            to.write_all(&answer.profile)
        }
        Err(why) => {
            let why: String =
                why.chars().filter(|character| !character.is_control()).take(LINE / 8).collect();
            to.write_all(format!("error {why}\n").as_bytes())
        }
    }
}

/// Reads an answer, or why there is none.
pub fn read_answer(from: &mut impl Read) -> io::Result<Result<Answer, String>> {
    let head = line(from)?;
    if let Some(why) = head.strip_prefix("error ") {
        return Ok(Err(why.to_owned()));
    }
    let lengths = head.strip_prefix("ok ").and_then(|rest| rest.split_once(' '));
    let lengths = lengths.and_then(|(text, profile)| Some((text.parse().ok()?, profile.parse().ok()?)));
    let Some((text, profile)) = lengths else { return Err(io::ErrorKind::InvalidData.into()) };
    let mut part = |length: usize| {
        let mut bytes = Vec::new();
        let read = from.take(length.min(PART) as u64).read_to_end(&mut bytes)?;
        if read == length { Ok(bytes) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    };
    let text = String::from_utf8_lossy(&part(text)?).into_owned();
    Ok(Ok(Answer { text, profile: part(profile)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (command, word) in Command::ALL {
            let mut bytes = Vec::new();
            write_command(command, &mut bytes).expect("writes");
            assert_eq!(bytes, format!("{word}\n").as_bytes());
            assert_eq!(read_command(&mut &bytes[..]).expect("reads"), Some(command));
        }
        let answer = Answer { text: "a\nb".into(), profile: vec![0, 10, 255] };
        let mut bytes = Vec::new();
        write_answer(Ok(&answer), &mut bytes).expect("writes");
        assert_eq!(read_answer(&mut &bytes[..]).expect("reads"), Ok(answer));
        let mut bytes = Vec::new();
        write_answer(Err("no\nspace"), &mut bytes).expect("writes");
        assert_eq!(read_answer(&mut &bytes[..]).expect("reads"), Err("nospace".into()));
    }

    #[test]
    fn what_is_no_request_or_answer_is_refused() {
        assert_eq!(read_command(&mut &b"leave\n"[..]).expect("a line"), None);
        assert!(read_command(&mut &b"start"[..]).is_err(), "it ends early");
        assert!(read_command(&mut &[b'x'; 5000][..]).is_err(), "no end");
        assert!(read_command(&mut &b"\xff\n"[..]).is_err());
        for text in ["ok 1\n", "ok 5 0\nabc", "yes\n", "ok 18446744073709551615 0\nabc", ""] {
            assert!(read_answer(&mut text.as_bytes()).is_err(), "{text}");
        }
    }
}
