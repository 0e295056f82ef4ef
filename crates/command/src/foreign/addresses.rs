//! Names for profiles that have addresses only, from the files on this machine.

use std::path::PathBuf;
use std::time::SystemTime;

use heaptoll_profile_formats::Mapped;
use heaptoll_profiles::Frame;
use heaptoll_symbols::Symbols;
use heaptoll_trace_analysis::profile::frame_of;

/// The functions at return addresses of a process's memory, innermost first, by the files that lay there: of those that
/// are on this machine, and were not changed after `written_at`.
pub fn frames(mapped: &[Mapped], addresses: &[u64], written_at: SystemTime) -> Vec<Vec<Frame>> {
    let mut symbols = Symbols::elsewhere();
    for file in mapped {
        symbols.mapped(PathBuf::from(&file.path), file.start..file.end, written_at);
    }
    for (site, &address) in (1..).zip(addresses) {
        symbols.define(site, &[address]);
    }
    let sites = symbols.finish();
    let frames = |site: usize| {
        let numbers = sites.sites.get(site).map_or(&[][..], |site| &site.frames);
        let functions = numbers.iter().enumerate().filter_map(|(at, &number)| {
            let frame = sites.frames.get(number as usize)?;
            Some(frame_of(frame, at + 1 < numbers.len()))
        });
        functions.collect()
    };
    (1..=addresses.len()).map(frames).collect()
}
