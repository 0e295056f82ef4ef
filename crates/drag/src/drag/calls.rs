//! What calls of the malloc family do to objects.

use super::*;

impl Drag {
    pub(super) fn enter(&mut self, routine: Routine, arguments: [u64; 3]) {
        let address = arguments[0];
        if address == 0 {
            return;
        }
        if routine.frees() {
            if let Some(life) = self.take(address) {
                self.freed(address, life);
            }
        } else if routine.resizes()
            && let Some(life) = self.take(address)
        {
            // What is in its place before the realloc returns is another thread's.
            self.resizing.entry(self.thread).or_default().push((address, life));
        }
    }

    pub(super) fn leave(&mut self, routine: Routine, arguments: [u64; 3], site: u32, result: u64) {
        let size = match routine {
            Routine::Free | Routine::Delete | Routine::UsableSize => return,
            Routine::Realloc => return self.resized(arguments[0], arguments[1], site, result),
            Routine::Reallocarray => {
                let size = arguments[1].saturating_mul(arguments[2]);
                return self.resized(arguments[0], size, site, result);
            }
            Routine::Calloc => arguments[0].saturating_mul(arguments[1]),
            Routine::Memalign | Routine::AlignedAlloc => arguments[1],
            Routine::PosixMemalign => arguments[2],
            Routine::Malloc | Routine::Valloc | Routine::New | Routine::NewAligned => arguments[0],
        };
        if result != 0 {
            self.made(result, size, site);
        }
    }

    /// A realloc was left by `longjmp`: the object is where it was.
    pub(super) fn abandon(&mut self, routine: Routine) {
        if routine.resizes()
            && let Some((address, life)) = self.resizing.get_mut(&self.thread).and_then(Vec::pop)
        {
            self.place(address, life);
        }
    }

    fn made(&mut self, address: u64, size: u64, site: u32) {
        self.now[Clock::Bytes] = self.now[Clock::Bytes].saturating_add(size);
        self.serial += 1;
        let life = Life::new(size, self.serial, self.now, site, self.collections);
        self.place(address, life);
    }

    /// Takes an object out of the heap.
    fn take(&mut self, address: u64) -> Option<Life> {
        self.settled();
        let index = self.objects.find(address);
        let known =
            index.filter(|index| self.objects.start(*index) == address && !self.objects.get(*index).freed);
        let Some(index) = known else {
            self.unknown += 1;
            return None;
        };
        let life = self.objects.take(index);
        self.live_bytes -= life.size;
        Some(life)
    }

    fn freed(&mut self, address: u64, life: Life) {
        let (size, site) = (life.size, life.site);
        self.end(life, self.now, How::Freed);
        self.wait(address, size, site, false);
    }

    /// A collector may not have reclaimed it yet.
    fn wait(&mut self, address: u64, size: u64, site: u32, moved: bool) {
        if self.about.collector {
            self.place(address, Life::freed(size, site, self.now, self.collections, moved));
        }
    }

    fn resized(&mut self, address: u64, size: u64, site: u32, result: u64) {
        let here = self.resizing.get_mut(&self.thread);
        let life = here.and_then(|pending| {
            let at = pending.iter().rposition(|(other, _)| *other == address)?;
            Some(pending.remove(at).1)
        });
        match (life, result) {
            (None, 0) => {}
            (None, result) => self.made(result, size, site),
            (Some(life), 0) if size == 0 => self.freed(address, life),
            (Some(life), 0) => self.place(address, life),
            (Some(mut life), result) => {
                let before = life.size;
                // What was there lives on while the clock goes.
                let grown = size.saturating_sub(before);
                self.now[Clock::Bytes] = self.now[Clock::Bytes].saturating_add(grown);
                if size != before {
                    life.resize(size, self.now, &mut self.curves);
                }
                if result != address {
                    self.wait(address, before, life.site, true);
                }
                self.place(result, life);
            }
        }
    }
}
