//! Hands the live blocks over at each mark and waits until the tool has sampled the process.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::sync::{Mutex, PoisonError};

use heaptoll_replay::job::Job;
use heaptoll_replay::live_blocks::{END, LiveBlock, RECORD};

use super::area;
use super::clock::Clocks;
use super::manager::{Identity, UsableSize};
use super::watch::{LiveTable, Measured, Watch};

/// Records that are sent at once.
const RECORDS: usize = 1024;

/// See the file.
pub struct LedgerWatch;

/// The socket, and what is to be sent.
pub struct Channel {
    outgoing: Mutex<Outgoing>,
    usable_size: Option<UsableSize>,
}

struct Outgoing {
    socket: File,
    buffer: Box<[u8; RECORDS * RECORD]>,
    filled: usize,
    /// The tool is gone, and no mark is sent any more.
    is_closed: bool,
}

impl Outgoing {
    fn push(&mut self, block: LiveBlock) {
        self.buffer[self.filled..self.filled + RECORD].copy_from_slice(&block.to_bytes());
        self.filled += RECORD;
        if self.filled == self.buffer.len() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let bytes = &self.buffer[..std::mem::take(&mut self.filled)];
        self.is_closed = self.is_closed || self.socket.write_all(bytes).is_err();
    }

    /// Ends a mark, and waits for the tool.
    fn finish(&mut self) {
        let own = area::since_baseline();
        self.push(LiveBlock { slot: END, address: own, ..LiveBlock::default() });
        self.flush();
        if !self.is_closed {
            self.is_closed = self.socket.read_exact(&mut [0]).is_err();
        }
    }
}

impl Channel {
    fn outgoing(&self) -> std::sync::MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for LedgerWatch {
    type Common = Channel;
    const SIZES: bool = true;

    fn common(job: &Job, _: Clocks) -> Result<Channel, String> {
        let number = job.ledger.ok_or("the driver has no socket for the ledger")?;
        // SAFETY: the tool hands this descriptor over, and nothing else in this process uses it.
        let mut socket = unsafe { File::from_raw_fd(number) };
        let pid = std::process::id().to_le_bytes();
        socket.write_all(&pid).map_err(|error| format!("cannot report to the tool: {error}"))?;
        let buffer = Box::new([0; RECORDS * RECORD]);
        let outgoing = Mutex::new(Outgoing { socket, buffer, filled: 0, is_closed: false });
        Ok(Channel { outgoing, usable_size: Identity::of_malloc()?.usable_size() })
    }

    fn begin(_: &Channel) -> Result<LedgerWatch, String> {
        Ok(LedgerWatch)
    }

    fn mark(&mut self, channel: &Channel, live: &dyn LiveTable) {
        let mut outgoing = channel.outgoing();
        if outgoing.is_closed {
            return;
        }
        let mut send = |slot, block: *mut u8, requested| {
            // SAFETY: the function is the manager's whose block this is; it is live: it is in the table, and calls wait
            // for this mark.
            let usable = channel.usable_size.map_or(0, |size| unsafe { size(block.cast()) }) as u64;
            outgoing.push(LiveBlock { slot, address: block as u64, requested, usable });
        };
        // SAFETY: a ledger is made in exact order only (`replay::ledger`): the thread that marks has the turn.
        unsafe { live.each(&mut send) };
        outgoing.finish();
    }

    fn baseline(channel: &Channel) {
        area::begin_baseline();
        channel.outgoing().finish();
    }

    fn measured(_: Channel) -> Measured {
        Measured::default()
    }
}
