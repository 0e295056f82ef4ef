//! Effects of calls of the malloc family on objects.

use super::*;

impl Drag {
    pub(super) fn enter(&mut self, routine: Routine, arguments: [u64; 3]) {
        let address = arguments[0];
        if address == 0 {
            return;
        }
        if routine.frees() {
            if let Some(lifetime) = self.take(address) {
                self.freed(address, lifetime);
            }
        } else if routine.resizes()
            && let Some(lifetime) = self.take(address)
        {
            // An object allocated there before the realloc returns is another thread's.
            self.resizing.entry(self.thread).or_default().push((address, lifetime));
        }
    }

    pub(super) fn leave(&mut self, routine: Routine, arguments: [u64; 3], site: u32, result: u64) {
        let Some(size) = routine.requested(arguments) else { return };
        if routine.resizes() {
            return self.resized(arguments[0], size, site, result);
        }
        if result != 0 {
            self.allocated(result, size, site);
        }
    }

    /// A realloc was left by `longjmp`: the object stays where it was.
    pub(super) fn abandon(&mut self, routine: Routine) {
        if routine.resizes()
            && let Some((address, lifetime)) = self.resizing.get_mut(&self.thread).and_then(Vec::pop)
        {
            self.place(address, lifetime);
        }
    }

    fn allocated(&mut self, address: u64, size: u64, site: u32) {
        self.now[Clock::Bytes] = self.now[Clock::Bytes].saturating_add(size);
        self.serial += 1;
        let lifetime = Lifetime::new(size, self.serial, self.now, site, self.collections);
        self.place(address, lifetime);
    }

    /// Removes an object from the heap.
    fn take(&mut self, address: u64) -> Option<Lifetime> {
        self.settled();
        let index = self.objects.find(address);
        let known =
            index.filter(|index| self.objects.start(*index) == address && !self.objects.get(*index).freed);
        let Some(index) = known else {
            self.unknown += 1;
            return None;
        };
        let lifetime = self.objects.take(index);
        self.live_bytes -= lifetime.size;
        Some(lifetime)
    }

    fn freed(&mut self, address: u64, lifetime: Lifetime) {
        let (size, site) = (lifetime.size, lifetime.site);
        self.end(lifetime, self.now, EndCause::Freed);
        self.wait(address, size, site, false);
    }

    /// Records a freed block that a collector may not have reclaimed yet.
    fn wait(&mut self, address: u64, size: u64, site: u32, moved: bool) {
        if self.manager.collector {
            self.place(address, Lifetime::freed(size, site, self.now, self.collections, moved));
        }
    }

    fn resized(&mut self, address: u64, size: u64, site: u32, result: u64) {
        let here = self.resizing.get_mut(&self.thread);
        let lifetime = here.and_then(|pending| {
            let at = pending.iter().rposition(|(other, _)| *other == address)?;
            Some(pending.remove(at).1)
        });
        match (lifetime, result) {
            (None, 0) => {}
            (None, result) => self.allocated(result, size, site),
            (Some(lifetime), 0) if size == 0 => self.freed(address, lifetime),
            (Some(lifetime), 0) => self.place(address, lifetime),
            (Some(mut lifetime), result) => {
                let before = lifetime.size;
                // The old object stays alive while the clock advances.
                let grown = size.saturating_sub(before);
                self.now[Clock::Bytes] = self.now[Clock::Bytes].saturating_add(grown);
                if size != before {
                    lifetime.resize(size, self.now, &mut self.curves);
                }
                if result != address {
                    self.wait(address, before, lifetime.site, true);
                }
                self.place(result, lifetime);
            }
        }
    }
}
