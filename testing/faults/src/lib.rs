//! Seeded faults: small defects put into a copy of the sources, one at a time. Each must be found by the assertion that
//! `testing/faults/faults.toml` names, before anything else notices it. That shows two things of an assertion: that a test
//! reaches it, and that it fails where the defect is, not where its consequences are.
//!
//! [`list`] reads and checks the list, [`sources`] keeps the copy, [`judgement`] reads a test's output, [`trial`] puts
//! them together.

pub mod error;
pub mod judgement;
pub mod list;
pub mod sources;
pub mod trial;

pub use error::Error;
