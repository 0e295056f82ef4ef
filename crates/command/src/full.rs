//! What the feature `full` has, and the build of the demo leaves out.

use crate::failure::Failure;

/// The error that refuses it.
pub fn left_out(option: &str) -> Failure {
    Failure::Usage(format!(
        "`make demo` built this heaptoll without {option}: build the whole with `make build`"
    ))
}
