//! What the feature `full` has, and the build of the demo leaves out.

use heaptoll_command::failure::Failure;

/// The error that refuses it.
pub fn left_out(option: &str) -> Failure {
    Failure::Usage(format!(
        "`make demo` built this heaptoll without {option}: build the whole with `make build`"
    ))
}

/// Refuses an option of a full build in another one.
///
/// # Errors
/// It is requested, and this build is not full.
pub fn required(option: &str, is_requested: bool) -> Result<(), Failure> {
    if is_requested && !cfg!(feature = "full") { Err(left_out(option)) } else { Ok(()) }
}
