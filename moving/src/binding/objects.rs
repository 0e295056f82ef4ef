//! Objects: a header, then the words of the program. A reference is the address of the header.

use std::sync::atomic::{AtomicU64, Ordering};

use heaptoll_graph_replay::header::{Header, WORD};
use heaptoll_graph_replay::heap::Copied;
use mmtk::util::copy::{CopySemantics, GCWorkerCopyContext};
use mmtk::util::{Address, ObjectReference};
use mmtk::vm::*;

use crate::vm::Binding;

static COPIED_BYTES: AtomicU64 = AtomicU64::new(0);
static COPIED_OBJECTS: AtomicU64 = AtomicU64::new(0);

/// What collections have copied.
pub fn copied() -> Copied {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Copied { bytes: of(&COPIED_BYTES), objects: of(&COPIED_OBJECTS) }
}

/// Counts a copy.
#[inline(always)]
fn count_copy(bytes: usize) {
    COPIED_BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    COPIED_OBJECTS.fetch_add(1, Ordering::Relaxed);
}

fn header(object: ObjectReference) -> Header {
    // SAFETY: MMTk requires sizes of objects in its heap only, and before it forwards them.
    unsafe { Header::read(object.to_raw_address().to_ptr()) }
}

impl ObjectModel<Binding> for Binding {
    const GLOBAL_LOG_BIT_SPEC: VMGlobalLogBitSpec = VMGlobalLogBitSpec::side_first();
    const LOCAL_FORWARDING_POINTER_SPEC: VMLocalForwardingPointerSpec =
        VMLocalForwardingPointerSpec::in_header(0);
    const LOCAL_FORWARDING_BITS_SPEC: VMLocalForwardingBitsSpec = VMLocalForwardingBitsSpec::side_first();
    const LOCAL_MARK_BIT_SPEC: VMLocalMarkBitSpec =
        VMLocalMarkBitSpec::side_after(Self::LOCAL_FORWARDING_BITS_SPEC.as_spec());
    const LOCAL_LOS_MARK_NURSERY_SPEC: VMLocalLOSMarkNurserySpec =
        VMLocalLOSMarkNurserySpec::side_after(Self::LOCAL_MARK_BIT_SPEC.as_spec());
    const OBJECT_REF_OFFSET_LOWER_BOUND: isize = 0;
    const UNIFIED_OBJECT_REFERENCE_ADDRESS: bool = true;
    const VM_WORST_CASE_COPY_EXPANSION: f64 = 1.0;

    fn copy(
        from: ObjectReference,
        semantics: CopySemantics,
        context: &mut GCWorkerCopyContext<Binding>,
    ) -> ObjectReference {
        let bytes = header(from).total_bytes();
        let to = context.alloc_copy(from, bytes, WORD, 0, semantics);
        count_copy(bytes);
        // SAFETY: MMTk has just given memory for the copy, apart from the original; the address is not 0.
        let object = unsafe {
            std::ptr::copy_nonoverlapping::<u8>(from.to_raw_address().to_ptr(), to.to_mut_ptr(), bytes);
            ObjectReference::from_raw_address_unchecked(to)
        };
        context.post_copy(object, bytes, semantics);
        object
    }

    fn copy_to(from: ObjectReference, to: ObjectReference, _region: Address) -> Address {
        let bytes = header(from).total_bytes();
        let (source, target) = (from.to_raw_address(), to.to_raw_address());
        if source != target {
            count_copy(bytes);
            // SAFETY: mark-compact has computed where the object goes; old and new place may overlap.
            unsafe { std::ptr::copy::<u8>(source.to_ptr(), target.to_mut_ptr(), bytes) };
        }
        target + bytes
    }

    fn get_reference_when_copied_to(_from: ObjectReference, to: Address) -> ObjectReference {
        // SAFETY: MMTk gives the address of a place in its heap.
        unsafe { ObjectReference::from_raw_address_unchecked(to) }
    }

    fn get_current_size(object: ObjectReference) -> usize {
        header(object).total_bytes()
    }

    fn get_size_when_copied(object: ObjectReference) -> usize {
        header(object).total_bytes()
    }

    fn get_align_when_copied(_object: ObjectReference) -> usize {
        WORD
    }

    fn get_align_offset_when_copied(_object: ObjectReference) -> usize {
        0
    }

    fn get_type_descriptor(_object: ObjectReference) -> &'static [i8] {
        &[]
    }

    fn ref_to_object_start(object: ObjectReference) -> Address {
        object.to_raw_address()
    }

    fn ref_to_header(object: ObjectReference) -> Address {
        object.to_raw_address()
    }

    fn dump_object(object: ObjectReference) {
        eprintln!("{object}: {:?}", header(object));
    }
}

impl ReferenceGlue<Binding> for Binding {
    type FinalizableType = ObjectReference;

    fn set_referent(_reference: ObjectReference, _referent: ObjectReference) {}

    fn get_referent(_object: ObjectReference) -> Option<ObjectReference> {
        None
    }

    fn clear_referent(_object: ObjectReference) {}

    fn enqueue_references(_references: &[ObjectReference], _thread: mmtk::util::VMWorkerThread) {}
}
