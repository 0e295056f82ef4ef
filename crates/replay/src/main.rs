//! The driver of a replay: a process with a manager preloaded, in which malloc serves the trace and nothing else.
//!
//! Its own memory comes from mmap, by a global allocator of its own. What malloc serves in addition to the trace is
//! what the loader and the C library request: a handful of calls before the first, and two or three for each further
//! thread.
//!
//! Started by the tool: `heaptoll-replay PROGRAM JOB ANSWER`, descriptors all three.

mod driver;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::process::ExitCode;

use heaptoll_replay::job::{Answer, Job};

#[global_allocator]
static OWN: driver::own_memory::OwnMemory = driver::own_memory::OwnMemory::new();

fn main() -> ExitCode {
    let descriptors: Vec<RawFd> =
        std::env::args().skip(1).filter_map(|word| word.parse().ok()).filter(|number| *number > 2).collect();
    let &[program, job, answer] = descriptors.as_slice() else {
        eprintln!("heaptoll-replay: started by heaptoll trace replay, not by hand");
        return ExitCode::from(2);
    };
    // SAFETY: the tool hands these three descriptors over, and nothing else in this process uses them.
    let (program, mut job, mut answer) =
        unsafe { (File::from_raw_fd(program), File::from_raw_fd(job), File::from_raw_fd(answer)) };
    let mut text = String::new();
    let request = job
        .rewind()
        .and_then(|()| job.read_to_string(&mut text))
        .and_then(|_| serde_json::from_str::<Job>(&text).map_err(std::io::Error::from));
    drop(text);
    let done = match request {
        Ok(request) => driver::drive(request, program),
        Err(error) => Err(format!("the driver cannot read its task: {error}")),
    };
    let answered = match done {
        Ok(outcome) => Answer::Done(Box::new(outcome)),
        Err(why) => Answer::Failed(why),
    };
    let bytes = serde_json::to_vec(&answered).map_err(std::io::Error::from);
    // A tool that is gone needs no answer. Memory in use is not given back: the manager's exit is not measured.
    let code = i32::from(bytes.and_then(|bytes| answer.write_all(&bytes)).is_err());
    // SAFETY: _exit takes a plain number; threads that still run end with the process.
    unsafe { libc::_exit(code) }
}
