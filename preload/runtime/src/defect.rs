//! A panic in what is preloaded: a defect of the manager. There is nothing to unwind to, so it is reported and the
//! process ends.

use core::fmt::Write;
use core::panic::PanicInfo;

use heaptoll_assertions::INTERNAL;

use crate::Message;

/// Reports a defect of the manager of this name, in builds with assertions by the name of the one that failed, and ends
/// the process.
#[cold]
pub fn report_defect(manager: &'static str, info: &PanicInfo<'_>) -> ! {
    let (file, line) = info.location().map_or(("?", 0), |place| (place.file(), place.line()));
    let mut message = Message::new()
        .text(manager)
        .text(": a defect in this manager; please report it: ")
        .text(file)
        .text(" at line ")
        .number(line.into());
    if INTERNAL {
        // A line that is too long is cut, and formatting does not fail.
        let _ = write!(message, ": this does not hold: {}", info.message());
    } else if let Some(text) = info.message().as_str() {
        // A text with arguments needs core's formatting, which would bring several KiB of code.
        message = message.text(": ").text(text);
    }
    message.abort()
}
