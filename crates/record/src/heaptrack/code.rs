//! Code of an interpreted recording: an address with its functions, whose names are in a table of texts.

use heaptoll_trace::{Frame, Site, Sites};

use crate::heaptrack::budget::{Budget, Exceeded};
use crate::heaptrack::fields::Fields;
use crate::heaptrack::preamble::lossy;
use crate::heaptrack::stacks::Stacks;

/// A function at a line, by numbers of texts; 0 is none.
#[derive(Debug, Clone, Copy)]
struct Place {
    function: u32,
    file: u32,
    line: u32,
}

/// An address.
#[derive(Debug, Clone, Copy)]
struct Address {
    address: u64,
    module: u32,
    /// Its functions, innermost first: from here in [`CodeTable::places`] to where those of the next begin.
    first: usize,
}

/// All texts and addresses, each numbered from 1 in the order of the file.
#[derive(Debug, Default)]
pub struct CodeTable {
    /// All texts, one behind the other.
    texts: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    addresses: Vec<Address>,
    places: Vec<Place>,
}

impl CodeTable {
    /// Another text.
    pub fn text(&mut self, bytes: &[u8], budget: &mut Budget) -> Result<(), Exceeded> {
        let text = lossy(bytes);
        budget.grow(&mut self.texts, text.len())?;
        budget.grow(&mut self.ends, 1)?;
        self.texts.extend_from_slice(text.as_bytes());
        self.ends.push(self.texts.len());
        Ok(())
    }

    /// Another address, from the fields of its line; none where they are not as they are written.
    pub fn address(&mut self, mut fields: Fields<'_>, budget: &mut Budget) -> Option<Result<(), Exceeded>> {
        let address = fields.hex()?;
        if let Err(exceeded) = budget.grow(&mut self.addresses, 1) {
            return Some(Err(exceeded));
        }
        let module = self.known(fields.hex32()?)?;
        let first = self.places.len();
        while let Some(function) = fields.hex32() {
            let (file, line) = match fields.hex32() {
                Some(file) => (file, fields.hex32()?),
                None => (0, 0),
            };
            if let Err(exceeded) = budget.grow(&mut self.places, 1) {
                return Some(Err(exceeded));
            }
            self.places.push(Place { function: self.known(function)?, file: self.known(file)?, line });
        }
        self.addresses.push(Address { address, module, first });
        Some(Ok(()))
    }

    fn known(&self, text: u32) -> Option<u32> {
        (text as usize <= self.ends.len()).then_some(text)
    }

    /// Whether there is an address of this number.
    pub fn has(&self, number: u64) -> bool {
        number >= 1 && number <= self.addresses.len() as u64
    }

    fn shown(&self, text: u32) -> &str {
        let Some(at) = (text as usize).checked_sub(1).filter(|at| *at < self.ends.len()) else { return "" };
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        str::from_utf8(&self.texts[begin..self.ends[at]]).unwrap_or_default()
    }

    /// The call stacks that end at these nodes, the first as number 1. `after_call` is added to addresses.
    pub fn sites(
        &self,
        stacks: &Stacks,
        nodes: &[u32],
        after_call: u64,
        budget: &mut Budget,
    ) -> Result<Sites, Exceeded> {
        let mut sites = Sites { sites: vec![Site::default()], frames: Vec::new() };
        // By address: its first frame, as they are needed.
        let mut first: Vec<Option<(u32, u32)>> = vec![None; self.addresses.len()];
        let mut deeper = None;
        for &node in nodes {
            let (codes, whole) = stacks.codes(node);
            let mut frames = Vec::with_capacity(codes.len());
            for code in codes {
                let Some(at) = usize::try_from(code).ok().and_then(|code| code.checked_sub(1)) else {
                    continue;
                };
                let Some(known) = first.get_mut(at) else { continue };
                let (from, to) = match *known {
                    Some(range) => range,
                    None => *known.insert(self.frames(at, after_call, &mut sites.frames, budget)?),
                };
                budget.take(4 * (to - from) as usize)?;
                frames.extend(from..to);
            }
            if !whole {
                frames.push(*deeper.get_or_insert_with(|| {
                    sites.frames.push(Frame { function: "[deeper frames]".to_owned(), ..Frame::default() });
                    sites.frames.len() as u32 - 1
                }));
            }
            budget.take(size_of::<Site>())?;
            sites.sites.push(Site { frames });
        }
        Ok(sites)
    }

    /// Adds the frames of an address to the table; which they are.
    fn frames(
        &self,
        at: usize,
        after_call: u64,
        frames: &mut Vec<Frame>,
        budget: &mut Budget,
    ) -> Result<(u32, u32), Exceeded> {
        let Address { address, module, first } = self.addresses[at];
        let end = self.addresses.get(at + 1).map_or(self.places.len(), |next| next.first);
        let unknown = [Place { function: 0, file: 0, line: 0 }];
        let places = if first == end { &unknown[..] } else { &self.places[first..end] };
        let from = frames.len() as u32;
        for place in places {
            let line = match (self.shown(place.file), place.line) {
                ("", _) => String::new(),
                (file, 0) => file.to_owned(),
                (file, line) => format!("{file}:{line}"),
            };
            let (object, function) = (self.shown(module).to_owned(), self.shown(place.function).to_owned());
            budget.take(size_of::<Frame>() + object.len() + function.len() + line.len())?;
            frames.push(Frame { object, offset: address.wrapping_add(after_call), function, line });
        }
        Ok((from, frames.len() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, a text of one byte counted as 19 and took 48 and more: a recording of 32 KB took 2.7 GB of a limit of 1 GiB.
    #[test]
    fn tables_of_the_smallest_entries_take_no_more_than_is_allowed() {
        const LIMIT: u64 = 1 << 20;
        let full = |more: &dyn Fn(&mut CodeTable, &mut Budget) -> Result<(), Exceeded>| {
            let (mut table, mut budget) = (CodeTable::default(), Budget::new(LIMIT));
            while more(&mut table, &mut budget).is_ok() {}
            let CodeTable { texts, ends, addresses, places } = &table;
            let taken = texts.capacity()
                + ends.capacity() * size_of::<usize>()
                + addresses.capacity() * size_of::<Address>()
                + places.capacity() * size_of::<Place>();
            assert!((LIMIT / 4..=LIMIT).contains(&(taken as u64)), "{taken}");
        };
        for text in ["", "a", "abcdefghi"] {
            full(&|table, budget| table.text(text.as_bytes(), budget));
        }
        for line in [&b"i 10 0"[..], b"i 10 0 0", b"i 10 0 0 0 1 0 0 2 0 0 3"] {
            full(&|table, budget| {
                let (_, fields) = Fields::of(line, false).expect("a line");
                table.address(fields, budget).expect("an address")
            });
        }
    }
}
