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
    texts: Vec<Box<str>>,
    addresses: Vec<Address>,
    places: Vec<Place>,
}

impl CodeTable {
    /// Another text.
    pub fn text(&mut self, bytes: &[u8], budget: &mut Budget) -> Result<(), Exceeded> {
        // What is no UTF-8 takes up to three times the bytes.
        budget.take(size_of::<Box<str>>() + 3 * bytes.len())?;
        self.texts.push(lossy(bytes).into());
        Ok(())
    }

    /// Another address, from the fields of its line; none where they are not as they are written.
    pub fn address(&mut self, mut fields: Fields<'_>, budget: &mut Budget) -> Option<Result<(), Exceeded>> {
        let address = fields.hex()?;
        let module = self.known(fields.hex32()?)?;
        let first = self.places.len();
        while let Some(function) = fields.hex32() {
            let (file, line) = match fields.hex32() {
                Some(file) => (file, fields.hex32()?),
                None => (0, 0),
            };
            self.places.push(Place { function: self.known(function)?, file: self.known(file)?, line });
        }
        let places = self.places.len() - first;
        self.addresses.push(Address { address, module, first });
        Some(budget.take(size_of::<Address>() + places * size_of::<Place>()))
    }

    fn known(&self, text: u32) -> Option<u32> {
        (text as usize <= self.texts.len()).then_some(text)
    }

    /// Whether there is an address of this number.
    pub fn has(&self, number: u64) -> bool {
        number >= 1 && number <= self.addresses.len() as u64
    }

    fn shown(&self, text: u32) -> &str {
        (text as usize).checked_sub(1).and_then(|at| self.texts.get(at)).map_or("", |text| text)
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
