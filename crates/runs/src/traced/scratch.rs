//! The scratch folder that replaces `{tmp}`, of the same name in every run where that is possible: the name is input of
//! the program, and another input is another run.

use heaptoll_experiment::places::Places;
use heaptoll_scratch::Scratch;
use heaptoll_units::limits;

use heaptoll_command::failure::Failure;

/// Makes it.
///
/// # Errors
/// The temporary folder cannot be written.
pub fn make() -> Result<Scratch, Failure> {
    let above = std::env::temp_dir();
    Scratch::make_repeatable(&above, &Places::cache()).map_err(|error| {
        Failure::Usage(format!(
            "cannot make a scratch folder in {}: {error}; {}",
            above.display(),
            limits::advice_or(&error, "is it writable and not full?")
        ))
    })
}
