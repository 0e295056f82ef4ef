//! Marking at a root point: one bit for each way by which an object is found.

use heaptoll_trace::graph::RootKind;
use heaptoll_trace_analysis::graph::objects::Objects;

use super::seen::Seen;

/// The object is used later, or one that is leads to it.
pub(super) const USED: u8 = 1;
/// Found from registers.
pub(super) const REGISTER: u8 = 1 << 1;
/// Found from stacks.
pub(super) const STACK: u8 = 1 << 2;
/// Found from static data.
pub(super) const STATIC: u8 = 1 << 3;
/// Found from other mappings.
pub(super) const MAPPING: u8 = 1 << 4;
/// Found from any root.
pub(super) const ROOTS: u8 = REGISTER | STACK | STATIC | MAPPING;
/// Found by a collector that honours interior pointers in registers and on stacks only.
pub(super) const INTERIOR_ON_STACKS: u8 = 1 << 5;
/// Found by a collector that honours no interior pointers.
pub(super) const STARTS: u8 = 1 << 6;

/// A root of the point that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Root {
    /// The object's.
    pub slot: u32,
    /// Where the word lies.
    pub kind: RootKind,
    /// No word of this kind leads to the object's start.
    pub is_interior: bool,
}

impl Root {
    fn marks(&self) -> u8 {
        let (kind, is_stack) = match self.kind {
            RootKind::Register => (REGISTER, true),
            RootKind::Stack => (STACK, true),
            RootKind::Static => (STATIC, false),
            RootKind::Mapping => (MAPPING, false),
        };
        match (self.is_interior, is_stack) {
            (false, _) => kind | INTERIOR_ON_STACKS | STARTS,
            (true, true) => kind | INTERIOR_ON_STACKS,
            (true, false) => kind,
        }
    }
}

/// Marks everything at the root point that began with the event `at`.
pub(super) fn mark(objects: &mut Objects<Seen>, roots: &[Root], at: u64) {
    let mut open = Vec::new();
    objects.for_each(|slot, node| {
        node.data.marks = 0;
        if node.data.is_used_after(at) {
            node.data.marks = USED;
            open.push(slot);
        }
    });
    for root in roots {
        objects.node_mut(root.slot).data.marks |= root.marks();
        open.push(root.slot);
    }
    let mut found = Vec::new();
    while let Some(slot) = open.pop() {
        let marks = objects.node_mut(slot).data.marks;
        let passed = |is_interior: bool| match is_interior {
            true => marks & !(INTERIOR_ON_STACKS | STARTS),
            false => marks,
        };
        let lead_on =
            objects.targets(slot).filter(|(target, data)| passed(target.is_interior) & !data.marks != 0);
        found.extend(lead_on.map(|(target, _)| (target.slot, passed(target.is_interior))));
        for (slot, passed) in found.drain(..) {
            objects.node_mut(slot).data.marks |= passed;
            open.push(slot);
        }
    }
}

impl Seen {
    /// Whether the program touches it after the event of this number.
    pub(super) fn is_used_after(&self, event: u64) -> bool {
        self.used_until > event
    }
}
