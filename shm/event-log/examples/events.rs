//! Makes an events file, or prints one: `events create FILE BYTES`, `events show FILE`.

use std::path::Path;
use std::process::ExitCode;

use heaptoll_event_log::{EventsError, EventsFile};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments_text: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments_text[..] {
        ["create", path, limit] if limit.parse::<u64>().is_ok() => {
            EventsFile::create(Path::new(path), limit.parse().unwrap_or(0)).map(|_| ())
        }
        ["show", path] => show(Path::new(path)),
        _ => {
            eprintln!("usage: events create FILE BYTES | events show FILE");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("events: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show(path: &Path) -> Result<(), EventsError> {
    let file = EventsFile::open(path)?;
    for process in file.read()? {
        println!(
            "{} {}: {} requests, {} collections, {} collectors observed, {} not",
            process.pid,
            process.exe,
            process.requests.len(),
            process.collections.len(),
            process.observed,
            process.unobserved
        );
        let mut times: Vec<u64> =
            process.requests.iter().map(|request| request.end_ns - request.start_ns).collect();
        times.sort_unstable();
        if let (Some(shortest), Some(longest)) = (times.first(), times.last()) {
            let at = |part: usize| times[(times.len() - 1) * part / 100];
            println!(
                "  requests take {shortest} .. {longest} ns, median {} ns, 99 % within {} ns",
                at(50),
                at(99)
            );
        }
        if let (Some(first), Some(last)) = (process.collections.first(), process.collections.last()) {
            println!(
                "  collections {} .. {}, {} bytes live at the last",
                first.number, last.number, last.live_bytes
            );
        }
    }
    let lost = file.lost()?;
    if !lost.is_none() {
        println!(
            "lost: {} requests, {} collections, {} processes",
            lost.requests, lost.collections, lost.processes
        );
    }
    Ok(())
}
