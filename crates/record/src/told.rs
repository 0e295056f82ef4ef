//! What the threads of one process tell, as it comes out of their rings.

use heaptoll_ring::{RingEvent, Sink};
use heaptoll_trace::{Allocation, Kind, Output, Sites, TraceError, Writer};

use crate::request::Request;
use crate::resolver::Resolver;
use crate::symbols::Symbols;

/// Takes it in.
pub struct Told<W> {
    resolver: Resolver<W>,
    /// Kernel numbers of threads, by index.
    threads: Vec<i32>,
    symbols: Option<Symbols>,
    /// When the trace begins, on the rings' clock, ns.
    begun_ns: u64,
}

/// What is left when everything was told.
pub struct All<W> {
    /// The trace, but for its ending.
    pub writer: Writer<W>,
    /// Kernel numbers of threads, by index.
    pub threads: Vec<i32>,
    /// Call stacks, where they were asked for.
    pub sites: Option<Sites>,
    /// What should not be.
    pub defect: Option<TraceError>,
}

impl<W: Output> Told<W> {
    /// Of a process that registered at `begun_ns` on the rings' clock.
    pub fn new(writer: Writer<W>, request: &Request, begun_ns: u64, pid: i32) -> Told<W> {
        Told {
            resolver: Resolver::new(writer, request.ledger),
            threads: Vec::new(),
            symbols: request.sites.then(|| Symbols::new(pid)),
            begun_ns,
        }
    }

    /// Its blocks and its trace.
    pub fn resolver(&self) -> &Resolver<W> {
        &self.resolver
    }

    /// The same, to be written to.
    pub fn resolver_mut(&mut self) -> &mut Resolver<W> {
        &mut self.resolver
    }

    /// Nothing more is told.
    pub fn finish(self) -> All<W> {
        let sites = self.symbols.map(Symbols::finish);
        let (writer, defect) = self.resolver.into_parts();
        All { writer, threads: self.threads, sites, defect }
    }
}

impl<W: Output> Sink for Told<W> {
    #[inline(always)]
    fn event(&mut self, thread: u32, event: RingEvent<'_>) {
        match event {
            RingEvent::Alloc { address, size, usable, kind, align_log2, site, latency_ns } => {
                let kind = made_by(kind);
                let call = Allocation { kind, thread, size, usable, align_log2, site, latency_ns };
                self.resolver.allocate(address, &call);
            }
            RingEvent::Free { address, delete, latency_ns } => {
                let kind = if delete { Kind::Delete } else { Kind::Free };
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

impl<W: Output> Told<W> {
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
                self.resolver.resize_end(address, &call(Kind::Realloc, size, usable, site, latency_ns));
            }
            RingEvent::Failed { size, site, latency_ns, .. } => {
                self.resolver.failed(&call(Kind::Failed, size, 0, site, latency_ns));
            }
            RingEvent::Time { ns } => self.resolver.writer().stamp(ns.saturating_sub(self.begun_ns)),
            RingEvent::SiteDefinition { site, frames } => {
                if let Some(symbols) = &mut self.symbols {
                    symbols.define(site, frames);
                }
            }
            RingEvent::Alloc { .. } | RingEvent::Free { .. } => {}
        }
    }
}

/// The layer's word for the call that made a block: the number of [`Kind`].
#[inline(always)]
fn made_by(kind: u8) -> Kind {
    const KINDS: [Kind; 4] = [Kind::Malloc, Kind::Calloc, Kind::Aligned, Kind::New];
    KINDS[usize::from(kind) & 3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layers_numbers_are_the_traces() {
        for kind in [Kind::Malloc, Kind::Calloc, Kind::Aligned, Kind::New] {
            assert_eq!(made_by(kind as u8), kind);
        }
    }
}
