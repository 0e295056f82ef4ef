//! One binary of all these tests: linking one takes the time of many tests.

mod managers;
mod mutants;
mod security;
mod tailored;
