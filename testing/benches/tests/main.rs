//! One binary of all these tests: linking one takes the time of many tests.

mod adversary;
mod agreement;
mod fastpath;
mod known;
mod profilers;
