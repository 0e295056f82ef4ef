//! The heap at one root point, when everything is marked.

use heaptoll_trace_analysis::graph::objects::Objects;

use super::figures::Cause;
use super::marks::{INTERIOR_ON_STACKS, MAPPING, REGISTER, ROOTS, STACK, STARTS, STATIC, USED};
use super::seen::Seen;

/// Bytes of what one cause keeps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept {
    pub bytes: u64,
    /// Of these, what was unreachable before.
    pub again: u64,
    /// Of these, what the program frees later.
    pub freed_later: u64,
    /// Bytes of that times bytes allocated until its free.
    pub until_free: u128,
}

/// Bytes that a collector frees that honours fewer interior pointers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Interior {
    /// Never touched again.
    pub unused: u64,
    /// Touched later.
    pub used: u64,
}

/// Bytes at a root point.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Point {
    pub live: u64,
    pub used: u64,
    /// Used later, or led to by what is.
    pub required: u64,
    pub reachable: u64,
    /// Used later, and not reachable.
    pub hidden: u64,
    /// By [`Cause::ALL`].
    pub kept: [Kept; Cause::ALL.len()],
    /// By [`super::InteriorRule::ALL`].
    pub interior: [Interior; 2],
}

impl Point {
    /// Kept for certain by a word that is no pointer.
    pub(super) fn at_least(&self) -> u64 {
        self.kept.iter().fold(0, |sum, kept| sum.saturating_add(kept.again))
    }

    /// Kept perhaps by a word that is no pointer.
    pub(super) fn at_most(&self) -> u64 {
        let of = |(cause, kept): (&Cause, &Kept)| match cause {
            Cause::UsedObjects => kept.again,
            _ => kept.bytes,
        };
        Cause::ALL.iter().zip(&self.kept).map(of).fold(0, u64::saturating_add)
    }
}

/// Counts the objects at the root point that began with the event `at`, and keeps which of them were reached.
pub(super) fn count(objects: &mut Objects<Seen>, at: u64, clock_bytes: u64) -> Point {
    let mut point = Point::default();
    objects.for_each(|_, node| {
        point.add(node.size, &node.data, at, clock_bytes);
        let seen = &mut node.data;
        seen.was_at_point = true;
        if seen.marks & ROOTS != 0 {
            seen.unreached_bytes = None;
        } else {
            seen.unreached_bytes.get_or_insert(clock_bytes);
            seen.was_unreached = true;
        }
    });
    point
}

impl Point {
    fn add(&mut self, size: u64, seen: &Seen, at: u64, clock_bytes: u64) {
        let is_reached = seen.marks & ROOTS != 0;
        let is_used = seen.is_used_after(at);
        grow(&mut self.live, size);
        if seen.marks & USED != 0 {
            grow(&mut self.required, size);
        }
        if is_reached {
            grow(&mut self.reachable, size);
        }
        match (is_used, is_reached) {
            (true, true) => grow(&mut self.used, size),
            (true, false) => {
                grow(&mut self.used, size);
                grow(&mut self.hidden, size);
            }
            (false, true) => self.keep(size, seen, clock_bytes),
            (false, false) => {}
        }
        for (interior, mark) in self.interior.iter_mut().zip([INTERIOR_ON_STACKS, STARTS]) {
            if is_reached && seen.marks & mark == 0 {
                grow(if is_used { &mut interior.used } else { &mut interior.unused }, size);
            }
        }
    }

    fn keep(&mut self, size: u64, seen: &Seen, clock_bytes: u64) {
        let kept = &mut self.kept[cause_of(seen.marks) as usize];
        grow(&mut kept.bytes, size);
        if seen.was_unreached && !seen.is_hidden {
            grow(&mut kept.again, size);
        }
        if seen.freed_bytes != u64::MAX {
            grow(&mut kept.freed_later, size);
            let until = seen.freed_bytes.saturating_sub(clock_bytes);
            kept.until_free = kept.until_free.saturating_add(u128::from(size) * u128::from(until));
        }
    }
}

/// Adds bytes. A damaged file may state any size.
fn grow(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}

fn cause_of(marks: u8) -> Cause {
    const STACKS: u8 = REGISTER | STACK;
    match marks & (ROOTS | USED) {
        marks if marks & USED != 0 => Cause::UsedObjects,
        REGISTER => Cause::Registers,
        STACK => Cause::Stacks,
        STACKS => Cause::RegistersAndStacks,
        STATIC => Cause::StaticData,
        MAPPING => Cause::Mappings,
        _ => Cause::Several,
    }
}
