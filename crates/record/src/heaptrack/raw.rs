//! A recording as the library in the program writes it: with the addresses of objects, and with those of code for which
//! names are looked up in the files on this machine, as for heaptoll's own recordings.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::SystemTime;

use heaptoll_symbols::Symbols;
use heaptoll_trace::{EventKind, Output, Sites, Writer};

use crate::heaptrack::budget::Budget;
use crate::heaptrack::event::{Defect, Tally, call};
use crate::heaptrack::fields::Fields;
use crate::heaptrack::preamble::lossy;
use crate::heaptrack::stacks::{Site, Stacks};

/// Files that may be loaded: each is searched for every address.
const MODULES_MAX: usize = 1000;
/// A page: the loader begins a file's memory at one.
const PAGE: u64 = 4096;
/// Bytes that a table of addresses takes of an entry, its spare capacity included.
const EACH_OBJECT: usize = 32;

/// The state of reading one.
#[derive(Debug)]
pub struct Raw {
    symbols: Symbols,
    /// Files as they were loaded: all of them are listed again whenever one is added.
    modules: HashSet<(PathBuf, u64, u64)>,
    stacks: Stacks,
    /// By address: the object there.
    live: HashMap<u64, u32>,
    /// Most objects that were live at once.
    most: usize,
    after_call: u64,
    recorded_at: SystemTime,
}

impl Raw {
    /// No lines yet. See [`crate::heaptrack::preamble::Preamble::after_call`]; names are taken from files that are older than
    /// `recorded_at`.
    pub fn new(after_call: u64, recorded_at: SystemTime) -> Raw {
        Raw {
            symbols: Symbols::elsewhere(),
            modules: HashSet::new(),
            stacks: Stacks::default(),
            live: HashMap::new(),
            most: 0,
            after_call,
            recorded_at,
        }
    }

    /// A line that is no event; whether it belongs here.
    pub fn table(
        &mut self,
        letter: u8,
        fields: Fields<'_>,
        exe: &str,
        budget: &mut Budget,
    ) -> Result<bool, Defect> {
        let mut fields = fields;
        match letter {
            b'm' => self.module(fields, exe, budget)?,
            b't' => {
                let (Some(address), Some(caller)) = (fields.hex(), fields.hex32()) else {
                    return Err(Defect::Line("a call without address or caller"));
                };
                self.stacks
                    .push(address, caller, budget)
                    .ok_or(Defect::Line("a call of an unknown caller"))??;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A loaded file, or (`-`) that all follow again.
    fn module(&mut self, mut fields: Fields<'_>, exe: &str, budget: &mut Budget) -> Result<(), Defect> {
        let path = fields.text().ok_or(Defect::Line("a file without a path"))?;
        if path == b"-" {
            return Ok(());
        }
        let path = if path == b"x" { exe.to_owned() } else { lossy(path) };
        let difference = fields.hex().ok_or(Defect::Line("a file without an address"))?;
        let (mut first, mut end) = (u64::MAX, 0);
        while let (Some(address), Some(bytes)) = (fields.hex(), fields.hex()) {
            first = first.min(address & !(PAGE - 1));
            end = end.max(address.saturating_add(bytes));
        }
        // What has no segments is no code.
        if first >= end {
            return Ok(());
        }
        let (start, end) = (difference.wrapping_add(first), difference.wrapping_add(end));
        let path = PathBuf::from(path);
        if self.modules.len() < MODULES_MAX && self.modules.insert((path.clone(), start, end)) {
            budget.take(1024 + 2 * path.as_os_str().len())?;
            self.symbols.object(path, start..end, difference, self.recorded_at);
        }
        Ok(())
    }

    /// An object is made.
    pub fn allocate<W: Output>(
        &mut self,
        mut fields: Fields<'_>,
        writer: &mut Writer<W>,
        tally: &mut Tally,
        budget: &mut Budget,
    ) -> Result<(), Defect> {
        let (Some(size), Some(node), Some(address)) = (fields.hex(), fields.hex32(), fields.hex()) else {
            return Err(Defect::Line("an allocation without size, call stack or address"));
        };
        let site = match self.stacks.site(node).ok_or(Defect::Line("an unknown call stack"))? {
            Site::Known(site) => site,
            Site::New(site) => {
                self.define(site, node, budget)?;
                site
            }
        };
        if let Some(lost) = self.live.remove(&address) {
            tally.unseen_frees += 1;
            writer.free(lost, EventKind::Lost, 0, 0)?;
        }
        let slot = writer.allocate(&call(size, site))?;
        self.live.insert(address, slot);
        if self.live.len() > self.most {
            self.most = self.live.len();
            budget.take(EACH_OBJECT)?;
        }
        Ok(())
    }

    /// Files may be unloaded later, so a call stack is looked up among those that are loaded when it is used first.
    fn define(&mut self, site: u32, node: u32, budget: &mut Budget) -> Result<(), Defect> {
        /// What follows the frames of a stack that has more, as the recording layer writes it.
        const DEEPER: u64 = 1;
        let (mut addresses, whole) = self.stacks.codes(node);
        for address in &mut addresses {
            *address = address.wrapping_add(self.after_call);
        }
        if !whole {
            addresses.push(DEEPER);
        }
        // The stack by numbers of addresses, then with the functions that were inlined, and names.
        budget.take(64 + 64 * addresses.len())?;
        self.symbols.define(site, &addresses);
        Ok(())
    }

    /// An object is freed.
    pub fn free<W: Output>(
        &mut self,
        mut fields: Fields<'_>,
        writer: &mut Writer<W>,
        tally: &mut Tally,
    ) -> Result<(), Defect> {
        let address = fields.hex().ok_or(Defect::Line("a free without an address"))?;
        match self.live.remove(&address) {
            Some(slot) => writer.free(slot, EventKind::Free, 0, 0)?,
            None => {
                tally.unknown_frees += 1;
                writer.note(EventKind::Foreign, &call(0, 0))?;
            }
        }
        Ok(())
    }

    /// The call stacks, with names.
    pub fn sites(self) -> Sites {
        self.symbols.finish()
    }
}
