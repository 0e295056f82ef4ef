//! What a user named one by one, as opposed to members of groups and of `--all`: those are tried, not requested. It is
//! stored with the settings, so that an experiment that is continued ends as one that ran at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names of managers, as rows name them, and of programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    /// Managers; the baseline among them where it is not the default.
    pub managers: Vec<String>,
    /// Programs of the catalog.
    pub programs: Vec<String>,
}

impl Named {
    /// Whether a stack is one of the managers.
    pub fn is_manager(&self, stack: &str) -> bool {
        // The second of two that are alike is called NAME#2.
        let mut rests = self.managers.iter().filter_map(|name| stack.strip_prefix(name.as_str()));
        rests.any(|rest| rest.is_empty() || rest.starts_with('#'))
    }
}
