//! One binary of all these tests: linking one takes the time of many tests.

mod entries;
mod forms;
mod fuzz;
mod programs;
