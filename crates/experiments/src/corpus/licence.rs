//! What may be done with the traces.

/// The statement that each index has; `identifier` is SPDX's of a licence.
pub fn statement(identifier: &str) -> String {
    format!(
        "The traces are under {identifier}, given by who recorded them. They hold sizes, times, addresses and call stacks of \
         allocations, with names of functions, source files and libraries, and neither code nor data of the programs, which \
         keep their own licences."
    )
}
