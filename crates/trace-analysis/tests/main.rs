//! One binary of all these tests: linking one takes the time of many tests.

#[path = "../../trace/tests/common/mod.rs"]
mod common;

mod fuzz;
mod models;
