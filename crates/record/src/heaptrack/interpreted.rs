//! A recording as `heaptrack_interpret` leaves it: with names, and without the addresses of objects. An object is one of
//! its size and call stack; which of several is freed is not there.

use heaptoll_trace::{EventKind, Output, Sites, Writer};

use crate::heaptrack::budget::{Budget, Exceeded};
use crate::heaptrack::code::CodeTable;
use crate::heaptrack::event::{Defect, Tally, call};
use crate::heaptrack::fields::Fields;
use crate::heaptrack::stacks::{Site, Stacks};

/// Objects of one size and call stack.
#[derive(Debug)]
struct Group {
    size: u64,
    site: u32,
    /// Slots of those that are live, the newest last.
    live: Vec<u32>,
}

/// The state of reading one.
#[derive(Debug, Default)]
pub struct Interpreted {
    code: CodeTable,
    stacks: Stacks,
    /// By number of the call stack, from 1: its node.
    nodes: Vec<u32>,
    groups: Vec<Group>,
    /// Slots so far.
    slots: u32,
}

/// Bytes that the trace's writer takes of a slot, its spare capacity included.
const EACH_SLOT: usize = 16;

impl Interpreted {
    /// A line that is no event; whether it belongs here.
    pub fn table(&mut self, letter: u8, fields: Fields<'_>, budget: &mut Budget) -> Result<bool, Defect> {
        let mut fields = fields;
        match letter {
            b's' => {
                let text = fields.last_text().ok_or(Defect::Line("its text is shorter than its length"))?;
                self.code.text(text, budget)?;
            }
            b'i' => {
                self.code.address(fields, budget).ok_or(Defect::Line("an address with unknown texts"))??
            }
            b't' => {
                let (code, caller) = (fields.hex(), fields.hex32());
                let (Some(code), Some(caller)) =
                    (code.filter(|&code| code == 0 || self.code.has(code)), caller)
                else {
                    return Err(Defect::Line("a call of unknown code"));
                };
                self.stacks
                    .push(code, caller, budget)
                    .ok_or(Defect::Line("a call of an unknown caller"))??;
            }
            b'a' => self.group(fields, budget)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn group(&mut self, mut fields: Fields<'_>, budget: &mut Budget) -> Result<(), Defect> {
        let (Some(size), Some(node)) = (fields.hex(), fields.hex32()) else {
            return Err(Defect::Line("an allocation without size or call stack"));
        };
        let site = match self.stacks.site(node).ok_or(Defect::Line("an unknown call stack"))? {
            Site::Known(site) => site,
            Site::New(site) => {
                budget.grow(&mut self.nodes, 1)?;
                self.nodes.push(node);
                site
            }
        };
        budget.grow(&mut self.groups, 1)?;
        self.groups.push(Group { size, site, live: Vec::new() });
        Ok(())
    }

    fn known(&mut self, mut fields: Fields<'_>) -> Result<&mut Group, Defect> {
        let number = fields.hex().and_then(|number| usize::try_from(number).ok());
        number.and_then(|number| self.groups.get_mut(number)).ok_or(Defect::Line("an unknown allocation"))
    }

    /// An object is made.
    pub fn allocate<W: Output>(
        &mut self,
        fields: Fields<'_>,
        writer: &mut Writer<W>,
        budget: &mut Budget,
    ) -> Result<(), Defect> {
        let group = self.known(fields)?;
        budget.grow(&mut group.live, 1)?;
        let slot = writer.allocate(&call(group.size, group.site))?;
        group.live.push(slot);
        if slot >= self.slots {
            self.slots = slot + 1;
            budget.take(EACH_SLOT)?;
        }
        Ok(())
    }

    /// The newest object of a group is freed.
    pub fn free<W: Output>(
        &mut self,
        fields: Fields<'_>,
        writer: &mut Writer<W>,
        tally: &mut Tally,
    ) -> Result<(), Defect> {
        match self.known(fields)?.live.pop() {
            Some(slot) => writer.free(slot, EventKind::Free, 0, 0)?,
            None => {
                tally.unknown_frees += 1;
                writer.note(EventKind::Foreign, &call(0, 0))?;
            }
        }
        Ok(())
    }

    /// The call stacks.
    pub fn sites(&self, after_call: u64, budget: &mut Budget) -> Result<Sites, Exceeded> {
        self.code.sites(&self.stacks, &self.nodes, after_call, budget)
    }
}
