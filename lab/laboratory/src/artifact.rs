//! An artifact for a paper: one folder with an experiment's rows, what they were measured with, and a script that measures
//! it again. Who gets it knows whether it is whole, what of it is not on their machine, and which verdicts hold there.

pub mod check;
pub mod description;
pub mod document;
mod error;
pub mod format;
pub mod make;
pub mod packages;
mod script;
pub mod verdicts;

pub use description::Description;
pub use error::ArtifactError;

schemars::labelled!(Description, "heaptoll-artifact/1");
