//! Call sites as the tracer names them, as the table of a trace.

use std::collections::HashMap;
use std::path::Path;
use std::time::SystemTime;

use heaptoll_callsites::whole;
use heaptoll_drag::sites::{Codes, KEPT};
use heaptoll_symbols::{functions_at, memory_bytes};
use heaptoll_trace::{Frame, Site, Sites};

/// Collects them.
#[derive(Debug)]
pub(crate) struct SiteNames {
    stacks: Vec<Vec<u64>>,
    pub codes: Codes,
    /// When it began: files that were changed since then may be others than those of the program.
    begun: SystemTime,
}

impl SiteNames {
    pub fn new() -> SiteNames {
        SiteNames { stacks: Vec::new(), codes: Codes::default(), begun: SystemTime::now() }
    }

    pub fn define(&mut self, site: u32, frames: &[u64]) {
        let site = site as usize;
        if site >= KEPT {
            return;
        }
        if site >= self.stacks.len() {
            self.stacks.resize(site + 1, Vec::new());
        }
        self.stacks[site] = frames.to_vec();
    }

    /// The table.
    pub fn table(&self) -> Sites {
        let mut sites = Sites::default();
        let mut numbers: HashMap<u64, Vec<u32>> = HashMap::new();
        let mut memory: HashMap<&str, u64> = HashMap::new();
        for stack in &self.stacks {
            let mut site = Site::default();
            for address in stack {
                let numbers = numbers.entry(*address).or_insert_with(|| {
                    let first = sites.frames.len() as u32;
                    sites.frames.extend(self.frames_at(*address, &mut memory));
                    (first..sites.frames.len() as u32).collect()
                });
                site.frames.extend_from_slice(numbers);
            }
            let code = whole(site.frames.iter().map(|&number| {
                let Frame { function, line, object, offset } = &sites.frames[number as usize];
                heaptoll_callsites::Frame { function, line, object, offset: *offset }
            }));
            site.frames.truncate(code);
            sites.sites.push(site);
        }
        sites
    }

    /// The functions of an address, innermost first. `memory` is that of each object, once it is known.
    fn frames_at<'a>(&'a self, address: u64, memory: &mut HashMap<&'a str, u64>) -> Vec<Frame> {
        let Some(code) = self.codes.get(address) else {
            return vec![Frame { offset: address + 1, ..Frame::default() }];
        };
        // Offsets of a trace are return addresses; the tracer's lie within the calling instruction.
        let offset = if code.object.is_empty() { address } else { code.offset } + 1;
        let frame = |name: &str| {
            let parsed = heaptoll_callsites::Frame::parse(name, offset);
            Frame {
                object: code.object.clone(),
                offset,
                function: parsed.function.to_owned(),
                line: parsed.line.to_owned(),
            }
        };
        if code.names.is_empty() {
            return vec![frame("")];
        }
        let mut frames: Vec<Frame> = code.names.iter().map(|name| frame(name)).collect();
        // Of inlined functions the tracer has bare names, without class and template arguments.
        if frames.len() > 1 {
            let path = Path::new(&code.object);
            let bytes = *memory.entry(&code.object).or_insert_with(|| memory_bytes(path));
            let named = functions_at(path, bytes, offset, self.begun);
            if named.len() == frames.len() {
                let named = frames.iter_mut().zip(named).filter(|(_, function)| !function.is_empty());
                named.for_each(|(frame, function)| frame.function = function);
            }
        }
        frames
    }
}
