//! One binary of all these tests: linking one takes the time of many tests.

mod common;

mod corpus;
mod damage;
mod files;
mod graph_damage;
mod graph_roundtrip;
mod memory;
mod roundtrip;
