//! The replay as a virtual machine, in MMTk's words. [`crate::binding`] has what it does.

use mmtk::vm::VMBinding;
use mmtk::vm::slot::{SimpleSlot, UnimplementedMemorySlice};

/// The replay, as MMTk sees it.
#[derive(Debug, Default)]
pub struct Binding;

impl VMBinding for Binding {
    type VMObjectModel = Binding;
    type VMScanning = Binding;
    type VMCollection = Binding;
    type VMActivePlan = Binding;
    type VMReferenceGlue = Binding;
    type VMSlot = SimpleSlot;
    type VMMemorySlice = UnimplementedMemorySlice;
    const MIN_ALIGNMENT: usize = 8;
    const MAX_ALIGNMENT: usize = 16;
    const USE_ALLOCATION_OFFSET: bool = false;
}
