//! Prints the proof or the refusal for one command: `preflight [-l LAYER]... [-m OBJECT]... [-t SECONDS] COMMAND...`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heaptoll_preflight::{COUNT_LAYER, Request, find_count_layer, preflight};

fn main() -> std::process::ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    let mut request = Request {
        command: Vec::new(),
        environment: std::env::vars_os().collect(),
        directory: None,
        stdin: None,
        layers: Vec::new(),
        preload: Vec::new(),
        count_layer: find_count_layer().unwrap_or_else(|| COUNT_LAYER.into()),
        limit: Duration::from_secs(10),
        watch: None,
        cancel: Arc::new(AtomicBool::new(false)),
        hurry: None,
    };
    while let Some(word) = words.next() {
        if word == "-m" {
            request.preload.extend(words.next().map(Into::into));
        } else if word == "-l" {
            request.layers.extend(words.next().map(Into::into));
        } else if word == "-t" {
            let seconds = words.next().and_then(|w| w.to_str()?.parse().ok());
            request.limit = Duration::from_secs_f64(seconds.unwrap_or(10.0));
        } else {
            request.command.push(word);
            request.command.extend(words.by_ref());
        }
    }
    match preflight(&request) {
        Ok(proof) => {
            println!("{proof:#?}");
            std::process::ExitCode::SUCCESS
        }
        Err(refusal) => {
            eprintln!("{refusal}");
            std::process::ExitCode::FAILURE
        }
    }
}
