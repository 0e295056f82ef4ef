//! What may be done with the traces.

/// The statement that each index has; `identifier` is SPDX's of a licence.
pub fn statement(identifier: &str) -> String {
    format!(
        "The traces are under {identifier}, given by who recorded them. They contain sizes, times, addresses \
         and call stacks of allocations, with names of functions, source files and libraries. They contain \
         neither code nor data of the programs, which keep their own licences."
    )
}
