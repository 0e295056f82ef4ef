//! Who is asked: a manager with its settings.

use std::path::PathBuf;

/// A manager with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What it is called in reports.
    pub name: String,
    /// The object to preload; none for glibc.
    pub object: Option<PathBuf>,
    /// All that is in the environment beside it.
    pub environment: Vec<(String, String)>,
    /// Whether cases repeat what they do less often.
    pub quick: bool,
}

impl Subject {
    /// The C library's own malloc.
    pub fn glibc() -> Subject {
        Subject { name: "glibc".into(), object: None, environment: Vec::new(), quick: true }
    }

    /// A preloaded manager without settings.
    pub fn of(name: &str, object: PathBuf) -> Subject {
        Subject { name: name.into(), object: Some(object), environment: Vec::new(), quick: true }
    }

    /// The same with one more setting.
    pub fn with(&self, name: &str, value: &str) -> Subject {
        let mut changed = self.clone();
        changed.environment.retain(|(other, _)| other != name);
        changed.environment.push((name.into(), value.into()));
        changed
    }

    /// The same with everything repeated in full.
    pub fn in_full(&self) -> Subject {
        Subject { quick: false, ..self.clone() }
    }
}
