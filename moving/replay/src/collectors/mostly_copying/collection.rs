//! A collection: promotion of what roots lead to, copies of what that leads to.

use super::{FREE, MostlyCopying, Page, forwarding};
use crate::collectors::object;
use crate::collectors::pages::PAGE_BYTES;
use crate::collectors::pause::{Pause, verify};
use crate::collectors::roots::{forget_dead, hidden, roots};

/// Pages of the next space in the order in which they came into it, each with where its scan goes on.
#[derive(Debug)]
struct Queue {
    pages: Vec<(usize, usize)>,
    next: u32,
}

impl MostlyCopying {
    /// Collects.
    pub(super) fn collect(&mut self) {
        let pause = Pause::begin(&mut self.world, self.pages.used());
        // After 2^32 collections a number would be used again: they would take years.
        let mut queue = Queue { pages: Vec::new(), next: self.space.wrapping_add(1).max(FREE + 1) };
        self.open = None;
        for root in roots(&mut self.world) {
            self.promote(root, &mut queue);
        }
        self.scan(&mut queue);
        let (pages, map) = (&self.pages, &self.map);
        // SAFETY: addresses in the table are those of objects, which may have been copied.
        let hidden = hidden(&mut self.world, |address| unsafe {
            map[pages.number(address)].space == queue.next || forwarding::new_address(address).is_some()
        });
        // Pages that copies have left cannot stay as they are; no word leads to these objects, so they can move.
        for object in hidden {
            // SAFETY: it is an object of the old space.
            unsafe { self.forward(object, &mut queue) };
        }
        self.scan(&mut queue);
        self.forget(queue.next);
        self.space = queue.next;
        self.world.record.full += 1;
        pause.end(&mut self.world, &mut self.cpu_ns);
        verify(self);
    }

    /// Takes the page with an object into the next space, with all that is on it.
    fn promote(&mut self, address: usize, queue: &mut Queue) {
        let number = self.pages.number(address);
        if self.map[number].space != queue.next {
            self.map[number].space = queue.next;
            queue.pages.push((number, 0));
        }
    }

    /// Scans the pages of the next space until they lead to no other.
    fn scan(&mut self, queue: &mut Queue) {
        let mut at = 0;
        while let Some(&(number, from)) = queue.pages.get(at) {
            let (begin, mut offset) = (self.pages.address(number), from);
            while offset < self.map[number].filled as usize {
                // SAFETY: objects follow each other to where the page is filled; those of the next space are not
                // forwarded.
                offset += unsafe {
                    self.scan_object(begin + offset, queue);
                    object::header(begin + offset).total_bytes()
                };
            }
            at += 1;
            // Copies are still added to the open page: it goes to the end, until it gains no more.
            if self.open == Some(number) && (from < offset || at < queue.pages.len()) {
                queue.pages.push((number, offset));
            }
        }
        // What is open is scanned from here on, if hidden objects lead to more.
        let open = self.open.map(|number| (number, self.map[number].filled as usize));
        queue.pages = open.into_iter().collect();
    }

    /// # Safety
    /// `address` is that of an object of the next space.
    unsafe fn scan_object(&mut self, address: usize, queue: &mut Queue) {
        // SAFETY: the precondition of this function; a word holds 0 or an object of either space.
        unsafe {
            for slot in object::slots(address) {
                let to = slot.read();
                if to != 0 {
                    slot.write(self.forward(to, queue));
                }
            }
        }
    }

    /// Where an object is in the next space, into which it is copied unless it is there.
    ///
    /// # Safety
    /// `address` is that of an object of either space.
    unsafe fn forward(&mut self, address: usize, queue: &mut Queue) -> usize {
        let Page { space, filled } = self.map[self.pages.number(address)];
        if space == queue.next {
            return address;
        }
        if filled as usize > PAGE_BYTES {
            self.promote(address, queue);
            return address;
        }
        // SAFETY: the precondition of this function; the copy's bytes are fresh.
        unsafe {
            if let Some(to) = forwarding::new_address(address) {
                return to;
            }
            let bytes = object::header(address).total_bytes();
            let to = self.allocate_copy(bytes, queue);
            forwarding::copy(address, to, bytes);
            self.copied.bytes += bytes as u64;
            self.copied.objects += 1;
            to
        }
    }

    fn allocate_copy(&mut self, bytes: usize, queue: &mut Queue) -> usize {
        if let Some(address) = self.bump(bytes) {
            return address;
        }
        let opened = self.open_page(queue.next);
        // Copies may lie less densely than the originals: then the heap is too small, and the replay ends.
        self.overrun |= self.pages.used() > self.pages.limit();
        match (opened, self.bump(bytes)) {
            (Some(number), Some(address)) => {
                queue.pages.push((number, 0));
                address
            }
            // A page at least half full is left for each that is opened, and thrice the heap is reserved.
            _ => unreachable!("addresses for copies are reserved"),
        }
    }

    /// Frees what is left of the old space.
    fn forget(&mut self, next: u32) {
        let (pages, map) = (&self.pages, &self.map);
        forget_dead(&mut self.world, |address| match map[pages.number(address)].space {
            space if space == next => address,
            // SAFETY: the address is that of an object of the old space, of which no page is used again yet.
            _ => unsafe { forwarding::new_address(address) }.unwrap_or(0),
        });
        for number in 0..self.map.len() {
            let page = self.map[number];
            // Pages after the first of a large object go with it.
            if page.space == FREE || page.space == next || page.filled == 0 {
                continue;
            }
            let count = (page.filled as usize).div_ceil(PAGE_BYTES);
            self.small -= usize::from(page.filled as usize <= PAGE_BYTES);
            self.map[number..number + count].fill(Page::default());
            self.pages.release(number, count);
        }
    }
}
