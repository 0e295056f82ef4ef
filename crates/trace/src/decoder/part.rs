//! A part of a chunk while its events are decoded: all that changes from event to event, in one place, so that the
//! compiler keeps it in registers.

use crate::column::{ColumnReader, unzigzag};
use crate::event::{Event, EventKind};
use crate::format::{CLOCK_MAX, PREDICTED, SIZE_MAX, column, op};
use crate::live::Live;
use crate::malformed::Malformed;

const SHORT: Malformed = Malformed("a column ends too early");
const WRONG_SLOT: Malformed = Malformed("it names an impossible object");

/// `MISSING`: objects of the trace may have no allocation in it.
pub(super) struct Part<'a, const MISSING: bool> {
    pub columns: [ColumnReader<'a>; column::COUNT],
    pub with_sites: bool,
    pub with_latencies: bool,
    pub with_times: bool,
    /// Numbers of threads and of sites are below these.
    pub threads: u64,
    pub sites: u64,
    /// Usable sizes by size.
    pub predicted: &'a mut [u32; PREDICTED],
    /// Slots freed in this chunk, as the file numbers them.
    pub freed: &'a mut Vec<u32>,
    /// Slots in use by the file's numbers.
    pub slots: u32,
    pub last_slot: u32,
    pub thread: u32,
    pub time_ns: u64,
    /// Sum of all sizes of the trace so far.
    pub sizes: u64,
    pub live: &'a mut Live,
    pub events: &'a mut Vec<Event>,
}

impl<const MISSING: bool> Part<'_, MISSING> {
    /// Decodes one event, and appends it to the events.
    #[inline(always)]
    pub fn decode_event(&mut self) -> Result<(), Malformed> {
        let code = self.code()?;
        let mut latency_ns = 0;
        if self.with_latencies || self.with_times {
            if self.with_times {
                self.advance_time()?;
            }
            if self.with_latencies {
                latency_ns = self.number(column::LATENCIES)? as u32;
            }
        }
        let event = Event {
            kind: EventKind::Malloc,
            moved: false,
            align_log2: 0,
            thread: self.thread,
            slot: 0,
            site: 0,
            size: 0,
            usable: 0,
            time_ns: self.time_ns,
            latency_ns,
        };
        match code & 15 {
            op::FREE | op::DELETE | op::REALLOC_FREE | op::LOST => self.decode_free(code & 15, event),
            op::FOREIGN => {
                self.events.push(Event { kind: EventKind::Foreign, ..event });
                Ok(())
            }
            op::FAILED => self.decode_failed(event),
            _ => self.decode_allocation(code, event),
        }
    }

    /// The next event's code, after the stamps and threads in front of it.
    #[inline(always)]
    fn code(&mut self) -> Result<u8, Malformed> {
        let mut code = self.columns[column::OPS].byte().ok_or(SHORT)?;
        while code & 15 >= op::STAMP {
            match code {
                op::STAMP => self.advance_time()?,
                op::THREAD => {
                    let number = self.number(column::THREADS)?;
                    if number >= self.threads {
                        return Err(Malformed("a thread's number is beyond reason"));
                    }
                    self.thread = number as u32;
                }
                _ => return Err(Malformed("it has an unknown kind of event")),
            }
            code = self.columns[column::OPS].byte().ok_or(SHORT)?;
        }
        Ok(code)
    }

    #[inline(always)]
    fn number(&mut self, column: usize) -> Result<u64, Malformed> {
        self.columns[column].number().ok_or(SHORT)
    }

    #[inline(always)]
    fn advance_time(&mut self) -> Result<(), Malformed> {
        let elapsed = self.number(column::TIMES)?;
        self.time_ns = self.time_ns.saturating_add(elapsed).min(CLOCK_MAX);
        Ok(())
    }

    #[inline(always)]
    fn decode_free(&mut self, which: u8, mut event: Event) -> Result<(), Malformed> {
        let slot = self.next_slot()?;
        self.last_slot = slot;
        event.kind = match which {
            op::FREE => EventKind::Free,
            op::DELETE => EventKind::Delete,
            op::REALLOC_FREE => EventKind::ReallocFree,
            _ => EventKind::Lost,
        };
        self.freed.push(slot);
        match self.live.find(slot) {
            Some(known) if self.live.clear(known) => event.slot = known,
            _ if MISSING => event.kind = EventKind::Foreign,
            _ => return Err(WRONG_SLOT),
        }
        self.events.push(event);
        Ok(())
    }

    #[inline(always)]
    fn decode_failed(&mut self, mut event: Event) -> Result<(), Malformed> {
        event.kind = EventKind::Failed;
        event.size = self.number(column::SIZES)?;
        if self.with_sites {
            event.site = self.next_site()?;
        }
        self.events.push(event);
        Ok(())
    }

    /// A call that allocates or resizes an object.
    #[inline(always)]
    fn decode_allocation(&mut self, code: u8, mut event: Event) -> Result<(), Malformed> {
        let which = code & 15;
        let resizes = matches!(which, op::REALLOC | op::REALLOC_MOVED);
        let (slot, fresh) = self.allocated_slot(code & op::SLOT != 0 || resizes)?;
        self.last_slot = slot;
        self.decode_sizes(code, &mut event)?;
        if self.with_sites {
            event.site = self.next_site()?;
        }
        if resizes {
            event.kind = EventKind::Realloc;
            event.moved = which == op::REALLOC_MOVED;
            match self.live.find(slot) {
                Some(known) if self.live.is_live(known) => {
                    event.slot = known;
                    self.events.push(event);
                    return Ok(());
                }
                // The object's allocation is missing: treated as a realloc of an unknown block.
                _ if MISSING => {
                    event.kind = EventKind::Malloc;
                    event.moved = false;
                }
                _ => return Err(WRONG_SLOT),
            }
        } else {
            event.kind = match which {
                op::MALLOC => EventKind::Malloc,
                op::CALLOC => EventKind::Calloc,
                op::ALIGNED => EventKind::Aligned,
                _ => EventKind::New,
            };
        }
        self.begin_object(slot, fresh, event)
    }

    /// The slot of an allocation, as the file numbers it, and whether it was never used before; `is_stored`: it is in
    /// the column.
    #[inline(always)]
    fn allocated_slot(&mut self, is_stored: bool) -> Result<(u32, bool), Malformed> {
        if is_stored {
            Ok((self.next_slot()?, false))
        } else if let Some(slot) = self.freed.pop() {
            Ok((slot, false))
        } else {
            let slot = self.slots;
            self.slots = slot.checked_add(1).filter(|&next| next < u32::MAX).ok_or(WRONG_SLOT)?;
            Ok((slot, true))
        }
    }

    /// Size, alignment and usable size.
    #[inline(always)]
    fn decode_sizes(&mut self, code: u8, event: &mut Event) -> Result<(), Malformed> {
        let size = self.number(column::SIZES)?;
        self.sizes = self.sizes.saturating_add(size);
        if size > SIZE_MAX || self.sizes > CLOCK_MAX {
            return Err(Malformed("its sizes are beyond reason"));
        }
        event.size = size;
        if code & op::ALIGN != 0 {
            event.align_log2 = self.columns[column::ALIGNS].byte().ok_or(SHORT)?;
            if event.align_log2 > 63 {
                return Err(Malformed("an alignment is beyond reason"));
            }
        }
        let stored = if code & op::USABLE != 0 { Some(self.number(column::USABLES)?) } else { None };
        let entry = self.predicted.get_mut(size as usize);
        if let Some(stored) = stored {
            event.usable = size.wrapping_add(unzigzag(stored) as u64);
            if event.usable > CLOCK_MAX {
                return Err(Malformed("its usable sizes are beyond reason"));
            }
            if let Some(entry) = entry {
                *entry = u32::try_from(event.usable).unwrap_or(0);
            }
        } else if let Some(entry) = entry {
            event.usable = u64::from(*entry);
        }
        Ok(())
    }

    /// Enters an allocated object among those that live.
    #[inline(always)]
    fn begin_object(&mut self, slot: u32, fresh: bool, mut event: Event) -> Result<(), Malformed> {
        let known = if fresh && !MISSING {
            self.live.next()
        } else {
            self.live.slot_for_allocation(slot).ok_or(WRONG_SLOT)?
        };
        if !self.live.set(known) {
            if !MISSING {
                return Err(WRONG_SLOT);
            }
            self.events.push(Event {
                kind: EventKind::Lost,
                slot: known,
                size: 0,
                usable: 0,
                site: 0,
                align_log2: 0,
                latency_ns: 0,
                ..event
            });
        }
        event.slot = known;
        self.events.push(event);
        Ok(())
    }

    #[inline(always)]
    fn next_slot(&mut self) -> Result<u32, Malformed> {
        let step = unzigzag(self.number(column::SLOTS)?);
        u32::try_from(i64::from(self.last_slot).wrapping_add(step)).map_err(|_| SHORT)
    }

    #[inline(always)]
    fn next_site(&mut self) -> Result<u32, Malformed> {
        let site = self.number(column::SITES)?;
        if site >= self.sites {
            return Err(Malformed("a site's number is beyond reason"));
        }
        u32::try_from(site).map_err(|_| Malformed("a site's number is beyond reason"))
    }
}
