//! The table as its file has it.

use serde::Deserialize;

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    #[serde(default)]
    pub family: Vec<FamilyDefinition>,
}

/// Routines that work on the same blocks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyDefinition {
    pub name: String,
    #[serde(default)]
    pub about: String,
    /// What its symbols begin with; each goes with each routine.
    pub prefixes: Vec<String>,
    /// Paths in Rust (`__rustc`, `mycrate::heap`) at which functions of these names are, too.
    #[serde(default)]
    pub rust_paths: Vec<String>,
    /// The family that it is a part of: they are one in all results.
    pub part_of: Option<String>,
    /// Whether its routines only forward to those of another family, where there is one.
    #[serde(default)]
    pub forwards: bool,
    /// Of one that forwards: functions that call malloc. A program that has one of them is served by malloc.
    #[serde(default)]
    pub sends_to_malloc: Vec<String>,
    /// Routines by which it is recognised: in a file without any of them, and of those of `inside`, its other names are
    /// taken for functions of something else. Without signs every name counts.
    #[serde(default)]
    pub signs: Vec<String>,
    pub routines: Vec<RoutineDefinition>,
    /// Whole names of functions that only its routines call.
    #[serde(default)]
    pub inside: Vec<String>,
}

/// One routine: the routine of C whose work it does, and where it has its arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutineDefinition {
    pub symbol: String,
    pub is: String,
    pub size: Option<u8>,
    pub count: Option<u8>,
    pub alignment: Option<u8>,
    pub block: Option<u8>,
    pub place: Option<u8>,
}
