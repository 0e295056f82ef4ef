//! The walks of `walks` as under a glibc before 2.35: objects are found in the kernel's list of mappings.

mod walks;

const MAPPINGS_ONLY: bool = true;
