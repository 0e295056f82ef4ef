//! One binary of all these tests: linking one takes the time of many tests.

mod fitness;
mod functions;
mod own;
mod real;
mod system;
