//! Finishes traces on a thread of its own: looking up the names of call stacks takes time, in which the rings of other
//! processes must be drained.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::recorded::Recording;

/// Traces that may wait to be finished, each with the memory that its writer takes.
const MOST: usize = 16;

type Work = Box<dyn FnOnce() -> Recording + Send>;

/// Finishes traces, one after the other, on a thread that starts with the first.
#[derive(Debug, Default)]
pub struct Finisher {
    thread: Option<Thread>,
    waiting: usize,
    /// Those that `push` finished itself, since no thread could take them.
    done: Vec<(bool, Recording)>,
}

#[derive(Debug)]
struct Thread {
    work: Sender<(bool, Work)>,
    done: Receiver<(bool, Recording)>,
    _handle: JoinHandle<()>,
}

impl Thread {
    fn start() -> Option<Thread> {
        let (work, todo) = channel::<(bool, Work)>();
        let (finished, done) = channel();
        let handle = std::thread::Builder::new().name("finisher".into()).spawn(move || {
            for (is_first, work) in todo {
                if finished.send((is_first, work())).is_err() {
                    return;
                }
            }
        });
        Some(Thread { work, done, _handle: handle.ok()? })
    }
}

impl Finisher {
    /// Queues a trace to be finished; `is_first` comes back with the result.
    pub fn push(&mut self, is_first: bool, end: impl FnOnce() -> Recording + Send + 'static) {
        if self.thread.is_none() {
            self.thread = Thread::start();
        }
        let work: Work = Box::new(end);
        let refused = match &self.thread {
            Some(thread) if self.waiting < MOST => {
                thread.work.send((is_first, work)).err().map(|refused| refused.0.1)
            }
            _ => Some(work),
        };
        match refused {
            None => self.waiting += 1,
            Some(work) => self.done.push((is_first, work())),
        }
    }

    /// Traces whose end is being written.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Those that have been finished since the last call, in no order; waits up to `longest` for each.
    pub fn collect(&mut self, longest: Duration) -> Vec<(bool, Recording)> {
        let mut found = std::mem::take(&mut self.done);
        let Some(thread) = &self.thread else { return found };
        while self.waiting > 0 {
            let Ok(next) = thread.done.recv_timeout(longest) else { break };
            self.waiting -= 1;
            found.push(next);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(events: u64) -> Recording {
        Recording {
            path: "t".into(),
            pid: 1,
            exe: "x".into(),
            how: "ended".into(),
            events,
            snapshots: 0,
            bytes: 0,
            lost: 0,
            unseen_frees: 0,
            trouble: None,
        }
    }

    #[test]
    fn all_come_back() {
        let mut finisher = Finisher::default();
        const LONG: Duration = Duration::from_secs(600);
        assert!(finisher.collect(LONG).is_empty());
        for events in 0..100 {
            finisher.push(events == 7, move || {
                std::thread::sleep(std::time::Duration::from_micros(100 * (events % 3)));
                recording(events)
            });
        }
        let mut all = finisher.collect(Duration::ZERO);
        all.extend(finisher.collect(LONG));
        let mut seen: Vec<u64> = all.iter().map(|(_, recording)| recording.events).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<u64>>());
        assert_eq!(all.iter().filter(|(is_first, _)| *is_first).count(), 1);
        assert!(finisher.collect(LONG).is_empty());
        assert_eq!(finisher.waiting(), 0);
    }
}
