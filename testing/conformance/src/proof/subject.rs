//! The subject of a test: a manager with its settings, and layers in front of it.

use std::path::PathBuf;

/// A manager with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its name in reports.
    pub name: String,
    /// Layers in front of it, the program's first.
    pub layers: Vec<PathBuf>,
    /// The object to preload; none for glibc.
    pub object: Option<PathBuf>,
    /// The rest of the environment.
    pub environment: Vec<(String, String)>,
    /// Whether cases repeat their steps less often.
    pub quick: bool,
}

impl Subject {
    /// The C library's own malloc.
    pub fn glibc() -> Subject {
        Subject {
            name: "glibc".into(),
            layers: Vec::new(),
            object: None,
            environment: Vec::new(),
            quick: true,
        }
    }

    /// A preloaded manager without settings.
    pub fn of(name: &str, object: PathBuf) -> Subject {
        Subject { name: name.into(), object: Some(object), ..Subject::glibc() }
    }

    /// The same with one more setting.
    pub fn with(&self, name: &str, value: &str) -> Subject {
        let mut changed = self.clone();
        changed.environment.retain(|(other, _)| other != name);
        changed.environment.push((name.into(), value.into()));
        changed
    }

    /// The same with one more layer in front, which the program calls first.
    pub fn with_layer(&self, layer: &str, object: PathBuf) -> Subject {
        let mut changed = self.clone();
        changed.name = format!("{layer}/{}", self.name);
        changed.layers.insert(0, object);
        changed
    }

    /// The objects to preload, in this order; none for glibc alone.
    pub fn preload(&self) -> Vec<PathBuf> {
        self.layers.iter().chain(&self.object).cloned().collect()
    }

    /// The same with everything repeated in full.
    pub fn in_full(&self) -> Subject {
        Subject { quick: false, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_preloaded_before_the_manager_in_the_programs_order() {
        let paths = |all: &[&str]| -> Vec<PathBuf> { all.iter().map(PathBuf::from).collect() };
        let manager = Subject::of("lea", "/m/lea.so".into());
        assert_eq!(manager.preload(), paths(&["/m/lea.so"]));
        let stack =
            manager.with_layer("sweep", "/l/sweep.so".into()).with_layer("record", "/l/record.so".into());
        assert_eq!(stack.name, "record/sweep/lea");
        assert_eq!(stack.preload(), paths(&["/l/record.so", "/l/sweep.so", "/m/lea.so"]));
        assert_eq!(Subject::glibc().preload(), paths(&[]));
    }
}
