//! What programs under the tracer give: exact counts of instructions, locality and drag. A folder a command.

pub mod drag;
pub mod instructions;
pub mod locality;
mod rows;
pub mod simulated_machine;
