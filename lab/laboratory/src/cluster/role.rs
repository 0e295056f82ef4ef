//! What a file is to an experiment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a file is to the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What a command names: the program, its interpreters, the load of a server.
    Program,
    /// What is preloaded: managers and layers.
    Object,
    /// A shared library that the loader gives to one of these.
    Library,
    /// heaptoll's launcher.
    Launcher,
    /// Standard input, or a file that a word of a command names.
    Input,
}

impl Role {
    /// As messages name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Program => "program",
            Role::Object => "preloaded object",
            Role::Library => "library",
            Role::Launcher => "launcher",
            Role::Input => "input",
        }
    }
}
