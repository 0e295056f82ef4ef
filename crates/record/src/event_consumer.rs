//! The consumer of one process's events, as they come out of its rings.

use heaptoll_alloc_ring::{RingEvent, Sink};
use heaptoll_ledger::{LivePeak, Mapped};
use heaptoll_symbols::Symbols;
use heaptoll_trace::{Allocation, EventKind, Output, Sites, TraceError, Writer};

use crate::request::Request;
use crate::resolver::Resolver;

/// Events that wait for their chunk to be full, from which it may be so before the next turn ends.
const SOON: u64 = 1 << 14;

/// Passes events to the resolver, the call stacks and the trace.
pub struct EventConsumer<W> {
    resolver: Resolver<W>,
    /// Kernel numbers of threads, by index.
    threads: Vec<i32>,
    symbols: Option<Symbols>,
    /// Events that the trace had when call stacks were written last.
    kept: u64,
    /// When the trace begins, on the rings' clock, ns.
    begun_ns: u64,
    /// Events, as the ring numbers them.
    events: u64,
    peak: LivePeak,
    /// What the program has mapped itself.
    mapped: Mapped,
}

/// The trace and its tables when all events were consumed.
pub struct ConsumerResult<W> {
    /// The trace, but for its ending.
    pub writer: Writer<W>,
    /// Kernel numbers of threads, by index.
    pub threads: Vec<i32>,
    /// Call stacks, where they were requested.
    pub sites: Option<Sites>,
    /// The error of the writer other than a full disk.
    pub defect: Option<TraceError>,
}

impl<W: Output> EventConsumer<W> {
    /// For a process that registered at `begun_ns` on the rings' clock.
    pub fn new(writer: Writer<W>, request: &Request, begun_ns: u64, pid: i32) -> EventConsumer<W> {
        EventConsumer {
            resolver: Resolver::new(writer, request.options.ledger),
            threads: Vec::new(),
            symbols: request.options.sites.then(|| Symbols::new(pid)),
            kept: 0,
            begun_ns,
            events: 0,
            peak: LivePeak::default(),
            mapped: Mapped::default(),
        }
    }

    /// Where most was live.
    pub fn peak(&self) -> LivePeak {
        self.peak
    }

    /// What the program has mapped itself.
    pub fn mapped(&mut self) -> &mut Mapped {
        &mut self.mapped
    }

    /// Its blocks and its trace.
    pub fn resolver(&self) -> &Resolver<W> {
        &self.resolver
    }

    /// Writes the call stacks that were defined since the last call, if events that may lead to them are in the trace, or
    /// soon are: were the recorder killed then, they would be missing. To be called after each turn.
    pub fn keep_sites(&mut self) {
        let written = self.resolver.written();
        let (kept, waiting) = (written.written(), written.events() - written.written());
        if kept != self.kept || waiting >= SOON {
            self.kept = kept;
            self.write_sites();
        }
    }

    /// Writes the call stacks that were defined since the last call.
    pub fn write_sites(&mut self) {
        if let Some(more) = self.symbols.as_mut().and_then(Symbols::so_far) {
            self.resolver.writer().sites_so_far(&more);
        }
    }

    /// The same, to be written to.
    pub fn resolver_mut(&mut self) -> &mut Resolver<W> {
        &mut self.resolver
    }

    /// Ends the consumption.
    pub fn finish(mut self) -> ConsumerResult<W> {
        // Names may take minutes.
        self.write_sites();
        let sites = self.symbols.map(Symbols::finish);
        let (writer, defect) = self.resolver.into_parts();
        ConsumerResult { writer, threads: self.threads, sites, defect }
    }
}

impl<W: Output> Sink for EventConsumer<W> {
    #[inline(always)]
    fn event(&mut self, thread: u32, event: RingEvent<'_>) {
        self.events += u64::from(event.is_numbered());
        match event {
            RingEvent::Alloc { address, size, usable, kind, align_log2, site, latency_ns } => {
                let kind = made_by(kind);
                let call = Allocation { kind, thread, size, usable, align_log2, site, latency_ns };
                self.resolver.allocate(address, &call);
                self.grew();
            }
            RingEvent::Free { address, delete, latency_ns } => {
                let kind = if delete { EventKind::Delete } else { EventKind::Free };
                self.resolver.free(address, kind, thread, latency_ns);
            }
            rare => self.rare(thread, rare),
        }
    }

    fn thread(&mut self, thread: u32, tid: i32) {
        let index = thread as usize;
        if self.threads.len() <= index {
            self.threads.resize(index + 1, 0);
        }
        self.threads[index] = tid;
    }
}

impl<W: Output> EventConsumer<W> {
    /// Notes the peak, after an event that may have led to it.
    #[inline(always)]
    fn grew(&mut self) {
        let written = self.resolver.written();
        if written.live_bytes() > self.peak.live_bytes {
            self.peak = LivePeak {
                events: self.events,
                live_bytes: written.live_bytes(),
                clock_bytes: written.clock_bytes(),
                ..self.peak
            };
        }
    }

    fn rare(&mut self, thread: u32, event: RingEvent<'_>) {
        let call = |kind, size, usable, site, latency_ns| Allocation {
            kind,
            thread,
            size,
            usable,
            align_log2: 0,
            site,
            latency_ns,
        };
        match event {
            RingEvent::ResizeBegin { address } => self.resolver.resize_begin(address, thread),
            RingEvent::ResizeEnd { address, size, usable, site, latency_ns } => {
                self.resolver.resize_end(address, &call(EventKind::Realloc, size, usable, site, latency_ns));
                self.grew();
            }
            RingEvent::Failed { size, site, latency_ns, .. } => {
                self.resolver.failed(&call(EventKind::Failed, size, 0, site, latency_ns));
            }
            RingEvent::ExitBegins => self.resolver.writer().exit_begins(),
            RingEvent::Time { ns } => self.resolver.writer().stamp(ns.saturating_sub(self.begun_ns)),
            RingEvent::SiteDefinition { site, frames } => {
                if let Some(symbols) = &mut self.symbols {
                    symbols.define(site, frames);
                }
            }
            RingEvent::Mapped { site, address, bytes } => {
                self.mapped.map(address, address.saturating_add(bytes), site);
            }
            RingEvent::Remapped { site, from, from_bytes, address, bytes } => {
                self.mapped.remap((from, from_bytes), (address, bytes), site);
            }
            RingEvent::Alloc { .. } | RingEvent::Free { .. } => {}
        }
    }
}

/// The layer's number of the function that made a block is the number of [`EventKind`].
#[inline(always)]
fn made_by(kind: u8) -> EventKind {
    const KINDS: [EventKind; 4] = [EventKind::Malloc, EventKind::Calloc, EventKind::Aligned, EventKind::New];
    KINDS[usize::from(kind) & 3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layers_numbers_are_the_traces() {
        for kind in [EventKind::Malloc, EventKind::Calloc, EventKind::Aligned, EventKind::New] {
            assert_eq!(made_by(kind as u8), kind);
        }
    }
}
