//! Progress where standard error is no terminal: a line every ten seconds instead of a bar.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar};

use crate::terminal;

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(10);
/// A message with this text gives the time left itself.
const LEFT: &str = " left";

/// A thread that writes what a hidden bar would show. It ends when this is dropped.
pub struct Lines {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Lines {
    /// Lines for a hidden bar; nothing for one that a terminal shows.
    pub fn of(bar: &ProgressBar) -> Lines {
        if bar.is_hidden() { Lines::every(EVERY, bar, terminal::note) } else { Lines { thread: None } }
    }

    fn every(pause: Duration, bar: &ProgressBar, write: impl Fn(&str) + Send + 'static) -> Lines {
        let (end, ended) = channel();
        let bar = bar.clone();
        let tick = move || {
            let mut last = String::new();
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) && !bar.is_finished() {
                let line = line(bar.position(), bar.length(), &bar.message(), bar.elapsed());
                if line != last {
                    write(&line);
                    last = line;
                }
            }
        };
        // Without a thread there are no lines, and nothing else is lost.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(tick).ok();
        Lines { thread: thread.map(|thread| (end, thread)) }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

/// `12/110 done, 3 minutes left, now lua under glibc`.
fn line(done: u64, of: Option<u64>, message: &str, elapsed: Duration) -> String {
    let Some(of) = of.filter(|of| *of > 0) else { return message.to_owned() };
    let left = match (message.contains(LEFT), done) {
        (false, 1..) if done < of => {
            let left = elapsed.mul_f64((of - done) as f64 / done as f64);
            format!("about {} left, ", HumanDuration(Duration::from_secs(left.as_secs() + 1)))
        }
        _ => String::new(),
    };
    format!("{done}/{of} done, {left}{message}")
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_hidden_bar_becomes_lines() {
        let bar = ProgressBar::hidden();
        bar.set_length(8);
        bar.set_position(2);
        bar.set_message("now a under b");
        let (write, lines) = channel();
        let write = Mutex::new(write);
        let written = Lines::every(Duration::from_millis(1), &bar, move |line: &str| {
            let _ = write.lock().map(|write| write.send(line.to_owned()));
        });
        for now in ["now a under b", "now b under a"] {
            bar.set_message(now);
            let next = || lines.recv_timeout(Duration::from_secs(120)).expect("a line and another");
            let line = std::iter::repeat_with(next).find(|line| line.ends_with(now)).expect("it is endless");
            assert!(line.starts_with("2/8 done, about ") && line.contains("left, "), "{line}");
        }
        drop(written);
        let all: Vec<String> = lines.into_iter().collect();
        assert!(all.windows(2).all(|two| two[0] != two[1]), "one line twice: {all:?}");
    }

    #[test]
    fn the_time_left_is_computed_once() {
        let minute = Duration::from_secs(60);
        assert_eq!(line(3, Some(9), "5 minutes left, now x", minute), "3/9 done, 5 minutes left, now x");
        assert_eq!(line(3, Some(9), "now x", minute), "3/9 done, about 2 minutes left, now x");
        assert_eq!(line(0, Some(9), "now x", minute), "0/9 done, now x");
        assert_eq!(line(4, None, "40 million instructions", minute), "40 million instructions");
    }
}
