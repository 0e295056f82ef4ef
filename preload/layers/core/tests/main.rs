//! One binary of all these tests: linking one takes the time of many tests.

mod marking;
mod model;
mod passes;
