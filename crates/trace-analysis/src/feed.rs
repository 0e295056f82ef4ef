//! Reading a trace while it is being analysed: the events are decoded in a thread of their own, a few batches ahead.

use std::io::Read;
use std::sync::mpsc::sync_channel;

use heaptoll_trace::{Batch, Reader, Tables, TraceError};

/// Batches between decoder and analysis. They are reused: memory does not grow with the trace.
const AHEAD: usize = 4;

/// Passes all events of a trace to `each`, in order, in batches; then returns everything but the events.
///
/// # Errors
/// The file cannot be read. Damage is no error: the tables warn of it.
pub fn feed<R: Read + Send>(
    mut reader: Reader<R>,
    mut each: impl FnMut(&Batch),
) -> Result<Tables, TraceError> {
    let (full_in, full) = sync_channel::<Batch>(AHEAD);
    let (used_in, used) = sync_channel::<Batch>(AHEAD);
    std::thread::scope(|scope| {
        let decode = move || -> Result<Tables, TraceError> {
            // As many as the channel holds, so that returning one never blocks.
            let mut fresh = AHEAD;
            loop {
                let next = if fresh > 0 { None } else { used.recv().ok() };
                fresh = fresh.saturating_sub(1);
                let mut batch = next.unwrap_or_default();
                if !reader.read(&mut batch)? || full_in.send(batch).is_err() {
                    return Ok(reader.into_tables());
                }
            }
        };
        let decoder =
            std::thread::Builder::new().spawn_scoped(scope, decode).map_err(TraceError::no_thread)?;
        for batch in full {
            each(&batch);
            // The decoder may have ended already.
            let _ = used_in.try_send(batch);
        }
        decoder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Allocation, Ending, EventKind, Header, Settings, Writer};

    use super::*;

    fn trace(pairs: u32) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &Header::default(), &Settings::default()).expect("begins");
        let call = Allocation {
            kind: EventKind::Malloc,
            thread: 0,
            size: 24,
            usable: 24,
            align_log2: 0,
            site: 0,
            latency_ns: 0,
        };
        for _ in 0..pairs {
            let slot = writer.allocate(&call).expect("writes");
            writer.free(slot, EventKind::Free, 0, 0).expect("writes");
        }
        writer.finish(&Ending { how: "exited".into(), ..Ending::default() }).expect("ends")
    }

    #[test]
    fn all_events_arrive_in_order_and_then_the_ending() {
        for pairs in [0, 1, 100_000] {
            let bytes = trace(pairs);
            let (mut events, mut next) = (0, 0);
            let tables = feed(Reader::new(&bytes[..]).expect("a trace"), |batch| {
                assert_eq!(batch.first_event, next);
                next += batch.events.len() as u64;
                events += batch.events.len() as u32;
            });
            let ending = tables.expect("reads").ending;
            assert_eq!((events, ending.map(|ending| ending.events)), (pairs * 2, Some(u64::from(pairs) * 2)));
        }
    }

    #[test]
    fn a_source_that_fails_is_an_error_and_no_end() {
        struct Fails<'a>(&'a [u8]);
        impl Read for Fails<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                match self.0.read(into)? {
                    0 => Err(std::io::Error::other("the disk is gone")),
                    n => Ok(n),
                }
            }
        }
        let bytes = trace(300_000);
        let reader = Reader::new(Fails(&bytes[..bytes.len() / 2])).expect("a trace");
        let error = feed(reader, |_| {}).expect_err("fails");
        assert!(error.to_string().contains("the disk is gone"), "{error}");
    }
}
