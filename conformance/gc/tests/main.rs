//! One binary of all these tests: linking one takes the time of many tests.

mod documented;
mod every_collector;
mod glibc;
mod historic;
mod mutants;
mod sweep;
mod tithe;
