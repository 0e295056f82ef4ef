//! Call stacks as they are told: addresses without names.

use std::collections::HashMap;

use heaptoll_trace::{Frame, Site, Sites};

/// The call stacks of one process.
#[derive(Debug, Default)]
pub struct Symbols {
    sites: Sites,
    numbers: HashMap<u64, u32>,
}

impl Symbols {
    /// Of process `pid`.
    pub fn new(_pid: i32) -> Symbols {
        Symbols::default()
    }

    /// A stack: return addresses, innermost first.
    pub fn define(&mut self, site: u32, frames: &[u64]) {
        let index = site as usize;
        if self.sites.sites.len() <= index {
            self.sites.sites.resize_with(index + 1, Site::default);
        }
        let frames = frames.iter().map(|&offset| {
            *self.numbers.entry(offset).or_insert_with(|| {
                self.sites.frames.push(Frame { offset, ..Frame::default() });
                self.sites.frames.len() as u32 - 1
            })
        });
        self.sites.sites[index].frames = frames.collect();
    }

    /// All of them.
    pub fn finish(self) -> Sites {
        self.sites
    }
}
