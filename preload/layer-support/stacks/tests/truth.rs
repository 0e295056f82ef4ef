//! The walks of `walks` with objects found by glibc's `_dl_find_object`.

mod walks;

const MAPPINGS_ONLY: bool = false;
