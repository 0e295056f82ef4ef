//! A trace that would fill the machine is refused before it does, with what it would take.

use crate::common::bomb::bomb;
use crate::common::trace;
use heaptoll_trace::{Batch, Memory, Reader, TraceError};

/// Reads all of it; returns the number of events.
fn read(bytes: &[u8], memory: Memory) -> Result<usize, TraceError> {
    let mut reader = Reader::new(bytes)?;
    reader.limit(memory);
    let (mut batch, mut events) = (Batch::default(), 0);
    while reader.read(&mut batch)? {
        events += batch.events.len();
        let most = memory.limit_bytes / memory.each_object_bytes.max(1);
        assert!(batch.objects <= most, "no table by slot grows beyond the limit");
    }
    assert_eq!(reader.tables().warnings, Vec::<String>::new());
    Ok(events)
}

#[test]
fn a_small_file_of_millions_of_live_objects_is_refused_with_what_it_takes() {
    let bytes = bomb(4);
    assert!(bytes.len() < 2000, "{}", bytes.len());
    let refused =
        read(&bytes, Memory { limit_bytes: 16 << 20, each_object_bytes: 32 }).expect_err("too large");
    let TraceError::Memory { more, objects, needs_bytes, limit_bytes, .. } = &refused else {
        panic!("{refused}")
    };
    assert_eq!((*more, *objects, *limit_bytes), ("", 1 << 20, 16 << 20), "all of it was counted");
    assert_eq!(*needs_bytes, (32 << 20) + (1 << 17));
    let message = refused.to_string();
    assert!(message.contains("32.1 MiB") && message.ends_with("--memory-limit 33M"), "{message}");
    // The proposed limit is enough, and a caller that keeps nothing of the objects needs no more.
    assert_eq!(read(&bytes, Memory { limit_bytes: 33 << 20, each_object_bytes: 32 }).ok(), Some(1 << 20));
    assert_eq!(read(&bytes, Memory::default()).ok(), Some(1 << 20));
}

#[test]
fn objects_count_by_how_many_live_at_once_and_not_by_how_many_there_were() {
    let bytes = trace(7, 20_000, 512, false);
    let live = {
        let mut reader = Reader::new(&bytes[..]).expect("a trace");
        let mut batch = Batch::default();
        while reader.read(&mut batch).expect("reads") {}
        batch.objects
    };
    assert!(live < 10_000, "{live}");
    let just = Memory { limit_bytes: live * 32 + live / 8, each_object_bytes: 32 };
    assert_eq!(read(&bytes, just).ok(), Some(20_000));
    let less = Memory { limit_bytes: just.limit_bytes - 1, ..just };
    assert!(matches!(read(&bytes, less), Err(TraceError::Memory { .. })));
}

/// Objects whose allocations are missing are renumbered by the reader, and that table is its own.
#[test]
fn what_the_reader_itself_keeps_counts_too() {
    let mut bytes = bomb(4);
    // The second chunk of events is damaged: the slots of the third are renumbered.
    let second = crate::common::chunks(&bytes)[2];
    bytes[second.0 + 40] ^= 1;
    let mut reader = Reader::new(&bytes[..]).expect("a trace");
    reader.limit(Memory { limit_bytes: 4 << 20, each_object_bytes: 0 });
    let mut batch = Batch::default();
    let refused = loop {
        match reader.read(&mut batch) {
            Ok(true) => {}
            Ok(false) => panic!("it was read"),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, TraceError::Memory { .. }), "{refused}");
}
