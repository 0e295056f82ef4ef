//! What the commands that run programs under the tracer have in common.
